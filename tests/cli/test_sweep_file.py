"""The line that an error about a file of a sweep names."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.cli.sweep_file import SweepFile

SHAPES = '''# a comment

mode = [
  "trace",

  "check",
] # more
limits.seconds = 5
"quoted" = 1

text = """
a = 1
[b]
"""

plain = "x"
[matrix]
  guest = [ "a",
  "b" ]

  # of seeds
  seed = 1
[ options . trace ]
e = @@@
c = 3
@@@
rows = [
[1],
[2],
]
f = {a = 1, b = 2}
[[exclude]]
seed = 1
[[exclude]]
guest = "a"
seed = 2
'''.replace("@@@", "'''")


def keys(data: dict[str, Any], front: str = "") -> Iterator[str]:
    """The keys of a table and of those in it."""
    for key, value in data.items():
        yield f"{front}{key}"
        if isinstance(value, dict):
            yield from keys(value, f"{front}{key}.")


def first_line(text: str, key: str) -> int:
    """The line on which a value begins, of all fronts of a text that can be read."""
    lines = text.split("\n")
    last = 0
    for end in range(1, len(lines) + 1):
        try:
            found: Any = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        for part in key.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if found is not None:
            while not lines[last].strip() or lines[last].lstrip().startswith("#"):
                last += 1
            return last + 1
        last = end
    raise AssertionError(key)


def file(folder: Path, text: str) -> SweepFile:
    (folder / "s.toml").write_text(text)
    return SweepFile(str(folder / "s.toml"))


def test_every_key_has_its_line(tmp_path: Path) -> None:
    sweep = file(tmp_path, SHAPES)
    found = {key: str(sweep.error(key, "x")) for key in keys(sweep.data)}
    assert len(found) == 17
    for key, message in found.items():
        assert message == f"{tmp_path}/s.toml:{first_line(SHAPES, key)}: {key}: x"
    lines = SHAPES.split("\n")
    last = lines.index('guest = "a"')
    assert f":{lines.index('[[exclude]]') + 1}: " in str(sweep.error("exclude", "x", 0))
    assert f":{last}: " in str(sweep.error("exclude", "x", 1))
    assert f":{last + 1}: " in str(sweep.error("exclude.guest", "x"))
    assert str(sweep.error("gone.key", "x")) == f"{tmp_path}/s.toml: gone.key: x"


def test_a_long_file_is_not_read_once_for_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[matrix.definitions]\n" + "".join(f"n{n} = [\n'x'\n]\n" for n in range(1000))
    sweep = file(tmp_path, text)
    read: list[str] = []
    loads = tomllib.loads

    def counted(text: str) -> dict[str, Any]:
        read.append(text)
        return loads(text)

    monkeypatch.setattr(tomllib, "loads", counted)
    assert "s.toml:2702: " in str(sweep.error("matrix.definitions.n900", "x"))
    assert len(read) < 20
    # Lines of a text look like keys, and no front that ends in them can be read.
    sweep = file(tmp_path, "a = 1\nb = '''\n" + "c = 1\n" * 1000 + "'''\nd = 1\n")
    read.clear()
    assert str(sweep.error("d", "x")).endswith(("s.toml: d: x", "s.toml:1004: d: x"))
    assert len(read) <= 100

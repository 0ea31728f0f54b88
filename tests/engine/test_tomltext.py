"""TOML that is none, or that would take all memory."""

import random

import pytest

from engine.tomltext import TomlError, read_toml

GOOD = """
mode = ["trace", "check"]
[matrix]
seed = "0-9"
arch = { a.b = 1 }
[[x]]
d = 2020-01-02
"""
_TOKENS = (b"9" * 5000, b"1e400", b"[", b"{", b'"', b"'''", b"=", b"\n", b"[" * 5000, b"a." * 1200)


@pytest.mark.parametrize(
    "text",
    ["x = " + "9" * 5000, "x = " + "[" * 100_000, "a." * 20_000 + "a = 1", "x = 1979-13-45", "\0"],
)
def test_one_kind_of_error(text: str) -> None:
    with pytest.raises(TomlError):
        read_toml(text)


def test_what_is_toml() -> None:
    assert read_toml(GOOD)["matrix"] == {"seed": "0-9", "arch": {"a": {"b": 1}}}
    assert read_toml("\n".join(f"a{n}.b = {n}" for n in range(2000)))["a7"] == {"b": 7}


def test_mutants() -> None:
    """Whatever a file says: a table, or that error."""
    random.seed(1)
    ended = 0
    for _ in range(400):
        data = bytearray(GOOD.encode())
        for _ in range(random.choice([1, 2, 5])):
            at = random.randrange(len(data))
            piece = random.choice([bytes([random.randrange(256)]), *_TOKENS])
            data[at : at + random.choice([0, 1, 4])] = piece
        try:
            read_toml(data.decode(errors="replace"))
            ended += 1
        except TomlError:
            continue
    assert ended

"""The samples that are offered."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sysroot import CHECKOUT

import tui.samples
from tui.samples import samples


def test_each_program_is_there_once_with_its_words_and_in_the_order_of_the_readme() -> None:
    found = samples()
    files = {path.parts[-2:] for path in (CHECKOUT / "samples" / "bin").glob("*/*")}
    assert {sample.path.parts[-2:] for sample in found} == files
    assert len(found) == len(files)
    readme = (CHECKOUT / "samples" / "README.md").read_text()
    rows = [line for line in readme.split("\n") if line.startswith("| `")]
    first = {cell: n for n, cell in reversed([*enumerate(row.split("`")[1] for row in rows)])}
    places = [first_of(first, sample.arch, sample.path.name) for sample in found]
    assert places == sorted(places)
    assert all(sample.text and sample.text in readme for sample in found)
    for sample in found:
        assert len(sample.lesson) == 2, sample.path
        assert all(len(line) <= 110 and "`" not in line for line in sample.lesson)
    for row in set(places):
        arches = [sample.arch for sample, at in zip(found, places, strict=True) if at == row]
        assert arches == sorted(arches, key=lambda arch: (arch != "x86_64", arch))


def first_of(rows: dict[str, int], arch: str, name: str) -> int:
    words = {row.partition(" ")[0]: number for row, number in reversed(rows.items())}
    return words.get(f"{arch}/{name}", words.get(name, -1))


@pytest.mark.parametrize("text", ["", "no table\n| `x` |\n|---|\n"])
def test_without_words_they_are_offered_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    folder: Callable[[], tuple[Path, ...]] = lambda: (tmp_path / "none", tmp_path)  # noqa: E731
    monkeypatch.setattr(tui.samples, "_folders", folder)
    assert samples() == []
    for name in ("b", "a"):
        (tmp_path / "bin" / "aarch64").mkdir(parents=True, exist_ok=True)
        (tmp_path / "bin" / "aarch64" / name).touch()
    if text:
        (tmp_path / "README.md").write_text(text)
    assert [(sample.path.name, sample.text) for sample in samples()] == [("a", ""), ("b", "")]

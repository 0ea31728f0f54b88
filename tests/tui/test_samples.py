"""The samples that are offered."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from sysroot import CHECKOUT
from textual.widgets import OptionList

import tui.samples
from engine.errors import CommandError
from tui.lessons import LESSONS
from tui.samples import Picker, find_sample, samples


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


def test_lessons_take_turns_with_the_samples() -> None:
    async def use() -> Picker:
        picker = Picker()
        async with picker.run_test(size=(80, 24)) as pilot:
            choices = picker.query_one(OptionList)
            count = choices.option_count
            await pilot.press("l", "j")
            assert choices.option_count == len(LESSONS)
            assert choices.highlighted == 1
            await pilot.press("l")
            assert choices.option_count == count
            await pilot.press("l", "j", "j", "enter")
        return picker

    picker = asyncio.run(use())
    assert picker.return_value == ""
    assert picker.lesson is not None
    assert picker.lesson.name == LESSONS[2]


def test_a_sample_that_is_not_there() -> None:
    assert find_sample("ia64/recursion").is_file()
    with pytest.raises(CommandError, match="x86_64/none is not installed"):
        find_sample("x86_64/none")

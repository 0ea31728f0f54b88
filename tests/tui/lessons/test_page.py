"""Every text of every lesson has room in the strip at 80x24, and means something."""

import shlex

import pytest

from engine.chapters.layout import plain_text
from engine.errors import CommandError
from engine.session.protocol.views import GuestView
from tui.lessons import FOLDER, LESSONS, find_lesson, list_lessons, load_lesson
from tui.lessons.checks import CHECKS, Seen, holds
from tui.lessons.page import RowKind, step_rows, walk_rows
from tui.lessons.panel import MOST_ROWS
from tui.lessons.walk import LessonWalk
from tui.samples import find_sample

WIDTH = 78
each_lesson = pytest.mark.parametrize("name", LESSONS)


def test_every_file_is_listed_once() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted(LESSONS)
    assert len(set(LESSONS)) == len(LESSONS) == 12


@each_lesson
def test_texts_fit(name: str) -> None:
    lesson = load_lesson(name)
    assert lesson.guest.sample == "" or find_sample(lesson.guest.sample).is_file()
    right = ""
    for number, step in enumerate(lesson.steps, 1):
        for hint in (False, True):
            rows = step_rows(step, right, WIDTH, hint=hint)
            assert len(rows) < MOST_ROWS, (name, number, hint)
            signs = [2 if row.kind.value else 0 for row in rows]
            for row, sign in zip(rows, signs, strict=True):
                assert len(plain_text(row.line)) + sign <= WIDTH
            assert sum(row.kind is RowKind.RIGHT for row in rows) == bool(right), (name, number)
        assert step.text.strip()
        assert step.do
        assert step.hint
        assert bool(step.check) == bool(step.right)
        right = step.right
    walk = LessonWalk(lesson)
    for _ in lesson.steps:
        walk.skip()
    assert len(walk_rows(walk, WIDTH)) < MOST_ROWS


@each_lesson
def test_conditions_mean_something(name: str) -> None:
    for step in load_lesson(name).steps:
        for condition in step.check:
            assert shlex.split(condition.removeprefix("!"))[0] in CHECKS
            holds(condition, Seen(GuestView()))


def test_the_list_fits_in_80_columns() -> None:
    assert all(len(line) <= 80 for line in list_lessons())
    assert len(list_lessons()) == 2 * len(LESSONS)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("1", "slow-motion"),
        ("12", "your-machine"),
        ("race", "race"),
        ("Re", ""),
        ("red", "red-zone"),
    ],
)
def test_a_lesson_is_found(word: str, name: str) -> None:
    if name:
        assert find_lesson(word).name == name
    else:
        with pytest.raises(CommandError, match="is it return-probe or red-zone"):
            find_lesson(word)


@pytest.mark.parametrize(
    ("word", "said"),
    [("0", "of 1 to 12"), ("13", "of 1 to 12"), ("", "of 1 to 12"), ("crsh", "is it crash")],
)
def test_a_lesson_that_is_not_there(word: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        find_lesson(word)

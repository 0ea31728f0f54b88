"""The text of a step, filled to a width: what was right, what it is about, what is to be done."""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from engine.chapters.layout import Line, lay_out
from tui.lessons import LESSONS, Step, load_lesson
from tui.lessons.walk import LessonWalk, Standing

_SIGN = 2
"""Cells of the sign in front of a line, and of the blank behind it."""


class RowKind(Enum):
    """The kinds of rows; the value is the sign in front of the first row of each, in `MARKS`."""

    RIGHT = "yes"
    TEXT = ""
    DO = "enter"
    HINT = "cursor"


class Row(Struct, frozen=True):
    """A row of the panel.

    Attributes:
        kind: the kind of text.
        line: the text with its looks.
        first: whether the sign stands in front of it.
    """

    kind: RowKind
    line: Line
    first: bool


def step_rows(step: Step, right: str, width: int, *, hint: bool = False) -> list[Row]:
    """The rows of a step.

    Args:
        step: the step.
        right: what came of the step before it.
        width: columns there are.
        hint: show the step's hint in place of its text.
    """
    kind, text = (RowKind.HINT, step.hint) if hint and step.hint else (RowKind.TEXT, step.text)
    return [
        *_rows(RowKind.RIGHT, right, width),
        *_rows(kind, text, width),
        *_rows(RowKind.DO, step.do, width),
    ]


def walk_rows(walk: LessonWalk, width: int, *, hint: bool = False) -> list[Row]:
    """The rows of the step that a learner is at, or of the end."""
    step = walk.step
    if step is None:
        return list(_end(walk, width))
    rows = step_rows(step, walk.right, width, hint=hint)
    if walk.standing is Standing.ALREADY:
        already = list(_rows(RowKind.RIGHT, "That is so already: `;` `n` goes on.", width))
        rows = [row for row in rows if row.kind is not RowKind.RIGHT]
        rows = [*already, *rows]
    return rows


def _end(walk: LessonWalk, width: int) -> Iterator[Row]:
    lesson = walk.lesson
    yield from _rows(RowKind.RIGHT, walk.right, width)
    text = f"That was lesson {lesson.number}: {lesson.about}"
    yield from _rows(RowKind.TEXT, f"{text.removesuffix('.')}.", width)
    more = "`;` `r` begins it again, `:learn` lists all, `;` `q` closes this."
    if lesson.number < len(LESSONS):
        following = load_lesson(LESSONS[lesson.number])
        more = f"`;` `n` opens lesson {following.number}: {following.title}. {more}"
    yield from _rows(RowKind.DO, more, width)


def _rows(kind: RowKind, text: str, width: int) -> Iterator[Row]:
    room = width - (_SIGN if kind.value else 0)
    for number, line in enumerate(lay_out(text.strip(), room) if text.strip() else ()):
        yield Row(kind, line, not number)

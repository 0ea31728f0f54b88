"""Lessons: short exercises over the shipped samples, whose steps check what the learner has done.

A lesson is a file NAME.toml in this folder and its name in `LESSONS`: the guest, and steps with a
text, what is to be done, and the conditions (`checks`) under which that is done. `walk` goes from
step to step, `panel` shows the step above the panes as rows of a `page`, `guide` connects both
with the interface; `lesson_desk` lists lessons on a `screen`, and leaves for the guest that
`opening` finds.
"""

from difflib import get_close_matches
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine.errors import CommandError
from engine.tomltext import read_toml

FOLDER: Final = Path(__file__).parent
"""The folder of the files."""

LESSONS: Final[tuple[str, ...]] = (
    "slow-motion",
    "not-optimised",
    "return-probe",
    "maxactive",
    "backtraces",
    "djprobe",
    "red-zone",
    "race",
    "crash",
    "bundle",
    "kernel",
    "your-machine",
)
"""Names of the lessons in their order; the first one has number 1."""


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to be done.

    Attributes:
        text: what it is about, Markdown as in a chapter of the handbook.
        do: what is to be done.
        check: conditions of `tui.lessons.checks` that hold once it is done; none for a text that
            is only read.
        right: what has become of it, told above the next step.
        hint: more help, for those who ask.
    """

    text: str
    do: str
    check: tuple[str, ...] = ()
    right: str = ""
    hint: str = ""


class Setup(Struct, frozen=True, forbid_unknown_fields=True):
    """The guest of a lesson and how it is started.

    Attributes:
        sample: ARCH/NAME of a shipped program; "" for a kernel image of the learner's.
        args: arguments of the program.
        seed: of everything random.
        schedule: file in this folder with the turns that the threads take; "" for the usual ones.
        in_its_folder: whether the program runs in the folder of its file.
        technique: of probes, as `trace --technique`.
        returns: the catcher of returns, as `trace --returns`.
        kernel_rules: whether probes are placed exactly as Linux would.
    """

    sample: str = ""
    args: tuple[str, ...] = ()
    seed: int = 0
    schedule: str = ""
    in_its_folder: bool = False
    technique: str = "auto"
    returns: str = "auto"
    kernel_rules: bool = False


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    """A lesson's file."""

    title: str
    about: str
    guest: Setup
    step: tuple[Step, ...]


class Lesson(Struct, frozen=True):
    """A lesson.

    Attributes:
        number: place in the list, from 1 on.
        name: name of the file.
        title: what it is called.
        about: what it shows, one line.
        guest: the program that it is about.
        steps: all things to be done, in their order.
    """

    number: int
    name: str
    title: str
    about: str
    guest: Setup
    steps: tuple[Step, ...]


def load_lesson(name: str) -> Lesson:
    """Read a lesson.

    Args:
        name: one of `LESSONS`.
    """
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    file = msgspec.convert(read_toml(text), _File)
    number = LESSONS.index(name) + 1
    return Lesson(number, name, file.title, file.about, file.guest, file.step)


def find_lesson(word: str) -> Lesson:
    """Read the lesson that a number, a name or the beginning of one stands for.

    Raises:
        CommandError: there is none, or there are several.
    """
    if word.isdecimal() and 1 <= int(word) <= len(LESSONS):
        return load_lesson(LESSONS[int(word) - 1])
    found = [name for name in LESSONS if word and name.startswith(word.lower())]
    if word in LESSONS or len(found) == 1:
        return load_lesson(word if word in LESSONS else found[0])
    near = found or get_close_matches(word.lower(), LESSONS, 3)
    meant = f"is it {' or '.join(near)}?" if near else "learn lists them"
    raise CommandError(f"{word}: no such lesson of 1 to {len(LESSONS)}; {meant}")


def list_lessons() -> list[str]:
    """Return a line for each lesson: its number, name and title, and what it shows below."""
    wide = max(map(len, LESSONS))
    lines = []
    for lesson in map(load_lesson, LESSONS):
        lines.append(f"{lesson.number:>2}  {lesson.name:<{wide}}  {lesson.title}")
        lines.append(f"    {'':<{wide}}  {lesson.about}")
    return lines

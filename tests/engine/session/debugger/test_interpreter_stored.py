"""Sessions of public kinds, command by command beside what gdb has said, which is stored.

`known.txt` names the answers that may differ, each with its reason.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from storedwords import FOLDER, ask, commands, gdb_for, stored, unpacked

_WHY: Final = {
    "artificial": "gdb shows a parameter that the compiler has made and nobody gives",
    "better": "gdb shows a function object by its parts, a register that a call has not kept, an"
    " inlined frame without its place",
    "charset": "in the locale C gdb shows letters beyond ASCII by their bytes",
    "choice": "of several functions of a name gdb takes another one, or more of them",
    "early": "before a run gdb has none of the library's own names for types",
    "folder": "the folder of the source file is not told by the program, and gdb takes its own",
    "functions": "gdb lists functions of its own, and of what is not here",
    "hashes": "names of Rust's functions are told without hashes",
    "library": "names inside of libraries, by their debug information, or after the end",
    "main": "Rust's symbols with hashes tell gdb of no main: it goes on to what has called that",
    "more": "gdb cannot answer that",
    "news": "threads that come and go are told at the stop, behind the program's output",
    "order": "of two faults another one is told",
    "pieces": "gdb puts a structure together whose parts are in no memory",
    "random": "tables of Rust take their order from random numbers",
    "reference": "methods that the layout answers give the thing, and gdb a reference to it",
    "safe": "control characters in a program's texts are made fit for a terminal",
    "schedule": "threads take turns by the emulator's clock, on stacks of their own places",
    "settings": "a setting that changes nothing here says so",
    "slip": "gdb errs: the symbol or the place of another thing, an error of its own scripts",
    "slots": "the slots that calls jump through have values, but no symbols of their own",
    "stop": "a stop's siginfo is filled by its kind",
    "stack": "the stack is elsewhere, by the length of the program's path too",
    "texts": "a text of the user's own has no address before a function gets it",
    "typedefs": "of several names of a type in a template gdb takes another one",
    "virtual": "gdb does not say which virtual function of a class is meant",
    "unset": "variables that are not set yet hold what was there before",
}
_SETS: Final = sorted(tuple(path.name.split(".")[:2]) for path in FOLDER.glob("*.answers"))
_OURS: Final = (sys.executable, "-m", "tui", "--batch")
_LIVE: Final = 0.95
"""The share of answers that any gdb on any machine gives again."""


@cache
def _known() -> dict[tuple[str, str, int], tuple[str, str]]:
    """The reason and the command of each answer that may differ, by script, program and place."""
    found: dict[tuple[str, str, int], tuple[str, str]] = {}
    for line in (FOLDER / "known.txt").read_text().splitlines():
        script, program, number, why, command = line.split(" ", 4)
        found[script, program, int(number)] = why, command
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is as long as that of the stored answers: the stack begins behind it."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def _differing(script: str, program: str, answers: list[str]) -> list[int]:
    want = stored(script, program)
    assert len(answers) == len(want) == len(commands(script))
    pairs = enumerate(zip(want, answers, strict=True))
    return [number for number, (a, b) in pairs if a.rstrip("\n") != b.rstrip("\n")]


def test_what_may_differ_has_a_reason_and_is_there() -> None:
    for (script, program, number), (why, command) in _known().items():
        assert why in _WHY
        assert (script, program) in _SETS
        assert commands(script)[number] == command


@pytest.mark.slow
@pytest.mark.parametrize(("script", "program"), _SETS)
def test_each_command_is_answered_as_gdb_has_answered(
    folder: Path, script: str, program: str
) -> None:
    answers = ask(_OURS, script, unpacked(program, folder))
    differing = _differing(script, program, answers)
    told = [n for n in differing if (script, program, n) not in _known()]
    want, every = stored(script, program), commands(script)
    assert not told, [(every[n], want[n], answers[n]) for n in told]


@pytest.mark.slow
@pytest.mark.parametrize(("script", "program"), _SETS)
def test_the_stored_answers_are_those_of_the_gdb_that_is_there(
    folder: Path, script: str, program: str
) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    path = unpacked(program, folder)
    gdb = gdb_for(path)
    if gdb is None:
        pytest.skip("rustc has no printers for gdb here")
    answers = ask(gdb, script, path)
    if any("Error disabling address space randomization" in answer for answer in answers):
        pytest.skip("gdb cannot run programs here")
    differing = _differing(script, program, answers)
    assert len(differing) <= (1 - _LIVE) * len(answers)

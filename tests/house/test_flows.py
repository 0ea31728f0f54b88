"""The ways through the house: how many functions and files one action of a user passes.

Whoever follows an action through the code reads these functions. The ceilings only fall; a change
that has to raise one says why in its commit.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from click.testing import CliRunner
from controlkit import Held, held, sample

import engine
from engine.cli.check import check as check_command
from engine.probes.site import FunctionCode
from engine.session.control.probe_list import ProbeList
from engine.session.program.places import Places
from engine.session.protocol import commands as cmd

pytestmark = pytest.mark.slow

OURS = f"{Path(engine.__file__).parent}/"

# Functions and files of each action.
CEILINGS = {
    "define": (520, 109),
    "step": (327, 92),
    "seek": (567, 139),
    "check": (553, 74),
}


class Passed:
    """The functions of ours that are called meanwhile.

    Attributes:
        functions: each by its file and first line.
    """

    def __init__(self) -> None:
        self.functions: set[tuple[str, int]] = set()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take note of each function that is called."""

        def look(frame: FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(OURS):
                self.functions.add((code.co_filename, code.co_firstlineno))

        before = sys.getprofile()
        gc.collect()
        gc.disable()  # what earlier tests have left would be taken apart in the middle
        sys.setprofile(look)
        try:
            yield
        finally:
            sys.setprofile(before)
            gc.enable()

    @property
    def counts(self) -> tuple[int, int]:
        """How many functions, and in how many files."""
        return len(self.functions), len({file for file, _ in self.functions})


def define(passed: Passed) -> None:
    """A definition is typed, until its probe is armed."""
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:first factorial"))
        with passed.watched():
            guest.do(cmd.Define("p:g/e fibonacci n=%di:u32"))
        assert guest.probe(2).row.enabled


def step(passed: Passed) -> None:
    """An instruction is executed, until its view is told."""
    with held(sample("x86_64", "recursion")) as guest:
        before = guest.do(cmd.StepInsn()).pc
        with passed.watched():
            assert guest.do(cmd.StepInsn()).pc != before


def seek(passed: Passed) -> None:
    """A moment of the past is gone to."""

    def gone(guest: Held, clock: int) -> None:
        assert guest.do(cmd.Seek(clock)).time == clock

    with held(sample("x86_64", "recursion"), history=True) as guest:
        guest.do(cmd.Define("p:g/e fibonacci"), cmd.Continue())
        gone(guest, 2000)
        with passed.watched():
            gone(guest, 1000)


def check(passed: Passed) -> None:
    """`kprobe-tui check -f fibonacci` on a sample."""
    words = ["-f", "fibonacci", sample("x86_64", "recursion")]
    CliRunner().invoke(check_command, words)  # which loads what is loaded once
    with passed.watched():
        result = CliRunner().invoke(check_command, words)
    assert result.exit_code == 0, result.output
    assert "fibonacci" in result.output


FLOWS: list[Callable[[Passed], None]] = [define, step, seek, check]


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
def test_an_action_passes_no_more_functions_and_files(flow: Callable[[Passed], None]) -> None:
    passed = Passed()
    flow(passed)
    functions, files = passed.counts
    most = CEILINGS[flow.__name__]
    assert 100 < functions <= most[0], f"{functions} functions"
    assert files <= most[1], f"{files} files"


def test_a_definition_passes_six_functions_before_work_begins() -> None:
    """From the loop of commands, or a worker's thread in front of it, to the list of probes."""
    passed: list[str] = []

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code is ProbeList.define.__code__:
            above = frame.f_back
            while above is not None and above.f_code.co_filename.startswith(OURS):
                passed.append(above.f_code.co_qualname)
                above = above.f_back

    with held(sample("x86_64", "recursion")) as guest:
        before = sys.getprofile()
        sys.setprofile(look)
        try:
            guest.do(cmd.Define("p:first factorial"))
        finally:
            sys.setprofile(before)
    assert passed[-1].endswith(".execute")
    assert len(passed) + 1 <= 6, passed


def test_a_definition_looks_its_place_up_once_and_decodes_its_function_once() -> None:
    """The reader of the line, the verdict and the machinery in memory share what they find."""
    calls: list[str] = []
    asked = {Places.of_target.__code__, FunctionCode.__init__.__code__}

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in asked:
            calls.append(frame.f_code.co_qualname)

    with held(sample("x86_64", "recursion")) as guest:
        before = sys.getprofile()
        sys.setprofile(look)
        try:
            guest.do(cmd.Define("p:inside main+0x61"))
        finally:
            sys.setprofile(before)
        assert guest.probe(1).row.enabled
    assert sorted(calls) == ["FunctionCode.__init__", "Places.of_target"]


def test_a_function_is_counted_once() -> None:
    """The control: two calls of one function and one of another, in two files."""
    from engine.escaping import escaped
    from engine.message_text import counted

    passed = Passed()
    with passed.watched():
        counted(2, "call")
        counted(3, "call")
        escaped("text")
    functions, files = passed.counts
    assert files == 2
    assert functions >= 2

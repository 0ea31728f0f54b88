"""Functions that are called where the program stands, and that stop before they return."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from archkit import COMPILED, compiler
from cguest import CHECKOUT
from gdbwords import said

from engine.arch.plan import Mode
from engine.session.debugger.interpreter import batch
from engine.session.guest.session import Session
from engine.session.protocol.config import GuestConfig

SOURCE = CHECKOUT / "tests" / "data" / "debugger" / "left.c"
STOPPED = (
    "! The program being debugged stopped while in a function called from GDB.",
    "Evaluation of the expression containing the function",
    "(twice) will be abandoned.",
    "When the function is done executing, GDB will silently stop.",
)
BETWEEN = "<function called from gdb>"


PROCESSORS = [
    pytest.param(one, marks=() if one == "x86_64" else pytest.mark.slow) for one in COMPILED
]


@pytest.fixture(scope="module", params=PROCESSORS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("left") / f"left.{request.param}"
    flags = ("-g", "-O0", "-static", "-no-pie")
    subprocess.run([compiler(request.param), *flags, "-o", path, SOURCE], check=True)
    return str(path)


def _answers(program: str, *words: str, history: bool = False) -> dict[str, list[str]]:
    """The lines that each word prints, at a stop in `work`; of equal words those of the last."""
    start = ("break work", "run")
    asked = [line for word in words for line in (f"echo @{word}\\n", word)]
    text = said(GuestConfig(program, history=history), *start, *asked)
    parts = [part.splitlines() for part in text.split("@")[1:]]
    return {part[0]: part[1:] for part in parts}


def _frames(lines: list[str]) -> list[str]:
    """The functions of a backtrace, from the innermost one."""
    return [
        BETWEEN if BETWEEN in line else line.partition(" (")[0].split()[-1]
        for line in lines
        if line.startswith("#")
    ]


def test_a_breakpoint_leaves_the_program_in_the_function_that_is_called(program: str) -> None:
    words = ("tbreak twice", "print twice(21)", "bt", "up", "up", "print a", "down", "frame 0")
    found = _answers(program, *words, "print n", "finish", "print $", "print count", "info locals")
    assert found["print twice(21)"][1].startswith("Temporary breakpoint 2, twice (n=21) at ")
    assert tuple(found["print twice(21)"][3:]) == STOPPED
    assert _frames(found["bt"]) == ["twice", BETWEEN, "work", "main"]
    assert found["print a"] == ["$1 = 1"]
    assert found["down"] == [f"#1  {BETWEEN}"]
    assert found["print n"] == ["$2 = 21"]
    assert found["finish"][0].startswith("work (a=1) at ")
    assert found["finish"][-1] == "Value returned is $3 = 42"
    assert found["print $"] == ["$4 = 42"]
    assert found["print count"] == ["$5 = 1"]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["continue", "next", "stepi", "return", "jump 10"])
def test_a_call_ends_without_a_word_and_registers_are_as_before(program: str, way: str) -> None:
    leaves = {"next": ("next", "next", "next"), "stepi": ("stepi 40",)}.get(way, (way,))
    asked = ("info registers", "print half(3.0)", "bt", "delete", "c")
    words = ("tbreak twice", "print half(1.0)", "print twice(3)", *leaves)
    found = _answers(program, *words, *asked)
    if way != "stepi":  # which steps on behind the call's end
        assert found[leaves[-1]] == []
        assert found["info registers"] == _answers(program, "info registers")["info registers"]
    assert found["print half(3.0)"] == ["$2 = 1.5"]
    assert _frames(found["bt"])[-2:] == ["work", "main"]
    assert BETWEEN not in found["bt"]
    assert found["c"][-1].startswith("[Inferior 1 (process ")


def test_calls_within_calls_end_one_after_the_other(program: str) -> None:
    words = ("break twice", "print sum(2)", "print twice(9)", "up 2", "print n", "bt", "finish")
    found = _answers(program, *words, "echo more\\n", "continue", "info frame", "bt 9")
    assert _frames(found["bt"])[:3] == ["twice", BETWEEN, "twice"]
    assert _frames(found["bt"])[3:] == ["sum", "sum", "sum", BETWEEN, "work", "main"]
    assert found["print n"] == ["$1 = 0"]
    assert found["finish"] == []  # the call within ends first
    assert found["continue"] == []
    assert found["info frame"][0].startswith("Stack level 0, frame at 0x")
    assert _frames(found["bt 9"]) == ["work", "main"]


@pytest.mark.slow
def test_results_are_told_at_finish(program: str) -> None:
    words = ("tbreak make", "print make(4)", "finish", "tbreak half", "print half(5.0)")
    found = _answers(program, *words, "echo more\\n", "finish")
    assert found["finish"][-1] == "Value returned is $2 = 2.5"
    found = _answers(program, *words[:3], "print make(7)", "print $.second")
    assert found["finish"][-1] == "Value returned is $1 = {first = 4, second = 5, third = 6}"
    assert found["print make(7)"] == ["$2 = {first = 7, second = 8, third = 9}"]
    assert found["print $.second"] == ["$3 = 8"]


SIGNALLED = "! The program being debugged was signaled while in a function called from GDB."


def test_a_signal_leaves_the_frame_or_unwinds_it(program: str) -> None:
    words = ("print follow(0)", "bt", "return", "bt 9", "set unwindonsignal on")
    found = _answers(program, *words, "echo again\\n", "print raised(11)", "info frame")
    assert found["print follow(0)"][1] == "Program received signal SIGSEGV, Segmentation fault."
    assert found["print follow(0)"][4:6] == [
        SIGNALLED,
        "GDB remains in the frame where the signal was received.",
    ]
    assert _frames(found["bt"]) == ["follow", BETWEEN, "work", "main"]
    assert _frames(found["bt 9"]) == ["work", "main"]
    lines = found["print raised(11)"]
    assert lines[lines.index(SIGNALLED) + 1 :] == [
        "GDB has restored the context to what it was before the call.",
        'To change this behavior use "set unwindonsignal off".',
        "Evaluation of the expression containing the function",
        "(raised) will be abandoned.",
    ]
    assert found["info frame"][1].split(" in ")[1].startswith("work (")


def test_a_function_that_ends_the_program_is_told(program: str) -> None:
    found = _answers(program, "print leave(3)", "bt", "print twice(1)", "run", "print twice(2)")
    assert found["print leave(3)"][0].endswith(" exited with code 03]")
    assert found["print leave(3)"][1:] == [
        "! The program being debugged exited while in a function called from GDB.",
        "Evaluation of the expression containing the function",
        "(leave) will be abandoned.",
    ]
    assert found["bt"] == ["! No stack."]
    assert found["print twice(1)"] == ["! You can't do that without a process to debug."]
    assert found["print twice(2)"] == ["$1 = 4"]


@pytest.mark.slow
def test_another_run_knows_nothing_of_calls(program: str) -> None:
    words = ("tbreak twice", "print twice(1)", "kill", "bt", "run", "bt 9", "info breakpoints")
    found = _answers(program, *words, "delete", "continue")
    assert found["bt"] == ["! No stack."]
    assert _frames(found["bt 9"]) == ["work", "main"]
    assert len(found["info breakpoints"]) == 3
    assert found["continue"][-1].endswith("exited normally]")


@pytest.mark.slow
def test_conditions_count_and_false_ones_stop_nothing(program: str) -> None:
    words = ("break twice if n == 8", "print twice(7)", "print twice(8)", "info breakpoints")
    found = _answers(program, *words)
    assert found["print twice(7)"] == ["$1 = 14"]
    assert tuple(found["print twice(8)"][3:]) == STOPPED
    assert found["info breakpoints"][-1].strip() == "breakpoint already hit 1 time"


@pytest.mark.slow
def test_a_display_whose_function_stops_is_not_shown_at_that_stop(program: str) -> None:
    found = _answers(program, "display twice(2)", "break twice", "next", "bt", "undisplay 1")
    assert sum("Breakpoint 2, twice (n=2)" in line for line in found["next"]) == 1
    assert "1: twice(2) = <error: The program being debugged stopped" in "".join(found["next"])
    assert _frames(found["bt"]) == ["twice", BETWEEN, "work", "main"]


@pytest.mark.slow
def test_commands_of_a_breakpoint_go_on_behind_a_call(program: str) -> None:
    words = ("tbreak 51", "commands", "print twice(4)", "print seen", "end", "continue")
    lines = said(GuestConfig(program), "break work", "run", *words, "bt").splitlines()
    assert lines[-4:-2] == ["$1 = 8", "$2 = 6"]
    assert _frames(lines) == ["work", "main"]


def test_a_breakpoint_at_the_first_instruction_stops(program: str) -> None:
    found = _answers(program, "break *twice", "print twice(7)", "stepi", "bt", "continue", "bt 9")
    assert tuple(found["print twice(7)"][3:]) == STOPPED
    assert _frames(found["bt"]) == ["twice", BETWEEN, "work", "main"]
    assert _frames(found["bt 9"]) == ["work", "main"]


@pytest.mark.slow
def test_the_past_shows_a_call_only_while_it_lasts(program: str) -> None:
    words = ("tbreak twice", "print twice(6)", "bt", "reverse-stepi 3", "echo back\\n")
    more = ("goto end", "bt 9", "continue", "bt 8", "reverse-stepi 4", "bt 7", "echo there\\n")
    last = ("reverse-stepi 25", "bt 6", "goto end", "delete", "finish")
    found = _answers(program, *words, *more, *last, history=True)
    assert _frames(found["bt"]) == _frames(found["bt 9"]) == ["twice", BETWEEN, "work", "main"]
    assert found["continue"] == []
    assert _frames(found["bt 8"]) == ["work", "main"]
    assert _frames(found["bt 7"]) == ["twice", BETWEEN, "work", "main"]
    assert BETWEEN not in _frames(found["bt 6"])
    assert "main () at" in found["finish"][0]
    early = _answers(program, *words[:2], "reverse-continue", "bt", history=True)
    assert BETWEEN not in _frames(early["bt"])


@pytest.mark.slow
def test_the_past_has_the_breakpoint_at_which_a_call_was_made(program: str) -> None:
    """The program stood there, although its instruction was not carried out before the call."""
    words = ("break twice", "p twice(100)", "reverse-continue", "bt", "continue", "bt 9")
    found = _answers(program, *words, history=True)
    assert found["reverse-continue"][1].startswith("Breakpoint 1, work (")
    assert _frames(found["bt"]) == ["work", "main"]
    assert _frames(found["bt 9"]) == ["twice", BETWEEN, "work", "main"]


def test_a_function_without_an_end_is_interrupted_where_it_is(program: str) -> None:
    text: list[str] = []

    @contextmanager
    def guard(session: Session, halt: Callable[[], None]) -> Iterator[None]:
        if "forever\n" in text:
            text.remove("forever\n")
            threading.Timer(0.3, halt).start()
        yield

    words = ("break work", "run", "echo forever\\n", "print forever()", "bt", "return", "bt")
    steps = [("command", line) for line in words]
    batch(GuestConfig(program), steps, text.append, text.append, Mode.KERNEL, guard)
    lines = "".join(one if one.endswith("\n") else f"{one}\n" for one in text).splitlines()
    assert "Program received signal SIGINT, Interrupt." in lines
    assert SIGNALLED.removeprefix("! ") in lines
    assert _frames(lines) == ["forever", BETWEEN, "work", "main", "work", "main"]

"""Functions of a guest are called on a copy of its memory, which is dropped, or in the guest."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import pytest
from archkit import COMPILED, compiler
from cguest import CHECKOUT

from engine.arch.plan import Mode
from engine.session.debugger.interpreter import batch
from engine.session.guest.session import Session
from engine.session.protocol.config import GuestConfig

SOURCE = CHECKOUT / "tests" / "data" / "debugger" / "called.c"


@pytest.fixture(scope="module", params=COMPILED)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("called") / f"called.{request.param}"
    flags = ("-g", "-O0", "-static", "-no-pie")
    subprocess.run([compiler(request.param), *flags, "-o", path, SOURCE], check=True)
    return str(path)


def _said(program: str, *lines: str, mode: Mode = Mode.KERNEL) -> list[str]:
    """Output of words at the first stop in `add`, and of the run to its end."""
    said: list[str] = []
    batch(
        GuestConfig(program),
        [("command", line) for line in ("break add", "run", "echo =\\n", *lines)],
        said.append,
        lambda text: said.append(f"! {text}\n"),
        mode,
        lambda session, halt: nullcontext(),
    )
    return "".join(said).partition("=\n")[2].splitlines()


KEPT = (
    {"one": "{id = 1, sum = 15}", "one.sum = deposit(&one, add(1, 1))": "17", "count": "3"},
    "8 5 10 0",
)
"""Results that are others where effects of calls stay, and what the program says at its end."""
DROPPED: tuple[dict[str, str], str] = ({}, "8 2 10 1")
RESULTS = {
    "add(2, 3)": "5",
    "add(-1, 0) + 1": "0",
    "half(5)": "2.5",
    "third(3, 0.5)": "1.5",
    'length("hello")': "5",
    "digits(1, 2, 3, 4, 5, 6)": "654321",
    "deposit(&one, 5) * 2": "30",
    "one": "{id = 1, sum = 10}",
    "one.sum = deposit(&one, add(1, 1))": "12",
    "make(3)": "{id = 3, sum = 3}",
    "grow()": "1",
    "count": "0",
}


@pytest.mark.parametrize(("dropped", "others"), [("off", KEPT), ("on", DROPPED)])
def test_results_are_fetched_and_effects_stay_or_are_taken_back(
    program: str,
    capfd: pytest.CaptureFixture[str],
    dropped: str,
    others: tuple[dict[str, str], str],
) -> None:
    said = _said(
        program,
        f"set calls-on-copy {dropped}",
        "disable",
        *(f"print {each}" for each in RESULTS),
        "set var one.sum = 10",
        'call say("hi")',
        *("info registers", "delete", "continue"),
    )
    values = [line.partition(" = ")[2] for line in said if line.startswith("$")]
    assert values == list((RESULTS | others[0]).values())
    registers = [line for line in said if not line.startswith("$")][:-1]
    assert registers == _said(program, "info registers", "delete", "continue")[:-1]
    assert capfd.readouterr().out == f"said hi\n{others[1]}\n8 2 10 1\n"


FAILURES = {
    "print add(1)": "Too few arguments in function call.",
    "print add(1, 2, 3)": "Too many arguments in function call.",
    "print one(3)": "Invalid data type for function to be called.",
    "print leave(3)": "The function calls exit_group(), which is not done in a call; "
    "nothing of it stays.",
}


def test_calls_that_fail_leave_the_program_where_it_was(
    program: str, capfd: pytest.CaptureFixture[str]
) -> None:
    said = _said(
        program,
        *("set calls-on-copy on", *FAILURES),
        *("print follow(0)", "print raised()", "bt 1", "delete", "continue"),
    )
    assert said[: len(FAILURES)] == [f"! {why}" for why in FAILURES.values()]
    fault, raised, frame = said[len(FAILURES) :][:3]
    assert fault.startswith("! The program gets SIGSEGV in the function, at ")
    assert "follow+" in fault
    assert raised.startswith("! The program gets SIGUSR1") or raised.endswith(" = 0")
    assert frame.startswith("#0  add (a=3, b=4) at ")
    assert capfd.readouterr().out == "8 2 10 1\n"


def test_a_function_that_does_not_return_is_interrupted(program: str) -> None:
    said: list[str] = []

    @contextmanager
    def guard(session: Session, halt: Callable[[], None]) -> Iterator[None]:
        if "forever\n" in said:
            said.remove("forever\n")
            threading.Timer(0.5, halt).start()  # before the call, the word itself is ended
        yield

    words = ("break add", "run", "delete", "set calls-on-copy on")
    asked = ("echo forever\\n", "print forever()", "print count")
    steps = [("command", line) for line in (*words, *asked)]
    batch(GuestConfig(program), steps, said.append, said.append, Mode.KERNEL, guard)
    assert said[-2:] == ["Interrupted in the function; nothing of the call stays.", "$1 = 0\n"]


def test_a_call_on_a_copy_is_no_hit_of_what_is_placed_there(
    program: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A function that has a breakpoint is called on a copy as if it had none."""
    words = ("break half", "print half(add(3, 4))", "info breakpoints", "delete")
    said = _said(program, "set calls-on-copy on", *words)
    assert "$1 = 3.5" in said
    assert [line for line in said if "already hit" in line] == ["\tbreakpoint already hit 1 time"]


def test_conditions_call_nothing(program: str) -> None:
    said = _said(program, "delete", "break add if half(a) == 4", "continue")
    assert "Error in testing breakpoint condition:" in said
    assert "Functions of the program are not called in conditions." in said


def test_nothing_is_called_before_the_program_runs() -> None:
    said: list[str] = []
    steps = [("command", "print deposit(0, 0)")]
    guest = str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs")
    guard = nullcontext()
    batch(GuestConfig(guest), steps, said.append, said.append, Mode.KERNEL, lambda s, h: guard)
    assert said == ["You can't do that without a process to debug."]

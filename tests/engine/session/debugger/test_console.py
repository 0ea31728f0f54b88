"""gdb's words at an interface: one guest, one list of probes, other hands on it meanwhile."""

from collections.abc import Iterator

import pytest
from archkit import COMPILED
from controlkit import Held, held, sample

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState


@pytest.fixture(params=COMPILED)
def guest(request: pytest.FixtureRequest) -> Iterator[Held]:
    """A guest that words are known for."""
    with held(sample(request.param, "recursion")) as found:
        Console(found.control, found._tell)
        yield found


def say(guest: Held, text: str) -> str:
    """Carry a line out: what it has come to."""
    guest.do(cmd.TypedLine(text))
    return guest.all(ev.Done)[-1].text


def refusal(guest: Held, text: str) -> str:
    """Carry a line out that cannot be: why not."""
    failure = guest.fail(cmd.TypedLine(text))
    assert failure is not None
    return failure.text


def printed(guest: Held) -> str:
    """All that was printed so far."""
    return "".join(event.text for event in guest.all(ev.Printed))


def test_words_and_keys_move_one_guest(guest: Held) -> None:
    assert say(guest, "break fibonacci if n == 5").startswith("Breakpoint 1 at ")
    assert guest.view.probes[0].row.line == "fibonacci"
    assert guest.view.probes[0].only == "if n == 5"
    guest.do(cmd.Continue())  # by a key: the condition is asked all the same
    assert guest.view.reason == "breakpoint 1: fibonacci"
    assert "Breakpoint 1, fibonacci (n=n@entry=5)" in printed(guest)
    assert say(guest, "print n") == "$1 = 5"
    guest.do(cmd.SelectFrame(2))
    assert say(guest, "frame").startswith("#2 "), "the frame that a pane looks at"
    say(guest, "down")
    assert guest.view.frame == 1
    guest.do(cmd.StepInsn())
    assert guest.view.frame == 0
    assert say(guest, "display n") == "1: n = 5"
    before = len(printed(guest))
    guest.do(cmd.StepInsn())
    assert printed(guest)[before:] == "1: n = 5\n"
    assert "Value returned is $2 = 5" in say(guest, "finish")
    assert guest.view.state is RunState.STOPPED
    assert [probe.row.id for probe in guest.view.probes] == [1], "its own stops are gone"


def test_what_others_place_has_its_number_here(guest: Held) -> None:
    guest.do(cmd.Define("p:demo/fib fibonacci"), cmd.ToggleBreak("ackermann"))
    listed = say(guest, "info breakpoints")
    assert "\n1       probe " in listed
    assert "\n2       breakpoint " in listed
    assert "Breakpoint 2 is there" in refusal(guest, "break *&ackermann")
    say(guest, "condition 2 m == 1")
    say(guest, "ignore 2 1")
    say(guest, "commands 2\nsilent\nprint m + 100\nend")
    assert guest.view.probes[1].only == "if m == 1, ignore 1, commands"
    guest.do(cmd.Continue())
    assert guest.view.reason == "breakpoint 2: ackermann"
    assert printed(guest).endswith("$1 = 101\n")
    guest.do(cmd.Restart(), cmd.Continue())
    assert guest.view.reason == "breakpoint 2: ackermann", "in a fresh run, too"
    assert printed(guest).endswith("$2 = 101\n")
    say(guest, "disable 2")
    assert not guest.view.probes[1].row.enabled
    guest.do(cmd.Enable((2,)), cmd.Delete((1,)))
    assert "1       probe" not in say(guest, "info breakpoints")
    say(guest, "delete 2")
    assert not guest.view.probes
    guest.do(cmd.Undo())
    assert [probe.row.id for probe in guest.view.probes] == [2]


def test_a_word_runs_to_where_a_breakpoint_is_disabled(guest: Held) -> None:
    say(guest, "break fibonacci")
    say(guest, "disable 1")
    assert "fibonacci (n=" in say(guest, "advance fibonacci")
    (row,) = guest.view.probes
    assert not row.row.enabled, "as it was"
    say(guest, "enable 1")
    assert say(guest, "continue").startswith("\nBreakpoint 1, fibonacci (n=")


def test_words_at_the_beginning_and_behind_the_end(guest: Held) -> None:
    assert "_start" in say(guest, "info symbol $pc")
    assert "exited normally" in say(guest, "run")
    assert refusal(guest, "next") == "The program is not being run."
    assert "Temporary breakpoint 1, " in say(guest, "start")
    assert refusal(guest, "nosuch").startswith('Undefined command: "nosuch"')
    assert printed(guest).endswith('Try "help".\n')
    assert "terminal is taken" in refusal(guest, "shell true")
    guest.do(cmd.AskWords())
    names = [names[0] for names, _ in guest.all(ev.WordsKnown)[-1].words]
    assert {"print", "break", "info locals"} <= set(names)


def test_signals_stop_the_guest_for_who_says_so() -> None:
    with held(sample("x86_64", "crash")) as crashing:
        Console(crashing.control, crashing._tell)
        crashing.do(cmd.Continue())
        assert crashing.view.exit_code == 139
        crashing.do(cmd.Restart())
        say(crashing, "handle SIGSEGV stop")
        crashing.do(cmd.Continue())
        assert "SIGSEGV" in crashing.view.reason
        assert crashing.view.exit_code is None


def test_keys_lead_out_of_a_function_that_a_word_has_called(guest: Held) -> None:
    say(guest, "break fibonacci if n == 5")
    guest.do(cmd.Continue())
    stood = guest.view
    assert say(guest, "print fibonacci(4)") == "$1 = 3"
    assert guest.view.pc == stood.pc
    say(guest, "condition 1 n == 3")
    assert "stopped while in a function called from GDB" in refusal(guest, "print fibonacci(3)")
    titles = [frame.title for frame in guest.view.frames]
    assert titles[:3] == ["fibonacci", "<function called from gdb>", "fibonacci"]
    assert titles[2:] == [frame.title for frame in stood.frames]
    guest.do(cmd.Continue())  # by a key: the call ends, and nothing is said
    assert (guest.view.pc, guest.view.frames[0].cfa) == (stood.pc, stood.frames[0].cfa)
    assert guest.view.state is RunState.STOPPED
    assert [row.value for row in guest.view.registers] == [row.value for row in stood.registers]
    assert [probe.row.id for probe in guest.view.probes] == [1], "its own stop is gone"


def test_a_fault_in_a_function_that_a_word_has_called_stops_at_an_interface() -> None:
    with held(sample("x86_64", "crash")) as crashing:
        Console(crashing.control, crashing._tell)
        say(crashing, "break find_entry")
        crashing.do(cmd.Continue())
        why = refusal(crashing, "print same_key((char *)8, key)")
        assert why.startswith("The program being debugged was signaled while in a function")
        assert crashing.view.exit_code is None
        assert say(crashing, "return").startswith("#0  find_entry (")
        assert crashing.view.frames[0].function == "find_entry"

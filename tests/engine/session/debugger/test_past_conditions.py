"""Words that ask who wrote a value, and when one was true."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build
from controlkit import Held, held, sample

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import StopCause


@pytest.fixture(params=["x86_64", pytest.param("aarch64", marks=pytest.mark.slow)])
def guest(request: pytest.FixtureRequest) -> Iterator[Held]:
    """A guest that is recorded when it runs, and has a breakpoint."""
    with held(sample(request.param, "structs"), history=True) as found:
        Console(found.control, found._tell)
        say(found, "break deposit")
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


def function(guest: Held) -> str:
    """Where the guest stands, by a watchpoint's or a step's words."""
    return say(guest, "info symbol $pc").split()[0]


def test_who_wrote(guest: Held) -> None:
    say(guest, "run")
    here = guest.view.pc
    told = say(guest, "last-write person")
    assert told.startswith("person is in $")
    assert function(guest) == "transfer"
    say(guest, "continue")
    assert guest.view.pc == here
    say(guest, "last-write $pc")
    assert function(guest) == "transfer", "the call"
    say(guest, "continue")
    say(guest, "up")
    told = say(guest, "last-write payment")
    assert told.startswith("payment is in $")
    assert function(guest) == "transfer"
    assert "payment" in say(guest, "stepi 2") + say(guest, "frame")
    assert "not located in memory" in refusal(guest, "last-write 1")
    assert "Argument required" in refusal(guest, "last-write")


def test_where_from(guest: Held) -> None:
    say(guest, "run")
    assert "No value has been followed" in refusal(guest, "origin")
    say(guest, "continue")
    here = guest.view.pc, guest.view.time
    told = say(guest, "origin amount")
    assert "<transfer+" in told
    assert "loaded from 0x" in told
    assert "as it was mapped [start]" in told
    assert (guest.view.pc, guest.view.time) == here
    assert told.endswith(say(guest, "origin"))
    say(guest, "origin 0")
    assert function(guest) == "transfer"
    assert "No link 99: 0 to 1." in refusal(guest, "origin 99")
    assert "not located in memory" in refusal(guest, "origin 1+1")


def test_when_it_was_true(guest: Held) -> None:
    say(guest, "run")
    values = {int(say(guest, "print grace.balance").split()[-1])}
    say(guest, "delete")
    say(guest, "watch grace.balance")
    found = []
    while "exited" not in (told := say(guest, "continue")):
        found.append(int(told.split("New value = ")[1].split()[0]))
    values.update(found)
    assert len(found) > 1
    say(guest, "delete")
    least = min(values)
    told = say(guest, f"first-time grace.balance == {found[-1]}")
    assert f"grace.balance == {found[-1]} is true from here on, by the instruction at 0x" in told
    assert " <deposit+" in told
    assert say(guest, "print grace.balance").split()[-1] == str(found[-1])
    first = guest.view.time
    assert "is true at no moment" in say(guest, f"first-time grace.balance < {least}")
    assert guest.view.time == first, "it stays where it was"
    say(guest, "goto end")
    assert "is true from here on" in say(guest, f"lt grace.balance == {found[-1]}")
    assert guest.view.time == first
    assert "has not become true before now" in say(guest, f"lt grace.balance == {found[-1]}")


def test_variables_of_a_call(guest: Held) -> None:
    say(guest, "run")
    say(guest, "continue")
    told = say(guest, "last-time person->balance > 0")
    assert told.startswith("Variables that are in registers here ($")
    say(guest, "run")
    assert "ask for a register by its name" in refusal(guest, "ft amount == 5")
    assert "ask for one or the other" in refusal(guest, "ft amount == $pc")
    assert "is constant" in refusal(guest, "first-time 1 == 1")
    assert "No symbol" in refusal(guest, "first-time nothing == 1")
    assert "Argument required" in refusal(guest, "last-time")
    register = "$rdi" if "rdi" in guest.registers() else "$x0"
    held = say(guest, f"print/x {register}").split()[-1]
    told = say(guest, f"last-time {register} == {held}")
    assert f"{register} == {held} is true from here on" in told
    assert say(guest, f"print/x {register}").split()[-1] == held
    say(guest, "stepi")
    say(guest, f"last-write {register}")


def test_without_a_recording() -> None:
    with held(sample("x86_64", "words")) as guest:
        Console(guest.control, guest._tell)
        say(guest, "break main")
        say(guest, "run")
        assert "not recorded" in refusal(guest, "first-time $rax == 1")
        assert "not recorded" in refusal(guest, "last-write $rax")


def test_the_name_of_a_variable_is_no_reason_to_stop(tmp_path: Path) -> None:
    names = "items_seen", "probes_seen", "breakpoints_set", "watchpoints"
    steps = " ".join(f"{name}++;" for name in names)
    source = (
        f"int {', '.join(names)};\nint main(void) {{ for (int i = 0; i < 9; i++) {{ {steps} }} }}"
    )
    with held(str(build(tmp_path, "counts", source, "-g", "-O0")), history=True) as guest:
        Console(guest.control, guest._tell)
        guest.do(cmd.Continue())
        for name in names:
            view = guest.do(cmd.FirstTime(f"{name} == 3"))
            assert view.reason.startswith(f"{name} == 3 is true from here on")
            assert view.cause is StopCause.FOUND
            assert f"{name} == 4 is true from here on" in say(guest, f"first-time {name} == 4")
        guest.do(cmd.Seek(), cmd.ToggleBreak("main"))
        assert guest.do(cmd.ContinueBack()).cause is StopCause.HIT
        assert guest.do(cmd.ContinueBack()).cause is StopCause.CUT_SHORT

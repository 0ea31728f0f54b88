"""gdb's words for the past: there, back to the present, and what cannot be done there."""

import random
from pathlib import Path

import pytest
from compiled import build
from controlkit import sample
from guestrun import run
from historykit import state_of
from sessionkit import SAMPLES

from engine.history import livecheckpoints
from engine.history import timeline as timelines
from engine.history.timeline import Timeline
from engine.session.control.control import Control
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.views import RunState


def said(guest: str, *words: str, cwd: Path) -> str:
    options = [word for line in words for word in ("-ex", line)]
    done = run(*options, "--batch", str(SAMPLES / guest), cwd=cwd)
    return done.out + done.err


def test_there_and_back(tmp_path: Path) -> None:
    text = said(
        "x86_64/structs",
        *("record", "break deposit", "run", "info record", "p $pc", "reverse-step", "p $pc"),
        *("info record", "continue", "p $pc", "info record", "continue", "reverse-continue"),
        cwd=tmp_path,
    )
    modes = [line for line in text.splitlines() if line.endswith("mode:")]
    assert modes == ["Record mode:", "Replay mode:", "Record mode:"]
    values = [line.partition("= ")[2] for line in text.splitlines() if line.startswith("$")]
    assert values[0] == values[2] != values[1]
    assert text.count("Breakpoint 1, deposit") == 3
    assert "Traceback" not in text


def test_what_the_past_refuses(tmp_path: Path) -> None:
    text = said(
        "x86_64/structs",
        *("record", "break deposit", "run", "reverse-stepi", "set var $rax = 5", "goto end"),
        *("set var $rax = 5", "p $rax", "reverse-stepi", "stepi", "p $rax", "record", "goto 9x"),
        "goto " + "9" * 5000,
        cwd=tmp_path,
    )
    assert "the past cannot be changed" in text
    assert "$1 = 5" in text
    assert "$2 = 5" in text  # a change in the present is part of what is lived through again
    assert "already being recorded" in text
    assert text.count("goto begin, goto end, goto TICK") == 2


def test_without_a_recording(tmp_path: Path) -> None:
    text = said(
        "x86_64/structs", "break deposit", "run", "info record", "reverse-step", cwd=tmp_path
    )
    assert "No recording is currently active." in text
    assert "the run is not recorded" in text


def test_from_a_crash_to_its_cause(tmp_path: Path) -> None:
    text = said(
        "x86_64/crash",
        *("record", "run", "reverse-finish", "reverse-continue", "continue", "bt 1"),
        cwd=tmp_path,
    )
    assert "add_setting (sum=4" in text
    assert "No more reverse-execution history." in text
    assert text.rstrip().splitlines()[-1].startswith("#0  read_value (entry=0x0)")


def test_back_from_the_end_with_probes() -> None:
    """Rows of the log stay; a restart, and what comes in meanwhile, find everything in order."""
    said: list[ev.SessionEvent] = []
    control = Control(GuestConfig(sample("x86_64", "structs"), history=True), said.append)
    try:
        control.loop.execute(cmd.Define("p deposit", stops=True))
        control.loop.execute(cmd.Continue())
        first = control.view()
        control.loop.execute(cmd.Continue())
        second = control.view()
        assert first.time < second.time
        while control.state is not RunState.ENDED:
            control.loop.execute(cmd.Continue())
        events, end = control.view().events, control.view().time
        assert events > 2
        control.session.attend()  # as a front end does that has something to say
        for wanted in (second, first):
            while (view := control.view()).time > wanted.time or view.state is RunState.ENDED:
                control.loop.execute(cmd.ContinueBack())
                control.sight.attention()
            assert (view.pc, view.time) == (wanted.pc, wanted.time)
            names = [row.name for row in view.registers if row.group == "general"]
            assert {row.name: row.value for row in view.registers if row.name in names} == {
                row.name: row.value for row in wanted.registers if row.name in names
            }
        assert control.view().events == events
        control.loop.execute(cmd.Seek(None))
        assert (control.state, control.view().time) == (RunState.ENDED, end)
        control.loop.execute(cmd.StepBack())
        assert control.view().state is RunState.STOPPED
        control.loop.execute(cmd.Restart())
        assert (control.state, control.view().time) == (RunState.READY, 0)
        control.loop.execute(cmd.Continue())
        assert control.view().pc == first.pc
        assert not [each for each in said if isinstance(each, ev.Failed)]
    finally:
        control.close()


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_watchpoints_stop_backwards(arch: str, tmp_path: Path) -> None:
    """In front of the store, with the values in the order of the motion, as under gdb."""
    text = said(
        f"{arch}/structs",
        *("record", "break main", "run", "watch grace.balance", "continue", "continue"),
        *("reverse-continue", "p grace.balance", "reverse-continue", "p grace.balance"),
        *("continue", "p grace.balance", "reverse-continue", "reverse-continue"),
        cwd=tmp_path,
    )
    lines = text.splitlines()
    values = [line.partition("value = ")[2] for line in lines if "value = " in line]
    forth, again, back = ["5000", "4700"], ["4700", "4900"], ["4900", "4700"]
    assert values == [*forth, *again, *back, *forth[::-1], *forth, *forth[::-1]]
    printed = [line.partition("= ")[2] for line in lines if line.startswith("$")]
    assert printed == ["4700", "5000", "4700"]
    assert text.count("Breakpoint 1, main") == 2
    assert "Traceback" not in text


_TOGGLE = """
static volatile char page[4096] __attribute__((aligned(4096)));

static __attribute__((noinline)) void spin(void)
{
    for (int i = 0; i < 150; i++)
        __asm__ volatile ("");
}

int main(void)
{
    for (int i = 0; i < 60; i++) {
        page[7] = 1;
        spin();
        page[7] = 0;
        spin();
    }
    return 0;
}
"""
"""A page that holds again what it held before."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "symbol"), [("toggle", "spin"), ("recursion", "fibonacci"), ("race", "think")]
)
def test_there_and_on_and_there_again(
    name: str, symbol: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Checkpoints of the run and those of the way there make the states that the run had."""
    for module in (livecheckpoints, timelines):
        monkeypatch.setattr(module, "_SECONDS", 0.0)
        monkeypatch.setattr(module, "_SHARE", 0)
    monkeypatch.setattr(livecheckpoints, "_FIRST", 0.0)
    monkeypatch.setattr(livecheckpoints, "_LOOK", 700 if name == "toggle" else 40)
    monkeypatch.setattr(timelines, "_SLICE", 30)
    choose = random.Random(1)
    path = sample("x86_64", name)
    if name == "toggle":
        path = str(build(tmp_path, name, _TOGGLE, "-static", "-O1"))
    control = Control(GuestConfig(path, history=True), lambda event: None)
    try:
        control.loop.execute(cmd.Define(f"p {symbol}", stops=True))
        for _ in range(6):
            for _ in range(9):
                control.loop.execute(cmd.Continue())
            end = control.view().time
            for _ in range(3):
                control.loop.execute(cmd.Seek(choose.randrange(1, end)))
            control.loop.execute(cmd.Seek(None))
        travel = control.sight.place.travel
        assert travel is not None
        past, timeline = travel.past, travel.backwards.timeline
        control.loop.execute(cmd.Seek(end // 2))
        marks = timeline.marks()
        assert len(marks) >= 12
        fresh = travel.fresh()
        plain = Timeline(fresh.kernel, fresh.ram)
        fresh.kernel.reached = past.kernel.reached
        known = {}
        for mark in marks:
            plain.seek(mark)
            known[mark] = state_of(fresh)
        choose.shuffle(marks)
        for mark in marks:
            timeline.seek(mark)
            assert state_of(past) == known[mark]
        fresh.close()
    finally:
        control.close()

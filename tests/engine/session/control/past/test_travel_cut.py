"""Motions in the past that are cut short, and a history that ends before its run does."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from controlkit import Given, Held, held, sample

from engine.history.recording import RunRecorder
from engine.history.timeline import Moment, Timeline
from engine.session.control.past.conditions import Condition
from engine.session.control.past.search import PastStretches
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState, StopCause


@pytest.fixture
def ended() -> Iterator[Held]:
    """A run that has ended."""
    with held(sample("x86_64", "sort"), history=True) as guest:
        guest.do(cmd.Continue())
        yield guest


def cut(
    guest: Held, monkeypatch: pytest.MonkeyPatch, motion: cmd.Command, command: cmd.Command
) -> None:
    """Carry a motion out, in whose first stretch another command comes in."""
    asked = iter([command])
    run, steps = Timeline.run_to_tick, PastStretches.steps

    def ask() -> None:
        guest.control.queue.source = Given(lambda: next(asked, None))
        guest.control.sight.attention()

    def first(*args: Any, **options: Any) -> None:
        ask()
        run(*args, **options)

    def first_steps(stretches: PastStretches, end: Moment, cut: Callable[[], bool]) -> object:
        ask()
        return steps(stretches, end, cut)

    with monkeypatch.context() as patched:
        patched.setattr(Timeline, "run_to_tick", first)
        patched.setattr(PastStretches, "steps", first_steps)
        guest.do(motion)


def never(address: int, text: str) -> Condition:
    """A condition of some bytes, or of a register, that is true nowhere."""
    registers = ("rax",) if text == "registers" else ()
    return Condition(text, lambda: (False, ((address, 8),)), 1000, 1000, registers)


def test_a_cut_motion_reaches_nothing(ended: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Back it stays where it has begun; forwards it stays where it has come to."""
    end = ended.view.time
    cut(ended, monkeypatch, cmd.ContinueBack(), cmd.Halt())
    assert ended.view.time == end
    stack = ended.registers()["rsp"]
    ended.do(cmd.Seek(5), cmd.ToggleBreak("swap"), cmd.Continue())
    inside = ended.do(cmd.StepInsn())
    behind = ended.do(cmd.FinishBack(), cmd.StepOver())
    assert inside.time < behind.time
    middle = ended.do(cmd.Delete((1,)), cmd.Seek(end // 2))
    ended.control.questions.condition = partial(never, stack)
    for motion, begun in (
        (cmd.ContinueBack(), middle),
        (cmd.LastWrite(stack, 8), middle),
        (cmd.LastRegisterWrite("rax", 1000), middle),
        (cmd.Origin("stack", "", stack, 8, 1000), middle),
        (cmd.Origin("$rax", "rax", 0, 8, 1000), middle),
        (cmd.FirstTime("memory"), middle),
        (cmd.LastTime("memory"), middle),
        (cmd.FirstTime("registers"), middle),
        (cmd.LastTime("registers"), middle),
        (cmd.FinishBack(), inside),
        (cmd.StepBack(over=True), behind),
    ):
        ended.do(cmd.Seek(begun.time, begun.pc))
        cut(ended, monkeypatch, motion, cmd.Halt())
        view = ended.view
        assert (view.time, view.pc) == (begun.time, begun.pc), motion
        assert view.cause is StopCause.INTERRUPTED
    cut(ended, monkeypatch, cmd.Continue(), cmd.Halt())
    view = ended.view
    assert view.history is not None
    assert view.history.past
    assert view.time < end
    assert view.cause is StopCause.INTERRUPTED


def test_a_motion_that_is_cut_in_the_code_of_a_probe(
    ended: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest stands in its own code then, and finds the place from there on."""
    ended.do(cmd.Seek(5), cmd.ToggleBreak("swap"))
    hits = [ended.do(cmd.Continue()).time for _ in range(2)]
    ended.do(cmd.Seek(5))
    program = ended.control.session
    pc, run, halts = program.arch.roles.pc, Timeline.run_to_tick, iter([cmd.Halt()])
    asked: list[bool] = []

    def ran(timeline: Timeline, at: int, clock: int, until: Callable[[], bool]) -> None:
        def heard() -> bool:
            inside = program.cpu.read_register(pc) != timeline.now().pc
            if inside and not asked:
                asked.append(inside)
                ended.control.queue.source = Given(lambda: next(halts, None))
                program.hooks.attention()
            return until()

        run(timeline, at, clock, heard)

    with monkeypatch.context() as patched:
        patched.setattr("engine.history.timeline._SLICE", 1)
        patched.setattr(Timeline, "run_to_tick", ran)
        patched.setattr(ended.control.questions, "accepts", lambda number: False)
        view = ended.do(cmd.Continue())
    assert asked
    assert view.cause is StopCause.INTERRUPTED
    assert view.raw_pc == view.pc
    assert 5 <= view.time <= hits[0]
    assert ended.do(cmd.Continue()).time == hits[view.time == hits[0]]


def test_a_restart_in_the_middle_of_a_motion(ended: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    end = ended.view.time
    ended.do(cmd.Seek(5))
    cut(ended, monkeypatch, cmd.Continue(), cmd.Restart())
    assert (ended.view.state, ended.view.time) == (RunState.READY, 0)
    assert ended.do(cmd.Continue()).time == end


def test_the_first_way_back_is_seen_and_can_be_cut(ended: Held) -> None:
    """The run is lived through once more for it, which takes as long as it did."""
    end, seen = ended.view.time, []

    def halt() -> cmd.Command | None:
        seen.append(ended.view.state)
        return cmd.Halt() if len(seen) == 1 else None

    ended.control.queue.source = Given(halt)
    view = ended.do(cmd.Seek(5))
    assert seen[0] is RunState.RUNNING
    assert view.history is not None
    assert (view.state, view.time, view.history.past) == (RunState.ENDED, end, False)
    assert ended.do(cmd.Seek(5)).time == 5
    assert ended.do(cmd.Seek()).state is RunState.ENDED


@pytest.mark.parametrize("command", [cmd.Halt(), cmd.Restart()])
def test_the_first_way_back_is_cut_in_the_middle_of_a_run(command: cmd.Command) -> None:
    with held(sample("x86_64", "sort"), history=True) as guest:
        stands = guest.do(cmd.ToggleBreak("quicksort"), *[cmd.Continue()] * 5)
        asked = iter([command])
        guest.control.queue.source = Given(lambda: next(asked, None))
        view = guest.do(cmd.Seek(5))
        if command == cmd.Restart():
            assert (view.state, view.time) == (RunState.READY, 0)
            return
        assert (view.time, view.pc) == (stands.time, stands.pc)
        assert view.cause is StopCause.INTERRUPTED
        guest.do(cmd.Continue())
        assert guest.do(cmd.Seek(5)).time == 5
        guest.do(cmd.Seek(), cmd.Delete((1,)), cmd.Continue())
        assert guest.view.state is RunState.ENDED


def test_no_more_is_recorded() -> None:
    """The run goes on and can be changed; what was recorded of it can be gone to."""
    with held(sample("x86_64", "words"), history=True) as guest:
        recorder = guest.control.session.machine.recorder
        assert isinstance(recorder, RunRecorder)
        recorder._left = 0  # the next entry is the last
        guest.do(cmd.ToggleBreak("print"), *[cmd.Continue()] * 8)
        assert recorder.full
        assert recorder.end < guest.view.time
        stack = guest.registers()["rsp"]
        guest.do(cmd.WriteMemory(stack - 64, b"changed"), cmd.SetMark("here"))
        guest.do(cmd.Delete((1,)), cmd.Continue())
        assert guest.view.state is RunState.ENDED
        assert not recorder._ops
        entries = len(recorder.journal)
        assert guest.do(cmd.Seek(10)).time == 10
        view = guest.do(cmd.Seek())
        assert view.history is not None
        assert (view.state, view.history.past) == (RunState.ENDED, False)
        assert view.history.end == recorder.end
        assert len(recorder.journal) == entries
        assert not guest.all(ev.Failed)

"""System calls, snapshots and unwinders as a front end chooses them, run after run."""

from controlkit import Held, held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState


def calls(guest: Held) -> list[str]:
    """The names of the events of this run."""
    return [event.name for event in guest.events]


def test_system_calls_come_and_go_and_a_restart_keeps_them() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.TraceKernel(("write",)), cmd.Continue())
        assert guest.view.state is RunState.ENDED
        first = calls(guest)
        assert first[:2] == ["sys_enter_write", "sys_exit_write"]
        assert set(first) == set(first[:2])
        guest.do(cmd.Restart(), cmd.TraceKernel(("sys_exit_*",)))
        guest.do(cmd.TraceKernel(("write",), on=False), cmd.Continue())
        again = calls(guest)
        assert again.count("sys_exit_write") == first.count("sys_exit_write")
        assert "sys_enter_write" not in again
        guest.do(cmd.Restart(), cmd.TraceKernel(on=False), cmd.Continue())
        assert calls(guest) == []


def test_a_system_call_that_there_is_not() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        failure = guest.fail(cmd.TraceKernel(("nosuch",)))
        assert failure is not None
        assert "no system call matches" in failure.text


def test_a_snapshot_is_told_behind_the_rows_it_is_of() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(
            cmd.Define("p:demo/fib fibonacci n=%di:u32"),
            cmd.ChangeTrigger("demo/fib", "snapshot:1 if n == 5"),
            cmd.Continue(),
        )
        at = next(n for n, told in enumerate(guest.said) if isinstance(told, ev.Snapshot))
        before = sum(told.count for told in guest.said[:at] if isinstance(told, ev.Rows))
        values = [event.values[0] for event in guest.events]
        assert values[before - 1] in (5, 6)  # the hit itself is recorded in front of it or behind
        assert 0 < before < len(values)


def test_the_unwinder_stays_after_a_restart() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Unwind("naive"), cmd.Restart())
        assert guest.view.unwinder == "naive"

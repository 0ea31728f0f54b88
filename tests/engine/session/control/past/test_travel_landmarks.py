"""Places in time: each row leads to where it was recorded, and bookmarks lead back."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from controlkit import Held, held, sample

from engine.errors import CommandError
from engine.history.timeline import Moment
from engine.session.control.past.travel import CELLS, Landmarks
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState
from engine.trace.rows import Event, EventSource


@contextmanager
def ended(name: str, *lines: str, arch: str = "x86_64") -> Iterator[Held]:
    """A recorded run to its end, with probes."""
    with held(sample(arch, name), history=True) as guest:
        for line in lines:
            guest.control.loop.execute(cmd.Define(line))
        guest.control.loop.execute(cmd.Continue())
        assert guest.control.state is RunState.ENDED
        yield guest


def moment(event: Event, source: EventSource) -> tuple[int, int | None]:
    if event.returned_to is not None:
        return event.time, event.returned_to
    known = source in (EventSource.PROBE, EventSource.SYSCALL_ENTER)
    return event.time, event.address if known else None


@pytest.mark.parametrize(
    ("arch", "name", "function"),
    [
        ("x86_64", "race", "think"),
        pytest.param("aarch64", "race", "think", marks=pytest.mark.slow),
        pytest.param("riscv64", "race", "think", marks=pytest.mark.slow),
        ("ia64", "recursion", "factorial"),
    ],
)
def test_every_event_is_a_place(arch: str, name: str, function: str) -> None:
    """Entries, returns and system calls of all threads, in an order of no order."""
    with ended(name, f"p {function}", f"r {function}", arch=arch) as guest:
        guest.control.loop.execute(cmd.TraceKernel(("write",)))
        guest.control.loop.execute(cmd.Restart())
        guest.control.loop.execute(cmd.Continue())
        rows = guest.events
        assert len(rows) > 40
        table = guest.table
        for event in rows[:: max(len(rows) // 12, 1)][::-1]:
            clock, pc = moment(event, table[event.id].source)
            guest.control.loop.execute(cmd.Seek(clock, pc))
            view = guest.control.view()
            assert view.history is not None
            assert view.history.past
            assert view.pc == pc, (event, table[event.id])
            assert abs(view.time - clock) <= 1
            assert view.thread == event.thread_id
        assert not [each for each in guest.said if isinstance(each, ev.Failed)]


def test_a_place_that_is_none() -> None:
    with ended("words", "p main") as guest:
        guest.control.loop.execute(cmd.Seek(5))
        before = guest.control.view()
        guest.control.loop.execute(cmd.Seek(20, 0x1234))
        view = guest.control.view()
        assert (view.pc, view.time) == (before.pc, before.time)
        assert "nothing at 0x1234 executes in tick 20" in view.reason


def test_bookmarks() -> None:
    with ended("words", "p main") as guest:
        control = guest.control
        control.loop.execute(cmd.Seek(30))
        there = control.view()
        control.loop.execute(cmd.SetMark("here"))
        control.loop.execute(cmd.Seek(10))
        control.loop.execute(cmd.SetMark())
        history = control.view().history
        assert history is not None
        assert [(one.name, one.time) for one in history.marks] == [("m1", 10), ("here", 30)]
        control.loop.execute(cmd.SeekMark("here"))
        assert (control.view().pc, control.view().time) == (there.pc, there.time)
        control.loop.execute(cmd.SeekMark("m1"))
        assert control.view().time == 10
        control.loop.execute(cmd.DeleteMark("m1"))
        for refused, why in (
            (cmd.DeleteMark("m1"), "there is no bookmark m1; there are here"),
            (cmd.SeekMark("gone"), "there is no bookmark gone"),
            (cmd.SetMark("end"), "every run has that one"),
            (cmd.SetMark("4x"), "begins with a letter"),
        ):
            guest.said.clear()
            control.loop.execute(refused)
            texts = [each.text for each in guest.said if isinstance(each, ev.Failed)]
            assert any(why in text for text in (*texts, control.view().reason)), (refused, texts)
        control.loop.execute(cmd.Seek())
        control.loop.execute(cmd.SetMark("over"))
        control.loop.execute(cmd.Seek(0))
        control.loop.execute(cmd.SeekMark("over"))
        assert control.state is RunState.ENDED
        control.loop.execute(cmd.Restart())
        history = control.view().history
        assert history is not None
        assert (history.marks, history.end) == ((), 0)


def test_the_run_as_a_line() -> None:
    with ended("race") as guest:
        view = guest.control.view()
        history = view.history
        assert history is not None
        assert (history.now, history.end, history.past) == (view.time, view.time, False)
        assert len(history.threads) == len(history.written) == len(history.checkpoints) == CELLS
        assert {1000, 1001, 1002} >= set(history.threads) > {1001}
        assert any(history.written)
        assert not any(history.checkpoints)
        guest.control.loop.execute(cmd.Seek(view.time // 2))
        history = guest.control.view().history
        assert history is not None
        assert (history.now, history.past) == (view.time // 2, True)
        assert history.checkpoints[0]


def test_names_of_bookmarks() -> None:
    with ended("words") as guest:
        landmarks = Landmarks(guest.control.session)
        for number in (1, 2, 3):
            assert landmarks.mark("", Moment(0, number, 0)) == f"m{number}"
        landmarks.unmark("m2")
        assert landmarks.mark("", Moment(0, 9, 0)) == "m2"
        with pytest.raises(CommandError, match="begins with a letter"):
            landmarks.mark("a b", Moment(0, 1, 0))


def test_without_a_recording() -> None:
    with held(sample("x86_64", "words")) as guest:
        assert guest.view.history is None
        failure = guest.fail(cmd.SetMark("here"))
        assert failure is not None
        assert "not recorded" in failure.text

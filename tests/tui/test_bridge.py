"""How often the engine is asked, and how often it is heard."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import tui.bridge
from engine.session import GuestConfig
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import GuestView, RunState
from tui.bridge import PERIOD, Bridge


class Engine:
    """A worker that does nothing but answer."""

    def __init__(self, config: GuestConfig, wake: Callable[[], object], **options: Any) -> None:
        self.wake = wake
        self.posted: list[cmd.Command] = []
        self.nudges = self.taken = 0
        self.events: list[ev.SessionEvent] = []
        self.outbox = self
        self.closed = False

    def start(self) -> None:
        pass

    def post(self, command: cmd.Command) -> None:
        self.posted.append(command)

    def nudge(self) -> None:
        self.nudges += 1

    def take(self) -> list[ev.SessionEvent]:
        self.taken += 1
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        self.closed = True

    def tell(self, *events: ev.SessionEvent) -> None:
        self.events += events
        self.wake()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    made: list[Engine] = []

    def make(*args: Any, **options: Any) -> Engine:
        made.append(Engine(*args, **options))
        return made[-1]

    monkeypatch.setattr(tui.bridge, "Worker", make)
    return made


def viewed(state: RunState) -> ev.Viewed:
    return ev.Viewed(GuestView(state=state))


def asked(bridge: Bridge, engine: Engine, state: RunState, ticks: int) -> list[int]:
    """The ticks at which a view was asked for, each answered at once."""
    found = []
    for tick in range(ticks):
        before = len(engine.posted)
        bridge.tick()
        if len(engine.posted) > before:
            found.append(tick)
            engine.events = [viewed(state)]
            bridge.drain()
    return found


async def drained(bridge: Bridge) -> None:
    """Take a view of a guest that moves; it is believed to be no step after a while."""
    bridge.drain()
    while not bridge.running:
        await asyncio.sleep(0.002)


def test_a_step_is_seen_once(engine: list[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui.bridge, "_STEP", 60)  # a machine with much to do is late
    states: list[list[RunState]] = []

    def deliver(events: list[ev.SessionEvent]) -> None:
        states.append([one.view.state for one in events if isinstance(one, ev.Viewed)])

    async def run() -> None:
        bridge = Bridge(GuestConfig(""), deliver)
        bridge.start()
        (worker,) = engine
        for _ in range(3):
            states.clear()
            worker.tell(viewed(RunState.RUNNING))
            bridge.drain()
            worker.tell(ev.Notice("news do not wait"))
            await asyncio.sleep(0.01)
            worker.tell(viewed(RunState.STOPPED))
            while [RunState.STOPPED] not in states:
                await asyncio.sleep(0.001)
            assert [RunState.RUNNING] not in states
        worker.tell(viewed(RunState.RUNNING))
        worker.tell(viewed(RunState.RUNNING))
        await drained(bridge)
        assert states[-1] == [RunState.RUNNING]

    asyncio.run(run())


def test_a_guest_is_asked_for_views_as_often_as_they_are_worth(engine: list[Engine]) -> None:
    async def run() -> None:
        bridge = Bridge(GuestConfig(""), lambda events: None)
        bridge.start()
        (worker,) = engine
        assert asked(bridge, worker, RunState.STOPPED, 50) == []
        for state, begin, pause in ((RunState.RUNNING, 15, 3), (RunState.WAITING, 0, 8)):
            worker.events = [viewed(state)]
            await drained(bridge)
            ticks = asked(bridge, worker, state, 60)
            assert ticks[:begin] == list(range(begin))  # what is short is seen to end
            later = ticks[begin:]
            assert {b - a for a, b in pairwise(later)} == {pause}
        assert worker.nudges == 170
        bridge.tick()
        assert asked(bridge, worker, RunState.WAITING, 0) == []

    asyncio.run(run())


def test_a_view_that_is_late_is_not_asked_for_again(engine: list[Engine]) -> None:
    async def run() -> None:
        bridge = Bridge(GuestConfig(""), lambda events: None)
        bridge.start()
        (worker,) = engine
        worker.events = [viewed(RunState.RUNNING)]
        await drained(bridge)
        for _ in range(40):
            bridge.tick()
        assert len(worker.posted) == 1

    asyncio.run(run())


def test_a_view_of_what_takes_long_is_asked_for(engine: list[Engine]) -> None:
    """A step is over before anybody asks; a guest that runs on is asked how it is."""

    async def run() -> None:
        bridge = Bridge(GuestConfig(""), lambda events: None)
        bridge.start()
        (worker,) = engine
        for command in (cmd.StepInsn(), cmd.Continue()):
            bridge.post(command)
        bridge.post(cmd.ReadMemory(0, 1))
        assert asked(bridge, worker, RunState.STOPPED, 2) == []
        await asyncio.sleep(2 * PERIOD)
        worker.events = [ev.Done(worker.posted[0], ""), viewed(RunState.STOPPED)]
        bridge.drain()
        assert asked(bridge, worker, RunState.STOPPED, 2) == [0], "the second one goes on"
        bridge.post(cmd.Continue())
        worker.events = [ev.Done(worker.posted[-1], ""), viewed(RunState.STOPPED)]
        bridge.drain()
        await asyncio.sleep(2 * PERIOD)
        assert asked(bridge, worker, RunState.STOPPED, 3) == []
        bridge.post(cmd.Resize(80, 24))
        await asyncio.sleep(2 * PERIOD)
        assert asked(bridge, worker, RunState.STOPPED, 3) == []

    asyncio.run(run())


def test_many_calls_are_one_batch_and_none_come_after_the_end(engine: list[Engine]) -> None:
    batches: list[list[ev.SessionEvent]] = []

    async def run() -> None:
        bridge = Bridge(GuestConfig(""), batches.append)
        (worker,) = engine
        worker.tell(ev.Notice("before the start"))
        bridge.start()
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(100):
            worker.tell(ev.Notice(str(number)))
        while not batches:
            await asyncio.sleep(0.001)
        for number in range(100):
            worker.tell(ev.Notice(str(number)))
        while len(batches) < 2:
            await asyncio.sleep(0.001)
        assert loop.time() - began >= PERIOD
        assert [len(batch) for batch in batches] == [101, 100]
        bridge.close()
        worker.tell(ev.Notice("too late"))
        await asyncio.sleep(2 * PERIOD)
        assert len(batches) == 2
        assert worker.closed

    asyncio.run(run())


def test_a_guest_that_runs_on_is_heard_ten_times_a_second(
    engine: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each delivery has the screen painted; who presses a key waits no longer than ever."""
    waits: list[float] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        later = loop.call_later

        def call_later(wait: float, call: Callable[[], object]) -> asyncio.TimerHandle:
            waits.append(wait)
            return later(wait, call)

        bridge = Bridge(GuestConfig(""), lambda events: None)
        bridge.start()
        (worker,) = engine
        worker.events = [viewed(RunState.RUNNING)]
        await drained(bridge)
        asked(bridge, worker, RunState.RUNNING, 20)
        monkeypatch.setattr(loop, "call_later", call_later)

        async def told() -> list[float]:
            """Something to say again and again: for how long each was kept."""
            waits.clear()
            for _ in range(5):
                bridge.drain()
                worker.tell(ev.Output(b"x"))
                await asyncio.sleep(0)
            return [*waits]

        assert max(await told()) > 2 * PERIOD
        waits.clear()
        bridge.post(cmd.ReadMemory(0, 1))
        assert [wait <= PERIOD for wait in waits] == [True], "what was kept comes sooner"
        assert max(await told()) <= PERIOD
        monkeypatch.setattr(tui.bridge, "_ANSWERED", 0)
        bridge.post(cmd.ReadMemory(0, 1))
        assert max(await told()) > 2 * PERIOD
        worker.events = [viewed(RunState.WAITING)]
        assert max(await told()) <= PERIOD, "who types for a guest sees the echo"

    asyncio.run(run())


def test_nothing_is_posted_after_the_end(engine: list[Engine]) -> None:
    bridge = Bridge(GuestConfig("guest"), lambda events: None)
    bridge.close()
    bridge.post(cmd.Refresh())
    bridge.tick()
    assert engine[0].closed
    assert not engine[0].posted
    assert not engine[0].nudges

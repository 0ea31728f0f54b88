"""The engine's thread: obeys while the guest runs, blocks or floods, and loses nothing."""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from archkit import FIRST_COMPILED
from controlkit import moods, sample

from engine.errors import ImageError
from engine.session import GuestConfig
from engine.session.control.control import Control
from engine.session.control.running import Abandoned
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import GuestView, RunState
from engine.worker import OUTPUT_MAX, ROWS_MAX, Outbox, Worker

both = pytest.mark.parametrize("arch", FIRST_COMPILED)
BLOCKED = {"r": "read", "p": "ppoll", "n": "nanosleep"}
PATIENCE = 240.0

Told = TypeVar("Told")


class Front:
    """A front end without a screen."""

    def __init__(self, guest: str, *args: str, clock: str = "guest") -> None:
        self.woken = threading.Event()
        self.worker = Worker(GuestConfig(guest, args, clock=clock), self.woken.set)
        self.said: list[ev.SessionEvent] = []
        self.view = GuestView()
        self._asked = self._posted = False

    def drain(self) -> None:
        """Take what there is; as the bridge does, ask how the guest is that runs, or may run."""
        self.woken.wait(0.01)
        self.woken.clear()
        self.worker.nudge()
        runs = self.view.state in (RunState.RUNNING, RunState.WAITING)
        if not self._asked and (self._posted or runs):
            self._asked, self._posted = True, False
            self.worker.post(cmd.Refresh())
        for event in self.worker.outbox.take():
            if isinstance(event, ev.Viewed):
                self.view, self._asked = event.view, False
            else:
                self.said.append(event)

    def until(self, done: Callable[[], object], patience: float = PATIENCE) -> None:
        """Drain until something has come about."""
        end = time.monotonic() + patience
        while not done():
            assert time.monotonic() < end, (self.view.state, self.view.reason, self.said[-5:])
            self.drain()

    def look(self, done: Callable[[], object]) -> None:
        """Wait until something has come about, and take nothing meanwhile."""
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, "nothing comes"
            time.sleep(0.02)

    def post(self, *commands: cmd.Command) -> None:
        for command in commands:
            self.worker.post(command)
        self._posted = True

    def do(self, command: cmd.Command) -> ev.Done | ev.Failed:
        """Post a command and wait for its answer."""
        self.post(command)
        found: list[ev.Done | ev.Failed] = []

        def answered() -> bool:
            found[:] = [
                event
                for event in self.said
                if isinstance(event, ev.Done | ev.Failed) and event.command is command
            ]
            return bool(found)

        self.until(answered)
        return found[0]

    def state(self, state: RunState) -> None:
        """Wait for a state."""
        self.until(lambda: self.view.state is state)

    def all(self, kind: type[Told]) -> list[Told]:
        return [event for event in self.said if isinstance(event, kind)]

    @property
    def out(self) -> str:
        data = b"".join(event.data for event in self.all(ev.Output))
        return data.decode().replace("\r\n", "\n")


@contextmanager
def front(guest: str, *args: str, clock: str = "guest") -> Iterator[Front]:
    found = Front(guest, *args, clock=clock)
    found.worker.start()
    try:
        yield found
    finally:
        found.worker.close()
    crashes = [e for e in found.worker.outbox.take() if isinstance(e, ev.Crashed)]
    crashes += found.all(ev.Crashed)
    assert not crashes, crashes[0].trace


@both
def test_a_program_from_its_start_to_its_end(arch: str) -> None:
    with front(sample(arch, "loop"), "50") as guest:
        guest.do(cmd.Define("p:demo/mix mix"))
        guest.do(cmd.Continue())
        guest.until(lambda: guest.view.state is RunState.ENDED and "rounds 50" in guest.out)
        assert guest.view.exit_code == 0
        assert sum(rows.count for rows in guest.all(ev.Rows)) == 50 == guest.view.events


@both
def test_an_endless_loop_is_stopped_and_goes_on(arch: str) -> None:
    with front(moods(arch), "s") as guest:
        for _ in range(3):
            guest.post(cmd.Continue())
            guest.state(RunState.RUNNING)
            guest.post(cmd.Refresh())
            guest.post(cmd.Halt())
            guest.state(RunState.STOPPED)
            assert guest.view.reason == "interrupted"
            where = guest.view.pc
            assert isinstance(guest.do(cmd.StepInsn()), ev.Done)
            guest.until(lambda where=where: guest.view.pc != where)  # type: ignore[misc]
            assert guest.view.state is RunState.STOPPED


@both
def test_what_is_asked_while_it_runs_is_answered(arch: str) -> None:
    with front(moods(arch), "t") as guest:
        guest.post(cmd.Continue())
        guest.state(RunState.RUNNING)
        assert isinstance(guest.do(cmd.Define("p:demo/tick tick n=$arg1")), ev.Done)
        guest.until(lambda: guest.view.events > 100)
        assert isinstance(guest.do(cmd.Enable((1,), on=False)), ev.Done)
        guest.until(lambda: not guest.view.probes[0].row.enabled)
        assert isinstance(guest.do(cmd.Undo()), ev.Done)
        guest.until(lambda: guest.view.probes[0].row.enabled)
        assert isinstance(guest.do(cmd.Redo()), ev.Done)
        for command in (cmd.StepInsn(), cmd.Continue(), cmd.WriteRegister("x0", 1)):
            failure = guest.do(command)
            assert isinstance(failure, ev.Failed)
            assert "running" in failure.text
        assert isinstance(guest.do(cmd.Define("p:demo/x nosuch")), ev.Failed)
        assert isinstance(guest.do(cmd.ReadMemory(guest.view.pc, 64)), ev.Done)
        assert guest.all(ev.MemoryRead)[-1].pieces
        assert isinstance(guest.do(cmd.ToggleBreak("tick")), ev.Done)
        guest.state(RunState.STOPPED)
        assert guest.view.location == "tick+0x0"


@both
@pytest.mark.parametrize("mood", BLOCKED)
def test_a_blocked_call_is_stopped_and_goes_on(arch: str, mood: str) -> None:
    clock = "host" if mood == "n" else "guest"
    with front(moods(arch), mood, clock=clock) as guest:
        guest.post(cmd.Continue())
        guest.state(RunState.WAITING)
        assert guest.view.waiting_in == BLOCKED[mood]
        assert guest.view.frames[0].function == BLOCKED[mood]
        assert any(f.function.startswith("wait_") for f in guest.view.frames[1:3])
        assert isinstance(guest.do(cmd.Define("p:demo/after after_wait r=$arg1:s64")), ev.Done)
        guest.post(cmd.Halt())
        guest.state(RunState.STOPPED)
        assert guest.view.reason == f"interrupted in {BLOCKED[mood]}()"
        guest.post(cmd.Continue())
        guest.state(RunState.WAITING)
        if mood == "n":
            guest.do(cmd.Signal(int(signal.SIGTERM)))
            guest.state(RunState.ENDED)
            assert guest.view.reason.startswith("killed by ")
            return
        guest.do(cmd.Input(b"hello\n"))
        guest.until(lambda: guest.view.state is RunState.ENDED and "result" in guest.out)
        assert f"result {6 if mood == 'r' else 1}\n" in guest.out
        assert guest.view.events == 1


@both
@pytest.mark.parametrize(
    ("motion", "where"),
    [
        (cmd.StepInsn(), "wait_read+"),
        (cmd.StepOver(), "wait_read+"),
        (cmd.StepPhase(), "wait_read+"),
        (cmd.StepLine(over=True), "main+"),
        (cmd.Finish(), "main+"),
        (cmd.RunTo(0), "after_wait+0x0"),
        (cmd.Continue(), ""),
    ],
)
def test_what_is_wanted_inside_a_blocked_call_comes_after_it(
    arch: str, motion: cmd.Command, where: str
) -> None:
    with front(moods(arch), "r") as guest:
        guest.do(cmd.RunTo(Probe.address(arch, "wait_read")))
        if isinstance(motion, cmd.RunTo):
            motion = cmd.RunTo(Probe.address(arch, "after_wait"))
        guest.post(cmd.Continue())
        guest.state(RunState.WAITING)
        guest.post(cmd.Halt())
        guest.state(RunState.STOPPED)
        guest.post(motion)
        guest.state(RunState.WAITING)
        guest.post(cmd.Input(b"abc\n"))
        if not where:
            guest.state(RunState.ENDED)
            assert guest.view.exit_code == 0
            return
        guest.state(RunState.STOPPED)
        assert guest.view.location.startswith(where), guest.view.location
        assert isinstance(guest.do(cmd.Continue()), ev.Done)
        guest.until(lambda: "result 4\n" in guest.out)


class Probe:
    """Addresses in the guest of moods."""

    @staticmethod
    def address(arch: str, symbol: str) -> int:
        control = Control(GuestConfig(moods(arch)), lambda event: None)
        try:
            module = control.session.modules.main
            assert module is not None
            found = module.symbols.find(symbol)
            assert found is not None
            return found.address + module.bias
        finally:
            control.close()


@both
@pytest.mark.parametrize("motion", [cmd.StepInsn(40), cmd.StepOver(40), cmd.StepLine(over=True)])
def test_a_step_that_blocks_can_be_stopped(arch: str, motion: cmd.Command) -> None:
    with front(moods(arch), "r") as guest:
        guest.do(cmd.RunTo(Probe.address(arch, "wait_read")))
        for _ in range(40):
            guest.post(motion)
            guest.drain()
            if guest.view.state is RunState.WAITING:
                break
            guest.until(lambda: guest.view.state in (RunState.WAITING, RunState.STOPPED))
        guest.state(RunState.WAITING)
        guest.post(cmd.Halt())
        guest.state(RunState.STOPPED)
        guest.post(cmd.Input(b"x\n"), cmd.Continue())
        guest.until(lambda: "result 2\n" in guest.out)


def test_phases_of_a_probe_on_a_call_that_blocks() -> None:
    arch = "x86_64"  # on AArch64 no probe goes on a system call
    with front(moods(arch), "r") as guest:
        control = Control(GuestConfig(moods(arch)), lambda event: None)
        start = Probe.address(arch, "wait_read")
        at = start + control.session.memory.read(start, 64).index(b"\x0f\x05")
        control.close()
        assert isinstance(guest.do(cmd.Define(f"p:demo/call {at:#x}", stops=True)), ev.Done)
        guest.do(cmd.Continue())
        guest.state(RunState.STOPPED)
        for _ in range(12):
            guest.post(cmd.StepPhase())
            guest.post(cmd.Refresh())
            guest.drain()
            guest.drain()
            if guest.view.state is RunState.WAITING:
                break
        guest.state(RunState.WAITING)
        guest.post(cmd.Input(b"ab\n"))
        guest.state(RunState.STOPPED)
        guest.do(cmd.Continue())
        guest.until(lambda: "result 3\n" in guest.out)
        assert guest.view.events == 1


@both
@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("mood", ["r", "s", "t", "f"])
def test_afresh_at_any_time(arch: str, mood: str, stopped: bool) -> None:
    with front(moods(arch), mood) as guest:
        guest.do(cmd.Define("p:demo/tick tick"))
        for _ in range(2):
            guest.post(cmd.Continue())
            guest.until(lambda: guest.view.state in (RunState.RUNNING, RunState.WAITING))
            if stopped:
                guest.post(cmd.Halt())
                guest.state(RunState.STOPPED)
            begun = len(guest.all(ev.Restarted))
            guest.do(cmd.Restart())
            guest.state(RunState.READY)
            assert len(guest.all(ev.Restarted)) == begun + 1
            assert [probe.row.line for probe in guest.view.probes] == ["p:demo/tick tick"]
            assert guest.view.events == 0


@both
@pytest.mark.parametrize(
    "mood", ["r", "", *(pytest.param(each, marks=pytest.mark.slow) for each in "nstf")]
)
@pytest.mark.parametrize("halted", [False, True])
@pytest.mark.slow
def test_an_end_at_any_time(arch: str, mood: str, halted: bool) -> None:
    def once() -> None:
        with front(moods(arch), *([mood] if mood else []), clock="host") as guest:
            guest.do(cmd.Define("p:demo/tick tick"))
            guest.post(cmd.Continue())
            guest.until(lambda: guest.view.state is not RunState.READY)
            if halted:
                guest.post(cmd.Halt())
                guest.drain()

    moods(arch)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    threads = threading.active_count()
    once()
    gc.collect()
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) <= before


@both
def test_time_does_not_depend_on_being_asked(arch: str) -> None:
    """The clock ends where it does without anybody who asks, however often somebody does."""
    ends = set()
    for _ in range(6):
        with front(sample(arch, "recursion")) as guest:
            guest.post(cmd.Define("p fibonacci arg1=$arg1"), cmd.Continue())
            while guest.view.state is not RunState.ENDED:
                guest.post(cmd.Refresh())
                guest.drain()
            ends.add((guest.view.time, guest.view.events))
    with front(sample(arch, "recursion")) as guest:
        guest.post(cmd.Define("p fibonacci arg1=$arg1"), cmd.Continue())
        guest.until(lambda: guest.view.state is RunState.ENDED)
        ends.add((guest.view.time, guest.view.events))
    assert len(ends) == 1


@both
def test_steps_typed_ahead_are_all_made(arch: str) -> None:
    with front(sample(arch, "recursion")) as guest:
        guest.until(lambda: guest.view.pc)
        for _ in range(300):
            guest.post(cmd.StepInsn())
        step = ev.Done(cmd.StepInsn(), "stepped")
        guest.until(lambda: guest.said.count(step) == 300)
        assert not [event for event in guest.said if isinstance(event, ev.Failed)]


@both
def test_all_output_comes_before_the_end(arch: str) -> None:
    for _ in range(5):
        with front(sample(arch, "recursion")) as guest:
            guest.post(cmd.Continue())
            guest.until(lambda: guest.view.state is RunState.ENDED)
            out = b"".join(e.data for e in guest.said if isinstance(e, ev.Output))
            assert b"ackermann(2, 3) = 9" in out


@pytest.mark.slow
def test_an_end_before_the_start() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    Worker(GuestConfig(sample("x86_64", "loop"))).close()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


@both
def test_an_end_by_a_signal_says_so(arch: str) -> None:
    with front(sample(arch, "crash")) as guest:
        guest.do(cmd.Continue())
        guest.state(RunState.ENDED)
        assert guest.view.reason.startswith("killed by SIGSEGV")
        assert guest.view.exit_code == 139
        assert any("read_value" in line for told in guest.all(ev.Remark) for line in told.lines)
        assert isinstance(guest.do(cmd.Continue()), ev.Failed)


@both
@pytest.mark.slow
def test_a_flood_of_output_is_held_back_and_nothing_is_lost(arch: str) -> None:
    line = "all work and no play makes a dull guest\n"
    with front(moods(arch), "f", "some") as guest:
        guest.post(cmd.Continue())
        outbox = guest.worker.outbox
        guest.look(lambda: outbox._output >= OUTPUT_MAX)
        assert outbox._output <= OUTPUT_MAX + (1 << 16)
        guest.until(lambda: guest.view.state is RunState.ENDED and "result" in guest.out)
        assert guest.out == line * 40000 + "result 0\n"


def test_events_without_end_wait_for_the_front_end() -> None:
    with front(moods("x86_64"), "t") as guest:
        guest.do(cmd.Define("p:demo/tick tick n=$arg1 m=$arg1 o=$arg1"))
        guest.post(cmd.Continue())
        guest.state(RunState.RUNNING)
        outbox = guest.worker.outbox

        def flooded() -> bool:
            guest.post(cmd.Refresh())
            return outbox._rows >= ROWS_MAX

        guest.look(flooded)
        assert outbox._rows < ROWS_MAX + (8 << 20)
        guest.post(cmd.Halt())
        guest.state(RunState.STOPPED)
        assert sum(rows.count for rows in guest.all(ev.Rows)) == guest.view.events > 1000


def test_a_program_that_cannot_be_loaded(tmp_path: Path) -> None:
    wrong = tmp_path / "guest"
    wrong.write_bytes(b"no ELF file")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ImageError):
        Worker(GuestConfig(str(wrong)))
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("defect", [RuntimeError, Abandoned])
def test_a_defect_of_the_engine_is_told(
    monkeypatch: pytest.MonkeyPatch, defect: type[BaseException]
) -> None:
    def broken(self: Control) -> GuestView:
        raise defect("a defect")

    guest = Front(sample("x86_64", "loop"))
    monkeypatch.setattr(Control, "view", broken)
    guest.worker.start()
    guest.until(lambda: guest.all(ev.Crashed))
    crash = guest.all(ev.Crashed)[0]
    assert "a defect" in crash.text
    assert "in broken" in crash.trace
    monkeypatch.undo()
    guest.worker.close()


def test_only_the_last_view_counts() -> None:
    woken: list[int] = []
    outbox = Outbox(lambda: woken.append(1))
    for number in range(5):
        outbox.put(ev.Viewed(GuestView(time=number)))
        outbox.put(ev.Notice(str(number)))
    taken = outbox.take()
    assert [e.text for e in taken[:-1] if isinstance(e, ev.Notice)] == list("01234")
    assert isinstance(taken[-1], ev.Viewed)
    assert taken[-1].view.time == 4
    assert len(woken) == 1
    assert outbox.take() == []
    outbox.put(ev.Notice("again"))
    assert len(woken) == 2

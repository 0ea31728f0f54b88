"""The past of a machine: any moment is again what it was, forwards and backwards."""

from random import Random

import pytest
from machinekit import CODE
from steppedkit import HANDLER, program, seen, stepped

from engine.cpu import native
from engine.machine.consolelog import ConsoleLog
from engine.machine.machine import BareMachine
from engine.machine.stepping import MachineMoment, SteppedMachine
from engine.session.machine import checkpoints
from engine.session.machine.past import MachinePast

pytestmark = pytest.mark.skipif(
    not native.possible(), reason="host code is for x86-64 hosts without KPROBE_TUI_PORTABLE"
)


@pytest.fixture
def said() -> bytearray:
    """What the console has written."""
    return bytearray()


@pytest.fixture
def machine(
    said: bytearray, monkeypatch: pytest.MonkeyPatch
) -> tuple[BareMachine, SteppedMachine, MachinePast, ConsoleLog, int]:
    """A machine that keeps a moment each 97 blocks, and its function."""
    monkeypatch.setattr(checkpoints, "_DISTANCE", 97)
    made, console, function = program(said.extend)
    stops = stepped(made)
    return made, stops, MachinePast(stops, console), console, function


def test_moments_are_what_they_were(
    machine: tuple[BareMachine, SteppedMachine, MachinePast, ConsoleLog, int], said: bytearray
) -> None:
    """Seeks in any order, the way back from stop to stop, single steps back; nothing is said
    twice."""
    made, stops, past, _, function = machine
    stops.stop_at({function + 4, HANDLER})
    found = []
    while past.go():
        found.append((stops.moment, seen(made)))
    end, text = seen(made), bytes(said)
    assert len(found) > 300
    assert len(text) == 37
    for moment, was in Random(1).sample(found, 40):
        past.seek(moment)
        assert (stops.moment, seen(made)) == (moment, was)
    past.seek(found[100][0])
    for moment, was in reversed(found[80:100]):
        assert past.go_back()
        assert (stops.moment, seen(made)) == (moment, was)
    there = []
    for _ in range(25):
        there.append((stops.moment, seen(made)))
        assert past.step_back()
    for moment, was in reversed(there):
        past.step()
        assert (stops.moment, seen(made)) == (moment, was)
    while past.go():
        pass
    assert (seen(made), bytes(said)) == (end, text)
    assert stops.end is not None


def test_the_way_back_ends_at_the_beginning(
    machine: tuple[BareMachine, SteppedMachine, MachinePast, ConsoleLog, int],
) -> None:
    """Call by call, from a sixth of the boot on."""
    made, stops, past, _, function = machine
    stops.stop_at({function})
    while past.go():
        pass
    early = past.newest.blocks // 6
    past.seek(MachineMoment(early))
    count = 0
    while past.go_back():
        count += 1
    assert 40 < count < 60
    assert stops.moment == past.oldest == MachineMoment(0, 0)
    assert made.cpu["rip"] == CODE
    assert not past.step_back()
    assert not past.go_back()


def test_a_change_begins_another_history(
    machine: tuple[BareMachine, SteppedMachine, MachinePast, ConsoleLog, int], said: bytearray
) -> None:
    """Fewer rounds are left: the end comes sooner, and there is no way behind the change."""
    made, stops, past, _, function = machine
    stops.stop_at({function + 4})
    for _ in range(10):
        assert past.go()
    here = stops.moment
    assert here.steps
    made.cpu["r8"] = 5
    past.changed()
    assert past.oldest == stops.moment == here
    count = 0
    while past.go():
        count += 1
    assert count == 4
    assert bytes(said) == b"A"
    past.seek(here)
    assert made.cpu["r8"] == 5


def test_moments_are_thinned_out(
    machine: tuple[BareMachine, SteppedMachine, MachinePast, ConsoleLog, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A few are kept, and all that was is still reached."""
    made, stops, past, _, function = machine
    monkeypatch.setattr(checkpoints, "_MOMENTS_MOST", 5)
    stops.stop_at({function})
    found = []
    while past.go():
        found.append((stops.moment, seen(made)))
    for moment, was in Random(2).sample(found, 20):
        past.seek(moment)
        assert (stops.moment, seen(made)) == (moment, was)

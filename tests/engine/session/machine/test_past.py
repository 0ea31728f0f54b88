"""The past of a machine: any moment is again what it was, forwards and backwards."""

from pathlib import Path
from random import Random

import pytest
from machinekit import CODE, STACK
from steppedkit import COUNTER, HANDLER, program, seen, stepped

from engine.cpu import native
from engine.cpu.unicorn_watches import READ, WRITE, DataRange
from engine.machine.consolelog import ConsoleLog
from engine.machine.machine import BareMachine
from engine.machine.rawdisk import BLOCK, SECTOR, ChangeBudget, HostImage, RawDisk
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


def test_a_place_where_the_machine_keeps_itself_is_told(
    machine: tuple[BareMachine, SteppedMachine, MachinePast, ConsoleLog, int],
) -> None:
    """The machine pauses at kept moments, some of which are calls of the function."""
    _, stops, past, _, function = machine
    stops.stop_at({function})
    assert sum(past.go() for _ in range(302)) == 300


def test_the_way_back_leads_in_front_of_each_access(
    machine: tuple[BareMachine, SteppedMachine, MachinePast, ConsoleLog, int],
) -> None:
    """Accesses of the way forward come again in turn, with the breakpoint between them."""
    _, stops, past, _, function = machine
    stops.watch([DataRange(COUNTER, 4, WRITE), DataRange(STACK - 16, 8, READ | WRITE)])
    stops.stop_at({function})
    found = []
    while past.go():
        found.append((stops.moment, stops.accessed, stops.stopped_at))
    assert len(found) > 900
    assert sum(place for *_, place in found) == 300
    for moment, access, _ in reversed(found[-24:]):
        assert past.go_back()
        assert stops.accessed == access
        if access is None:
            assert (stops.moment, stops.stopped_at) == (moment, True)
            continue
        assert stops.stands_before
        here = stops.moment
        past.step()
        assert (stops.moment, stops.accessed) == (moment, access)
        assert past.step_back()
        assert (stops.moment, stops.accessed, stops.stands_before) == (here, access, True)
    past.seek(past.oldest)
    stops.stop_at(set())
    assert past.go()
    first = stops.moment
    assert past.go_back()
    assert stops.moment < first
    assert not past.go_back()
    assert stops.moment == past.oldest


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


def test_disks_are_what_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each OUT changes a sector; what was never changed is the image's again."""
    monkeypatch.setattr(checkpoints, "_DISTANCE", 97)
    path, blocks = tmp_path / "image", 12
    path.write_bytes(Random(3).randbytes(blocks * BLOCK))
    made, console, function = program(lambda data: None)
    budget = ChangeBudget(blocks * BLOCK)
    disk = RawDisk(HostImage(str(path)), budget)
    made.disks.append(disk)
    plain_write = made.write_port

    def write_port(port: int, size: int, value: int) -> None:
        source = Random(made.clock.now)
        start = source.randrange(blocks * BLOCK // SECTOR) * SECTOR
        disk.write(start, source.randbytes(SECTOR))
        plain_write(port, size, value)

    made.write_port = write_port  # type: ignore[method-assign]
    stops = stepped(made)
    past = MachinePast(stops, console)

    def content() -> tuple[bytes, set[int], int]:
        return disk.read(0, blocks * BLOCK), set(disk.changes), budget.left

    stops.stop_at({function + 4, HANDLER})
    found = [(stops.moment, seen(made), content())]
    while past.go():
        found.append((stops.moment, seen(made), content()))
    assert len({data for _, _, (data, _, _) in found}) > 20
    assert {len(changed) for _, _, (_, changed, _) in found} >= {0, 5, 8}
    for moment, was, held in (found[-1], found[0], *Random(4).sample(found, 60)):
        past.seek(moment)
        assert (stops.moment, seen(made), content()) == (moment, was, held)

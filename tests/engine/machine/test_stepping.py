"""A machine that is stopped and stepped does what it does anyway."""

from random import Random

import pytest
from machinekit import CODE, STACK, bare
from steppedkit import COUNTER, HANDLER, program, seen, stepped

from engine.cpu import native
from engine.cpu.unicorn_system import NEVER
from engine.cpu.unicorn_watches import MOST, READ, WRITE, DataAccess, DataRange
from engine.machine.machine import BootEnd
from engine.machine.stepping import STOPS_MOST, MachineMoment

pytestmark = pytest.mark.skipif(
    not native.possible(), reason="host code is for x86-64 hosts without KPROBE_TUI_PORTABLE"
)


def test_stops_and_steps_change_nothing() -> None:
    """The reference runs on; others stop at places and step at random: the end is the same."""
    said = bytearray()
    machine, _, function = program(said.extend)
    assert machine.run().reason is BootEnd.OFF
    reference, text = seen(machine), bytes(said)
    interrupts = int.from_bytes(machine.cpu.memory[0x40000:0x40004], "little")
    assert text == b"A" * 37
    assert interrupts > 20
    for seed in range(4):
        source = Random(seed)
        said.clear()
        machine, _, function = program(said.extend)
        stops = stepped(machine)
        places = {function, function + 4, HANDLER, HANDLER + 2} if seed else {function}
        stops.stop_at(places)
        hits = 0
        while stops.go():
            hits += 1
            assert machine.cpu["rip"] in places
            for _ in range(source.randrange(40) if source.random() < 0.3 else 0):
                stops.step()
        assert stops.end is not None
        assert stops.end.reason is BootEnd.OFF
        assert seen(machine) == reference
        assert bytes(said) == text
        if seed:
            assert 2 * 150 < hits <= 2 * (300 + interrupts)


def test_each_execution_of_a_place_is_a_stop() -> None:
    """Without steps in between: each call of the function, each interrupt."""
    machine, _, function = program(lambda data: None)
    stops = stepped(machine)
    stops.stop_at({function, function + 4, HANDLER})
    found: dict[int, int] = {}
    while stops.go():
        at = machine.cpu["rip"]
        found[at] = found.get(at, 0) + 1
    counter = int.from_bytes(machine.cpu.memory[0x40000:0x40004], "little")
    assert found == {function: 300, function + 4: 300, HANDLER: counter}


def test_steps_go_by_single_instructions() -> None:
    """Moments grow by one within a block; a string instruction is an iteration a step, and its
    end is one, too."""
    machine = bare(b"\x90\x31\xc0\xff\xc0\xb9\x03\x00\x00\x00\xbf\x00\x00\x03\x00\xf3\xaa\xeb\xfe")
    stops = stepped(machine)
    places = []
    for _ in range(9):
        places.append((machine.cpu["rip"] - CODE, stops.moment))
        stops.step()
    assert places == [
        (0, MachineMoment(0, 0)),
        (1, MachineMoment(0, 1)),
        (3, MachineMoment(0, 2)),
        (5, MachineMoment(0, 3)),
        (10, MachineMoment(0, 4)),
        (15, MachineMoment(0, 5)),
        (15, MachineMoment(1, 0)),
        (15, MachineMoment(2, 0)),
        (15, MachineMoment(3, 0)),
    ]
    assert (machine.cpu["rip"] - CODE, stops.moment) == (17, MachineMoment(4, 0))


def test_an_interrupt_stops_a_machine_that_runs_for_ever() -> None:
    """It does not run at all where the interrupt came before."""
    stops = stepped(bare(b"\xeb\xfe"))
    stops.machine.interrupt()
    assert not stops.go()
    assert stops.moment == MachineMoment(0, 0)
    assert stops.end is None
    stops.step()
    assert stops.moment == MachineMoment(1, 0)


def test_a_machine_stops_at_so_many_places() -> None:
    """More of them are refused, and those that there were stay."""
    stops = stepped(bare(b"\x90\x90\xf4"))
    stops.stop_at({CODE + 1})
    with pytest.raises(ValueError, match="4096 places at the most"):
        stops.stop_at(set(range(0x100000, 0x100000 + STOPS_MOST)))
    assert stops.go()
    assert stops.moment == MachineMoment(0, 1)


_FILLED, _PUSHED = 0x60002, STACK - 16
"""A byte that a string instruction fills, and the word that the function pushes and pops."""


@pytest.mark.parametrize("before", [False, True])
def test_each_access_to_watched_data_is_a_stop(before: bool) -> None:
    """The machine does what it does anyway; interrupts that push there themselves are not told."""
    machine, *_ = program(lambda data: None)
    machine.run()
    reference = seen(machine)
    machine, _, function = program(lambda data: None)
    stops = stepped(machine)
    stops.watch(
        [DataRange(COUNTER, 4, WRITE), DataRange(_FILLED, 1, WRITE), DataRange(_PUSHED, 8, WRITE)]
    )
    found: dict[DataAccess, set[int]] = {}
    count = 0
    while stops.go(before=before):
        assert stops.accessed is not None
        assert stops.stands_before == before
        found.setdefault(stops.accessed, set()).add(machine.cpu["rip"])
        count += 1
        if before:
            stops.step()
            assert stops.accessed is not None
            assert not stops.stands_before
    interrupts = int.from_bytes(machine.cpu.memory[COUNTER : COUNTER + 4], "little")
    assert count == 300 + 300 + interrupts
    pushes = function + 8
    behind = {
        DataAccess(_PUSHED, 8, WRITE): {pushes + 2},
        DataAccess(COUNTER, 4, WRITE): {HANDLER + 8},
    }
    in_front = {
        DataAccess(_PUSHED, 8, WRITE): {pushes},
        DataAccess(COUNTER, 4, WRITE): {HANDLER + 2},
    }
    filled = found.pop(DataAccess(_FILLED, 1, WRITE))
    assert len(filled) == 1
    assert machine.cpu.memory[min(filled) : min(filled) + 2] == b"\xf3\xaa"
    assert found == (in_front if before else behind)
    assert seen(machine) == reference


def test_loads_are_watched_too() -> None:
    """A byte of what is loaded is enough; stores are no loads, and what is watched changes."""
    machine, *_ = program(lambda data: None)
    stops = stepped(machine)
    stops.watch([DataRange(_PUSHED + 3, 1, READ)])
    assert stops.go()
    assert stops.accessed == DataAccess(_PUSHED, 8, READ)
    assert machine.cpu["r11"] == machine.cpu["r10"]
    stops.watch([DataRange(COUNTER + 2, 2, READ | WRITE)])
    assert stops.go()
    assert stops.accessed == DataAccess(COUNTER, 4, WRITE)
    stops.watch([])
    assert not stops.watches_data
    assert not stops.go()
    assert stops.end is not None


def test_a_single_step_tells_what_was_accessed() -> None:
    """mov [0x40000], rax; nop; mov rax, [0x40000]."""
    machine = bare(b"\x48\x89\x04\x25\x00\x00\x04\x00\x90\x48\x8b\x04\x25\x00\x00\x04\x00\xf4")
    stops = stepped(machine)
    stops.watch([DataRange(0x40004, 1, READ | WRITE)])
    told = []
    for _ in range(3):
        stops.step()
        told.append(stops.accessed)
    assert told == [DataAccess(0x40000, 8, WRITE), None, DataAccess(0x40000, 8, READ)]


def test_another_machine_watches_its_own() -> None:
    """Two at a time, made in turn: each stops at its own data alone, also when one is gone."""
    store = b"\xc6\x04\x25\x00\x00\x04\x00\x01\xc6\x04\x25\x08\x00\x04\x00\x02\xf4"
    first, second, third = stepped(bare(store)), stepped(bare(store)), stepped(bare(store))
    first.watch([DataRange(0x40008, 1, WRITE)])
    third.watch([DataRange(0x40000, 1, WRITE)])
    assert not second.go()
    assert first.go()
    assert first.accessed == DataAccess(0x40008, 1, WRITE)
    first.machine.close()
    assert third.go()
    assert third.accessed == DataAccess(0x40000, 1, WRITE)
    assert not third.go()


def test_so_many_data_are_watched() -> None:
    stops = stepped(bare(b"\xf4"))
    stops.watch([DataRange(at, 1, WRITE) for at in range(MOST)])
    with pytest.raises(ValueError, match="16 ranges of data are watched at the most"):
        stops.watch([DataRange(at, 1, WRITE) for at in range(MOST + 1)])


def test_a_look_at_the_time_changes_nothing() -> None:
    """In front of a block, in the one that halts the processor, and while that waits."""
    machine, _, _ = program(lambda data: None)
    assert machine.run().reason is BootEnd.OFF
    reference, end = seen(machine), machine.clock.now
    waited = 0
    for seed in range(6):
        source = Random(seed)
        machine, _, _ = program(lambda data: None)
        stops = stepped(machine)
        for time in [*sorted(source.sample(range(end), 120)), end]:
            machine.look_at(time, machine.pause)
            while machine.clock.now < time and stops.end is None:
                stops.run(NEVER)
            assert machine.clock.now == time or not machine.waits
            waited += machine.waits
        assert seen(machine) == reference
        assert stops.end is not None
        assert stops.end.reason is BootEnd.OFF
    assert waited > 6


def test_a_machine_that_ends_behind_a_number_of_blocks() -> None:
    """It is stepped, and stops, in its last block too."""
    machine, _, function = program(lambda data: None)
    stops = stepped(machine)
    stops.stop_at({function})
    for _ in range(9):
        assert stops.go()
    last = stops.moment.blocks + 1
    machine, _, function = program(lambda data: None)
    machine.halt_behind(last)
    stops = stepped(machine)
    stops.stop_at({function})
    for _ in range(9):
        assert stops.go()
    for steps in range(1, 5):
        stops.step()
        assert (stops.moment, stops.end) == (MachineMoment(last - 1, steps), None)
    stops.step()
    assert stops.moment == MachineMoment(last)
    assert stops.end is not None
    assert stops.end.reason is BootEnd.HALTED

"""A machine that is stopped and stepped does what it does anyway."""

from random import Random

import pytest
from machinekit import CODE, bare
from steppedkit import HANDLER, program, seen, stepped

from engine.cpu import native
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

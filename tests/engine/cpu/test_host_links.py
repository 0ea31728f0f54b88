"""Machines one after the other use the same host code; those at a time have their own."""

import os
import random
import subprocess
import sys

import pytest
from machinekit import CLI_HLT, bare

from engine.arch import by_name
from engine.cpu import native, unicorn_locks, unicorn_sieve
from engine.cpu.unicorn_planted import PLANTED_LINKS
from engine.cpu.unicorn_system import MACHINE_LINKS
from engine.cpu.unicorn_watches import WATCH_LINKS, WRITE, DataRange, WatchedData
from engine.machine.addresses import KernelAddresses
from engine.machine.machine import BareMachine, BootEnd
from engine.probes.machine_breakpoints import MachineBreakpoints

pytestmark = pytest.mark.skipif(not native.possible(), reason="machines are for x86-64 hosts")
STORE = bytes.fromhex("90c60425009000002a") + CLI_HLT  # nop; mov byte ptr [0x9000], 42
CODE = 0x10000
ALL = (MACHINE_LINKS, PLANTED_LINKS, WATCH_LINKS)


def machine_with_all() -> tuple[BareMachine, list[int], WatchedData]:
    """A machine with a planted breakpoint and watched data, and what it was told of them."""
    machine, told = bare(STORE), list[int]()
    arch = by_name("x86_64")
    assert arch is not None
    code = machine.cpu.plant_at(0x4000_0000)
    breakpoints = MachineBreakpoints(arch, machine.cpu, KernelAddresses(machine.cpu), code)
    breakpoints.add(CODE, lambda: told.append(machine.cpu["rip"]))

    def stored(access: object) -> bool:
        told.append(0x9000)
        return False

    data = machine.cpu.watch_data(stored)
    data.put([DataRange(0x9000, 1, WRITE)])
    data.tell(True)
    return machine, told, data


def test_a_machine_takes_the_links_of_one_that_is_gone() -> None:
    for number in range(20):
        machine, told, data = machine_with_all()
        assert machine.run().reason is BootEnd.OFF
        assert (told, machine.cpu.memory[0x9000]) == ([CODE, 0x9000], 42)
        machine.close()
        del machine, data
        if not number:
            before = [links.count for links in ALL]
    assert [links.count for links in ALL] == before


def test_machines_at_a_time_are_told_of_their_own() -> None:
    made = [machine_with_all() for _ in range(4)]
    random.Random(1).shuffle(made)
    made.pop()[0].close()
    for machine, told, _ in made:
        assert machine.run().reason is BootEnd.OFF
        assert told == [CODE, 0x9000]
    made.append(machine_with_all())
    assert made[-1][0].run().reason is BootEnd.OFF
    assert made[-1][1] == [CODE, 0x9000]
    for machine, *_ in made:
        machine.close()


def test_a_program_that_begins_later_leaves_a_machine_its_breakpoints() -> None:
    """What programs have put into the library's fetches goes in front of a machine's code."""
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{[CODE, 0x9000]}\n", "")


def test_a_program_whose_memory_is_watched_leaves_machines_their_watched_data() -> None:
    """The sieve of programs and the links of machines stand in front of the same functions."""
    done = subprocess.run(
        [sys.executable, __file__, "sieve"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{[CODE, 0x9000]}\n" * 2, "")


if __name__ == "__main__":
    first, hits, _watched = machine_with_all()
    if "sieve" in sys.argv:
        assert unicorn_sieve.installed("x86_64")
    else:
        assert unicorn_locks.fetcher("x86_64")
    first.run()
    print(hits)
    if "sieve" in sys.argv:
        first.close()
        del first, _watched
        second, hits, _watched = machine_with_all()
        second.run()
        print(hits)

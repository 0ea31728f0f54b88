"""The IA-64 core against runs recorded in a simulator, slot by slot, and against faults."""

import gzip
import json
from typing import Any

import pytest
from ia64kit import DATA_DIR, Guest, get, program, put, trace, traces

from engine.arch.base import TrapKind
from engine.arch.ia64.breaks import exception
from engine.arch.ia64.bundle import next_slot, unpack
from engine.arch.ia64.signal_frames import SIGNALS
from engine.cpu.base import Stop, StopKind

_INDEX = traces()
_LAZY = ("bspstore", "rnat")
"""When stacked registers go to memory is the implementation's affair."""
_UNDEFINED = {("a_rse", 1700): "r14"}
"""A copy of ar.rnat: bits of slots that bspstore has not reached are undefined."""
_FAULTS = json.loads(gzip.decompress((DATA_DIR / "faults.json.gz").read_bytes()))
_NAMES = {4: "SIGILL", 5: "SIGTRAP", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
_OFTEN = 31  # all registers are compared after every 31st slot: those that must not change


def _memory(guest: Guest, writes: list[list[Any]]) -> list[list[Any]]:
    """What stands where the recording wrote."""
    found = []
    for address, size, *values in writes:
        raw = guest.cpu.read(int(address, 16), size)
        low, high = int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:], "little")
        found.append([address, size, f"{low:x}", *([f"{high:x}"] if len(values) == 2 else [])])
    return found


@pytest.mark.parametrize("name", _INDEX)
@pytest.mark.slow
def test_every_slot_does_what_was_recorded(name: str) -> None:
    lines = trace(name)
    start = next(lines)
    guest, known = Guest(program(name), start), dict(start["state"])
    cpu = guest.cpu
    for line in lines:
        if isinstance(line, dict):
            continue
        number, bundle, slot, changed, *rest = line
        at = int(bundle, 16) | slot
        assert cpu.read_register("ip") == at, number
        stop = cpu.step()
        if stop is not None:
            assert stop.kind is StopKind.SYSCALL, (number, stop)
            guest.system_call()
        if undefined := _UNDEFINED.get((name, number)):
            put(cpu, undefined, changed[undefined])
        known.update(changed)
        watched = known if number % _OFTEN == 0 else changed
        frame = 32 + (cpu.read_register("cfm") & 127)
        expected = {
            key: value
            for key, value in watched.items()
            if key not in _LAZY
            and not (key[0] == "r" and key[1:].isdigit() and int(key[1:]) >= frame)
        }
        assert {key: get(cpu, key) for key in expected} == expected, (number, hex(at))
        for writes in rest:
            if isinstance(writes, list):
                assert _memory(guest, writes) == writes, (number, hex(at))


@pytest.mark.usefixtures("each_core")
@pytest.mark.parametrize("name", _INDEX)
def test_blocks_come_to_the_same_end(name: str) -> None:
    guest = Guest(program(name), next(trace(name)))
    assert guest.run() is None
    assert (guest.exit, guest.output.decode()) == (_INDEX[name]["rc"], _INDEX[name]["stdout"])


@pytest.mark.usefixtures("each_core")
@pytest.mark.parametrize("name", ["a_rot", "a_rse", "a_spec", "x_alunat", "x_fpnat"])
@pytest.mark.parametrize("quantum", [3])
def test_blocks_and_slots_agree_wherever_the_clock_stops_them(name: str, quantum: int) -> None:
    start = next(trace(name))
    blocks, slots = Guest(program(name), start), Guest(program(name), start)
    slots.cpu.count_blocks(True)
    while blocks.exit is None:
        stop = blocks.cpu.run(quantum)
        if stop.kind is StopKind.SYSCALL:
            blocks.system_call()
        here = (stop.kind, blocks.cpu.read_register("ip"), blocks.cpu.blocks())
        while _step(slots) != here:
            assert slots.cpu.blocks() <= here[2], hex(here[1])
        assert _visible(slots) == _visible(blocks)
    assert slots.exit == blocks.exit


def _step(guest: Guest) -> tuple[StopKind, int, int]:
    """One slot: a jump is what a quantum could end behind."""
    cpu = guest.cpu
    at = cpu.read_register("ip")
    behind = next_slot(at, unpack(cpu.read(at & ~15, 16)))
    stop = cpu.step()
    kind = StopKind.HALTED
    if stop is not None:
        kind = stop.kind
        guest.system_call()
    elif cpu.read_register("ip") != behind:
        kind = StopKind.QUANTUM
    return kind, cpu.read_register("ip"), cpu.blocks()


def _visible(guest: Guest) -> tuple[int, ...]:
    cpu = guest.cpu
    names = (
        *(f"r{at}" for at in range(128)),
        *(f"nat{at}" for at in range(128)),
        *(f"f{at}" for at in range(128)),
        *(f"b{at}" for at in range(8)),
        *("pr", "cfm", "bsp", "pfs", "lc", "ec", "unat", "fpsr", "ccv", "psr"),
    )
    return cpu.read_registers(names)


def _signal(stop: Stop) -> str:
    if stop.kind is StopKind.FAULT:
        return "SIGSEGV"
    found = exception(stop.trap, stop.number) or SIGNALS.traps[stop.trap]
    return _NAMES[found[0]]


@pytest.mark.usefixtures("each_core")
@pytest.mark.parametrize("single", [False, True], ids=["blocks", "slots"])
@pytest.mark.parametrize("name", _FAULTS)
def test_faults_name_instruction_slot_and_signal(name: str, single: bool) -> None:
    case = _FAULTS[name]
    elf = bytes.fromhex(case["elf"])
    start = next(trace("a_rp"))
    start["ip"] = f"{int.from_bytes(elf[24:32], 'little'):x}"
    guest = Guest(elf, start)
    stop = guest.run(single)
    if case["signal"] is None:
        assert (stop, guest.exit) == (None, case["exit"])
        return
    assert stop is not None
    assert guest.cpu.read_register("ip") == int(case["ip"], 16) | case["slot"]
    assert _signal(stop) == case["signal"]


def test_kinds_of_faults() -> None:
    kinds = {}
    for name in ("nat_store", "priv_rfi", "unaligned_ld8", "fp_divzero_unmasked", "break_81000"):
        elf = bytes.fromhex(_FAULTS[name]["elf"])
        start = next(trace("a_rp"))
        start["ip"] = f"{int.from_bytes(elf[24:32], 'little'):x}"
        stop = Guest(elf, start).run()
        assert stop is not None
        kinds[name] = (stop.trap, stop.number)
    assert kinds == {
        "nat_store": (TrapKind.ILLEGAL, 26),
        "priv_rfi": (TrapKind.PRIVILEGED, 24),
        "unaligned_ld8": (TrapKind.ALIGNMENT, 30),
        "fp_divzero_unmasked": (TrapKind.FLOAT, 32),
        "break_81000": (TrapKind.BREAKPOINT, 0x81000),
    }

"""The table of breakpoints that lead elsewhere, and the host code that reads it."""

import ctypes

import pytest
from barecpu import CODE, BareCpu
from hypothesis import given
from hypothesis import strategies as st

from engine.arch.base import TrapKind
from engine.cpu.base import StopKind
from engine.cpu.leads import MULTIPLIER, LeadTable

PLACES = st.integers(2, 60).map(lambda at: at * 0x40)


def looked_up(table: LeadTable, pc: int) -> tuple[int, int, int] | None:
    """An entry as host code finds it."""
    words = table._words  # the memory that it reads
    at = (pc * MULTIPLIER % (1 << 64)) >> 32
    while True:
        found = words[4 * (at & table.mask)]
        if found == pc:
            first = 4 * (at & table.mask)
            return words[first + 1], words[first + 2], words[first + 3]
        if not found:
            return None
        at += 1


@given(st.lists(st.tuples(st.booleans(), PLACES), max_size=300))
def test_it_holds_what_was_put_into_it(turns: list[tuple[bool, int]]) -> None:
    table, wanted = LeadTable(), {}
    for number, (put, pc) in enumerate(turns):
        if put:
            table.put(pc, number, number + 1, number % 3)
            wanted[pc] = number, number + 1, number % 3
        else:
            table.drop(pc)
            wanted.pop(pc, None)
    assert len(table) == len(wanted)
    for pc in range(0, 62 * 0x40, 0x40):
        assert table.find(pc) == wanted.get(pc)
        if pc:
            assert looked_up(table, pc) == wanted.get(pc)


def test_it_stays_sparse_however_often_breakpoints_come_and_go() -> None:
    table = LeadTable()
    for turn in range(10_000):
        table.put(0x1000 + turn, turn, turn)
        table.drop(0x1000 + turn)
    assert table.mask < 256
    for pc in range(0x2000, 0x2000 + 5_000):
        table.put(pc, 1, 2)
    assert table.mask + 1 >= 2 * len(table)


@pytest.mark.parametrize("portable", [False, True])
def test_the_guest_goes_on_where_a_breakpoint_leads(
    portable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the table at hand only, until it is planted otherwise or removed."""
    if portable:
        monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    cpu = BareCpu("x86_64", bytes.fromhex("cc 90 90 cc 90 cc"))
    traps, other = cpu.traps, cpu.traps.another()
    seen: list[int] = []

    def run() -> int:
        cpu.write_register("rip", CODE)
        stop = cpu.run()
        assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.BREAKPOINT)
        return cpu.pc - CODE

    def hit() -> int:
        seen.append(cpu.pc - CODE)
        return CODE + 4

    traps.lead(CODE, CODE + 2, CODE + 1)
    assert run() == 4
    traps.plant(CODE + 3, hit, CODE + 4)
    assert run() == 6
    assert seen == [4]
    traps.use(other)
    assert run() == 1
    other.lead(CODE, CODE + 4, CODE + 1)
    assert run() == 6
    traps.use(traps)
    traps.plant(CODE, hit, CODE + 1)
    assert run() == 6
    assert seen == [4, 1]
    traps.lead(CODE, CODE + 3, CODE + 1)
    assert run() == 6
    assert seen == [4, 1, 4]
    traps.remove(CODE)
    assert run() == 1


def test_a_breakpoint_of_the_programs_own_where_none_was_ever_planted() -> None:
    """The registers are found, for other purposes: host code looks into an empty table."""
    cpu = BareCpu("x86_64", bytes.fromhex("cc"))
    cpu.traps.reader(("rip",))
    cpu.write_register("rip", CODE)
    stop = cpu.run()
    assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.BREAKPOINT)
    assert cpu.pc == CODE + 1


@pytest.mark.parametrize("portable", [False, True])
def test_registers_that_a_detour_uses_are_saved_on_the_way(
    portable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if portable:
        monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    code = "000020d4 1f2003d5 000020d4"  # brk 0; nop; brk 0
    cpu = BareCpu("aarch64", bytes.fromhex(code))
    saved = (ctypes.c_uint64 * 4)(1, 2, 3, 4)
    cpu.traps.lead(CODE, CODE + 4, CODE + 4, ctypes.addressof(saved) + 8)
    values = 0xFEDC_BA98_7654_3210, (1 << 63) + 5
    for name, value in zip(("x16", "x17"), values, strict=True):
        cpu.write_register(name, value)
    cpu.write_register("pc", CODE)
    assert cpu.run().trap is TrapKind.BREAKPOINT
    assert cpu.pc == CODE + 8
    assert tuple(saved) == (1, *values, 4)

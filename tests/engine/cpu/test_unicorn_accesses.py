"""One instruction executed alone: where it goes, and what it is seen to do to memory."""

from collections.abc import Sequence

import pytest
from assembling import assembles
from barecpu import CODE, DATA, BareCpu

from engine.arch import by_name
from engine.cpu.base import Access, StopKind
from engine.cpu.pagetable import Region, RegionTable
from engine.cpu.ram import EXECUTE, PAGE
from engine.insn.asm import assemble

pytestmark = assembles

PAGES = 4


class WatchedCpu(BareCpu):
    """A processor whose data pages refuse all accesses that are not executed alone."""

    def __init__(self, arch: str, text: str) -> None:
        super().__init__(arch, assemble(by_name(arch), CODE, text))
        code_region, data = self.regions
        behind = RegionTable()
        behind.replace(0, 1 << 63, [code_region, data])
        self.page_table.load([code_region, Region(data.start, data.end, data.physical, EXECUTE)])
        self.page_table.behind = behind
        self.coarse = range(DATA, DATA + PAGES * PAGE)
        self.places = {data.physical + at: DATA + at for at in range(0, PAGES * PAGE, PAGE)}
        self.flush_tlb()
        self.data = data

    def alone(self, registers: Sequence[tuple[str, int]] = ()) -> list[Access]:
        """What the instruction at pc does, where a run has refused it."""
        for name, value in registers:
            self.write_register(name, value)
        at = self.pc
        stop = self.run()
        assert stop.kind is StopKind.FAULT
        assert self.pc == at
        left, seen = self.observe(self.places)
        assert left is None
        return seen


X86 = (
    ("mov dword ptr [rdi], 5", [(True, 0x100, 4)], 6),
    ("mov rax, qword ptr [rdi]", [(False, 0x100, 8)], 3),
    ("add byte ptr [rdi], 1", [(False, 0x100, 1), (True, 0x100, 1)], 3),
    ("lock xadd qword ptr [rdi], rax", [(False, 0x100, 8), (True, 0x100, 8)], 5),
    ("push qword ptr [rdi]", [(False, 0x100, 8), (True, 0x1FF8, 8)], 2),
    ("mov qword ptr [rdi+0xefd], rax", [(True, 0xFFD, 8)], 7),
)


@pytest.mark.parametrize(("text", "wanted", "size"), X86, ids=[row[0] for row in X86])
def test_accesses_of_an_instruction(
    text: str, wanted: list[tuple[bool, int, int]], size: int
) -> None:
    cpu = WatchedCpu("x86_64", text)
    cpu.write(DATA + 0x100, bytes(range(1, 9)))
    seen = cpu.alone([("rdi", DATA + 0x100)])
    assert [(one.write, one.address - DATA, one.size) for one in seen] == wanted
    assert cpu.pc == CODE + size
    for one in seen:
        if one.write:
            before = bytes(range(1, 9))[: one.size] if one.address == DATA + 0x100 else None
            assert one.old == (before or bytes(one.size))


def test_a_repeated_instruction_is_one_iteration() -> None:
    cpu = WatchedCpu("x86_64", "rep movsb")
    registers = [("rsi", CODE), ("rdi", DATA + 0x10), ("rcx", 3)]
    for left in (2, 1, 0):
        seen = cpu.alone(registers)
        registers = []
        assert [one[:3] for one in seen if one.write] == [(True, DATA + 0x12 - left, 1)]
        assert cpu.read_register("rcx") == left


def test_the_same_instruction_may_be_met_again_and_again() -> None:
    cpu = WatchedCpu("x86_64", "inc dword ptr [rdi]; jmp 0x400000")
    cpu.write_register("rdi", DATA)
    for _ in range(1200):
        assert cpu.run().kind is StopKind.FAULT
        stop, seen = cpu.observe(cpu.places)
        assert stop is None
        assert len(seen) == 2
    assert cpu.read(DATA, 4) == (1200).to_bytes(4, "little")


def test_a_call_and_its_return_go_where_they_lead() -> None:
    cpu = WatchedCpu("x86_64", "call 0x400005; ret")
    (pushed,) = cpu.alone()
    assert pushed[:3] == (True, DATA + 2 * PAGE - 8, 8)
    assert cpu.pc == CODE + 5
    (popped,) = cpu.alone()
    assert popped[:3] == (False, DATA + 2 * PAGE - 8, 8)
    assert cpu.pc == CODE + 5


def test_instructions_that_software_carries_out_are_seen_too() -> None:
    cpu = WatchedCpu("x86_64", "cmpxchg16b xmmword ptr [rdi]")
    seen = cpu.alone([("rdi", DATA + 0x100), ("rbx", 7), ("rax", 0), ("rdx", 0)])
    assert (True, DATA + 0x100, 16) in [one[:3] for one in seen]
    assert cpu.read(DATA + 0x100, 8) == (7).to_bytes(8, "little")


def test_pairs_and_exclusives_of_aarch64() -> None:
    cpu = WatchedCpu("aarch64", "stp x1, x2, [x0]; ldxr x3, [x0]; stxr w4, x1, [x0]")
    pair = cpu.alone([("x0", DATA + 0x100), ("x1", 1), ("x2", 2)])
    assert [one[:3] for one in pair] == [(True, DATA + 0x100, 8), (True, DATA + 0x108, 8)]
    (loaded,) = cpu.alone()
    assert loaded[:3] == (False, DATA + 0x100, 8)
    stored = cpu.alone()
    assert (True, DATA + 0x100, 8) in [one[:3] for one in stored]
    assert cpu.read_register("x4") == 0  # nothing came between


def test_a_real_fault_is_left_to_others() -> None:
    cpu = WatchedCpu("x86_64", "mov qword ptr [rdi+4092], rax; nop")
    cpu.write_register("rdi", DATA + (PAGES - 1) * PAGE)
    assert cpu.run().kind is StopKind.FAULT
    stop, _ = cpu.observe(cpu.places)
    assert stop is not None
    assert stop.kind is StopKind.FAULT
    assert cpu.pc == CODE
    assert not any(cpu.read(DATA + (PAGES - 1) * PAGE, PAGE))

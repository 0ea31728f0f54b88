"""Accesses to watched bytes end a run in front of their instruction; those beside them do not."""

import pytest
from assembling import assembles
from barecpu import CODE, DATA, BareCpu

from engine.arch import by_name
from engine.cpu import native
from engine.cpu.base import StopKind
from engine.insn.asm import assemble

pytestmark = [
    assembles,
    pytest.mark.skipif(
        not native.possible(), reason="the host is no x86-64, or its code is not wanted"
    ),
]

WATCHED = DATA + 0x100


def sifting(arch: str, text: str, *, reads: bool = False) -> BareCpu:
    """A processor that looks at accesses to eight bytes."""
    cpu = BareCpu(arch, assemble(by_name(arch), CODE, text))
    span = [(WATCHED, WATCHED + 8)]
    assert cpu.sift(span if reads else [], [] if reads else span)
    cpu.flush_tlb()
    return cpu


STORES = (
    ("mov qword ptr [rdi], rax", 0, True),
    ("mov byte ptr [rdi], al", 7, True),
    ("mov byte ptr [rdi], al", 8, False),
    ("mov byte ptr [rdi], al", -1, False),
    ("mov qword ptr [rdi], rax", -8, False),
    ("mov qword ptr [rdi], rax", -7, True),
    ("movups xmmword ptr [rdi], xmm0", -15, True),
    ("add dword ptr [rdi], eax", 5, True),
    ("mov rax, qword ptr [rdi]", 0, False),
    ("lock xadd qword ptr [rdi], rax", 0, True),
)


@pytest.mark.parametrize(("text", "offset", "met"), STORES)
def test_a_store_stops_where_it_meets_the_bytes(text: str, offset: int, met: bool) -> None:
    cpu = sifting("x86_64", f"{text}; int3")
    cpu.write(DATA, bytes(range(256)) * 8)
    before = cpu.read(WATCHED, 8)
    cpu.write_register("rdi", WATCHED + offset)
    stop = cpu.run()
    assert (stop.kind is StopKind.FAULT) == met
    if met:
        assert cpu.pc == CODE
        assert stop.access == "write"
        assert stop.address & -4096 == WATCHED & -4096
        assert cpu.read(WATCHED, 8) == before  # half of a wide store may be in front of them


@pytest.mark.parametrize(("arch", "text"), [("x86_64", "mov al, byte ptr [rdi]; int3")])
def test_loads_are_told_from_stores(arch: str, text: str) -> None:
    cpu = sifting(arch, text, reads=True)
    cpu.write_register("rdi", WATCHED + 3)
    stop = cpu.run()
    assert (stop.kind, stop.access, stop.address) == (StopKind.FAULT, "read", WATCHED + 3)


def test_a_store_over_two_pages_stops_before_it_has_stored_anything() -> None:
    cpu = BareCpu("x86_64", assemble(by_name("x86_64"), CODE, "mov qword ptr [rdi], rax; int3"))
    cpu.sift([], [(DATA + 0x1002, DATA + 0x1003)])
    cpu.flush_tlb()
    cpu.write_register("rax", (1 << 64) - 1)
    cpu.write_register("rdi", DATA + 0xFFC)
    assert cpu.run().kind is StopKind.FAULT
    assert not any(cpu.read(DATA + 0xFF0, 32))


def test_engines_do_not_hear_of_each_other() -> None:
    text = "mov qword ptr [rdi], rax; int3"
    first = sifting("x86_64", text)
    other = BareCpu("x86_64", assemble(by_name("x86_64"), CODE, text))
    for cpu in (other, first, other):
        cpu.write_register("rdi", WATCHED)
        cpu.write_register("rip", CODE)
        assert (cpu.run().kind is StopKind.FAULT) == (cpu is first)
    assert first.sift([], []) is False
    first.flush_tlb()
    assert first.run().kind is StopKind.TRAP

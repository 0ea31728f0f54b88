"""Instructions of x87 in Python, on a CPU for which no host computes."""

import struct

import pytest
from barecpu import CODE, DATA, BareCpu

from engine.arch.base import TrapKind
from engine.cpu.base import Stop, StopKind

SYSCALL = "0f05"
FPI = 0x4000_C90FDAA22168C235


@pytest.fixture(autouse=True)
def _portable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")


def machine(code: str, data: bytes = b"") -> BareCpu:
    cpu = BareCpu("x86_64")
    cpu.write(CODE, bytes.fromhex(code + SYSCALL))
    cpu.write(DATA, data)
    cpu.write_register("rbx", DATA)
    return cpu


def ran(code: str, data: bytes = b"") -> BareCpu:
    """The machine after a piece of code that ends well."""
    cpu = machine(code, data)
    assert cpu.run().kind is StopKind.SYSCALL
    return cpu


def word(cpu: BareCpu, offset: int, form: str = "<I") -> int:
    return int(struct.unpack(form, cpu.read(DATA + offset, struct.calcsize(form)))[0])


def test_values_and_stack() -> None:
    cpu = ran("d9eb d9e8 dec1")  # fldpi; fld1; faddp
    assert cpu.read_register("st0") == 0x4001_8487ED5110B4611A  # pi + 1, half an ulp up
    assert cpu.read_register("fstat") == 0x3820
    assert cpu.read_register("ftag") == 0x3FFF


def test_flags_of_a_division_by_zero() -> None:
    cpu = ran("d9e8 d9ee def9 dfe0")  # fld1; fldz; fdivp; fnstsw ax
    assert cpu.read_register("rax") & 0xFFFF == 0x3804
    assert cpu.read_register("st0") == 0x7FFF_8000000000000000


def test_an_exception_that_is_not_masked_comes_at_the_next_instruction() -> None:
    # fldcw [rbx]; fld1; fldz; fdivp; nop; fld1
    cpu = machine("d92b d9e8 d9ee def9 90 d9e8", struct.pack("<H", 0x37B))
    assert cpu.run() == Stop(StopKind.TRAP, TrapKind.FLOAT, 16)
    assert cpu.pc == CODE + 9
    assert cpu.read_register("fstat") == 0xB084  # two operands are still there
    cpu.write_register("rip", CODE + 11)
    assert cpu.run().kind is StopKind.SYSCALL


@pytest.mark.parametrize("code", ["9b", "d93b 9b"])  # fwait; fnstcw [rbx]; fwait
def test_fwait_waits(code: str) -> None:
    cpu = machine(code)
    cpu.write_register("fctrl", 0x37E)
    cpu.write_register("fstat", 1)
    assert cpu.run() == Stop(StopKind.TRAP, TrapKind.FLOAT, 16)


def test_stack_faults() -> None:
    cpu = ran("d9e8" * 9)
    assert cpu.read_register("fstat") == 0x3A41  # full: C1
    cpu = ran("d9c0")
    assert cpu.read_register("fstat") == 0x3841  # empty
    assert cpu.read_register("st0") == 0xFFFF_C000000000000000


def test_environment_is_stored_and_loaded() -> None:
    # fldpi; fld1; fnstenv [rbx]; fninit; fldenv [rbx]
    cpu = ran("d9eb d9e8 d933 dbe3 d923")
    assert [word(cpu, 4 * index) for index in range(7)] == [
        *(0xFFFF037F, 0xFFFF3000, 0xFFFF0FFF, 0, 0, 0, 0xFFFF0000),
    ]
    assert cpu.read_register("st1") == FPI
    assert (cpu.read_register("fctrl"), cpu.read_register("fstat")) == (0x37F, 0x3000)


def test_short_environment() -> None:
    cpu = ran("d9ee 66d933")  # fldz; fnstenv [rbx] with 16 bits
    assert [word(cpu, 2 * index, "<H") for index in range(8)] == [
        *(0x37F, 0x3800, 0x7FFF, 0, 0, 0, 0, 0),
    ]


def test_all_of_it_is_saved_and_restored() -> None:
    # fldpi; fld1; fnsave [rbx]; fldl2e; frstor [rbx]; fnop
    cpu = ran("d9eb d9e8 dd33 d9ea dd23 d9d0")
    assert cpu.read_register("st0") == 0x3FFF_8000000000000000
    assert cpu.read_register("st1") == FPI
    assert cpu.read_register("ftag") & 0xF000 == 0
    assert cpu.read(DATA + 38, 10) == FPI.to_bytes(10, "little")


def test_what_the_disassembler_does_not_know_is_served_too() -> None:
    # dc d0: fcom st(0) by its second opcode, twice; then fld1
    cpu = ran("d9eb dcd0 dcd0 d9e8")
    assert cpu.read_register("fstat") == 0x3000 | 0x4000
    assert cpu.read_register("st1") == FPI


@pytest.mark.parametrize("code", ["d9d1", "d9e2", "dbff", "d90b", "dfe1"])
def test_no_instruction(code: str) -> None:
    stop = machine(code).run()
    assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.ILLEGAL)


def test_a_fault_of_an_operand_leaves_all_as_it_was() -> None:
    cpu = machine("d9e8 dd1b")  # fld1; fstp [rbx]
    cpu.write_register("rbx", CODE)
    stop = cpu.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, CODE, "write")
    assert cpu.pc == CODE + 2
    assert (cpu.read_register("fstat"), cpu.read_register("ftag")) == (0x3800, 0x3FFF)


def test_addresses_of_operands() -> None:
    # fld qword [rbx+rcx*8+8]; fld qword [rip+2]
    cpu = machine("dd44cb08 dd0502000000", struct.pack("<4d", 1.0, 2.0, 3.0, 4.0))
    cpu.write_register("rcx", 2)
    cpu.write(CODE + 12, struct.pack("<d", 0.5))
    cpu.run()
    assert cpu.read_register("st1") == 0x4001_8000000000000000
    assert cpu.read_register("st0") == 0x3FFE_8000000000000000


def test_flags_of_the_processor() -> None:
    cpu = ran("d9eb d9e8 dbf1")  # fldpi; fld1; fcomi st(0), st(1)
    assert cpu.read_register("eflags") & 0x8D5 == 1


LOOP = "b9e8030000 d9e8 d9eb dec9 dd1b ffc9 75f4"
"""A thousand times: fld1; fldpi; fmulp; fstp qword [rbx]."""


def counted(monkeypatch: pytest.MonkeyPatch, portable: str) -> tuple[int, int, bytes]:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", portable)
    cpu = machine(LOOP)
    cpu.count_blocks(True)
    stops = 0
    while cpu.run(100).kind is StopKind.QUANTUM:
        stops += 1
    return cpu.blocks(), stops, cpu.read(DATA, 8)


def test_the_clock_does_not_know_who_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(monkeypatch, "1") == counted(monkeypatch, "0")


def test_a_step_is_one_instruction() -> None:
    cpu = machine("d9e8 d9eb dec9")
    for at in (2, 4, 6):
        assert cpu.step() is None
        assert cpu.pc == CODE + at

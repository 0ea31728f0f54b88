"""What must not run in the emulator: counters, events, instructions of later extensions."""

import struct

import pytest
from barecpu import CODE, DATA, BareCpu

from engine.arch.base import TrapKind
from engine.cpu.base import StopKind
from engine.cpu.ram import PAGE

EBREAK = 0x00100073
COUNTER = 0x1234567890  # as `barecpu` has it


def words(*code: int) -> bytes:
    return struct.pack(f"<{len(code)}I", *code)


@pytest.mark.parametrize("counter", [0xC00, 0xC01, 0xC02])
@pytest.mark.parametrize("funct3", [2, 3, 6, 7])
def test_counters_are_the_guests_own(counter: int, funct3: int) -> None:
    cpu = BareCpu("riscv64", words(counter << 20 | funct3 << 12 | 10 << 7 | 0x73, EBREAK))
    assert cpu.run().trap is TrapKind.BREAKPOINT
    assert (cpu.read_register("a0"), cpu.pc) == (COUNTER, CODE + 4)


def test_a_counter_into_zero() -> None:
    cpu = BareCpu("riscv64", words(0xC0002073, EBREAK))
    assert cpu.run().trap is TrapKind.BREAKPOINT
    assert cpu.read_register("zero") == 0


@pytest.mark.parametrize("counter", [0xC03, 0xC10, 0xC1F])
def test_counters_of_events_are_refused(counter: int) -> None:
    cpu = BareCpu("riscv64", words(counter << 20 | 2 << 12 | 10 << 7 | 0x73, EBREAK))
    stop = cpu.run()
    assert (stop.kind, stop.trap, cpu.pc) == (StopKind.TRAP, TrapKind.ILLEGAL, CODE)
    assert "counter" in stop.detail


@pytest.mark.parametrize(
    "word",
    [
        0x30002573,  # csrr a0, mstatus
        0xF1402573,  # csrr a0, mhartid
        0x10200073,  # sret
        0x30200073,  # mret
        0x10500073,  # wfi
        0x12000073,  # sfence.vma
        0xC0001073,  # csrw cycle, zero
        0x0D007057,  # vsetvli
    ],
    ids=hex,
)
def test_what_a_program_may_not_do(word: int) -> None:
    cpu = BareCpu("riscv64", words(0x13, word, EBREAK))
    stop = cpu.run()
    assert (stop.kind, stop.trap, cpu.pc) == (StopKind.TRAP, TrapKind.ILLEGAL, CODE + 4)


@pytest.mark.parametrize("half", [0x8000, 0x8404, 0x8808, 0x8C7C, 0x9C41, 0x9C61, 0x9C75, 0x9C7D])
@pytest.mark.parametrize("around", [b"", b"\x01\x00"])
def test_instructions_of_later_extensions_are_refused(half: int, around: bytes) -> None:
    cpu = BareCpu("riscv64", around + struct.pack("<H", half) + words(EBREAK))
    stop = cpu.run()
    assert (stop.kind, stop.trap, cpu.pc) == (
        StopKind.TRAP,
        TrapKind.ILLEGAL,
        CODE + len(around),
    )
    assert stop.detail == "reserved instruction"


@pytest.mark.parametrize("address", [1, 2, 4, 7])
@pytest.mark.parametrize("word", [0x00C5A52F, 0x1005A52F])  # amoadd.w, lr.w
def test_atomics_want_alignment(word: int, address: int) -> None:
    cpu = BareCpu("riscv64", words(word, EBREAK))
    cpu.write_register("a1", DATA + PAGE + address)
    stop = cpu.run()
    if address % 4:
        assert (stop.trap, cpu.pc) == (TrapKind.ALIGNMENT, CODE)
    else:
        assert (stop.trap, cpu.pc) == (TrapKind.BREAKPOINT, CODE + 4)


@pytest.mark.parametrize("code", [words(EBREAK), b"\x02\x90", words(0), words(0xFFFFFFFF)])
def test_exceptions_leave_pc_at_the_instruction(code: bytes) -> None:
    for front in (b"", b"\x01\x00", words(0x13)):
        cpu = BareCpu("riscv64", front + code)
        stop = cpu.run()
        assert stop.kind is StopKind.TRAP
        assert cpu.pc == CODE + len(front)


def test_ecall_leaves_pc_behind_it() -> None:
    cpu = BareCpu("riscv64", words(0x73))
    assert cpu.run().kind is StopKind.SYSCALL
    assert cpu.pc == CODE + 4


def test_a_saved_state_has_the_flags_of_floating_point() -> None:
    cpu = BareCpu("riscv64")
    cpu.write_register("fcsr", 0x41)
    state = cpu.save()
    cpu.write_register("fcsr", 0x1F)
    cpu.restore(state)
    assert cpu.read_register("fcsr") == 0x41

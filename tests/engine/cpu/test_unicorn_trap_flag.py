"""The trap flag of a program, read through the interface and in place."""

import pytest
from barecpu import BareCpu

from engine.arch.base import TrapKind
from engine.cpu.base import Stop, StopKind

TRAP = Stop(StopKind.TRAP, TrapKind.SINGLE_STEP, 1)
FLAG = 0x100
CALLS = bytes.fromhex("90 0f05 90 90 0f05")


@pytest.mark.parametrize("served", [False, True])
def test_it_is_seen_as_it_is_set(served: bool) -> None:
    cpu = BareCpu("x86_64", CALLS)
    if served:
        cpu.serve(lambda: True)
    flags = cpu.read_register("eflags")
    for value in (flags, flags | FLAG, flags ^ 0x8D5, flags ^ 0x8D5 | FLAG, flags):
        cpu.write_register("eflags", value)
        assert cpu.trap_behind() == (TRAP if value & FLAG else None)
        assert cpu.read_register("eflags") == value


@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_other_programs_have_none(arch: str) -> None:
    assert BareCpu(arch, b"").trap_behind() is None


def test_calls_leave_the_processor_while_it_is_set() -> None:
    cpu = BareCpu("x86_64", CALLS)
    served: list[int] = []

    def serve() -> bool:
        served.append(cpu.pc)
        return True

    cpu.serve(serve)
    cpu.write_register("eflags", cpu.read_register("eflags") | FLAG)
    start = cpu.pc
    assert cpu.run() == TRAP
    assert cpu.run() == Stop(StopKind.SYSCALL)
    assert (cpu.pc, served) == (start + 3, [])
    assert cpu.run() == TRAP
    assert cpu.pc == start + 4  # behind what follows the call


def test_a_call_that_sets_it_has_the_next_instruction_trap() -> None:
    """As rt_sigreturn does, for one: not in front of that instruction."""
    cpu = BareCpu("x86_64", CALLS)
    start = cpu.pc

    def serve() -> bool:
        cpu.write_register("eflags", cpu.read_register("eflags") | FLAG)
        return True

    cpu.serve(serve)
    assert cpu.run() == Stop(StopKind.SYSCALL)  # the first one shows where pc is
    cpu.write_register("rip", start)
    assert cpu.run() == TRAP
    assert cpu.pc == start + 4

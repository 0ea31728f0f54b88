"""The instructions of x87, carried out on a CPU's registers (SDM volume 1, chapter 8).

Where no host computes for the guest, an emulator's x87 is not to be had: each of its instructions
is done here, exactly, with its exceptions, its stack faults and its condition codes.
"""

from typing import Final

from engine.arch.machine import ArchCpu, Insn, TrapError
from engine.arch.x86_64 import float_arithmetic, float_functions, float_moves
from engine.arch.x86_64.decode import Decoded, decode
from engine.arch.x86_64.floatstack import (
    EXCEPTIONS,
    VALUES_SIZE,
    FloatStack,
    environment_size,
)
from engine.arch.x86_64.floatstep import FloatStep, InstructionTable, Run
from engine.arch.x86_64.operations import operand_address

INVALID_OPCODE, FLOATING_POINT = 6, 16
"""Exceptions of the processor."""
FWAIT: Final = 0x9B


def computes(insn: Decoded) -> bool:
    """True for an instruction of x87, fwait among them."""
    return insn.key == FWAIT or 0xD8 <= insn.key <= 0xDF


def emulate(cpu: ArchCpu, insn: Insn) -> None:
    """Carry out an instruction of x87; the pc stays.

    Raises:
        TrapError: it is no instruction, or an exception of one before is told.
        GuestFaultError: of its operand.
    """
    decoded = decode(insn.raw)
    if decoded is None:
        raise TrapError(INVALID_OPCODE)
    registers = FloatStack(cpu)
    if decoded.key == FWAIT:
        if registers.pending:
            raise TrapError(FLOATING_POINT)
        return
    memory = decoded.memory
    table = _TABLE.memory if memory else _TABLE.registers
    field = decoded.reg if memory else decoded.modrm
    run = table.get((decoded.key, field))
    if run is None:
        raise TrapError(INVALID_OPCODE)
    if registers.pending and (decoded.key, field) not in _NO_WAIT[memory]:
        raise TrapError(FLOATING_POINT)
    address = operand_address(decoded, insn.raw, insn.address)[0](cpu) if memory else 0
    run(FloatStep(cpu, registers, decoded, address))
    registers.leave()


def _nothing(step: FloatStep) -> None:
    """Fnop, and instructions of older processors."""


def _turn(by: int) -> Run:
    def run(step: FloatStep) -> None:
        step.registers.top = step.registers.top + by & 7
        step.registers.direction(up=False)

    return run


def _free(pops: int) -> Run:
    def run(step: FloatStep) -> None:
        step.registers.free(step.index)
        step.registers.direction(up=False)
        if pops:
            step.registers.pop()

    return run


def _clear(step: FloatStep) -> None:
    step.registers.status &= 0x7F00


def _reset(step: FloatStep) -> None:
    step.registers.reset()


def _load_control(step: FloatStep) -> None:
    step.registers.load_word(step.load(2))


def _store_control(step: FloatStep) -> None:
    step.cpu.write(step.address, step.registers.word.to_bytes(2, "little"))


def _store_status(step: FloatStep) -> None:
    step.cpu.write(step.address, step.registers.status_word.to_bytes(2, "little"))


def _status_to_ax(step: FloatStep) -> None:
    cpu = step.cpu
    word = step.registers.status_word
    cpu.write_register("rax", cpu.read_register("rax") & ~0xFFFF | word)


def _store_environment(step: FloatStep) -> None:
    registers = step.registers
    step.cpu.write(step.address, registers.environment(short=step.short))
    registers.load_word(registers.word | EXCEPTIONS)


def _save(step: FloatStep) -> None:
    registers = step.registers
    step.cpu.write(step.address, registers.saved(short=step.short))
    registers.reset()


def _load_environment(step: FloatStep) -> None:
    size = environment_size(short=step.short)
    step.registers.set_environment(step.cpu.read(step.address, size), short=step.short)


def _restore(step: FloatStep) -> None:
    size = environment_size(short=step.short) + VALUES_SIZE
    step.registers.restore(step.cpu.read(step.address, size), short=step.short)


def _table() -> InstructionTable:
    table = InstructionTable()
    for part in (float_arithmetic, float_moves, float_functions):
        part.enter(table)
    table.memory |= {
        (0xD9, 4): _load_environment,
        (0xD9, 5): _load_control,
        (0xD9, 6): _store_environment,
        (0xD9, 7): _store_control,
        (0xDD, 4): _restore,
        (0xDD, 6): _save,
        (0xDD, 7): _store_status,
    }
    table.each(0xDD, 0xC0, _free(0))
    table.each(0xDF, 0xC0, _free(1))
    table.registers |= {
        (0xD9, 0xD0): _nothing,
        (0xD9, 0xF6): _turn(-1),
        (0xD9, 0xF7): _turn(1),
        (0xDB, 0xE0): _nothing,
        (0xDB, 0xE1): _nothing,
        (0xDB, 0xE2): _clear,
        (0xDB, 0xE3): _reset,
        (0xDB, 0xE4): _nothing,
        (0xDF, 0xE0): _status_to_ax,
    }
    return table


_TABLE: Final = _table()
_NO_WAIT: Final = {
    True: frozenset({(0xD9, 6), (0xD9, 7), (0xDD, 6), (0xDD, 7)}),
    False: frozenset({(0xDB, 0xE0), (0xDB, 0xE1), (0xDB, 0xE2), (0xDB, 0xE3), (0xDF, 0xE0)}),
}
"""Instructions that do not look for exceptions before them."""

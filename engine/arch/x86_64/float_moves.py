"""x87's loads, stores, exchanges and conditional moves (SDM volume 1, 8.3.3 and 8.3.4)."""

from typing import Final

from engine.arch.x86_64 import extended
from engine.arch.x86_64.extended import (
    DENORMAL,
    INDEFINITE,
    INEXACT,
    INVALID,
    ONE,
    OVERFLOW,
    UNDERFLOW,
    NumberKind,
    Real,
    Result,
)
from engine.arch.x86_64.floatstep import EARLY, FloatStep, InstructionTable, Run

_CARRY, _PARITY, _ZERO, _STATUS_FLAGS = 1, 4, 0x40, 0x8D5

# Six bits more than a register has, for pi, log2 of e and 10, log10 and ln of 2.
_CONSTANTS: Final = {
    0xE9: Real(0, 0xD49A784BCD1B8AFE492BF6FF4DAFDB4C, -126),
    0xEA: Real(0, 0xB8AA3B295C17F0BBBE87FED0691D3E89, -127),
    0xEB: Real(0, 0xC90FDAA22168C234C4C6628B80DC1CD1, -126),
    0xEC: Real(0, 0x9A209A84FBCFF7988F8959AC0B7C9178, -129),
    0xED: Real(0, 0xB17217F7D1CF79ABC9E3B39803F2F6AF, -128),
}


def _load_real(size: int) -> Run:
    def run(step: FloatStep) -> None:
        bits = step.load(size)
        value = extended.from_single(bits) if size == 4 else extended.from_double(bits)
        flags = DENORMAL if extended.small(bits, size) else 0
        if extended.kind_of(value) is NumberKind.SIGNALLING:
            value, flags = extended.quiet(value), INVALID
        step.push(value, flags)

    return run


def _load_integer(size: int) -> Run:
    return lambda step: step.push(extended.from_integer(step.load(size, signed=True)))


def _load_constant(step: FloatStep) -> None:
    control = step.registers.control.long
    step.push(extended.rounded(_CONSTANTS[step.modrm], control).value)


def _load_register(step: FloatStep) -> None:
    registers = step.registers
    if not registers.empty(step.index):
        step.push(registers.get(step.index))
    elif registers.missing():
        registers.push(INDEFINITE)


def _store_real(size: int, pops: int) -> Run:
    def run(step: FloatStep) -> None:
        registers = step.registers
        if registers.empty(0):
            _store_indefinite(step, 0xFFC0_0000 if size == 4 else 0xFFF8 << 48, size, pops)
            return
        result = extended.narrowed(registers.get(0), size, registers.control)
        if result.flags & ~registers.word & (OVERFLOW | UNDERFLOW):
            result = Result(result.value, result.flags & ~INEXACT)
        step.store(result, size, pops, EARLY | OVERFLOW | UNDERFLOW)

    return run


def _store_indefinite(step: FloatStep, value: int, size: int, pops: int) -> None:
    """Nothing is there to store."""
    registers = step.registers
    if not INVALID & ~registers.word:
        step.cpu.write(step.address, value.to_bytes(size, "little"))
    if registers.missing():
        for _ in range(pops):
            registers.pop()


def _store_extended(step: FloatStep) -> None:
    if step.registers.empty(0):
        _store_indefinite(step, INDEFINITE, 10, 1)
    else:
        step.store(Result(step.registers.get(0)), 10, 1, 0)


def _store_integer(size: int, pops: int, *, truncates: bool = False) -> Run:
    def run(step: FloatStep) -> None:
        registers = step.registers
        if registers.empty(0):
            _store_indefinite(step, 1 << (8 * size - 1), size, pops)
            return
        rounding = extended.TRUNCATE if truncates else registers.control.rounding
        step.store(extended.to_integer(registers.get(0), size, rounding), size, pops, EARLY)

    return run


def _store_decimal(step: FloatStep) -> None:
    registers = step.registers
    if registers.empty(0):
        _store_indefinite(step, 0xFFFF_C000_0000_0000_0000, 10, 1)
        return
    result = extended.to_decimal(registers.get(0), registers.control.rounding)
    step.store(result, 10, 1, EARLY)


def _store_register(pops: int) -> Run:
    def run(step: FloatStep) -> None:
        if step.lacks(0):
            step.refuse(step.index, pops)
        else:
            step.keep(Result(step.registers.get(0)), step.index, pops)

    return run


def _store_register_or_not(step: FloatStep) -> None:
    """A second opcode of fstp, to which nothing is missing."""
    if step.lacks(0):
        step.registers.direction(up=False)
        step.registers.pop()
    else:
        step.keep(Result(step.registers.get(0)), step.index, 1)


def _exchange(step: FloatStep) -> None:
    registers = step.registers
    if step.lacks(0, step.index):
        if not registers.missing():
            return
    else:
        registers.direction(up=False)
    values = [
        INDEFINITE if registers.empty(index) else registers.get(index) for index in (0, step.index)
    ]
    registers.put(0, values[1])
    registers.put(step.index, values[0])


_CONDITIONS: Final = (_CARRY, _ZERO, _CARRY | _ZERO, _PARITY)


def _move_if(*, holds: bool) -> Run:
    def run(step: FloatStep) -> None:
        if step.lacks(0, step.index):
            step.refuse(0)
            return
        flags = step.cpu.read_register("eflags") & _CONDITIONS[step.field]
        if bool(flags) == holds:
            step.registers.put(0, step.registers.get(step.index))

    return run


def enter(table: InstructionTable) -> None:
    """Put these instructions into a table."""
    for opcode, size in ((0xD9, 4), (0xDD, 8)):
        table.memory[opcode, 0] = _load_real(size)
        table.memory[opcode, 2] = _store_real(size, 0)
        table.memory[opcode, 3] = _store_real(size, 1)
    for opcode, size in ((0xDB, 4), (0xDF, 2)):
        table.memory[opcode, 0] = _load_integer(size)
        table.memory[opcode, 2] = _store_integer(size, 0)
        table.memory[opcode, 3] = _store_integer(size, 1)
    for opcode, size in ((0xDB, 4), (0xDF, 2), (0xDD, 8)):
        table.memory[opcode, 1] = _store_integer(size, 1, truncates=True)
    table.memory |= {
        (0xDB, 5): lambda step: step.push(step.load(10)),
        (0xDB, 7): _store_extended,
        (0xDF, 4): lambda step: step.push(extended.from_decimal(step.load(10))),
        (0xDF, 5): _load_integer(8),
        (0xDF, 6): _store_decimal,
        (0xDF, 7): _store_integer(8, 1),
    }
    for field in range(4):
        table.each(0xDA, 0xC0 | field << 3, _move_if(holds=True))
        table.each(0xDB, 0xC0 | field << 3, _move_if(holds=False))
    for opcode, modrm in ((0xD9, 0xC8), (0xDD, 0xC8), (0xDF, 0xC8)):
        table.each(opcode, modrm, _exchange)
    table.each(0xD9, 0xD8, _store_register_or_not)
    for opcode, modrm in ((0xDD, 0xD8), (0xDF, 0xD0), (0xDF, 0xD8)):
        table.each(opcode, modrm, _store_register(1))
    table.each(0xD9, 0xC0, _load_register)
    table.each(0xDD, 0xD0, _store_register(0))
    table.registers |= {(0xD9, modrm): _load_constant for modrm in _CONSTANTS}
    table.registers |= {
        (0xD9, 0xE8): lambda step: step.push(ONE),
        (0xD9, 0xEE): lambda step: step.push(0),
    }

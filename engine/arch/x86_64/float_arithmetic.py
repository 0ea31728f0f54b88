"""x87's arithmetic and comparisons (SDM volume 1, 8.3.5 and 8.3.6)."""

from typing import Final

from engine.arch.x86_64 import extended
from engine.arch.x86_64.extended import (
    DENORMAL,
    INVALID,
    SIGN,
    ZERO_DIVIDE,
    ControlWord,
    NumberKind,
    Operation,
    Result,
)
from engine.arch.x86_64.floatstack import (
    C0,
    C1,
    C2,
    C3,
)
from engine.arch.x86_64.floatstep import EARLY, FloatStep, InstructionTable, Run

_CARRY, _PARITY, _ZERO, _STATUS_FLAGS = 1, 4, 0x40, 0x8D5


def _subtract_from(one: int, other: int, control: ControlWord) -> Result:
    return extended.subtract(other, one, control)


def _divide_into(one: int, other: int, control: ControlWord) -> Result:
    return extended.divide(other, one, control)


_OPERATIONS: Final[dict[int, Operation]] = {
    0: extended.add,
    1: extended.multiply,
    4: extended.subtract,
    5: _subtract_from,
    6: extended.divide,
    7: _divide_into,
}
"""By the field of ModRM that names them."""
_INTEGERS: Final = {0xDA: 4, 0xDE: 2}
_SIZES: Final = {0xD8: 4, 0xDC: 8}


def _operand(step: FloatStep, opcode: int) -> int:
    """An operand in memory, as a register would hold it."""
    if opcode in _INTEGERS:
        return extended.from_integer(step.load(_INTEGERS[opcode], signed=True))
    size = _SIZES[opcode]
    bits = step.load(size)
    return extended.from_single(bits) if size == 4 else extended.from_double(bits)


def _small(step: FloatStep, opcode: int) -> int:
    """The flag of an operand in memory that is denormal there."""
    size = _SIZES.get(opcode)
    return DENORMAL if size and extended.small(step.load(size), size) else 0


def _with_memory(opcode: int) -> Run:
    def run(step: FloatStep) -> None:
        operand = _operand(step, opcode)
        if step.lacks(0):
            step.refuse(0)
            return
        registers = step.registers
        result = _OPERATIONS[step.field](registers.get(0), operand, registers.control)
        small = _small(step, opcode)
        if small and not _speaks_first(result, registers.get(0), operand):
            result = _also(result, small)
        step.keep(result, 0)

    return run


def _speaks_first(result: Result, *operands: int) -> bool:
    """True if an operation ends before it looks whether operands are denormal."""
    nan = any(
        extended.kind_of(each) in (NumberKind.QUIET, NumberKind.SIGNALLING) for each in operands
    )
    return nan or bool(result.flags & (INVALID | ZERO_DIVIDE))


def _also(result: Result, flags: int) -> Result:
    return Result(result.value, result.flags | flags, result.up)


def _between(*, upon: bool, pops: int) -> Run:
    """St(0) and st(index), with the result in the one or the other."""

    def run(step: FloatStep) -> None:
        index = step.index if upon else 0
        if step.lacks(0, step.index):
            step.refuse(index, pops)
            return
        registers = step.registers
        operation = _OPERATIONS[step.field]
        result = operation(registers.get(0), registers.get(step.index), registers.control)
        step.keep(result, index, pops)

    return run


_COMPARED: Final = {
    extended.LESS: C0,
    extended.EQUAL: C3,
    extended.GREATER: 0,
    extended.UNORDERED: C0 | C2 | C3,
}
_FLAGGED: Final = {
    extended.LESS: _CARRY,
    extended.EQUAL: _ZERO,
    extended.GREATER: 0,
    extended.UNORDERED: _CARRY | _PARITY | _ZERO,
}


def _compare(
    step: FloatStep, other: int, pops: int, *, quietly: bool = False, small: int = 0
) -> None:
    """St(0) with a value that is there."""
    registers = step.registers
    order, flags = extended.compare(registers.get(0), other, quietly=quietly)
    if small and order != extended.UNORDERED:
        flags |= small
    unmasked = registers.raised(flags)
    registers.codes(_COMPARED[order])
    if not unmasked & EARLY:
        for _ in range(pops):
            registers.pop()


def _nothing_to_compare(step: FloatStep, pops: int) -> None:
    masked = step.registers.missing()
    step.registers.codes(_COMPARED[extended.UNORDERED])
    if masked:
        for _ in range(pops):
            step.registers.pop()


def _compare_memory(opcode: int, pops: int) -> Run:
    def run(step: FloatStep) -> None:
        operand = _operand(step, opcode)
        if step.lacks(0):
            _nothing_to_compare(step, pops)
        else:
            _compare(step, operand, pops, small=_small(step, opcode))

    return run


def _compare_with(*, pops: int, quietly: bool = False) -> Run:
    def run(step: FloatStep) -> None:
        if step.lacks(0, step.index):
            _nothing_to_compare(step, pops)
        else:
            _compare(step, step.registers.get(step.index), pops, quietly=quietly)

    return run


def _compare_to_flags(*, pops: int, quietly: bool) -> Run:
    def run(step: FloatStep) -> None:
        registers = step.registers
        if step.lacks(0, step.index):
            order = extended.UNORDERED
            stays = not registers.missing()
        else:
            order, flags = extended.compare(
                registers.get(0), registers.get(step.index), quietly=quietly
            )
            stays = bool(registers.raised(flags) & EARLY)
        cpu = step.cpu
        eflags = cpu.read_register("eflags") & ~_STATUS_FLAGS
        cpu.write_register("eflags", eflags | _FLAGGED[order])
        for _ in range(0 if stays else pops):
            registers.pop()

    return run


def _test(step: FloatStep) -> None:
    """Ftst."""
    if step.lacks(0):
        _nothing_to_compare(step, 0)
    else:
        _compare(step, 0, 0)


_EXAMINED: Final = {
    NumberKind.UNSUPPORTED: 0,
    NumberKind.QUIET: C0,
    NumberKind.SIGNALLING: C0,
    NumberKind.NORMAL: C2,
    NumberKind.INFINITE: C2 | C0,
    NumberKind.ZERO: C3,
    NumberKind.TINY: C3 | C2,
}


def _examine(step: FloatStep) -> None:
    """Fxam."""
    registers = step.registers
    value = registers.get(0)
    code = C3 | C0 if registers.empty(0) else _EXAMINED[extended.kind_of(value)]
    registers.codes(code | (C1 if value & SIGN else 0))


def enter(table: InstructionTable) -> None:
    """Put these instructions into a table."""
    for opcode in (0xD8, 0xDA, 0xDC, 0xDE):
        for field in _OPERATIONS:
            table.memory[opcode, field] = _with_memory(opcode)
        table.memory[opcode, 2] = _compare_memory(opcode, 0)
        table.memory[opcode, 3] = _compare_memory(opcode, 1)
    for field in _OPERATIONS:
        modrm = 0xC0 | field << 3
        table.each(0xD8, modrm, _between(upon=False, pops=0))
        table.each(0xDC, modrm, _between(upon=True, pops=0))
        table.each(0xDE, modrm, _between(upon=True, pops=1))
    for opcode, modrm, pops in (
        *((0xD8, 0xD0, 0), (0xD8, 0xD8, 1), (0xDC, 0xD0, 0), (0xDC, 0xD8, 1)),
        (0xDE, 0xD0, 1),
    ):
        table.each(opcode, modrm, _compare_with(pops=pops))
    for modrm, pops in ((0xE0, 0), (0xE8, 1)):
        table.each(0xDD, modrm, _compare_with(pops=pops, quietly=True))
    for opcode, pops in ((0xDB, 0), (0xDF, 1)):
        table.each(opcode, 0xE8, _compare_to_flags(pops=pops, quietly=True))
        table.each(opcode, 0xF0, _compare_to_flags(pops=pops, quietly=False))
    table.registers |= {
        (0xD9, 0xE4): _test,
        (0xD9, 0xE5): _examine,
        (0xDA, 0xE9): _compare_with(pops=2, quietly=True),
        (0xDE, 0xD9): _compare_with(pops=2),
    }

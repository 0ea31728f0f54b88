"""The instructions of x87, carried out on a CPU's registers (SDM volume 1, chapter 8).

Where no host computes for the guest, an emulator's x87 is not to be had: each of its instructions
is done here, exactly, with its exceptions, its stack faults and its condition codes.

Of the instruction and operand before (FIP, FDP, the opcode) nothing is kept: fnstenv and fnsave
store zeros.
"""

import struct
from collections.abc import Callable
from typing import Final

from engine.arch.machine import ArchCpu, Insn, TrapError
from engine.arch.x86_64 import extended, transcendental
from engine.arch.x86_64.decode import OPERAND_SIZE, Decoded, decode
from engine.arch.x86_64.extended import (
    DENORMAL,
    INDEFINITE,
    INEXACT,
    INVALID,
    ONE,
    OVERFLOW,
    SIGN,
    UNDERFLOW,
    ZERO_DIVIDE,
    ControlWord,
    NumberKind,
    Operation,
    Real,
    Result,
)
from engine.arch.x86_64.operations import operand_address

INVALID_OPCODE, FLOATING_POINT = 6, 16
"""Exceptions of the processor."""
FWAIT: Final = 0x9B
_STACK_FAULT: Final = 0x40
_C0, _C1, _C2, _C3 = 0x100, 0x200, 0x400, 0x4000
_CODES: Final = _C0 | _C1 | _C2 | _C3
_SUMMARY, _EXCEPTIONS = 0x8080, 0x3F
_EARLY: Final = INVALID | DENORMAL | ZERO_DIVIDE
"""Exceptions that, if not masked, leave operands and stack as they were."""
_FRESH: Final = 0x37F
_CARRY, _PARITY, _ZERO, _STATUS_FLAGS = 1, 4, 0x40, 0x8D5

# Six bits more than a register has, for pi, log2 of e and 10, log10 and ln of 2.
_CONSTANTS: Final = {
    0xE9: Real(0, 0xD49A784BCD1B8AFE492BF6FF4DAFDB4C, -126),
    0xEA: Real(0, 0xB8AA3B295C17F0BBBE87FED0691D3E89, -127),
    0xEB: Real(0, 0xC90FDAA22168C234C4C6628B80DC1CD1, -126),
    0xEC: Real(0, 0x9A209A84FBCFF7988F8959AC0B7C9178, -129),
    0xED: Real(0, 0xB17217F7D1CF79ABC9E3B39803F2F6AF, -128),
}


class FloatStack:
    """The registers of x87, as one instruction sees and leaves them.

    Attributes:
        word: the control word.
        control: what it says.
        status: the status word without the top of the stack.
        top: number of the register that is st(0).
    """

    def __init__(self, cpu: ArchCpu) -> None:
        self._cpu = cpu
        self.word = self._word_before = cpu.read_register("fctrl")
        self.control = ControlWord.of(self.word)
        status = cpu.read_register("fstat")
        self._before = status
        self.status = status & ~0x3800
        self.top = status >> 11 & 7
        self.tags = self._tags_before = cpu.read_register("ftag")
        self._values: dict[int, int] = {}

    @property
    def pending(self) -> bool:
        """An exception waits that is not masked."""
        return bool(self.status & ~self.word & _EXCEPTIONS)

    def empty(self, index: int) -> bool:
        """True if nothing is in st(index)."""
        return self.tags >> 2 * (self.top + index & 7) & 3 == 3

    def get(self, index: int) -> int:
        """The value of st(index), whether or not it is empty."""
        number = self.top + index & 7
        if number in self._values:
            return self._values[number]
        # The emulator names them by their distance from the top as it was.
        return self._cpu.read_register(f"st{number - (self._before >> 11) & 7}")

    def put(self, index: int, value: int) -> None:
        """Set st(index)."""
        number = self.top + index & 7
        self._values[number] = value
        self.tags &= ~(3 << 2 * number)

    def free(self, index: int) -> None:
        """Mark st(index) as empty."""
        self.tags |= 3 << 2 * (self.top + index & 7)

    def push(self, value: int) -> None:
        """A new st(0)."""
        self.top = self.top - 1 & 7
        self.put(0, value)

    def pop(self) -> None:
        """St(1) is st(0)."""
        self.free(0)
        self.top = self.top + 1 & 7

    def raised(self, flags: int) -> int:
        """Note exceptions; those that are not masked."""
        self.status |= flags
        return flags & ~self.word & _EXCEPTIONS

    def codes(self, bits: int) -> None:
        """Set the condition codes."""
        self.status = self.status & ~_CODES | bits

    def direction(self, *, up: bool) -> None:
        """C1: whether the last result was rounded up."""
        self.status = self.status & ~_C1 | (_C1 if up else 0)

    def missing(self, *, full: bool = False) -> bool:
        """A stack fault; True if it is masked."""
        self.status |= _STACK_FAULT
        self.direction(up=full)
        return not self.raised(INVALID)

    def load_word(self, word: int) -> None:
        """Set the control word."""
        self.word = word & 0x1F3F | 0x40
        self.control = ControlWord.of(self.word)

    def reset(self) -> None:
        """As fninit leaves it."""
        self.load_word(_FRESH)
        self.status, self.top, self.tags = 0, 0, 0xFFFF

    @property
    def status_word(self) -> int:
        """The status word as a program sees it."""
        summary = _SUMMARY if self.pending else 0
        return self.status & ~_SUMMARY | summary | self.top << 11

    @property
    def tag_word(self) -> int:
        """Two bits a register: valid, zero, special, empty."""
        word = 0
        for number in range(8):
            tag = self.tags >> 2 * number & 3
            if tag != 3:
                kind = extended.kind_of(self.get(number - self.top & 7))
                tag = {NumberKind.ZERO: 1, NumberKind.NORMAL: 0}.get(kind, 2)
            word |= tag << 2 * number
        return word

    def load_tags(self, word: int) -> None:
        """Which registers are empty."""
        self.tags = sum(3 << 2 * number for number in range(8) if word >> 2 * number & 3 == 3)

    def leave(self) -> None:
        """Write all that has changed."""
        write = self._cpu.write_register
        status = self.status_word
        if status != self._before:
            write("fstat", status)
        if self.word != self._word_before:
            write("fctrl", self.word)
        for number, value in self._values.items():
            write(f"st{number - self.top & 7}", value)
        if self.tags != self._tags_before:
            write("ftag", self.tags)


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
    table = _IN_MEMORY if memory else _IN_REGISTERS
    field = decoded.reg if memory else decoded.modrm
    run = table.get((decoded.key, field))
    if run is None:
        raise TrapError(INVALID_OPCODE)
    if registers.pending and (decoded.key, field) not in _NO_WAIT[memory]:
        raise TrapError(FLOATING_POINT)
    address = operand_address(decoded, insn.raw, insn.address)[0](cpu) if memory else 0
    run(_Instruction(cpu, registers, decoded, address))
    registers.leave()


class _Instruction:
    """One instruction under way."""

    def __init__(
        self, cpu: ArchCpu, registers: FloatStack, decoded: Decoded, address: int
    ) -> None:
        self.cpu = cpu
        self.registers = registers
        self.address = address
        self.index = decoded.modrm & 7
        self.modrm = decoded.modrm
        self.field = decoded.reg
        self.short = bool(decoded.prefixes & OPERAND_SIZE)

    def load(self, size: int, *, signed: bool = False) -> int:
        """The operand in memory."""
        return int.from_bytes(self.cpu.read(self.address, size), "little", signed=signed)

    def keep(self, result: Result, index: int, pops: int = 0) -> None:
        """Put a result into st(index) unless an exception forbids it, then pop."""
        registers = self.registers
        if result.flags & ~registers.word & _EARLY:
            registers.raised(result.flags & _EARLY)
            registers.direction(up=False)
            return
        registers.raised(result.flags)
        registers.direction(up=result.up)
        registers.put(index, result.value)
        for _ in range(pops):
            registers.pop()

    def lacks(self, *indices: int) -> bool:
        """True if one of these registers is empty."""
        return any(self.registers.empty(index) for index in indices)

    def refuse(self, index: int, pops: int = 0) -> None:
        """An operand is missing: the result is the indefinite NaN."""
        if self.registers.missing():
            self.registers.put(index, INDEFINITE)
            for _ in range(pops):
                self.registers.pop()

    def store(self, result: Result, size: int, pops: int, forbidding: int) -> None:
        """Put a result into memory unless one of these exceptions forbids it."""
        registers = self.registers
        unmasked = result.flags & ~registers.word & _EXCEPTIONS
        if not unmasked & forbidding:
            self.cpu.write(self.address, result.value.to_bytes(size, "little"))
        registers.raised(result.flags)
        registers.direction(up=result.up)
        if not unmasked & forbidding:
            for _ in range(pops):
                registers.pop()


_Run = Callable[[_Instruction], None]


# -- arithmetic -----------------------------------------------------------------------------


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


def _operand(step: _Instruction, opcode: int) -> int:
    """An operand in memory, as a register would hold it."""
    if opcode in _INTEGERS:
        return extended.from_integer(step.load(_INTEGERS[opcode], signed=True))
    size = _SIZES[opcode]
    bits = step.load(size)
    return extended.from_single(bits) if size == 4 else extended.from_double(bits)


def _small(step: _Instruction, opcode: int) -> int:
    """The flag of an operand in memory that is denormal there."""
    size = _SIZES.get(opcode)
    return DENORMAL if size and extended.small(step.load(size), size) else 0


def _with_memory(opcode: int) -> _Run:
    def run(step: _Instruction) -> None:
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


def _between(*, upon: bool, pops: int) -> _Run:
    """St(0) and st(index), with the result in the one or the other."""

    def run(step: _Instruction) -> None:
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
    extended.LESS: _C0,
    extended.EQUAL: _C3,
    extended.GREATER: 0,
    extended.UNORDERED: _C0 | _C2 | _C3,
}
_FLAGGED: Final = {
    extended.LESS: _CARRY,
    extended.EQUAL: _ZERO,
    extended.GREATER: 0,
    extended.UNORDERED: _CARRY | _PARITY | _ZERO,
}


def _compare(
    step: _Instruction, other: int, pops: int, *, quietly: bool = False, small: int = 0
) -> None:
    """St(0) with a value that is there."""
    registers = step.registers
    order, flags = extended.compare(registers.get(0), other, quietly=quietly)
    if small and order != extended.UNORDERED:
        flags |= small
    unmasked = registers.raised(flags)
    registers.codes(_COMPARED[order])
    if not unmasked & _EARLY:
        for _ in range(pops):
            registers.pop()


def _nothing_to_compare(step: _Instruction, pops: int) -> None:
    masked = step.registers.missing()
    step.registers.codes(_COMPARED[extended.UNORDERED])
    if masked:
        for _ in range(pops):
            step.registers.pop()


def _compare_memory(opcode: int, pops: int) -> _Run:
    def run(step: _Instruction) -> None:
        operand = _operand(step, opcode)
        if step.lacks(0):
            _nothing_to_compare(step, pops)
        else:
            _compare(step, operand, pops, small=_small(step, opcode))

    return run


def _compare_with(*, pops: int, quietly: bool = False) -> _Run:
    def run(step: _Instruction) -> None:
        if step.lacks(0, step.index):
            _nothing_to_compare(step, pops)
        else:
            _compare(step, step.registers.get(step.index), pops, quietly=quietly)

    return run


def _compare_to_flags(*, pops: int, quietly: bool) -> _Run:
    def run(step: _Instruction) -> None:
        registers = step.registers
        if step.lacks(0, step.index):
            order = extended.UNORDERED
            stays = not registers.missing()
        else:
            order, flags = extended.compare(
                registers.get(0), registers.get(step.index), quietly=quietly
            )
            stays = bool(registers.raised(flags) & _EARLY)
        cpu = step.cpu
        eflags = cpu.read_register("eflags") & ~_STATUS_FLAGS
        cpu.write_register("eflags", eflags | _FLAGGED[order])
        for _ in range(0 if stays else pops):
            registers.pop()

    return run


def _test(step: _Instruction) -> None:
    """Ftst."""
    if step.lacks(0):
        _nothing_to_compare(step, 0)
    else:
        _compare(step, 0, 0)


_EXAMINED: Final = {
    NumberKind.UNSUPPORTED: 0,
    NumberKind.QUIET: _C0,
    NumberKind.SIGNALLING: _C0,
    NumberKind.NORMAL: _C2,
    NumberKind.INFINITE: _C2 | _C0,
    NumberKind.ZERO: _C3,
    NumberKind.TINY: _C3 | _C2,
}


def _examine(step: _Instruction) -> None:
    """Fxam."""
    registers = step.registers
    value = registers.get(0)
    code = _C3 | _C0 if registers.empty(0) else _EXAMINED[extended.kind_of(value)]
    registers.codes(code | (_C1 if value & SIGN else 0))


# -- loads and stores -----------------------------------------------------------------------


def _push(step: _Instruction, value: int, flags: int = 0) -> None:
    registers = step.registers
    if not registers.empty(7):
        if registers.missing(full=True):
            registers.push(INDEFINITE)
        return
    registers.direction(up=False)
    if not registers.raised(flags) & _EARLY:
        registers.push(value)


def _load_real(size: int) -> _Run:
    def run(step: _Instruction) -> None:
        bits = step.load(size)
        value = extended.from_single(bits) if size == 4 else extended.from_double(bits)
        flags = DENORMAL if extended.small(bits, size) else 0
        if extended.kind_of(value) is NumberKind.SIGNALLING:
            value, flags = extended.quiet(value), INVALID
        _push(step, value, flags)

    return run


def _load_integer(size: int) -> _Run:
    return lambda step: _push(step, extended.from_integer(step.load(size, signed=True)))


def _load_constant(step: _Instruction) -> None:
    control = step.registers.control.long
    _push(step, extended.rounded(_CONSTANTS[step.modrm], control).value)


def _load_register(step: _Instruction) -> None:
    registers = step.registers
    if not registers.empty(step.index):
        _push(step, registers.get(step.index))
    elif registers.missing():
        registers.push(INDEFINITE)


def _store_real(size: int, pops: int) -> _Run:
    def run(step: _Instruction) -> None:
        registers = step.registers
        if registers.empty(0):
            _store_indefinite(step, 0xFFC0_0000 if size == 4 else 0xFFF8 << 48, size, pops)
            return
        result = extended.narrowed(registers.get(0), size, registers.control)
        if result.flags & ~registers.word & (OVERFLOW | UNDERFLOW):
            result = Result(result.value, result.flags & ~INEXACT)
        step.store(result, size, pops, _EARLY | OVERFLOW | UNDERFLOW)

    return run


def _store_indefinite(step: _Instruction, value: int, size: int, pops: int) -> None:
    """Nothing is there to store."""
    registers = step.registers
    if not INVALID & ~registers.word:
        step.cpu.write(step.address, value.to_bytes(size, "little"))
    if registers.missing():
        for _ in range(pops):
            registers.pop()


def _store_extended(step: _Instruction) -> None:
    if step.registers.empty(0):
        _store_indefinite(step, INDEFINITE, 10, 1)
    else:
        step.store(Result(step.registers.get(0)), 10, 1, 0)


def _store_integer(size: int, pops: int, *, truncates: bool = False) -> _Run:
    def run(step: _Instruction) -> None:
        registers = step.registers
        if registers.empty(0):
            _store_indefinite(step, 1 << (8 * size - 1), size, pops)
            return
        rounding = extended.TRUNCATE if truncates else registers.control.rounding
        step.store(extended.to_integer(registers.get(0), size, rounding), size, pops, _EARLY)

    return run


def _store_decimal(step: _Instruction) -> None:
    registers = step.registers
    if registers.empty(0):
        _store_indefinite(step, 0xFFFF_C000_0000_0000_0000, 10, 1)
        return
    result = extended.to_decimal(registers.get(0), registers.control.rounding)
    step.store(result, 10, 1, _EARLY)


def _store_register(pops: int) -> _Run:
    def run(step: _Instruction) -> None:
        if step.lacks(0):
            step.refuse(step.index, pops)
        else:
            step.keep(Result(step.registers.get(0)), step.index, pops)

    return run


def _store_register_or_not(step: _Instruction) -> None:
    """A second opcode of fstp, to which nothing is missing."""
    if step.lacks(0):
        step.registers.direction(up=False)
        step.registers.pop()
    else:
        step.keep(Result(step.registers.get(0)), step.index, 1)


def _exchange(step: _Instruction) -> None:
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


def _move_if(*, holds: bool) -> _Run:
    def run(step: _Instruction) -> None:
        if step.lacks(0, step.index):
            step.refuse(0)
            return
        flags = step.cpu.read_register("eflags") & _CONDITIONS[step.field]
        if bool(flags) == holds:
            step.registers.put(0, step.registers.get(step.index))

    return run


# -- one operand, and more ------------------------------------------------------------------


def _unary(function: Callable[[int, ControlWord], Result]) -> _Run:
    def run(step: _Instruction) -> None:
        if step.lacks(0):
            step.refuse(0)
        else:
            step.keep(function(step.registers.get(0), step.registers.control), 0)

    return run


def _upon_next(function: Operation) -> _Run:
    """Of st(0) and st(1), into st(1), then pop."""

    def run(step: _Instruction) -> None:
        registers = step.registers
        if step.lacks(0, 1):
            step.refuse(1, 1)
        else:
            result = function(registers.get(0), registers.get(1), registers.control)
            step.keep(result, 1, 1)

    return run


def _scale(step: _Instruction) -> None:
    registers = step.registers
    if step.lacks(0, 1):
        step.refuse(0)
    else:
        result = extended.scale(registers.get(0), registers.get(1), registers.control)
        step.keep(result, 0)


def _remainder(*, nearest: bool) -> _Run:
    def run(step: _Instruction) -> None:
        registers = step.registers
        registers.status &= ~_C2
        if step.lacks(0, 1):
            step.refuse(0)
            return
        found = extended.remainder(
            registers.get(0), registers.get(1), registers.control, nearest=nearest
        )
        step.keep(found.result, 0)
        count = found.quotient
        if count is None or found.result.flags & ~registers.word & _EARLY:
            return
        registers.codes(
            (_C2 if found.partial else 0)
            | (_C1 if count & 1 else 0)
            | (_C3 if count & 2 else 0)
            | (_C0 if count & 4 else 0)
        )

    return run


def _two_results(step: _Instruction, first: Result, second: Result) -> None:
    """Replace st(0), then push."""
    registers = step.registers
    flags = first.flags | second.flags
    if flags & ~registers.word & _EARLY:
        registers.raised(flags & _EARLY)
        registers.direction(up=False)
        return
    registers.raised(flags)
    registers.direction(up=second.up)
    registers.put(0, first.value)
    registers.push(second.value)


def _no_room(step: _Instruction) -> bool:
    """True if st(0) is missing, or there is no room to push; that is then dealt with."""
    registers = step.registers
    if not step.lacks(0) and registers.empty(7):
        return False
    if registers.missing(full=not step.lacks(0)):
        registers.put(0, INDEFINITE)
        registers.push(INDEFINITE)
    return True


def _extract(step: _Instruction) -> None:
    if not _no_room(step):
        parts = extended.extract(step.registers.get(0))
        _two_results(step, Result(parts.exponent, parts.flags), Result(parts.significand))


def _reducible(step: _Instruction) -> bool:
    """C2 says that an angle is too large."""
    registers = step.registers
    large = transcendental.out_of_range(registers.get(0))
    if large:
        registers.codes(registers.status & (_C0 | _C3) | _C2)
    return not large


def _circular(function: Callable[[int, ControlWord], Result]) -> _Run:
    def run(step: _Instruction) -> None:
        registers = step.registers
        registers.status &= ~_C2
        if step.lacks(0):
            step.refuse(0)
        elif _reducible(step):
            step.keep(function(registers.get(0), registers.control), 0)

    return run


def _sine_and_cosine(step: _Instruction) -> None:
    registers = step.registers
    registers.status &= ~_C2
    if not _no_room(step) and _reducible(step):
        value = registers.get(0)
        sine, cosine = (
            function(value, registers.control)
            for function in (transcendental.sine, transcendental.cosine)
        )
        _two_results(step, sine, cosine)


def _tangent(step: _Instruction) -> None:
    registers = step.registers
    registers.status &= ~_C2
    if not _no_room(step) and _reducible(step):
        found = transcendental.tangent(registers.get(0), registers.control)
        nan = extended.refused(found.value) is not None
        _two_results(step, found, Result(found.value if nan else ONE, 0, found.up))


def _changed_sign(value: int, control: ControlWord) -> Result:
    return Result(value ^ SIGN)


def _absolute(value: int, control: ControlWord) -> Result:
    return Result(value & ~SIGN)


def _angle(width: int, height: int, control: ControlWord) -> Result:
    return transcendental.angle(height, width, control)


# -- the unit itself ------------------------------------------------------------------------


def _nothing(step: _Instruction) -> None:
    """Fnop, and instructions of older processors."""


def _turn(by: int) -> _Run:
    def run(step: _Instruction) -> None:
        step.registers.top = step.registers.top + by & 7
        step.registers.direction(up=False)

    return run


def _free(pops: int) -> _Run:
    def run(step: _Instruction) -> None:
        step.registers.free(step.index)
        step.registers.direction(up=False)
        if pops:
            step.registers.pop()

    return run


def _clear(step: _Instruction) -> None:
    step.registers.status &= 0x7F00


def _reset(step: _Instruction) -> None:
    step.registers.reset()


def _load_control(step: _Instruction) -> None:
    step.registers.load_word(step.load(2))


def _store_control(step: _Instruction) -> None:
    step.cpu.write(step.address, step.registers.word.to_bytes(2, "little"))


def _store_status(step: _Instruction) -> None:
    step.cpu.write(step.address, step.registers.status_word.to_bytes(2, "little"))


def _status_to_ax(step: _Instruction) -> None:
    cpu = step.cpu
    word = step.registers.status_word
    cpu.write_register("rax", cpu.read_register("rax") & ~0xFFFF | word)


def _environment(step: _Instruction) -> bytes:
    registers = step.registers
    words = registers.word, registers.status_word, registers.tag_word
    if step.short:
        return struct.pack("<7H", *words, 0, 0, 0, 0)
    ones = 0xFFFF0000
    return struct.pack("<7I", *(ones | word for word in words), 0, 0, 0, ones)


def _store_environment(step: _Instruction) -> None:
    step.cpu.write(step.address, _environment(step))
    step.registers.load_word(step.registers.word | _EXCEPTIONS)


def _save(step: _Instruction) -> None:
    registers = step.registers
    values = b"".join(registers.get(index).to_bytes(10, "little") for index in range(8))
    step.cpu.write(step.address, _environment(step) + values)
    registers.reset()


def _load_environment(step: _Instruction) -> None:
    _set_environment(step, step.cpu.read(step.address, 14 if step.short else 28))


def _set_environment(step: _Instruction, image: bytes) -> None:
    form = "<3H8x" if step.short else "<H2xH2xH18x"
    control, status, tags = struct.unpack_from(form, image)
    registers = step.registers
    registers.load_word(control)
    registers.status, registers.top = status & ~0x3800, status >> 11 & 7
    registers.load_tags(tags)


def _restore(step: _Instruction) -> None:
    size = 14 if step.short else 28
    image = step.cpu.read(step.address, size + 80)
    _set_environment(step, image)
    tags = step.registers.tags
    for index in range(8):
        value = int.from_bytes(image[size + 10 * index :][:10], "little")
        step.registers.put(index, value)
    step.registers.load_tags(tags)


def _tables() -> tuple[dict[tuple[int, int], _Run], dict[tuple[int, int], _Run]]:
    """By (opcode, ModRM.reg), and by (opcode, ModRM)."""
    memory: dict[tuple[int, int], _Run] = {}
    registers: dict[tuple[int, int], _Run] = {}

    def each(opcode: int, modrm: int, run: _Run) -> None:
        """For all of st(0) to st(7)."""
        registers.update({(opcode, modrm | index): run for index in range(8)})

    for opcode in (0xD8, 0xDA, 0xDC, 0xDE):
        for field in _OPERATIONS:
            memory[opcode, field] = _with_memory(opcode)
        memory[opcode, 2] = _compare_memory(opcode, 0)
        memory[opcode, 3] = _compare_memory(opcode, 1)
    for field in _OPERATIONS:
        modrm = 0xC0 | field << 3
        each(0xD8, modrm, _between(upon=False, pops=0))
        each(0xDC, modrm, _between(upon=True, pops=0))
        each(0xDE, modrm, _between(upon=True, pops=1))
    for opcode, size in ((0xD9, 4), (0xDD, 8)):
        memory[opcode, 0] = _load_real(size)
        memory[opcode, 2] = _store_real(size, 0)
        memory[opcode, 3] = _store_real(size, 1)
    for opcode, size in ((0xDB, 4), (0xDF, 2)):
        memory[opcode, 0] = _load_integer(size)
        memory[opcode, 2] = _store_integer(size, 0)
        memory[opcode, 3] = _store_integer(size, 1)
    for opcode, size in ((0xDB, 4), (0xDF, 2), (0xDD, 8)):
        memory[opcode, 1] = _store_integer(size, 1, truncates=True)
    memory |= {
        (0xDB, 5): lambda step: _push(step, step.load(10)),
        (0xDB, 7): _store_extended,
        (0xDF, 4): lambda step: _push(step, extended.from_decimal(step.load(10))),
        (0xDF, 5): _load_integer(8),
        (0xDF, 6): _store_decimal,
        (0xDF, 7): _store_integer(8, 1),
        (0xD9, 4): _load_environment,
        (0xD9, 5): _load_control,
        (0xD9, 6): _store_environment,
        (0xD9, 7): _store_control,
        (0xDD, 4): _restore,
        (0xDD, 6): _save,
        (0xDD, 7): _store_status,
    }
    for opcode, modrm, pops in (
        *((0xD8, 0xD0, 0), (0xD8, 0xD8, 1), (0xDC, 0xD0, 0), (0xDC, 0xD8, 1)),
        (0xDE, 0xD0, 1),
    ):
        each(opcode, modrm, _compare_with(pops=pops))
    for modrm, pops in ((0xE0, 0), (0xE8, 1)):
        each(0xDD, modrm, _compare_with(pops=pops, quietly=True))
    for opcode, pops in ((0xDB, 0), (0xDF, 1)):
        each(opcode, 0xE8, _compare_to_flags(pops=pops, quietly=True))
        each(opcode, 0xF0, _compare_to_flags(pops=pops, quietly=False))
    for field in range(4):
        each(0xDA, 0xC0 | field << 3, _move_if(holds=True))
        each(0xDB, 0xC0 | field << 3, _move_if(holds=False))
    for opcode, modrm in ((0xD9, 0xC8), (0xDD, 0xC8), (0xDF, 0xC8)):
        each(opcode, modrm, _exchange)
    each(0xD9, 0xD8, _store_register_or_not)
    for opcode, modrm in ((0xDD, 0xD8), (0xDF, 0xD0), (0xDF, 0xD8)):
        each(opcode, modrm, _store_register(1))
    each(0xD9, 0xC0, _load_register)
    each(0xDD, 0xC0, _free(0))
    each(0xDF, 0xC0, _free(1))
    each(0xDD, 0xD0, _store_register(0))
    registers |= {(0xD9, modrm): _load_constant for modrm in _CONSTANTS}
    registers |= {
        (0xD9, 0xD0): _nothing,
        (0xD9, 0xE0): _unary(_changed_sign),
        (0xD9, 0xE1): _unary(_absolute),
        (0xD9, 0xE4): _test,
        (0xD9, 0xE5): _examine,
        (0xD9, 0xE8): lambda step: _push(step, ONE),
        (0xD9, 0xEE): lambda step: _push(step, 0),
        (0xD9, 0xF0): _unary(transcendental.power_less_one),
        (0xD9, 0xF1): _upon_next(transcendental.times_log),
        (0xD9, 0xF2): _tangent,
        (0xD9, 0xF3): _upon_next(_angle),
        (0xD9, 0xF4): _extract,
        (0xD9, 0xF5): _remainder(nearest=True),
        (0xD9, 0xF6): _turn(-1),
        (0xD9, 0xF7): _turn(1),
        (0xD9, 0xF8): _remainder(nearest=False),
        (0xD9, 0xF9): _upon_next(transcendental.times_log_of_next),
        (0xD9, 0xFA): _unary(extended.root),
        (0xD9, 0xFB): _sine_and_cosine,
        (0xD9, 0xFC): _unary(extended.whole),
        (0xD9, 0xFD): _scale,
        (0xD9, 0xFE): _circular(transcendental.sine),
        (0xD9, 0xFF): _circular(transcendental.cosine),
        (0xDB, 0xE0): _nothing,
        (0xDB, 0xE1): _nothing,
        (0xDB, 0xE2): _clear,
        (0xDB, 0xE3): _reset,
        (0xDB, 0xE4): _nothing,
        (0xDA, 0xE9): _compare_with(pops=2, quietly=True),
        (0xDE, 0xD9): _compare_with(pops=2),
        (0xDF, 0xE0): _status_to_ax,
    }
    return memory, registers


_IN_MEMORY, _IN_REGISTERS = _tables()
_NO_WAIT: Final = {
    True: frozenset({(0xD9, 6), (0xD9, 7), (0xDD, 6), (0xDD, 7)}),
    False: frozenset({(0xDB, 0xE0), (0xDB, 0xE1), (0xDB, 0xE2), (0xDB, 0xE3), (0xDF, 0xE0)}),
}
"""Instructions that do not look for exceptions before them."""

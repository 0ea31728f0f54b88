"""Floating point of SSE, exact, under any MXCSR: SDM volume 1, chapters 4 and 11.

Where no host computes, an emulator heeds neither MXCSR's masks nor flushing to zero. Under such a
control its instructions are carried out here, with all flags, on floats and doubles as integers.
"""

from collections.abc import Callable, Sequence
from typing import Final

from engine.arch.machine import ArchCpu, Insn, RegisterFile, TrapError
from engine.arch.x86_64 import extended
from engine.arch.x86_64.decode import OPERAND_SIZE, REP, REPNE, Decoded, decode
from engine.arch.x86_64.extended import (
    DENORMAL,
    DOUBLE,
    INEXACT,
    INVALID,
    SINGLE,
    UNDERFLOW,
    ZERO_DIVIDE,
    ControlWord,
    NumberKind,
    Real,
    kind_of,
)
from engine.arch.x86_64.operations import NAMES, operand_address
from engine.arch.x86_64.sse import enter_mmx, mmx, set_mmx

_PROTECTION, _SIMD = 13, 19
_EARLY: Final = INVALID | DENORMAL | ZERO_DIVIDE
_MASKED: Final = 0x1F80
_DENORMALS_ARE_ZEROS, _FLUSH_TO_ZERO = 0x40, 0x8000
_STATUS: Final = 0x8D5
_NANS: Final = (NumberKind.QUIET, NumberKind.SIGNALLING)


def unusual(cpu: RegisterFile) -> bool:
    """True if MXCSR masks not all exceptions, or has denormal numbers flushed."""
    mxcsr = cpu.read_register("mxcsr")
    return ~mxcsr & _MASKED != 0 or mxcsr & (_DENORMALS_ARE_ZEROS | _FLUSH_TO_ZERO) != 0


class VectorUnit:
    """Arithmetic under one MXCSR; flags of all that is computed add up.

    Attributes:
        flags: exceptions so far.
        size: bytes of the numbers.
    """

    def __init__(self, mxcsr: int, size: int) -> None:
        self.flags = 0
        self.size = size
        self.control = ControlWord(mxcsr >> 7 & 0x3F, 64, mxcsr >> 13 & 3)
        self._zeros = bool(mxcsr & _DENORMALS_ARE_ZEROS)
        self._flush = bool(mxcsr & _FLUSH_TO_ZERO and mxcsr >> 7 & UNDERFLOW)

    def take(self, bits: int, size: int = 0) -> int:
        """An operand as a register of x87 would hold it."""
        size = size or self.size
        if self._zeros and extended.small(bits, size):
            bits &= 1 << (8 * size - 1)
        return extended.from_single(bits) if size == 4 else extended.from_double(bits)

    def give(self, value: int) -> int:
        """Bits of an infinity, a NaN or zero, which need no rounding."""
        masked = ControlWord(0x3F, 64, 0)
        return extended.narrowed(value, self.size, masked).value

    def rounded(self, number: Real) -> int:
        """A finite result."""
        form = SINGLE if self.size == 4 else DOUBLE
        strict = ControlWord(self.control.masks & ~UNDERFLOW, 64, self.control.rounding)
        _, flags, _ = extended.fit(number, form, strict)
        sign = number.sign << (8 * self.size - 1)
        if flags & UNDERFLOW and self._flush:
            self.flags |= UNDERFLOW | INEXACT
            return sign
        if flags & UNDERFLOW and self.control.masks & UNDERFLOW == 0:
            self.flags |= flags
            return sign
        found = extended.shortened(number, self.size, self.control)
        self.flags |= found.flags
        return found.value

    def nan(self, *values: int) -> int | None:
        """The first NaN of these, made quiet; None if there is none."""
        nans = [value for value in values if kind_of(value) in _NANS]
        if any(kind_of(value) is NumberKind.SIGNALLING for value in nans):
            self.flags |= INVALID
        return self.give(extended.quiet(nans[0])) if nans else None

    def note(self, *values: int) -> None:
        """Flag operands that are denormal in this format."""
        form = SINGLE if self.size == 4 else DOUBLE
        for value in values:
            if kind_of(value) in (NumberKind.NORMAL, NumberKind.TINY):
                self.flags |= DENORMAL if extended.real(value).magnitude < form.least else 0

    @property
    def indefinite(self) -> int:
        """The NaN of an invalid operation, which is flagged."""
        self.flags |= INVALID
        return self.give(extended.INDEFINITE)

    def add(self, first: int, second: int) -> int:
        """The sum of two operands' bits."""
        one, other = self.take(first), self.take(second)
        nan = self.nan(one, other)
        if nan is not None:
            return nan
        if extended.infinite(one) and extended.infinite(other) and one != other:
            return self.indefinite
        self.note(one, other)
        if extended.infinite(one) or extended.infinite(other):
            return self.give(one if extended.infinite(one) else other)
        return self.rounded(extended.total(extended.real(one), extended.real(other), self.control))

    def subtract(self, first: int, second: int) -> int:
        """The difference; a NaN keeps its sign."""
        if kind_of(self.take(second)) not in _NANS:
            second ^= 1 << (8 * self.size - 1)
        return self.add(first, second)

    def multiply(self, first: int, second: int) -> int:
        """The product."""
        one, other = self.take(first), self.take(second)
        nan = self.nan(one, other)
        if nan is not None:
            return nan
        sign = (one ^ other) & extended.SIGN
        if extended.infinite(one) or extended.infinite(other):
            if not one & ~extended.SIGN or not other & ~extended.SIGN:
                return self.indefinite
            self.note(one, other)
            return self.give(sign | extended.INFINITY)
        self.note(one, other)
        left, right = extended.real(one), extended.real(other)
        product = left.significand * right.significand
        return self.rounded(Real(sign >> 79, product, left.exponent + right.exponent))

    def divide(self, first: int, second: int) -> int:
        """The quotient."""
        one, other = self.take(first), self.take(second)
        nan = self.nan(one, other)
        if nan is not None:
            return nan
        sign = (one ^ other) & extended.SIGN
        zero = not other & ~extended.SIGN
        if extended.infinite(one) and extended.infinite(other):
            return self.indefinite
        if zero and not one & ~extended.SIGN:
            return self.indefinite
        if extended.infinite(one):
            self.note(other)
            return self.give(sign | extended.INFINITY)
        if zero:
            self.flags |= ZERO_DIVIDE
            return self.give(sign | extended.INFINITY)
        self.note(one, other)
        if extended.infinite(other):
            return self.give(sign)
        return self.rounded(extended.quotient(extended.real(one), extended.real(other)))

    def root(self, second: int) -> int:
        """The square root."""
        value = self.take(second)
        nan = self.nan(value)
        if nan is not None:
            return nan
        if not value & ~extended.SIGN:
            return self.give(value)
        if value & extended.SIGN:
            return self.indefinite
        self.note(value)
        if extended.infinite(value):
            return self.give(value)
        return self.rounded(extended.square_root(extended.real(value)))

    def order(self, first: int, second: int, *, quietly: bool) -> int:
        """LESS, EQUAL, GREATER or UNORDERED."""
        one, other = self.take(first), self.take(second)
        found, flags = extended.compare(one, other, quietly=quietly)
        self.flags |= flags & INVALID
        if found != extended.UNORDERED:
            self.note(one, other)
        return found

    def least(self, first: int, second: int) -> int:
        """The first if it is less, else the second."""
        less = self.order(first, second, quietly=False) == extended.LESS
        return self._chosen(first if less else second)

    def greatest(self, first: int, second: int) -> int:
        """The first if it is greater, else the second."""
        greater = self.order(first, second, quietly=False) == extended.GREATER
        return self._chosen(first if greater else second)

    def _chosen(self, bits: int) -> int:
        small = self._zeros and extended.small(bits, self.size)
        return bits & 1 << (8 * self.size - 1) if small else bits

    def converted(self, bits: int, size: int) -> int:
        """A number of `size` bytes in the format of this unit."""
        value = self.take(bits, size)
        nan = self.nan(value)
        if nan is not None:
            return nan
        if extended.small(bits, size) and not self._zeros:
            self.flags |= DENORMAL
        if extended.infinite(value):
            return self.give(value)
        return self.rounded(extended.real(value))

    def integer(self, bits: int, size: int, *, truncated: bool) -> int:
        """A number as a signed integer of `size` bytes."""
        rounding = extended.TRUNCATE if truncated else self.control.rounding
        found = extended.to_integer(self.take(bits), size, rounding)
        self.flags |= found.flags
        return found.value

    def whole(self, bits: int, rounding: int, *, silent: bool) -> int:
        """A number rounded to an integer."""
        control = ControlWord(0x3F, 64, rounding)
        found = extended.whole(self.take(bits), control)
        self.flags |= found.flags & (INVALID if silent else INVALID | INEXACT)
        return self.give(found.value)


_BINARY: Final[dict[int, Callable[[VectorUnit, int, int], int]]] = {
    0x158: VectorUnit.add,
    0x159: VectorUnit.multiply,
    0x15C: VectorUnit.subtract,
    0x15D: VectorUnit.least,
    0x15E: VectorUnit.divide,
    0x15F: VectorUnit.greatest,
}
_ROOT, _COMPARE, _PRECISION, _DWORDS, _DOUBLES = 0x151, 0x1C2, 0x15A, 0x15B, 0x1E6
_FROM_INTEGER, _TRUNCATED, _TO_INTEGER, _QUIETLY, _FLAGGED = 0x12A, 0x12C, 0x12D, 0x12E, 0x12F
_SUMS, _DIFFERENCES, _BOTH = 0x17C, 0x17D, 0x1D0
_ROUNDINGS: Final = {0x308: (4, 4), 0x309: (8, 2), 0x30A: (4, 1), 0x30B: (8, 1)}
_PRODUCTS: Final = {0x340: (4, 4), 0x341: (8, 2)}
_ORDERS: Final = {
    extended.LESS: 0x01,
    extended.EQUAL: 0x40,
    extended.GREATER: 0,
    extended.UNORDERED: 0x45,
}
_ALL: Final = frozenset(
    (
        *_BINARY,
        *(_ROOT, _COMPARE, _PRECISION, _DWORDS, _DOUBLES, _FROM_INTEGER, _TRUNCATED, _TO_INTEGER),
        *(_QUIETLY, _FLAGGED, _SUMS, _DIFFERENCES, _BOTH, *_ROUNDINGS, *_PRODUCTS),
    )
)
OPCODES: Final = frozenset(key & 0xFF for key in _ALL if key < 0x200)
"""Second bytes of opcodes that are here, but for those behind 0f 3a."""


def computes(insn: Decoded) -> bool:
    """True for arithmetic on floats and doubles that can raise an exception."""
    if insn.key == _DOUBLES:
        return not insn.prefixes & REP
    if insn.key == _FROM_INTEGER:
        return insn.prefixes & (REP | REPNE) != 0 or not insn.prefixes & OPERAND_SIZE
    return insn.key in _ALL


def _moves_mmx(insn: Decoded) -> bool:
    """True for a conversion from, or to, a register of MMX."""
    if insn.prefixes & (REP | REPNE):
        return False
    return insn.key in (_TRUNCATED, _TO_INTEGER) or (insn.key == _FROM_INTEGER and not insn.memory)


def silent(insn: Decoded, raw: bytes) -> bool:
    """True for a rounding to integers that is not to be flagged as inexact."""
    return insn.key in _ROUNDINGS and raw[insn.immediate_at] & 8 != 0


def _shape(insn: Decoded) -> tuple[int, int]:
    """Size and number of what it computes, by its prefix."""
    if insn.key in (_SUMS, _DIFFERENCES, _BOTH):
        return (8, 2) if insn.prefixes & OPERAND_SIZE else (4, 4)
    if insn.prefixes & REP:
        return 4, 1
    if insn.prefixes & REPNE:
        return 8, 1
    return (8, 2) if insn.prefixes & OPERAND_SIZE else (4, 4)


class _Operands:
    """The operands of one instruction."""

    def __init__(self, cpu: ArchCpu, insn: Insn, decoded: Decoded) -> None:
        self.cpu = cpu
        self.decoded = decoded
        self.number = decoded.reg | (decoded.rex & 4) << 1
        self.other = decoded.modrm & 7 | (decoded.rex & 1) << 3
        self.immediate = insn.raw[decoded.immediate_at] if decoded.immediate_size else 0
        self._insn = insn

    def memory(self, size: int) -> int:
        """The operand in memory, which must be aligned if it is as long as a register."""
        decoded, insn = self.decoded, self._insn
        address = operand_address(decoded, insn.raw, insn.address)[0](self.cpu)
        if size == 16 and address & 15:
            raise TrapError(_PROTECTION)
        return int.from_bytes(self.cpu.read(address, size), "little")

    def source(self, size: int) -> int:
        """The second operand."""
        if self.decoded.memory:
            return self.memory(size)
        return self.cpu.read_register(f"xmm{self.other}") & ((1 << 8 * size) - 1)

    @property
    def target(self) -> int:
        """The first one."""
        return self.cpu.read_register(f"xmm{self.number}")

    def put(self, value: int, size: int) -> None:
        """Replace so many bytes of the first one."""
        mask = (1 << 8 * size) - 1
        self.cpu.write_register(f"xmm{self.number}", self.target & ~mask | value & mask)


def _lanes(value: int, size: int, count: int) -> list[int]:
    mask = (1 << 8 * size) - 1
    return [value >> 8 * size * at & mask for at in range(count)]


def _joined(lanes: Sequence[int], size: int) -> int:
    return sum(lane << 8 * size * at for at, lane in enumerate(lanes))


def emulate(cpu: ArchCpu, insn: Insn) -> None:
    """Carry out an instruction of which `computes` is true; the pc stays.

    Raises:
        TrapError: an exception is not masked, or its operand is not aligned.
        GuestFaultError: of its operand.
    """
    decoded = decode(insn.raw)
    assert decoded is not None
    operands = _Operands(cpu, insn, decoded)
    mxcsr = cpu.read_register("mxcsr")
    unit = VectorUnit(mxcsr, _shape(decoded)[0])
    store = _computed(operands, unit)
    unmasked = unit.flags & ~(mxcsr >> 7)
    if unmasked:
        told = unit.flags & _EARLY if unmasked & _EARLY else unit.flags
        cpu.write_register("mxcsr", mxcsr | told)
        if _moves_mmx(decoded):
            enter_mmx(cpu)
        raise TrapError(_SIMD)
    if unit.flags:
        cpu.write_register("mxcsr", mxcsr | unit.flags)
    store()


_Store = Callable[[], None]


def _computed(operands: _Operands, unit: VectorUnit) -> _Store:
    """Compute; what then stores the result."""
    key = operands.decoded.key
    if key in _CONVERSIONS:
        return _CONVERSIONS[key](operands, unit)
    size, count = _ROUNDINGS.get(key) or _PRODUCTS.get(key) or _shape(operands.decoded)
    unit.size = size
    first = _lanes(operands.target, size, count)
    second = _lanes(operands.source(size * count), size, count)
    pairs = list(zip(first, second, strict=True))
    if key in _BINARY:
        found = [_BINARY[key](unit, one, other) for one, other in pairs]
    elif key == _ROOT:
        found = [unit.root(each) for each in second]
    elif key == _COMPARE:
        ones = (1 << 8 * size) - 1
        found = [ones * _holds(unit, one, other, operands.immediate) for one, other in pairs]
    elif key in _ROUNDINGS:
        how = operands.immediate
        rounding = unit.control.rounding if how & 4 else how & 3
        found = [unit.whole(each, rounding, silent=bool(how & 8)) for each in second]
    elif key in _PRODUCTS:
        found = _dot(unit, pairs, operands.immediate)
    elif key == _BOTH:
        found = [
            (unit.add if at & 1 else unit.subtract)(one, other)
            for at, (one, other) in enumerate(pairs)
        ]
    else:
        sides = first + second
        combine = unit.add if key == _SUMS else unit.subtract
        found = [combine(sides[at], sides[at + 1]) for at in range(0, 2 * count, 2)]
    return lambda: operands.put(_joined(found, size), size * count)


def _holds(unit: VectorUnit, one: int, other: int, predicate: int) -> bool:
    order = unit.order(one, other, quietly=predicate & 3 in (0, 3))
    wanted = (
        (extended.EQUAL,),
        (extended.LESS,),
        (extended.LESS, extended.EQUAL),
        (extended.UNORDERED,),
    )[predicate & 3]
    return (order in wanted) != bool(predicate & 4)


def _dot(unit: VectorUnit, pairs: list[tuple[int, int]], how: int) -> list[int]:
    products = [
        unit.multiply(one, other) if how >> 4 + at & 1 else 0
        for at, (one, other) in enumerate(pairs)
    ]
    while len(products) > 1:
        products = [unit.add(*products[at : at + 2]) for at in range(0, len(products), 2)]
    return [products[0] if how >> at & 1 else 0 for at in range(len(pairs))]


# -- conversions ----------------------------------------------------------------------------


def _precision(operands: _Operands, unit: VectorUnit) -> _Store:
    """Cvtps2pd, cvtpd2ps, cvtss2sd, cvtsd2ss."""
    size, count = _shape(operands.decoded)
    count = min(count, 2)
    unit.size = 12 - size
    lanes = _lanes(operands.source(size * count), size, count)
    found = _joined([unit.converted(each, size) for each in lanes], unit.size)
    width = unit.size * count
    return lambda: operands.put(found, 16 if count == 2 else width)


def _dwords(operands: _Operands, unit: VectorUnit) -> _Store:
    """Cvtdq2ps, cvtps2dq and cvttps2dq."""
    unit.size = 4
    lanes = _lanes(operands.source(16), 4, 4)
    prefixes = operands.decoded.prefixes
    if prefixes & (OPERAND_SIZE | REP):
        truncated = bool(prefixes & REP)
        found = [unit.integer(each, 4, truncated=truncated) for each in lanes]
    else:
        found = [_from_integer(unit, each, 4) for each in lanes]
    return lambda: operands.put(_joined(found, 4), 16)


def _doubles(operands: _Operands, unit: VectorUnit) -> _Store:
    """Cvttpd2dq and cvtpd2dq."""
    unit.size = 8
    truncated = not operands.decoded.prefixes & REPNE
    lanes = _lanes(operands.source(16), 8, 2)
    found = [unit.integer(each, 4, truncated=truncated) for each in lanes]
    return lambda: operands.put(_joined(found, 4), 16)


def _from_integer(unit: VectorUnit, bits: int, size: int) -> int:
    value = bits - (bits >> 8 * size - 1 << 8 * size)
    return unit.rounded(Real(int(value < 0), abs(value), 0))


def _of_integer(operands: _Operands, unit: VectorUnit) -> _Store:
    """Cvtsi2ss, cvtsi2sd and cvtpi2ps."""
    decoded, cpu = operands.decoded, operands.cpu
    if not decoded.prefixes & (REP | REPNE):
        value = operands.memory(8) if decoded.memory else mmx(cpu, operands.other & 7)
        found = _joined([_from_integer(unit, each, 4) for each in _lanes(value, 4, 2)], 4)

        def store() -> None:
            if not decoded.memory:
                set_mmx(cpu, operands.other & 7, value)
            operands.put(found, 8)

        return store
    size = 8 if decoded.wide else 4
    if decoded.memory:
        value = operands.memory(size)
    else:
        value = cpu.read_register(NAMES[operands.other]) & ((1 << 8 * size) - 1)
    result = _from_integer(unit, value, size)
    return lambda: operands.put(result, unit.size)


def _to_integer(operands: _Operands, unit: VectorUnit) -> _Store:
    """Cvtss2si and its like, and those to MMX."""
    decoded, cpu = operands.decoded, operands.cpu
    truncated = decoded.key == _TRUNCATED
    if decoded.prefixes & (REP | REPNE):
        size = 8 if decoded.wide else 4
        found = unit.integer(operands.source(unit.size), size, truncated=truncated)
        return lambda: cpu.write_register(NAMES[operands.number], found)
    lanes = _lanes(operands.source(2 * unit.size), unit.size, 2)
    packed = _joined([unit.integer(each, 4, truncated=truncated) for each in lanes], 4)
    return lambda: set_mmx(cpu, operands.number & 7, packed)


def _to_flags(operands: _Operands, unit: VectorUnit) -> _Store:
    """Ucomiss, ucomisd, comiss and comisd."""
    one, other = operands.target, operands.source(unit.size)
    one &= (1 << 8 * unit.size) - 1
    order = unit.order(one, other, quietly=operands.decoded.key == _QUIETLY)
    cpu = operands.cpu
    eflags = cpu.read_register("eflags") & ~_STATUS | _ORDERS[order]
    return lambda: cpu.write_register("eflags", eflags)


_CONVERSIONS: Final[dict[int, Callable[[_Operands, VectorUnit], _Store]]] = {
    _PRECISION: _precision,
    _DWORDS: _dwords,
    _DOUBLES: _doubles,
    _FROM_INTEGER: _of_integer,
    _TRUNCATED: _to_integer,
    _TO_INTEGER: _to_integer,
    _QUIETLY: _to_flags,
    _FLAGGED: _to_flags,
}

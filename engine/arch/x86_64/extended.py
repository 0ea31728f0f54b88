"""Numbers of x87 and their arithmetic, exact: SDM volume 1, chapters 4 and 8.

A register is an integer of 80 bits: sign, 15 bits of exponent, 64 of significand with its first
bit. Results are found with whole numbers of any length and rounded once. Nothing here knows of
stacks or instructions.
"""

from collections.abc import Callable
from enum import Enum, auto
from math import isqrt
from typing import Final

from msgspec import Struct

INVALID, DENORMAL, ZERO_DIVIDE, OVERFLOW, UNDERFLOW, INEXACT = (1 << bit for bit in range(6))
"""Exceptions, as bits of the status word and of the masks in the control word."""
NEAREST, DOWN, UP, TRUNCATE = range(4)
"""Ways of rounding, as numbers in the control word."""

SIGN: Final = 1 << 79
ONE: Final = 0x3FFF << 64 | 1 << 63
INFINITY: Final = 0x7FFF << 64 | 1 << 63
INDEFINITE: Final = 0xFFFF << 64 | 3 << 62
"""The NaN that an invalid operation gives."""
_TOP: Final = 1 << 63
_QUIET: Final = 1 << 62
_LOW: Final = (1 << 64) - 1
_BIAS: Final = 16383
_UNIT: Final = _BIAS + 63
"""A biased exponent less this is that of the significand's last bit."""
_LEAST, _MOST = 1 - _BIAS, _BIAS
_WRAP: Final = 24576
"""Added to, or taken from, the exponent of a result with an exception that is not masked."""


class NumberKind(Enum):
    """Sorts of numbers."""

    ZERO = auto()
    TINY = auto()
    """With the least exponent: denormal, or what only looks so."""
    NORMAL = auto()
    INFINITE = auto()
    QUIET = auto()
    SIGNALLING = auto()
    UNSUPPORTED = auto()
    """Without its first bit, as no instruction makes it."""


def kind_of(value: int) -> NumberKind:
    """The sort of a register's value."""
    exponent, significand = value >> 64 & 0x7FFF, value & _LOW
    if not exponent:
        return NumberKind.TINY if significand else NumberKind.ZERO
    if not significand & _TOP:
        return NumberKind.UNSUPPORTED
    if exponent != 0x7FFF:
        return NumberKind.NORMAL
    if significand == _TOP:
        return NumberKind.INFINITE
    return NumberKind.QUIET if significand & _QUIET else NumberKind.SIGNALLING


class ControlWord(Struct, frozen=True):
    """A control word.

    Attributes:
        masks: exceptions that are masked.
        precision: bits of a significand: 24, 53 or 64.
        rounding: NEAREST, DOWN, UP or TRUNCATE.
    """

    masks: int
    precision: int
    rounding: int

    @classmethod
    def of(cls, word: int) -> "ControlWord":
        """Read a control word; the reserved precision is taken for the longest."""
        return cls(word & 0x3F, (24, 64, 53, 64)[word >> 8 & 3], word >> 10 & 3)

    @property
    def long(self) -> "ControlWord":
        """The same with 64 bits, as for all but the four operations and the root."""
        return ControlWord(self.masks, 64, self.rounding)


class Result(Struct, frozen=True):
    """Outcome of an operation.

    Attributes:
        value: of 80 bits, or as its name says of an integer or another format.
        flags: exceptions that came up.
        up: the magnitude was rounded up.
    """

    value: int
    flags: int = 0
    up: bool = False


class Real(Struct, frozen=True):
    """A finite number: sign, and significand * 2 ** exponent; zero has no significand.

    A number that is not exact has a last bit that is set and stands for all behind it.
    """

    sign: int
    significand: int
    exponent: int

    @property
    def magnitude(self) -> int:
        """The exponent of its first bit."""
        return self.exponent + self.significand.bit_length() - 1


def real(value: int) -> Real:
    """A register's finite value."""
    exponent = max(value >> 64 & 0x7FFF, 1) - _UNIT
    return Real(value >> 79 & 1, value & _LOW, exponent)


def cut(significand: int, count: int, sign: int, rounding: int) -> tuple[int, bool, bool]:
    """Drop bits at the end: what is left, whether any was set, whether it was rounded up."""
    if count <= 0:
        return significand << -count, False, False
    kept, rest = significand >> count, significand & ((1 << count) - 1)
    if not rest:
        return kept, False, False
    half = 1 << (count - 1)
    if rounding == NEAREST:
        up = rest > half or (rest == half and bool(kept & 1))
    elif rounding == TRUNCATE:
        up = False
    else:
        up = bool(sign) == (rounding == DOWN)
    return kept + up, True, up


def _packed(sign: int, significand: int, exponent: int) -> int:
    """A register's value; of a significand beyond 64 bits the last are clear."""
    if not significand:
        return sign << 79
    room = min(64 - significand.bit_length(), exponent + _UNIT - 1)
    significand = significand << room if room >= 0 else significand >> -room
    biased = exponent - room + _UNIT if significand & _TOP else 0
    return sign << 79 | biased << 64 | significand


class BinaryFormat(Struct, frozen=True):
    """A binary format of IEEE 754 that results are rounded to.

    Attributes:
        precision: bits of the significand.
        least: exponent of the smallest normal number.
        most: exponent of the largest.
    """

    precision: int
    least: int
    most: int


SINGLE: Final = BinaryFormat(24, -126, 127)
DOUBLE: Final = BinaryFormat(53, -1022, 1023)


def fit(number: Real, form: BinaryFormat, control: ControlWord) -> tuple[Real | None, int, bool]:
    """Round to a format: the number (None: too large), flags, and whether it went up.

    Of an underflow or overflow that is not masked the number comes with an exponent that may
    not fit.
    """
    sign, significand = number.sign, number.significand
    if not significand:
        return number, 0, False
    last = number.magnitude - form.precision + 1
    drop = last - number.exponent
    kept, inexact, up = cut(significand, drop, sign, control.rounding)
    large = Real(sign, kept, last)
    flags = INEXACT if inexact else 0
    if large.magnitude < form.least:
        if not control.masks & UNDERFLOW:
            return large, flags | UNDERFLOW, up
        last = form.least - form.precision + 1
        kept, inexact, up = cut(significand, last - number.exponent, sign, control.rounding)
        return Real(sign, kept, last), (UNDERFLOW | INEXACT if inexact else 0), up
    if large.magnitude > form.most:
        if not control.masks & OVERFLOW:
            return large, flags | OVERFLOW, up
        return None, OVERFLOW | INEXACT, up
    return large, flags, up


def _overflowed(sign: int, form: BinaryFormat, rounding: int) -> tuple[int, int] | None:
    """Significand and exponent of the largest finite number if that is the result, else None."""
    if rounding == NEAREST or (rounding != TRUNCATE and bool(sign) == (rounding == DOWN)):
        return None
    return (1 << form.precision) - 1, form.most - form.precision + 1


def rounded(number: Real, control: ControlWord, flags: int = 0) -> Result:
    """A finite number as a register holds it, with the exceptions of rounding beside `flags`."""
    form = BinaryFormat(control.precision, _LEAST, _MOST)
    found, more, up = fit(number, form, control)
    if found is None:
        largest = _overflowed(number.sign, form, control.rounding)
        if largest is None:
            return Result(number.sign << 79 | INFINITY, flags | more, up=True)
        return Result(_packed(number.sign, *largest), flags | more)
    exponent = found.exponent
    if more & OVERFLOW:
        exponent -= _WRAP
        if found.magnitude - _WRAP > _MOST:  # only of fscale
            return Result(number.sign << 79 | INFINITY, flags | more | INEXACT, up=True)
    elif more & UNDERFLOW and not control.masks & UNDERFLOW:
        exponent += _WRAP
        if found.magnitude + _WRAP < _LEAST:
            return Result(number.sign << 79, flags | more | INEXACT)
    return Result(_packed(number.sign, found.significand, exponent), flags | more, up)


# -- NaNs and the like ----------------------------------------------------------------------


def quiet(value: int) -> int:
    """A NaN that is quiet."""
    return value | _QUIET


_NANS: Final = (NumberKind.QUIET, NumberKind.SIGNALLING)


def refused(*values: int) -> Result | None:
    """The result if an operand is unsupported or a NaN (SDM volume 1, table 4-7), else None."""
    kinds = [kind_of(value) for value in values]
    if NumberKind.UNSUPPORTED in kinds:
        return Result(INDEFINITE, INVALID)
    flags = INVALID if NumberKind.SIGNALLING in kinds else 0
    nans = [value for value, kind in zip(values, kinds, strict=True) if kind in _NANS]
    if not nans:
        return None
    if len(nans) == 2 and len(set(kinds)) == 2:  # the quiet one
        return Result(values[kinds.index(NumberKind.QUIET)], flags)
    # The larger significand; of two alike the positive one.
    return Result(quiet(max(nans, key=lambda nan: (nan & _LOW, ~nan >> 79 & 1))), flags)


def denormals(*values: int) -> int:
    """The flag of an operand that is denormal."""
    return DENORMAL if any(kind_of(value) is NumberKind.TINY for value in values) else 0


# -- arithmetic -----------------------------------------------------------------------------


def infinite(value: int) -> bool:
    """True for an infinity."""
    return value & ~SIGN == INFINITY


def _zero(value: int) -> bool:
    return not value & ~SIGN


def add(one: int, other: int, control: ControlWord) -> Result:
    """The sum."""
    found = refused(one, other)
    if found is not None:
        return found
    flags = denormals(one, other)
    if infinite(one) and infinite(other) and one != other:
        return Result(INDEFINITE, INVALID)
    if infinite(one) or infinite(other):
        return Result(one if infinite(one) else other, flags)
    first, second = real(one), real(other)
    return rounded(total(first, second, control), control, flags)


def total(first: Real, second: Real, control: ControlWord) -> Real:
    """The sum of two finite numbers, before it is rounded; of what cancels, zero with its sign."""
    if first.exponent < second.exponent:
        first, second = second, first
    if not first.significand or not second.significand:
        nonzero = first if first.significand else second
        if nonzero.significand:
            return nonzero
    if first.exponent - second.exponent > 200:  # all that counts is on which side it is
        second = Real(second.sign, 1, first.exponent - 200)
    distance = first.exponent - second.exponent
    total = (first.significand << distance) * (-1 if first.sign else 1)
    total += second.significand * (-1 if second.sign else 1)
    if total:
        return Real(int(total < 0), abs(total), second.exponent)
    if first.sign == second.sign and not first.significand:
        return Real(first.sign, 0, 0)
    return Real(int(control.rounding == DOWN), 0, 0)


def negative(value: int) -> int:
    """With the other sign; a NaN stays as it is."""
    return value if kind_of(value) in _NANS else value ^ SIGN


def multiply(one: int, other: int, control: ControlWord) -> Result:
    """The product."""
    found = refused(one, other)
    if found is not None:
        return found
    sign = (one ^ other) & SIGN
    if infinite(one) or infinite(other):
        if _zero(one) or _zero(other):
            return Result(INDEFINITE, INVALID)
        return Result(INFINITY | sign, denormals(one, other))
    first, second = real(one), real(other)
    product = first.significand * second.significand
    number = Real(sign >> 79, product, first.exponent + second.exponent)
    return rounded(number, control, denormals(one, other))


def divide(one: int, other: int, control: ControlWord) -> Result:
    """The quotient."""
    found = refused(one, other)
    if found is not None:
        return found
    sign = (one ^ other) & SIGN
    if (infinite(one) and infinite(other)) or (_zero(one) and _zero(other)):
        return Result(INDEFINITE, INVALID)
    flags = denormals(one, other)
    if infinite(one):
        return Result(INFINITY | sign, flags)
    if infinite(other):
        return Result(sign, flags)
    if _zero(other):
        return Result(INFINITY | sign, ZERO_DIVIDE)
    return rounded(quotient(real(one), real(other)), control, flags)


def quotient(first: Real, second: Real) -> Real:
    """To more bits than any format has."""
    more = max(0, 70 + second.significand.bit_length() - first.significand.bit_length())
    whole, rest = divmod(first.significand << more, second.significand)
    exponent = first.exponent - more - second.exponent
    return Real(first.sign ^ second.sign, whole << 1 | (rest != 0), exponent - 1)


def root(value: int, control: ControlWord) -> Result:
    """The square root."""
    found = refused(value)
    if found is not None:
        return found
    if _zero(value):
        return Result(value)
    if value & SIGN:
        return Result(INDEFINITE, INVALID)
    if infinite(value):
        return Result(value)
    return rounded(square_root(real(value)), control, denormals(value))


def square_root(number: Real) -> Real:
    """To more bits than any format has, of what is not negative."""
    more = 140 + (number.exponent & 1)
    wide = number.significand << more
    found = isqrt(wide)
    exponent = (number.exponent - more) // 2
    return Real(0, found << 1 | (found * found != wide), exponent - 1)


def whole(value: int, control: ControlWord) -> Result:
    """Rounded to an integer that stays in a register."""
    found = refused(value)
    if found is not None:
        return found
    if infinite(value) or _zero(value):
        return Result(value)
    number = real(value)
    flags = denormals(value)
    kept, inexact, up = cut(number.significand, -number.exponent, number.sign, control.rounding)
    if number.exponent >= 0:
        return Result(value, flags)
    packed = _packed(number.sign, kept, 0)
    return Result(packed, flags | (INEXACT if inexact else 0), up)


def scale(value: int, power: int, control: ControlWord) -> Result:
    """`value` times two to the integer part of `power`."""
    found = refused(value, power)
    if found is not None:
        return found
    flags = denormals(value, power)
    if infinite(power):
        if power & SIGN:
            if infinite(value):
                return Result(INDEFINITE, INVALID)
            return Result(value & SIGN, flags)
        if _zero(value):
            return Result(INDEFINITE, INVALID)
        return Result(value & SIGN | INFINITY, flags)
    if infinite(value) or _zero(value):
        return Result(value, flags)
    number, by = real(value), real(power)
    if by.significand and by.magnitude > 16:
        distance = 1 << 17
    else:
        distance = cut(by.significand, -by.exponent, 0, TRUNCATE)[0]
    exponent = number.exponent + (-distance if by.sign else distance)
    return rounded(Real(number.sign, number.significand, exponent), control.long, flags)


class Parts(Struct, frozen=True):
    """Outcome of fxtract: the exponent as a number, and the significand with exponent 0."""

    exponent: int
    significand: int
    flags: int = 0


def extract(value: int) -> Parts:
    """Exponent and significand."""
    found = refused(value)
    if found is not None:
        return Parts(found.value, found.value, found.flags)
    if _zero(value):
        return Parts(SIGN | INFINITY, value, ZERO_DIVIDE)
    if infinite(value):
        return Parts(INFINITY, value)
    number = real(value)
    size = number.significand.bit_length()
    exponent = from_integer(number.magnitude)
    significand = number.sign << 79 | _BIAS << 64 | number.significand << (64 - size)
    return Parts(exponent, significand, denormals(value))


class Remainder(Struct, frozen=True):
    """Outcome of fprem.

    Attributes:
        result: what is left.
        quotient: its last bits count; None where there is none.
        partial: more is to be done.
    """

    result: Result
    quotient: int | None = None
    partial: bool = False


def remainder(value: int, divisor: int, control: ControlWord, *, nearest: bool) -> Remainder:
    """Divide with a quotient that is truncated, or the nearest integer, for the rest."""
    found = refused(value, divisor)
    if found is not None:
        return Remainder(found)
    if infinite(value) or _zero(divisor):
        return Remainder(Result(INDEFINITE, INVALID))
    flags = denormals(value, divisor)
    if infinite(divisor) or _zero(value):
        return Remainder(rounded(real(value), control.long, flags), 0)
    first, second = real(value), real(divisor)
    distance = first.magnitude - second.magnitude
    partial = distance >= 64
    dropped = distance - (32 + distance % 32) if partial else 0
    shift = first.exponent - second.exponent - dropped
    exponent = second.exponent + min(shift, 0)
    numerator = first.significand << max(shift, 0)
    denominator = second.significand << max(-shift, 0)
    count, rest = divmod(numerator, denominator)
    sign = first.sign
    if nearest and not partial and (2 * rest, count & 1) > (denominator, 0):
        count, rest, sign = count + 1, denominator - rest, 1 - sign
    if not rest:
        left = Result(first.sign << 79, flags)
    else:
        left = rounded(Real(sign, rest, exponent + dropped), control.long, flags)
    return Remainder(left, 0 if partial else count, partial)


# -- comparisons ----------------------------------------------------------------------------

LESS, EQUAL, GREATER, UNORDERED = range(4)


def compare(one: int, other: int, *, quietly: bool) -> tuple[int, int]:
    """LESS, EQUAL, GREATER or UNORDERED, and flags."""
    kinds = kind_of(one), kind_of(other)
    if NumberKind.UNSUPPORTED in kinds or NumberKind.SIGNALLING in kinds:
        return UNORDERED, INVALID
    if NumberKind.QUIET in kinds:
        return UNORDERED, 0 if quietly else INVALID
    flags = denormals(one, other)
    first, second = _ordered(one), _ordered(other)
    return (EQUAL if first == second else LESS if first < second else GREATER), flags


def _ordered(value: int) -> int:
    magnitude = value & ~SIGN
    if magnitude >> 63 == 1:  # the least exponent, with a first bit: that of the next one
        magnitude |= 1 << 64
    return -magnitude if value & SIGN else magnitude


# -- other formats --------------------------------------------------------------------------


def widened(bits: int, fraction: int, exponent_bits: int) -> int:
    """A float or double as a register holds it; a signalling NaN stays one."""
    sign = bits >> (fraction + exponent_bits) & 1
    exponent = bits >> fraction & ((1 << exponent_bits) - 1)
    low = bits & ((1 << fraction) - 1)
    most = (1 << exponent_bits) - 1
    if exponent == most:
        return sign << 79 | INFINITY | low << (63 - fraction)
    if exponent:
        return _packed(sign, low | 1 << fraction, exponent - (most >> 1) - fraction)
    return _packed(sign, low, 1 - (most >> 1) - fraction)


def from_single(bits: int) -> int:
    """A float."""
    return widened(bits, 23, 8)


def from_double(bits: int) -> int:
    """A double."""
    return widened(bits, 52, 11)


def from_integer(value: int) -> int:
    """An integer of up to 64 bits and a sign."""
    return _packed(int(value < 0), abs(value), 0)


def small(bits: int, size: int) -> bool:
    """True for a float or double (its bytes given) that is denormal."""
    fraction, exponents = (23, 8) if size == 4 else (52, 11)
    return not bits >> fraction & ((1 << exponents) - 1) and bool(bits & ((1 << fraction) - 1))


def narrowed(value: int, size: int, control: ControlWord) -> Result:
    """A register's value as a float or double of `size` bytes.

    The value means nothing where an overflow or underflow is not masked.
    """
    fraction, exponents = (23, 8) if size == 4 else (52, 11)
    sign = (value >> 79) << (fraction + exponents)
    infinity = ((1 << exponents) - 1) << fraction
    found = refused(value)
    if found is not None:
        nan = found.value
        bits = (nan >> 79) << (fraction + exponents) | infinity
        return Result(bits | (nan & (_TOP - 1)) >> (63 - fraction), found.flags)
    if infinite(value):
        return Result(sign | infinity)
    return shortened(real(value), size, control)


def shortened(number: Real, size: int, control: ControlWord) -> Result:
    """A finite number as a float or double; see `narrowed`."""
    fraction, exponents, form = (23, 8, SINGLE) if size == 4 else (52, 11, DOUBLE)
    sign = number.sign << (fraction + exponents)
    infinity = ((1 << exponents) - 1) << fraction
    found, flags, up = fit(number, form, control)
    if found is None:
        largest = _overflowed(number.sign, form, control.rounding)
        if largest is None:
            return Result(sign | infinity, flags, up=True)
        return Result(sign | infinity - 1, flags)
    significand = found.significand
    if not significand or flags & (OVERFLOW | UNDERFLOW) & ~control.masks:
        return Result(sign, flags, up)
    at = max(found.magnitude, form.least) - form.precision + 1
    shift = found.exponent - at
    significand = significand << shift if shift > 0 else significand >> -shift
    # The first bit of a normal number adds one to the exponent's field.
    biased = at + form.precision - 1 - form.least
    return Result(sign | (biased << fraction) + significand, flags, up)


def to_integer(value: int, size: int, rounding: int) -> Result:
    """A signed integer of `size` bytes, as its bits; the indefinite one if it does not fit."""
    return _integer(value, rounding, -(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1, size)


def _integer(value: int, rounding: int, least: int, most: int, size: int) -> Result:
    kind = kind_of(value)
    indefinite = Result(1 << (8 * size - 1), INVALID)
    if kind not in (NumberKind.ZERO, NumberKind.TINY, NumberKind.NORMAL):
        return indefinite
    number = real(value)
    if number.significand and number.magnitude > 80:
        return indefinite
    kept, inexact, up = cut(number.significand, -number.exponent, number.sign, rounding)
    result = -kept if number.sign else kept
    if not least <= result <= most:
        return indefinite
    return Result(result & ((1 << 8 * size) - 1), INEXACT if inexact else 0, up)


_DECIMAL_INDEFINITE: Final = 0xFFFF_C000_0000_0000_0000
_DIGITS: Final = 18


def from_decimal(bits: int) -> int:
    """Eighteen decimal digits and a sign, of 80 bits."""
    value = 0
    for digit in range(_DIGITS - 1, -1, -1):
        value = 10 * value + (bits >> 4 * digit & 15)
    return _packed(bits >> 79 & 1, value, 0)


def to_decimal(value: int, rounding: int) -> Result:
    """The same of a register's value."""
    most = 10**_DIGITS - 1
    found = _integer(value, rounding, -most, most, 10)
    if found.flags & INVALID:
        return Result(_DECIMAL_INDEFINITE, INVALID)
    count = found.value if found.value < 1 << 79 else (1 << 80) - found.value
    digits = sum(int(digit) << 4 * at for at, digit in enumerate(reversed(str(count))))
    return Result(value & SIGN | digits, found.flags, found.up)


Operation = Callable[[int, int, ControlWord], Result]
"""(left operand, right operand, control word) to the result."""


def subtract(one: int, other: int, control: ControlWord) -> Result:
    """The difference."""
    return add(one, negative(other), control)

"""Floating-point numbers of 82 bits: formats, rounding, fused multiply and add.

Exact integer arithmetic, rounded once. Source: the manual, volume 1, chapter 5, and the
pseudo-code of volume 3.
"""

from typing import Final

from msgspec import Struct

from engine.arch.ia64.floatformats import BIAS, INTEGER_BIT, NAN_EXPONENT, QUIET_BIT, Float
from engine.cpu.ia64.state import FPSR, NATVAL
from engine.cpu.ia64.stops import FloatFault

DENORMAL_EXPONENT: Final = 0xC001
"""The exponent that 0 stands for: double-extended denormals."""
INDEFINITE: Final[Float] = (1, NAN_EXPONENT, 3 << 62)

INVALID, DENORMAL, DIVIDE, OVERFLOW, UNDERFLOW, INEXACT = 1, 2, 4, 8, 16, 32
NEAREST, DOWN, UP, TRUNCATE = range(4)

SINGLE, DOUBLE, DYNAMIC, PARALLEL = "s", "d", "", "p"
_WIDE: Final = (1 - BIAS, 0x1FFFE - BIAS)
_RANGES: Final = {SINGLE: (-126, 127), DOUBLE: (-1022, 1023), DYNAMIC: (-16382, 16383)}
_PRECISIONS: Final = {SINGLE: 24, DOUBLE: 53}
_DYNAMIC_PRECISIONS: Final = (24, 64, 53, 64)


def is_nan(x: Float) -> bool:
    """A NaN, quiet or signalling, or an unsupported pattern with this exponent."""
    return x[1] == NAN_EXPONENT and x[2] != INTEGER_BIT


def is_infinite(x: Float) -> bool:
    """An infinity."""
    return x[1] == NAN_EXPONENT and x[2] == INTEGER_BIT


def is_invalid(x: Float) -> bool:
    """A signalling NaN or an unsupported pattern."""
    return x[1] == NAN_EXPONENT and x[2] != INTEGER_BIT and x[2] >> 62 != 3


def is_unnormal(x: Float) -> bool:
    """A number other than zero whose integer bit is clear."""
    return not x[2] >> 63 and x[2] != 0 and x[1] != NAN_EXPONENT


def quiet(x: Float) -> Float:
    """The NaN that comes out where this one goes in."""
    if not x[2] >> 63:
        return INDEFINITE
    return (x[0], x[1], x[2] | QUIET_BIT)


def scale(x: Float) -> int:
    """Power of two that the significand, as an integer, is multiplied with."""
    return (x[1] or DENORMAL_EXPONENT) - BIAS - 63


class FloatControl(Struct):
    """One status field of ar.fpsr, and the application registers that hold it."""

    a: list[int]
    sf: int

    @property
    def bits(self) -> int:
        """The 7 control bits."""
        return self.a[FPSR] >> (6 + 13 * self.sf) & 127

    @property
    def rounding(self) -> int:
        """NEAREST, DOWN, UP or TRUNCATE."""
        return self.bits >> 4 & 3

    def unmasked(self, flags: int) -> int:
        """The exceptions that trap."""
        if self.bits >> 6 and self.sf:
            return 0
        return flags & ~self.a[FPSR] & 63

    def set_flags(self, flags: int) -> None:
        """Make exceptions sticky."""
        if flags:
            self.a[FPSR] |= flags << (13 + 13 * self.sf)

    def fault(self, flags: int) -> None:
        """Exceptions found before the operation: sticky, or a fault."""
        if self.unmasked(flags):
            raise FloatFault(self.unmasked(flags))
        self.set_flags(flags)


def shift_right(value: int, count: int, sign: int, rounding: int) -> tuple[int, bool]:
    """Shift and round; whether anything was lost."""
    if count <= 0:
        return value << -count, False
    kept = value >> count
    rest = value & (1 << count) - 1
    if not rest:
        return kept, False
    if rounding == NEAREST:
        half = 1 << (count - 1)
        kept += rest > half or (rest == half and kept & 1)
    elif rounding == DOWN:
        kept += sign
    elif rounding == UP:
        kept += 1 - sign
    return kept, True


def bounds(control: int, form: str) -> tuple[int, int, int]:
    """Precision in bits, least and greatest exponent of a result.

    Args:
        control: the 7 control bits.
        form: SINGLE, DOUBLE, or DYNAMIC for an operation without a completer, or PARALLEL.
    """
    if form == PARALLEL:
        return 24, -126, 127
    precision = _PRECISIONS.get(form) or _DYNAMIC_PRECISIONS[control >> 2 & 3]
    low, high = _WIDE if control & 2 else _RANGES[form]
    return precision, low, high


def finish(
    sign: int, value: int, power: int, form: str, control: FloatControl
) -> tuple[Float, int]:
    """Round (-1)**sign * value * 2**power; the result and the exceptions, not yet recorded."""
    bits = control.bits
    return round_to(sign, value, power, bounds(bits, form), bits, control)


def round_to(
    sign: int,
    value: int,
    power: int,
    limits: tuple[int, int, int],
    bits: int,
    control: FloatControl,
) -> tuple[Float, int]:
    """The same for given limits."""
    precision, low, high = limits
    rounding = bits >> 4 & 3
    length = value.bit_length()
    kept, inexact = shift_right(value, length - precision, sign, rounding)
    exponent = power + length - 1
    if kept >> precision:
        kept >>= 1
        exponent += 1
    flags = INEXACT if inexact else 0
    if exponent > high:
        if control.unmasked(OVERFLOW):
            flags |= OVERFLOW
            return (sign, exponent + BIAS & 0x1FFFF, kept << (64 - precision)), flags
        flags |= OVERFLOW | INEXACT
        if rounding == TRUNCATE or rounding == (UP if sign else DOWN):
            most = ((1 << precision) - 1) << (64 - precision)
            return (sign, high + BIAS, most), flags
        return (sign, NAN_EXPONENT, INTEGER_BIT), flags
    if exponent < low:
        if control.unmasked(UNDERFLOW):
            flags |= UNDERFLOW
            return (sign, exponent + BIAS & 0x1FFFF, kept << (64 - precision)), flags
        if bits & 1:
            return (sign, 0, 0), UNDERFLOW | INEXACT
        unit = low - precision + 1
        kept, inexact = shift_right(value, unit - power, sign, rounding)
        flags = UNDERFLOW | INEXACT if inexact else 0
        if not kept:
            return (sign, 0, 0), flags
        return (sign, low + BIAS, kept << (64 - precision)), flags
    return (sign, exponent + BIAS, kept << (64 - precision)), flags


_LIMITS: Final = {
    form: tuple(bounds(bits, form) for bits in range(128))
    for form in (SINGLE, DOUBLE, DYNAMIC, PARALLEL)
}


class Arithmetic:
    """The fma family; one object a core.

    Attributes:
        a: the application registers.
        pending: exceptions that trap behind the slot that has just executed.
    """

    def __init__(self, a: list[int]) -> None:
        self.a = a
        self.pending: list[int] = []
        self.controls = tuple(FloatControl(a, sf) for sf in range(4))

    def record(self, flags: int, control: FloatControl) -> None:
        """Make the exceptions of a finished operation sticky; they may trap."""
        if flags:
            control.set_flags(flags)
            trapping = control.unmasked(flags)
            if trapping:
                self.pending.append(trapping)

    def fma(
        self, x: Float, y: Float, z: Float, sf: int, form: str, signs: int, product: bool
    ) -> Float:
        """Compute x * y + z.

        Args:
            x: f3.
            y: f4.
            z: f2.
            sf: status field.
            form: SINGLE, DOUBLE or DYNAMIC.
            signs: bit 0: the product is negated, bit 1: z is.
            product: z is f0, and drops out.
        """
        (xs, xe, xm), (ys, ye, ym), (zs, ze, zm) = x, y, z
        numbers = xm >> 63 and xe and ym >> 63 and ye and ((zm >> 63 and ze) or not (zm or ze))
        if not numbers or NAN_EXPONENT in (xe, ye, ze):
            return self._fma(x, y, z, sf, form, signs, product)
        sign, value, power = xs ^ ys ^ signs & 1, xm * ym, xe + ye - 2 * (BIAS + 63)
        if zm:
            sign, value, power = add(sign, value, power, zs ^ signs >> 1, zm, ze - BIAS - 63)
        fpsr = self.a[FPSR]
        bits = fpsr >> (6 + 13 * sf) & 127
        precision, low, high = _LIMITS[form][bits]
        length = value.bit_length()
        exponent = power + length - 1
        if bits >> 4 & 3 or not (value and low <= exponent < high):
            return self._fma(x, y, z, sf, form, signs, product)
        shift = length - precision
        if shift <= 0:
            return (sign, exponent + BIAS, value << 64 - length)
        kept, rest = value >> shift, value & (1 << shift) - 1
        if rest:
            half = 1 << (shift - 1)
            if rest > half or (rest == half and kept & 1):
                kept += 1
                if kept >> precision:
                    kept >>= 1
                    exponent += 1
            if not (fpsr >> 13 + 13 * sf & fpsr & INEXACT):
                self.record(INEXACT, self.controls[sf])
        return (sign, exponent + BIAS, kept << 64 - precision)

    def _fma(
        self, x: Float, y: Float, z: Float, sf: int, form: str, signs: int, product: bool
    ) -> Float:
        """The same for any operands and any rounding."""
        control = self.controls[sf]
        if x == NATVAL or y == NATVAL or z == NATVAL:
            return NATVAL
        special = self.special(x, y, z, signs, control)
        if special is not None:
            return special
        sign = x[0] ^ y[0] ^ signs & 1
        value = x[2] * y[2]
        power = scale(x) + scale(y)
        other = z[2]
        if product or not other:
            if not value:
                if product:
                    return (sign, 0, 0)
                zsign = z[0] ^ signs >> 1
                if sign != zsign:
                    sign = 1 if control.rounding == DOWN else 0
                return (sign, 0, 0)
        else:
            zsign = z[0] ^ signs >> 1
            zpower = scale(z)
            if not value:
                sign, value, power = zsign, other, zpower
            else:
                sign, value, power = add(sign, value, power, zsign, other, zpower)
                if not value:
                    return (1 if control.rounding == DOWN else 0, 0, 0)
        result, flags = finish(sign, value, power, form, control)
        if flags:
            self.record(flags, control)
        return result

    def special(
        self, x: Float, y: Float, z: Float, signs: int, control: FloatControl
    ) -> Float | None:
        """The result where an operand is no number; denormal operands are noted."""
        if NAN_EXPONENT not in (x[1], y[1], z[1]):
            if not (x[2] >> 63 and y[2] >> 63 and z[2] >> 63) and (
                is_unnormal(x) or is_unnormal(y) or is_unnormal(z)
            ):
                control.fault(DENORMAL)
            return None
        if is_invalid(x) or is_invalid(y) or is_invalid(z):
            control.fault(INVALID)
        for operand in (y, z, x):
            if is_nan(operand):
                return quiet(operand)
        sign = x[0] ^ y[0] ^ signs & 1
        zsign = z[0] ^ signs >> 1
        if is_infinite(x) or is_infinite(y):
            if not x[2] or not y[2] or (is_infinite(z) and sign != zsign):
                control.fault(INVALID)
                return INDEFINITE
            if is_unnormal(x) or is_unnormal(y) or is_unnormal(z):
                control.fault(DENORMAL)
            return (sign, NAN_EXPONENT, INTEGER_BIT)
        if is_unnormal(x) or is_unnormal(y):
            control.fault(DENORMAL)
        return (zsign, NAN_EXPONENT, INTEGER_BIT)


def add(
    sign: int, value: int, power: int, zsign: int, other: int, zpower: int
) -> tuple[int, int, int]:
    """Sum of two exact numbers that are not 0; far smaller ones become a sticky bit."""
    gap = power - zpower
    if gap > 300:
        value, power, other = value << 300, power - 300, 1
    elif gap < -300:
        other, zpower, value = other << 300, zpower - 300, 1
        power = zpower
    elif gap >= 0:
        value, power = value << gap, zpower
    else:
        other <<= -gap
    if sign == zsign:
        return sign, value + other, power
    if value >= other:
        return sign, value - other, power
    return zsign, other - value, power

"""Floating-point operations other than fma: compare, classify, approximate, convert."""

from collections.abc import Callable
from typing import Final

from engine.arch.ia64.floatformats import (
    BIAS,
    INTEGER_BIT,
    INTEGER_EXPONENT,
    NAN_EXPONENT,
    QUIET_BIT,
    SIGNIFICAND,
    Float,
)
from engine.cpu.ia64.floats import (
    DENORMAL,
    DENORMAL_EXPONENT,
    DIVIDE,
    INDEFINITE,
    INEXACT,
    INVALID,
    TRUNCATE,
    Arithmetic,
    FloatControl,
    is_infinite,
    is_invalid,
    is_nan,
    is_unnormal,
    quiet,
    scale,
    shift_right,
)
from engine.cpu.ia64.state import FPSR, NATVAL
from engine.cpu.ia64.stops import Illegal

_INTEGER_INDEFINITE: Final = 1 << 63


def fclass(x: Float, mask: int) -> bool | None:
    """True if x is in one of the classes; None for a NaTVal that is not asked for."""
    sign, exponent, significand = x
    if x == NATVAL:
        return True if mask & 0x100 else None
    if exponent == NAN_EXPONENT:
        if significand == INTEGER_BIT:
            kind = 0x20
        elif not significand >> 63:
            return False
        else:
            return bool(mask & (0x80 if significand & QUIET_BIT else 0x40))
    elif not significand:
        kind = 4
    else:
        kind = 0x10 if significand >> 63 else 8
    return bool(mask & kind and mask & (2 if sign else 1))


def order(x: Float, y: Float) -> int:
    """-1, 0 or 1 for two that are no NaNs."""
    if not x[2] and not y[2]:
        return 0
    if x[0] != y[0] or not x[2] or not y[2]:
        left = 0 if not x[2] else -1 if x[0] else 1
        right = 0 if not y[2] else -1 if y[0] else 1
        return (left > right) - (left < right)
    big = _magnitude(x, y)
    return -big if x[0] else big


def _magnitude(x: Float, y: Float) -> int:
    if x[1] == NAN_EXPONENT or y[1] == NAN_EXPONENT:
        return (x[1] == NAN_EXPONENT) - (y[1] == NAN_EXPONENT)
    left, right = x[2], y[2]
    gap = scale(x) - scale(y)
    if gap > 64 or gap < -64:
        return 1 if gap > 0 else -1
    if gap >= 0:
        left <<= gap
    else:
        right <<= -gap
    return (left > right) - (left < right)


def related(x: Float, y: Float, relation: str, control: FloatControl) -> bool:
    """A relation of two that are no NaTVals; sets flags or faults."""
    if is_nan(x) or is_nan(y):
        if is_invalid(x) or is_invalid(y) or relation in ("lt", "le"):
            control.fault(INVALID)
        return relation == "unord"
    if is_unnormal(x) or is_unnormal(y):
        control.fault(DENORMAL)
    if relation == "unord":
        return False
    found = order(x, y)
    return found == 0 if relation == "eq" else found < 0 or (relation == "le" and found == 0)


def xma(x: Float, y: Float, z: Float, which: int) -> Float:
    """Integer multiply and add of significands: 0 low, 2 high unsigned, 3 high signed."""
    if x == NATVAL or y == NATVAL or z == NATVAL:
        return NATVAL
    a, b = x[2], y[2]
    if which == 3:
        a, b = a - ((a >> 63) << 64), b - ((b >> 63) << 64)
    total = a * b + z[2]
    return (0, INTEGER_EXPONENT, (total if which == 0 else total >> 64) & SIGNIFICAND)


def fselect(x: Float, y: Float, z: Float) -> Float:
    """Bits of x where z has them, else of y."""
    if x == NATVAL or y == NATVAL or z == NATVAL:
        return NATVAL
    return (0, INTEGER_EXPONENT, x[2] & z[2] | y[2] & ~z[2])


def from_integer(x: Float) -> Float:
    """`fcvt`.xf: exact."""
    if x == NATVAL:
        return NATVAL
    value = x[2]
    sign = value >> 63
    if sign:
        value = (1 << 64) - value
    if not value:
        return (0, 0, 0)
    shift = 64 - value.bit_length()
    return (sign, INTEGER_EXPONENT - shift, value << shift)


RECIPROCALS: Final = tuple(round(2048 / (1 + (index + 0.5) / 256)) for index in range(256))
ROOTS: Final = tuple(
    tuple(round(2048 / (factor * (1 + (index + 0.5) / 128)) ** 0.5) for index in range(128))
    for factor in (1, 2)
)
"""Reciprocal square roots, by whether the true exponent is odd."""


def normal(x: Float) -> Float:
    """The same value with its integer bit set; the exponent may leave its range."""
    if not is_unnormal(x):
        return x
    shift = 64 - x[2].bit_length()
    return (x[0], (x[1] or DENORMAL_EXPONENT) - shift, x[2] << shift)


def approximate(x: Float) -> Float:
    """The reciprocal's first 11 bits."""
    return (x[0], 2 * BIAS - 1 - x[1], RECIPROCALS[x[2] >> 55 & 255] << 53)


def approximate_root(x: Float) -> Float:
    """The reciprocal square root's first 11 bits."""
    exponent = x[1] - BIAS
    return (0, BIAS - 1 - (exponent >> 1), ROOTS[exponent & 1][x[2] >> 56 & 127] << 53)


class FloatOperations(Arithmetic):
    """Operations that use a status field."""

    def fcmp(self, x: Float, y: Float, sf: int, relation: str) -> bool | None:
        """None where an operand is a NaTVal."""
        if x == NATVAL or y == NATVAL:
            return None
        return related(x, y, relation, self.controls[sf])

    def frcpa(self, x: Float, y: Float, sf: int) -> tuple[Float, int]:
        """Of x / y: an approximation of 1 / y and 1, or the quotient itself and 0."""
        if x == NATVAL or y == NATVAL:
            return NATVAL, 0
        control = self.controls[sf]
        found = divide_special(x, y, control)
        if found is not None:
            return found, 0
        return approximate(normal(y)), 1

    def frsqrta(self, x: Float, sf: int) -> tuple[Float, int]:
        """An approximation of 1 / sqrt(x) and 1, or the root itself and 0."""
        if x == NATVAL:
            return NATVAL, 0
        control = self.controls[sf]
        found = root_special(x, control)
        if found is not None:
            return found, 0
        return approximate_root(normal(x)), 1

    def to_integer(self, x: Float, sf: int, unsigned: bool, truncate: bool) -> Float:
        """`fcvt`.fx, fcvt.fxu."""
        if x == NATVAL:
            return NATVAL
        control = self.controls[sf]
        value, flags = convert(x, control, 64, unsigned, truncate)
        self.record(flags, control)
        return (0, INTEGER_EXPONENT, value)

    def extreme(self, which: str) -> Callable[[Float, Float, int], Float]:
        """`fmin`, fmax, famin, famax."""
        most, absolute = which.endswith("max"), which.startswith("fa")

        def run(x: Float, y: Float, sf: int) -> Float:
            if x == NATVAL or y == NATVAL:
                return NATVAL
            return pick(x, y, most, absolute, self.controls[sf])

        return run

    def fsetc(self, sf: int, keep: int, put: int) -> None:
        """New controls of a status field, from those of field 0."""
        bits = self.a[FPSR] >> 6 & keep & 127 | put
        if bits >> 2 & 3 == 1 or (sf == 0 and bits >> 6):
            raise Illegal("reserved controls of a status field")
        at = 6 + 13 * sf
        self.a[FPSR] = self.a[FPSR] & ~(127 << at) | bits << at

    def fchkf(self, sf: int) -> bool:
        """True if a status field has flags that trap or that field 0 does not have."""
        fpsr = self.a[FPSR]
        flags = fpsr >> (13 + 13 * sf) & 63
        return bool(flags & ~fpsr & 63 or flags & ~(fpsr >> 13) & 63)


def pick(x: Float, y: Float, most: bool, absolute: bool, control: FloatControl) -> Float:
    """The lesser or greater; y where they are equal or one is a NaN."""
    left, right = ((0, *x[1:]), (0, *y[1:])) if absolute else (x, y)
    if most:
        left, right = right, left
    return x if related(left, right, "lt", control) else y


def divide_special(x: Float, y: Float, control: FloatControl) -> Float | None:
    """The quotient where it needs no division."""
    if is_invalid(x) or is_invalid(y):
        control.fault(INVALID)
    if is_nan(x) or is_nan(y):
        return quiet(x if is_nan(x) else y)
    sign = x[0] ^ y[0]
    if (is_infinite(x) and is_infinite(y)) or (not x[2] and not y[2]):
        control.fault(INVALID)
        return INDEFINITE
    if is_unnormal(x) or is_unnormal(y):
        control.fault(DENORMAL)
    if is_infinite(x):
        return (sign, NAN_EXPONENT, INTEGER_BIT)
    if not y[2]:
        control.fault(DIVIDE)
        return (sign, NAN_EXPONENT, INTEGER_BIT)
    if is_infinite(y) or not x[2]:
        return (sign, 0, 0)
    return None


def root_special(x: Float, control: FloatControl) -> Float | None:
    """The square root where it needs no work."""
    if is_nan(x):
        if is_invalid(x):
            control.fault(INVALID)
        return quiet(x)
    if not x[2]:
        return (x[0], 0, 0)
    if x[0]:
        control.fault(INVALID)
        return INDEFINITE
    if is_infinite(x):
        return x
    if is_unnormal(x):
        control.fault(DENORMAL)
    return None


def convert(
    x: Float, control: FloatControl, width: int, unsigned: bool, truncate: bool
) -> tuple[int, int]:
    """Round to an integer of `width` bits; the result and the exceptions."""
    indefinite = 1 << (width - 1)
    if x[1] == NAN_EXPONENT:
        control.fault(INVALID)
        return indefinite, 0
    if is_unnormal(x):
        control.fault(DENORMAL)
    if scale(x) > width and x[2]:
        control.fault(INVALID)
        return indefinite, 0
    rounding = TRUNCATE if truncate else control.rounding
    value, inexact = shift_right(x[2], -scale(x), x[0], rounding)
    if x[0]:
        value = -value
    low, high = (0, 1 << width) if unsigned else (-(1 << width - 1), 1 << width - 1)
    if not low <= value < high:
        control.fault(INVALID)
        return indefinite, 0
    return value & (1 << width) - 1, INEXACT if inexact else 0


# -- bits -----------------------------------------------------------------------------------


def _guard(what: Callable[[Float, Float], Float]) -> Callable[[Float, Float], Float]:
    return lambda x, y: NATVAL if x == NATVAL or y == NATVAL else what(x, y)


def _bits(what: Callable[[int, int], int]) -> Callable[[Float, Float], Float]:
    return _guard(lambda x, y: (0, INTEGER_EXPONENT, what(x[2], y[2]) & SIGNIFICAND))


def _halves(mask: int, invert: int = 0) -> Callable[[Float, Float], Float]:
    """Bits of `mask` in each half from the first (inverted where asked), the others from y."""
    both, flip = mask << 32 | mask, invert << 32 | invert
    return _bits(lambda a, b: (a ^ flip) & both | b & ~both)


_LOW: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000

BIT_OPERATIONS: Final[dict[tuple[int, int], Callable[[Float, Float], Float]]] = {
    # by major opcode and x6
    (0, 0x10): _guard(lambda x, y: (x[0], y[1], y[2])),
    (0, 0x11): _guard(lambda x, y: (1 - x[0], y[1], y[2])),
    (0, 0x12): _guard(lambda x, y: (x[0], x[1], y[2])),
    (0, 0x2C): _bits(lambda a, b: a & b),
    (0, 0x2D): _bits(lambda a, b: a & ~b),
    (0, 0x2E): _bits(lambda a, b: a | b),
    (0, 0x2F): _bits(lambda a, b: a ^ b),
    (0, 0x34): _bits(lambda a, b: b << 32 | a >> 32),
    (0, 0x35): _bits(lambda a, b: (b << 32 | a >> 32) ^ _SIGN << 32),
    (0, 0x36): _bits(lambda a, b: (b << 32 | a >> 32) ^ _SIGN),
    (0, 0x39): _bits(lambda a, b: a & _LOW << 32 | b & _LOW),
    (0, 0x3A): _bits(lambda a, b: a << 32 | b & _LOW),
    (0, 0x3B): _bits(lambda a, b: a & _LOW << 32 | b >> 32),
    (0, 0x3C): _bits(lambda a, b: (-(a >> 31 & 1) << 32) | b & _LOW),
    (0, 0x3D): _bits(lambda a, b: (-(a >> 63) << 32) | b >> 32),
    (1, 0x10): _halves(_SIGN),
    (1, 0x11): _halves(_SIGN, _SIGN),
    (1, 0x12): _halves(0xFF800000),
}

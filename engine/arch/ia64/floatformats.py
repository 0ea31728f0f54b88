"""Numbers of 82 bits to and from the formats of memory and of general registers."""

from typing import Final

Float = tuple[int, int, int]
"""A floating-point register: sign, biased exponent of 17 bits, significand of 64 bits."""

BIAS: Final = 0xFFFF
NAN_EXPONENT: Final = 0x1FFFF
INTEGER_EXPONENT: Final = 0x1003E
INTEGER_BIT: Final = 1 << 63
QUIET_BIT: Final = 1 << 62
SIGNIFICAND: Final = (1 << 64) - 1


def from_single(bits: int) -> Float:
    """The register value that ldfs and setf.s make of 32 bits."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return (sign, NAN_EXPONENT, INTEGER_BIT | fraction << 40)
    if exponent:
        return (sign, exponent + BIAS - 127, INTEGER_BIT | fraction << 40)
    return (sign, BIAS - 126, fraction << 40) if fraction else (sign, 0, 0)


def from_double(bits: int) -> Float:
    """The register value that ldfd and setf.d make of 64 bits."""
    sign, exponent, fraction = bits >> 63, bits >> 52 & 0x7FF, bits & 0xFFFFFFFFFFFFF
    if exponent == 0x7FF:
        return (sign, NAN_EXPONENT, INTEGER_BIT | fraction << 11)
    if exponent:
        return (sign, exponent + BIAS - 1023, INTEGER_BIT | fraction << 11)
    return (sign, BIAS - 1022, fraction << 11) if fraction else (sign, 0, 0)


def from_extended(significand: int, high: int) -> Float:
    """The register value that ldfe makes of 80 bits."""
    sign, exponent = high >> 15 & 1, high & 0x7FFF
    if exponent == 0x7FFF:
        exponent = NAN_EXPONENT
    elif exponent:
        exponent += BIAS - 16383
    return (sign, exponent, significand)


def to_single(x: Float) -> int:
    """The 32 bits that stfs and getf.s store: no rounding."""
    sign, exponent, significand = x
    if not significand >> 63:
        field = 0 if exponent != NAN_EXPONENT else 0xFF
    else:
        field = (exponent >> 9 & 0x80) | exponent & 0x7F
    return sign << 31 | field << 23 | significand >> 40 & 0x7FFFFF


def to_double(x: Float) -> int:
    """The 64 bits that stfd and getf.d store: no rounding."""
    sign, exponent, significand = x
    if not significand >> 63:
        field = 0 if exponent != NAN_EXPONENT else 0x7FF
    else:
        field = (exponent >> 6 & 0x400) | exponent & 0x3FF
    return sign << 63 | field << 52 | significand >> 11 & 0xFFFFFFFFFFFFF


def to_extended(x: Float) -> tuple[int, int]:
    """(significand, sign and exponent) that stfe stores."""
    sign, exponent, significand = x
    return significand, sign << 15 | (exponent >> 2 & 0x4000) | exponent & 0x3FFF


def spilled(x: Float) -> tuple[int, int]:
    """Two words that stf.spill stores."""
    return x[2], x[0] << 17 | x[1]


def filled(low: int, high: int) -> Float:
    """The register value that ldf.fill makes of them."""
    return (high >> 17 & 1, high & 0x1FFFF, low)


def integer(value: int) -> Float:
    """An integer in a significand, as setf.sig makes it."""
    return (0, INTEGER_EXPONENT, value)


def pack(x: Float) -> int:
    """82 bits."""
    return x[0] << 81 | x[1] << 64 | x[2]


def unpack(value: int) -> Float:
    """From 82 bits."""
    return (value >> 81 & 1, value >> 64 & 0x1FFFF, value & SIGNIFICAND)

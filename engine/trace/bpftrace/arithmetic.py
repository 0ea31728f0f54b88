"""Arithmetic as compiled BPF does it: wrapping, unsigned division, shifts by a part of the count.

A value of a script is a Python integer inside the range of its type. Sums, products and
differences may be made in any order and brought into range once, by `wrap`. Division and modulo
are unsigned, whatever the types: BPF has no other. By zero, both give 1, and a warning is due
(CreateCheckedBinop in bpftrace's src/ast/irbuilderbpf.cpp).
"""

from typing import Final

from engine.trace.bpftrace.types import Integer

MASK64: Final = (1 << 64) - 1
_SIGN64: Final = 1 << 63
BY_ZERO: Final = 1
"""The result of a division by zero."""


def wrap(value: int, kind: Integer) -> int:
    """A number brought into the range of a type, as a cast does."""
    bits = kind.bits
    value &= (1 << bits) - 1
    if kind.signed and value >> bits - 1:
        return value - (1 << bits)
    return value


def signed64(value: int) -> int:
    """The lower 64 bits as a signed number."""
    return (value + _SIGN64 & MASK64) - _SIGN64


def divide(left: int, right: int, kind: Integer) -> int:
    """The quotient of two numbers of a type, see above."""
    mask = (1 << kind.bits) - 1
    divisor = right & mask
    return wrap((left & mask) // divisor, kind) if divisor else BY_ZERO


def modulo(left: int, right: int, kind: Integer) -> int:
    """The rest of a division, see above."""
    mask = (1 << kind.bits) - 1
    divisor = right & mask
    return wrap((left & mask) % divisor, kind) if divisor else BY_ZERO


def shift_right(left: int, right: int, kind: Integer) -> int:
    """A number shifted to the right; zeros come in from the left, whatever its sign.

    Only the lowest six bits of the count matter.
    """
    return wrap((left & (1 << kind.bits) - 1) >> (right & 63), kind)


def truncated_quotient(value: int, divisor: int) -> int:
    """The quotient rounded towards zero, as C++ divides what is printed and averaged."""
    quotient = abs(value) // abs(divisor)
    return quotient if (value < 0) == (divisor < 0) else -quotient


def swapped_bytes(value: int, kind: Integer) -> int:
    """A number with its bytes in the other order: `bswap()`."""
    size = kind.bits // 8
    raw = (value & (1 << kind.bits) - 1).to_bytes(size, "little")
    return int.from_bytes(raw, "big", signed=kind.signed)

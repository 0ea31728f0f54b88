"""AArch64 instructions that the engine writes itself (DDI 0487, C4.1)."""

import struct
from functools import lru_cache
from typing import Final

BRANCH_REACH: Final = 1 << 27
_MASK: Final = (1 << 64) - 1


def word(value: int) -> bytes:
    """One instruction's bytes."""
    return struct.pack("<I", value)


@lru_cache(maxsize=1024)
def moves(register: int, value: int) -> tuple[int, ...]:
    """`movz` and as many `movk` as a value of 64 bits needs."""
    code, opcode = [], 0xD2800000
    for shift in range(0, 64, 16):
        piece = value >> shift & 0xFFFF
        if piece:
            code.append(opcode | shift << 17 | piece << 5 | register)
            opcode = 0xF2800000
    return tuple(code) or (opcode | register,)


def load_constant(register: int, value: int) -> bytes:
    """The same as bytes."""
    return b"".join(map(word, moves(register, value)))


@lru_cache(maxsize=1024)
def constant(register: int, value: int) -> tuple[int, ...]:
    """The same, or `orr` of a logical immediate where four of them would be needed."""
    code = moves(register, value)
    fields = bitmask(value) if len(code) == 4 else None
    return code if fields is None else (0xB2000000 | fields | 31 << 5 | register,)


def branch(place: int, target: int) -> bytes | None:
    """`b`; None beyond 128 MiB or where an address is not aligned."""
    distance = (target - place + (1 << 63) & _MASK) - (1 << 63)
    if (place | target) & 3 or not -BRANCH_REACH <= distance < BRANCH_REACH:
        return None
    return word(0x14000000 | distance >> 2 & 0x3FFFFFF)


@lru_cache(maxsize=64)
def bitmask(value: int) -> int | None:
    """The fields N, immr and imms of a logical immediate in place; None if it is none.

    A logical immediate repeats an element of 2 to 64 bits that is a run of ones, rotated.
    """
    size = 64
    while size > 2:
        half = size // 2
        if value >> half & (1 << half) - 1 != value & (1 << half) - 1:
            break
        size = half
    element = value & (1 << size) - 1
    ones = element.bit_count()
    if not 0 < ones < size:
        return None
    run = (1 << ones) - 1
    for turned in range(size):
        if (run >> turned | run << size - turned) & (1 << size) - 1 == element:
            width = ~(2 * size - 1) & 0x3F | ones - 1
            return (size == 64) << 22 | turned << 16 | width << 10
    return None

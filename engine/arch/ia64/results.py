"""IA-64's rules for values in registers (Itanium Software Conventions, 8.5 and 8.6)."""

from typing import Final

from engine.arch.abi import CallConvention, ElfAbi
from engine.arch.abivalues import (
    Bank,
    RegisterPart,
    ResultPlaces,
    ScalarKind,
    ValueShape,
    homogeneous,
    in_words,
)
from engine.arch.ia64.floatformats import to_double, to_extended, to_single, unpack

_ELEMENTS: Final = {ScalarKind.FLOAT: (4, 8), ScalarKind.EXTENDED: (16,)}
_MOST: Final = 32
"""Bytes of a value in general registers."""


def divide(shape: ValueShape) -> tuple[RegisterPart, ...] | None:
    """Up to eight equal floating-point numbers, else up to four words in general registers."""
    if shape.by_reference:
        return None
    elements = homogeneous(shape, 8, _ELEMENTS)
    if elements is not None:
        return elements
    return in_words(shape.size) if shape.size <= _MOST else None


def divide_argument(shape: ValueShape) -> tuple[RegisterPart, ...] | None:
    """Up to eight equal floating-point numbers, else words, however many (8.5.2)."""
    if shape.by_reference:
        return None
    elements = homogeneous(shape, 8, _ELEMENTS)
    return elements if elements is not None else in_words(shape.size)


def decode(number: int, size: int) -> bytes:
    """The bytes that a floating-point register's 82 bits are stored as, as stfs, stfd, stfe do."""
    value = unpack(number)
    if size == 4:
        return to_single(value).to_bytes(4, "little")
    if size == 8:
        return to_double(value).to_bytes(8, "little")
    significand, high = to_extended(value)
    return (high << 64 | significand).to_bytes(10, "little").ljust(size, b"\0")


RESULTS: Final = ResultPlaces(
    banks={
        Bank.GENERAL: ("r8", "r9", "r10", "r11"),
        Bank.FLOAT: tuple(f"f{number}" for number in range(8, 16)),
    },
    entry="r8",
    exit="r8",
    decode=decode,
)
CALLS: Final = CallConvention(
    general=tuple(range(32, 40)),  # r32 to r39, the caller's out0 to out7
    vectors=tuple(range(128 + 8, 128 + 16)),
    stack=(12, 16),  # behind the callee's scratch area
    hidden_result=False,
    by_reference=False,
    divide=divide_argument,
    slots=True,
    own_format=True,
)
"""The rules by which arguments are passed (8.5.2 and 8.5.3)."""
ABI: Final = ElfAbi(calls=CALLS, divide=divide, results=lambda: RESULTS, thread_block=16)

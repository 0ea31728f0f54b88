"""The texts of an argument's values, by kind: for the trace, `format` files and bpftrace."""

import struct
from typing import Final

from msgspec import Struct

from engine.arch.program import FieldType, ValueKind


class KindText(Struct, frozen=True):
    """The conversions of one kind; `{}` stands for the length modifier of a 64-bit value.

    Attributes:
        kind: which.
        trace: in the trace's text, for Python's `%` (the PRINT_TYPE functions of trace_probe.c).
        printf: behind `print fmt:` of a `format` file.
        bpftrace: in a printf of bpftrace; empty where it has another way.
    """

    kind: ValueKind
    trace: bytes
    printf: str
    bpftrace: str = ""


_TEXTS: Final = (
    KindText(ValueKind.UNSIGNED, b"%d", "%{}u", "%{}u"),
    KindText(ValueKind.SIGNED, b"%d", "%{}d", "%{}d"),
    KindText(ValueKind.HEX, b"0x%x", "0x%{}x", "0x%{}x"),
    KindText(ValueKind.BITFIELD, b"%d", "%{}u", "%{}u"),
    KindText(ValueKind.FLOAT, b"%s", "%f"),
    KindText(ValueKind.CHAR, b"'%s'", "'%c'", "%c"),
    KindText(ValueKind.STRING, b"%s", '\\"%s\\"'),
    KindText(ValueKind.USTRING, b"%s", '\\"%s\\"'),
    KindText(ValueKind.SYMBOL, b"%s", "%pS"),
    KindText(ValueKind.SYMSTR, b"%s", '\\"%s\\"'),
)
_SINGLE: Final = 4
_SURE_DIGITS, _ALL_DIGITS = 6, 9
"""Digits that four bytes always hold, and those that tell all their numbers apart."""
_BY_KIND: Final = {one.kind: one for one in _TEXTS}


def trace_conversion(kind: FieldType) -> bytes:
    """The conversion of one element in the trace's text."""
    return _BY_KIND[kind.kind].trace


def printf_conversion(kind: FieldType) -> str:
    """The conversion of one element in a `format` file."""
    return _BY_KIND[kind.kind].printf.format("L" if kind.size == 8 else "")


def bpftrace_conversion(kind: FieldType) -> str:
    """The conversion of one element in bpftrace's printf."""
    return _BY_KIND[kind.kind].bpftrace.format("l" if kind.size == 8 else "")


def float_text(value: float, size: int) -> str:
    """The shortest decimal number that stands for a floating-point number of so many bytes."""
    text = f"{value!r}"
    if size == _SINGLE and value == value and value - value == 0:
        shown = (f"{value:.{digits}g}" for digits in range(_SURE_DIGITS, _ALL_DIGITS))
        text = next((one for one in shown if _single(float(one)) == value), f"{value:.9g}")
    return text.removesuffix(".0")


def _single(value: float) -> float:
    """The nearest number that has four bytes; one beyond them as it is."""
    try:
        found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return value
    return found

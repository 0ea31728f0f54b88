"""The texts of an argument's values, by kind: for the trace, `format` files and bpftrace."""

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
    KindText(ValueKind.CHAR, b"'%s'", "'%c'", "%c"),
    KindText(ValueKind.STRING, b"%s", '\\"%s\\"'),
    KindText(ValueKind.USTRING, b"%s", '\\"%s\\"'),
    KindText(ValueKind.SYMBOL, b"%s", "%pS"),
    KindText(ValueKind.SYMSTR, b"%s", '\\"%s\\"'),
)
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

"""Types of a program's variables as types of what an event records."""

from typing import Final

from msgspec.structs import replace

from engine.arch.program import FieldType, ValueKind
from engine.fetch.variables import NOT_TEXT, TEXT_ARRAY, TEXT_POINTER, VariableError
from engine.image.datatypes import DataType, TypeKind

_MAX_ARRAY: Final = 64
FLOAT_SIZES: Final = (4, 8)
_SIZES: Final = (1, 2, 4, 8)
_CHARS: Final = (TypeKind.CHAR, TypeKind.UNSIGNED_CHAR)
_SHOWN: Final = 12


def field_type(kind: DataType) -> tuple[FieldType | None, str]:
    """The record of a type when the definition does not say it; None and why not.

    As the kernel does it with BTF: integers with their sign, pointers in hex, enumerations as
    signed numbers. Floating-point numbers are ours, the kernel has none. Arrays of characters
    become strings, other arrays are recorded whole if they are short enough.
    """
    size = kind.size or 0
    match kind.kind:
        case TypeKind.ARRAY:
            element, count = kind.element, kind.count
            if element.kind in _CHARS:
                return FieldType(ValueKind.STRING, 0), ""
            inner, why = field_type(element)
            if inner is None or inner.count or inner.is_string:
                return None, why or f"{kind.text}: name an element"
            if count is None or not 0 < count <= _MAX_ARRAY:
                return None, f"{kind.text}: at most {_MAX_ARRAY} elements are recorded"
            return replace(inner, count=count), ""
        case TypeKind.RECORD:
            names = ", ".join(kind.member_names()[:_SHOWN])
            return None, f"{kind.text}: name a member: {names}"
        case TypeKind.POINTER:
            return FieldType(ValueKind.HEX, size), ""
        case TypeKind.VOID | TypeKind.FUNCTION | TypeKind.OTHER:
            return None, f"{kind.text} has no value"
        case _ if size not in _SIZES:
            return None, f"{kind.text} has {size} bytes; give a type"
        case TypeKind.FLOAT:
            if size not in FLOAT_SIZES:
                return None, f"{kind.text} has {size} bytes; give a type"
            return FieldType(ValueKind.FLOAT, size), ""
        case TypeKind.ENUM if size >= 4:
            return FieldType(ValueKind.SIGNED, size), ""
        case _:
            return FieldType(ValueKind.SIGNED if kind.is_signed else ValueKind.UNSIGNED, size), ""


def string_kind(kind: DataType) -> str:
    """Kind of text that a type is: one of those of `engine.fetch.variables`."""
    if kind.kind is TypeKind.ARRAY and kind.element.kind in _CHARS:
        return TEXT_ARRAY
    if kind.kind is TypeKind.POINTER and kind.target.kind in _CHARS:
        return TEXT_POINTER
    return NOT_TEXT


def bitfield_at(bit: int, bits: int, *, signed: bool = False) -> tuple[int, FieldType]:
    """(offset in bytes, type) of a bitfield: the smallest aligned integer that holds it."""
    kind = ValueKind.SIGNED if signed else ValueKind.BITFIELD
    for size in _SIZES:
        start = bit // (8 * size) * size
        offset = bit - 8 * start
        if offset + bits <= 8 * size:
            return start, FieldType(kind, size, width=bits, offset=offset)
    start = bit // 8
    if bit - 8 * start + bits > 64:
        raise VariableError("BAD_BITFIELD", 0, "the bitfield lies in more than 8 bytes")
    return start, FieldType(kind, 8, width=bits, offset=bit - 8 * start)

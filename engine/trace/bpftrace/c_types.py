"""The types of a script's values for types of C, whoever describes them: DWARF, BTF, the script.

An array of `char` is a string (bpftrace's src/btf.cpp, `get_stype`; with room for a NUL as in its
src/ast/passes/clang_parser.cpp), all other arrays are arrays.
Numbers with a fraction have no type: no script can do anything with them.
"""

from typing import Final, Literal

from engine.image.datatypes import MAX_DEPTH, DataType, TypeKind
from engine.trace.bpftrace.types import (
    VOID,
    Array,
    Boolean,
    Enumeration,
    Integer,
    Pointer,
    Structure,
    TextType,
    Type,
)

Space = Literal["user", "kernel", "script", "none"]

_SIGNS: Final = {
    TypeKind.SIGNED: True,
    TypeKind.CHAR: True,
    TypeKind.UNSIGNED: False,
    TypeKind.UNSIGNED_CHAR: False,
}


def value_type(data: DataType, space: Space = "none", depth: int = 0) -> Type | None:
    """The type of values of a type of C; None if scripts have no such values.

    Args:
        data: the type.
        space: whose memory pointers in it lead to.
        depth: how many types were passed on the way here.
    """
    if depth > MAX_DEPTH:
        return None
    data = data.resolved
    kind, size = data.kind, data.size
    if kind in _SIGNS:
        return Integer(8 * size, _SIGNS[kind]) if size in (1, 2, 4, 8) else None
    if kind is TypeKind.BOOL:
        return Boolean()
    if kind is TypeKind.VOID:
        return VOID
    if kind is TypeKind.POINTER:
        # What a pointer leads to may be anything; a script that never follows it does not mind.
        return Pointer(value_type(data.target, space, depth + 1) or VOID, space)
    if kind is TypeKind.ENUM:
        return enumeration(data)
    if kind is TypeKind.RECORD:
        return structure(data)
    if kind is TypeKind.ARRAY:
        return _array(data, space, depth)
    return None


def _array(data: DataType, space: Space, depth: int) -> Type | None:
    element = data.element.resolved
    count = data.count or 0
    # Linux has been compiled with characters that have no sign since 6.2.
    if (element.kind is TypeKind.CHAR or element.text == "char") and element.size == 1 and count:
        return TextType(count + 1)  # one more: such a string is whole if it fills all
    inner = value_type(element, space, depth + 1)
    return None if inner is None else Array(inner, count)


def structure(data: DataType) -> Structure:
    """A structure or union, whose members are read of its layout when a script names them."""
    data = data.resolved
    return Structure(data.text, data.size or 0, data)


def enumeration(data: DataType) -> Enumeration:
    """An enumeration with the names of its values."""
    data = data.resolved
    size = data.size if data.size in (1, 2, 4, 8) else 4
    signed = any(value < 0 for _, value in data.enumerators)
    name = data.text.removeprefix("enum ")
    names = tuple((value, label) for label, value in data.enumerators)
    return Enumeration(name, Integer(8 * (size or 4), signed), names)

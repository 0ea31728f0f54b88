"""Types of Go: those of the language, what kind each is, and their texts."""

from collections.abc import Iterator
from typing import Final

from engine.image.datatypes import TypeKind
from engine.image.dietypes import DieType
from engine.image.gotypes import GoKind, go_elem, go_kind
from engine.language import value_types as ct
from engine.language.value_types import CType, MadeType

_INTEGERS: Final = ("int", "int8", "int16", "int32", "int64")
_UNSIGNED: Final = ("uint", "uint8", "uint16", "uint32", "uint64", "uintptr")
_SIZES: Final = {"": 8, "8": 1, "16": 2, "32": 4, "64": 8, "ptr": 8}


def _number(name: str) -> MadeType:
    unsigned = name.startswith("u")
    size = _SIZES[name.removeprefix("u").removeprefix("int")]
    return ct.number(TypeKind.UNSIGNED if unsigned else TypeKind.SIGNED, size, name)


BUILTIN: Final[dict[str, MadeType]] = {
    **{name: _number(name) for name in (*_INTEGERS, *_UNSIGNED)},
    "byte": _number("uint8"),
    "rune": _number("int32"),
    "bool": ct.BOOL,
    "float32": ct.number(TypeKind.FLOAT, 4, "float32"),
    "float64": ct.number(TypeKind.FLOAT, 8, "float64"),
    "complex64": ct.number(TypeKind.COMPLEX, 8, "complex64"),
    "complex128": ct.number(TypeKind.COMPLEX, 16, "complex128"),
    "string": ct.number(TypeKind.RECORD, 16, "string"),
}
"""Types of the language by name."""
NIL: Final = ct.number(TypeKind.VOID, 0, "nil")
"""The type of `nil`, which has any."""
_MADE: Final = {
    **{name: number for number, name in enumerate(_INTEGERS, GoKind.INT)},
    **{name: number for number, name in enumerate(_UNSIGNED, GoKind.UINT)},
    "bool": GoKind.BOOL,
    "float32": GoKind.FLOAT32,
    "float64": GoKind.FLOAT64,
    "complex64": GoKind.COMPLEX64,
    "complex128": GoKind.COMPLEX128,
    "string": GoKind.STRING,
}


def kind_of(kind: CType) -> int:
    """The kind of a type, one of `GoKind`; 0 for one that Go does not have."""
    if isinstance(kind, DieType):
        return go_kind(kind)
    if kind.kind is TypeKind.POINTER:
        return GoKind.POINTER
    if kind.kind is TypeKind.ARRAY:
        return GoKind.ARRAY
    if isinstance(kind, MadeType) and kind.made_of is not None and kind.kind is TypeKind.RECORD:
        return GoKind.SLICE
    # Registers and computed numbers have C's types.
    if isinstance(kind, MadeType) and kind.name not in _MADE and kind.kind in ct.INTEGERS:
        return GoKind.INT64 if kind.is_signed else GoKind.UINT
    return _MADE.get(kind.name, 0) if isinstance(kind, MadeType) else 0


def element_of(kind: CType) -> CType | None:
    """The type of a slice's, map's or channel's elements; None where nobody says."""
    if isinstance(kind, DieType):
        return go_elem(kind)
    return kind.target


def slice_of(element: CType, pointer: int = 8) -> MadeType:
    """A slice: its first element's address, its length and its capacity."""
    return MadeType(TypeKind.RECORD, 3 * pointer, f"[]{go_text(element)}", element)


def is_direct(kind: CType) -> bool:
    """True for a type that an interface holds itself: a pointer, or a thing of one alone."""
    match kind_of(kind):
        case GoKind.POINTER | GoKind.MAP | GoKind.CHAN | GoKind.FUNC | GoKind.UNSAFE_POINTER:
            return True
        case GoKind.STRUCT:
            members = kind.resolved.members
            return len(members) == 1 and is_direct(members[0].type)
        case GoKind.ARRAY:
            return kind.resolved.count == 1 and is_direct(kind.resolved.element)
    return False


def go_text(kind: CType) -> str:
    """A type as Go spells it, one that an expression has made among them."""
    if not isinstance(kind, MadeType):
        return "void" if kind.kind is TypeKind.VOID else kind.text
    if kind.kind is TypeKind.RECORD:
        return kind.name
    if kind.made_of is None:
        return kind.name
    inner = go_text(kind.made_of)
    if kind.kind is TypeKind.POINTER:
        return "unsafe.Pointer" if inner == "void" else f"*{inner}"
    if kind.kind is TypeKind.ARRAY:
        return f"[{kind.count}]{inner}"
    return "func()"


def address_text(kind: str, address: int) -> str:
    """An address in its type, by which an expression reaches it; paths of packages are quoted."""
    name = f'"{kind}"' if "/" in kind else kind
    return f"({name})({address:#x})"


def go_definition(kind: CType) -> str:
    """`type = ...`: a type's name, and what stands behind it."""
    return "type = " + "\n".join(_lines(kind))


def _lines(kind: CType) -> Iterator[str]:
    name = go_text(kind)
    marks = ""
    while kind_of(kind) == GoKind.POINTER:
        kind, marks = kind.resolved.target, marks + "*"
    if kind_of(kind) != GoKind.STRUCT:
        yield name
        return
    members = kind.resolved.members
    text = go_text(kind)
    head = f"{marks}struct" if text.startswith("struct {") else f"{marks}{text} struct"
    if not members:
        yield f"{head} {{}}"
        return
    yield f"{head} {{"
    width = max(len(member.name or "") for member in members)
    for member in members:
        yield f"    {member.name or '':<{width}} {go_text(member.type)}"
    yield "}"

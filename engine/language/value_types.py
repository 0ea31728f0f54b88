"""Types of values: those of a program's debug information, and those that an expression makes."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final, Protocol

from msgspec import Struct

from engine.image.datatypes import Member, TypeKind
from engine.image.dietypes import DieType

INTEGERS: Final = frozenset(
    (TypeKind.SIGNED, TypeKind.UNSIGNED, TypeKind.CHAR, TypeKind.UNSIGNED_CHAR, TypeKind.BOOL)
)
CHARS: Final = frozenset((TypeKind.CHAR, TypeKind.UNSIGNED_CHAR))
"""Kinds of one-byte characters."""


UNKNOWN_DATA: Final = "<data variable, no debug info>"
"""The type of data that only a symbol table knows."""
UNKNOWN_FUNCTION: Final = "<text variable, no debug info>"
UNSPECIFIED: Final = "?"
"""Name of a type that has none, as assemblers give it to what functions return."""
UNKNOWN_CHOICE: Final = "<text gnu-indirect-function variable, no debug info>"
"""Functions that only a symbol table knows; the second kind is chosen by another function."""


class CType(Protocol):
    """A type, seen through typedefs and qualifiers; `engine.image.datatypes.DataType` is one."""

    @property
    def kind(self) -> TypeKind:
        """Structure, pointer, integer and so on."""

    @property
    def size(self) -> int | None:
        """Bytes; None where it is not known."""

    @property
    def is_signed(self) -> bool:
        """True if its numbers may be negative."""

    @property
    def target(self) -> "CType":
        """The type a pointer points at, an array is made of, or a function returns."""

    @property
    def parameters(self) -> tuple[tuple["CType", ...], bool]:
        """Types of a function's parameters; True if others may follow them."""

    @property
    def element(self) -> "CType":
        """Of an array of several dimensions the arrays in it, else its elements."""

    @property
    def count(self) -> int | None:
        """Elements of an array's first dimension; None where it does not say."""

    @property
    def owner(self) -> "CType | None":
        """The class whose members a pointer to members leads to; None for any other type."""

    @property
    def is_vector(self) -> bool:
        """True for an array that registers hold and functions give as a whole."""

    @property
    def is_quad(self) -> bool:
        """True for a number of 16 bytes in IEEE's format, not in the x87's of 80 bits."""

    @property
    def is_passed_by_reference(self) -> bool:
        """True if functions get and give its address: C++ objects not to be copied bytewise."""

    @property
    def members(self) -> Sequence[Member]:
        """The parts of a structure."""

    def member(self, name: str) -> Member | None:
        """A part by name, those of anonymous structures and base classes included."""

    @property
    def enumerators(self) -> Sequence[tuple[str, int]]:
        """The names of an enumeration's values."""

    @property
    def text(self) -> str:
        """As C spells it: "const char *", "struct node *", "int [4][2]", "int (*)(char)"."""

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type: "int (*name)(char)"."""

    @property
    def resolved(self) -> "CType":
        """The same without typedefs and qualifiers in front."""

    @property
    def key(self) -> object:
        """Equal for equal types, whatever they are called."""

    @property
    def keyword(self) -> str:
        """Of a structure: "struct", "union" or "class"; "" else."""

    @property
    def statics(self) -> Sequence[tuple[int, str]]:
        """Static data of a class: how many members stand before each, and its whole name."""

    @property
    def prefix(self) -> str:
        """The scope in front of an enumeration's names in C++: "geo::Kind::"."""

    @property
    def is_declared_only(self) -> bool:
        """True if no more than its name is known."""

    @property
    def arguments(self) -> Sequence["CType"]:
        """Types that a template of C++ was given to make it."""


class MadeType(Struct, frozen=True, dict=True):
    """A type that an expression makes: a number, a pointer, an array or a function.

    Attributes:
        kind: its kind.
        size: bytes.
        name: of a number; "&" for a reference.
        made_of: what a pointer points at, an array is made of, a function returns.
        count: elements of an array.
        in_registers: an array is a vector of the processor's.
        member_of: the class whose members a pointer to members leads to.
        taken: a function's parameters; None where they are not known.
        more: a function takes more of any type.
    """

    kind: TypeKind
    size: int | None
    name: str = ""
    made_of: "CType | None" = None
    count: int | None = None
    in_registers: bool = False
    member_of: "CType | None" = None
    taken: "tuple[CType, ...] | None" = None
    more: bool = False

    @property
    def parameters(self) -> tuple[tuple["CType", ...], bool]:
        """A function's parameters, and whether it takes more; any where they are not known."""
        return ((), True) if self.taken is None else (self.taken, self.more)

    @property
    def is_signed(self) -> bool:
        """True if its numbers may be negative."""
        return self.kind in (TypeKind.SIGNED, TypeKind.CHAR)

    @property
    def target(self) -> CType:
        """The type it is made of; void for a number."""
        return VOID if self.made_of is None else self.made_of

    @property
    def element(self) -> CType:
        """An array's elements."""
        return self.target

    @property
    def owner(self) -> "CType | None":
        """The class whose members a pointer to members leads to; None for any other type."""
        return self.member_of

    @property
    def is_vector(self) -> bool:
        """True for an array that registers hold."""
        return self.in_registers

    @property
    def is_quad(self) -> bool:
        """The x87's long double is made."""
        return False

    @property
    def is_passed_by_reference(self) -> bool:
        """Types that are made are C's."""
        return False

    @property
    def members(self) -> Sequence[Member]:
        """None."""
        return ()

    def member(self, name: str) -> Member | None:
        """None."""
        return None

    def member_names(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def enumerators(self) -> Sequence[tuple[str, int]]:
        """None."""
        return ()

    @cached_property
    def text(self) -> str:
        """As C spells it."""
        return self.declared("")

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type."""
        if self.made_of is None:
            return f"{self.name} {name}" if name else self.name
        if self.member_of is not None:
            owner = self.member_of.text.removeprefix("struct ").removeprefix("class ")
            return self.made_of.declared(pointer_declarator(self.made_of, f"{owner}::*", name))
        if self.kind is TypeKind.POINTER:
            return self.made_of.declared(pointer_declarator(self.made_of, self.name or "*", name))
        if self.kind is TypeKind.ARRAY:
            shown = "" if self.count is None else str(self.count)
            if self.in_registers:
                return f"{self.made_of.declared(name)} __attribute__ ((vector_size({shown})))"
            return self.made_of.declared(f"{name}[{shown}]")
        if self.taken is not None:
            texts = [one.text for one in self.taken] + ["..."] * self.more
            return self.made_of.declared(f"{name}({', '.join(texts) or 'void'})")
        return self.made_of.declared(f"{name}(void)" if self.name == "void" else f"{name}()")

    @property
    def resolved(self) -> CType:
        """The type itself, which is no name of another one."""
        return self

    @property
    def key(self) -> object:
        """Equal for equal types."""
        made_of = None if self.made_of is None else self.made_of.key
        taken = None if self.taken is None else tuple(one.key for one in self.taken)
        return (self.kind, self.size, self.name, made_of, self.count, taken, self.more)

    @property
    def keyword(self) -> str:
        """Empty: the type is no structure."""
        return ""

    @property
    def statics(self) -> Sequence[tuple[int, str]]:
        """None."""
        return ()

    @property
    def arguments(self) -> Sequence[CType]:
        """None."""
        return ()

    @property
    def prefix(self) -> str:
        """Empty: the type is no enumeration."""
        return ""

    @property
    def is_declared_only(self) -> bool:
        """False: the type is made whole."""
        return False


def pointer_declarator(target: CType, mark: str, name: str) -> str:
    """The declarator of a pointer to a type: "*name", or "(*name)" of an array or a function."""
    inner = f"{mark}{name}"
    bare = target.resolved.kind not in (TypeKind.ARRAY, TypeKind.FUNCTION)
    return inner if bare or target.text in (UNKNOWN_FUNCTION, UNKNOWN_CHOICE) else f"({inner})"


def number(kind: TypeKind, size: int, name: str) -> MadeType:
    """A type of numbers."""
    return MadeType(kind, size, name)


VOID: Final = MadeType(TypeKind.VOID, None, "void")
CHAR: Final = number(TypeKind.CHAR, 1, "char")
INT: Final = number(TypeKind.SIGNED, 4, "int")
UNSIGNED: Final = number(TypeKind.UNSIGNED, 4, "unsigned int")
LONG: Final = number(TypeKind.SIGNED, 8, "long")
UNSIGNED_LONG: Final = number(TypeKind.UNSIGNED, 8, "unsigned long")
FLOAT: Final = number(TypeKind.FLOAT, 4, "float")
DOUBLE: Final = number(TypeKind.FLOAT, 8, "double")
LONG_DOUBLE: Final = number(TypeKind.FLOAT, 16, "long double")
BOOL: Final = number(TypeKind.BOOL, 1, "bool")

_SIGNED: Final = {
    1: number(TypeKind.CHAR, 1, "signed char"),
    2: number(TypeKind.SIGNED, 2, "short"),
    4: INT,
    8: LONG,
    16: number(TypeKind.SIGNED, 16, "__int128"),
}
_UNSIGNED: Final = {
    1: number(TypeKind.UNSIGNED_CHAR, 1, "unsigned char"),
    2: number(TypeKind.UNSIGNED, 2, "unsigned short"),
    4: UNSIGNED,
    8: UNSIGNED_LONG,
    16: number(TypeKind.UNSIGNED, 16, "unsigned __int128"),
}


def integer(size: int, *, signed: bool) -> MadeType:
    """The integer type of a size; a long one where there is none."""
    return (_SIGNED if signed else _UNSIGNED).get(size, LONG if signed else UNSIGNED_LONG)


def pointer_to(target: CType, size: int = 8) -> MadeType:
    """A pointer."""
    return MadeType(TypeKind.POINTER, size, made_of=target)


def reference_to(target: CType, size: int = 8) -> MadeType:
    """A reference of C++."""
    return MadeType(TypeKind.POINTER, size, "&", made_of=target)


def member_pointer_to(target: CType, owner: CType, size: int = 8) -> MadeType:
    """A pointer to members of a class."""
    return MadeType(TypeKind.POINTER, size, made_of=target, member_of=owner)


def array_of(element: CType, count: int) -> MadeType:
    """An array."""
    size = None if element.size is None else element.size * count
    return MadeType(TypeKind.ARRAY, size, made_of=element, count=count)


def function_returning(
    result: CType, taken: tuple[CType, ...] | None = None, *, more: bool = False
) -> MadeType:
    """A function.

    Args:
        result: what it returns.
        taken: its parameters; None where they are not known.
        more: it takes more of any type.
    """
    return MadeType(TypeKind.FUNCTION, 1, made_of=result, taken=taken, more=more)


def builtin(words: Sequence[str]) -> MadeType | None:
    """The type that C's own words name: ("unsigned", "char"); None where they name none."""
    counts = {word: words.count(word) for word in words}
    unsigned, longs = "unsigned" in counts, counts.get("long", 0)
    rest = [word for word in words if word not in ("signed", "unsigned", "long", "short")]
    base = rest[0] if rest else "int"
    if len(rest) > 1 or longs > 2:
        return None
    match base:
        case "void":
            return VOID
        case "float":
            return FLOAT
        case "double":
            return LONG_DOUBLE if longs else DOUBLE
        case "bool" | "_Bool":
            return BOOL
        case "char":
            if unsigned or "signed" in counts:
                return integer(1, signed=not unsigned)
            return CHAR
        case "int":
            size = 8 if longs else 2 if "short" in counts else 4
            if longs == 2:
                name = "unsigned long long" if unsigned else "long long"
                return number(TypeKind.UNSIGNED if unsigned else TypeKind.SIGNED, 8, name)
            return integer(size, signed=not unsigned)
    return None


def promoted(kind: CType) -> CType:
    """The type in which arithmetic takes a number (C11 6.3.1.1)."""
    if kind.kind is TypeKind.ENUM or (kind.kind in INTEGERS and (kind.size or 0) < 4):
        size = kind.size or 4
        if kind.kind is TypeKind.ENUM and size >= 4:
            return integer(size, signed=kind.is_signed)
        return INT
    return integer(4, signed=False) if is_utf(kind) else kind


def common(left: CType, right: CType) -> CType:
    """The type in which arithmetic takes two numbers (C11 6.3.1.8)."""
    floats = [kind for kind in (left, right) if kind.kind is TypeKind.FLOAT]
    if floats:
        return max(floats, key=lambda kind: kind.size or 0)
    left, right = promoted(left), promoted(right)
    if (left.size or 0) != (right.size or 0):
        return max(left, right, key=lambda kind: kind.size or 0)
    return left if not left.is_signed else right


_WIDE: Final = {"wchar_t": "L", "char16_t": "u", "char32_t": "U"}


LETTERS: Final = {
    "L": number(TypeKind.SIGNED, 4, "wchar_t"),
    "u": number(TypeKind.UNSIGNED, 2, "char16_t"),
    "U": number(TypeKind.UNSIGNED, 4, "char32_t"),
}
"""Types of characters by the letters in front of their quotes."""


def wide_mark(kind: CType) -> str:
    """The letter in front of a character type's quoted texts: "L"; "" for all other types.

    To C they are typedefs of these names (gdb/c-lang.c, classify_type).
    """
    if kind.kind not in _WIDE_KINDS:
        return ""
    names = (kind.resolved.text, *(kind.typedefs if isinstance(kind, DieType) else ()))
    return next((_WIDE[name] for name in names if name in _WIDE), "")


_MARKS: Final = re.compile(r"\(([*&]+)[^()]*\)")
_WIDE_KINDS: Final = frozenset((TypeKind.SIGNED, TypeKind.UNSIGNED, TypeKind.UNSIGNED_CHAR))


def is_utf(kind: CType) -> bool:
    """True for a type of characters that arithmetic and pointers do not take for a number."""
    return kind.resolved.text in ("char16_t", "char32_t")


def is_reference(kind: CType) -> bool:
    """True for a reference of C++: it is used as what it refers to."""
    if kind.kind is not TypeKind.POINTER:
        return False
    text = kind.resolved.text
    if text.endswith(("]", ")")):  # "int (&)[5]": the innermost brackets have the mark
        mark = _MARKS.search(text)
        return mark is not None and mark[1].endswith("&")
    return text.endswith("&")

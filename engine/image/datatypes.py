"""Types of a program's data, as everybody sees them who asks: printing, expressions, probes.

DWARF (`dietypes`) and BTF (`kernel.btftypes`) both describe them. A type reads of what it is
made of only what somebody asks for: structures contain pointers to each other, and one entry
may lead to all others.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, Protocol

from msgspec import Struct

SHORTER: Final = {
    "short int": "short",
    "short unsigned int": "unsigned short",
    "long int": "long",
    "long unsigned int": "unsigned long",
    "long long int": "long long",
    "long long unsigned int": "unsigned long long",
}
"""GCC's names of integer types as people, and gdb, write them."""

_WORDS: Final = r"(?:long|short|int|unsigned|signed|char|double)"
_UNREAD: Final = re.compile(r"<lambda\(|(?<!operator)(?<=[\w>*&])\((?!\)::)[^()]*\)(?!::)")
_CONSTANT: Final = re.compile(r"([<,]\s*)const\s+")
_NUMBER: Final = re.compile(rf"\b{_WORDS}(?:\s+{_WORDS})*\b")

MAX_NAME: Final = 1 << 16
"""Letters of a type's or function's name: a longer one stays as its file has it."""

MAX_DEPTH: Final = 64
"""Structures in structures, and typedefs of typedefs, that are followed."""


def shorter_arguments(name: str) -> str:
    """A template's name with the types in it spelled in the one way that gdb has.

    Compilers write "Box<const long unsigned int>", demanglers "Box<unsigned long const>". Names
    that gdb's parser of C++ does not understand stay as compilers write them.
    """
    if "<" not in name or len(name) > MAX_NAME or is_beyond_parser(name):
        return name
    return constants_behind(shorter_numbers(name)).replace(")[", ") [")


def is_beyond_parser(name: str) -> bool:
    """True for a name that gdb keeps as it is: with a lambda, or a function's type, in it."""
    return _UNREAD.search(name) is not None


def constants_behind(text: str) -> str:
    """A text with `const` behind each type that a template is given: "Box<int const>"."""
    if _CONSTANT.search(text) is None:
        return text
    written: list[str] = []
    open_types: list[tuple[int, int, str]] = []  # depth, where it begins in `written`, the word
    depth = at = 0

    def close() -> None:
        _, begin, word = open_types.pop()
        last = len(written)
        while last > begin and written[last - 1].isspace():
            last -= 1
        written.insert(*((last, " const") if last > begin else (begin, word)))

    while at < len(text):
        letter = text[at]
        while open_types and open_types[-1][0] == depth and letter in "*&,>[(":
            close()
        depth += {"<": 1, ">": -1}.get(letter, 0)
        match = _CONSTANT.match(text, at) if letter in "<," else None
        if match is None:
            written.append(letter)
            at += 1
        else:
            written.append(match[1])
            at = match.end()
            open_types.append((depth, len(written), text[match.end(1) : at]))
    while open_types:
        close()
    return "".join(written)


def shorter_numbers(text: str) -> str:
    """A text with all types of integers in it spelled in the one way that gdb has."""
    return _NUMBER.sub(_shorter, text)


def _shorter(match: re.Match[str]) -> str:
    words = match[0].split()
    if len(words) < 2 or "char" in words or "double" in words:
        return match[0]
    sign = ["unsigned"] if "unsigned" in words else []
    size = [word for word in words if word in ("long", "short")]
    return " ".join([*sign, *(size or ["int"])])


class TypeKind(Enum):
    """The kind of a type, without names and qualifiers."""

    SIGNED = "signed integer"
    UNSIGNED = "unsigned integer"
    CHAR = "character"
    UNSIGNED_CHAR = "unsigned character"
    BOOL = "truth value"
    FLOAT = "floating-point number"
    COMPLEX = "complex number"
    POINTER = "pointer"
    ENUM = "enumeration"
    RECORD = "structure or union"
    ARRAY = "array"
    FUNCTION = "function"
    VOID = "void"
    OTHER = "other"


class Member(Struct, frozen=True):
    """A part of a structure, class or union.

    Attributes:
        name: None for an anonymous structure or union, and for a base class.
        type: its type.
        offset: bytes from the start of the structure; of the storage unit of a bitfield.
        bit_offset: of a bitfield: its lowest bit, from the structure's first byte on and
            counted from the lowest bit of each byte (little-endian machines).
        bit_size: bits of a bitfield, 0 for none.
        is_base: it is a base class.
        alignment: bytes, where the source says it; 0 for its type's own.
        offset_place: of a virtual base class: how many bytes before the object's table of
            functions its offset stands; 0 for all others.
    """

    name: str | None
    type: "DataType"
    offset: int
    bit_offset: int = 0
    bit_size: int = 0
    is_base: bool = False
    alignment: int = 0
    offset_place: int = 0


class DataType(Protocol):
    """A type, seen through typedefs and qualifiers."""

    @property
    def kind(self) -> TypeKind:
        """The kind of the type."""

    @property
    def size(self) -> int | None:
        """Bytes; None where it is not known: void, an incomplete structure, char x[]."""

    @property
    def is_declared_only(self) -> bool:
        """True if the file has no more than its name."""

    @property
    def target(self) -> "DataType":
        """The type a pointer points at, an array or enumeration is made of, a function returns."""

    @property
    def is_signed(self) -> bool:
        """True if its numbers may be negative."""

    @property
    def is_passed_by_reference(self) -> bool:
        """True if functions get and give its address: C++ objects not to be copied bytewise."""

    @property
    def owner(self) -> "DataType | None":
        """The class whose members a pointer to members leads to; None for any other type."""

    @property
    def is_vector(self) -> bool:
        """True for an array that registers hold and functions give as a whole."""

    @property
    def is_quad(self) -> bool:
        """True for a number of 16 bytes in IEEE's format, not in the x87's of 80 bits."""

    @property
    def element(self) -> "DataType":
        """Of an array of one dimension its elements; of one of more the arrays in it."""

    @property
    def count(self) -> int | None:
        """Elements of an array's first dimension; None where it does not say."""

    @property
    def members(self) -> Sequence[Member]:
        """The parts of a structure, class or union, static ones excepted."""

    def member(self, name: str) -> Member | None:
        """A part by name, those of anonymous structures and base classes included.

        Its offsets are from the start of this type.
        """

    def member_names(self) -> tuple[str, ...]:
        """Names that `member` finds."""

    @property
    def statics(self) -> Sequence[tuple[int, str]]:
        """Static data of a class: how many members stand before each, and its whole name."""

    @property
    def arguments(self) -> Sequence["DataType"]:
        """Types that a template of C++ was given to make it."""

    @property
    def prefix(self) -> str:
        """The scope in front of an enumeration's names in C++: "geo::Kind::"."""

    @property
    def enumerators(self) -> Sequence[tuple[str, int]]:
        """The names of an enumeration's values."""

    @property
    def parameters(self) -> tuple[tuple["DataType", ...], bool]:
        """Types of a function's parameters; True if others may follow them."""

    @property
    def text(self) -> str:
        """As C spells it: "const char *", "struct node *", "int [4][2]", "int (*)(char)"."""

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type: "int (*name)(char)"."""

    @property
    def resolved(self) -> "DataType":
        """The same without typedefs and qualifiers in front."""

    @property
    def keyword(self) -> str:
        """Of a structure: "struct", "union" or "class"; "" else."""

    @property
    def key(self) -> object:
        """Equal for equal types, whatever they are called."""


def member_of(kind: DataType, name: str) -> Member | None:
    """A part of a structure by name, see `DataType.member`."""
    return _member_of(kind, name, set())


def _member_of(kind: DataType, name: str, seen: set[object], depth: int = 0) -> Member | None:
    # A damaged file may have structures that contain each other, any number of times.
    if kind.key in seen or depth > MAX_DEPTH:
        return None
    seen.add(kind.key)
    for part in kind.members:
        if part.name == name:
            return part
    for part in kind.members:
        if part.name is None and not part.offset_place:  # whose place only an object tells
            inner = _member_of(part.type, name, seen, depth + 1)
            if inner is not None:
                return Member(
                    name,
                    inner.type,
                    part.offset + inner.offset,
                    8 * part.offset + inner.bit_offset if inner.bit_size else 0,
                    inner.bit_size,
                )
    return None


def names_of(kind: DataType) -> tuple[str, ...]:
    """The names that `member_of` finds in a structure."""
    return tuple(_names_of(kind, 0, set()))


def _names_of(kind: DataType, depth: int, seen: set[object]) -> Iterator[str]:
    if kind.key in seen or depth > MAX_DEPTH:
        return
    seen.add(kind.key)
    for part in kind.members:
        if part.name:
            yield part.name
        else:
            yield from _names_of(part.type, depth + 1, seen)

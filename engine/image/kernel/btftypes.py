"""C types, functions and variables by BTF, presented as everybody's `DataType`.

What BTF says of a type is what DWARF says of it, in other words: so are names of integers
(`SHORTER`), and so characters, which compilers' BTF calls numbers of one byte.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from engine.errors import ImageError
from engine.image.datatypes import (
    MAX_DEPTH,
    SHORTER,
    DataType,
    Member,
    TypeKind,
    member_of,
    names_of,
)
from engine.image.kernel.btf import NAMED_TYPES, Btf, BtfEntry, BtfKind

_K = BtfKind
_QUALIFIERS: Final = {_K.CONST: "const", _K.VOLATILE: "volatile", _K.RESTRICT: "restrict"}
_TRANSPARENT: Final = frozenset((*_QUALIFIERS, _K.TYPEDEF, _K.TYPE_TAG))
_RECORDS: Final = {_K.STRUCT: "struct", _K.UNION: "union"}
_ENUMS: Final = frozenset((_K.ENUM, _K.ENUM64))
_SIGNED, _BOOL = 1, 4
_CHARS: Final = frozenset(("char", "signed char", "unsigned char"))
_POINTER: Final = 8
"""Bytes of a pointer: kernels here have 64 bits."""
_BY_KEYWORD: Final = {
    "struct": (_K.STRUCT, _K.UNION),
    "class": (_K.STRUCT,),
    "union": (_K.UNION,),
    "enum": (_K.ENUM, _K.ENUM64),
    "": (_K.TYPEDEF, _K.INT, _K.FLOAT),
}
_MOST_PARTS: Final = 4096
"""Types in the text of one; damaged functions may take each other, again and again."""
_LONGER: Final = {short: long for long, short in SHORTER.items()}


class BtfParameter(Struct, frozen=True):
    """A parameter of a function: "" is the name of one without."""

    name: str
    type: "BtfType"

    @property
    def text(self) -> str:
        """The parameter's type as the compiler and bpftool spell it."""
        return self.type.raw_text


class BtfFunction(Struct, frozen=True):
    """A function.

    Attributes:
        name: of it.
        id: number of its entry.
        type: of it.
        parameters: in order.
        returns: its result's type.
        variadic: others may follow the parameters.
    """

    name: str
    id: int
    type: "BtfType"
    parameters: tuple[BtfParameter, ...]
    returns: "BtfType"
    variadic: bool


class BtfType:
    """A type by its number; a `DataType`.

    Attributes:
        btf: where it is described.
        id: its number.
    """

    def __init__(self, btf: Btf, number: int) -> None:
        """Nothing is read yet."""
        self.btf = btf
        self.id = number

    def __repr__(self) -> str:
        return f"<BtfType {self.id} {self.text}>"

    @cached_property
    def named(self) -> BtfEntry:
        """The entry of the type itself."""
        return self.btf.entry(self.id)

    @cached_property
    def _entry(self) -> BtfEntry:
        """The entry behind typedefs and qualifiers, a definition where there is one."""
        entry = self.named
        for _ in range(MAX_DEPTH):
            if entry.kind is _K.FWD:
                kind = _K.UNION if entry.flag else _K.STRUCT
                found = self.btf.find(kind, entry.name)
                return entry if found is None else self.btf.entry(found)
            if entry.kind not in _TRANSPARENT:
                return self.btf.entry(entry.word) if entry.kind is _K.FUNC else entry
            entry = self.btf.entry(entry.word)
        raise self._error("is made of itself")

    def _error(self, what: str) -> ImageError:
        return ImageError(f"{self.btf.name}: .BTF: type {self.id} {what}")

    def _other(self, number: int) -> "BtfType":
        return BtfType(self.btf, number)

    @cached_property
    def kind(self) -> TypeKind:
        """The kind of the type."""
        entry = self._entry
        match entry.kind:
            case BtfKind.VOID:
                return TypeKind.VOID
            case BtfKind.INT:
                return self._number_kind(entry)
            case BtfKind.PTR:
                return TypeKind.POINTER
            case BtfKind.ARRAY:
                return TypeKind.ARRAY
            case BtfKind.STRUCT | BtfKind.UNION | BtfKind.FWD:
                return TypeKind.RECORD
            case BtfKind.ENUM | BtfKind.ENUM64:
                return TypeKind.ENUM
            case BtfKind.FUNC_PROTO:
                return TypeKind.FUNCTION
            case BtfKind.FLOAT:
                return TypeKind.FLOAT
        return TypeKind.OTHER

    @staticmethod
    def _number_kind(entry: BtfEntry) -> TypeKind:
        encoding = entry.extra[0] >> 24 & 15
        if encoding & _BOOL:
            return TypeKind.BOOL
        if entry.word == 1 and entry.name in _CHARS:
            return TypeKind.CHAR if encoding & _SIGNED else TypeKind.UNSIGNED_CHAR
        return TypeKind.SIGNED if encoding & _SIGNED else TypeKind.UNSIGNED

    @cached_property
    def size(self) -> int | None:
        """Bytes; None where it is not known."""
        return self._size(0)

    def _size(self, depth: int) -> int | None:
        entry = self._entry
        if entry.kind is _K.PTR:
            return _POINTER
        if entry.kind is _K.ARRAY:
            if depth > MAX_DEPTH:
                raise self._error("is an array of itself")
            each = self._other(entry.extra[0])._size(depth + 1)
            return None if each is None or self.count is None else each * self.count
        if entry.kind in (_K.INT, _K.FLOAT, _K.STRUCT, _K.UNION, _K.ENUM, _K.ENUM64, _K.DATASEC):
            return entry.word
        return None

    @property
    def aliased(self) -> "BtfType":
        """The type that a typedef stands for."""
        return self._other(self.named.word)

    @property
    def is_declared_only(self) -> bool:
        """True if there is no more than its name."""
        return self._entry.kind is _K.FWD

    @cached_property
    def target(self) -> "BtfType":
        """The type a pointer points at, an array is made of, a function returns; else void."""
        entry = self._entry
        if entry.kind is _K.ARRAY:
            return self._other(entry.extra[0])
        if entry.kind in (_K.PTR, _K.FUNC_PROTO, _K.VAR):
            return self._other(entry.word)
        return self._other(0)

    @cached_property
    def is_signed(self) -> bool:
        """True if its numbers may be negative."""
        if self.kind is TypeKind.ENUM:
            return self._entry.flag
        return self.kind in (TypeKind.SIGNED, TypeKind.CHAR)

    @property
    def is_passed_by_reference(self) -> bool:
        """False: the types are those of C."""
        return False

    @property
    def is_quad(self) -> bool:
        """Kernels do not compute with such numbers."""
        return False

    # -- arrays --------------------------------------------------------------------------

    @property
    def owner(self) -> "BtfType | None":
        """There are no pointers to members in C."""
        return None

    @property
    def is_vector(self) -> bool:
        """BTF does not tell vectors from arrays."""
        return False

    @property
    def element(self) -> "BtfType":
        """An array's elements, arrays themselves if it has more dimensions."""
        return self.target

    @cached_property
    def count(self) -> int | None:
        """Elements of an array; None for one without a length, at the end of a structure."""
        entry = self._entry
        return entry.extra[2] or None if entry.kind is _K.ARRAY else None

    # -- members -------------------------------------------------------------------------

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The parts of a structure or union.

        Raises:
            ImageError: the section is damaged.
        """
        entry = self._entry
        if entry.kind not in _RECORDS:
            return ()
        found, extra, string = [], entry.extra, self.btf.string
        for at in range(0, len(extra), 3):
            name, number, place = extra[at : at + 3]
            bits = place >> 24 if entry.flag else 0
            place = place & 0xFFFFFF if entry.flag else place
            kind = self._other(number)
            if not bits:
                place, bits = kind._old_bitfield(place)
            if bits:
                found.append(Member(string(name) or None, kind, place // 8, place, bits))
            else:
                found.append(Member(string(name) or None, kind, place // 8))
        return tuple(found)

    def _old_bitfield(self, place: int) -> tuple[int, int]:
        """(bit, bits) of a member whose bits its type tells, as pahole did it until 1.13."""
        entry = self._entry
        if entry.kind is not _K.INT:
            return place, 0
        bits, shift = entry.extra[0] & 0xFF, entry.extra[0] >> 16 & 0xFF
        if bits == 8 * entry.word and not shift and not place % 8:
            return place, 0
        return place + shift, bits

    def member(self, name: str) -> Member | None:
        """A part by name, those of anonymous structures included."""
        return member_of(self, name)

    def member_names(self) -> tuple[str, ...]:
        """Names that `member` finds."""
        return names_of(self)

    @property
    def statics(self) -> Sequence[tuple[int, str]]:
        """None: it is C's."""
        return ()

    @property
    def arguments(self) -> Sequence[DataType]:
        """None: it is C's."""
        return ()

    @property
    def prefix(self) -> str:
        """None: it is C's."""
        return ""

    @cached_property
    def enumerators(self) -> tuple[tuple[str, int], ...]:
        """The names of an enumeration's values."""
        entry, string = self._entry, self.btf.string
        if entry.kind not in _ENUMS:
            return ()
        extra, wide = entry.extra, entry.kind is _K.ENUM64
        sign = 1 << (64 if wide else 32) if entry.flag else 0
        found = []
        for at in range(0, len(extra), 3 if wide else 2):
            value = extra[at + 1] | (extra[at + 2] << 32 if wide else 0)
            found.append(
                (string(extra[at]), value - sign if value >= sign >> 1 and sign else value)
            )
        return tuple(found)

    @cached_property
    def parameters(self) -> tuple[tuple["BtfType", ...], bool]:
        """Types of a function's parameters; True if others may follow them."""
        if self._entry.kind is not _K.FUNC_PROTO:
            return (), True
        named, more = self.named_parameters
        return tuple(parameter.type for parameter in named), more

    @cached_property
    def named_parameters(self) -> tuple[tuple[BtfParameter, ...], bool]:
        """A function's parameters; True if others may follow them."""
        extra = self._entry.extra
        pairs = [(extra[at], extra[at + 1]) for at in range(0, len(extra) & ~1, 2)]
        more = bool(pairs) and pairs[-1] == (0, 0)
        pairs = pairs[: len(pairs) - more]
        string, other = self.btf.string, self._other
        return tuple(BtfParameter(string(name), other(kind)) for name, kind in pairs), more

    # -- text ----------------------------------------------------------------------------

    @cached_property
    def text(self) -> str:
        """As C spells it."""
        return _Spelling(self.btf, SHORTER).declared(self.id, "", 0)

    @cached_property
    def raw_text(self) -> str:
        """The same with the compiler's own names of integers: "long unsigned int"."""
        return _Spelling(self.btf, {}).declared(self.id, "", 0)

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type."""
        return _Spelling(self.btf, SHORTER).declared(self.id, name, 0)

    @cached_property
    def resolved(self) -> "BtfType":
        """The same without typedefs and qualifiers in front."""
        number = self._entry.id
        return self if number == self.id else self._other(number)

    @property
    def keyword(self) -> str:
        """Of a structure: "struct" or "union"; "" else."""
        entry = self._entry
        if entry.kind is _K.FWD:
            return "union" if entry.flag else "struct"
        return _RECORDS.get(entry.kind, "")

    @property
    def key(self) -> object:
        """Equal for equal types, whatever they are called: each is described once."""
        return ("btf", self._entry.id)


class _Spelling:
    """Writes declarations: C's declarators, inside out."""

    def __init__(self, btf: Btf, names: dict[str, str]) -> None:
        self._btf = btf
        self._names = names
        self._left = _MOST_PARTS

    def declared(self, number: int, inner: str, depth: int) -> str:
        """A declaration of what `inner` declares to be of a type."""
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            return "..."
        entry = self._btf.entry(number)
        match entry.kind:
            case BtfKind.VOID:
                return _behind("void", inner)
            case BtfKind.PTR:
                mark = f"*{inner}"
                if self._shape(entry.word) in (BtfKind.ARRAY, BtfKind.FUNC_PROTO):
                    mark = f"({mark})"
                return self.declared(entry.word, mark, depth + 1)
            case BtfKind.CONST | BtfKind.VOLATILE | BtfKind.RESTRICT:
                word = _QUALIFIERS[entry.kind]
                if self._shape(entry.word) is BtfKind.PTR:
                    return self.declared(entry.word, f" {word} {inner}".rstrip(), depth + 1)
                return f"{word} {self.declared(entry.word, inner, depth + 1)}"
            case BtfKind.TYPE_TAG:
                return self.declared(entry.word, inner, depth + 1)
            case BtfKind.ARRAY:
                count = entry.extra[2]
                mark = f"{inner}[{count}]" if count else f"{inner}[]"
                return self.declared(entry.extra[0], mark, depth + 1)
            case BtfKind.FUNC:
                return self.declared(entry.word, inner, depth + 1)
            case BtfKind.FUNC_PROTO:
                given = self._parameters(entry, depth)
                return self.declared(entry.word, f"{inner}({given})", depth + 1)
        return _behind(self._base(entry), inner)

    def _base(self, entry: BtfEntry) -> str:
        word = _RECORDS.get(entry.kind) or ("enum" if entry.kind in _ENUMS else "")
        if entry.kind is _K.FWD:
            word = "union" if entry.flag else "struct"
        if word:
            return f"{word} {entry.name or '{...}'}"
        return self._names.get(entry.name, entry.name) or "?"

    def _shape(self, number: int) -> BtfKind:
        """A type's kind, without the tags in front of it."""
        for _ in range(MAX_DEPTH):
            kind = self._btf.kind(number)
            if kind is not _K.TYPE_TAG:
                return kind
            number = self._btf.entry(number).word
        return _K.VOID

    def _parameters(self, entry: BtfEntry, depth: int) -> str:
        extra = entry.extra
        numbers = [extra[at] for at in range(1, len(extra), 2)]
        found = [self.declared(number, "", depth + 1) for number in numbers]
        if numbers and not numbers[-1] and not extra[-2]:
            found[-1] = "..."
        return ", ".join(found) or "void"


def _behind(base: str, inner: str) -> str:
    return f"{base} {inner.lstrip()}" if inner else base


class BtfTypes:
    """Types, functions and variables of one kernel or module, by name.

    Attributes:
        btf: where they are described.
    """

    def __init__(self, btf: Btf) -> None:
        """Nothing is read yet."""
        self.btf = btf

    def type(self, number: int) -> BtfType:
        """A type by its number."""
        return BtfType(self.btf, number)

    def find(self, kind: BtfKind, name: str) -> BtfType | None:
        """The first type of a kind and name, a module's own first."""
        found = self.btf.find(kind, name)
        return None if found is None else BtfType(self.btf, found)

    def named(self, name: str, word: str = "") -> BtfType | None:
        """A type as C names it.

        Args:
            name: without keywords.
            word: "struct", "union", "enum"; "" for typedefs and numbers.
        """
        for kind in _BY_KEYWORD.get(word, NAMED_TYPES):
            found = self.find(kind, name) or self.find(kind, _LONGER.get(name, name))
            if found is not None:
                return found
        if word in _RECORDS.values():
            return self.find(_K.FWD, name)
        return None

    def record(self, name: str) -> BtfType | None:
        """A structure or union."""
        return self.find(_K.STRUCT, name) or self.find(_K.UNION, name)

    def layout(self, name: str) -> dict[str, tuple[int, int]] | None:
        """Members of a structure: name to (byte offset, bytes); its own size stands under "".

        Bytes are those of the member's type; bitfields have those that hold their bits, and
        anonymous members are looked through. None without such a structure.
        """
        record = self.record(name)
        if record is None:
            return None
        found = {"": (0, record.size or 0)}
        for member in record.member_names():
            part = record.member(member)
            if part is None:
                continue
            if part.bit_size:
                first, last = part.bit_offset // 8, (part.bit_offset + part.bit_size - 1) // 8
                found[member] = first, last + 1 - first
            else:
                found[member] = part.offset, part.type.size or 0
        return found

    def function(self, name: str) -> BtfFunction | None:
        """A function by name."""
        found = self.btf.find(_K.FUNC, name)
        return None if found is None else self._function(found)

    def functions(self) -> Iterator[BtfFunction]:
        """All functions, the base's first."""
        for number in self.btf.of_kind(_K.FUNC):
            yield self._function(number)

    def _function(self, number: int) -> BtfFunction:
        kind = BtfType(self.btf, number)
        if self.btf.kind(kind.named.word) is not _K.FUNC_PROTO:
            raise ImageError(f"{self.btf.name}: .BTF: function {number} has no prototype")
        parameters, more = kind.named_parameters
        return BtfFunction(kind.named.name, number, kind, parameters, kind.target, more)

    def variable(self, name: str) -> BtfType | None:
        """The type of a variable; kernels describe those that each CPU has."""
        found = self.btf.find(_K.VAR, name)
        return None if found is None else BtfType(self.btf, self.btf.entry(found).word)

    def enumerator(self, name: str) -> tuple[BtfType, int] | None:
        """An enumeration and the value that it has under a name."""
        here: Btf | None = self.btf
        while here is not None:
            found = here.enumerators.get(name)
            if found is not None:
                kind = BtfType(self.btf, found[0])
                return kind, kind.enumerators[found[1]][1]
            here = here.base
        return None

"""Types of a program's data as DWARF gives them (DWARF 5, chapter 5)."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from engine.image import dies, forms
from engine.image.datatypes import (
    SHORTER,
    Member,
    TypeKind,
    member_of,
    names_of,
    shorter_arguments,
)
from engine.image.definitions import ENUM, RECORDS, defined
from engine.image.dies import MAX_CHAIN, Die
from engine.image.reader import DamagedError, Reader

_ARRAY, _POINTER, _REFERENCE = 0x01, 0x0F, 0x10
_SUBROUTINE, _TYPEDEF, _SUBRANGE, _BASE, _CONST = 0x15, 0x16, 0x21, 0x24, 0x26
_VOLATILE, _RESTRICT, _UNSPECIFIED, _RVALUE, _ATOMIC = 0x35, 0x37, 0x3B, 0x42, 0x47
_MEMBER, _INHERITANCE, _ENUMERATOR, _PTR_TO_MEMBER = 0x0D, 0x1C, 0x28, 0x1F
_SUBPROGRAM: Final = 0x2E
_VARIABLE: Final = 0x34
_TEMPLATE_TYPE, _PACK = 0x2F, 0x4107
_NAMESPACE, _AT_ENUM_CLASS = 0x39, 0x6D
_PARAMETER, _UNSPECIFIED_PARAMETERS, _AT_PROTOTYPED = 0x05, 0x18, 0x27

_QUALIFIERS: Final = {_CONST: "const", _VOLATILE: "volatile", _RESTRICT: "", _ATOMIC: "_Atomic"}
_TRANSPARENT: Final = frozenset((*_QUALIFIERS, _TYPEDEF, _SUBRANGE))
_MOST_TYPEDEFS: Final = 32
_POINTERS: Final = {_POINTER: "*", _REFERENCE: "&", _RVALUE: "&&", _PTR_TO_MEMBER: "::*"}
_MAX_MEMBERS: Final = 1 << 16
_AT_VARIABLE_PARAMETER: Final = 0x4B
_AT_GNU_VECTOR: Final = 0x2107
_AT_CONTAINING_TYPE, _AT_ARTIFICIAL, _AT_VIRTUALITY = 0x1D, 0x34, 0x4C
_QUADS: Final = frozenset(("_Float128", "__float128", "__ieee128"))
"""Names of IEEE's format of 128 bits, whatever long double is."""
_GO, _RUST = 0x16, 0x1C
_C_LIKE: Final = frozenset((0x01, 0x02, 0x0C, 0x1D, 0x2C))

_NULL: Final = "decltype(nullptr)"
"""The name of the type of `nullptr`, of which no more is told."""
_ENCODINGS: Final = {
    0x01: TypeKind.UNSIGNED,
    0x02: TypeKind.BOOL,
    0x03: TypeKind.COMPLEX,
    0x04: TypeKind.FLOAT,
    0x05: TypeKind.SIGNED,
    0x06: TypeKind.CHAR,
    0x07: TypeKind.UNSIGNED,
    0x08: TypeKind.UNSIGNED_CHAR,
    0x10: TypeKind.UNSIGNED,
}


class DieType:
    """A type by its entry; a `DataType`."""

    def __init__(self, die: Die | None) -> None:
        """The type of an entry; None is void."""
        self._named = die

    @cached_property
    def _die(self) -> Die | None:
        """The entry behind typedefs and qualifiers, a definition rather than a declaration."""
        die = self._named
        for _ in range(MAX_CHAIN):
            if die is None or die.tag not in _TRANSPARENT:
                return defined(die)
            die = die.type
        raise DamagedError("a type that is made of itself")

    @cached_property
    def kind(self) -> TypeKind:
        """The kind of the type."""
        die = self._die
        if die is None or die.tag == _UNSPECIFIED:
            is_null = die is not None and die.name == _NULL
            return TypeKind.POINTER if is_null else TypeKind.VOID
        if die.tag in _POINTERS:
            return TypeKind.POINTER
        if die.tag in RECORDS:
            return TypeKind.RECORD
        if die.tag == _BASE:
            if die.name == "char8_t":  # g++ calls it a number
                return TypeKind.UNSIGNED_CHAR
            return _ENCODINGS.get(die.number(dies.AT_ENCODING) or 0, TypeKind.OTHER)
        tags = {
            ENUM: TypeKind.ENUM,
            _ARRAY: TypeKind.ARRAY,
            _SUBROUTINE: TypeKind.FUNCTION,
            _SUBPROGRAM: TypeKind.FUNCTION,
        }
        return tags.get(die.tag, TypeKind.OTHER)

    @cached_property
    def size(self) -> int | None:
        """Bytes; None where it is not known: void, an incomplete structure, char x[]."""
        return self._size(0)

    def _size(self, depth: int) -> int | None:
        die = self._die
        if die is None or depth > MAX_CHAIN:
            return None
        size = die.number(dies.AT_BYTE_SIZE)
        if size is not None:
            return size
        if die.tag == _UNSPECIFIED and die.name == _NULL:
            return die.unit.widths.address
        if die.tag in _POINTERS:
            # A pointer to a member function has an adjustment behind the address (Itanium C++
            # ABI, 2.3).
            target = die.type if die.tag == _PTR_TO_MEMBER else None
            two = target is not None and target.tag == _SUBROUTINE
            return die.unit.widths.address * (2 if two else 1)
        if die.tag == ENUM and die.type is not None:
            return DieType(die.type)._size(depth + 1)
        if die.tag == _ARRAY:
            element = DieType(die.type)._size(depth + 1)
            total = element
            for count in self._dimensions:
                total = None if total is None or count is None else total * count
            return total
        return None

    @cached_property
    def is_declared_only(self) -> bool:
        """True if the file has no more than its name."""
        return self._die is not None and self._die.has(dies.AT_DECLARATION)

    @cached_property
    def target(self) -> "DieType":
        """The type a pointer points at, or an enumeration is made of."""
        return DieType(self._die.type if self._die is not None else None)

    @cached_property
    def is_signed(self) -> bool:
        """True if its numbers may be negative."""
        if self.kind is TypeKind.ENUM:
            return self._enum_is_signed
        return self.kind in (TypeKind.SIGNED, TypeKind.CHAR)

    @property
    def _enum_is_signed(self) -> bool:
        die = self._die
        assert die is not None, "an enumeration has an entry"
        if die.type is not None:
            return DieType(die.type).is_signed
        return any(value < 0 for _, value in self.enumerators)

    @cached_property
    def is_passed_by_reference(self) -> bool:
        """True if functions get and give its address: C++ objects not to be copied bytewise."""
        from engine.image.nontrivial import is_nontrivial  # asked of few types

        return is_nontrivial(self._die)

    @cached_property
    def owner(self) -> "DieType | None":
        """The class whose members a pointer to members leads to; None for any other type."""
        die = self._die
        if die is None or die.tag != _PTR_TO_MEMBER:
            return None
        return DieType(die.reference(_AT_CONTAINING_TYPE))

    @cached_property
    def is_quad(self) -> bool:
        """True for a number of 16 bytes in IEEE's format, not in the x87's of 80 bits."""
        die = self._die
        if die is None or self.kind not in (TypeKind.FLOAT, TypeKind.COMPLEX):
            return False
        if self.size != (16 if self.kind is TypeKind.FLOAT else 32):
            return False
        name = (die.name or "").removeprefix("complex ").removeprefix("_Complex ")
        return die.unit.info.quads or name in _QUADS

    # -- arrays ------------------------------------------------------------------

    @cached_property
    def is_vector(self) -> bool:
        """True for an array that registers hold and functions give as a whole."""
        return self._die is not None and self._die.has(_AT_GNU_VECTOR)

    @cached_property
    def element(self) -> "DieType":
        """Of an array of one dimension its elements; of one of more the arrays in it."""
        rest = self._dimensions[1:]
        return _Row(self._die, rest) if rest else self.target

    @property
    def count(self) -> int | None:
        """Elements of an array's first dimension; None where it does not say."""
        dimensions = self._dimensions
        return dimensions[0] if dimensions else None

    @cached_property
    def _dimensions(self) -> tuple[int | None, ...]:
        die = self._die
        if die is None or die.tag != _ARRAY:
            return ()
        shape = die.unit.shape
        found = [
            _count(Die(die.unit, shape.offsets[index]))
            for index in shape.children(die.unit.index(die.offset))
            if shape.tags[index] == _SUBRANGE
        ]
        return tuple(found) or (None,)

    # -- members -----------------------------------------------------------------

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The parts of a structure, class or union, static ones excepted.

        Raises:
            DamagedError: the entries are damaged.
        """
        die = self._die
        if die is None or die.tag not in RECORDS:
            return ()
        shape = die.unit.shape
        found = []
        for index in shape.children(die.unit.index(die.offset)):
            if shape.tags[index] not in (_MEMBER, _INHERITANCE):
                continue
            part = Die(die.unit, shape.offsets[index])
            if part.has(dies.AT_EXTERNAL) or part.has(dies.AT_DECLARATION):
                continue
            found.append(member_of_entry(part))
            if len(found) > _MAX_MEMBERS:
                raise DamagedError("a structure without an end")
        return tuple(found)

    def member(self, name: str) -> Member | None:
        """A part by name, those of anonymous structures and base classes included.

        Its offsets are from the start of this type.
        """
        return member_of(self, name)

    def member_names(self) -> tuple[str, ...]:
        """Names that `member` finds."""
        return names_of(self)

    @cached_property
    def statics(self) -> tuple[tuple[int, str], ...]:
        """Static data of a class: how many members stand before each, and its whole name."""
        die = self._die
        if die is None or die.tag not in RECORDS:
            return ()
        shape = die.unit.shape
        found, before = [], 0
        for index in shape.children(die.unit.index(die.offset)):
            if shape.tags[index] not in (_MEMBER, _INHERITANCE, _VARIABLE):
                continue
            part = Die(die.unit, shape.offsets[index])
            if part.has(dies.AT_EXTERNAL) or part.has(dies.AT_DECLARATION):
                found.append((before, qualified(part)))
            else:
                before += 1
        return tuple(found)

    @cached_property
    def arguments(self) -> tuple["DieType", ...]:
        """Types that a template of C++ was given to make it (DWARF 5, 5.7.9)."""
        die = self._die
        if die is None or die.tag not in RECORDS:
            return ()
        return tuple(_arguments(die, die.unit.index(die.offset)))

    @cached_property
    def prefix(self) -> str:
        """The scope in front of an enumeration's names in C++: "geo::Kind::"."""
        die = self._die
        if die is None or die.tag != ENUM or _is_c(die):
            return ""
        name = qualified(die)
        return f"{name}::" if die.has(_AT_ENUM_CLASS) else name[: len(name) - len(die.name or "")]

    @cached_property
    def enumerators(self) -> tuple[tuple[str, int], ...]:
        """The names of an enumeration's values."""
        die = self._die
        if die is None or die.tag != ENUM:
            return ()
        shape = die.unit.shape
        parts = (
            Die(die.unit, shape.offsets[index])
            for index in shape.children(die.unit.index(die.offset))
            if shape.tags[index] == _ENUMERATOR
        )
        values = (
            (part.name or "", value)
            for part in parts
            if (value := part.number(dies.AT_CONST_VALUE)) is not None
        )
        if die.type is None or not DieType(die.type).is_signed:
            return tuple(values)
        # Older LLVM writes -1 of one byte as 255.
        whole = 1 << 8 * (self.size or 8)
        return tuple(
            (name, value - whole if whole // 2 <= value < whole else value)
            for name, value in values
        )

    @cached_property
    def parameters(self) -> tuple[tuple["DieType", ...], bool]:
        """Types of a function's parameters; True if others may follow them."""
        die = self._die
        if die is None or die.tag not in (_SUBROUTINE, _SUBPROGRAM):
            return (), True
        shape = die.unit.shape
        children = [(shape.tags[i], i) for i in shape.children(die.unit.index(die.offset))]
        found = tuple(
            DieType(Die(die.unit, shape.offsets[index]).type)
            for tag, index in children
            if tag == _PARAMETER
        )
        more = any(tag == _UNSPECIFIED_PARAMETERS for tag, _ in children)
        return found, more or not (found or die.has(_AT_PROTOTYPED))

    # -- text --------------------------------------------------------------------

    @cached_property
    def text(self) -> str:
        """As C spells it: "const char *", "struct node *", "int [4][2]", "int (*)(char)"."""
        return _text(self._named, 0)

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type: "int (*name)(char)"."""
        return _declared(self._named, name, 0)

    @cached_property
    def resolved(self) -> "DieType":
        """The same without typedefs and qualifiers in front."""
        return DieType(self._die)

    @property
    def named(self) -> Die | None:
        """The entry that names it, typedefs and qualifiers in front; None for void."""
        return self._named

    @property
    def typedefs(self) -> tuple[str, ...]:
        """The names of the typedefs in front, the outermost first."""
        found: list[str] = []
        die = self._named
        while die is not None and die.tag in _TRANSPARENT and len(found) < _MOST_TYPEDEFS:
            if die.tag == _TYPEDEF:
                found.append(die.name or "")
            die = die.type
        return tuple(found)

    @property
    def entry(self) -> Die | None:
        """The entry that describes it, behind typedefs and qualifiers; None for void."""
        return self._die

    @property
    def keyword(self) -> str:
        """Of a structure: "struct", "union" or "class"; "" else."""
        return RECORDS.get(self._die.tag, "") if self._die is not None else ""

    @property
    def key(self) -> object:
        """Equal for equal types, whatever they are called."""
        return ("void",) if self._die is None else self._die.key


class _Row(DieType):
    """An array in an array of several dimensions."""

    def __init__(self, die: Die | None, dimensions: tuple[int | None, ...]) -> None:
        super().__init__(die)
        self.__dict__["_dimensions"] = dimensions
        self.__dict__["size"] = self._row_size()
        self._shown = "".join("[]" if count is None else f"[{count}]" for count in dimensions)
        self.__dict__["text"] = self.declared("")

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type."""
        return self.target.declared(f"{name}{self._shown}")

    @property
    def resolved(self) -> DieType:
        """The type itself: a row is no name of another one."""
        return self

    @property
    def key(self) -> object:
        """Equal for equal types."""
        return (self.target.key, self._shown)

    def _row_size(self) -> int | None:
        total = self.target.size
        for count in self._dimensions:
            total = None if total is None or count is None else total * count
        return total


def _arguments(die: Die, index: int) -> Iterator[DieType]:
    shape = die.unit.shape
    for child in shape.children(index):
        if shape.tags[child] == _TEMPLATE_TYPE:
            yield DieType(Die(die.unit, shape.offsets[child]).type)
        elif shape.tags[child] == _PACK:
            yield from _arguments(die, child)


def _count(die: Die) -> int | None:
    count = die.number(dies.AT_COUNT)
    if count is not None:
        return count
    upper = die.number(dies.AT_UPPER_BOUND)
    # References and expressions say it of variable arrays.
    if upper is None or die.form(dies.AT_UPPER_BOUND) in forms.UNIT_REFS:
        return None
    return upper + 1 if 0 <= upper < (1 << 48) else None


def member_of_entry(die: Die) -> Member:
    """A part of a structure by its entry.

    Raises:
        DamagedError: its place is not told, or none.
    """
    kind = DieType(die.type)
    name = die.name if die.tag == _MEMBER else None
    if die.tag == _INHERITANCE and (place := _offset_place(die)):
        return Member(None, kind, 0, is_base=True, offset_place=place)
    offset = _member_offset(die)
    size = die.number(dies.AT_BIT_SIZE)
    if not size:
        alignment = die.number(dies.AT_ALIGNMENT) or 0
        is_base = die.tag == _INHERITANCE
        return Member(name or None, kind, offset, is_base=is_base, alignment=alignment)
    at = die.number(dies.AT_DATA_BIT_OFFSET)
    if at is None:
        at = 8 * offset
        from_top = die.number(dies.AT_BIT_OFFSET)
        if from_top is not None:  # DWARF 2 and 3 count from the highest bit of the storage
            storage = die.number(dies.AT_BYTE_SIZE) or kind.size or 0
            at += 8 * storage - from_top - size
    else:
        at += 8 * offset
    if at < 0:
        raise DamagedError(f"entry {die.offset:#x}: a bitfield before its structure")
    return Member(name or None, kind, at // 8, at, size)


def _offset_place(die: Die) -> int:
    """Distance of a virtual base's offset from the table of functions; 0 for other bases."""
    value = die.get(dies.AT_DATA_MEMBER_LOCATION)
    if not die.number(_AT_VIRTUALITY) or not isinstance(value, bytes):
        return 0
    from engine.image.virtualbases import offset_place  # few classes have such bases

    return offset_place(value, die.unit.info.order)


def _member_offset(die: Die) -> int:
    value = die.get(dies.AT_DATA_MEMBER_LOCATION)
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    # DWARF 2: an expression that adds a constant.
    reader = Reader(value, 0, len(value), die.unit.info.order)
    op = reader.u8()
    if op in (0x23, 0x10):
        return reader.uleb()
    raise DamagedError(f"entry {die.offset:#x}: the place of a member is computed")


def _text(die: Die | None, depth: int) -> str:
    return _declared(die, "", depth)


def _declared(die: Die | None, inner: str, depth: int) -> str:
    """A declaration of what `inner` declares to be of a type: C's declarators, inside out."""
    if die is None:
        return _behind("void", inner)
    if depth > MAX_CHAIN:
        return "..."
    tag = die.tag
    language = die.unit.root.number(dies.AT_LANGUAGE)
    if language == _RUST:
        text = _rust_text(die, depth)
        if tag == _SUBPROGRAM and inner and text.startswith("fn ("):
            return f"fn {inner}{text.removeprefix('fn ')}"
        return _behind(text, inner)
    if language == _GO and tag == _SUBPROGRAM:
        return _behind(_go_function(die, depth), inner)
    if language == _GO and die.name:  # the compiler has spelled it
        return _behind(die.name, inner)
    if tag in _POINTERS:
        owner = die.reference(_AT_CONTAINING_TYPE) if tag == _PTR_TO_MEMBER else None
        mark = f"{_text(owner, depth + 1) if owner is not None else ''}{_POINTERS[tag]}{inner}"
        target = die.type
        if target is not None and target.tag in (_ARRAY, _SUBROUTINE):
            mark = f"({mark})"
        return _declared(target, mark, depth + 1)
    if tag in _QUALIFIERS:
        word, target = _QUALIFIERS[tag], die.type
        if not word:
            return _declared(target, inner, depth + 1)
        if target is not None and target.tag in _POINTERS:
            space = "" if inner.startswith("[") else " "
            return _declared(target, f" {word}{space}{inner}".rstrip(), depth + 1)
        if target is not None and target.tag == _ARRAY and _has(target.type, tag):
            return _declared(target, inner, depth + 1)
        text = f"{word} {_declared(target, inner, depth + 1)}"
        if text.startswith("volatile const "):  # gdb has them in one order
            text = text.replace("volatile const", "const volatile", 1)
        return text
    if tag == _ARRAY:
        counts = DieType(die)._dimensions
        shown = "".join("[]" if count is None else f"[{count}]" for count in counts)
        return _declared(die.type, f"{inner}{shown}", depth + 1)
    if tag in (_SUBROUTINE, _SUBPROGRAM):
        return _declared(die.type, f"{inner}({_parameters(die, depth)})", depth + 1)
    name = (defined(die) or die).name or ""
    word = RECORDS.get(tag) or ("enum" if tag == ENUM else "")
    if (word or tag == _TYPEDEF) and name and not _is_c(die):
        return _behind(qualified(defined(die) or die), inner)
    return _behind(f"{word} {name or '{...}'}" if word else SHORTER.get(name, name) or "?", inner)


def _has(die: Die | None, qualifier: int) -> bool:
    """True for a type that has a qualifier in front."""
    for _ in range(len(_QUALIFIERS)):
        if die is None or die.tag not in _QUALIFIERS:
            return False
        if die.tag == qualifier:
            return True
        die = die.type
    return False


def _rust_text(die: Die, depth: int) -> str:
    """A type as Rust spells it; gdb knows no kinds of pointers (gdb/rust-lang.c)."""
    tag, target = die.tag, die.type
    made_of = "()" if target is None else _declared(target, "", depth + 1)
    if tag in _POINTERS:
        return f"*mut {made_of}"
    if tag == _ARRAY:
        for count in reversed(DieType(die)._dimensions):
            made_of = f"[{made_of}]" if count is None else f"[{made_of}; {count}]"
        return made_of
    if tag in (_SUBROUTINE, _SUBPROGRAM):
        given = ", ".join(_text(one._named, depth + 1) for one in DieType(die).parameters[0])
        return f"fn ({given})" + ("" if made_of == "()" else f" -> {made_of}")
    return qualified(defined(die) or die) or "?"


def _go_function(die: Die, depth: int) -> str:
    """The type of a function of Go, whose results are parameters with a mark."""
    shape = die.unit.shape
    given: tuple[list[str], list[str]] = [], []
    for index in shape.children(die.unit.index(die.offset)):
        if shape.tags[index] == _PARAMETER:
            one = Die(die.unit, shape.offsets[index])
            given[bool(one.number(_AT_VARIABLE_PARAMETER))].append(_text(one.type, depth + 1))
    results = ", ".join(given[1])
    behind = f" ({results})" if len(given[1]) > 1 else f" {results}" if results else ""
    return f"func({', '.join(given[0])}){behind}"


def _behind(base: str, inner: str) -> str:
    return f"{base} {inner.lstrip()}" if inner else base


def _parameters(die: Die, depth: int) -> str:
    shape = die.unit.shape
    found: list[str] = []
    for index in shape.children(die.unit.index(die.offset)):
        if shape.tags[index] == _PARAMETER:
            parameter = Die(die.unit, shape.offsets[index])
            shown = _declared(parameter.type, "", depth + 1)
            # `this` cannot be changed, as gdb says of types of member functions.
            told = die.tag == _SUBROUTINE or die.has(dies.AT_DECLARATION)
            own = told and parameter.has(_AT_ARTIFICIAL)
            found.append(f"{shown} const" if own and shown.endswith("*") else shown)
        elif shape.tags[index] == _UNSPECIFIED_PARAMETERS:
            found.append("...")
    if not found and (die.has(_AT_PROTOTYPED) or not _is_c(die)):
        return "void"
    return ", ".join(found)


def qualified(die: Die) -> str:
    """A name with the namespaces and classes that it stands in: "geo::Shape"."""
    names = [die.name or ""]
    shape = die.unit.shape
    index = shape.parents[die.unit.index(die.offset)]
    for _ in range(MAX_CHAIN):
        if index < 0 or shape.tags[index] not in (_NAMESPACE, *RECORDS):
            break
        name = Die(die.unit, shape.offsets[index]).name
        if name is None and shape.tags[index] == _NAMESPACE:
            name = "(anonymous namespace)"
        names += [name] if name else []
        index = shape.parents[index]
    whole = "::".join(reversed(names))
    if die.unit.root.number(dies.AT_LANGUAGE) in (_RUST, _GO):
        return whole
    return shorter_arguments(whole)


def _is_c(die: Die) -> bool:
    """True if names of structures need a keyword."""
    return die.unit.root.number(dies.AT_LANGUAGE) in _C_LIKE

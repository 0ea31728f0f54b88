"""Go's types and constants as its compiler describes them in DWARF.

The attributes are of the vendor's own range (go/src/cmd/internal/dwarf/dwarf.go): the kind that
reflection has for a type, the types of a map's keys and of what a container holds, whether a
member is embedded, and where the runtime keeps its own description of the type.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct

from engine.errors import ImageError
from engine.image import dies
from engine.image.datatypes import DataType
from engine.image.debuginfo import DebugInfo
from engine.image.definitions import RECORDS
from engine.image.dies import MAX_CHAIN, Die
from engine.image.dietypes import DieType
from engine.image.reader import DamagedError

GO: Final = 0x16
"""DW_LANG_Go."""
_AT_KIND, _AT_KEY, _AT_ELEM, _AT_EMBEDDED, _AT_RUNTIME = 0x2900, 0x2901, 0x2902, 0x2903, 0x2904
_AT_DICTIONARY: Final = 0x2906
_CONSTANT, _MEMBER, _TYPEDEF = 0x27, 0x0D, 0x16
_TYPES: Final = frozenset((0x01, 0x0F, 0x15, _TYPEDEF, 0x24, *RECORDS))
"""Tags of types: arrays, pointers, functions, typedefs, basic types and structures."""


class GoKind:
    """Kinds of types as reflection numbers them (go/src/reflect/type.go)."""

    BOOL: Final = 1
    INT: Final = 2
    INT64: Final = 6
    UINT: Final = 7
    UINT8: Final = 8
    UINTPTR: Final = 12
    FLOAT32: Final = 13
    FLOAT64: Final = 14
    COMPLEX64: Final = 15
    COMPLEX128: Final = 16
    ARRAY: Final = 17
    CHAN: Final = 18
    FUNC: Final = 19
    INTERFACE: Final = 20
    MAP: Final = 21
    POINTER: Final = 22
    SLICE: Final = 23
    STRING: Final = 24
    STRUCT: Final = 25
    UNSAFE_POINTER: Final = 26


_KINDS: Final = {
    0x01: GoKind.ARRAY,
    0x0F: GoKind.POINTER,
    0x13: GoKind.STRUCT,
    0x15: GoKind.FUNC,
}


class GoConstant(Struct, frozen=True):
    """A constant of a package.

    Attributes:
        name: with its package: "main.red".
        type: its type.
        value: the number that it stands for.
    """

    name: str
    type: DieType
    value: int


def go_entry(kind: DieType) -> Die | None:
    """The entry that says of which kind a type is; None for types that are not Go's."""
    die = kind.named
    for _ in range(MAX_CHAIN):
        if die is None or die.number(_AT_KIND):
            return die
        if die.tag != _TYPEDEF:
            return None
        die = die.type
    return None


def go_kind(kind: DieType) -> int:
    """The kind of a type, one of `GoKind`; 0 for types that are not Go's."""
    die = go_entry(kind)
    if die is not None:
        return (die.number(_AT_KIND) or 0) & 0x1F
    bare = kind.entry  # some of the types that the linker makes have no kind
    if bare is None or bare.unit.root.number(dies.AT_LANGUAGE) != GO:
        return 0
    if bare.name == "unsafe.Pointer":
        return GoKind.UNSAFE_POINTER
    return _KINDS.get(bare.tag, 0)


def dictionary_index(kind: DieType) -> int | None:
    """The place of a type in the dictionary of a generic function; None for all other types.

    Functions of several types share code. In it, such a type is a typedef of a shape, and the
    function has an argument with the address of the dictionary: descriptions of the real types.
    """
    die = kind.named
    return None if die is None or die.tag != _TYPEDEF else die.number(_AT_DICTIONARY)


def shape_of(kind: DataType) -> DataType:
    """The shape of a type that a generic function has, in all that share its code.

    Args:
        kind: the type; another one than a generic function's is itself the answer.
    """
    if not isinstance(kind, DieType) or kind.named is None or dictionary_index(kind) is None:
        return kind
    return DieType(kind.named.type)


def go_key(kind: DieType) -> DieType | None:
    """The type of a map's keys."""
    die = go_entry(kind)
    found = die.reference(_AT_KEY) if die is not None else None
    return None if found is None else DieType(found)


def go_elem(kind: DieType) -> DieType | None:
    """The type of what a map, slice or channel holds."""
    die = go_entry(kind)
    found = die.reference(_AT_ELEM) if die is not None else None
    return None if found is None else DieType(found)


def embedded_names(kind: DieType) -> frozenset[str]:
    """The names of a structure's embedded members, whose own members count as its."""
    die = kind.entry
    if die is None or die.tag not in RECORDS:
        return frozenset()
    shape = die.unit.shape
    parts = (
        Die(die.unit, shape.offsets[index])
        for index in shape.children(die.unit.index(die.offset))
        if shape.tags[index] == _MEMBER
    )
    return frozenset(part.name or "" for part in parts if part.number(_AT_EMBEDDED))


class GoTypes:
    """The types, constants and packages of one file's DWARF; read when somebody asks."""

    def __init__(self, info: DebugInfo) -> None:
        """Nothing is read yet."""
        self._info = info

    @cached_property
    def packages(self) -> tuple[str, ...]:
        """Paths of the packages: "main", "encoding/json".

        Raises:
            ImageError: the debug information is damaged.
        """
        return tuple(name for name, _ in self._units)

    @cached_property
    def _units(self) -> tuple[tuple[str, dies.Unit], ...]:
        try:
            return tuple(
                (unit.root.name or "", unit)
                for unit in self._info.units()
                if unit.root.number(dies.AT_LANGUAGE) == GO
            )
        except DamagedError as error:
            raise ImageError(f"{self._info.name}: debug information: {error}") from error

    def at(self, place: int) -> DieType | None:
        """The type that the runtime describes so many bytes behind the first of its types.

        Raises:
            ImageError: the debug information is damaged.
        """
        return self._tables[0].get(place)

    def named(self, name: str) -> DieType | None:
        """A type by its name, as the compiler writes it: "[]main.pair", "map[string]int".

        Raises:
            ImageError: the debug information is damaged.
        """
        return self._tables[1].get(name)

    def constant(self, name: str) -> GoConstant | None:
        """A constant by its name with its package.

        Raises:
            ImageError: the debug information is damaged.
        """
        return self._tables[2].get(name)

    def constants(self, kind: DieType) -> tuple[GoConstant, ...]:
        """The constants of a type that a package has named, by value.

        Raises:
            ImageError: the debug information is damaged.
        """
        if "." not in kind.text:
            return ()
        return self._by_type.get(kind.key, ())

    @cached_property
    def _by_type(self) -> dict[object, tuple[GoConstant, ...]]:
        found: dict[object, list[GoConstant]] = {}
        for one in self._tables[2].values():
            found.setdefault(one.type.key, []).append(one)
        return {key: tuple(sorted(all_, key=lambda one: one.value)) for key, all_ in found.items()}

    @cached_property
    def _tables(self) -> tuple[dict[int, DieType], dict[str, DieType], dict[str, GoConstant]]:
        """Types by place in the runtime's, types by name, constants by name."""
        places: dict[int, DieType] = {}
        names: dict[str, DieType] = {}
        constants: dict[str, GoConstant] = {}
        try:
            for die in self._entries():
                name = die.name or ""
                if die.tag == _CONSTANT:
                    value = die.number(dies.AT_CONST_VALUE)
                    if value is not None:
                        constants[name] = GoConstant(name, DieType(die.type), value)
                    continue
                names.setdefault(name, DieType(die))
                place = die.number(_AT_RUNTIME)
                if place:
                    places.setdefault(place, DieType(die))
        except DamagedError as error:
            raise ImageError(f"{self._info.name}: debug information: {error}") from error
        return places, names, constants

    def _entries(self) -> Iterator[Die]:
        """Types and constants at the top of the units."""
        for _, unit in self._units:
            shape = unit.shape
            for index, tag in enumerate(shape.tags):
                if shape.parents[index] == 0 and (tag in _TYPES or tag == _CONSTANT):
                    yield Die(unit, shape.offsets[index])

"""Names at the top of a program's debug information: its functions, variables and types.

Local variables are the business of `scopes`. A unit's names are read when somebody asks for one
that the file has at all, the unit around the place that is asked from first.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, Protocol

from msgspec import Struct

from engine.errors import ImageError
from engine.image import dies
from engine.image.datatypes import DataType, shorter_arguments
from engine.image.debuginfo import DebugInfo
from engine.image.definitions import ENUM, RECORDS, defined
from engine.image.dies import Die, Unit
from engine.image.dietypes import DieType, qualified
from engine.image.expressions import FrameContext, nowhere
from engine.image.functions import written_name
from engine.image.namedunits import endings
from engine.image.ranges import read_ranges
from engine.image.reader import DamagedError
from engine.image.scopes import DieVariable, Variable

_SUBPROGRAM, _VARIABLE, _ENUMERATOR, _TYPEDEF, _BASE = 0x2E, 0x34, 0x28, 0x16, 0x24
_UNION: Final = 0x17
_NAMESPACE, _UNSPECIFIED, _AT_ENUM_CLASS = 0x39, 0x3B, 0x6D
_IMPORTED, _AT_IMPORT, _AT_EXPORT_SYMBOLS = 0x08, 0x18, 0x89
_SPACES: Final = frozenset((0x11, 0x4A, _NAMESPACE, 0x3C, 0x41, 0x1E, *RECORDS))
"""Tags of what names stand in: units, namespaces, modules, classes."""
_TYPES: Final = frozenset((_TYPEDEF, _BASE, ENUM, _UNSPECIFIED, *RECORDS))
_KEPT: Final = frozenset((_SUBPROGRAM, _VARIABLE, _ENUMERATOR, *_TYPES))
_TAGS: Final = {
    "struct": frozenset(RECORDS) - {_UNION},
    "class": frozenset(RECORDS) - {_UNION},
    "union": frozenset((_UNION,)),
    "enum": frozenset((ENUM,)),
}
_AT_CONTAINING_TYPE, _OP_ADDR = 0x1D, b"\x03"


_DECL_FILE, _DECL_LINE = 0x3A, 0x3B
_UNNAMED: Final = "(anonymous namespace)::"
_NAMING: Final = (".debug_str", ".debug_info", ".debug_line_str", ".debug_types")
"""Sections that names are in."""
_LISTED: Final = {
    "function": frozenset((_SUBPROGRAM,)),
    "variable": frozenset((_VARIABLE,)),
    "type": _TYPES,
    "enumerator": frozenset((_ENUMERATOR,)),
}


class NamedEntry(Struct, frozen=True):
    """A function, variable or type, and where its source declares it.

    Attributes:
        name: with its namespaces and classes.
        type: of a function or variable; a type itself.
        address: link address of a function's code.
        unit: offset of its unit.
        file: the unit's number of the source file, 0 for none.
        line: in it, 0 for none.
        external: other files see it.
        alias: the type that a typedef stands for.
        signature: a function's name with its parameters, "" for any other thing.
    """

    name: str
    type: DataType
    address: int | None
    unit: int
    file: int
    line: int
    external: bool
    alias: DataType | None
    signature: str = ""


class FileNames(Protocol):
    """The names at the top of one file's debug information, of whichever kind that is."""

    def type(self, name: str, word: str = "", near: Unit | None = None) -> DataType | None:
        """A type; None where there is none of the name."""

    def variable(self, name: str, near: Unit | None = None) -> Variable | None:
        """A variable of a file, a namespace or a class."""

    def function(self, name: str, near: Unit | None = None) -> tuple[DataType, int] | None:
        """A function's type and its link address."""

    def enumerator(self, name: str, near: Unit | None = None) -> tuple[DataType, int] | None:
        """An enumeration and the value that it has under a name."""

    def listed(self, kind: str) -> Iterator[NamedEntry]:
        """List all of a kind: function, variable, type, enumerator; declarations are left out."""


class GlobalNames:
    """The names of one file's DWARF, C++'s with their namespaces and classes.

    Attributes:
        info: the debug information.
    """

    def __init__(self, info: DebugInfo) -> None:
        """Nothing is read yet."""
        self.info = info
        self._units: dict[int, dict[str, list[int]]] = {}
        self._shorter: dict[int, dict[str, list[int]]] = {}
        self._code: dict[int, dict[object, list[int]]] = {}
        self._templates: dict[str, tuple[str, ...]] = {}
        self._vtables: dict[int, DataType] | None = None

    def type(self, name: str, word: str = "", near: Unit | None = None) -> DataType | None:
        """A type; None where there is none of the name.

        Args:
            name: of it, without keywords.
            word: "struct", "union", "class", "enum"; "" for all that needs no keyword.
            near: the unit to look in first.

        Raises:
            ImageError: the debug information is damaged.
        """
        tags = _TAGS.get(word, _TYPES)
        declared: DataType | None = None
        for die in self._find(name, tags, near):
            keywords = ("struct ", "union ", "class ", "enum ", "interface ")
            if not word and DieType(die).text.startswith(keywords):
                continue  # C wants the keyword
            whole = defined(die)
            if whole is not None and not whole.has(dies.AT_DECLARATION):
                return DieType(die)
            declared = declared or DieType(die)
        return declared

    def variable(self, name: str, near: Unit | None = None) -> Variable | None:
        """A variable of a file, a namespace or a class.

        Raises:
            ImageError: the debug information is damaged.
        """
        frame = FrameContext(0, False, None, lambda: nowhere("is none"))
        for die in self._find(name, frozenset((_VARIABLE,)), near):
            found = DieVariable(name, False, 0, die, frame, self.info.name)
            if not found.is_declaration:
                return found
        return None

    def declared(self, name: str) -> DataType | None:
        """The type of a variable that is declared here and is in another file.

        Raises:
            ImageError: the debug information is damaged.
        """
        frame = FrameContext(0, False, None, lambda: nowhere("is none"))
        for die in self._find(name, frozenset((_VARIABLE,)), None):
            found = DieVariable(name, False, 0, die, frame, self.info.name)
            if found.is_declaration:
                return found.type
        return None

    def templates(self, word: str) -> tuple[str, ...]:
        """Whole names of the types and functions that a template of a name was made into.

        Raises:
            ImageError: the debug information is damaged.
        """
        if word not in self._templates:
            found = dict[str, None]()
            if self._has_text(f"{word}<"):
                for unit in self._all():
                    for name in self._names(unit):
                        whole = name.partition("<")[0].rpartition("::")[2] == word
                        if whole and "<" in name:
                            found[name] = None
            self._templates[word] = tuple(found)
        return self._templates[word]

    def type_of_vtable(self, address: int) -> DataType | None:
        """The type that a table of methods is for, as rustc tells (DW_AT_containing_type).

        Args:
            address: link address of the table.

        Raises:
            ImageError: the debug information is damaged.
        """
        if self._vtables is None:
            try:
                self._vtables = dict(self._read_vtables())
            except DamagedError as error:
                raise ImageError(f"{self.info.name}: debug information: {error}") from error
        return self._vtables.get(address)

    def has_language(self, language: int) -> bool:
        """True if a unit is of a language, DW_LANG_*.

        Raises:
            ImageError: the debug information is damaged.
        """
        try:
            return any(
                unit.root.number(dies.AT_LANGUAGE) == language for unit in self.info.units()
            )
        except DamagedError as error:
            raise ImageError(f"{self.info.name}: debug information: {error}") from error

    def _read_vtables(self) -> Iterator[tuple[int, DataType]]:
        for unit in self._all():
            for name, offsets in self._names(unit).items():
                die = Die(unit, offsets[0]) if name.endswith("::{vtable}") else None
                place = die.get(dies.AT_LOCATION) if die is not None else None
                table = die.type if die is not None else None
                of = None if table is None else table.reference(_AT_CONTAINING_TYPE)
                if isinstance(place, bytes) and place[:1] == _OP_ADDR and of is not None:
                    yield int.from_bytes(place[1:], self.info.endian), DieType(of)

    def function(self, name: str, near: Unit | None = None) -> tuple[DataType, int] | None:
        """A function's type and its link address.

        Raises:
            ImageError: the debug information is damaged.
        """
        found = next(self.functions(name, near), None)
        return None if found is None else found[:2]

    def functions(
        self, name: str, near: Unit | None = None
    ) -> Iterator[tuple[DataType, int, str]]:
        """Functions of a name: the type, the link address and the whole name of each.

        Raises:
            ImageError: the debug information is damaged.
        """
        for die in self._find(name, frozenset((_SUBPROGRAM,)), near):
            for one in (die, *self._bodies(die)):
                low = one.address(dies.AT_LOW_PC)
                if low is None and (ranges := read_ranges(one)):
                    low = ranges[0][0]
                if low is not None:
                    yield DieType(die), low, qualified(die.origins()[-1])
                    break

    def whole_name(self, name: str, near: Unit | None = None) -> str:
        """A name with the namespaces in front that it is written without; "" for none.

        Args:
            name: with a part of its path: "inner::depth".
            near: the unit to look in first.

        Raises:
            ImageError: the debug information is damaged.
        """
        for die in self._find(name.rpartition("::")[2], _KEPT, near):
            whole = qualified(die.origins()[-1])
            if whole.endswith(f"::{name}"):
                return whole
        return ""

    def namespace(self, alias: str) -> str:
        """The namespace that another name for it stands for; "" for none.

        Raises:
            ImageError: the debug information is damaged.
        """
        found = self._namespaces[0].get(alias) if self._has_text(alias) else None
        return "" if found is None else qualified(found)

    def has_namespace(self, name: str) -> bool:
        """True if a unit has a namespace of a whole name.

        Raises:
            ImageError: the debug information is damaged.
        """
        return self._has_text(name.rpartition("::")[2]) and name in self._namespaces[1]

    @cached_property
    def _namespaces(self) -> tuple[dict[str, Die], frozenset[str]]:
        """Read the other names of namespaces, with what each stands for, and all whole names."""
        aliases, names = dict[str, Die](), set[str]()
        for unit in self._all():
            for tag, offset in zip(unit.shape.tags, unit.shape.offsets, strict=True):
                if tag == _NAMESPACE:
                    names.add(qualified(Die(unit, offset)))
                elif tag == _IMPORTED and (name := Die(unit, offset).name):
                    target = Die(unit, offset).reference(_AT_IMPORT)
                    if target is not None and target.tag == _NAMESPACE:
                        aliases.setdefault(name, target)
        return aliases, frozenset(names)

    def enumerator(self, name: str, near: Unit | None = None) -> tuple[DataType, int] | None:
        """An enumeration and the value that it has under a name.

        Raises:
            ImageError: the debug information is damaged.
        """
        for die in self._find(name, frozenset((_ENUMERATOR,)), near):
            value = die.number(dies.AT_CONST_VALUE)
            shape = die.unit.shape
            parent = shape.parents[die.unit.index(die.offset)]
            if value is not None and parent >= 0:
                return DieType(Die(die.unit, shape.offsets[parent])), value
        return None

    def listed(self, kind: str) -> Iterator[NamedEntry]:
        """List all of a kind: function, variable, type, enumerator; declarations are left out.

        Raises:
            ImageError: the debug information is damaged.
        """
        try:
            for unit in self._all():
                for offset, name in _whole_names(self._names(unit)).items():
                    die = Die(unit, offset)
                    if die.tag not in _LISTED[kind] or die.has(dies.AT_DECLARATION):
                        continue
                    if kind == "enumerator":
                        name = _without_enumeration(name, die)
                    entry = self._entry(name, die, kind)
                    if entry is not None:
                        yield entry
        except DamagedError as error:
            raise ImageError(f"{self.info.name}: debug information: {error}") from error

    @staticmethod
    def _entry(name: str, die: Die, kind: str) -> NamedEntry | None:
        low = die.address(dies.AT_LOW_PC) if kind == "function" else None
        if kind == "function" and _is_in_function(die):
            return None  # a lambda's, which gdb counts among what is local
        if kind == "function" and low is None:
            ranges = read_ranges(die)
            if not ranges:
                return None
            low = ranges[0][0]
        told = next((one for one in (die, *die.origins()) if one.has(_DECL_LINE)), die)
        return NamedEntry(
            shorter_arguments(name),
            DieType(die.type if kind == "variable" else die),
            low,
            die.unit.offset,
            told.number(_DECL_FILE) or 0,
            told.number(_DECL_LINE) or 0,
            any(one.has(dies.AT_EXTERNAL) for one in (die, *die.origins())),
            DieType(die.type) if die.tag == _TYPEDEF else None,
            written_name(die) if kind == "function" else "",
        )

    def _bodies(self, die: Die) -> Iterator[Die]:
        """Entries with code of a method that is declared in its class."""
        unit = die.unit
        known = self._code.get(id(unit))
        if known is None:
            known = self._code[id(unit)] = {}
            for index, tag in enumerate(unit.shape.tags):
                if tag == _SUBPROGRAM:
                    other = Die(unit, unit.shape.offsets[index])
                    if other.has(dies.AT_SPECIFICATION) or other.has(dies.AT_ABSTRACT_ORIGIN):
                        for origin in other.origins():
                            known.setdefault(origin.key, []).append(other.offset)
        for offset in known.get(die.key, ()):
            yield Die(unit, offset)

    def _find(self, name: str, tags: frozenset[int], near: Unit | None) -> Iterator[Die]:
        """Entries of a name, those of the unit `near` first, those in classes last."""
        name = name.removeprefix("::")
        if not name:
            return
        try:
            units = list(self._naming(name))
            for unit in sorted(units, key=lambda unit: unit is not near):
                offsets = self._names(unit).get(name, ())
                found = [
                    die
                    for offset in (*offsets, *self._shorter[id(unit)].get(name, ()))
                    if (die := Die(unit, offset)).tag in tags
                ]
                yield from sorted(found, key=_is_member) if len(found) > 1 else found
        except DamagedError as error:
            raise ImageError(f"{self.info.name}: debug information, {name}: {error}") from error

    def _naming(self, name: str) -> Iterator[Unit]:
        """Units that may have an entry of a name."""
        return self._whole(self.info.naming(endings(name)))

    def _all(self) -> Iterator[Unit]:
        return self._whole(self.info.units())

    def _whole(self, units: Iterable[Unit]) -> Iterator[Unit]:
        for unit in units:
            try:
                yield self.info.whole(unit)
            except ImageError:
                continue  # a part of it is in a file that we do not have

    def _has_text(self, text: str) -> bool:
        """True if a text is somewhere in the file's names: a glance that saves reading them."""
        info = self.info
        # Units whose names are in other files have their addresses in a section of its own.
        apart = info.section(".gnu_debugaltlink") or info.section(".debug_addr")
        return bool(apart) or info.mentions(text, _NAMING)

    def _names(self, unit: Unit) -> dict[str, list[int]]:
        """Offsets of a unit's entries by name; C++'s by their whole name and by their last.

        Names without the inline namespaces that they are in are `_shorter`.
        """
        found = self._units.get(id(unit))
        if found is not None:
            return found
        found = self._units[id(unit)] = {}
        shorter: dict[str, list[int]] = {}
        self._shorter[id(unit)] = shorter
        shape = unit.shape
        spaces: dict[int, str] = {}
        inline: dict[str, str] = {}
        for index, tag in enumerate(shape.tags):
            parent = shape.parents[index]
            if parent < 0 or (tag not in _KEPT and tag != _NAMESPACE):
                continue
            within = parent
            if tag == _ENUMERATOR:
                within = shape.parents[parent]
            if within < 0 or shape.tags[within] not in _SPACES:
                continue
            die = Die(unit, shape.offsets[index])
            name = die.name
            if not name:
                around = spaces.get(within, "")
                spaces[index] = around
                if tag == _NAMESPACE:  # its names are seen from outside, as an inline one's are
                    spaces[index] = f"{around}{_UNNAMED}"
                    inline[spaces[index]] = around
                continue
            whole = spaces.get(within, "") + name
            if die.has(dies.AT_SPECIFICATION):
                origin = die.reference(dies.AT_SPECIFICATION)
                whole = qualified(origin) if origin is not None else whole
            elif tag == _SUBPROGRAM and die.has(dies.AT_ABSTRACT_ORIGIN):
                whole = qualified(die.origins()[-1])
            elif tag == _ENUMERATOR:
                scope, only = _scope_of(unit, parent)
                if scope:
                    found.setdefault(scope + name, []).append(die.offset)
                if only:
                    continue
            if tag == _NAMESPACE or tag in RECORDS:
                spaces[index] = f"{whole}::"
                if die.has(_AT_EXPORT_SYMBOLS):
                    inline[f"{whole}::"] = spaces.get(within, "")
            if tag in _KEPT:
                found.setdefault(whole, []).append(die.offset)
                for inner, outer in inline.items():
                    if whole.startswith(inner):
                        shorter.setdefault(outer + whole[len(inner) :], []).append(die.offset)
                if whole != name and not _is_constructor(whole, name):
                    found.setdefault(name, []).append(die.offset)
        return found


def _is_member(die: Die) -> bool:
    """True for what stands in a class."""
    origin = die.origins()[-1]
    parent = origin.unit.shape.parents[origin.unit.index(origin.offset)]
    return parent >= 0 and origin.unit.shape.tags[parent] in RECORDS


def _is_in_function(die: Die) -> bool:
    """True for what stands in a function: a lambda's code, that of a local class."""
    origin = die.origins()[-1]
    shape = origin.unit.shape
    index = shape.parents[origin.unit.index(origin.offset)]
    while index >= 0:
        if shape.tags[index] == _SUBPROGRAM:
            return True
        index = shape.parents[index]
    return False


def class_around(kind: object) -> str:
    """The class of C++ that a type or function stands in; "" for none."""
    named = kind.named if isinstance(kind, DieType) else None
    if named is None or not _is_member(named):
        return ""
    origin = named.origins()[-1]
    shape = origin.unit.shape
    return qualified(
        Die(origin.unit, shape.offsets[shape.parents[origin.unit.index(origin.offset)]])
    )


def _is_constructor(whole: str, name: str) -> bool:
    """True for "geo::Shape::Shape": "Shape" alone is the class."""
    path = whole.split("::")
    return len(path) > 1 and path[-2].partition("<")[0] == name


def _whole_names(names: dict[str, list[int]]) -> dict[int, str]:
    """The longest name of each entry, by its offset: C++'s are found by their last part, too."""
    found: dict[int, str] = {}
    for name, offsets in names.items():
        for offset in offsets:
            if len(name) > len(found.get(offset, "")):
                found[offset] = name
    return found


def _without_enumeration(name: str, die: Die) -> str:
    """An enumerator's name as it is written: "geo::BLUE" for "geo::Color::BLUE" of a plain one."""
    shape = die.unit.shape
    scope, only = _scope_of(die.unit, shape.parents[die.unit.index(die.offset)])
    if only or name != f"{scope}{die.name}":
        return name
    return f"{scope.removesuffix('::').rpartition('::')[0]}::{die.name}".removeprefix("::")


def _scope_of(unit: Unit, index: int) -> tuple[str, bool]:
    """The scope in front of an enumeration's names: "geo::Kind::"; true if it has to be there."""
    kind = Die(unit, unit.shape.offsets[index])
    return f"{qualified(kind)}::" if kind.name else "", kind.has(_AT_ENUM_CLASS)

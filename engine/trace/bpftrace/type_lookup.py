"""Types by name: bpftrace's own, C's, the script's, the guest's."""

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec import Struct

from engine.image.datatypes import DataType, TypeKind
from engine.trace.bpftrace.c_definitions import CDefinitions
from engine.trace.bpftrace.c_types import Space, enumeration, value_type
from engine.trace.bpftrace.tree import WrittenType
from engine.trace.bpftrace.types import (
    BOOL,
    VOID,
    Aggregate,
    Array,
    BufferType,
    Enumeration,
    Integer,
    Pointer,
    ShownType,
    TextType,
    Type,
)

_OWN: Final[Mapping[str, Type]] = {
    **{f"int{bits}": Integer(bits, signed=True) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": Integer(bits, signed=False) for bits in (8, 16, 32, 64)},
    "bool": BOOL,
    "void": VOID,
    "count_t": Aggregate("count", signed=False),
    "sum_t": Aggregate("sum"),
    "min_t": Aggregate("min"),
    "max_t": Aggregate("max"),
    "avg_t": Aggregate("avg"),
    "stats_t": Aggregate("stats"),
    "usum_t": Aggregate("sum", signed=False),
    "umin_t": Aggregate("min", signed=False),
    "umax_t": Aggregate("max", signed=False),
    "uavg_t": Aggregate("avg", signed=False),
    "ustats_t": Aggregate("stats", signed=False),
    "timestamp": ShownType("timestamp"),
    "macaddr_t": ShownType("mac"),
    "cgroup_path_t": ShownType("cgroup_path"),
    "username_t": ShownType("username"),
    "inet": ShownType("inet"),
    "string": TextType(0),
    "buffer": BufferType(0),
}
"""bpftrace's types by name (its src/types.cpp, `ident_to_builtin_type`)."""

_C_WORDS: Final = frozenset(("char", "short", "int", "long", "signed", "unsigned"))

MAX_ARRAY: Final = 1 << 24
"""Bytes of an array that a script may name."""


class NamedTypes(Protocol):
    """A source of types of C: a script's definitions, a guest's debug information."""

    def struct(self, name: str) -> DataType | None:
        """A structure, union or enumeration by its name, with or without the word before it."""

    def typedef(self, name: str) -> DataType | None:
        """The type that a name stands for."""

    def enumerator(self, name: str) -> tuple[int, Enumeration] | None:
        """The value of a constant of an enumeration, and which one that is."""


class ScriptTypes(Struct, frozen=True):
    """The types that a script defines itself.

    Attributes:
        definitions: its definitions.
    """

    definitions: CDefinitions

    def struct(self, name: str) -> DataType | None:
        """A structure, union or enumeration by its name, with or without the word before it."""
        return self.definitions.struct(name)

    def typedef(self, name: str) -> DataType | None:
        """The type that a name stands for."""
        return self.definitions.typedef(name)

    def enumerator(self, name: str) -> tuple[int, Enumeration] | None:
        """The value of a constant of an enumeration, and which one that is."""
        found = self.definitions.enumerator(name)
        return None if found is None else (found[0], enumeration(found[1]))


class TypeLookup:
    """Finds types by name.

    Args:
        sources: where types of C are, the first one that has a name wins.
        pointer_size: bytes of an address, and of `long`.
    """

    __slots__ = ("_pointer_size", "_sources")

    def __init__(self, sources: tuple[NamedTypes, ...], pointer_size: int) -> None:
        self._sources, self._pointer_size = sources, pointer_size

    def written(self, name: WrittenType, space: Space) -> Type | None:
        """The type that is written; None if its name is not known.

        Args:
            name: as it stands in the script.
            space: whose memory its pointers lead to.
        """
        found = self.named(name.name, space)
        for suffix in name.suffixes:
            if found is None:
                return None
            if suffix == "*":
                found = Pointer(found, space)
            elif suffix is not None and found == TextType(0):
                found = TextType(suffix)
            elif suffix is not None and found == BufferType(0):
                found = BufferType(suffix)
            elif not (suffix is not None and found == ShownType("inet")):
                found = Array(found, suffix or 0)
        return found

    def named(self, name: str, space: Space = "none") -> Type | None:
        """The type of a name without stars and brackets."""
        found = _OWN.get(name)
        if found is not None:
            return found
        tag, _, plain = name.rpartition(" ")
        if tag in ("struct", "union", "enum"):
            data = self._struct(name)
            kind = None if data is None else value_type(data, space)
            wanted = (TypeKind.ENUM,) if tag == "enum" else (TypeKind.RECORD,)
            return kind if data is not None and data.resolved.kind in wanted else None
        words = name.split()
        if words and all(word in _C_WORDS for word in words):
            return self._of_words(words)
        data = self._typedef(plain) or self._struct(plain)
        return None if data is None else value_type(data, space)

    def enumerator(self, name: str) -> tuple[int, Enumeration] | None:
        """The value of a constant of an enumeration, and which one that is."""
        for source in self._sources:
            found = source.enumerator(name)
            if found is not None:
                return found
        return None

    def _struct(self, name: str) -> DataType | None:
        for source in self._sources:
            found = source.struct(name)
            if found is not None:
                return found
        return None

    def _typedef(self, name: str) -> DataType | None:
        for source in self._sources:
            found = source.typedef(name)
            if found is not None:
                return found
        return None

    def _of_words(self, words: list[str]) -> Type:
        if "char" in words:
            bits = 8
        elif "short" in words:
            bits = 16
        elif words.count("long") > 1:
            bits = 64
        elif "long" in words:
            bits = 8 * self._pointer_size
        else:
            bits = 32
        return Integer(bits, "unsigned" not in words)

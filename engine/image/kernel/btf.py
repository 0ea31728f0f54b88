"""BTF, the types that a kernel carries: the section's index and its raw entries.

Source: Documentation/bpf/btf.rst. Opening finds where each entry begins and nothing more; names
become entries on the first question. A module's section goes on where the kernel's own ends:
its numbers of types and strings count on from those of its base ("split BTF").

What the entries mean as C types stands in `btftypes`.
"""

import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import accumulate, chain
from typing import Final

from msgspec import Struct

from engine.errors import ImageError
from engine.image.kernel.columnfile import ColumnSet, columns_of

_MAGIC: Final = 0xEB9F
_HEADER: Final = 24
_VERSION: Final = 1


class BtfKind(IntEnum):
    """Kinds of entries, by their numbers."""

    VOID = 0
    INT = 1
    PTR = 2
    ARRAY = 3
    STRUCT = 4
    UNION = 5
    ENUM = 6
    FWD = 7
    TYPEDEF = 8
    VOLATILE = 9
    CONST = 10
    RESTRICT = 11
    FUNC = 12
    FUNC_PROTO = 13
    VAR = 14
    DATASEC = 15
    FLOAT = 16
    DECL_TAG = 17
    TYPE_TAG = 18
    ENUM64 = 19


_K = BtfKind
_FIXED: Final = {_K.INT: 1, _K.ARRAY: 3, _K.VAR: 1, _K.DECL_TAG: 1}
"""Words that follow an entry of a kind, without those of its members."""
_EACH: Final = {
    _K.STRUCT: 3,
    _K.UNION: 3,
    _K.ENUM: 2,
    _K.FUNC_PROTO: 2,
    _K.DATASEC: 3,
    _K.ENUM64: 3,
}
"""Words of each member, by kind."""
_WORDS: Final = [3 + _FIXED.get(_K(kind), 0) if 0 < kind <= max(_K) else 0 for kind in range(32)]
_MEMBER_WORDS: Final = [_EACH.get(_K(kind), 0) if kind <= max(_K) else 0 for kind in range(32)]

NAMED_TYPES: Final = (_K.INT, _K.FLOAT, _K.STRUCT, _K.UNION, _K.ENUM, _K.ENUM64, _K.TYPEDEF)
"""Kinds of the entries that are types with names."""
REFERRING: Final = frozenset(
    (_K.PTR, _K.TYPEDEF, _K.VOLATILE, _K.CONST, _K.RESTRICT, _K.FUNC, _K.VAR, _K.TYPE_TAG)
)
"""Kinds whose last word is the number of another type."""


class BtfEntry(Struct, frozen=True):
    """One entry, as the section has it.

    Attributes:
        id: its number; 0 is void.
        kind: its kind.
        name: "" for none.
        word: bytes, or the number of another type, as the kind has it.
        count: of its members.
        flag: signed (enumerations), a union (declarations), bitfields told by members (records).
        extra: the words behind it.
    """

    id: int
    kind: BtfKind
    name: str
    word: int
    count: int
    flag: bool
    extra: "array[int]"


_VOID: Final = BtfEntry(0, BtfKind.VOID, "void", 0, 0, False, array("I"))


class Btf:
    """The types of one kernel or module.

    Attributes:
        name: of the file, for messages.
        base: of a module: the kernel's.
        first: number of the first entry of its own.
        end: number behind the last one.
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        base: "Btf | None" = None,
        index: ColumnSet | None = None,
    ) -> None:
        """Find where the entries begin.

        Args:
            data: the section.
            name: of the file, for messages.
            base: the kernel's types, for a module.
            index: of the same section, as `index` gave it; None = it is made when it is needed.

        Raises:
            ImageError: the section is damaged, or the base is another kernel's.
        """
        self.name = name
        self.base = base
        order, types, self._strings = self._parts(data)
        self._words = array("I")
        self._words.frombytes(types)
        if (order == "<") != (sys.byteorder == "little"):
            self._words.byteswap()
        self._string_base = base.string_end if base is not None else 0
        self.first = base.end if base is not None else 1
        self._kept = index
        starts: Sequence[int] = self._index() if index is None else index.numbers("starts")
        self._starts = starts
        self.end: int = self.first + len(self._starts)
        if base is not None:
            self._check_base(base)

    def _error(self, what: str) -> ImageError:
        return ImageError(f"{self.name}: .BTF: {what}")

    def _parts(self, data: bytes) -> tuple[str, bytes, bytes]:
        """Byte order, entries and strings."""
        if len(data) < _HEADER:
            raise self._error(f"{len(data)} bytes are no header")
        order = "<" if data[0] == _MAGIC & 0xFF else ">"
        magic, version, _ = struct.unpack_from(f"{order}HBB", data)
        if magic != _MAGIC:
            raise self._error(f"magic number at 0 is {magic:#06x}, must be {_MAGIC:#06x}")
        if version != _VERSION:
            raise self._error(f"version {version} is not known")
        size, types, types_size, strings, strings_size = struct.unpack_from(f"{order}5I", data, 4)
        if size < _HEADER or types % 4 or types_size % 4:
            raise self._error("header at 0: a part is not aligned")
        for what, at, length in (
            ("types", types, types_size),
            ("strings", strings, strings_size),
        ):
            if size + at + length > len(data):
                raise self._error(
                    f"{what} of {length} bytes at {size + at:#x} end behind the section"
                    f" ({len(data)} bytes): is it cut short?"
                )
        names = data[size + strings : size + strings + strings_size]
        if not names.endswith(b"\0") and (names or self.base is None):
            raise self._error(f"strings at {size + strings:#x} have no end")
        return order, data[size + types : size + types + types_size], names

    def _index(self) -> "array[int]":
        """The place of each entry, in words."""
        words, fixed, each = self._words, _WORDS, _MEMBER_WORDS
        starts: list[int] = []
        at, end = 0, len(words)
        add = starts.append
        try:
            while at < end:
                info = words[at + 1]
                kind = info >> 24 & 31
                step = fixed[kind]
                if not step:
                    raise self._error(f"type {self.first + len(starts)} has the kind {kind}")
                add(at)
                at += step + each[kind] * (info & 0xFFFF)
        except IndexError:
            at = end + 1
        if at != end:
            raise self._error(f"type {self.first + len(starts) - 1} ends behind the types")
        return array("I", starts)

    def _check_base(self, base: "Btf") -> None:
        """Refuse a base that the entries do not fit: names would begin inside of words."""
        total, words = self.end, self._words
        for number, start in enumerate(self._starts, self.first):
            at, kind = words[start], words[start + 1] >> 24 & 31
            inside = 0 < at < base.string_end and not base.begins(at)
            if inside or (kind in REFERRING and words[start + 2] >= total):
                raise self._error(
                    f"type {number} does not fit the types of {base.name}:"
                    " the module was made for another kernel"
                )

    # -- entries -------------------------------------------------------------------------

    @property
    def string_end(self) -> int:
        """Offset behind its strings, as modules count."""
        return self._string_base + len(self._strings)

    def begins(self, offset: int) -> bool:
        """True where a string begins."""
        own = offset - self._string_base
        if own < 0 and self.base is not None:
            return self.base.begins(offset)
        return own == 0 or (own <= len(self._strings) and not self._strings[own - 1])

    def string(self, offset: int) -> str:
        """A string by its offset.

        Raises:
            ImageError: it is not in the section.
        """
        own = offset - self._string_base
        if own < 0 and self.base is not None:
            return self.base.string(offset)
        if not 0 <= own < len(self._strings) and offset:
            raise self._error(f"a name at {offset:#x} of {self.string_end:#x} bytes of strings")
        return self._strings[own : self._strings.find(b"\0", own)].decode("utf-8", "replace")

    def kind(self, number: int) -> BtfKind:
        """The kind of a type.

        Raises:
            ImageError: there is none of the number.
        """
        if not number:
            return BtfKind.VOID
        if number < self.first and self.base is not None:
            return self.base.kind(number)
        return BtfKind(self._words[self._start(number) + 1] >> 24 & 31)

    def entry(self, number: int) -> BtfEntry:
        """A type by its number.

        Raises:
            ImageError: there is none of the number.
        """
        if not number:
            return _VOID
        if number < self.first and self.base is not None:
            return self.base.entry(number)
        start, words = self._start(number), self._words
        name, info, word = words[start : start + 3]
        kind, count = info >> 24 & 31, info & 0xFFFF
        end = start + _WORDS[kind] + _MEMBER_WORDS[kind] * count
        return BtfEntry(
            number,
            BtfKind(kind),
            self.string(name) if name else "",
            word,
            count,
            bool(info >> 31),
            words[start + 3 : end],
        )

    def _start(self, number: int) -> int:
        own = number - self.first
        if not 0 <= own < len(self._starts):
            raise self._error(f"a reference to type {number} of {self.end}")
        return self._starts[own]

    # -- names ---------------------------------------------------------------------------

    def find(self, kind: BtfKind, name: str) -> int | None:
        """Number of the first type of a kind and name, the module's own first."""
        named = self._named[kind]
        wanted = name.encode("utf-8", "replace")
        at = bisect_left(named, wanted, key=self._raw_name)
        if at < len(named) and self._raw_name(named[at]) == wanted:
            return named[at]
        return None if self.base is None else self.base.find(kind, name)

    def names(self, kind: BtfKind) -> dict[str, int]:
        """The file's own entries of a kind by name, the first of each, without the base's."""
        found: dict[str, int] = {}
        for number in self._named[kind]:
            name = self._raw_name(number).decode("utf-8", "replace")
            found.setdefault(name, number)
        return found

    def of_kind(self, kind: BtfKind) -> Iterator[int]:
        """Numbers of all types of a kind, those of the base first."""
        if self.base is not None:
            yield from self.base.of_kind(kind)
        yield from self._of_kind[kind]

    def _raw_name(self, number: int) -> bytes:
        """The name of one of its own types, as it stands in the strings."""
        start = self._words[self._starts[number - self.first]]
        own = start - self._string_base
        if own < 0 and self.base is not None:
            return self.base.string(start).encode()
        if not 0 <= own < len(self._strings):
            return self.string(start).encode()
        return self._strings[own : self._strings.find(b"\0", own)]

    @cached_property
    def index(self) -> ColumnSet:
        """The beginnings of entries, and the numbers of all of one kind: in order, and by name."""
        if self._kept is not None:
            return self._kept
        words = self._words
        ordered: list[list[int]] = [[] for _ in range(32)]
        named: list[list[int]] = [[] for _ in range(32)]
        for number, start in enumerate(self._starts, self.first):
            kind = words[start + 1] >> 24 & 31
            ordered[kind].append(number)
            if words[start]:
                named[kind].append(number)
        for numbers in named:
            numbers.sort(key=self._raw_name)
        return columns_of(
            {
                "starts": array("I", self._starts),
                "ordered": array("I", chain.from_iterable(ordered)),
                "ordered_ends": array("I", accumulate(map(len, ordered))),
                "named": array("I", chain.from_iterable(named)),
                "named_ends": array("I", accumulate(map(len, named))),
            }
        )

    def _by_kind(self, what: str) -> dict[BtfKind, Sequence[int]]:
        numbers, ends = self.index.numbers(what), self.index.numbers(f"{what}_ends")
        lows = [0, *ends]
        return {kind: numbers[lows[kind] : ends[kind]] for kind in BtfKind}

    @cached_property
    def _named(self) -> dict[BtfKind, Sequence[int]]:
        """Numbers of its own types that have names, sorted by these."""
        return self._by_kind("named")

    @cached_property
    def _of_kind(self) -> dict[BtfKind, Sequence[int]]:
        return self._by_kind("ordered")

    @cached_property
    def enumerators(self) -> dict[str, tuple[int, int]]:
        """The names of all enumerations' values, its own: (number of the type, which one)."""
        found: dict[str, tuple[int, int]] = {}
        for kind, step in ((BtfKind.ENUM, 2), (BtfKind.ENUM64, 3)):
            for number in self._of_kind[kind]:
                extra = self.entry(number).extra
                for at in range(0, len(extra), step):
                    found.setdefault(self.string(extra[at]), (number, at // step))
        return found

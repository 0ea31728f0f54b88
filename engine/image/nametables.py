"""The functions of .debug_names: which units have one of a name (DWARF 5, 6.1.1).

The standard wants each function and each inlined copy that has an address listed under its name.
LLVM does so. What gdb writes into such a section lacks functions that are only inlined, so that
tables are used only if they say that they are LLVM's, and if they are of all units of a file.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.image import forms
from engine.image.forms import Widths
from engine.image.reader import DamagedError, Reader

_AUTHOR: Final = b"LLVM"
_SUBPROGRAM, _INLINED = 0x2E, 0x1D
_INDEX_UNIT: Final = 1
"""DW_IDX_compile_unit."""
_VERSION: Final = 5

_Attributes = tuple[tuple[int, int], ...]
"""(DW_IDX_*, form) of an entry."""


class _NameTable(Struct, frozen=True):
    """One table: those of several units stand one behind the other.

    Attributes:
        width: of offsets.
        units: offsets of its units.
        names: place of the offsets of its names in .debug_str.
        count: of names.
        kinds: (tag, attributes) of entries, by code.
        pool: place of its entries.
        end: first place behind it.
    """

    width: int
    units: tuple[int, ...]
    names: int
    count: int
    kinds: dict[int, tuple[int, _Attributes]]
    pool: int
    end: int


class NameTables:
    """The tables of one section.

    Attributes:
        units: offsets of the units whose names are listed.
        is_complete: each function that a unit of these has is listed.
    """

    def __init__(self, data: bytes, order: str) -> None:
        """Read what stands in front of the names.

        Args:
            data: the section.
            order: byte order as struct spells it.

        Raises:
            DamagedError: it is no such section.
        """
        self._data, self._order = data, order
        self.is_complete = True
        self._tables: list[_NameTable] = []
        reader = Reader(data, 0, len(data), order)
        while reader.place < reader.end:
            self._tables.append(self._read(reader))
        self.units = frozenset(unit for table in self._tables for unit in table.units)

    def functions(self, names: Sequence[int]) -> list[int]:
        """The units that have a function of a name, sorted.

        Args:
            names: offsets in .debug_str at which the name stands.

        Raises:
            DamagedError: an entry is damaged.
        """
        found = set[int]()
        for table in self._tables:
            for name in names:
                for number in self._numbers(table, name):
                    found.update(self._units(table, number))
        return sorted(found)

    def _read(self, reader: Reader) -> _NameTable:
        length, width = reader.initial_length()
        start = reader.take(length)
        one = Reader(self._data, start, start + length, self._order)
        version = one.uint(2)
        if version != _VERSION:
            raise DamagedError(f"a table of version {version}")
        one.take(2)
        own, local, foreign, buckets, count, abbrevs, author = (one.uint(4) for _ in range(7))
        self.is_complete &= one.block(-(-author // 4) * 4).startswith(_AUTHOR)
        units = self._offsets(one, own, width)
        one.take(local * width + foreign * 8 + buckets * 4)
        one.take(count * 4 if buckets else 0)  # hashes
        names = one.take(2 * count * width)
        pool = one.take(abbrevs)
        kinds = _kinds(Reader(self._data, pool, pool + abbrevs, self._order))
        return _NameTable(width, units, names, count, kinds, one.place, start + length)

    def _offsets(self, reader: Reader, count: int, width: int) -> tuple[int, ...]:
        form = struct.Struct(self._order + ("Q" if width == 8 else "I"))
        return tuple(each for (each,) in form.iter_unpack(reader.block(count * width)))

    def _numbers(self, table: _NameTable, name: int) -> Iterator[int]:
        """The numbers of a name in a table, by its offset in .debug_str."""
        needle = name.to_bytes(table.width, "little" if self._order == "<" else "big")
        end = table.names + table.count * table.width
        at = self._data.find(needle, table.names, end)
        while at >= 0:
            number, inside = divmod(at - table.names, table.width)
            if not inside:
                yield number
            at = self._data.find(needle, at + 1, end)

    def _units(self, table: _NameTable, number: int) -> Iterator[int]:
        """The units of a name's functions."""
        at = table.names + (table.count + number) * table.width
        place = Reader(self._data, at, table.end, self._order).uint(table.width)
        reader = Reader(self._data, table.pool + place, table.end, self._order)
        widths = Widths(table.width, 8, _VERSION)
        while code := reader.uleb():
            if code not in table.kinds:
                raise DamagedError(f"an entry of the unknown kind {code:#x}")
            tag, attributes = table.kinds[code]
            values = {index: forms.read(reader, form, widths, 0)[1] for index, form in attributes}
            unit = values.get(_INDEX_UNIT, 0)  # where there is one only, none is given
            if tag in (_SUBPROGRAM, _INLINED):
                if not isinstance(unit, int) or unit >= len(table.units):
                    raise DamagedError(f"there is no unit {unit!r}")
                yield table.units[unit]


def _kinds(reader: Reader) -> dict[int, tuple[int, _Attributes]]:
    found: dict[int, tuple[int, _Attributes]] = {}
    while reader.place < reader.end and (code := reader.uleb()):
        found[code] = reader.uleb(), tuple(_pairs(reader))
    return found


def _pairs(reader: Reader) -> Iterable[tuple[int, int]]:
    while pair := (reader.uleb(), reader.uleb()):
        if pair == (0, 0):
            return
        yield pair

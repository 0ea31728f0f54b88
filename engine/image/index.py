"""The symbols of an image sorted by address, as columns.

Columns of plain integers instead of one object a symbol: 258,000 symbols are sorted in a
tenth of a second, and a `Symbol` is built only when somebody looks at it.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, chain, compress
from operator import add
from typing import Final

from engine import arch as architectures
from engine.image import headers
from engine.image.elf import ElfImage
from engine.image.symtab import FUNCTIONS, SHN_ABS, Symbol, SymbolSection

_TLS: Final = 6
_GLOBAL_NOTYPE: Final = 0x10
_HIGHEST: Final = 1 << 65
"""Behind all ends of ranges."""
_PLACED: Final = 1
_AWAY: Final = 2
# What a row is by its st_info: with an address, TLS, or of no use (sections, files, ...).
_CLASSES: Final = bytes(
    _PLACED if info & 15 in (0, 1, 2, 5, 10) else _AWAY if info & 15 == _TLS else 0
    for info in range(256)
)


def has_mapping_symbols(image: ElfImage) -> bool:
    """Tell whether untyped symbols whose names begin with "$" are no places of a program."""
    arch = architectures.for_elf(image.machine, image.bits, image.byteorder)
    if arch is None:
        return image.machine in headers.MAPPED
    return arch.abi.mapping_symbols


# Masks of the rows' classes and sections: bytes.translate makes a 1 of each row that is meant.
_ORDINARY, _CONSTANT = 1, 2
_SECTIONS: Final = (
    b"\0"
    + bytes([_ORDINARY]) * (SHN_ABS - 1)
    + bytes([_CONSTANT])
    + bytes([_ORDINARY]) * (0xFFFF - SHN_ABS)
)
_IS: Final = [bytes(byte == wanted for byte in range(256)) for wanted in range(3)]
_IS_SOME: Final = bytes(byte != 0 for byte in range(256))


def named_rows(names: Sequence[int], strings: bytes) -> bytes:
    """A 1 for each row that has a name: what has no end is none, nor is the empty one."""
    if strings[:1] == strings[-1:] == b"\0":
        with suppress(IndexError):
            return bytes(map(strings.__getitem__, names)).translate(_IS_SOME)
    end = strings.rfind(b"\0")
    return bytes(0 < name < end and strings[name] != 0 for name in names)


def _both(one: bytes, other: bytes) -> bytes:
    """The bytes that are 1 in both of two masks of one length."""
    both = int.from_bytes(one, "little") & int.from_bytes(other, "little")
    return both.to_bytes(len(one), "little")


def undivided(
    starts: Sequence[int], reach: Sequence[int], end_of: Callable[[int], int], address: int
) -> tuple[int, int]:
    """The [low, high) around an address in which no range begins or ends.

    Args:
        starts: of the ranges, sorted.
        reach: the highest end of all ranges up to each one.
        end_of: (number of a range) to its end.
        address: an address inside the range that is asked for.
    """
    at = bisect_right(starts, address) - 1
    low = starts[at] if at >= 0 else 0
    high = starts[at + 1] if at + 1 < len(starts) else _HIGHEST
    while at >= 0 and reach[at] > low:
        end = end_of(at)
        if end > address:
            high = min(high, end)
        else:
            low = max(low, end)
        at -= 1
    return low, high


class SymbolIndex:
    """Rows of all tables that name something; a *ref* is a row number over all tables.

    Attributes:
        refs: rows with an address, sorted by it.
        starts: their addresses.
        elsewhere: rows whose value is no address: constants and TLS offsets.
    """

    def __init__(self, image: ElfImage, tables: Sequence[SymbolSection]) -> None:
        """Read all rows; a later table adds what the first one does not name."""
        self._tables = tables
        self._names = array("I")
        self._infos = b""
        self._sections = array("H")
        self._values: list[int] = []
        self._sizes: list[int] = []
        self._bases: list[int] = []
        self._latest: tuple[int, Symbol | None] = (-1, None)
        self.has_static_functions = False
        mapping = has_mapping_symbols(image)
        refs: list[list[int]] = []
        elsewhere: list[list[int]] = []
        for table in tables:
            base = len(self._values)
            columns = table.columns()
            self._bases.append(base)
            self._names += columns.names
            self._infos += columns.infos
            self._sections += columns.sections
            self._values += columns.values
            self._sizes += columns.sizes
            more, away = self._named(base, table.strings)
            if mapping:
                more = [ref for ref in more if not self._is_mapping(ref, table.strings)]
            if image.machine == headers.EM_ARM:  # bit 0 of a function says Thumb, not where
                for ref in more:
                    self._values[ref] &= ~int(self.is_function(ref))
            refs.append(self._unknown(refs, more))
            elsewhere.append(self._unknown(elsewhere, away))
            if not table.dynamic:
                self.has_static_functions |= any(map(self.is_function, more))
        self.refs = sorted(chain(*refs), key=self._values.__getitem__)
        self.elsewhere = sorted(chain(*elsewhere), key=self._values.__getitem__)
        self.starts = list(map(self._values.__getitem__, self.refs))

    def _named(self, base: int, strings: bytes) -> tuple[list[int], list[int]]:
        """The defined rows from `base` on: those with an address, and the others.

        Args:
            base: the first row of the table.
            strings: its string table; what has no end is no name, nor is the empty one.
        """
        classes = self._infos[base:].translate(_CLASSES)
        refs = range(base, base + len(classes))
        sections = self._sections[base:]
        kinds = bytes(map(_SECTIONS.__getitem__, sections))
        named = named_rows(self._names[base:], strings)
        ordinary = _both(named, kinds.translate(_IS[_ORDINARY]))
        placed = compress(refs, _both(ordinary, classes.translate(_IS[_PLACED])))
        constant = _both(named, kinds.translate(_IS[_CONSTANT]))
        away = (
            *compress(refs, _both(constant, classes.translate(_IS_SOME))),
            *compress(refs, _both(ordinary, classes.translate(_IS[_AWAY]))),
        )
        return list(placed), sorted(away)

    def _is_mapping(self, ref: int, strings: bytes) -> bool:
        return self._infos[ref] == 0 and strings[self._names[ref]] == 0x24  # a local "$x"

    def _unknown(self, known: list[list[int]], more: list[int]) -> list[int]:
        """The rows of `more` whose name and address no row of a table before has."""
        if not any(known):
            return more
        places = {self._values[ref] for ref in more}
        names: set[tuple[int, bytes]] = set()
        for table in known:
            names.update(self._places([ref for ref in table if self._values[ref] in places]))
        return [
            ref for ref, place in zip(more, self._places(more), strict=True) if place not in names
        ]

    def _places(self, refs: list[int]) -> list[tuple[int, bytes]]:
        """(address, name without version) of rows that are all in one table."""
        if not refs:
            return []
        offsets, values = self._names, self._values
        strings = self._table(refs[0])[0].strings
        find = strings.find
        spans = ((values[ref], start := offsets[ref], find(b"\0", start)) for ref in refs)
        return [(value, strings[start:end].partition(b"@")[0]) for value, start, end in spans]

    def _table(self, ref: int) -> tuple[SymbolSection, int]:
        number = bisect_right(self._bases, ref) - 1
        return self._tables[number], ref - self._bases[number]

    # -- one row -----------------------------------------------------------------

    def symbol(self, ref: int) -> Symbol:
        """Build the symbol of a row."""
        found, symbol = self._latest  # a walk over all functions asks for each several times
        if symbol is None or found != ref:
            table, row = self._table(ref)
            symbol = table.symbol(row)
            self._latest = ref, symbol
        return symbol

    def address(self, ref: int) -> int:
        """The link address of a row."""
        return self._values[ref]

    def size(self, ref: int) -> int:
        """The size of a row."""
        return self._sizes[ref]

    def is_function(self, ref: int) -> bool:
        """True if a row is typed as code."""
        return self._infos[ref] & 15 in FUNCTIONS

    # -- lookups -----------------------------------------------------------------

    @cached_property
    def _reach(self) -> list[int]:
        """The highest end of all rows up to each one: where a search may stop."""
        return self._highest_ends(self.refs)

    def _highest_ends(self, refs: list[int]) -> list[int]:
        starts = map(self._values.__getitem__, refs)
        sizes = map(self._sizes.__getitem__, refs)
        return list(accumulate(map(add, starts, sizes), max))

    def covering(self, address: int) -> tuple[list[int], list[int]]:
        """Find rows around an address.

        Returns:
            The sized rows of the last start whose range holds the address, and the rows
            without a size at the nearest start.
        """
        at = bisect_right(self.starts, address) - 1
        nearest = self.starts[at] if at >= 0 else -1
        unsized: list[int] = []
        # The ends of all rows are not looked at where the nearest one covers the address.
        while at >= 0 and (self.starts[at] == nearest or self._reach[at] > address):
            start = self.starts[at]
            sized: list[int] = []
            while at >= 0 and self.starts[at] == start:
                size = self._sizes[self.refs[at]]
                if size > address - start:
                    sized.append(self.refs[at])
                elif size == 0 and start == nearest:
                    unsized.append(self.refs[at])
                at -= 1
            if sized:
                return sized, unsized
        return [], unsized

    def span(self, address: int) -> tuple[int, int]:
        """The [low, high) around an address for which `covering` has one answer."""
        refs, values, sizes = self.refs, self._values, self._sizes
        return undivided(
            self.starts, self._reach, lambda at: values[refs[at]] + sizes[refs[at]], address
        )

    def starting(self, address: int) -> list[int]:
        """The rows that start exactly at an address."""
        low, high = bisect_left(self.starts, address), bisect_right(self.starts, address)
        return self.refs[low:high]

    def between(self, low: int, high: int) -> list[int]:
        """All rows whose value is in [low, high), constants and TLS offsets included."""
        away, value = self.elsewhere, self._values.__getitem__
        first, last = (bisect_left(away, at, key=value) for at in (low, high))
        placed = self.refs[bisect_left(self.starts, low) : bisect_left(self.starts, high)]
        return placed + away[first:last]

    def functions(self, image: ElfImage) -> list[int]:
        """Typed functions, and global untyped rows in code that none of those covers."""
        infos = self._infos
        typed = [ref for ref in self.refs if infos[ref] & 15 in FUNCTIONS]
        untyped = [ref for ref in self.refs if infos[ref] == _GLOBAL_NOTYPE]
        starts = [self._values[ref] for ref in typed]
        reach = self._highest_ends(typed)
        sections = image.sections
        found: list[int] = []
        for ref in untyped:
            address, number = self._values[ref], self._sections[ref]
            if number < len(sections) and sections[number].flags & headers.SHF_EXECINSTR:
                at = bisect_right(starts, address) - 1
                covered = at >= 0 and (reach[at] > address or starts[at] == address)
                if not covered and sections[number].holds(address):
                    found.append(ref)
        return sorted(typed + found, key=self._values.__getitem__) if found else typed

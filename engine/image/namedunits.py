"""Units of a debug file that may hold a name, found without reading their entries.

A name is a string in .debug_str nearly always, and a unit that has the name holds the string's
offset (DW_FORM_strp), an index of it (DW_FORM_strx) or the string itself. Bytes are searched at
hundreds of megabytes a second; entries are walked at two. A unit that is found in vain costs
time only. One that is missed would be a wrong answer, so wherever the bytes cannot tell, all
units are meant.

Entries without a name of their own refer to one that has it. Such references stay in one unit,
except in files of link-time optimisation and of dwz: there the offsets of named entries are
searched for in turn. DWARF 5, 7.5.6 and 7.26; dwz's forms are those of the DWARF 5 supplement.
"""

import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

from engine.errors import ImageError
from engine.image import dies
from engine.image.definitions import ENUM, RECORDS
from engine.image.dies import Die, Unit
from engine.image.longwork import look_up
from engine.image.reader import DamagedError

if TYPE_CHECKING:
    from engine.image.debuginfo import DebugInfo
    from engine.image.nametables import NameTables

_ABROAD: Final = (b"\x31\x10", b"\x47\x10")
"""In .debug_abbrev an abstract origin or a specification by DW_FORM_ref_addr."""
_UNTOLD: Final = (b"\x31\x16", b"\x31\x20", b"\x47\x16", b"\x47\x20")
"""The same by the signature of a type unit, or by a form that stands in the data."""
_NAMED: Final = frozenset((0x2E, 0x1D, 0x34, 0x0D, 0x16, 0x24, ENUM, *RECORDS))
"""Tags of entries that others refer to: functions, copies, variables, members, types."""
_FEW: Final = 7
"""Up to so many offsets each is searched for by itself; more are looked for all at once."""
_MOST: Final = 1 << 12
"""More offsets than this are in most units anyway."""
_KEPT: Final = 1 << 20
"""Entries whose names are kept, all units together: some 100 MB; the others are read each time."""
_VAIN: Final = 1 << 6
"""One byte in so many may begin a vain match; beyond that, reading all units is no dearer."""


def endings(name: str) -> tuple[str, ...]:
    """Possible last words of a path: of "a::b<c::d>" itself, "b<c::d>" and "d>"."""
    found, at = [name], name.find("::")
    while at >= 0:
        found.append(name[at + 2 :])
        at = name.find("::", at + 1)
    return tuple(dict.fromkeys(filter(None, found)))


class NamedUnits:
    """The units of one file by the names that they may hold."""

    def __init__(self, info: "DebugInfo") -> None:
        """Nothing is read yet."""
        self._info = info
        self._found: dict[tuple[tuple[str, ...], bool], tuple[int, ...]] = {}
        self._entries: dict[int, _UnitEntries] = {}
        self._room = _KEPT

    def of(self, names: Sequence[str], *, instances: bool = False) -> Iterator[Unit]:
        """Units that may have an entry of one of the names, type units among them.

        Skeletons of split units are given as they stand: what they lead to may have any name.

        Args:
            names: DW_AT_name or the linker's name, as the file has it.
            instances: names with template arguments behind them are meant too.

        Raises:
            DamagedError: a unit's header is none.
        """
        key = tuple(names), instances
        if key not in self._found:
            self._found[key] = tuple(self._known(*key))
        found = self._found[key]
        for number, offset in enumerate(found):
            look_up(self._info.name, number, len(found))
            yield self._info.unit("info", offset)

    def of_functions(self, name: str) -> Iterator[Unit]:
        """Units that may have code of a function, or of a template's instances, of a name.

        Raises:
            DamagedError: a unit's header is none.
        """
        offsets = self._listed(name.encode(errors="surrogateescape"))
        if offsets is None:
            yield from self.of((name,), instances=True)
            return
        for number, offset in enumerate(offsets):
            look_up(self._info.name, number, len(offsets))
            yield self._info.unit("info", offset)

    def _listed(self, word: bytes) -> list[int] | None:
        """The units with functions of a name in .debug_names; None if that does not tell."""
        if not word or self._tables is None:
            return None
        try:
            return self._tables.functions(list(_strings(self._info, (word + b"\0", word + b"<"))))
        except DamagedError as error:
            self._info.damage.note(f"{self._info.name}: .debug_names: {error}")
            return None

    def _known(self, names: tuple[str, ...], instances: bool) -> Iterable[int]:
        """The offsets of units, as a session before has found them or as they are read now."""
        kind, name = "instances" if instances else "names", "\0".join(names)
        found = self._info.known.units(kind, name)
        if found is None:
            found = tuple(self._read(names, instances))
            self._info.keep(kind, name, found)
        return found

    def _read(self, names: tuple[str, ...], instances: bool) -> Iterable[int]:
        words = [name.encode(errors="surrogateescape") for name in names]
        ends = (b"\0", b"<") if instances else (b"\0",)
        spelled = [word + end for word in words for end in ends]
        if not all(words) or self._is_untold:
            return self._starts
        try:
            found = self._holding_names(spelled)
            if found is None:
                return self._starts
            found = self._without_vain(found, names, spelled)
            if self._info.section(".gnu_debugaltlink"):
                needles = self._in_supplement(names, spelled, instances)
                if not self._follow(needles, found):
                    return self._starts
            if self._is_abroad and not self._close(found, names, instances):
                return self._starts
        except ImageError:
            return self._starts  # names are in a file that is missing: whoever reads them says so
        return sorted(found)

    # -- strings -----------------------------------------------------------------------------

    def _holding_names(self, spelled: Sequence[bytes]) -> set[int] | None:
        """Offsets of units that hold a string; None if that cannot be told."""
        data, order = self._info.section(".debug_info"), self._info.order
        found = set(self._skeletons)
        for word in spelled:
            found.update(self._units_with(data, word))
        strings = list(_strings(self._info, spelled))
        needles = [struct.pack(order + "I", at) for at in strings if at < 1 << 32]
        if not self._follow(needles, found):
            return None
        table = self._info.section(".debug_str_offsets")
        for needle in needles if table else ():
            for at in _occurrences(table, needle):
                found.update(self._indexing(at))
        return found

    def _without_vain(
        self, found: set[int], names: tuple[str, ...], spelled: Sequence[bytes]
    ) -> set[int]:
        """The units among some in which the bytes of a name are the name of an entry.

        Short offsets stand in units by chance, and a unit may have half a million entries, whose
        names would all be read. Where bytes alone do not tell, all units are left.
        """
        elsewhere = (".debug_str_offsets", ".gnu_debugaltlink")
        if any(self._info.section(section) for section in elsewhere):
            return found
        strings = (at for at in _strings(self._info, spelled) if at < 1 << 32)
        offsets = [struct.pack(self._info.order + "I", at) for at in strings]
        wanted = frozenset(names)
        return {
            unit
            for unit in found
            if unit in self._skeletons
            or _has_own(self._info.unit("info", unit), (*spelled, *offsets), wanted)
        }

    def _indexing(self, place: int) -> list[int]:
        """The units whose strings are in the part of .debug_str_offsets around a place."""
        bases = self._bases
        at = bisect_right(bases, (place, 1 << 64))
        base = bases[at - 1][0] if at else -1
        return [unit for start, unit in bases if start == base]

    @cached_property
    def _bases(self) -> list[tuple[int, int]]:
        """(base in .debug_str_offsets, unit) of all units, sorted."""
        units = (self._info.unit("info", offset) for offset in self._starts)
        return sorted((unit.str_offsets_base, unit.offset) for unit in units if unit.version >= 5)

    @cached_property
    def _skeletons(self) -> frozenset[int]:
        """The units whose entries are in other files: addresses of those have a section here."""
        if not self._info.section(".debug_addr"):
            return frozenset()
        units = (self._info.unit("info", offset) for offset in self._starts)
        return frozenset(unit.offset for unit in units if unit.root_attributes & dies.SPLIT_NAMES)

    # -- references --------------------------------------------------------------------------

    def _in_supplement(
        self, names: tuple[str, ...], spelled: Sequence[bytes], instances: bool
    ) -> list[bytes]:
        """Offsets of the strings, and of the entries that have them, in the supplementary file."""
        other = self._info.supplement
        found = other.naming(names, instances=instances)
        places = chain(
            _strings(other, spelled),
            *(_UnitEntries(unit).of(names, instances=instances) for unit in found),
        )
        return [struct.pack(self._info.order + "I", at) for at in places if at < 1 << 32]

    def _close(self, found: set[int], names: tuple[str, ...], instances: bool) -> bool:
        """Add the units that refer to named entries of others; False if that cannot be told."""
        seen = set[int]()
        for _ in range(dies.MAX_CHAIN):
            new = found - seen
            if not new:
                return True
            seen |= new
            places = [
                place
                for offset in new
                for place in self._entries_of(offset).of(names, instances=instances)
            ]
            needles = [struct.pack(self._info.order + "I", at) for at in places if at < 1 << 32]
            if not self._follow(needles, found):
                return False
        return False

    def _entries_of(self, offset: int) -> "_UnitEntries":
        """The named entries of a unit: names that are asked for one by one meet the same units."""
        found = self._entries.get(offset)
        if found is None:
            found = _UnitEntries(self._info.unit("info", offset))
            if found.count <= self._room:
                self._room -= found.count
                self._entries[offset] = found
        return found

    # -- bytes -------------------------------------------------------------------------------

    def _follow(self, needles: Sequence[bytes], found: set[int]) -> bool:
        """Add the units that hold an offset; False if there are too many to look for."""
        data = self._info.section(".debug_info")
        if len(needles) > _MOST:
            return False
        if len(needles) <= _FEW:
            for needle in needles:
                found.update(self._units_with(data, needle))
            return True
        letters = (sorted({needle[at] for needle in needles}) for at in range(4))
        sets = (b"[" + re.escape(bytes(one)) + b"]" for one in letters)
        pattern, wanted = re.compile(b"".join(sets), re.DOTALL), frozenset(needles)
        at, left = 0, len(data) // _VAIN
        while match := pattern.search(data, at):
            at = match.start()
            if match[0] in wanted:
                unit, at = self._around(at)
                found.add(unit)
            else:
                at, left = at + 1, left - 1
                if not left:
                    return False
        return True

    def _units_with(self, data: bytes, needle: bytes) -> Iterator[int]:
        at = data.find(needle)
        while at >= 0:
            unit, behind = self._around(at)
            yield unit
            at = data.find(needle, behind)

    def _around(self, place: int) -> tuple[int, int]:
        """The unit around a place of .debug_info, and where the next one begins."""
        starts = self._starts
        at = bisect_right(starts, place)
        end = starts[at] if at < len(starts) else len(self._info.section(".debug_info"))
        return starts[at - 1], max(end, place + 1)

    @cached_property
    def _starts(self) -> list[int]:
        return self._info.offsets()

    @cached_property
    def _tables(self) -> "NameTables | None":
        """The names in .debug_names, if they are those of all units."""
        data = self._info.section(".debug_names")
        if not data:
            return None
        from engine.image.nametables import NameTables  # few files have them

        try:
            found = NameTables(data, self._info.order)
            units = {u.offset for u in self._info.units() if u.kind not in dies.TYPE_UNITS}
        except DamagedError as error:
            self._info.damage.note(f"{self._info.name}: .debug_names: {error}")
            return None
        elsewhere = self._skeletons or self._info.section(".gnu_debugaltlink")
        is_whole = found.is_complete and found.units == units and not elsewhere
        return found if is_whole else None

    @cached_property
    def _is_abroad(self) -> bool:
        """True if entries may refer to those of other units by their offsets."""
        return _has_attribute(self._info.section(".debug_abbrev"), _ABROAD)

    @cached_property
    def _is_untold(self) -> bool:
        """True if entries may refer to others in ways that the bytes do not tell."""
        return _has_attribute(self._info.section(".debug_abbrev"), _UNTOLD)


def _has_attribute(abbrevs: bytes, wanted: Iterable[bytes]) -> bool:
    """True if an attribute of some form is in .debug_abbrev.

    Behind two zeros, which end a list of attributes, the same bytes are a code and a tag.
    """
    found = chain.from_iterable(_occurrences(abbrevs, pair) for pair in wanted)
    return any(abbrevs[max(at - 2, 0) : at] != b"\0\0" for at in found)


def _strings(info: "DebugInfo", spelled: Sequence[bytes]) -> Iterator[int]:
    """Offsets in .debug_str at which a word stands: strings share their ends."""
    data = info.section(".debug_str")
    return chain.from_iterable(_occurrences(data, word) for word in spelled)


def _occurrences(data: bytes, word: bytes) -> Iterator[int]:
    at = data.find(word)
    while at >= 0:
        yield at
        at = data.find(word, at + 1)


class _UnitEntries:
    """The named entries of a unit, by their own names or those of their origins.

    Attributes:
        count: how many names there are.
    """

    def __init__(self, unit: Unit) -> None:
        """Read them all.

        Raises:
            DamagedError: the unit's entries are none.
        """
        self._by_name: dict[str, list[int]] = {}
        shape = unit.shape
        for index, tag in enumerate(shape.tags):
            if tag in _NAMED:
                die = Die(unit, shape.offsets[index])
                for name in {die.name, die.linkage_name}:
                    if name is not None:
                        self._by_name.setdefault(name, []).append(die.offset)
        self.count = sum(map(len, self._by_name.values()))

    def of(self, names: Iterable[str], *, instances: bool) -> Iterator[int]:
        """Offsets of the entries of some names.

        Args:
            names: DW_AT_name or the linker's name.
            instances: names with template arguments behind them are meant too.
        """
        for name in names:
            yield from (self._by_stem if instances else self._by_name).get(name, ())

    @cached_property
    def _by_stem(self) -> dict[str, list[int]]:
        """As `_by_name`, and by what stands before template arguments."""
        found = {name: list(offsets) for name, offsets in self._by_name.items()}
        for name, offsets in self._by_name.items():
            stem, template, _ = name.partition("<")
            if template:
                found.setdefault(stem, []).extend(offsets)
        return found


def _has_own(unit: Unit, needles: Iterable[bytes], wanted: frozenset[str]) -> bool:
    """True if an entry that holds some bytes has one of the names itself, perhaps with arguments.

    A damaged unit is said to have one: whoever reads it says what is wrong.
    """
    try:
        offsets, looked = unit.shape.offsets, set[int]()
        for needle in needles:
            at = unit.data.find(needle, unit.top, unit.end)
            while at >= 0:
                index = bisect_right(offsets, at) - 1
                if index not in looked:
                    looked.add(index)
                    own = _own_names(Die(unit, offsets[index]))
                    if wanted & own or wanted & {name.partition("<")[0] for name in own}:
                        return True
                at = unit.data.find(needle, at + 1, unit.end)
    except DamagedError:
        return True
    return False


def _own_names(die: Die) -> set[str]:
    names = (dies.AT_NAME, *dies.LINKAGE_NAMES)
    return {name for attribute in names if (name := die.string(attribute))}

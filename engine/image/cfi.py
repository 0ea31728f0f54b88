"""Call frame information: which function an address belongs to, and its unwind rules.

Lookups bisect the search table of .eh_frame_hdr in the mapped file (LSB Core, "Exception
Frames") and parse one record. Without a table, or with a damaged one, all records of
.eh_frame and .debug_frame are walked once. The instructions stay bytes: interpreting
them is the unwinder's work.
"""

import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from engine.image import headers, sections
from engine.image.elf import ElfImage
from engine.image.frames import PE_OMIT, PE_PCREL_SDATA4, Cie, Fde, FrameArea, FrameParser
from engine.image.reader import DamagedError, Reader

__all__ = ["Cie", "Fde", "find_fde", "function_ranges", "range_at", "signal_frames"]

# The id, version and augmentation of a CIE that marks signal frames, in .eh_frame and in
# .debug_frame: the last four bytes of the id, and now and then other bytes.
_SIGNAL: Final = {
    True: re.compile(rb"\0\0\0\0[\x01\x03\x04]z?[A-RT-Z]*S[A-Z]*\0"),
    False: re.compile(rb"\xff\xff\xff\xff[\x01\x03\x04]z?[A-RT-Z]*S[A-Z]*\0"),
}
_FEW: Final = 256
_HDR_TABLE: Final = 0x3B  # datarel | sdata4: the only form linkers write and unwinders search


class _Table(Struct, frozen=True):
    """The sorted (start, FDE) table of .eh_frame_hdr; entries are relative to `address`."""

    offset: int
    count: int
    address: int


def function_ranges(image: ElfImage) -> tuple[tuple[int, int], ...]:
    """All (start, size) that the unwind tables describe, sorted; empty without tables.

    Procedure linkage tables are among them, usually as one range for a whole section.
    """
    return _frames(image).ranges()


def find_fde(image: ElfImage, address: int) -> Fde | None:
    """The entry that covers a link address; None = no rules, or only damaged ones.

    For a return address ask for address - 1: a call may be the last instruction.
    """
    return _frames(image).find(address)


def range_at(image: ElfImage, address: int) -> tuple[int, int] | None:
    """(start, size) of the entry that covers a link address; None as for `find_fde`.

    Once all records have been walked none is parsed for it.
    """
    return _frames(image).range_at(address)


def span_at(image: ElfImage, address: int) -> tuple[int, int]:
    """The [low, high) around a link address for which `range_at` has one answer."""
    return _frames(image).span_at(address)


def starts_between(image: ElfImage, low: int, high: int) -> list[int]:
    """Starts in [low, high) of what `function_ranges` has; a few are found without the rest."""
    return _frames(image).starts_between(low, high)


def signal_frames(image: ElfImage) -> tuple[tuple[int, int], ...]:
    """All (start, size) marked as signal frames: their return address is where they go on.

    Files without the mark, nearly all, are not read record by record.
    """
    return _frames(image).signal_frames


_cache: WeakKeyDictionary[ElfImage, "_Frames"] = WeakKeyDictionary()


def _frames(image: ElfImage) -> "_Frames":
    frames = _cache.get(image)
    if frames is None:
        frames = _cache[image] = _Frames(image)
    return frames


class _Frames:
    """The frame sections of one image, parsed as far as somebody asked."""

    def __init__(self, image: ElfImage) -> None:
        # No reference to the image stays here, or the weak cache would never let go.
        self._name, self._damage = image.name, image.damage
        self._parser = FrameParser(image.bits, image.layout.order)
        self._code = [
            (s.vaddr, s.vaddr + s.memsz) for s in image.load_segments if s.flags & headers.PF_X
        ]
        self._index: list[tuple[int, int, int, FrameArea]] | None = None
        self._table: _Table | None = None
        # [low, high) for which the table has one entry, and the entry: neighbours ask for it.
        self._latest: tuple[int, int, Fde] | None = None
        self._eh: FrameArea | None = None
        self._debug: FrameArea | None = None
        eh_address: int | None = None
        try:
            eh_address = self._read_header(image)
        except DamagedError as error:
            self._note("header of .eh_frame", error)
        section = image.section(".eh_frame")
        if section and section.type != headers.SHT_NOBITS and section.size:
            end = min(section.offset + section.size, image.size)
            self._eh = FrameArea(
                ".eh_frame", image.buffer, section.offset, end, section.addr, bounded=True
            )
        elif eh_address is not None and (start := image.file_offset(eh_address)) is not None:
            rest = (s for s in image.load_segments if s.offset <= start < s.offset + s.filesz)
            end = max((s.offset + s.filesz for s in rest), default=start)
            self._eh = FrameArea(
                ".eh_frame", image.buffer, start, min(end, image.size), eh_address, bounded=False
            )
        if data := sections.debug_bytes(image, ".debug_frame"):
            self._debug = FrameArea(".debug_frame", data, 0, len(data), 0, bounded=True)

    def _read_header(self, image: ElfImage) -> int | None:
        """Find the search table; return the address of .eh_frame that the header names."""
        segment = next((s for s in image.segments if s.type == headers.PT_GNU_EH_FRAME), None)
        if segment is None:
            return None
        base = segment.vaddr
        reader = Reader(
            image.buffer, segment.offset, segment.offset + segment.filesz, self._parser.order
        )
        version, frame_enc, count_enc, table_enc = reader.block(4)
        if version != 1:
            return None
        eh_address = self._parser.pointer(reader, frame_enc, base - segment.offset, base)
        if PE_OMIT in (count_enc, table_enc):
            return eh_address
        count = self._parser.pointer(reader, count_enc, base - segment.offset, base)
        if table_enc == _HDR_TABLE and 0 < 8 * count <= reader.end - reader.place:
            self._table = _Table(reader.place, count, base)
        return eh_address

    def _note(self, what: str, error: DamagedError) -> None:
        self._damage.note(f"{self._name}: {what}: {error}")

    # -- lookups -----------------------------------------------------------------

    def find(self, address: int) -> Fde | None:
        """See `find_fde`."""
        if self._table is not None and self._eh is not None:
            latest = self._latest
            if latest is not None and latest[0] <= address < latest[1]:
                return latest[2]
            try:
                fde = self._by_table(self._table, self._eh, address)
            except DamagedError as error:
                self._note("search table of .eh_frame", error)
                self._table = self._latest = (
                    None  # do not trust it again; the records may still be good
                )
                self._index = None
            else:
                if fde is not None or self._debug is None:
                    return fde
        row = self._row_at(address)
        if row is None:
            return None
        _, _, offset, area = row
        try:
            return self._parser.fde(area, offset)
        except DamagedError as error:
            self._note(f"{area.name}, record {offset - area.start:#x}", error)
            return None

    def range_at(self, address: int) -> tuple[int, int] | None:
        """See `range_at`."""
        if self._index is None:
            fde = self.find(address)
            return None if fde is None else (fde.start, fde.size)
        row = self._row_at(address)
        return None if row is None else row[:2]

    def span_at(self, address: int) -> tuple[int, int]:
        """See `span_at`."""
        if self._index is None:
            self.find(address)
            latest = self._latest
            if latest is None or not latest[0] <= address < latest[1]:
                return address, address + 1
            return latest[:2]
        rows = self._index
        at = bisect_right(rows, address, key=itemgetter(0)) - 1
        low, end = (rows[at][0], rows[at][0] + rows[at][1]) if at >= 0 else (0, 0)
        high = rows[at + 1][0] if at + 1 < len(rows) else max(end, address + 1)
        return (low, min(high, end)) if address < end else (end, high)

    def _row_at(self, address: int) -> tuple[int, int, int, FrameArea] | None:
        rows = self._rows()
        at = bisect_right(rows, address, key=itemgetter(0)) - 1
        return rows[at] if at >= 0 and address < rows[at][0] + rows[at][1] else None

    def starts_between(self, low: int, high: int) -> list[int]:
        """See `starts_between`."""
        table, area = self._table, self._eh
        if self._index is None and table is not None and area is not None and not self._debug:
            with suppress(DamagedError):  # all records will tell
                found = self._few_starts(table, area, low, high)
                if found is not None:
                    return found
        rows = self._rows()
        first, last = (bisect_left(rows, at, key=itemgetter(0)) for at in (low, high))
        return [row[0] for row in rows[first:last]]

    def _few_starts(self, table: _Table, area: FrameArea, low: int, high: int) -> list[int] | None:
        """The same by the table, as far as good entries go; None for too many."""
        start_of, entry_of = self._entries(table, area)
        every = range(table.count)
        first, last = (bisect_left(every, at, key=start_of) for at in (low, high))
        if last - first > _FEW:
            return None
        found: list[int] = []
        # One more to either side: a wrong one would have sent the search astray.
        for number in every[max(first - 1, 0) : last + 1]:
            fde = entry_of(number)
            if first <= number < last and fde.size and self._is_code(fde.start, fde.size):
                found.append(fde.start)
        return found

    def _entries(
        self, table: _Table, area: FrameArea
    ) -> tuple[Callable[[int], int], Callable[[int], Fde]]:
        """(number of an entry) to its start, and to the record that it is of."""
        entry = struct.Struct(self._parser.order + "ii")

        def start_of(index: int) -> int:
            relative: int = entry.unpack_from(area.data, table.offset + 8 * index)[0]
            return relative + table.address

        def entry_of(index: int) -> Fde:
            relative = entry.unpack_from(area.data, table.offset + 8 * index)[1]
            fde = self._parser.fde(area, table.address + relative - area.address + area.start)
            if fde.start != start_of(index):
                raise DamagedError("the search table and the entry disagree")
            return fde

        return start_of, entry_of

    def _by_table(self, table: _Table, area: FrameArea, address: int) -> Fde | None:
        start_of, entry_of = self._entries(table, area)
        at = bisect_right(range(table.count), address, key=start_of) - 1
        if at >= 0:
            fde = entry_of(at)
            end = fde.start + fde.size
            if address < end:
                if at + 1 < table.count:
                    end = min(end, start_of(at + 1))
                self._latest = fde.start, end, fde
                return fde
        # A miss is only believed between two good entries: a wrong one that sent the
        # search astray is one of its final neighbours.
        if at + 1 < table.count:
            entry_of(at + 1)
        return None

    @cached_property
    def signal_frames(self) -> tuple[tuple[int, int], ...]:
        """See `signal_frames`."""
        areas = [area for area in (self._eh, self._debug) if area is not None]
        if not any(_SIGNAL[area.eh].search(area.data, area.start, area.end) for area in areas):
            return ()
        return tuple(
            (start, size) for start, size, at, area in self._rows() if self._is_signal(area, at)
        )

    def _is_signal(self, area: FrameArea, place: int) -> bool:
        try:
            _, cie_offset, _ = self._parser.record(area, place)
            return cie_offset is not None and self._parser.cie(area, cie_offset).signal_frame
        except DamagedError:
            return False

    def ranges(self) -> tuple[tuple[int, int], ...]:
        """See `function_ranges`."""
        return tuple(sorted({(start, size) for start, size, _, _ in self._rows()}))

    def _rows(self) -> list[tuple[int, int, int, FrameArea]]:
        if self._index is None:
            rows = [row for area in (self._debug, self._eh) if area for row in self._scan(area)]
            rows.sort(key=lambda row: row[:2])
            self._index = rows
        return self._index

    def _scan(self, area: FrameArea) -> Iterator[tuple[int, int, int, FrameArea]]:
        """Walk all records; yield (start, size, offset, area) of those that cover code."""
        place = area.start
        plain = struct.Struct(self._parser.order + "IIiI")
        common: dict[int, bool] = {}  # CIE offset -> its FDEs are plain pc-relative pairs
        while place + 8 <= area.end:
            if area.eh and place + 16 <= area.end:
                length, delta, start, size = plain.unpack_from(area.data, place)
                if (
                    delta
                    and common.get(place + 4 - delta)
                    and 12 <= length <= area.end - place - 4
                ):
                    start += place + 8 + area.address - area.start
                    if size and self._is_code(start, size):
                        yield start, size, place, area
                    place += 4 + length
                    continue
            if area.data[place : place + 4] == bytes(4):
                if not area.bounded:
                    return
                place += 4
                continue
            try:
                reader, cie_offset, after = self._parser.record(area, place)
            except DamagedError as error:
                self._note(f"{area.name}, record {place - area.start:#x} and all behind it", error)
                return  # without a length there is no next record
            if cie_offset is not None:
                try:
                    cie = self._parser.cie(area, cie_offset)
                    start, size = self._parser.range(reader, area, cie)
                except DamagedError as error:
                    self._note(f"{area.name}, record {place - area.start:#x}", error)
                else:
                    common[cie_offset] = cie.fde_encoding == PE_PCREL_SDATA4
                    if size and self._is_code(start, size):
                        yield start, size, place, area
            place = after

    def _is_code(self, start: int, size: int) -> bool:
        return any(low <= start and start + size <= high for low, high in self._code)

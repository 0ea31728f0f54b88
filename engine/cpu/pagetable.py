"""The guest's page table: translation of guest-virtual to guest-physical addresses.

It is a sorted table of regions in host memory, which the TLB-fill callback (host code or Python)
searches at each TLB miss. Each address space has one of its own, and one is shown at a time.
"""

import ctypes
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from engine.cpu import hostmemory as host
from engine.cpu.ram import PHYSICAL_BASE, Ram
from engine.errors import GuestFaultError

_ENTRY: Final = struct.Struct("=4Q")
_ENTRY_SIZE = 4 * 8  # words of a table entry: start, end, physical minus virtual, permissions
_MAX_REGIONS = 1 << 20  # more than any address space has, with the gap
_GAP, _WIDEST = 32, 256
"""Free entries of a page table where it changed last: made so many, and never more."""
NOWHERE: Final = (1 << 64) - 1
"""Behind all addresses."""


class Region(NamedTuple):
    """A run of guest-virtual addresses with one permission and contiguous backing.

    Attributes:
        start: first byte, page aligned.
        end: one past the last byte, page aligned.
        physical: arena offset of `start`.
        perms: READ, WRITE, EXECUTE bits.
        sifted: bits that the emulator itself goes by, which looks at each access to watched bytes;
            0 = the same.
    """

    start: int
    end: int
    physical: int
    perms: int
    sifted: int = 0


class RegionTable:
    """The regions of an address space as the callback searches them: sorted, never overlapping.

    Its entries lie as in a gap buffer: those before the place of the last change at the front,
    then free ones, then the rest, so that changes near each other move little. A free entry
    covers nothing and begins where the region behind the gap does, which leaves the search as
    it is.

    Attributes:
        regions: all of them; the list stays the same object.
        address: of its entries.
    """

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self._starts: list[int] = []
        self._entries = host.private(_MAX_REGIONS * _ENTRY_SIZE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._entries))
        self._front = self._gap = 0
        self._free = (0, 0, 0)  # the entries that are free, and what they begin with

    @property
    def count(self) -> int:
        """Entries, free ones included."""
        return len(self.regions) + self._gap

    def replace(self, start: int, end: int, regions: list[Region]) -> None:
        """Replace the regions that begin in [start, end).

        Args:
            start: first address.
            end: one past the last.
            regions: what is there now, sorted, all within.
        """
        starts = self._starts
        low = bisect_left(starts, start)
        high = bisect_left(starts, end, low)
        if high - low == len(regions) == 1:  # it is longer or shorter, or has other rights
            self._set(low, regions[0])
            return
        self.regions[low:high] = regions
        starts[low:high] = [region.start for region in regions]
        if high == self._front:  # those that go stand in front of the gap
            self._front = low
        else:
            self._move_gap(low)
        self._gap += high - low
        if not len(regions) <= self._gap <= _WIDEST + len(regions):
            self._set_gap(len(regions) + _GAP, len(self.regions) - low - len(regions))
        if regions:
            self._put(low, regions)
            self._front += len(regions)
            self._gap -= len(regions)
        behind = low + len(regions)
        self._set_free(starts[behind] if behind < len(starts) else NOWHERE)

    def add(self, region: Region) -> bool:
        """Put a region where there is none; True if there are more entries now."""
        starts = self._starts
        index = bisect_left(starts, region.start)
        if not self._gap:
            count = self.count
            self.replace(region.start, region.end, [region])
            return self.count != count
        if index != self._front:
            self._move_gap(index)
            self._set_free(starts[index] if index < len(starts) else NOWHERE)
        self.regions.insert(index, region)
        starts.insert(index, region.start)
        self._put(index, (region,))
        self._front = index + 1
        self._gap -= 1
        self._free = index + 1, self._free[1], self._free[2]  # those left begin as before
        return False

    def change(self, start: int, region: Region | None) -> bool:
        """Let the region that begins at an address be another, between the same neighbours.

        Or none: True if there are fewer entries then.
        """
        index = bisect_left(self._starts, start)
        if region is not None:
            self._set(index, region)
            return False
        if index + 1 != self._front or self._gap >= _WIDEST:
            count = self.count
            self.replace(start, start + 1, [])
            return self.count != count
        del self.regions[index], self._starts[index]
        self._front = index
        self._gap += 1
        _, stop, begin = self._free
        self._free = index, stop, begin
        _ENTRY.pack_into(self._entries, index * _ENTRY_SIZE, begin, 0, 0, 0)
        return False

    def _set(self, index: int, region: Region) -> None:
        """Put a region in another's place."""
        starts, begin = self._starts, region.start
        self.regions[index] = region
        self._put(index if index < self._front else index + self._gap, (region,))
        if begin != starts[index]:
            starts[index] = begin
            if index == self._front:
                self._set_free(begin)

    def _put(self, index: int, regions: Sequence[Region]) -> None:
        """Write entries."""
        at = index * _ENTRY_SIZE
        for start, end, physical, perms, sifted in regions:
            delta = (PHYSICAL_BASE + physical - start) & 0xFFFFFFFFFFFFFFFF
            _ENTRY.pack_into(self._entries, at, start, end, delta, sifted or perms)
            at += _ENTRY_SIZE

    def _set_free(self, begin: int) -> None:
        """Let the entries of the gap be free, and begin at an address."""
        first, last, before = self._free
        start, stop = self._front, self._front + self._gap
        self._free = start, stop, begin
        if begin != before or first >= stop or last <= start:
            self._clear(start, stop, begin)
            return
        if start < first:
            self._clear(start, first, begin)
        if last < stop:
            self._clear(last, stop, begin)

    def _clear(self, start: int, stop: int, begin: int) -> None:
        """Write free entries."""
        free = _ENTRY.pack(begin, 0, 0, 0) * (stop - start)
        ctypes.memmove(self.address + start * _ENTRY_SIZE, free, len(free))

    def _move_gap(self, index: int) -> None:
        """Let the gap stand before the entry of an index."""
        if index == self._front:
            return
        self._free = (0, 0, 0)
        low, high = sorted((index, self._front))
        target, source = (low + self._gap, low) if index < self._front else (low, low + self._gap)
        self._move(target, source, high - low)
        self._front = index

    def _set_gap(self, gap: int, behind: int) -> None:
        """Give the gap another size; so many entries stand behind it."""
        self._free = (0, 0, 0)
        self._move(self._front + gap, self._front + self._gap, behind)
        self._gap = gap

    def _move(self, target: int, source: int, count: int) -> None:
        size = count * _ENTRY_SIZE
        at = self.address
        ctypes.memmove(at + target * _ENTRY_SIZE, at + source * _ENTRY_SIZE, size)

    def find(self, address: int) -> Region | None:
        """The region that covers an address."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        region = self.regions[index]
        return region if address < region.end else None


class PageTable:
    """The table that the callback searches at the moment.

    Attributes:
        ram: the memory that it leads to.
        shown: the regions of the address space that the emulator is in.
        several: it has been in others.
        behind: the same regions with the rights that were taken away to watch accesses; None
            where none were.
        is_open: accesses are refused only for what the program may not do.
    """

    def __init__(self, ram: Ram) -> None:
        self.ram = ram
        self.several = False
        self.behind: RegionTable | None = None
        self.is_open = False
        self.shown = RegionTable()
        self.show(self.shown)

    def show(self, table: RegionTable) -> None:
        """Search these regions from now on; the caller flushes the emulator's TLB."""
        self.several = self.several or table is not self.shown
        self.shown = table
        self.ram.control.table = table.address
        self.find = table.find
        self.refresh()

    def refresh(self) -> None:
        """The regions have changed; the caller flushes the TLB."""
        self.ram.control.count = self.shown.count

    @property
    def regions(self) -> list[Region]:
        """All regions that are shown."""
        return self.shown.regions

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let accesses be refused only for what the program may not do, for a moment.

        The caller flushes the TLB afterwards.
        """
        control, table = self.ram.control, self.behind or self.shown
        control.table, control.count, self.find = table.address, table.count, table.find
        was, self.is_open = self.is_open, True
        try:
            yield
        finally:
            shown, self.is_open = self.shown, was
            control.table, control.count, self.find = shown.address, shown.count, shown.find

    def rights(self, address: int) -> Region | None:
        """The region of an address as the program has it, whatever is watched there."""
        return (self.behind or self.shown).find(address)

    def address_of(self, physical: int) -> int | None:
        """An address at which a page of the arena is mapped; None where it is nowhere."""
        for region in self.shown.regions:
            if region.physical <= physical < region.physical + region.end - region.start:
                return region.start + physical - region.physical
        return None

    def load(self, regions: list[Region]) -> None:
        """Replace all of them; the caller flushes the TLB."""
        self.shown.replace(0, NOWHERE, regions)
        self.refresh()


class MappedMemory:
    """Reading and writing by guest address: what every processor does alike.

    Attributes:
        page_table: where guest addresses are.
    """

    page_table: PageTable
    _ram: Ram

    def read(self, address: int, size: int) -> bytes:
        """Guest memory, whatever its protection; GuestFaultError where nothing is mapped."""
        region = self.page_table.find(address) if size > 0 else None
        if region is not None and address + size <= region.end:  # the usual case
            return self._ram.read(region.physical + address - region.start, size)
        return b"".join(self._ram.read(at, part) for at, part in self._pieces(address, size))

    def write(self, address: int, data: bytes) -> None:
        """Write guest memory, whatever its protection; translated code is the caller's care."""
        done = 0
        for at, part in self._pieces(address, len(data), "write"):
            self._ram.write(at, data[done : done + part])
            done += part

    def _pieces(self, address: int, size: int, access: str = "read") -> list[tuple[int, int]]:
        pieces: list[tuple[int, int]] = []
        while size > 0:
            region = self.page_table.find(address)
            if region is None:
                raise GuestFaultError(address, access)
            part = min(size, region.end - address)
            pieces.append((region.physical + address - region.start, part))
            address += part
            size -= part
        return pieces

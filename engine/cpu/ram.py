"""The guest's physical memory and its page table, shared with the emulator.

Physical memory is one big host mapping (the arena), reserved but not committed; Unicorn is
told of it once. Guest-virtual to guest-physical translation is a sorted table of regions in
host memory, which the TLB-fill callback (host code or Python) searches at each TLB miss.
So mapping, protecting and unmapping guest memory never touches Unicorn's own memory map,
whose cost grows with every region, and stores take the translated code's fast path.

Every page counts against a budget when it is first touched: a guest that allocates without
end is stopped, a guest that only reserves is not.
"""

import ctypes
import mmap
import struct
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from typing import Final

from engine.cpu.freeranges import FreeRanges
from engine.errors import EngineError, GuestFaultError

PAGE: Final = 4096
READ, WRITE, EXECUTE = 1, 2, 4
PHYSICAL_BASE: Final = 0x1_0000_0000
"""The arena's place in guest-physical space; any free one would do."""

ACCESS_NAMES: Final = {16: "read", 17: "write", 18: "execute"}
OUT_OF_MEMORY: Final = 99
"""Reported instead of an access when the budget of touched pages is used up."""

NO_LIMIT: Final = (1 << 64) - 1

_ENTRY_SIZE = 4 * 8  # words of a table entry: start, end, physical minus virtual, permissions
_MAX_REGIONS = 1 << 20  # more than any address space has, with the gap
_GAP, _WIDEST = 256, 1024
"""Free entries of a page table where it changed last: made so many, and never more."""
NOWHERE: Final = (1 << 64) - 1
"""Behind all addresses."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_mremap = getattr(_libc, "mremap", None)
if _mremap is not None:
    _mremap.restype = ctypes.c_void_p
    _mremap.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    ]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value
_MAP_FIXED = 0x10
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
_DONTNEED = 4
_MREMAP_MAYMOVE_FIXED = 3


@dataclass(frozen=True, slots=True)
class Region:
    """A run of guest-virtual addresses with one permission and contiguous backing.

    Attributes:
        start: first byte, page aligned.
        end: one past the last byte, page aligned.
        physical: arena offset of `start`.
        perms: READ, WRITE, EXECUTE bits.
    """

    start: int
    end: int
    physical: int
    perms: int


class RamControl(ctypes.Structure):
    """The record that the TLB-fill callback reads and writes; native.py knows these offsets."""

    _fields_ = (
        ("count", ctypes.c_uint64),  # 0: entries of the table
        ("table", ctypes.c_uint64),  # 8: address of the entries
        ("fault_address", ctypes.c_uint64),  # 16: page of the last refused access
        ("fault_access", ctypes.c_uint64),  # 24: its kind, 0 = none
        ("touched", ctypes.c_uint64),  # 32: address of one byte a physical page
        ("budget", ctypes.c_int64),  # 40: pages that may still be touched
        ("physical_base", ctypes.c_uint64),  # 48: PHYSICAL_BASE
        ("fills", ctypes.c_uint64),  # 56: TLB misses served
        ("hole", ctypes.c_uint64),  # 64: where refused accesses go instead, 0 = nowhere
        ("limit", ctypes.c_uint64),  # 72: misses at which the emulator is stopped
        ("argument", ctypes.c_uint64),  # 80: of
        ("stop", ctypes.c_uint64),  # 88: the function that stops it
    )


class Ram:
    """The arena: guest-physical pages, zero when handed out.

    Attributes:
        view: its bytes; none after `close`.
    """

    def __init__(self, size: int = 64 << 30, budget: int = 1 << 30) -> None:
        """Reserve address space.

        Args:
            size: bytes of guest-physical memory that may be mapped at one time.
            budget: bytes that may be touched; host memory in use stays about below it.

        Raises:
            EngineError: the host gives no address space.
        """
        base = _FAILED
        while size >= 1 << 28:
            protection = mmap.PROT_READ | mmap.PROT_WRITE
            base = _libc.mmap(None, size, protection, _ANONYMOUS, -1, 0)
            if base != _FAILED:
                break
            size >>= 1  # a host with strict overcommit or an address-space limit
        if base is None or base == _FAILED:
            raise EngineError(f"the host has no address space for a guest ({size:#x} bytes)")
        self.base: int = base
        self.size = size
        self.view = memoryview((ctypes.c_char * size).from_address(base)).cast("B")
        self.budget = budget
        self._free = FreeRanges(0, size)
        self._touched_map = mmap.mmap(-1, size // PAGE)
        self._touched_view = memoryview(self._touched_map)
        self.control = RamControl()
        self.control.physical_base = PHYSICAL_BASE
        self.control.budget = budget // PAGE
        self.control.limit = NO_LIMIT
        self.control.touched = ctypes.addressof(ctypes.c_char.from_buffer(self._touched_map))
        self._host_mapped: list[tuple[int, int]] = []

    def close(self) -> None:
        """Give the arena back to the host; nothing may run on it any more."""
        if self.base:
            self.view = memoryview(b"")
            _libc.munmap(self.base, self.size)
            self.base = 0

    def allocate(self, size: int, *, high: bool = False) -> int | None:
        """Reserve `size` bytes (page multiple); the arena offset, None when none is left.

        The lowest place that is free, or the highest.
        """
        if high:
            free = self._free.highest(size)
            offset = None if free is None else free[1] - size
        else:
            offset = self._free.lowest(size)
        if offset is not None:
            self._free.take(offset, offset + size)
        return offset

    def allocate_at(self, offset: int, size: int) -> bool:
        """Reserve pages in one place; false if they are not free."""
        return offset >= 0 and self._free.take(offset, offset + size)

    def release(self, offset: int, size: int) -> None:
        """Give pages back: their content is dropped and their budget returned."""
        self.discard(offset, size)
        self._free.give(offset, offset + size)

    def discard(self, offset: int, size: int) -> None:
        """Make pages zero again (MADV_DONTNEED of anonymous memory)."""
        end = offset + size
        low, high = self._host_mapped_in(offset, end)
        if low < high:
            protection = mmap.PROT_READ | mmap.PROT_WRITE
            flags = _ANONYMOUS | _MAP_FIXED
            _libc.mmap(self.base + offset, size, protection, flags, -1, 0)
            self._host_mapped[low:high] = [
                piece
                for start, stop in self._host_mapped[low:high]
                for piece in ((start, min(stop, offset)), (max(start, end), stop))
                if piece[0] < piece[1]
            ]
        else:
            _libc.madvise(self.base + offset, size, _DONTNEED)
        first, last = offset // PAGE, end // PAGE
        # Large reservations are mostly untouched; looking at pieces keeps copies small.
        for at in range(first, last, 1 << 16):
            piece = self._touched_view[at : min(last, at + (1 << 16))]
            used = bytes(piece).count(1)
            if used:
                self.control.budget += used
                piece[:] = bytes(len(piece))

    def _host_mapped_in(self, start: int, end: int) -> tuple[int, int]:
        """Indices (from, to before) of the mapped files that overlap a stretch."""
        low = bisect_right(self._host_mapped, (start, 0))
        if low and self._host_mapped[low - 1][1] > start:
            low -= 1
        return low, bisect_left(self._host_mapped, (end, 0), low)

    def map_file(self, offset: int, size: int, descriptor: int, file_offset: int) -> bool:
        """Back pages by a private host mapping of a file; False if the host refuses.

        Only for files that nobody truncates: a page behind the end of the file would
        raise SIGBUS in the engine itself.
        """
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        flags = mmap.MAP_PRIVATE | _MAP_FIXED
        where = self.base + offset
        if _libc.mmap(where, size, protection, flags, descriptor, file_offset) == _FAILED:
            return False
        insort(self._host_mapped, (offset, offset + size))
        return True

    def show(self, address: int, size: int) -> int | None:
        """Let pages be the same memory as a shared mapping of the host's: their offset.

        None where the host cannot do that. What is written on either side is seen on both.
        """
        offset = self.allocate(size) if _mremap is not None else None
        if offset is None or _mremap is None:
            return None
        flags, where = _MREMAP_MAYMOVE_FIXED, self.base + offset
        if _mremap(address, 0, size, flags, where) != where:
            self.release(offset, size)
            return None
        insort(self._host_mapped, (offset, offset + size))
        return offset

    def touch(self, offset: int, size: int) -> bool:
        """Count pages that the engine itself is about to write; False beyond the budget."""
        for page in range(offset // PAGE, (offset + size + PAGE - 1) // PAGE):
            if not self._touched_view[page]:
                if self.control.budget <= 0:
                    return False
                self.control.budget -= 1
                self._touched_view[page] = 1
        return True

    def copy_touched(self, source: int, target: int, size: int) -> bool:
        """Copy those pages that were touched to fresh ones; False beyond the budget."""
        first, there = source // PAGE, target // PAGE
        used = bytes(self._touched_view[first : first + size // PAGE])
        at = used.find(1)
        while at >= 0:
            end = used.find(0, at)
            count = (len(used) if end < 0 else end) - at
            new = count - bytes(self._touched_view[there + at : there + at + count]).count(1)
            if self.control.budget < new:
                return False
            self.control.budget -= new
            self._touched_view[there + at : there + at + count] = b"\1" * count
            where = self.base + at * PAGE
            ctypes.memmove(where + target, where + source, count * PAGE)
            at = used.find(1, at + count)
        return True

    def touched(self, offset: int, size: int) -> int:
        """Bytes of those pages of a stretch that have been touched."""
        pages = self._touched_view[offset // PAGE : (offset + size + PAGE - 1) // PAGE]
        return bytes(pages).count(1) * PAGE

    def used(self) -> int:
        """Bytes of touched pages."""
        left: int = self.control.budget
        return self.budget - left * PAGE

    def read(self, offset: int, size: int) -> bytes:
        """Copy bytes out of the arena."""
        return self.view[offset : offset + size].tobytes()

    def write(self, offset: int, data: bytes) -> None:
        """Copy bytes into the arena."""
        ctypes.memmove(self.base + offset, data, len(data))


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
        self._entries = mmap.mmap(-1, _MAX_REGIONS * _ENTRY_SIZE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._entries))
        self._front = self._gap = 0

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
        low = bisect_left(self._starts, start)
        high = bisect_left(self._starts, end, low)
        self.regions[low:high] = regions
        self._starts[low:high] = [region.start for region in regions]
        self._move_gap(low)
        self._gap += high - low
        if not len(regions) <= self._gap <= _WIDEST + len(regions):
            self._set_gap(len(regions) + _GAP, len(self.regions) - low - len(regions))
        if regions:
            data = _pack(regions)
            ctypes.memmove(self.address + low * _ENTRY_SIZE, data, len(data))
            self._front += len(regions)
            self._gap -= len(regions)
        behind = low + len(regions)
        begin = self._starts[behind] if behind < len(self._starts) else NOWHERE
        free = struct.pack("=4Q", begin, 0, 0, 0) * self._gap
        ctypes.memmove(self.address + self._front * _ENTRY_SIZE, free, len(free))

    def _move_gap(self, index: int) -> None:
        """Let the gap stand before the entry of an index."""
        low, high = sorted((index, self._front))
        target, source = (low + self._gap, low) if index < self._front else (low, low + self._gap)
        self._move(target, source, high - low)
        self._front = index

    def _set_gap(self, gap: int, behind: int) -> None:
        """Give the gap another size; so many entries stand behind it."""
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
    """

    def __init__(self, ram: Ram) -> None:
        self.ram = ram
        self.several = False
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

    def load(self, regions: list[Region]) -> None:
        """Replace all of them; the caller flushes the TLB."""
        self.shown.replace(0, NOWHERE, regions)
        self.refresh()


def _pack(regions: list[Region]) -> bytes:
    words: list[int] = []
    for region in regions:
        delta = (PHYSICAL_BASE + region.physical - region.start) & 0xFFFFFFFFFFFFFFFF
        words += (region.start, region.end, delta, region.perms)
    return struct.pack(f"={len(words)}Q", *words)


class MappedMemory:
    """Reading and writing by guest address: what every processor does alike.

    Attributes:
        page_table: where guest addresses are.
    """

    page_table: PageTable
    _ram: Ram

    def read(self, address: int, size: int) -> bytes:
        """Guest memory, whatever its protection; GuestFaultError where nothing is mapped."""
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

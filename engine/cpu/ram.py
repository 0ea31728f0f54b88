"""The guest's physical memory, shared with the emulator.

Physical memory is one big host mapping (the arena), reserved but not committed; Unicorn is
told of it once, and `pagetable` says which of it a guest address means. So mapping, protecting
and unmapping guest memory never touches Unicorn's own memory map, whose cost grows with every
region, and stores take the translated code's fast path.

Every page counts against a budget when it is first touched: a guest that allocates without
end is stopped, a guest that only reserves is not.
"""

import ctypes
import mmap
import os
import resource
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Final, Protocol

from engine.cpu import hostmemory as host
from engine.cpu.freeranges import FreeRanges, OwnRanges
from engine.cpu.frozen import FrozenPages, Piece
from engine.cpu.hostmemory import PAGE as PAGE
from engine.errors import CommandError

READ, WRITE, EXECUTE = 1, 2, 4
PHYSICAL_BASE: Final = 0x1_0000_0000
"""The arena's place in guest-physical space; any free one would do."""

ACCESS_NAMES: Final = {16: "read", 17: "write", 18: "execute"}
OUT_OF_MEMORY: Final = 99
"""Reported instead of an access when the budget of touched pages is used up."""

NO_LIMIT: Final = (1 << 64) - 1

_OTHERS: Final = 3 << 29
"""Bytes of addresses that the emulator's translations and the tool itself take."""
_OWN_SHARE: Final = 8
"""The engine's own pages go down from this part of the arena; the guest's come from both ends."""
_ZERO: Final = bytes(PAGE)
_LOOK: Final = 1 << 12
"""Pages that are looked at one by one, where one of them has changed."""
_PIECE: Final = 1 << 20
"""Bytes of a file that `PageEffects` is told of at once."""
_MANY: Final = 256
"""Touched pages from which on a copy freezes them; below, copying them is cheaper."""
_SMALL: Final = 8
"""Pages of a stretch, at the most, that are made zeros without asking the host."""
_MOST_KEPT: Final = 256
"""Pages that may be kept so at one time, beside those that count."""
_GAP_FROZEN: Final = 16
"""Untouched pages at the most between touched ones that are frozen together."""


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
        ("changed", ctypes.c_uint64),  # 96: from a page's byte in `touched` to that of its
        # changes, 0 = nobody wants to know
        ("reached", ctypes.c_uint64),  # 104: likewise to that which says that it was reached
    )


class PageEffects(Protocol):
    """Is told of what happens to pages otherwise than by the program's own stores."""

    def filled(self, offset: int, data: bytes) -> None:
        """Bytes have been put there."""

    def zeroed(self, offset: int, size: int) -> None:
        """Pages are zeros now."""

    def pages_copied(self, source: int, target: int, size: int) -> None:
        """Fresh pages hold what others do."""


class Ram:
    """The arena: guest-physical pages, zero when handed out.

    Attributes:
        view: its bytes; none after `close`.
        frozen: its pages that are in a file, which copies share.
        many: touched pages in a row from which on a copy freezes them.
        effects: told of what the guest's kernel does to pages; None for nobody.
        refused: something was not done because the budget was used up.
    """

    def __init__(self, size: int = 64 << 30, budget: int = 1 << 30) -> None:
        """Reserve address space.

        Args:
            size: bytes of guest-physical memory that may be mapped at one time.
            budget: bytes that may be touched; host memory in use stays about below it.

        Raises:
            CommandError: the host gives no address space.
        """
        base = None
        granted = resource.getrlimit(resource.RLIMIT_AS)[0]
        if granted != resource.RLIM_INFINITY:
            size = min(size, max(granted - _OTHERS, 0) // 2 & -PAGE)
        while base is None and size >= 1 << 28:
            base = host.reserve(size)
            if base is None:
                size >>= 1  # a host with strict overcommit or an address-space limit
        if base is None:
            raise CommandError(
                "the host has no address space for a guest: less than 2.5 GB (ulimit -v)"
            )
        self.base: int = base
        self.size = size
        self.view = memoryview((ctypes.c_char * size).from_address(base)).cast("B")
        self.budget = budget
        self._free = FreeRanges(0, size)
        self._own = OwnRanges()
        self._touched_map = host.private(size // PAGE)
        self._touched_view = memoryview(self._touched_map)
        self.control = RamControl()
        self.control.physical_base = PHYSICAL_BASE
        self.control.budget = budget // PAGE
        self.control.limit = NO_LIMIT
        self.control.touched = ctypes.addressof(ctypes.c_char.from_buffer(self._touched_map))
        self._host_mapped: list[tuple[int, int]] = []
        self.frozen = FrozenPages(base, size)
        self._kept: set[int] = set()  # pages that may be in memory although nobody uses them
        self.many = _MANY
        self.effects: PageEffects | None = None
        self.refused = False
        self._changed_map: mmap.mmap | None = None
        self._changed_view = memoryview(bytearray())
        self._reached_map: mmap.mmap | None = None
        self.watches_reached = False

    def close(self) -> None:
        """Give the arena back to the host; nothing may run on it any more."""
        if self.base:
            self.view = memoryview(b"")
            host.unmap(self.base, self.size)
            self.frozen.close()
            self.base = 0

    def watch_changes(self) -> None:
        """From now on notice which pages are written to; the caller flushes the emulator's TLB."""
        if self._changed_map is None:
            self._changed_map = host.private(self.size // PAGE)
            self._changed_view = memoryview(self._changed_map)
            address = ctypes.addressof(ctypes.c_char.from_buffer(self._changed_map))
            self.control.changed = (address - self.control.touched) & NO_LIMIT

    def changed(self, offset: int, size: int) -> list[int]:
        """Numbers of the pages of a stretch that were written to, since they were `settled`."""
        found: list[int] = []
        at, end = offset // PAGE, (offset + size + PAGE - 1) // PAGE
        if self._changed_map is not None:
            while (at := self._changed_map.find(b"\1", at, end)) >= 0:
                behind = min(at + _LOOK, end)
                found += compress(range(at, behind), self._changed_view[at:behind])
                at = behind
        return found

    def settled(self, pages: Iterable[int]) -> None:
        """Take pages for unchanged; the caller flushes the emulator's TLB."""
        view = self._changed_view
        for page in pages:
            view[page] = 0

    def mark_changed(self, offset: int, size: int) -> None:
        """Take a stretch for changed, if anybody wants to know."""
        if self._changed_map is not None and size:
            first, behind = offset // PAGE, (offset + size + PAGE - 1) // PAGE
            self._changed_view[first:behind] = b"\1" * (behind - first)

    def watch_reached(self) -> None:
        """From now on notice which pages the program reaches; nothing has run on it yet."""
        if self._reached_map is None:
            self._reached_map = host.private(self.size // PAGE)
            self.watches_reached = True
            address = ctypes.addressof(ctypes.c_char.from_buffer(self._reached_map))
            self.control.reached = (address - self.control.touched) & NO_LIMIT

    def mark_reached(self, offset: int, size: int) -> None:
        """Take a stretch for reached, if anybody wants to know."""
        if self.watches_reached and size:
            self._set_reached(offset, size, b"\1")

    def _set_reached(self, offset: int, size: int, reached: bytes) -> None:
        assert self._reached_map is not None, "it is watched"
        first, behind = offset // PAGE, (offset + size + PAGE - 1) // PAGE
        self._reached_map[first:behind] = reached * (behind - first)

    def reached_pages(self, offset: int, size: int) -> list[int]:
        """Numbers of the pages of a stretch that were reached since `watch_reached`."""
        assert self._reached_map is not None, "it is watched"
        first, behind = offset // PAGE, (offset + size + PAGE - 1) // PAGE
        return [*compress(range(first, behind), self._reached_map[first:behind])]

    def allocate(self, size: int, *, high: bool = False, own: bool = False) -> int | None:
        """Reserve `size` bytes (page multiple); the arena offset, None when none is left.

        Args:
            size: bytes.
            high: the highest place that is free, instead of the lowest.
            own: a place apart from the guest's, for what the engine puts into its memory: where
                the guest's pages are does not depend on that.
        """
        if own:
            offset = self._own_place(size)
        elif high:
            free = self._free.highest(size)
            offset = None if free is None else free[1] - size
        else:
            offset = self._free.lowest(size)
        if offset is not None:
            self._free.take(offset, offset + size)
            if own:
                self._own.add(offset, offset + size)
        return offset

    def _own_place(self, size: int) -> int | None:
        """A free place in the middle of the arena, the next one below what is taken there."""
        middle = self.size // _OWN_SHARE & -PAGE
        free = self._free.highest(size, middle)
        if free is not None and min(free[1], middle) - size >= free[0]:
            return min(free[1], middle) - size
        return self._free.lowest(size)

    def allocate_at(self, offset: int, size: int) -> bool:
        """Reserve pages in one place; false if they are not free."""
        return offset >= 0 and self._free.take(offset, offset + size)

    def release(self, offset: int, size: int) -> bool:
        """Give pages back: their content is dropped and their budget returned.

        False if none of them was ever touched, so that the emulator remembers none.
        """
        if self.watches_reached:
            self._set_reached(offset, size, b"\0")
        touched = self.discard(offset, size)
        if self.frozen.pieces and self.frozen.within(offset, offset + size):
            host.renew(self.base + offset, size)
            self.frozen.forget(offset, offset + size)
        self._free.give(offset, offset + size)
        if self._own.ranges:
            self._own.remove(offset, offset + size)
        return touched

    def discard(self, offset: int, size: int) -> bool:
        """Make pages zero again (MADV_DONTNEED of anonymous memory), as if never touched.

        The caller flushes the emulator's TLB, so that they are seen to be touched again; not
        where it is False: none of them was.
        """
        if self.effects is not None:
            self.effects.zeroed(offset, size)
        end = offset + size
        if self._changed_map is not None:
            for first, last in self.touched_runs(offset, size):
                self.mark_changed(first, last - first)
        low, high = self._host_mapped_in(offset, end) if self._host_mapped else (0, 0)
        if low < high:
            for start, stop in self._host_mapped[low:high]:  # touched or not
                start, stop = max(start, offset), min(stop, end)
                self.mark_changed(start, stop - start)
            self._host_mapped[low:high] = [
                piece
                for start, stop in self._host_mapped[low:high]
                for piece in ((start, min(stop, offset)), (max(start, end), stop))
                if piece[0] < piece[1]
            ]
        pieces = self.frozen.within(offset, end) if self.frozen.pieces else ()
        first, last = offset // PAGE, end // PAGE
        if low == high and not pieces and self._touched_map.find(b"\1", first, last) < 0:
            return False
        if low < high or any(piece.frozen for piece in pieces):
            host.renew(self.base + offset, size)
            self.control.budget += self.frozen.forget(offset, end) // PAGE
        elif pieces:
            self._drop_around(pieces, offset, end)
        elif last - first <= _SMALL:
            self._empty(first, last)
            return True
        else:
            host.drop(self.base + offset, size)
        # Large reservations are mostly untouched; looking at pieces keeps copies small.
        for at in range(first, last, 1 << 16):
            piece = self._touched_view[at : min(last, at + (1 << 16))]
            content = piece.tobytes()
            used = content.count(1)
            if used:
                self.control.budget += used
                piece[:] = bytes(len(content))
        return True

    def _empty(self, first: int, last: int) -> None:
        """Make a few pages zeros, and keep them: they are likely to be wanted again soon."""
        used, kept = self._touched_view, self._kept
        for page in range(first, last):
            if used[page]:
                ctypes.memset(self.base + page * PAGE, 0, PAGE)
                used[page] = 0
                self.control.budget += 1
                kept.add(page)
        if len(kept) > _MOST_KEPT:
            for page in kept:  # one that shows a file by now may hold bytes of the engine's
                if not used[page] and not self.maps_file(page * PAGE, PAGE):
                    host.drop(self.base + page * PAGE, PAGE)
            kept.clear()

    def _drop_around(self, pieces: Sequence[Piece], start: int, end: int) -> None:
        """Make a stretch zeros in which only these pieces are in a file, all prepared."""
        for piece in pieces:
            if start < piece.start:
                host.drop(self.base + start, piece.start - start)
            self.frozen.empty(piece)
            start = piece.end
        if start < end:
            host.drop(self.base + start, end - start)

    def prepare(self, offset: int, size: int) -> None:
        """Let fresh pages be such that a copy of them, when they hold much, costs little.

        Each costs a little more when it is first touched.
        """
        self.frozen.prepare(offset, offset + size)

    def prepared(self, offset: int, size: int) -> bool:
        """True if some of these pages take room when they are looked at, touched or not."""
        return bool(self.frozen.prepared) and any(
            not piece.frozen for piece in self.frozen.within(offset, offset + size)
        )

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
        if not host.map_privately(self.base + offset, size, descriptor, file_offset):
            return False
        insort(self._host_mapped, (offset, offset + size))
        self.mark_changed(offset, size)
        if self.effects is not None:
            for at in range(0, size, _PIECE):
                data = os.pread(descriptor, min(_PIECE, size - at), file_offset + at)
                self.effects.filled(offset + at, data)
        return True

    def maps_file(self, offset: int, size: int) -> bool:
        """True if the host has mapped a file there: what was not touched is not copied."""
        low, high = self._host_mapped_in(offset, offset + size)
        return low < high

    def show(self, address: int, size: int) -> int | None:
        """Let pages be the same memory as a shared mapping of the host's: their offset.

        None where the host cannot do that. What is written on either side is seen on both.
        """
        offset = self.allocate(size, own=True)
        if offset is None:
            return None
        if not host.double(address, size, self.base + offset):
            self.release(offset, size)
            return None
        insort(self._host_mapped, (offset, offset + size))
        return offset

    def touch(self, offset: int, size: int) -> bool:
        """Count pages that the engine itself is about to write; False beyond the budget."""
        first, behind = offset // PAGE, (offset + size + PAGE - 1) // PAGE
        if behind - first == 1 and self._touched_view[first]:
            return True
        fresh = self._touched_map[first:behind].count(0)
        if fresh <= self.control.budget:
            self.control.budget -= fresh
            self._touched_view[first:behind] = b"\1" * (behind - first)
            return True
        for page in range(first, behind):
            if not self._touched_view[page]:
                if self.control.budget <= 0:
                    self.refused = True
                    return False
                self.control.budget -= 1
                self._touched_view[page] = 1
        return True

    def touch_unseen(self, offset: int, size: int) -> bool:
        """The same for the engine's own bytes in the program's pages.

        Pages of a file that the host has mapped count once the program touches them, as they
        would without those bytes.
        """
        return self.maps_file(offset, size) or self.touch(offset, size)

    def copy(self, source: int, target: int, size: int) -> bool:
        """Let fresh pages hold what others do; False beyond the budget.

        Many that were touched are frozen, and shown in both places until one side writes to
        them: pages that are read or written from now on are counted anew, beside the frozen
        ones, so the caller flushes the emulator's TLB.
        """
        if self.effects is not None:
            self.effects.pages_copied(source, target, size)
        self.mark_changed(target, size)
        at = source
        delta = target - source
        for piece in self.frozen.within(source, source + size):
            if not self._copy_own(at, piece.start, delta):
                return False
            if piece.frozen:
                done = self._copy_frozen(piece, delta)
            else:
                self.prepare(piece.start + delta, piece.end - piece.start)
                done = self._copy_own(piece.start, piece.end, delta)
            if not done:
                return False
            at = piece.end
        return self._copy_own(at, source + size, delta)

    def _copy_own(self, start: int, end: int, delta: int) -> bool:
        """Copy a stretch, none of it frozen, to the place `delta` behind it."""
        used = self._used(start, end)
        low, high = self._host_mapped_in(start, end)
        if low < high or used.count(1) < self.many:
            return self._copy_pages(start, used, delta)
        for first, last in _runs(used, _GAP_FROZEN):
            if last - first < self.many or not self._freeze(
                start + first * PAGE, start + last * PAGE
            ):
                if not self._copy_pages(start + first * PAGE, used[first:last], delta):
                    return False
                continue
            (piece,) = self.frozen.within(start + first * PAGE, start + last * PAGE)
            if not self._show_frozen(piece, delta):
                return False
        return True

    def _copy_frozen(self, piece: Piece, delta: int) -> bool:
        """Copy what shows frozen pages, and its changes."""
        changed = self.frozen.changed(piece)
        # Pages that were only read take no room beside the frozen ones.
        self._set_used(piece.start, changed)
        count = changed.count(1)
        if count >= max(self.many, len(changed) // 4) and self._freeze(piece.start, piece.end):
            (piece,) = self.frozen.within(piece.start, piece.end)
            return self._show_frozen(piece, delta)
        return self._show_frozen(piece, delta) and self._copy_pages(piece.start, changed, delta)

    def _freeze(self, start: int, end: int) -> bool:
        """Freeze a stretch; False if the host refuses, or beyond the budget.

        The frozen pages take the place of the touched ones in what is counted.
        """
        touched = self._used(start, end).count(1)
        count = (end - start) // PAGE
        if self.control.budget < count - touched:
            return False
        gone = self.frozen.freeze(start, end, self.view)
        if gone is None:
            return False
        self._set_used(start, bytes(count))
        self.control.budget += gone // PAGE - count
        return True

    def _show_frozen(self, piece: Piece, delta: int) -> bool:
        """Show frozen pages in the place `delta` behind a piece, or copy them."""
        if self.frozen.share(piece, piece.start + delta):
            return True
        return self._copy_pages(piece.start, b"\1" * ((piece.end - piece.start) // PAGE), delta)

    def _copy_pages(self, start: int, used: bytes, delta: int) -> bool:
        """Copy those pages behind `start` that are marked to the place `delta` behind it."""
        for first, last in _runs(used, 0):
            at = start + first * PAGE
            there = self._used(at + delta, start + last * PAGE + delta)
            if self.control.budget < there.count(0):
                self.refused = True
                return False
            self._set_used(at + delta, b"\1" * (last - first))
            ctypes.memmove(self.base + at + delta, self.base + at, (last - first) * PAGE)
        return True

    def _used(self, start: int, end: int) -> bytes:
        return bytes(self._touched_view[start // PAGE : end // PAGE])

    def _set_used(self, start: int, used: bytes) -> None:
        """Mark pages as touched or not, and count them so."""
        view = self._touched_view[start // PAGE : start // PAGE + len(used)]
        self.control.budget += bytes(view).count(1) - used.count(1)
        view[:] = used

    def touched_runs(self, offset: int, size: int) -> Iterator[tuple[int, int]]:
        """(arena offset, one past the last) of pages of a stretch that have been touched."""
        for first, last in _runs(self._used(offset, offset + size), 0):
            yield offset + first * PAGE, offset + last * PAGE

    def first_touched(self, offset: int, size: int) -> int | None:
        """Arena offset of the first page of a stretch that has been touched; None for none."""
        end = offset + size
        first = self._used(offset, end).find(1)
        found = [] if first < 0 else [offset + first * PAGE]
        found += [piece.start for piece in self.frozen.within(offset, end) if piece.frozen]
        return min(found, default=None)

    def untouched_lead(self, offset: int, size: int) -> int:
        """Bytes at the start of a stretch that nobody has touched; 0 where it shows a file."""
        if size <= PAGE or self.maps_file(offset, size):
            return 0
        page = offset & -PAGE
        first = self.first_touched(page, offset + size - page)
        return size if first is None else max(first - offset, 0)

    def touched(self, offset: int, size: int) -> int:
        """Bytes of those pages of a stretch that have been touched; frozen ones are."""
        end = offset + size + PAGE - 1 & -PAGE
        count = self._used(offset, end).count(1)
        for piece in self.frozen.within(offset, end):
            if piece.frozen:
                count += self._used(piece.start, piece.end).count(0)
        return count * PAGE

    def take_pages(self, count: int, spare: int = 0) -> bool:
        """Count pages that are kept elsewhere against the budget; False beyond it.

        Args:
            count: of the pages.
            spare: of those that are to be left; less than 0 takes pages that are not left, so
                that none is until others are given back.
        """
        if self.control.budget < count + spare:
            self.refused = True
            return False
        self.control.budget -= count
        return True

    def give_pages(self, count: int) -> None:
        """Count so many of them no more."""
        self.control.budget += count

    def pages_left(self) -> int:
        """Pages that may still be touched, or taken."""
        left: int = self.control.budget
        return left

    def used(self) -> int:
        """Bytes of touched pages, and of those that were taken."""
        return self.budget - self.pages_left() * PAGE

    def own_pages(self) -> int:
        """Touched pages that are the engine's own: a guest that is told of its memory has none."""
        return sum(self.touched(low, high - low) for low, high in self._own.ranges) // PAGE

    def read(self, offset: int, size: int) -> bytes:
        """Copy bytes out of the arena."""
        if self.frozen.prepared:
            first, behind = offset // PAGE, (offset + size + PAGE - 1) // PAGE
            if self._touched_map.find(b"\0", first, behind) >= 0:
                return self._read_untouched(offset, offset + size)
        return self.view[offset : offset + size].tobytes()

    def _read_untouched(self, start: int, end: int) -> bytes:
        """Copy bytes out of a stretch; prepared pages that were never touched are zeros."""
        parts: list[bytes | memoryview] = []
        for page in range(start & -PAGE, end, PAGE):
            low, high = max(start, page), min(end, page + PAGE)
            there = self._touched_view[page // PAGE] or not self.prepared(page, PAGE)
            parts.append(self.view[low:high] if there else bytes(high - low))
        return b"".join(parts)

    def write(self, offset: int, data: bytes) -> None:
        """Copy bytes into the arena."""
        self.view[offset : offset + len(data)] = data
        if self._changed_map is not None:
            self.mark_changed(offset, len(data))

    def restore(self, pages: Iterable[tuple[int, bytes]]) -> None:
        """Let pages hold what they did once, which is no change of them; b"" is zeros."""
        view, touched = self.view, self._touched_view
        changed = self._changed_view if self._changed_map is not None else None
        for page, data in pages:
            at = page * PAGE
            if not touched[page]:
                self.touch(at, PAGE)
            view[at : at + PAGE] = data or _ZERO
            if changed is not None:
                changed[page] = 0

    def put(self, offset: int, data: bytes) -> None:
        """The same for what the guest's kernel puts there, of which `effects` is told."""
        self.write(offset, data)
        if self.effects is not None:
            self.effects.filled(offset, data)


def _runs(used: bytes, gap: int) -> Iterator[tuple[int, int]]:
    """(first, one past the last) of marked pages, with so many others between them at most."""
    at = used.find(1)
    while at >= 0:
        end = used.find(0, at)
        after = used.find(1, end) if end >= 0 else -1
        while 0 <= after <= end + gap:
            end = used.find(0, after)
            after = used.find(1, end) if end >= 0 else -1
        yield at, len(used) if end < 0 else end
        at = after

"""Pages of the arena that several stretches of it show until they write to them.

A fork freezes what is large: the pages are in a file in memory, and the stretches of both
processes map it privately. The host's own memory management then copies a page when one of
them writes to it, at its place, so nobody who reads or writes the arena needs to know.

Pages come into the file by being copied, or a stretch is prepared before it is used: then they
are there from the start. A prepared page that was never touched takes room when it is looked at.

A host without such files, or one that has run out of mappings, freezes nothing: the caller
copies.
"""

import mmap
import os
from bisect import bisect_left, bisect_right, insort
from typing import Final, NamedTuple

from msgspec import Struct

from engine.cpu import hostmemory as host
from engine.cpu.freeranges import FreeRanges
from engine.cpu.hostmemory import PAGE

_CAPACITY: Final = 1 << 42
"""Bytes of addresses in the file: more than all arenas of one run."""
_MAPPINGS: Final = 16_384
"""Pieces at the most: a process of the host's may have 65,530 mappings (vm.max_map_count)."""


def _changed(flags: int) -> int:
    present, swapped, of_file = flags & 0x80, flags & 0x40, flags & 0x20
    return int(bool(present or swapped) and not of_file)


_CHANGED: Final = bytes(_changed(flags) for flags in range(256))
"""The highest byte of a word of /proc/self/pagemap: 1 for a page of the mapping's own."""


class Piece(NamedTuple):
    """A stretch of the arena whose pages are in the file.

    Attributes:
        start: its arena offset.
        end: one past the last.
        source: where the pages are in the file.
        frozen: what it writes is its own; else it is prepared, and writes to the file.
    """

    start: int
    end: int
    source: int
    frozen: bool

    def part(self, start: int, end: int) -> "Piece":
        """The part of it that lies in a stretch of the arena; the two overlap."""
        start, end = max(start, self.start), min(end, self.end)
        return Piece(start, end, self.source + start - self.start, self.frozen)


class _Shown(Struct):
    """Pages of the file that equally many pieces show."""

    end: int
    pieces: int


class FrozenPages:
    """The pages of one arena that are in the file.

    Attributes:
        pieces: what shows them, sorted.
        prepared: pieces that are not frozen.
    """

    def __init__(self, base: int, size: int) -> None:
        """An arena at a host address, of so many bytes, none of which is in the file."""
        self._base = base
        self.pieces: list[Piece] = []
        self.prepared = 0
        self._descriptor = -1
        self._pagemap = -1
        # What is prepared stands in the file as in the arena, so that neighbours are one mapping.
        self._free, self._size = FreeRanges(0, size), size
        self._more = FreeRanges(size, _CAPACITY)
        self._starts: list[int] = []
        self._shown: dict[int, _Shown] = {}

    def close(self) -> None:
        """Give the file back; the arena is gone."""
        for descriptor in (self._descriptor, self._pagemap):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._pagemap = -1

    def taken(self) -> int:
        """Bytes of the host's memory that the file takes."""
        return 0 if self._descriptor < 0 else os.fstat(self._descriptor).st_blocks * 512

    def within(self, start: int, end: int) -> list[Piece]:
        """The parts of a stretch whose pages are in the file, sorted."""
        if not self.pieces:
            return []
        low, high = self._overlapping(start, end)
        return [piece.part(start, end) for piece in self.pieces[low:high]]

    def _overlapping(self, start: int, end: int) -> tuple[int, int]:
        low = bisect_right(self.pieces, (start, 1 << 64))
        if low and self.pieces[low - 1].end > start:
            low -= 1
        return low, bisect_left(self.pieces, (end, 0), low)

    def prepare(self, start: int, end: int) -> bool:
        """Let fresh pages of a stretch be in the file, so that they can be frozen as they are.

        Returns:
            False if the host refuses: they stay anonymous.
        """
        size = end - start
        if not self._ready() or len(self.pieces) >= _MAPPINGS:
            return False
        source = start if self._free.take(start, end) else self._more.lowest(size)
        if source is None:
            return False
        if source != start:
            self._more.take(source, source + size)
        if not host.map_shared(self._base + start, size, self._descriptor, source):
            self._give(source, source + size)
            return False
        self._add(Piece(start, end, source, frozen=False))
        return True

    def _add(self, piece: Piece) -> None:
        """Remember a piece whose pages nobody else shows; one with the prepared before it."""
        end = piece.source + piece.end - piece.start
        insort(self._starts, piece.source)
        self._shown[piece.source] = _Shown(end, 1)
        index = bisect_left(self.pieces, piece)
        self.prepared += not piece.frozen
        for side in (index, index - 1):  # the one behind first
            other = self.pieces[side] if 0 <= side < len(self.pieces) else None
            if other is None or piece.frozen or other.frozen:
                continue
            first, second = sorted((piece, other))
            if first.end == second.start and first.source - first.start == (
                second.source - second.start
            ):
                del self.pieces[side]
                self.prepared -= 1
                piece = Piece(first.start, second.end, first.source, frozen=False)
        insort(self.pieces, piece)

    def freeze(self, start: int, end: int, view: memoryview) -> int | None:
        """Make pages of a stretch frozen ones, which that stretch shows.

        Args:
            start: arena offset; all of the stretch is prepared, or all frozen before, or none.
            end: one past the last.
            view: the arena's bytes.

        Returns:
            Bytes of pages that were frozen before and that nobody shows any more; None if the
            host refuses: nothing has changed then.
        """
        size = end - start
        if not self._ready() or len(self.pieces) >= _MAPPINGS:
            return None
        before = self.within(start, end)
        if len(before) == 1 and before[0][:2] == (start, end) and not before[0].frozen:
            (piece,) = before
            if not self._map(start, size, piece.source):
                return None
            self._replace(start, end, [Piece(start, end, piece.source, frozen=True)])
            return 0
        source = self._more.lowest(size)
        if source is None:
            return None
        if not self._store(view[start:end], source) or not self._map(start, size, source):
            host.punch(self._descriptor, source, size)
            return None
        gone = self.forget(start, end)
        self._more.take(source, source + size)
        self._add(Piece(start, end, source, frozen=True))
        return gone

    def share(self, piece: Piece, target: int) -> bool:
        """Show the pages of a frozen piece (or of a part of one) in another stretch, too.

        Args:
            piece: as `within` gives it.
            target: arena offset of the other stretch, of fresh pages.

        Returns:
            False if the host refuses.
        """
        size = piece.end - piece.start
        if len(self.pieces) >= _MAPPINGS or not self._map(target, size, piece.source):
            return False
        self.forget(target, target + size)
        self._count(piece.source, piece.source + size, 1)
        insort(self.pieces, Piece(target, target + size, piece.source, frozen=True))
        return True

    def empty(self, piece: Piece) -> None:
        """Make the pages of a prepared piece (or of a part of one) zeros, which take no room."""
        host.punch(self._descriptor, piece.source, piece.end - piece.start)

    def forget(self, start: int, end: int) -> int:
        """A stretch shows other pages from now on.

        Returns:
            Bytes of frozen pages that nobody shows any more, and which are gone.
        """
        pieces = self.within(start, end)
        self._replace(start, end, [])
        gone = 0
        for piece in pieces:
            source = piece.source
            lost = self._count(source, source + piece.end - piece.start, -1)
            gone += lost if piece.frozen else 0
        return gone

    def _replace(self, start: int, end: int, pieces: list[Piece]) -> None:
        """Put pieces in the place of a stretch."""
        low, high = self._overlapping(start, end)
        old = self.pieces[low:high]
        left = [piece.part(0, start) for piece in old[:1] if piece.start < start]
        right = [piece.part(end, 1 << 64) for piece in old[-1:] if piece.end > end]
        new = left + pieces + right
        self.pieces[low:high] = new
        self.prepared += sum(not p.frozen for p in new) - sum(not p.frozen for p in old)

    def changed(self, piece: Piece) -> bytes:
        """A byte for each page of a frozen piece: 1 if it was written to since it was frozen.

        Args:
            piece: as `within` gives it.
        """
        count = (piece.end - piece.start) // PAGE
        word = (self._base + piece.start) // PAGE * 8
        data = os.pread(self._pagemap, count * 8, word)
        return data[7::8].translate(_CHANGED).ljust(count, b"\1")

    def _ready(self) -> bool:
        """Make the file when it is first needed; False where the host has none such."""
        there = hasattr(os, "memfd_create") and mmap.PAGESIZE == PAGE
        if self._descriptor < 0 and there:
            descriptor = -1
            try:
                descriptor = os.memfd_create("kprobe-tui", os.MFD_CLOEXEC)
                os.ftruncate(descriptor, _CAPACITY)  # a limit of file sizes may forbid it
                self._pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                if descriptor >= 0:
                    os.close(descriptor)
                return False
            self._descriptor = descriptor
        return self._descriptor >= 0

    def _store(self, data: memoryview, source: int) -> bool:
        done = 0
        try:
            while done < len(data):
                done += os.pwrite(self._descriptor, data[done:], source + done)
        except OSError:
            return False
        return True

    def _map(self, start: int, size: int, source: int) -> bool:
        return host.map_privately(self._base + start, size, self._descriptor, source)

    def _count(self, start: int, end: int, by: int) -> int:
        """More or fewer pieces show pages of the file; bytes of those that nobody does."""
        self._split(start)
        self._split(end)
        gone = 0
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, end)
        for at in self._starts[low:high]:
            shown = self._shown[at]
            shown.pieces += by
            if not shown.pieces:
                host.punch(self._descriptor, at, shown.end - at)
                self._give(at, shown.end)
                gone += shown.end - at
                del self._shown[at], self._starts[bisect_left(self._starts, at)]
        return gone

    def _give(self, start: int, end: int) -> None:
        (self._free if start < self._size else self._more).give(start, end)

    def _split(self, at: int) -> None:
        index = bisect_left(self._starts, at) - 1
        if index < 0:
            return
        shown = self._shown[self._starts[index]]
        if at < shown.end:
            self._shown[at] = _Shown(shown.end, shown.pieces)
            self._starts.insert(index + 1, at)
            shown.end = at

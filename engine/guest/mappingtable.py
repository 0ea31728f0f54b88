"""The sorted list of a guest's mappings: looking up, putting in, taking out, merging.

Nothing that is done to one mapping looks at all the others: what is known of all of them (free
places, sums, views of shared pages) is kept up to date with each change.
"""

import errno
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Final, Protocol

from engine.cpu.freeranges import FreeRanges
from engine.cpu.ram import EXECUTE, WRITE
from engine.guest.mapping import Mapping, MappingError, SharedExtent

MAX_MAPPINGS: Final = 65_530
"""Linux's default vm.max_map_count."""
MAX_PIECES: Final = 1 << 17
"""Most entries of the table, of which several may be one mapping to the program."""

_FREE_ENTRIES: Final = 128
"""Entries of each table that count for nothing."""
_ENTRIES_OF_PAGE: Final = 8
"""Entries beyond those that count as a page of the guest's memory."""


class PageCount(Protocol):
    """Whoever counts the memory that the guest takes, in pages."""

    def take_pages(self, count: int) -> bool:
        """Count so many pages more; False, and nothing is counted, where they are not left."""

    def give_pages(self, count: int) -> None:
        """Count so many pages less."""


def _finder(starts: list[int], mappings: list[Mapping]) -> Callable[[int], Mapping | None]:
    """A look-up that needs no object: each copy of bytes begins with one."""

    def find(address: int) -> Mapping | None:
        index = bisect_right(starts, address) - 1
        if index < 0:
            return None
        mapping = mappings[index]
        return mapping if address < mapping.end else None

    return find


def _joins(left: Mapping, right: Mapping) -> bool:
    """True if two neighbours are one mapping to the program; the engine's windows are none."""
    return not left.reserved and left.continues(right)


class ExtentViews:
    """The mappings that show one extent, counted.

    Attributes:
        mappings: all.
        writing: those that may write.
        executing: those that may execute.
        both: those that may do both.
    """

    __slots__ = ("both", "executing", "mappings", "writing")

    def __init__(self) -> None:
        self.mappings = self.writing = self.executing = self.both = 0

    def count(self, mapping: Mapping, sign: int) -> None:
        """One mapping more, or one fewer."""
        self.mappings += sign
        self.writing += sign * bool(mapping.perms & WRITE)
        self.executing += sign * bool(mapping.perms & EXECUTE)
        self.both += sign * (mapping.perms & (WRITE | EXECUTE) == WRITE | EXECUTE)


class MappingTable:
    """Mappings by address; they never overlap.

    Attributes:
        mappings: all of them, sorted; the list stays the same object.
        starts: their first addresses; the same list always.
        find: gives the mapping that covers an address, or None.
        layout: another object after each change: what was remembered of a mapping is void then.
        dirty: ranges (start, end) in which the emulator's page table is older than this one.
        stale: the page table is older everywhere.
        renewed: something has been done there beside putting in mappings.
        size: bytes of the program's mappings.
        most: the largest number of them before the last mapping went (hiwater_vm).
        data: bytes of those that are private and writable, without the stack.
        views: the mappings that show an extent, by extent.
        files: how many mappings show a file, by its identity.
        mixing: extents whose views have changed.
        changes: ranges in which it has changed, for who sets this and empties it; None for nobody.
    """

    def __init__(self, pages: PageCount) -> None:
        """Map nothing; `pages` counts the memory that many entries take."""
        self._pages, self._taken = pages, 0
        self.mappings: list[Mapping] = []
        self.starts: list[int] = []
        self.layout = object()
        self.dirty: list[tuple[int, int]] = []
        self.stale = self.renewed = False
        self.size = self.data = self.most = 0
        self.views: dict[SharedExtent, ExtentViews] = {}
        self.files: dict[object, int] = {}
        self.mixing: set[SharedExtent] = set()
        self.changes: list[tuple[int, int]] | None = None
        self.find = _finder(self.starts, self.mappings)
        self._free = FreeRanges(0, 1 << 64)
        self._joints = 0
        self._windows = 0  # entries of the engine's own windows: they count for nobody

    @property
    def changed(self) -> bool:
        """True if the emulator's page table is older than this one."""
        return self.stale or bool(self.dirty)

    def touch(self, start: int, end: int) -> None:
        """The emulator's page table is older than this one in a range."""
        self._changed(start, end)
        self.renewed = True

    def _changed(self, start: int, end: int, *, shown: bool = False) -> None:
        if not shown:
            self.dirty.append((start, end))
        if self.changes is not None:
            self.changes.append((start, end))

    def overlapping(self, start: int, end: int) -> list[Mapping]:
        """Mappings with at least one byte in [start, end)."""
        starts, mappings = self.starts, self.mappings
        low = bisect_right(starts, start) - 1
        if low < 0 or mappings[low].end <= start:
            low += 1
        return mappings[low : bisect_left(starts, end, low)]

    def free_range(self, size: int, low: int, top: int) -> int | None:
        """The highest free place of `size` bytes between two addresses, as Linux picks."""
        last = self._free.last_before(top)
        if last is None:
            return None
        if min(last[1], top) - max(last[0], low) >= size:
            return min(last[1], top) - size
        found = self._free.highest(size, last[0])
        if found is None or found[1] - max(found[0], low) < size:
            return None
        return found[1] - size

    def need_room(self, more: int) -> None:
        """Make sure that so many more mappings are not too many.

        Neighbours that differ in nothing are one to the program, as in Linux.

        Raises:
            MappingError: ENOMEM if they are.
        """
        pieces = len(self.mappings) - self._windows + more
        if more and (pieces - self._joints > MAX_MAPPINGS or pieces > MAX_PIECES):
            raise MappingError(errno.ENOMEM)
        wanted = max(0, pieces - _FREE_ENTRIES) // _ENTRIES_OF_PAGE
        if wanted > self._taken and not self._pages.take_pages(wanted - self._taken):
            raise MappingError(errno.ENOMEM)
        if wanted < self._taken:
            self._pages.give_pages(self._taken - wanted)
        self._taken = wanted

    def close(self) -> None:
        """Give back what the entries have taken; the table is used no more."""
        self._pages.give_pages(self._taken)
        self._taken = 0

    def insert(self, mapping: Mapping, *, shown: bool = False) -> None:
        """Put a mapping where there is none.

        Args:
            mapping: which.
            shown: the caller brings the emulator's page table up to date.
        """
        index = bisect_right(self.starts, mapping.start)
        self.mappings.insert(index, mapping)
        self.starts.insert(index, mapping.start)
        self._free.take(mapping.start, mapping.end)
        self._account(index, 1)
        self._changed(mapping.start, mapping.end, shown=shown)
        self.layout = object()

    def join(self, mapping: Mapping) -> None:
        """Put a mapping where there is none, and make one of it and neighbours that it continues.

        That in front of it just gets longer, where nothing is behind it.
        """
        index = bisect_right(self.starts, mapping.start)
        left = self.mappings[index - 1] if index else None
        if (
            left is None
            or left.physical is None
            or left.physical + left.end - left.start != mapping.physical
            or (index < len(self.starts) and self.starts[index] == mapping.end)
            or not left.continues(mapping)
        ):
            self.insert(mapping)
            self.merge(mapping.start, mapping.end)
            return
        self.resize(index - 1, left.start, mapping.end)
        self._changed(left.start, mapping.end)

    def remove(self, mapping: Mapping, *, shown: bool = False) -> None:
        """Take a mapping out.

        Args:
            mapping: which.
            shown: the caller brings the emulator's page table up to date.
        """
        index = bisect_right(self.starts, mapping.start) - 1
        self._account(index, -1)
        del self.mappings[index], self.starts[index]
        self._free.give(mapping.start, mapping.end)
        self._changed(mapping.start, mapping.end, shown=shown)
        self.renewed = self.renewed or not shown
        self.layout = object()

    def resize(self, index: int, start: int, end: int, *, shown: bool = False) -> Mapping:
        """Let a mapping begin or end elsewhere, with pages beside its own.

        Args:
            index: of the mapping, which shows no shared pages.
            start: its first address from now on.
            end: one past its last; whatever it did not have is free.
            shown: the caller brings the emulator's page table up to date; if not, it marks what
                has changed there.

        Returns:
            What it is now.
        """
        mappings, free = self.mappings, self._free
        old = mappings[index]
        first, last = old[:2]
        if old.offset or old.backing is not None or old.physical is None:
            new = old.part(start, end)
        else:  # the usual case
            piece = (start, end, old[2], old.physical + start - first, *old[4:])
            new = tuple.__new__(Mapping, piece)
        mappings[index] = new
        if start != first:
            self.starts[index] = start
            if index:
                left = mappings[index - 1]
                if left.end == first:
                    self._joints -= _joins(left, old)
                elif left.end == start:
                    self._joints += _joins(left, new)
            if start < first:
                free.take(start, first)
            else:
                free.give(first, start)
        if end != last:
            if index + 1 < len(mappings):
                right = mappings[index + 1]
                if right.start == last:
                    self._joints -= _joins(old, right)
                elif right.start == end:
                    self._joints += _joins(new, right)
            if end > last:
                free.take(last, end)
            else:
                free.give(end, last)
        self._size(old, end - start - last + first)
        self.layout = object()
        if shown and self.changes is not None:
            self.changes.append((min(start, first), max(end, last)))
        return new

    def split(self, mapping: Mapping, start: int, end: int) -> Mapping:
        """Take [start, end) out of a mapping; what is left and right of it stays.

        Returns:
            The piece that was taken out.
        """
        first, last = mapping[:2]
        index = bisect_right(self.starts, first) - 1
        if mapping.extent is None and (first < start) != (end < last):  # it just gets shorter
            self.resize(index, *((first, start) if first < start else (end, last)))
        else:
            sides = ((first, start), (end, last))
            rest = [mapping.part(low, high) for low, high in sides if low < high]
            self._account(index, -1)
            self.mappings[index : index + 1] = rest
            self.starts[index : index + 1] = [piece.start for piece in rest]
            for at in range(index, index + len(rest)):
                self._account(at, 1)
            self._free.give(start, end)
            self.layout = object()
        self.touch(mapping.start, mapping.end)
        return mapping if mapping[:2] == (start, end) else mapping.part(start, end)

    def replace(self, index: int, mapping: Mapping) -> None:
        """Put a mapping with the same addresses in an old one's place."""
        self._account(index, -1)
        self.mappings[index] = mapping
        self._account(index, 1)
        self.touch(mapping.start, mapping.end)
        self.layout = object()

    def merge(self, start: int, end: int) -> None:
        """Make one mapping of neighbours that differ in nothing and have adjacent pages."""
        mappings = self.mappings
        index = max(bisect_right(self.starts, start) - 2, 0)
        while index + 1 < len(mappings) and self.starts[index] <= end:
            first, second = mappings[index], mappings[index + 1]
            if not first.continues(second) or (first.physical is None) != (
                second.physical is None
            ):
                index += 1
                continue
            if first.physical is not None and first.physical + first.size != second.physical:
                index += 1
                continue
            mappings[index] = first._replace(end=second.end)
            del mappings[index + 1], self.starts[index + 1]
            self._joints -= not first.reserved
            self._windows -= first.reserved
            if first.extent is not None:
                self.views[first.extent].count(second, -1)
            if first.backing is not None:
                self.files[first.backing.identity] -= 1
            self._changed(first.start, second.end)
            self.layout = object()

    def _size(self, mapping: Mapping, more: int) -> None:
        """There are so many bytes more of a mapping."""
        if not mapping.reserved:
            if more < 0 and self.size > self.most:
                self.most = self.size
            self.size += more
            if not mapping.shared and mapping.perms & WRITE and mapping.name != "[stack]":
                self.data += more

    def _account(self, index: int, sign: int) -> None:
        """Count the mapping of an index in, or out."""
        mappings, mapping = self.mappings, self.mappings[index]
        start, end, _, physical, _, _, backing, *_, extent, _ = mapping
        if index and mappings[index - 1][1] == start:
            self._joints += sign * _joins(mappings[index - 1], mapping)
        if index + 1 < len(mappings) and mappings[index + 1][0] == end:
            self._joints += sign * _joins(mapping, mappings[index + 1])
        self._size(mapping, sign * (end - start))
        self._windows += sign * mapping.reserved
        if backing is not None:
            file = backing.identity
            self.files[file] = self.files.get(file, 0) + sign
            if not self.files[file]:
                del self.files[file]
        if extent is not None and physical is not None:
            views = self.views.setdefault(extent, ExtentViews())
            views.count(mapping, sign)
            if not views.mappings:
                del self.views[extent]
            self.mixing.add(extent)

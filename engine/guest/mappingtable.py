"""The sorted list of a guest's mappings: looking up, putting in, taking out, merging."""

import errno
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from engine.guest.mapping import Mapping, MappingError

MAX_MAPPINGS: Final = 65_530
"""Linux's default vm.max_map_count."""


def _finder(starts: list[int], mappings: list[Mapping]) -> Callable[[int], Mapping | None]:
    """A look-up that needs no object: each copy of bytes begins with one."""

    def find(address: int) -> Mapping | None:
        index = bisect_right(starts, address) - 1
        if index < 0:
            return None
        mapping = mappings[index]
        return mapping if address < mapping.end else None

    return find


class MappingTable:
    """Mappings by address; they never overlap.

    Attributes:
        mappings: all of them, sorted; the list stays the same object.
        starts: their first addresses; the same list always.
        find: gives the mapping that covers an address, or None.
        layout: another object after each change: what was remembered of a mapping is void then.
        changed: the emulator's page table is older than this one.
    """

    def __init__(self) -> None:
        self.mappings: list[Mapping] = []
        self.starts: list[int] = []
        self.layout = object()
        self.changed = False
        self.find = _finder(self.starts, self.mappings)

    def overlapping(self, start: int, end: int) -> list[Mapping]:
        """Mappings with at least one byte in [start, end)."""
        index = max(bisect_right(self.starts, start) - 1, 0)
        found = []
        for mapping in self.mappings[index:]:
            if mapping.start >= end:
                break
            if mapping.end > start:
                found.append(mapping)
        return found

    def free_range(self, size: int, low: int, top: int) -> int | None:
        """The highest free place of `size` bytes between two addresses, as Linux picks."""
        end = top
        index = bisect_right(self.starts, end - 1)
        for mapping in reversed(self.mappings[:index]):
            if end - max(mapping.end, low) >= size and mapping.end <= end:
                return end - size
            end = min(end, mapping.start)
        return end - size if end - size >= low else None

    def need_room(self, more: int) -> None:
        """Make sure that so many more mappings are not too many.

        Raises:
            MappingError: ENOMEM if they are.
        """
        if more and len(self.mappings) + more > MAX_MAPPINGS:
            raise MappingError(errno.ENOMEM)

    def insert(self, mapping: Mapping) -> None:
        """Put a mapping where there is none."""
        index = bisect_right(self.starts, mapping.start)
        self.mappings.insert(index, mapping)
        self.starts.insert(index, mapping.start)
        self.changed = True
        self.layout = object()

    def remove(self, mapping: Mapping) -> None:
        """Take a mapping out."""
        index = bisect_right(self.starts, mapping.start) - 1
        del self.mappings[index], self.starts[index]
        self.changed = True
        self.layout = object()

    def split(self, mapping: Mapping, start: int, end: int) -> Mapping:
        """Take [start, end) out of a mapping; what is left and right of it stays.

        Returns:
            The piece that was taken out.
        """
        self.remove(mapping)
        if mapping.start < start:
            self.insert(mapping.part(mapping.start, start))
        if end < mapping.end:
            self.insert(mapping.part(end, mapping.end))
        return mapping.part(start, end)

    def replace(self, index: int, mapping: Mapping) -> None:
        """Put a mapping with the same addresses in an old one's place."""
        self.mappings[index] = mapping
        self.changed = True
        self.layout = object()

    def merge(self, start: int, end: int) -> None:
        """Make one mapping of neighbours that differ in nothing and have adjacent pages."""
        mappings = self.mappings
        index = max(bisect_right(self.starts, start) - 2, 0)
        while index + 1 < len(mappings) and self.starts[index] < end:
            first, second = mappings[index], mappings[index + 1]
            if not first.continues(second) or (first.physical is None) != (
                second.physical is None
            ):
                index += 1
                continue
            if first.physical is not None and first.physical + first.size != second.physical:
                index += 1
                continue
            mappings[index] = replace(first, end=second.end)
            del mappings[index + 1], self.starts[index + 1]
            self.changed = True

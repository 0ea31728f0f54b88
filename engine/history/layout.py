"""Mappings as plain values, and which of them have changed."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from engine.arch.base import AddressPlan
from engine.guest.mapping import Mapping, SharedExtent, page_up
from engine.guest.memory import Memory
from engine.guest.pager import RETURN_CODE

NOWHERE: Final = (1 << 64) - 1

MappingValue = tuple[Any, ...]
"""(start, end, permissions, arena offset or -1, name, file offset, shared, device, inode,
reserved, at fork, number of its shared pages or 0, bytes of its file from its start on or -1)."""


class RecordedFile:
    """The file of a mapping of the past, of which only the end matters; a `Backing`."""

    writable = False

    def __init__(self, size: int, identity: object) -> None:
        self.size = size
        self.identity = identity

    def read_at(self, offset: int, size: int) -> bytes:
        """Nothing: what is in memory is known."""
        return b""

    def write_back(self, offset: int, data: bytes) -> None:
        """Nothing goes back to a file of the past."""

    def host_descriptor(self) -> int | None:
        """None."""
        return None

    def contents(self) -> None:
        """Return None: pages hold copies of the content only."""


class Extents:
    """Numbers of shared pages."""

    def __init__(self) -> None:
        self._numbers: dict[SharedExtent, int] = {}

    def number(self, extent: SharedExtent | None) -> int:
        """The number of some shared pages; 0 for none."""
        if extent is None:
            return 0
        return self._numbers.setdefault(extent, len(self._numbers) + 1)


def value_of(mapping: Mapping, extents: Extents) -> MappingValue:
    """A mapping as a plain value."""
    backing = mapping.backing
    room = -1 if backing is None else max(backing.size - mapping.offset, 0)
    return (
        mapping.start,
        mapping.end,
        mapping.perms,
        -1 if mapping.physical is None else mapping.physical,
        mapping.name,
        mapping.offset,
        mapping.shared,
        *mapping.inode,
        mapping.reserved,
        mapping.at_fork,
        extents.number(mapping.extent),
        min(page_up(room), mapping.size) if room >= 0 else -1,
    )


def mapping_of(value: Sequence[Any], extents: dict[int, SharedExtent]) -> Mapping:
    """A mapping from a plain value; `extents` is added to."""
    start, end, perms, physical, name, offset, shared, device, inode, reserved = value[:10]
    at_fork, extent, room = value[10:13]
    made = extents.setdefault(extent, SharedExtent(None, 0, 0, 0)) if extent else None
    return Mapping(
        start,
        end,
        perms,
        None if physical < 0 else physical,
        name,
        offset,
        None if room < 0 else RecordedFile(offset + room, (name, inode)),
        shared,
        (device, inode),
        reserved,
        made,
        at_fork,
    )


class MappingLog:
    """The mappings of one address space as they were last told.

    The engine's windows are told as they are before anything stands in them.
    """

    def __init__(self, memory: Memory, extents: Extents, plan: AddressPlan) -> None:
        """Nothing has been told."""
        self._memory = memory
        self._extents = extents
        self._return_code = plan.trampoline[0]
        self._starts: list[int] = []
        self._told: dict[int, MappingValue] = {}
        memory.table.changes = [(0, NOWHERE)]

    def changes(self) -> Iterator[tuple[int, int, tuple[MappingValue, ...]]]:
        """(first address, end, mappings there) of ranges that have changed since the last call."""
        ranges = self._memory.table.changes
        if not ranges:
            return
        joined: list[tuple[int, int]] = []
        for start, end in sorted(ranges):
            if joined and start <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((start, end))
        ranges.clear()
        for start, end in joined:
            found = self._changed(start, end)
            if found is not None:
                yield found

    def _changed(self, start: int, end: int) -> tuple[int, int, tuple[MappingValue, ...]] | None:
        pieces = self._memory.overlapping(start, end)
        if pieces:
            start, end = min(start, pieces[0].start), max(end, pieces[-1].end)
        low = bisect_right(self._starts, start)
        if low and self._told[self._starts[low - 1]][1] > start:
            low -= 1
            start = self._starts[low]
        high = bisect_left(self._starts, end, low)
        if high > low:
            end = max(end, self._told[self._starts[high - 1]][1])
        values = tuple(self._values(self._memory.overlapping(start, end)))
        before = self._starts[low:high]
        if tuple(self._told[at] for at in before) == values:
            return None
        for at in before:
            del self._told[at]
        self._starts[low:high] = [value[0] for value in values]
        self._told.update((value[0], value) for value in values)
        return start, end, values

    def _values(self, mappings: Iterable[Mapping]) -> Iterator[MappingValue]:
        window: Mapping | None = None
        for mapping in mappings:
            if not self.tells(mapping):
                bare = mapping._replace(perms=0, physical=None, offset=0)
                if window is not None and window.end == bare.start and window.name == bare.name:
                    window = window._replace(end=bare.end)
                    continue
                if window is not None:
                    yield value_of(window, self._extents)
                window = bare
                continue
            if window is not None:
                yield value_of(window, self._extents)
                window = None
            yield value_of(mapping, self._extents)
        if window is not None:
            yield value_of(window, self._extents)

    def tells(self, mapping: Mapping) -> bool:
        """True if what a mapping holds is the program's, and not the engine's."""
        return not mapping.reserved or (
            mapping.name == RETURN_CODE
            and mapping.perms != 0
            and mapping.start == self._return_code
        )


def show(memory: Memory, start: int, end: int, mappings: Sequence[Mapping]) -> None:
    """Let a range of an address space of the past have these mappings.

    The engine's windows that are there already stay: the machinery of today stands in them.
    """
    table = memory.table
    for mapping in memory.overlapping(start, end):
        if not mapping.reserved:
            table.remove(mapping)
    for mapping in mappings:
        if not mapping.reserved or not memory.overlapping(mapping.start, mapping.end):
            table.insert(mapping)

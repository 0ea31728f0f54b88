"""The events of one run, thread by thread, with what their addresses were at the time."""

import os
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

from msgspec import Struct

from engine.trace.rows import HEAD, Event, EventTable, decode


class MemorySpot(Struct, frozen=True):
    """A place in memory, as far as two runs have it in common.

    Attributes:
        owner: real path of the file, or a name such as [stack]; ANONYMOUS for other memory.
        offset: in the file; None in memory without one.
    """

    owner: str
    offset: int | None = None

    def __str__(self) -> str:
        if self.offset is None:
            return self.owner
        return f"{os.path.basename(self.owner)}+{self.offset:#x}"


ANONYMOUS = "anonymous memory"
SpotOf = Callable[[int], MemorySpot | None]
"""Names the place of an address; None for a number that is none."""


def memory_spot(path: str, offset: int) -> MemorySpot:
    """The place at an offset of what a mapping is of, by the mapping's name."""
    if path.startswith("/") and not path.startswith("//"):
        return MemorySpot(_real(path), offset)
    return MemorySpot(path if path.startswith("[") else ANONYMOUS)


@lru_cache(maxsize=256)
def _real(path: str) -> str:
    return os.path.realpath(path)


class LoggedEvent(Struct, frozen=True, gc=False):
    """One event.

    Attributes:
        event: the event as the kernel recorded it.
        spot: names addresses in its process.
    """

    event: Event
    spot: SpotOf

    @property
    def key(self) -> tuple[str, str]:
        """Group and name of the event."""
        return self.event.group, self.event.name


class EventLog:
    """The events of a run.

    Attributes:
        threads: the events of each thread, in the order in which the threads had their first.
        processes: the process of each of them.
        count: of the events.
    """

    def __init__(
        self, table: EventTable, wanted: Collection[tuple[str, str]] | None = None
    ) -> None:
        """Begin with none.

        Args:
            table: describes rows.
            wanted: groups and names of the events that are kept; all if None.
        """
        self._wanted = wanted
        self.threads: dict[int, list[LoggedEvent]] = {}
        self.processes: dict[int, int] = {}
        self.count = 0
        self._table = table

    def add(
        self, rows: bytes, spots: Callable[[int, int], SpotOf], process: Callable[[int], int]
    ) -> None:
        """Take rows.

        Args:
            rows: whole ones.
            spots: what names addresses, of a thread and a time.
            process: of a thread.
        """
        position = 0
        while position < len(rows):
            event = decode(self._table, rows, position)
            position += HEAD.unpack_from(rows, position)[1] * 8
            if self._wanted is not None and (event.group, event.name) not in self._wanted:
                continue
            thread = event.thread_id
            events = self.threads.get(thread)
            if events is None:
                events = self.threads[thread] = []
                self.processes[thread] = process(thread)
            events.append(LoggedEvent(event, spots(thread, event.time)))
            self.count += 1


def region_spots(regions: Sequence[tuple[int, int, int, str]]) -> SpotOf:
    """Names addresses by mappings: start, end, offset in the file, name."""

    def spot(address: int) -> MemorySpot | None:
        for start, end, offset, path in regions:
            if start <= address < end:
                return memory_spot(path, address - start + offset)
        return None

    return spot

"""The events of the log as they are now, for whoever takes a while to read them."""

from bisect import bisect_left

from msgspec import Struct

from engine.errors import CommandError
from tui.lineindex import Fold, LineIndex
from tui.store import EventStore

_BLOCK = 2048
"""Rows that are taken at once."""


class EventPiece(Struct, frozen=True):
    """Some of the events.

    Attributes:
        rows: their bytes.
        count: how many they are.
        missing: events before them that were overwritten meanwhile.
    """

    rows: bytes
    count: int
    missing: int = 0


class EventSelection:
    """The events of now; what comes later is none of them."""

    def __init__(self, store: EventStore, *, everything: bool) -> None:
        """Look at a store.

        Args:
            store: with the events.
            everything: those that its filter keeps away, too.
        """
        self._store = store
        self._filter = None if everything else store.filter
        self._version = store.version
        self._end, self._next = store.end, store.first
        self._index: LineIndex | None = None
        if self._filter is not None:
            self._index = store.index(self._filter, Fold.NONE)
        self.missing = store.first if self._index is None else 0
        self._numbers: memoryview | None = None
        self._at = 0

    @property
    def is_all(self) -> bool:
        """True if no event is left out."""
        return self._index is None

    def look(self, seconds: float) -> bool:
        """Filter for so long; whether there is more to be looked at."""
        self._check()
        index = self._index
        if index is None or self._numbers is not None:
            return False
        if index.scanned < self._end and index.step(seconds) and index.scanned < self._end:
            return True
        numbers = index.numbers()
        self._numbers = memoryview(numbers)[: bisect_left(numbers, self._end)]
        return False

    @property
    def count(self) -> int:
        """Events that there are; known once all have been looked at."""
        return self._end - self._store.first if self._numbers is None else len(self._numbers)

    def take(self) -> EventPiece | None:
        """The next ones; None behind the last.

        Raises:
            CommandError: the log is another one by now.
        """
        self._check()
        store, numbers = self._store, self._numbers
        if numbers is None:
            begin = max(self._next, store.first)
            if begin >= self._end:
                return None
            rows, count = store.stretch(begin, min(_BLOCK, self._end - begin))
            missing, self._next = begin - self._next, begin + count
            return EventPiece(rows, count, missing)
        wanted = numbers[self._at : self._at + _BLOCK]
        if not wanted:
            return None
        self._at += len(wanted)
        there = [number for number in wanted if number >= store.first]
        return EventPiece(b"".join(map(store.row, there)), len(there), len(wanted) - len(there))

    def _check(self) -> None:
        if self._store.version != self._version:
            raise CommandError("the event log has become another one meanwhile")

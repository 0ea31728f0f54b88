"""Lines of the event log over rows: filtered, and with repeats folded.

The index grows bit by bit, so that a million rows never stop the keyboard. A line of folded rows
stands where its last row is, and counts the rows that were folded into it.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable
from enum import Enum
from struct import Struct
from time import perf_counter
from typing import Final

from engine.session.protocol.rows import HEAD, EventTable, Ring
from tui.filters import EventFilter, Tester

_BLOCK: Final = 256
"""Rows between two looks at the clock."""
_COMPACT: Final = 1 << 14
"""Dead lines at the front that are worth moving the others for."""


class Fold(Enum):
    """Neighbours that make one line."""

    NONE = "all rows"
    EVENT = "repeats of an event"
    """The same event of the same thread."""
    VALUES = "equal rows"
    """The same with the same address and values."""


class LineIndex:
    """The lines of a filter and a fold over a ring.

    Rows are numbered from the first one ever kept, lines from the first one ever made.

    Attributes:
        filter: what a row must match, None for all.
        fold: how repeats are treated.
        dropped: lines that have gone with their rows.
        scanned: number of the first row not yet looked at.
        skipped: rows overwritten before they could be looked at.
    """

    def __init__(
        self, ring: Ring, events: EventTable, filter_: EventFilter | None, fold: Fold
    ) -> None:
        self.filter = filter_
        self.fold = fold
        self.dropped = 0
        self.scanned = ring.overwritten
        self.skipped = 0
        self._ring = ring
        self._events = events
        self._rows = array("Q")
        self._counts = array("L")
        self._dead = 0
        self._last = b""
        self._run = 0
        self._testers: dict[int, bool | Tester] = {}
        self._shapes: dict[int, Struct] = {}

    def __len__(self) -> int:
        return len(self._rows) - self._dead

    @property
    def pending(self) -> int:
        """Rows that were not looked at yet."""
        return self._ring.overwritten + len(self._ring) - max(self.scanned, self._ring.overwritten)

    def row(self, line: int) -> int:
        """Number of a line's (last) row; the oldest line is 0."""
        return self._rows[self._dead + line]

    def numbers(self) -> "array[int]":
        """Numbers of the (last) rows of all lines."""
        return self._rows[self._dead :]

    def count(self, line: int) -> int:
        """Rows folded into a line."""
        return self._counts[self._dead + line] if self.fold is not Fold.NONE else 1

    def line_of(self, row: int) -> int:
        """The line that shows a row, or the next one behind it."""
        return bisect_left(self._rows, row, self._dead) - self._dead

    def forget(self) -> None:
        """Drop the lines whose rows are gone."""
        dead = bisect_left(self._rows, self._ring.overwritten, self._dead)
        self.dropped += dead - self._dead
        self._dead = dead
        if dead >= _COMPACT and dead * 2 >= len(self._rows):
            del self._rows[:dead]
            del self._counts[:dead]
            self._dead = 0

    def step(self, seconds: float, clock: Callable[[], float] = perf_counter) -> bool:
        """Look at rows for so long; whether some are left."""
        end = clock() + seconds
        ring = self._ring
        self.forget()
        if self.scanned < ring.overwritten:
            self.skipped += ring.overwritten - self.scanned
            self.scanned = ring.overwritten
            self._last = b""
        while self.pending:
            data, rows = ring.stretch(self.scanned - ring.overwritten, _BLOCK)
            self._scan(data)
            self.scanned += rows
            if clock() >= end:
                break
        return bool(self.pending)

    def _scan(self, data: bytes) -> None:
        unpack, testers, number = HEAD.unpack_from, self._testers, self.scanned
        note, fold = self._rows.append, self.fold is not Fold.NONE
        position, end = 0, len(data)
        while position < end:
            event_id, words, _ = unpack(data, position)
            test = testers.get(event_id)
            if test is None:
                test = self._tester(event_id)
                if event_id in self._events:
                    testers[event_id] = test
            if test is True or (test is not False and test(data, position)):
                if fold:
                    self._folded(data[position : position + words * 8], number)
                else:
                    note(number)
            position += words * 8
            number += 1

    def _tester(self, event_id: int) -> bool | Tester:
        if self.filter is None:
            return True
        info = self._events.get(event_id)
        return info is not None and self.filter.tester(info)

    def _folded(self, row: bytes, number: int) -> None:
        same = bool(self._last) and self._same(row, self._last)
        self._run = self._run + 1 if same else 1
        if same and len(self):
            self._rows[-1] = number
            self._counts[-1] = self._run
        else:
            self._rows.append(number)
            self._counts.append(self._run)
        self._last = row

    def _same(self, row: bytes, last: bytes) -> bool:
        if row[:2] != last[:2] or row[4:8] != last[4:8]:
            return False
        if self.fold is Fold.EVENT or row[16:] == last[16:]:
            return True
        # Of a number's word only the lowest bytes count, so words are compared as they are read.
        info = self._events.get(HEAD.unpack_from(row)[0])
        if info is None:
            return False
        shape = self._shapes.get(info.id)
        if shape is None:
            shape = self._shapes[info.id] = Struct(info.code)
        tail = info.words * 8
        if row[tail:] != last[tail:]:
            return False
        return shape.unpack_from(row)[1:] == shape.unpack_from(last)[1:]

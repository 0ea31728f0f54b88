"""Entries and returns of the same call.

Rows do not say so. What is known of a row is its thread and its function, and within a thread
the calls of a function are nested: the newest entry without a return is the one that a return
ends. A call that was left without a return (longjmp, an exception), one whose entry was not
recorded (a filter, a probe placed later), misleads the count.
"""

import struct
from collections.abc import Iterator
from typing import Final

from engine.session.protocol.rows import EventSource
from tui.store import EventStore

_HEAD: Final = struct.Struct("<HHIQQ").unpack_from
"""Event id, words, thread id, time, address of the function."""
_BLOCK: Final = 4096
"""Rows looked at between two looks at the clock."""
_NEARBY: Final = 256
"""Rows looked at for a line that is painted."""

_Row = tuple[int, int, int, int, int]


def entry_nearby(store: EventStore, number: int) -> int | None:
    """The entry of a return, if it is among the rows just before: cheap enough for each line."""
    try:
        return next(partner(store, number, _NEARBY), None)
    except IndexError:
        return None


def partner(store: EventStore, number: int, most: int = _BLOCK) -> Iterator[int | None]:
    """Look for the return of an entry, or the entry of a return, in slices.

    Where several probes record the calls of the function, the nearest one's rows count.

    Args:
        store: the rows.
        number: of the row whose other one is looked for.
        most: rows of a slice.

    Yields:
        None after each slice, then the number of the row, if it is found among those kept.

    Raises:
        IndexError: the row is not kept, or never was.
    """
    known = store.events
    event, _, thread, _, address = _HEAD(store.row(number), 0)
    if event not in known or known[event].source is not EventSource.PROBE:
        return
    wanted_returns, other, depth = not known[event].returns, 0, 0
    for block in (_ahead if wanted_returns else _back)(store, number, most):
        for at, row in block:
            if row[4] != address or row[2] != thread:
                continue
            if row[0] == event:
                depth += 1
                continue
            info = known.get(row[0])
            if info is None or info.source is not EventSource.PROBE:
                continue
            if info.returns is not wanted_returns or other not in (0, row[0]):
                continue
            other = row[0]
            if not depth:
                yield at
                return
            depth -= 1
        yield None


def _ahead(store: EventStore, number: int, most: int) -> Iterator[list[tuple[int, _Row]]]:
    at = number + 1
    while (at := max(at, store.first)) < store.end:
        rows = _rows(store, at, min(store.end - at, most))
        yield rows
        at += len(rows)


def _back(store: EventStore, number: int, most: int) -> Iterator[list[tuple[int, _Row]]]:
    end = number
    while end > store.first:
        begin = max(end - most, store.first)
        rows: list[tuple[int, _Row]] = []
        while begin + len(rows) < end:
            rows += _rows(store, begin + len(rows), end - begin - len(rows))
        rows.reverse()
        yield rows
        end = begin


def _rows(store: EventStore, at: int, count: int) -> list[tuple[int, _Row]]:
    """Some rows from one on: at the most so many."""
    data, count = store.stretch(at, count)
    rows, position = [], 0
    for number in range(at, at + count):
        row = _HEAD(data, position)
        rows.append((number, row))
        position += row[1] * 8
    return rows

"""Lines of rows by templates: all that is the same at each hit of a place stands in them already.

A line of text is the same from hit to hit but for the time and the arguments, so an event in a
thread at a place has a template that takes only these. Rows that are all of one such line, as of
one probe in one thread, become text in a single step.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from struct import Struct, unpack
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from engine.arch.program import THREAD_MOST
from engine.trace.rows import HEAD, EventInfo, whole

Words: TypeAlias = tuple[Any, ...]
"""The time of a row, and the words of its columns."""
Arguments: TypeAlias = Sequence[int | bytes]
Complete: TypeAlias = Callable[[Words, bytes, int], Arguments]
"""Turns the words of the row at a position into what its line's template takes."""

_HEAD: Final = HEAD.size
_PLACE: Final = 16
"""Offset of a row's addresses: its head and its time are in front of them."""
_LINES: Final = 1 << 14
"""Lines to remember: an event may be at many places, and return to many more."""
_STEP: Final = 1 << 10
"""Rows of one line that become text at once."""
_FEWEST: Final = 4
"""Rows from which on it is worth looking whether they are all of one line."""


class LineTemplate(msgspec.Struct, frozen=True):
    """The line of an event in a thread at a place.

    Attributes:
        template: a `%` template of the whole line.
        layout: of a row's words that it takes.
        complete: what is left to do with the words; None if the template takes them as they are.
        lasts: whether it may be used for rows that come later.
    """

    template: bytes
    layout: Struct
    complete: Complete | None = None
    lasts: bool = True


class LineMaker(Protocol):
    """Makes lines."""

    def places(self, event_id: int) -> int:
        """The number of a row's addresses that stand in the event's line."""

    def line(self, event_id: int, thread_id: int, addresses: Sequence[int]) -> LineTemplate:
        """The line of an event in a thread at a place."""


_Compiled: TypeAlias = tuple[bytes, Callable[[bytes, int], Words], Complete | None, Struct]
_Kind: TypeAlias = tuple[dict[bytes, _Compiled], int, int]
"""Lines by the bytes of their addresses, the size of a row, and where its addresses end."""


def words_layout(info: EventInfo) -> Struct:
    """The layout of a row's time and columns."""
    head = "<8xQ16x" if info.returns else "<8xQ8x"
    return _layout(head + "".join(column.code for column in info.columns))


@lru_cache(maxsize=1024)
def _layout(code: str) -> Struct:
    """One of the few layouts that all events share."""
    return Struct(code)


def same_place(data: bytes, size: int, until: int) -> bool:
    """True for a few rows at least that are all of one event, in one thread, at one place.

    Args:
        data: whole rows.
        size: bytes of the first one.
        until: the end of its addresses.
    """
    rows = len(data) // size
    if rows < _FEWEST or rows * size != len(data):
        return False
    for index in (*range(_HEAD), *range(_PLACE, until)):
        column = data[index::size]
        if column.count(column[0]) != rows:
            return False
    return True


class LineRows:
    """Makes text of rows, and remembers their lines."""

    def __init__(self, maker: LineMaker) -> None:
        """Take lines from a maker."""
        self._maker = maker
        self._programs: dict[int, dict[bytes, _Kind]] = {}
        """By program, and the head of a row: event, size and thread."""
        self._kinds: dict[bytes, _Kind] = self._programs.setdefault(0, {})
        self._program = 0
        self._room = _LINES
        self._passing: list[dict[bytes, _Compiled]] = []
        """Lines that do not last: others are asked for when the next rows come."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program: addresses have other names."""
        self._program = number
        self._kinds = self._programs.setdefault(number, {})

    def forget(self) -> None:
        """Drop all lines: a thread has another name, or there are too many."""
        self._programs.clear()
        self._kinds = self._programs.setdefault(self._program, {})
        self._room = _LINES

    def text(self, data: bytes) -> bytes:
        """The lines of whole rows.

        Raises:
            KeyError: the event of one is not in the table.
            struct.error: one is shorter than its event's rows.
        """
        if self._passing:
            for lines in self._passing:
                lines.clear()
            self._passing.clear()
        same = self._same(data)
        if same is not None:
            return same
        out: list[bytes] = []
        position, end = 0, len(data)
        while position < end:
            kind = self._kinds.get(data[position : position + _HEAD]) or self._kind(data, position)
            lines, size, until = kind
            line = lines.get(data[position + _PLACE : position + until])
            template, take, complete, _ = line or self._compile(kind, data, position)
            words = take(data, position)
            if complete is not None:
                words = tuple(complete(words, data, position))
            out.append(template % words)
            position += size
        return b"".join(out)

    def _same(self, data: bytes) -> bytes | None:
        """The same where all rows have one line that takes them as they are; else None."""
        if len(data) < _PLACE:
            return None
        kind = self._kinds.get(data[:_HEAD]) or self._kind(data, 0)
        lines, size, until = kind
        if not same_place(data, size, until):
            return None
        line = lines.get(data[_PLACE:until])
        template, _, complete, layout = line or self._compile(kind, data, 0)
        if complete is not None or layout.size != size:
            return None
        out: list[bytes] = []
        for at in range(0, len(data), _STEP * size):
            piece = data[at : at + _STEP * size]
            words = chain.from_iterable(layout.iter_unpack(piece))
            out.append(template * (len(piece) // size) % tuple(words))
        return b"".join(out)

    def _kind(self, data: bytes, position: int) -> _Kind:
        """Lines of the row's event and thread: none yet."""
        event_id, words, _ = _numbers(data, position)
        kind: _Kind = {}, words * 8, _PLACE + self._maker.places(event_id) * 8
        self._make_room()
        self._kinds[data[position : position + _HEAD]] = kind
        return kind

    def _compile(self, kind: _Kind, data: bytes, position: int) -> _Compiled:
        """The line of the row at a position."""
        event_id, _, thread_id = _numbers(data, position)
        place = data[position + _PLACE : position + kind[2]]
        line = self._maker.line(event_id, thread_id, unpack(f"<{len(place) // 8}Q", place))
        compiled = line.template, line.layout.unpack_from, line.complete, line.layout
        if not line.lasts:
            self._passing.append(kind[0])
        self._make_room()
        kind[0][place] = compiled
        return compiled

    def _make_room(self) -> None:
        """There is room for one more."""
        if not self._room:
            self.forget()
        self._room -= 1


def _numbers(data: bytes, position: int) -> tuple[int, int, int]:
    """Event, words and thread of the row at a position."""
    event_id, words, thread_id = HEAD.unpack_from(data, position)
    if thread_id > THREAD_MOST:
        event_id, thread_id = whole(event_id, thread_id)
    return event_id, words, thread_id

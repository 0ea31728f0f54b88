"""The events of a run as the interface keeps them: the last million, whatever the guest does.

All of it belongs to the interface's thread. Rows stay the bytes they were recorded as; text is
made for what is looked at. Long work (filter, fold, search) is done in slices.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from engine.session.protocol.rows import (
    HEAD,
    TIME,
    Event,
    EventInfo,
    EventLines,
    EventSource,
    EventText,
    Names,
    Ring,
    decode,
    whole,
)
from tui.filters import EventFilter
from tui.lineindex import Fold, LineIndex
from tui.messages import Moment
from tui.programs import Programs

CAPACITY: Final = 1_000_000
"""Events that are kept."""
BYTES: Final = 256 << 20
"""About how many bytes of rows are kept, however large their strings are."""
_BLOCK: Final = 512
"""Rows searched between two looks at the clock."""
_BUCKET: Final = 0.5
"""Seconds that a value of the rate stands for."""
_BUCKETS: Final = 120
_MERGE: Final = 0.25
"""Seconds between two times that rows of a refill are shown, at least."""
_MERGE_SHARE: Final = 10
"""So many times the time that it has taken."""


class EventStore:
    """Recorded events, and the lines they are shown as.

    Rows are numbered from the first one of the run; lines as `LineIndex` has them.

    Attributes:
        events: the event table.
        names: turns addresses and threads into names.
        programs: those that rows are of.
        snapshot: the rows that were kept when the last snapshot was taken, in stretches; None
            before the first one of the run.
        snapshot_end: number of the row that came next then.
        generation: changes whenever lines are no longer what they were.
        version: changes whenever rows are no longer numbered as they were.
    """

    def __init__(
        self,
        names: Names | None = None,
        capacity: int = CAPACITY,
        most_bytes: int = BYTES,
        clock: Callable[[], float] = time.monotonic,
        programs: Programs | None = None,
    ) -> None:
        """An empty one.

        Args:
            names: turns addresses and threads into names.
            capacity: events kept.
            most_bytes: bytes of rows kept.
            clock: for the rate, in seconds.
            programs: those that rows are of; by their `symbol` the names are.
        """
        self.events: dict[int, EventInfo] = {}
        self.generation = self.version = 0
        self.names = Names() if names is None else names
        self._bounds = capacity, most_bytes
        self._ring = self._make_ring()
        self._old: Ring | None = None
        self._parts: dict[int, Ring] = {}
        self._unmerged, self._merge_due = False, 0.0
        self.programs = Programs(lambda address, files: "") if programs is None else programs
        self._text = EventLines(self.events, self.names)
        self._index: LineIndex | None = None
        self.snapshot: tuple[bytes, ...] | None = None
        self.snapshot_end = 0
        self._clock = clock
        self._rates: deque[int] = deque(maxlen=_BUCKETS)
        self._bucket = 0
        self._density: tuple[tuple[int, ...], list[int]] = (), []

    # -- rows -----------------------------------------------------------------------------

    def declare(self, infos: Iterable[EventInfo]) -> None:
        """Events that rows may be of from now on.

        An event's description never changes within a run.
        """
        self.events.update((info.id, info) for info in infos)

    def fields(self, group: str, name: str) -> list[str]:
        """Names of an event's arguments, as it was declared last; none of an unknown event."""
        found: list[str] = []
        for info in self.events.values():
            if (info.group, info.name) == (group, name):
                found = [column.name for column in info.columns]
        return found

    def append(self, data: bytes) -> None:
        """Take whole rows.

        Raises:
            EngineError: they are no rows.
        """
        if not data:
            return
        before = self._ring.written
        self._ring.append(data)
        self._tick()
        self._rates[-1] += self._ring.written - before
        if self._index is not None:
            self._index.forget()

    def clear(self) -> None:
        """A new run: everything afresh, filter and fold stay."""
        self.version += 1
        self._ring.clear()
        self._old = None
        self._parts, self._unmerged = {}, False
        self.events.clear()
        self._rates.clear()
        self.programs.clear()
        self.snapshot, self.snapshot_end = None, 0
        self._text = EventLines(self.events, self.names)
        self._show(self.filter, self.fold)

    def begin_refill(self) -> None:
        """The rows that come from now on are those of the run from its start."""
        self._old = self._old or self._ring
        self._parts, self._unmerged = {}, False
        self._use(self._make_ring())

    def begin_stretch(self, stretch: int) -> None:
        """The rows of a stretch of the run come from its begin on."""
        self._parts[stretch] = self._make_ring()

    def append_past(self, data: bytes, stretch: int) -> None:
        """Take whole rows of a stretch; `merge` shows them.

        Raises:
            EngineError: they are no rows.
        """
        self._parts[stretch].append(data)
        self._unmerged = True

    @property
    def merges(self) -> bool:
        """True if rows wait for `merge`, and it is time for that."""
        return self._unmerged and self._clock() >= self._merge_due

    def merge(self) -> None:
        """Show the rows of all stretches, in their order."""
        began, both, spent = self._clock(), self._make_ring(), []
        for stretch in sorted(self._parts):
            both.extend(self._parts[stretch])
            spent.append((stretch, both.written))
        for stretch, end in spent:
            if end <= both.overwritten:  # later ones have taken their place
                self._parts[stretch] = self._make_ring(self._parts[stretch].counts)
        self._unmerged = False
        self._use(both)
        now = self._clock()
        self._merge_due = now + max(_MERGE, _MERGE_SHARE * (now - began))

    def end_refill(self, before: Sequence[tuple[int, int]] = ()) -> None:
        """No more of them comes.

        Args:
            before: from the first to the last tick of these the rows are those of before.
        """
        if self._unmerged:
            self.merge()
        self._parts = {}
        old, self._old = self._old, None
        if old is None or not before:
            return
        new = self._ring
        both, at = self._make_ring(new.dropped()), new.overwritten
        for begin, end in before:
            _copy(new, at, _at(new, begin), both)
            _copy(old, _at(old, begin), _at(old, end + 1), both)
            at = max(_at(new, end + 1), at)
        _copy(new, at, new.written, both)
        self._use(both)

    def erase(self, events: Container[int]) -> None:
        """Take all rows of events out, by their ids."""
        dropped = self._ring.dropped()
        left = self._make_ring(
            Counter({number: rows for number, rows in dropped.items() if number not in events})
        )
        for data in self._ring.stretches():
            kept, begin, position = [], 0, 0
            while position < len(data):
                low, words, second = HEAD.unpack_from(data, position)
                behind = position + words * 8
                if whole(low, second)[0] in events:
                    kept.append(data[begin:position])
                    begin = behind
                position = behind
            left.append(b"".join((*kept, data[begin:])))
        self._use(left)

    def _make_ring(self, dropped: Counter[int] | None = None) -> Ring:
        capacity, most_bytes = self._bounds
        return Ring(capacity, True, most_bytes, count=True, dropped=dropped)

    def _use(self, ring: Ring) -> None:
        self._ring = ring
        self.version += 1
        self._density = (), []
        self._show(self.filter, self.fold)

    def take_snapshot(self) -> None:
        """Keep the rows of now, whatever is overwritten from here on; the one before goes."""
        self.snapshot, self.snapshot_end = tuple(self._ring.stretches()), self.end

    def snapshot_text(self) -> Iterator[str]:
        """The snapshot as ftrace prints it, some lines at a time."""
        for rows in self.snapshot or ():
            for piece in self._by_program(rows):
                yield self._text.ftrace(piece).decode(errors="backslashreplace")

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""
        self._text.renamed(thread_id)
        self.generation += 1

    @property
    def counts(self) -> Counter[int]:
        """Rows ever recorded, by event id."""
        assert self._ring.counts is not None
        return self._ring.counts

    @property
    def first(self) -> int:
        """Number of the oldest row kept: how many have been overwritten."""
        return self._ring.overwritten

    @property
    def end(self) -> int:
        """Number of the row that comes next: how many were ever recorded."""
        return self._ring.written

    def __len__(self) -> int:
        return len(self._ring)

    def row(self, number: int) -> bytes:
        """A row by its number.

        Raises:
            IndexError: it is not kept, or never was.
        """
        return self._ring.row(number - self._ring.overwritten)

    def stretch(self, number: int, count: int) -> tuple[bytes, int]:
        """Rows from a number on, `count` at the most: (their bytes, how many they are).

        Raises:
            IndexError: the first one is not kept, or never was.
        """
        return self._ring.stretch(number - self._ring.overwritten, count)

    def event(self, number: int) -> Event:
        """A row, decoded."""
        return decode(self.events, self.row(number))

    def parts(self, number: int) -> EventText:
        """A row in pieces of text."""
        (row,) = self._by_program(self.row(number))
        return self._text.parts(row)

    def typed(self, number: int) -> list[tuple[str, str]]:
        """Names and texts of a row's values whose types in the source are known."""
        (row,) = self._by_program(self.row(number))
        return self._text.typed(row)

    def text(self, number: int) -> str:
        """A row as ftrace prints it, without the newline."""
        (row,) = self._by_program(self.row(number))
        line = self._text.ftrace(row)
        return line.removesuffix(b"\n").decode(errors="backslashreplace")

    def program(self, number: int) -> int:
        """The number of the program that a row is of."""
        event = self.event(number)
        return self.programs.of(event.thread_id, event.time)

    def moment(self, number: int) -> Moment:
        """The moment of a row: in front of the probed instruction, behind a return."""
        event = self.event(number)
        source = self.events[event.id].source
        if event.returned_to is not None:
            return event.time, event.returned_to
        known = source in (EventSource.PROBE, EventSource.SYSCALL_ENTER)
        return event.time, event.address if known else None

    def at(self, time: int) -> int:
        """The number of the first row of a tick or behind it."""
        return _at(self._ring, time)

    def density(self, end: int, cells: int) -> list[int]:
        """The rows in each of equal stretches of the time up to a tick."""
        known = (self._ring.overwritten, self._ring.written, end, cells)
        if self._density[0] != known:
            places = [self.at(-(-end * cell // cells)) for cell in range(cells)]
            places.append(self.end)
            self._density = known, [b - a for a, b in pairwise(places)]
        return self._density[1]

    def _by_program(self, rows: bytes) -> Iterator[bytes]:
        """Pieces of rows of one program each, which are named by its files."""
        for number, piece in self.programs.runs(rows):
            self._text.program(number)
            yield piece

    def rates(self, values: int) -> list[float]:
        """Events a second, in steps of half a second, the newest last."""
        self._tick()
        recent = list(self._rates)[-values:]
        return [count / _BUCKET for count in recent]

    def _tick(self) -> None:
        now = int(self._clock() / _BUCKET)
        if not self._rates:
            self._bucket = now
            self._rates.append(0)
        for _ in range(min(now - self._bucket, _BUCKETS)):
            self._rates.append(0)
        self._bucket = now

    # -- lines ----------------------------------------------------------------------------

    @property
    def filter(self) -> EventFilter | None:
        """The filter that rows must match to be shown."""
        return None if self._index is None else self._index.filter

    @filter.setter
    def filter(self, value: EventFilter | None) -> None:
        self._show(value, self.fold)

    @property
    def fold(self) -> Fold:
        """The treatment of repeats."""
        return Fold.NONE if self._index is None else self._index.fold

    @fold.setter
    def fold(self, value: Fold) -> None:
        self._show(self.filter, value)

    def _show(self, filter_: EventFilter | None, fold: Fold) -> None:
        self.generation += 1
        if filter_ is None and fold is Fold.NONE:
            self._index = None
        else:
            self._index = LineIndex(self._ring, self.events, filter_, fold)

    def index(self, filter_: EventFilter, fold: Fold) -> LineIndex:
        """Lines as they would be with another filter and fold; nothing is looked at yet."""
        return LineIndex(self._ring, self.events, filter_, fold)

    def step(self, seconds: float) -> bool:
        """Do work that was put off, for so long; whether there is more."""
        return self._index is not None and self._index.step(seconds)

    @property
    def pending(self) -> int:
        """Rows that filter and fold have still to look at."""
        return 0 if self._index is None else self._index.pending

    @property
    def skipped(self) -> int:
        """Rows overwritten before the filter could look at them."""
        return 0 if self._index is None else self._index.skipped

    @property
    def line_count(self) -> int:
        """Lines there are now."""
        return len(self._ring) if self._index is None else len(self._index)

    @property
    def origin(self) -> int:
        """Lines that went in front of the first one."""
        return self._ring.overwritten if self._index is None else self._index.dropped

    def number(self, line: int) -> int:
        """Number of the row that a line shows, the last one of those folded into it."""
        if self._index is None:
            return self._ring.overwritten + line
        return self._index.row(line)

    def folded(self, line: int) -> int:
        """Rows folded into a line, as far back as the run began."""
        return 1 if self._index is None else self._index.count(line)

    def line_of(self, number: int) -> int:
        """The line that shows a row, or the next one behind it."""
        if self._index is None:
            return number - self._ring.overwritten
        return self._index.line_of(number)

    # -- search ---------------------------------------------------------------------------

    def find(self, pattern: str, start: int, stop: int, backwards: bool) -> Iterator[int | None]:
        """Look through lines from `start` to before `stop` for a text, in slices.

        Yields:
            None after each slice, then the line (as it is numbered then) that matches.
        """
        wanted = pattern.encode()
        folded = pattern.islower()
        first, last = start + self.origin, stop + self.origin
        lines = self._back(first, last) if backwards else self._ahead(first, last)
        for block in lines:
            for line, text in block:
                if wanted in (text.lower() if folded else text):
                    yield line - self.origin
                    return
            yield None

    def _ahead(self, at: int, last: int) -> Iterator[Iterable[tuple[int, bytes]]]:
        while True:
            at = max(at, self.origin)
            count = min(last, self.origin + self.line_count) - at
            if count <= 0:
                return
            texts = self._texts(at - self.origin, count)
            yield enumerate(texts, at)
            at += len(texts)

    def _back(self, at: int, last: int) -> Iterator[Iterable[tuple[int, bytes]]]:
        at = min(at, self.origin + self.line_count - 1)
        while at > last and at >= self.origin:
            begin = max(at - _BLOCK + 1, last + 1, self.origin)
            pairs: list[tuple[int, bytes]] = []
            while begin + len(pairs) <= at:
                more = self._texts(begin + len(pairs) - self.origin, at + 1 - begin - len(pairs))
                pairs += enumerate(more, begin + len(pairs))
            yield reversed(pairs)
            at = begin - 1

    def _texts(self, line: int, count: int) -> list[bytes]:
        """Searchable text of some lines from one on: of one at least, of `_BLOCK` at most."""
        count = min(count, _BLOCK)
        if self._index is None:
            rows = self._ring.stretch(line, count)[0]
        else:
            numbers = [self._index.row(each) for each in range(line, line + count)]
            rows = b"".join(map(self.row, numbers))
        return [text for piece in self._by_program(rows) for text in self._text.rows(piece)]


def _copy(ring: Ring, first: int, last: int, target: Ring) -> None:
    """Append the rows of a ring from one number up to another one."""
    while first < last:
        data, count = ring.stretch(first - ring.overwritten, last - first)
        target.append(data)
        first += count


def _at(ring: Ring, time: int) -> int:
    """The number of the first row of a tick or behind it."""
    low, high = ring.overwritten, ring.written
    while low < high:
        middle = (low + high) // 2
        row = ring.row(middle - ring.overwritten)
        if TIME.unpack_from(row, HEAD.size)[0] < time:
            low = middle + 1
        else:
            high = middle
    return low

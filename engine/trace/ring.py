"""Keeps recorded rows in memory: the first ones, the last ones, or all.

Rows stay the bytes they were recorded as, in chunks; of the places where they begin only every
16th is noted, so that a row costs its own bytes and a quarter of one more. Whoever reads while
a guest runs has no time to spare for a row: rows of one size are taken all at once.
"""

from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator

from msgspec import Struct, field

from engine.errors import EngineError
from engine.trace.rows import HEAD, count_rows, halfwords, same_size_tally, uniform

STRIDE = 16
"""Every how many rows the place of one is noted."""
CHUNK = 1 << 18
"""Bytes after which a new chunk begins."""


class _Chunk(Struct):
    """Rows one behind the other.

    Attributes:
        first: number of its first row, counted from the first one ever kept.
        data: their bytes.
        marks: where every `STRIDE`-th of them begins.
        rows: how many they are.
    """

    first: int
    data: bytes | bytearray = field(default_factory=bytearray)
    marks: "array[int]" = field(default_factory=lambda: array("I"))
    rows: int = 0

    def offset(self, row: int) -> int:
        """Start of a row of the chunk; its end for the row behind the last."""
        if row == self.rows:
            return len(self.data)
        position = self.marks[row // STRIDE]
        for _ in range(row % STRIDE):
            position += HEAD.unpack_from(self.data, position)[1] * 8
        return position


class Ring:
    """Rows in the order they were recorded.

    Attributes:
        capacity: how many rows it keeps at the most, None for all.
        overwrite: whether it keeps the last ones instead of the first ones.
        most_bytes: about how many bytes of rows an overwriting ring keeps at the most, None for
            no bound: a chunk more or less.
        counts: rows ever taken, by event id; None unless asked for.
        lost: rows refused because it was full.
        overwritten: rows dropped for later ones.
    """

    def __init__(
        self,
        capacity: int | None = None,
        overwrite: bool = False,
        most_bytes: int | None = None,
        count: bool = False,
        dropped: Counter[int] | None = None,
    ) -> None:
        """Make an empty one, `count` asking for `counts`.

        Args:
            capacity: see the attributes, as for what is not named here.
            overwrite: see there.
            most_bytes: see there.
            count: keep `counts`.
            dropped: rows that it is to have dropped already, by event id.

        Raises:
            ValueError: the capacity is not positive.
        """
        if capacity is not None and capacity < 1:
            raise ValueError("a ring keeps at least one event")
        self.capacity = capacity
        self.overwrite = overwrite
        self.most_bytes = most_bytes
        before = Counter[int]() if dropped is None else dropped
        self.counts: Counter[int] | None = before.copy() if count else None
        self.lost = 0
        self.overwritten = before.total()
        self._chunks: deque[_Chunk] = deque()
        self._bytes = 0
        self._end = self.overwritten
        """Number of the row that comes next, counted from the first one ever kept."""

    def __len__(self) -> int:
        return self._end - self.overwritten

    @property
    def written(self) -> int:
        """Rows ever given to it."""
        return self._end + self.lost

    def append(self, data: bytes) -> None:
        """Take whole rows; this is the consumer of a `Staging`."""
        position, end = 0, len(data)
        room = None if self.capacity is None else self.capacity - len(self)
        if self.overwrite:
            room = None
        while position < end:
            if room == 0:
                self.lost += count_rows(data, position)
                break
            chunk = self._open_chunk()
            stop, rows = self._index(chunk, data, position, room)
            chunk.data += data[position:stop]
            self._bytes += stop - position
            chunk.rows += rows
            self._end += rows
            position = stop
            if room is not None:
                room -= rows
            self._forget()

    def extend(self, other: "Ring") -> None:
        """Take the rows of another ring of the same bounds, and what it has dropped, as it is."""
        base = self._end
        for chunk in other._chunks:
            data = chunk.data
            self._chunks.append(
                _Chunk(
                    base + chunk.first,
                    data if isinstance(data, bytes) else bytearray(data),
                    chunk.marks[:],
                    chunk.rows,
                )
            )
        self._bytes += other._bytes
        self._end = base + other._end
        if other.overwritten:
            self.overwritten = base + other.overwritten
        if self.counts is not None and other.counts is not None:
            self.counts.update(other.counts)
        if self._chunks:
            self._forget()

    def row(self, index: int) -> bytes:
        """One of the rows kept, the oldest being 0.

        Raises:
            IndexError: there is none.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"event {index} of {len(self)}")
        number = index + self.overwritten
        chunk = self._chunks[self._chunk_of(number)]
        position = chunk.offset(number - chunk.first)
        size = HEAD.unpack_from(chunk.data, position)[1] * 8
        return bytes(chunk.data[position : position + size])

    def __iter__(self) -> Iterator[bytes]:
        for data in self.stretches():
            position = 0
            while position < len(data):
                size = HEAD.unpack_from(data, position)[1] * 8
                yield data[position : position + size]
                position += size

    def stretches(self) -> Iterator[bytes]:
        """All rows kept, many at a time, as bytes of whole rows."""
        for chunk in tuple(self._chunks):
            first = max(self.overwritten - chunk.first, 0)
            if first < chunk.rows:
                yield bytes(memoryview(chunk.data)[chunk.offset(first) :])

    def stretch(self, index: int, rows: int) -> tuple[bytes, int]:
        """Some of the rows kept, from one on: (their bytes, how many they are).

        They are at least one and at the most `rows`; fewer where a chunk ends.

        Raises:
            IndexError: there is no such row.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"event {index} of {len(self)}")
        number = index + self.overwritten
        chunk = self._chunks[self._chunk_of(number)]
        first = number - chunk.first
        last = min(first + max(rows, 1), chunk.rows)
        piece = memoryview(chunk.data)[chunk.offset(first) : chunk.offset(last)]
        return bytes(piece), last - first

    def dropped(self) -> Counter[int]:
        """Rows dropped for later ones, by event id; of a ring that counts."""
        if self.counts is None or not self.overwritten:
            return Counter()
        kept = Counter[int]()
        for data in self.stretches():  # one after the other: they are many
            counted = Ring(count=True)
            counted.append(data)
            kept.update(counted.counts)
        return self.counts - kept

    def clear(self) -> None:
        """Forget all rows and counts."""
        self._chunks.clear()
        self._bytes = 0
        if self.counts is not None:
            self.counts.clear()
        self._end = self.lost = self.overwritten = 0

    def _chunk_of(self, number: int) -> int:
        return bisect_right(self._chunks, number, key=lambda chunk: chunk.first) - 1

    def _open_chunk(self) -> _Chunk:
        """The chunk that takes the next row."""
        if self._chunks and len(self._chunks[-1].data) < CHUNK:
            return self._chunks[-1]
        if self._chunks:
            # A bytearray keeps room to grow in; a chunk that is full needs none.
            self._chunks[-1].data = bytes(self._chunks[-1].data)
        self._chunks.append(_Chunk(self._end))
        return self._chunks[-1]

    def _index(
        self, chunk: _Chunk, data: bytes, position: int, room: int | None
    ) -> tuple[int, int]:
        """Note where the rows begin that the chunk takes: (end of them, how many)."""
        base = len(chunk.data) - position
        end = min(len(data), position + CHUNK - len(chunk.data))
        size, rows = uniform(data, position, end)
        if rows:
            rows = rows if room is None else min(rows, room)
            first = base + position + -chunk.rows % STRIDE * size
            stop = position + rows * size
            if self.counts is not None:
                self.counts.update(same_size_tally(data, position, stop, size))
            chunk.marks.extend(range(first, base + stop, STRIDE * size))
            return stop, rows
        until = chunk.rows + room if room is not None else -1
        row = chunk.rows
        halves, mark = halfwords(data), chunk.marks.append
        ids: list[int] = []
        note = ids.append
        while position < end and row != until:
            if not row % STRIDE:
                mark(base + position)
            half = position // 2
            words = halves[half + 1]
            if not words:
                raise EngineError("a recorded event has no size")
            note(halves[half] | (halves[half + 3] & 0xFF00) << 8)
            position += words * 8
            row += 1
        if self.counts is not None:
            self.counts.update(ids)
        return position, row - chunk.rows

    def _forget(self) -> None:
        """Drop the oldest rows that are too many."""
        if not self.overwrite:
            return
        if self.capacity is not None:
            self.overwritten = max(self.overwritten, self._end - self.capacity)
        if self.most_bytes is not None and self._bytes > self.most_bytes and len(self._chunks) > 1:
            oldest = self._chunks[0]
            self.overwritten = max(self.overwritten, oldest.first + oldest.rows)
        while self._chunks and self._chunks[0].first + self._chunks[0].rows <= self.overwritten:
            self._bytes -= len(self._chunks.popleft().data)

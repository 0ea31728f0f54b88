"""The hot buffer that rows are written to before anybody looks at them.

Either anonymous memory, or the mapping of a file beside the output (`ring_file`): a shared mapping
survives the process, so that after a kill every row written is still in the file.
"""

import mmap
import struct
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from engine.arch.program import ROW_HEAD
from engine.arch.recording import CURSOR
from engine.errors import EngineError
from engine.fetch.context import RowSink
from engine.trace.ring_file import RingFile
from engine.trace.rows import count_rows, uniform, whole_rows

PAGE: Final = mmap.PAGESIZE
CAPACITY: Final = 1 << 20
"""Bytes of rows that a staging holds unless told otherwise."""
SMALLEST: Final = 1 << 17
"""The least it may hold: one row without its strings' bytes always fits."""

Consumer = Callable[[bytes], None]


def put_row(sink: RowSink, row: bytes) -> None:
    """Write a whole row to where rows go."""
    size = len(row)
    position = sink.position
    if position + size > sink.limit:
        sink.drain()
        position = sink.position
    # The head last: a row whose first word is zero does not exist yet.
    sink.buffer[position + 8 : position + size] = row[8:]
    sink.buffer[position : position + 8] = row[:8]
    sink.position = position + size


def capacity_of(wanted: int) -> int:
    """Bytes of rows that a staging really holds: whole pages, and not too few."""
    return (max(wanted, SMALLEST) + PAGE - 1) // PAGE * PAGE


class Staging:
    """Memory for rows, emptied into a consumer whenever it is full.

    Writers keep to this: `if position + size > limit: drain()`, write the row at `position`,
    `position += size`. Memory from `position` to `limit` is zero, which ends the rows.

    Attributes:
        buffer: the memory.
        control: a page that code in the guest may share; its word at `CURSOR` is `cursor`.
        cursor: one word: bytes of rows so far. The guest can write what it likes there once
            the memory is shown to it.
        shown: whether code in the guest writes rows too: then they are looked at before they
            are believed.
        limit: end of the memory.
        start: where rows begin.
        lost: rows that the consumer failed to take.
        failure: the first error of the consumer, None if there was none.
        file: what is behind it, None for anonymous memory.
    """

    __slots__ = (
        "_closed",
        "_consumer",
        "_on_failure",
        "_zeros",
        "buffer",
        "control",
        "cursor",
        "failure",
        "file",
        "limit",
        "lost",
        "shown",
        "start",
    )

    def __init__(
        self,
        consumer: Consumer,
        capacity: int = CAPACITY,
        file: RingFile | None = None,
        on_failure: Callable[[OSError], None] | None = None,
    ) -> None:
        """Make one.

        Args:
            consumer: takes the bytes of whole rows; may raise OSError.
            capacity: bytes of rows, rounded up to pages; the file's where there is one.
            file: what backs it; it stays the caller's.
            on_failure: told the consumer's first OSError.
        """
        capacity = capacity_of(capacity) if file is None else file.capacity
        self._consumer = consumer
        self._on_failure = on_failure
        self._zeros = bytes(capacity)
        self._closed = False
        self.file = file
        self.lost = 0
        self.failure: OSError | None = None
        self.start = 0 if file is None else file.start
        self.buffer = mmap.mmap(-1, capacity) if file is None else file.buffer
        self.control = mmap.mmap(-1, PAGE)
        self.cursor = memoryview(self.control)[CURSOR : CURSOR + 8].cast("Q")
        self.shown = False
        self.limit = self.start + capacity

    @property
    def position(self) -> int:
        """The place of the next row, in bytes."""
        return self.start + self.cursor[0]

    @position.setter
    def position(self, value: int) -> None:
        self.cursor[0] = value - self.start

    @property
    def capacity(self) -> int:
        """Bytes that are free after a drain."""
        return self.limit - self.start

    def drain(self) -> None:
        """Hand the rows to the consumer and forget them.

        A consumer that writes tells a file how far it has got: the rows stay there until all
        of them are consumed. What a failing consumer was given counts as lost.
        """
        used = self.cursor[0]
        if not used:
            return
        if self.shown:
            used = self._believable(used)
        data = self.buffer[self.start : self.start + used]
        try:
            self._consumer(data)
        except OSError as error:
            self.lost += count_rows(data)
            if self.failure is None:
                self.failure = error
                if self._on_failure is not None:
                    self._on_failure(error)
        except (EngineError, LookupError, ValueError, struct.error):
            if not self.shown:
                raise
            self.lost += 1  # the program has written something there that is no row of ours
        except BaseException:  # the run is cut off
            self.lost += count_rows(data)
            raise
        finally:
            self.buffer[self.start : self.start + used] = memoryview(self._zeros)[:used]
            if self.file is not None:
                self.file.commit(replace(self.file.progress, consumed=0))
            self.cursor[0] = 0

    def wipe(self, most: int | None = None) -> None:
        """A row was given up halfway: `most` bytes behind the rows (None = all) are zero again."""
        at = self.start + min(self.cursor[0], self.capacity)
        end = self.limit if most is None else min(at + most, self.limit)
        self.buffer[at:end] = memoryview(self._zeros)[: end - at]

    def _believable(self, used: int) -> int:
        """Bytes of whole rows at the front; what a program has scribbled over is lost."""
        data = self.buffer[self.start : self.start + min(used, self.capacity)]
        size = uniform(data)[0]
        good = len(data) if size >= ROW_HEAD * 8 else whole_rows(data)
        if good != used:
            self.lost += 1
            self.cursor[0] = good
            self.wipe()
        return good

    @property
    def closed(self) -> bool:
        """True if nothing can be written any more."""
        return self._closed

    def close(self) -> None:
        """Hand over what is left; nothing can be written any more."""
        if self._closed:
            return
        self.drain()
        self._closed = True
        self.shown = False
        self.position = self.limit
        if self.file is None:
            self.buffer.close()

"""The hot buffer that rows are written to before anybody looks at them.

Either anonymous memory, or the mapping of a file beside the output (`ring_file`): a shared mapping
survives the process, so that after a kill every row written is still in the file.

A program that rows are shown to may write there what it likes. Each row says where the next one
begins: whether they hang together is seen from one to the next. On x86-64 hosts machine code does
that, a nanosecond a row; it is tried at its first use against its twin in Python
(`engine.cpu.native`).
"""

import ctypes
import mmap
import re
import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

from msgspec.structs import replace

from engine.arch.program import ROW_HEAD
from engine.arch.recording import CURSOR
from engine.cpu import native
from engine.errors import EngineError
from engine.fetch.context import RowSink
from engine.trace.ring_file import RingFile
from engine.trace.rows import HEAD, count_rows, uniform

PAGE: Final = mmap.PAGESIZE
CAPACITY: Final = 1 << 20
"""Bytes of rows that a staging holds unless told otherwise."""
SMALLEST: Final = 1 << 17
"""The least it may hold: one row without its strings' bytes always fits."""

Consumer = Callable[[bytes], None]

# size_t walk(const void *rows, size_t size)
#   rax            rdi          rsi
_WALK: Final = bytes.fromhex(
    "31c0"  # xor eax, eax
    # next:
    "488d4808"  # lea rcx, [rax+8]
    "4839f1"  # cmp rcx, rsi
    "771e"  # ja done
    "8b0c07"  # mov ecx, [rdi+rax]      event, words
    "6685c9"  # test cx, cx
    "7416"  # je done
    "c1e910"  # shr ecx, 16
    "83f903"  # cmp ecx, ROW_HEAD
    "720e"  # jb done
    "488d0cc8"  # lea rcx, [rax+rcx*8]
    "4839f1"  # cmp rcx, rsi
    "7705"  # ja done
    "4889c8"  # mov rax, rcx
    "ebd9"  # jmp next
    # done:
    "c3"  # ret
)
_TRIAL: Final = b"\1\0\3\0".ljust(24, b"\1") + b"\0\1\4\0".ljust(32, b"\1")
"""Two rows."""


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


@lru_cache(maxsize=2)
def _zeros(size: int) -> bytes:
    """So many zero bytes, which all stagings of a size share."""
    return bytes(size)


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
        self._zeros = _zeros(capacity)
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
        data = self.buffer[self.start : self.start + min(used, self.capacity)]
        if self.shown:
            data = self._believed(data, used)
            used = len(data)
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

    def _believed(self, data: bytes, used: int) -> bytes:
        """The whole rows at the front; what a program has scribbled over is lost.

        Args:
            data: what stands where rows do.
            used: how many bytes the cursor says.
        """
        good = believable(data)
        if good == used:
            return data
        self.lost += 1
        self.cursor[0] = good
        self.wipe()
        return data[:good]

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


def believable(data: bytes) -> int:
    """Bytes of the rows at the front of some memory that hang together; all of it, usually.

    An event, at least a row's head of words, and strings inside the row are asked for.
    """
    walk = _walk() if native.possible() else None
    return walk(data, len(data)) if walk is not None else _walked(data)


def _walked(data: bytes) -> int:
    size = uniform(data)[0]
    if size >= ROW_HEAD * 8 and not (0 in data[::size] and 0 in data[1::size]):
        return len(data)
    return whole_rows(data)


def whole_rows(data: bytes) -> int:
    """The same row by row, those of the usual kinds many at a time."""
    position, end = 0, len(data)
    kinds: list[bytes] = []
    unpack = HEAD.unpack_from
    while position + HEAD.size <= end:
        number, words, _ = unpack(data, position)
        if not number or words < ROW_HEAD or position + words * 8 > end:
            return position
        if len(kinds) < _KINDS:
            kinds.append(data[position : position + 4])
            found = _rows_of(frozenset(kinds)).match(data, position)
            assert found is not None, "any number of rows match, none included"
            position = found.end()
        else:
            position += words * 8
    return position


_KINDS: Final = 8
"""Kinds of rows, by event and size, that are looked for together: most stretches have two."""


@lru_cache(maxsize=64)
def _rows_of(kinds: frozenset[bytes]) -> re.Pattern[bytes]:
    """A pattern of rows that begin with one of these event ids and sizes, as many as there are."""
    rows = (
        re.escape(kind) + b".{%d}" % (int.from_bytes(kind[2:], "little") * 8 - len(kind))
        for kind in sorted(kinds)
    )
    return re.compile(b"(?:" + b"|".join(rows) + b")*+", re.DOTALL)


@cache
def _walk() -> Callable[[bytes, int], int] | None:
    """The host's code; None where it has none, or that does not do what it should."""
    placed = native.place((_WALK,))
    if placed is None:
        return None
    (address,), memory = placed
    function = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)(address)

    def walk(data: bytes, size: int, kept: object = memory) -> int:
        del kept  # what the code stands in
        found: int = function(data, size)
        return found

    trials = [_TRIAL[:size] for size in range(len(_TRIAL) + 1)]
    trials += [_TRIAL + more for more in (bytes(16), b"\1\0\2\0".ljust(16, b"\1"), b"\1" * 64)]
    return walk if all(walk(one, len(one)) == whole_rows(one) for one in trials) else None

"""The hot buffer that rows are written to before anybody looks at them.

Either anonymous memory, or a file beside the output (`FILE.ring` for `-o FILE`): a shared mapping
survives the process, so that after a kill every row written is still in the file. Its blocks are
allocated when it is created; a full disk is an error there and never a SIGBUS later.

File: one header page (`HEADER`), the rows, then the description of the events as JSON. A newer
description goes where the current one is not, and the header is switched to it last.
"""

import errno
import json
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.arch.program import ROW_HEAD
from engine.arch.recording import CURSOR
from engine.errors import CommandError, EngineError
from engine.trace.rows import EventInfo, count_rows, uniform, whole_rows

MAGIC = b"KPTRING\0"
VERSION = 2
HEADER = struct.Struct("<8sIIQQQQI")
"""Magic, version, zero; offset and size of the rows; offset, size and CRC-32 of the JSON."""

PAGE = mmap.PAGESIZE
CAPACITY = 1 << 20
"""Bytes of rows that a staging holds unless told otherwise."""
SMALLEST = 1 << 17
"""The least it may hold: one row without its strings' bytes always fits."""

Consumer = Callable[[bytes], None]


def describe(
    events: Iterable[EventInfo],
    arch: str,
    symbols: Mapping[int, str] | None = None,
    comms: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """What rows mean, as plain data.

    Args:
        events: the event table.
        arch: name of the guest's architecture.
        symbols: text of addresses, for what prints as a symbol.
        comms: names of threads by id.
    """
    return {
        "arch": arch,
        "events": [event.to_json() for event in events],
        "symbols": {str(address): text for address, text in (symbols or {}).items()},
        "comms": {str(thread): text for thread, text in (comms or {}).items()},
    }


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
        path: of the file behind it, None for anonymous memory.
    """

    __slots__ = (
        "_consumer",
        "_description",
        "_file",
        "_on_failure",
        "_zeros",
        "buffer",
        "control",
        "cursor",
        "failure",
        "limit",
        "lost",
        "path",
        "shown",
        "start",
    )

    def __init__(
        self,
        consumer: Consumer,
        capacity: int = CAPACITY,
        path: Path | None = None,
        on_failure: Callable[[OSError], None] | None = None,
    ) -> None:
        """Make one.

        Args:
            consumer: takes the bytes of whole rows; may raise OSError.
            capacity: bytes of rows, rounded up to pages.
            path: the file to back it with. What is there already is replaced.
            on_failure: told the consumer's first OSError.

        Raises:
            CommandError: the file cannot be made, or the disk has no room for it.
        """
        capacity = (max(capacity, SMALLEST) + PAGE - 1) // PAGE * PAGE
        self._consumer = consumer
        self._on_failure = on_failure
        self._zeros = bytes(capacity)
        self._description = (0, 0)
        self._file = -1
        self.path = path
        self.lost = 0
        self.failure: OSError | None = None
        if path is None:
            self.start = 0
            self.buffer = mmap.mmap(-1, capacity)
        else:
            self.start = PAGE
            self._file = _create(path, PAGE + capacity)
            self.buffer = mmap.mmap(self._file, PAGE + capacity, mmap.MAP_SHARED)
            self._write_header(0)
        self.control = mmap.mmap(-1, PAGE)
        self.cursor = memoryview(self.control)[CURSOR : CURSOR + 8].cast("Q")
        self.shown = False
        self.limit = self.start + capacity

    @property
    def position(self) -> int:
        """Where the next row goes, in bytes."""
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

        A kill in here may leave rows in the file that the consumer has got already, never the
        other way round. What a failing consumer was given counts as lost.
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
        finally:
            self.buffer[self.start : self.start + used] = memoryview(self._zeros)[:used]
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

    def describe(self, description: Mapping[str, Any]) -> None:
        """Store what rows mean in the file; nothing to do without one.

        Args:
            description: as `describe` makes it. It replaces the one before.

        Raises:
            CommandError: the disk has no room for it; the one before stays.
        """
        if self.path is None:
            return
        data = json.dumps(description, separators=(",", ":")).encode()
        offset, size = self._description
        at = self.limit if not size or self.limit + len(data) <= offset else offset + size
        try:
            os.posix_fallocate(self._file, at, len(data))
            done = 0
            while done < len(data):
                done += os.pwrite(self._file, data[done:], at + done)
        except OSError as error:
            raise _no_room(self.path, error) from error
        self._description = (at, len(data))
        self._write_header(zlib.crc32(data))

    def close(self) -> None:
        """Hand over what is left and remove the file."""
        if self.buffer.closed:
            return
        self.drain()
        self.shown = False
        self.position = self.limit
        self.buffer.close()
        if self.path is not None:
            os.close(self._file)
            self.path.unlink(missing_ok=True)

    def _write_header(self, crc: int) -> None:
        self.buffer[: HEADER.size] = HEADER.pack(
            MAGIC, VERSION, 0, PAGE, len(self.buffer) - PAGE, *self._description, crc
        )


def _create(path: Path, size: int) -> int:
    """A new file with all its blocks, never one that another process has mapped."""
    try:
        path.unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(path, flags, 0o600)
    except OSError as error:
        raise CommandError(f"cannot create {path}: {error.strerror}") from error
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        os.close(file)
        path.unlink(missing_ok=True)
        raise _no_room(path, error) from error
    return file


def _no_room(path: Path, error: OSError) -> CommandError:
    what = "no room on the disk" if error.errno == errno.ENOSPC else error.strerror
    return CommandError(f"cannot reserve {path} for undrained events: {what}")

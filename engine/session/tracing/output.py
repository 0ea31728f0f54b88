"""Where a trace goes: rows in, an output format's bytes out, and what could not be written.

Rows are written in pieces. A piece that does not fit, as on a full disk, is taken back from a file
as a whole and counted as lost; later pieces are tried again, behind a note.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Final

from engine.errors import CommandError
from engine.trace.formats.base import Format
from engine.trace.ring import Ring
from engine.trace.rows import HEAD, count_rows, uniform

PIECE: Final = 1 << 15
"""About how many bytes of rows are written at once."""


class TraceOutput:
    """The output of one trace.

    Attributes:
        format: turns rows into bytes.
        discard: whether everything goes to /dev/null: nothing is formatted then.
        lost: rows that could not be written.
        failure: the first error, None if there was none.
    """

    def __init__(self, form: Format, path: str | None, stream: BinaryIO | None) -> None:
        """Open it.

        Args:
            form: the output format.
            path: file to write to, None for the stream.
            stream: None for nowhere.

        Raises:
            CommandError: the file cannot be written.
        """
        self.format = form
        self.discard = path == "/dev/null"
        self.lost = 0
        self.failure: OSError | None = None
        self._unsaid = 0
        self._own = path is not None and not self.discard
        self._file = None if self.discard else stream
        if path is not None and not self.discard:
            try:
                self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by `close`
            except OSError as error:
                raise CommandError(f"-o {path}: {error.strerror}") from error

    def rows(self, data: bytes) -> None:
        """Write rows; what does not go counts as lost."""
        if self._file is None:
            return
        for piece in _pieces(data):
            text = self.format.rows(piece)
            if self._unsaid and text:
                text = self.format.lost(self._unsaid) + text
            if self.text(text):
                self._unsaid = 0
            else:
                count = count_rows(piece)
                self.lost += count
                self._unsaid += count

    def text(self, data: bytes) -> bool:
        """Write all of it, or nothing; False for nothing."""
        if self._file is None or not data:
            return True
        start = self._position()
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
            self._file.flush()
        except OSError as error:
            self.failure = self.failure or error
            if start is not None:
                with suppress(OSError):
                    os.ftruncate(self._file.fileno(), start)
                    os.lseek(self._file.fileno(), start, os.SEEK_SET)
            return False
        return True

    def ring(self, ring: Ring) -> None:
        """Write all that a ring has, with its counts."""
        self.text(self.format.header(len(ring), ring.written))
        if ring.overwritten:
            self.text(self.format.lost(ring.overwritten))
        for stretch in ring.stretches():
            self.rows(stretch)
        if ring.lost:
            self.text(self.format.lost(ring.lost))

    def tail(self, text: bytes) -> None:
        """Write what comes behind the trace; on stderr where the output is no text."""
        if self.discard or not self.format.is_text:
            sys.stderr.buffer.write(text)
            sys.stderr.flush()
        else:
            self.text(text)

    def close(self) -> None:
        """Close the file; a stream stays open."""
        if self._own and self._file is not None:
            self._file.close()

    def _position(self) -> int | None:
        """Where the next byte of a file goes; None for what is not ours or no file."""
        if not self._own or self._file is None:
            return None
        try:
            return os.lseek(self._file.fileno(), 0, os.SEEK_CUR)
        except OSError:
            return None


def _pieces(data: bytes) -> Iterator[bytes]:
    """Whole rows, about `PIECE` bytes at a time."""
    if len(data) <= PIECE:
        yield data
        return
    size, _ = uniform(data)
    start = end = 0
    if size:
        step = max(PIECE // size, 1) * size
        for start in range(0, len(data), step):
            yield data[start : start + step]
        return
    while end < len(data):
        end += HEAD.unpack_from(data, end)[1] * 8
        if end - start >= PIECE:
            yield data[start:end]
            start = end
    if start < end:
        yield data[start:end]

"""Files that are made of pieces, each with a checksum of its own.

Behind a magic word and a version stand pieces: a kind, sizes, a checksum, the moment that the
guest had come to, then the content, compressed. A file that was cut off, or is damaged, is good up
to its first bad piece.
"""

import mmap
import os
import stat
import struct
import sys
import zlib
from collections.abc import Iterator
from io import FileIO
from typing import Any, Final

from msgspec import Struct

from engine.errors import CommandError
from engine.history.recordbounds import RecordingError

HEAD: Final = struct.Struct("<4sIIIQ")
"""Kind; bytes as stored and as they are; CRC-32, see `checksum`; the guest's moment."""
LONGEST: Final = 64 << 20
"""Bytes of a piece as they are written; one entry may be longer."""
BOOT_MAGIC: Final = b"KPTBOOTED\0"
"""The magic word of recorded boots."""
_FRONT: Final = struct.Struct("<10sHI")
_LEVEL: Final = 3
_WINDOW_LOG: Final = 25
"""Of zstd: what is packed at this level takes 21."""


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd  # few runs are recorded
    return zstd


def checksum(kind: bytes, stored: int, raw: int, moment: int, content: bytes | memoryview) -> int:
    """CRC-32 of a piece: of its sizes and its content."""
    return zlib.crc32(content, zlib.crc32(HEAD.pack(kind, stored, raw, 0, moment)))


def begins_with(path: str, magic: bytes) -> bool:
    """True if a file begins with a magic word.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


def is_boot_record(path: str) -> bool:
    """True if a regular file begins as a recorded boot does; False where it cannot be read.

    A pipe is left alone: what is read of it is gone for whoever comes next, and nothing may come.
    """
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and begins_with(path, BOOT_MAGIC)
    except (OSError, ValueError):
        return False


def contents_of(path: str, magic: bytes) -> memoryview:
    """The bytes of a file; of one with another magic word, or without an end, as few as tell so.

    Raises:
        CommandError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            head = file.peek(len(magic))[: len(magic)]
            if head != magic:
                return memoryview(head)
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return memoryview(file.read())
            # A sparse file of a terabyte costs what is looked at.
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandError(f"{path}: {reason}") from error


def check_front(
    data: memoryview, name: str, magic: bytes, version: int, kind: str, how: str
) -> None:
    """Refuse a file that does not begin as it should.

    Args:
        data: the file.
        name: of it, for messages.
        magic: its magic word.
        version: that is read here.
        kind: of the file, in words with an article.
        how: the command line that makes one.

    Raises:
        RecordingError: it is of another kind or version.
    """
    front = bytes(data[: len(magic)])
    if front == BOOT_MAGIC != magic:
        raise RecordingError(f"{name}: a recorded boot, which is not read from a pipe")
    if len(data) < _FRONT.size or front != magic:
        raise RecordingError(f"{name}: not {kind} ({how} makes one)")
    _, found, _ = _FRONT.unpack_from(data)
    if found != version:
        way = "record it again" if found < version else "a newer kprobe-tui reads it"
        raise RecordingError(
            f"{name}: {kind} of format {found}; this version reads format {version}: {way}"
        )


class PieceWriter:
    """Writes pieces one behind the other.

    A failure to write ends the file and not the run.

    Attributes:
        failure: why no more is written, None if all is well.
    """

    def __init__(self, file: FileIO, magic: bytes, version: int) -> None:
        """Begin a file, which is empty."""
        self.failure: OSError | None = None
        self._file = file
        self._compress = _zstd().compress
        self._out(_FRONT.pack(magic, version, 0))

    def put(self, kind: bytes, raw: bytes, moment: int) -> None:
        """Write a piece.

        Args:
            kind: of it, four bytes.
            raw: its content.
            moment: that the guest has come to.
        """
        stored = self._compress(raw, level=_LEVEL)
        sizes = kind, len(stored), len(raw)
        crc = checksum(*sizes, moment, stored)
        self._out(HEAD.pack(*sizes, crc, moment) + stored)

    def _out(self, data: bytes) -> None:
        if self.failure is not None:
            return
        try:
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            self.failure = error


class FilePiece(Struct, frozen=True):
    """A piece of a file.

    Attributes:
        at: its place in the file.
        kind: of it.
        size: bytes of its content.
        moment: that the guest had come to.
        stored: its content, packed.
    """

    at: int
    kind: bytes
    size: int
    moment: int
    stored: memoryview


class PieceReader:
    """Goes through the pieces of a file.

    Attributes:
        end: the place behind the last piece that is whole, once `pieces` is through.
        bad: place and fault of the first piece that is not as it was written, None for none.
    """

    def __init__(self, data: memoryview) -> None:
        """Read the bytes of a file, whose version is known to be right."""
        self.end = _FRONT.size
        self.bad: tuple[int, ValueError] | None = None
        self._data = data
        self._zstd = _zstd()

    @property
    def is_cut(self) -> bool:
        """True if something stands behind the last whole piece."""
        return self.end < len(self._data)

    def pieces(self) -> Iterator[FilePiece]:
        """The pieces up to the first that is not whole or not as written."""
        data, at = self._data, _FRONT.size
        while at + HEAD.size <= len(data):
            kind, stored, raw, crc, moment = HEAD.unpack_from(data, at)
            end = at + HEAD.size + stored
            if end > len(data):
                break
            content = data[at + HEAD.size : end]
            if checksum(kind, stored, raw, moment, content) != crc:
                self.bad = at, ValueError("its checksum is wrong")
                break
            if raw > 2 * LONGEST:
                self.bad = at, ValueError(f"a piece of {raw} bytes")
                break
            yield FilePiece(at, kind, raw, moment, content)
            at = end
        self.end = at

    def unpacked(self, piece: FilePiece) -> bytes:
        """The content of a piece.

        Raises:
            ValueError: its size is not what the piece says.
        """
        options = {self._zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        unpack = self._zstd.ZstdDecompressor(options=options)
        raw: bytes = unpack.decompress(piece.stored, max_length=piece.size + 1)
        if len(raw) != piece.size:
            raise ValueError("its size is wrong")
        return raw

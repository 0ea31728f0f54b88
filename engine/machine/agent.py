"""The program that a machine runs to be asked about its files, and the requests to it.

`agent.c` is its source. A request is a few words and the bytes of a path and of data, each filled
up to whole words; an answer is one word, or pieces of a file with their sizes in front and a word
behind, 0 or an error's negative number.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from importlib.resources import files
from pathlib import PurePosixPath
from struct import pack, unpack_from
from typing import Final

from msgspec import Struct

_HEAD: Final = b"070701"
_FOLDER, _PROGRAM = 0o040755, 0o100755
_SKIPPED: Final = -10000
_PIECE_MOST: Final = 1 << 16
PATH_MOST: Final = 4091
DATA_MOST: Final = 1 << 16
"""Bytes of a request's path and data."""
APPEND, TRUNCATE = 0o2001, 0o1001
"""Flags by which a file is opened for writing: O_WRONLY with O_APPEND or O_TRUNC."""


class _RequestKind(IntEnum):
    """Kinds of requests."""

    WRITE = 1
    READ = 2
    SLEEP = 3


class When(IntEnum):
    """A condition on the last write that was carried out."""

    ALWAYS = 0
    TAKEN = 1
    REFUSED = 2


class FileRequest(Struct, frozen=True):
    """A request to the program; `writing`, `reading` and `sleeping` make them.

    Attributes:
        kind: what it wants.
        when: condition; a request whose condition does not hold is skipped.
        flags: of open(2), or milliseconds.
        path: of a file.
        data: that is written, in one go.
    """

    kind: int
    when: When
    flags: int
    path: bytes = b""
    data: bytes = b""

    @property
    def packed(self) -> bytes:
        """The request as the program reads it."""
        sizes = len(self.path), len(self.data)
        head = pack("<4I", self.kind | self.when << 8, self.flags, *sizes)
        return head + _filled(self.path) + _filled(self.data)


class FileAnswer(Struct, frozen=True):
    """The program's answer.

    Attributes:
        number: an error's number, which is negative; else 0 or more. None for a request that was
            skipped.
        data: of a file that was read.
    """

    number: int | None
    data: bytes = b""


def writing(path: str, data: bytes, flags: int = APPEND, when: When = When.ALWAYS) -> FileRequest:
    """Write data to a file; without any, only open and close it.

    Raises:
        ValueError: the path or the data is too long.
    """
    return _request(_RequestKind.WRITE, when, flags, path, data)


def reading(path: str, when: When = When.ALWAYS) -> FileRequest:
    """Read a file to its end.

    Raises:
        ValueError: the path is too long.
    """
    return _request(_RequestKind.READ, when, 0, path, b"")


def sleeping(milliseconds: int) -> FileRequest:
    """Sleep."""
    return FileRequest(_RequestKind.SLEEP, When.ALWAYS, milliseconds)


def _request(kind: _RequestKind, when: When, flags: int, path: str, data: bytes) -> FileRequest:
    raw = path.encode("utf-8", "surrogateescape")
    if len(raw) > PATH_MOST or len(data) > DATA_MOST:
        raise ValueError("the request is too long")
    return FileRequest(kind, when, flags, raw, data)


def answers(requests: Sequence[FileRequest], raw: bytes) -> list[FileAnswer]:
    """The answers in what the program has written.

    Raises:
        ValueError: they are not those of the requests.
    """
    found = []
    at = 0
    for request in requests:
        answer, at = _answer(request, raw, at)
        found.append(answer)
    if at != len(raw):
        raise ValueError("more was answered than asked")
    return found


def _answer(request: FileRequest, raw: bytes, at: int) -> tuple[FileAnswer, int]:
    """An answer that begins at an offset, and the offset behind it."""
    data = bytearray()
    while True:
        if at + 4 > len(raw):
            raise ValueError("an answer is missing")
        (number,) = unpack_from("<i", raw, at)
        at += 4
        if number == _SKIPPED:
            return FileAnswer(None), at
        if request.kind != _RequestKind.READ or number <= 0:
            return FileAnswer(number, bytes(data)), at
        if number > _PIECE_MOST or at + number > len(raw):
            raise ValueError("a piece of a file is too long")
        data += raw[at : at + number]
        at += number + 3 & ~3


def archive() -> bytes:
    """An initial ramdisk with the program as its init."""
    program = files(__package__).joinpath("agent.elf").read_bytes()
    return pack_archive({"init": program})


def pack_archive(programs: Mapping[str, bytes]) -> bytes:
    """An archive of cpio's format `newc` of executable files, and the folders around them.

    Source: Documentation/driver-api/early-userspace/buffer-format.rst.
    """
    folders = {str(each) for name in programs for each in PurePosixPath(name).parents} - {"."}
    entries = [(name, _FOLDER, b"") for name in sorted(folders)]
    entries += [(name, _PROGRAM, data) for name, data in programs.items()]
    out = bytearray()
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        raw = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        out += _filled(_HEAD + b"".join(b"%08X" % field for field in fields) + raw)
        out += _filled(data)
    return bytes(out)


def _filled(raw: bytes) -> bytes:
    """Bytes with zeros behind them up to a whole word."""
    return raw + bytes(-len(raw) % 4)

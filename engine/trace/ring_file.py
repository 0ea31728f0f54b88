"""`FILE.ring`: the rows of a trace to FILE that are not written yet, safe from a kill.

A shared mapping survives its process: whatever was recorded, and how far FILE has got, is in this
file at any moment. Its blocks are allocated when it is created, so that a full disk is an error
there and never a SIGBUS later.

The first page holds a fixed header and two places for a progress record; what comes last is
written to the place that is not in force, and one word then switches over, so that a kill at any
instruction leaves the one or the other. Behind it are the rows, and behind those the description
of the events and states of the output format as JSON (two places each, as with the progress).
"""

import errno
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from engine.errors import CommandError
from engine.trace.rows import EventInfo

MAGIC: Final = b"KPTRING\0"
VERSION: Final = 3
HEADER: Final = struct.Struct("<8sIIQQ")
"""Magic, version, zero; offset and size of the rows."""
TURN: Final = 64
"""Offset of the word that says which of the two progress records is in force."""
RECORD: Final = struct.Struct("<QQQQQQQQQQI")
"""Bytes of FILE; bytes of rows; lost rows; stage; offset, size and CRC-32 of the description, and
of the format's state; CRC-32 of the record."""
PLACES: Final = (128, 256)
"""Offsets of the progress records."""

PAGE: Final = mmap.PAGESIZE
_LEAST_ROOM: Final = PAGE
_PIECE: Final = 1 << 18
"""Bytes of JSON that are made at a time."""


class Progress(Struct, frozen=True):
    """The progress of the output.

    Attributes:
        written: bytes of FILE that are whole: what stands behind is the begin of what comes next.
        consumed: bytes of rows, from the front, whose text is among them.
        lost: rows that could not be written and that FILE does not tell of yet.
        stage: what FILE has: 0 nothing, 1 the format's header, 2 the format's end.
    """

    written: int = 0
    consumed: int = 0
    lost: int = 0
    stage: int = 0


class Blob(Struct, frozen=True):
    """A piece of JSON in the file: where it stands and its CRC-32."""

    offset: int = 0
    size: int = 0
    crc: int = 0


class RingFile:
    """The file behind a trace's rows.

    Attributes:
        path: of the file once it is installed.
        buffer: the mapping, header and rows.
        start: where rows begin in it.
        capacity: bytes of rows.
        progress: what was committed last.
    """

    def __init__(self, path: Path, capacity: int) -> None:
        """Make the file, under another name until it is installed.

        Args:
            path: of the file.
            capacity: bytes of rows, whole pages.

        Raises:
            CommandError: it cannot be made, or the disk has no room for it.
        """
        self.path = path
        self.start = PAGE
        self.capacity = capacity
        self.progress = Progress()
        self._end = PAGE + capacity
        self._fresh = self._name = path.with_name(f"{path.name}.new")
        self._file = _create(self._fresh, path, self._end)
        self.buffer = mmap.mmap(self._file, self._end, mmap.MAP_SHARED)
        self._description, self._state = _Pair(), _Pair()
        self._turn = memoryview(self.buffer)[TURN : TURN + 8].cast("Q")
        self.commit(self.progress)
        self.buffer[: HEADER.size] = HEADER.pack(MAGIC, VERSION, 0, PAGE, capacity)

    def install(self) -> None:
        """Give the file its name; one that has it already, of a trace that was killed, goes.

        Raises:
            CommandError: it cannot be; the one there stays.
        """
        try:
            self._fresh.replace(self.path)
        except OSError as error:
            raise CommandError(f"cannot create {self.path}: {error.strerror}") from error
        self._name = self.path

    def describe(self, description: Mapping[str, Any]) -> None:
        """Store what rows mean, in place of what was stored before.

        Raises:
            CommandError: the disk has no room for it; the one before stays.
        """
        try:
            self._store(self._description, description)
        except OSError as error:
            raise no_room(self.path, error) from error
        self.commit(self.progress)

    def commit(self, progress: Progress, state: object = None) -> None:
        """Tell how far the output has got.

        Args:
            progress: of the output.
            state: what else somebody needs who goes on from there, as plain data: `comms`,
                names of threads by id; `modules`, see `Loaded`; `format`, the output format's.

        Raises:
            OSError: the disk has no room for the state; what was committed before stays.
        """
        if state is not None:
            self._store(self._state, state)
        told, kept = self._description.current, self._state.current
        record = RECORD.pack(
            progress.written,
            progress.consumed,
            progress.lost,
            progress.stage,
            told.offset,
            told.size,
            told.crc,
            kept.offset,
            kept.size,
            kept.crc,
            0,
        )
        crc = zlib.crc32(record[:-4])
        turn = 1 - self._turn[0]
        place = PLACES[turn]
        self.buffer[place : place + len(record)] = record[:-4] + struct.pack("<I", crc)
        self._turn[0] = turn  # one aligned store: the new record is in force
        self.progress = progress

    def close(self) -> None:
        """Remove the file: all that it held is written elsewhere."""
        if self._file < 0:
            return
        self._turn.release()
        self.buffer.close()
        os.close(self._file)
        self._file = -1
        self._name.unlink(missing_ok=True)

    def _store(self, pair: "_Pair", value: object) -> None:
        place = pair.other
        size = crc = 0
        for piece in _json_pieces(value):
            needed = size + len(piece)
            if pair.room[place] < needed:
                self._make_room(pair, place, size, 2 * needed)
            at = pair.at[place] + size
            rest = memoryview(piece)
            while rest:
                done = os.pwrite(self._file, rest, at)
                rest, at = rest[done:], at + done
            crc = zlib.crc32(piece, crc)
            size = needed
        pair.current = Blob(pair.at[place], size, crc)
        pair.other = 1 - place

    def _make_room(self, pair: "_Pair", place: int, kept: int, room: int) -> None:
        """Make a place larger, at the end of the file if it is not there already.

        Args:
            pair: the place's pair.
            place: which of the two.
            kept: bytes at its front that are written.
            room: bytes that it needs.
        """
        room = max(room, _LEAST_ROOM)
        at, had = pair.at[place], pair.room[place]
        last = had > 0 and at + had == self._end
        new = at if last else self._end
        os.posix_fallocate(self._file, new, room)
        for done in range(0, 0 if last else kept, _PIECE):
            data = os.pread(self._file, min(_PIECE, kept - done), at + done)
            os.pwrite(self._file, data, new + done)
        pair.at[place], pair.room[place] = new, room
        self._end = new + room


class _EachEvent:
    """JSON of descriptions of events, made one at a time."""

    def __init__(self, events: Iterable[EventInfo]) -> None:
        self._events = events

    def __iter__(self) -> Iterator[str]:
        dumps = _dumps()
        last: EventInfo | None = None
        rest = ""
        for event in self._events:
            if last is None or not _alike(last, event):
                data = event.to_json()
                for key in _OWN:
                    del data[key]
                rest = dumps(data)[1:]
            last = event
            group, name = dumps(event.group), dumps(event.name)
            yield f'{{"id":{event.id},"group":{group},"name":{name},{rest}'


_OWN: Final = ("id", "group", "name")
"""The first keys of an event's description; events alike differ in these alone."""


def _alike(one: EventInfo, other: EventInfo) -> bool:
    """True if the descriptions of two events differ in `_OWN` alone."""
    return (
        one.columns is other.columns
        and one.returns is other.returns
        and one.symbolic is other.symbolic
        and one.source is other.source
        and one.attached == other.attached
        and one.record is other.record
    )


class _EachSymbol:
    """Texts of addresses, likewise."""

    def __init__(self, symbols: Iterable[tuple[int, str]]) -> None:
        self._symbols = symbols

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self._symbols)


def _dumps() -> Callable[[object], str]:
    import json  # for files alone

    return json.JSONEncoder(separators=(",", ":")).encode


def _json_pieces(value: object) -> Iterator[bytes]:
    """JSON of plain data, in which there may be a million events, and symbols for them."""
    data = bytearray()
    for part in _json_parts(value, _dumps()):
        data += part.encode()
        if len(data) >= _PIECE:
            yield bytes(data)
            data.clear()
    yield bytes(data)


def _json_parts(value: object, dumps: Callable[[object], str]) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield dumps(value)
        return
    begin = "{"
    for key, item in value.items():
        yield f"{begin}{dumps(key)}:"
        begin = ","
        if isinstance(item, _EachEvent):
            yield "["
            for number, text in enumerate(item):
                yield f",{text}" if number else text
            yield "]"
        elif isinstance(item, _EachSymbol):
            yield "{"
            for number, (address, text) in enumerate(item):
                yield f'{"," if number else ""}"{address}":{dumps(text)}'
            yield "}"
        else:
            yield dumps(item)
    yield "}" if begin == "," else "{}"


class _Pair:
    """Two places for one piece of JSON, written in turn."""

    __slots__ = ("at", "current", "other", "room")

    def __init__(self) -> None:
        self.at, self.room = [0, 0], [0, 0]
        self.other = 0
        self.current = Blob()


def describe(
    events: Iterable[EventInfo],
    arch: str,
    output: Mapping[str, Any] | None = None,
    symbols: Iterable[tuple[int, str]] = (),
    returning: Iterable[int] = (),
) -> dict[str, Any]:
    """The meaning of rows, as plain data; events and symbols are made when they are written.

    Args:
        events: the event table.
        arch: name of the guest's architecture.
        output: how they are written: `format`, its name, `options`, and whether `exact`.
        symbols: text of addresses that no file tells.
        returning: addresses of functions whose returns are events, too.
    """
    return {
        "arch": arch,
        "events": _EachEvent(events),
        "output": dict(output or {}),
        "symbols": _EachSymbol(symbols),
        "returning": sorted(returning),
    }


def _create(fresh: Path, path: Path, size: int) -> int:
    """A new file with all its blocks, never one that another process has mapped.

    Args:
        fresh: the name that it gets.
        path: the one that it is to have in the end.
        size: in bytes.

    Raises:
        CommandError: it cannot be made, or could never have that name.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        fresh.unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(fresh, flags, 0o600)
    except OSError as error:
        raise CommandError(f"cannot create {path}: {error.strerror}") from error
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        os.close(file)
        fresh.unlink(missing_ok=True)
        raise no_room(path, error) from error
    return file


def no_room(path: Path, error: OSError) -> CommandError:
    """The error of a disk that cannot hold what is not written yet."""
    what = "no room on the disk" if error.errno == errno.ENOSPC else error.strerror
    return CommandError(f"cannot reserve {path} for undrained events: {what}")

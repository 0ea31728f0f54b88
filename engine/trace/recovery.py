"""Reads what a killed trace left in its `FILE.ring`: rows, their meaning, how far FILE had got."""

import json
import os
import stat
import struct
import zlib
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from engine.errors import CommandError
from engine.trace.program_times import ProgramTimes
from engine.trace.ring_file import HEADER, MAGIC, PLACES, RECORD, TURN, VERSION, Progress
from engine.trace.rows import HEAD, EventInfo, whole

_NONSENSE: Final = (
    *(LookupError, ValueError, TypeError, AttributeError, ArithmeticError),
    *(RecursionError, MemoryError),
)
"""Errors of taking apart JSON that somebody else has written."""
MAX_FILE = 1 << 30
"""A bigger file is none of ours."""


class LoadedFile(Struct, frozen=True):
    """A file of the guest that names addresses.

    Attributes:
        name: guest path.
        host: path of the file on the host.
        bias: what is added to a link address to get a guest address.
        ident: its build id, or a hash of it.
        program: number of the program that it is in.
    """

    name: str
    host: str
    bias: int
    ident: str
    program: int = 0


class Recovered(Struct, frozen=True):
    """The contents of a file.

    Attributes:
        arch: name of the guest's architecture, "" where nothing was recorded yet.
        events: the event table.
        rows: bytes of whole rows that FILE has not taken as a whole.
        count: how many they are.
        damaged: bytes behind them that are no rows although they are not all zero; they were
            left out.
        progress: how far FILE had got; `consumed` bytes of rows are left out already.
        format: name of FILE's output format, "" where it is not known.
        options: its trace options.
        exact: whether it has names and strings byte for byte.
        decodes: whether system calls are in strace's words.
        symbols: text of addresses that no file tells.
        returning: functions whose returns are events, too.
        comms: names of threads.
        pids: processes of threads that are not their first ones.
        files: what the guest had loaded.
        programs: when threads were in which program.
        state: of the output format.
        file_sizes: bytes that are whole of each file of a format that has files of its own.
    """

    arch: str = ""
    events: dict[int, EventInfo] = field(default_factory=dict)
    rows: bytes = b""
    count: int = 0
    damaged: int = 0
    progress: Progress = field(default_factory=Progress)
    format: str = ""
    options: tuple[str, ...] = ()
    exact: bool = False
    decodes: bool = False
    symbols: dict[int, str] = field(default_factory=dict)
    returning: frozenset[int] = frozenset()
    comms: dict[int, str] = field(default_factory=dict)
    pids: dict[int, int] = field(default_factory=dict)
    files: tuple[LoadedFile, ...] = ()
    programs: ProgramTimes = field(default_factory=ProgramTimes)
    state: object = None
    file_sizes: dict[str, int] = field(default_factory=dict)


def recover(path: Path) -> Recovered:
    """Read a file that backed a trace's rows.

    One whose process was killed before it could record anything holds nothing.

    Raises:
        CommandError: it cannot be read, or it is no such file, or it is damaged.
    """
    data = _read(path)
    if not data[: HEADER.size].strip(b"\0"):
        return Recovered()
    if len(data) < max(PLACES) + RECORD.size or not data.startswith(MAGIC):
        raise CommandError(f"{path} holds no events")
    _, version, _, start, size = HEADER.unpack_from(data)
    if version != VERSION:
        raise CommandError(f"{path} was written by another version ({version})")
    (turn,) = struct.unpack_from("<Q", data, TURN)
    if turn not in (0, 1):
        raise CommandError(f"{path}: its record of what is written is damaged")
    record = data[PLACES[turn] : PLACES[turn] + RECORD.size]
    written, consumed, lost, stage, *blobs, crc = RECORD.unpack(record)
    if zlib.crc32(record[:-4]) != crc or consumed > size:
        raise CommandError(f"{path}: its record of what is written is damaged")
    progress = Progress(written, consumed, lost, stage)
    told = _json(path, data, "the description of its events", *blobs[:3])
    kept = _json(path, data, "the state of its output", *blobs[3:])
    if told is None:
        return Recovered(progress=progress)
    try:
        events = {info.id: info for info in map(EventInfo.from_json, told["events"])}
        rows = data[start + consumed : start + size]
        count, end = _whole_rows(rows, events)
        state = kept or {}
        return Recovered(
            str(told["arch"]),
            events,
            rows[:end],
            count,
            len(rows[end:].rstrip(b"\0")),
            progress,
            str(told["output"].get("format", "")),
            tuple(map(str, told["output"].get("options", ()))),
            bool(told["output"].get("exact")),
            bool(told["output"].get("decodes")),
            {int(key): str(text) for key, text in told["symbols"].items()},
            frozenset(map(int, told["returning"])),
            {int(key): str(text) for key, text in state.get("comms", {}).items()},
            {int(key): int(pid) for key, pid in state.get("pids", {}).items()},
            tuple(
                LoadedFile(str(name), str(host), int(bias), str(ident), int(program))
                for name, host, bias, ident, program in state.get("modules", ())
            ),
            ProgramTimes.restored(state.get("programs", {})),
            state.get("format"),
            {str(name): int(size) for name, size in state.get("files", {}).items()},
        )
    except _NONSENSE as error:
        raise CommandError(f"{path}: the description of its events is damaged") from error


def _read(path: Path) -> bytes:
    try:
        # Without O_NONBLOCK a FIFO would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE:
                raise CommandError(f"{path} holds no events")
            return file.read()
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from error


def _json(path: Path, data: bytes, what: str, offset: int, size: int, crc: int) -> Any:
    """A piece of JSON of the file; None where nothing was stored."""
    if not size:
        return None
    text = data[offset : offset + size]
    if len(text) != size or zlib.crc32(text) != crc:
        raise CommandError(f"{path}: {what} is damaged")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: {what} is damaged") from error


def _whole_rows(data: bytes, events: dict[int, EventInfo]) -> tuple[int, int]:
    """The number of rows of known events from the front, and their end."""
    position, count = 0, 0
    while position + HEAD.size <= len(data):
        event_id, words, thread = HEAD.unpack_from(data, position)
        info = events.get(whole(event_id, thread)[0])
        if info is None or not info.accepts(words) or position + words * 8 > len(data):
            break
        position += words * 8
        count += 1
    return count, position

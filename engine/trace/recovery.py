"""Reads the rows out of a `FILE.ring` that a killed process left behind."""

import json
import os
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import CommandError
from engine.trace.rows import HEAD, EventInfo
from engine.trace.staging import HEADER, MAGIC, VERSION

MAX_FILE = 1 << 30
"""A bigger file is none of ours."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a file held.

    Attributes:
        arch: name of the guest's architecture.
        events: the event table.
        symbols: text of addresses.
        comms: names of threads.
        rows: bytes of whole rows.
        count: how many they are.
        damaged: bytes behind them that are no rows although they are not all zero; they were
            left out.
    """

    arch: str
    events: dict[int, EventInfo]
    symbols: dict[int, str]
    comms: dict[int, str]
    rows: bytes
    count: int
    damaged: int


def recover(path: Path) -> Recovered:
    """Read a file that backed a `Staging`.

    Rows that were handed on just before the kill may appear here once more.

    Raises:
        CommandError: it cannot be read, or it is no such file, or its description is damaged.
    """
    try:
        # Without O_NONBLOCK a FIFO would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE:
                raise CommandError(f"{path} holds no events")
            data = file.read()
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from error
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        raise CommandError(f"{path} holds no events")
    _, version, _, start, size, at, length, crc = HEADER.unpack_from(data)
    if version != VERSION:
        raise CommandError(f"{path} was written by another version ({version})")
    description = data[at : at + length]
    if not length or len(description) != length or zlib.crc32(description) != crc:
        raise CommandError(f"{path}: the description of its events is damaged")
    try:
        fields: dict[str, Any] = json.loads(description)
        events = {info.id: info for info in map(EventInfo.from_json, fields["events"])}
        arch = str(fields["arch"])
        symbols = {int(key): str(text) for key, text in fields["symbols"].items()}
        comms = {int(key): str(text) for key, text in fields["comms"].items()}
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CommandError(f"{path}: the description of its events is damaged") from error
    rows = data[start : start + size]
    count, end = _whole_rows(rows, events)
    damaged = len(rows[end:].rstrip(b"\0"))
    return Recovered(arch, events, symbols, comms, rows[:end], count, damaged)


def _whole_rows(data: bytes, events: dict[int, EventInfo]) -> tuple[int, int]:
    """How many rows of known events there are from the front, and where they end."""
    position, count = 0, 0
    while position + HEAD.size <= len(data):
        event_id, words, _ = HEAD.unpack_from(data, position)
        info = events.get(event_id)
        if info is None or not info.accepts(words) or position + words * 8 > len(data):
            break
        position += words * 8
        count += 1
    return count, position

"""Snapshots of a machine in files: all that a run needs to go on identically.

A file has a head (magic, sizes, checksums), the state of processor and devices in MessagePack with
the places of the pages that are not zeros, and these pages. It is written under another name and
moved then, for the user's eyes alone. Whoever reads it believes nothing: what is damaged, of
another format or of another memory is as good as no snapshot.
"""

import os
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import Struct as Layout
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from engine.cpu.unicorn_system import PAGE
from engine.machine.machine import BareMachine

_MAGIC: Final = b"KTUISNAP"
_HEAD: Final = Layout("<8s3I")
"""Magic; size and checksum of the state, checksum of the pages."""
_STATE_MOST: Final = 64 << 20
_NOTHING: Final = bytes(PAGE)


class _KeptState(Struct, frozen=True):
    """The state in front of the pages of a file.

    Attributes:
        memory: bytes of the machine's memory.
        runs: first page and number of pages, ascending.
        state: of the machine.
        notes: of whoever made the snapshot.
    """

    memory: int
    runs: list[tuple[int, int]]
    state: dict[str, Any]
    notes: dict[str, str]


def write_snapshot(path: Path, machine: BareMachine, notes: Mapping[str, str]) -> None:
    """Keep a machine that does not run.

    Args:
        path: of the file, which is made or replaced.
        machine: the machine.
        notes: texts that `read_snapshot` gives.

    Raises:
        OSError: the file cannot be written; nothing is left of it then.
        ValueError: the machine has a state that no snapshot keeps.
    """
    memory = machine.cpu.memory
    runs = list(_runs(memory))
    kept = msgspec.msgpack.encode(_KeptState(len(memory), runs, machine.state(), dict(notes)))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}-{time.monotonic_ns()}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file, memoryview(memory) as view:
            file.write(bytes(_HEAD.size) + kept)
            checksum = 0
            for first, count in runs:
                pages = view[first * PAGE : (first + count) * PAGE]
                checksum = zlib.crc32(pages, checksum)
                file.write(pages)
            file.seek(0)
            file.write(_HEAD.pack(_MAGIC, len(kept), zlib.crc32(kept), checksum))
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read_snapshot(path: Path, machine: BareMachine) -> dict[str, str]:
    """Put a snapshot into a machine that was made alike and has not run.

    Returns:
        The notes that it was made with.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, or of another machine; this one is spoilt then.
    """
    with open(path, "rb") as file:
        kept, checksum = _kept(file)
        memory = machine.cpu.memory
        if kept.memory != len(memory):
            raise ValueError("it is of another memory")
        found, end = 0, 0
        with memoryview(memory) as view:
            for first, count in kept.runs:
                if not end <= first < first + count <= len(memory) // PAGE:
                    raise ValueError("its pages are out of order")
                end = first + count
                pages = view[first * PAGE : end * PAGE]
                if file.readinto(pages) != len(pages):
                    raise ValueError("it ends too early")
                found = zlib.crc32(pages, found)
        if found != checksum or file.read(1):
            raise ValueError("the checksum of its pages is another one")
    machine.restore(kept.state)
    return kept.notes


def _kept(file: BinaryIO) -> tuple[_KeptState, int]:
    """Read up to the first page: what stands in front of the pages, and their checksum."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or not head.startswith(_MAGIC):
        raise ValueError("it is no snapshot")
    _, size, checksum, of_pages = _HEAD.unpack(head)
    if size > _STATE_MOST:
        raise ValueError("its state is too large")
    raw = file.read(size)
    if len(raw) != size or zlib.crc32(raw) != checksum:
        raise ValueError("the checksum of its state is another one")
    try:
        return msgspec.msgpack.decode(raw, type=_KeptState), of_pages
    except msgspec.DecodeError as error:
        raise ValueError(f"its state cannot be read: {error}") from error


def _runs(memory: Any) -> Iterator[tuple[int, int]]:
    """Runs of pages that are not zeros."""
    first = -1
    count = len(memory) // PAGE
    for page in range(count):
        if memory[page * PAGE : (page + 1) * PAGE] != _NOTHING:
            if first < 0:
                first = page
        elif first >= 0:
            yield first, page - first
            first = -1
    if first >= 0:
        yield first, count - first

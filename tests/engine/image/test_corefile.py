"""Core files that somebody else has written: an error of ours, or a core, in little memory."""

import random
import struct
import tracemalloc
from pathlib import Path

import pytest

from engine.errors import ImageError
from engine.image.corefile import (
    NT_AUXV,
    NT_FILE,
    NT_PRPSINFO,
    NT_PRSTATUS,
    PROGRAM,
    STATUS,
    CoreFile,
    open_core,
)

_NUMBERS = (0, 1, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, 1 << 63, (1 << 64) - 1)
_SEGMENT = struct.Struct("<IIQQQQQQ")


def _note(kind: int, desc: bytes) -> bytes:
    head = struct.pack("<III", 5, len(desc), kind) + b"CORE\0\0\0\0"
    return head + desc + bytes(-len(desc) % 4)


def _core() -> bytes:
    """A core with two threads, a mapped file and a page of memory."""
    status = STATUS.pack(11, 0, 0, 11, 0, 0, 1000, 1, 1000, 1000) + bytes(27 * 8 + 8)
    program = PROGRAM.pack(0, b"R", 0, 0, 0, 0, 0, 1000, 1, 1000, 1000, b"guest", b"guest a b")
    files = struct.pack("<QQ", 1, 4096) + struct.pack("<QQQ", 0x400000, 0x401000, 0) + b"/guest\0"
    notes = _note(NT_PRSTATUS, status) + _note(NT_PRPSINFO, program)
    notes += _note(NT_AUXV, struct.pack("<4Q", 9, 0x400000, 0, 0)) + _note(NT_FILE, files)
    notes += _note(NT_PRSTATUS, status)
    at = 64 + 2 * _SEGMENT.size
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, _SEGMENT.size, 2, 0, 0, 0)
    segments = _SEGMENT.pack(4, 0, at, 0, 0, len(notes), 0, 4)
    segments += _SEGMENT.pack(1, 5, at + len(notes), 0x400000, 0, 4096, 4096, 4096)
    return head + segments + notes + bytes(4096)


def _opened(folder: Path, data: bytes) -> CoreFile:
    (folder / "core").write_bytes(data)
    return open_core(str(folder / "core"))


def test_a_core(tmp_path: Path) -> None:
    core = _opened(tmp_path, _core())
    assert (core.pid, core.comm, core.signal, len(core.threads)) == (1000, b"guest", 11, 2)
    assert core.mappings[0].path == "/guest"


@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.slow)])
def test_mutants(tmp_path: Path, count: int) -> None:
    """Sizes and counts in it are claims; none of them is believed."""
    good = _core()
    random.seed(count)
    opened = 0
    tracemalloc.start()
    try:
        for _ in range(count):
            data = bytearray(good)
            for _ in range(random.choice([1, 1, 2, 4])):
                at = random.randrange(len(good) - 4096)
                width = random.choice([1, 2, 4, 8])
                value = random.choice([*_NUMBERS, random.randrange(256)])
                data[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
            if random.random() < 0.2:
                del data[random.randrange(len(data)) :]
            try:
                _opened(tmp_path, bytes(data))
                opened += 1
            except ImageError:
                continue
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert 0 < opened < count

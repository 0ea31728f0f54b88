"""Recordings as files: whole, cut off, damaged, of another kind."""

import contextlib
import io
import struct
from pathlib import Path

import pytest

from engine.history.journal import Entry, EntryCause, Journal
from engine.history.recordfile import (
    MAGIC,
    VERSION,
    RecordedProgram,
    RecordingError,
    RecordWriter,
    checksum,
    read,
)

PROGRAM = RecordedProgram(
    "1", "x86_64", "a", "/a", "/a", "a", (), (), "/", 0, None, "guest", 1, 1 << 30
)


def written(path: Path, entries: int = 40) -> bytes:
    journal = Journal()
    with io.FileIO(path, "w") as file:
        writer = RecordWriter(file, PROGRAM, journal)
        writer.store(("/a", "/b"), b"text" * 1000)
        for number in range(entries):
            writer.grown(journal.add(Entry(number, 0, 1, EntryCause.SYSCALL, [[1, 0, b"x" * 50]])))
            if number % 8 == 7:
                writer.flush()
        writer.reached(entries + 5)
        journal.complete = True
        writer.flush()
        assert writer.failure is None
    return path.read_bytes()


def test_a_whole_one(tmp_path: Path) -> None:
    recorded = read(memoryview(written(tmp_path / "r")), "r")
    assert (recorded.program, recorded.damage) == (PROGRAM, "")
    assert recorded.files == [(("/a", "/b"), b"text" * 1000)]
    assert [entry.clock for entry in recorded.journal] == list(range(40))
    assert recorded.reached == 45


def test_cut_off_anywhere(tmp_path: Path) -> None:
    data = written(tmp_path / "r")
    seen = set()
    for size in range(0, len(data), 7):
        try:
            recorded = read(memoryview(data[:size]), "r")
        except RecordingError:
            continue
        assert "cut off at byte" in recorded.damage
        clocks = [entry.clock for entry in recorded.journal]
        assert clocks == list(range(len(clocks)))
        seen.add(len(clocks))
    assert {8, 16, 24, 32, 40} <= seen


def test_damage_anywhere(tmp_path: Path) -> None:
    data = bytearray(written(tmp_path / "r"))
    for at in range(0, len(data), 5):
        data[at] ^= 0x55
        with contextlib.suppress(RecordingError):
            recorded = read(memoryview(bytes(data)), "r")
            clocks = [entry.clock for entry in recorded.journal]
            assert clocks == list(range(len(clocks)))
            assert recorded.damage or at in range(len(MAGIC) + 2, len(MAGIC) + 6)
        data[at] ^= 0x55


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a recording"),
        (b"\x7fELF" + bytes(100), "not a recording"),
        (struct.pack("<10sHI", MAGIC, VERSION + 1, 0), f"format {VERSION + 1}"),
        (struct.pack("<10sHI", MAGIC, VERSION, 0), "ends before|cut off at byte 16"),
    ],
)
def test_what_is_no_recording(data: bytes, why: str) -> None:
    with pytest.raises(RecordingError, match=why):
        read(memoryview(data), "r")


def test_a_piece_that_would_fill_the_memory(tmp_path: Path) -> None:
    data = written(tmp_path / "r")
    content = b"\0" * 40
    size = 0xFFFFFFFF
    crc = checksum(b"ENTR", len(content), size, 0, content)
    bomb = struct.pack("<4sIIIQ", b"ENTR", len(content), size, crc, 0)
    recorded = read(memoryview(data[: data.rindex(b"ENTR")] + bomb + content), "r")
    assert "a piece of 4294967295 bytes" in recorded.damage


def test_a_full_disk_ends_the_recording_only() -> None:
    with open("/dev/full", "wb", buffering=0) as file:
        writer = RecordWriter(file, PROGRAM, Journal())
        assert writer.failure is not None
        writer.store(("/a",), b"text")

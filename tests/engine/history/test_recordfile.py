"""Recordings as files: whole, cut off, damaged, of another kind."""

import contextlib
import io
import struct
from pathlib import Path

import pytest

from engine.history.hostfiles import HostFact, HostWitness
from engine.history.inputs import HostInputs
from engine.history.journal import Entry, EntryCause, Journal
from engine.history.pieces import checksum
from engine.history.recordbounds import RecordingError
from engine.history.recordedstreams import StreamShape
from engine.history.recordfile import (
    MAGIC,
    VERSION,
    RecordedProgram,
    RecordWriter,
    read,
)
from engine.linux.fs.host import HostQuestion
from engine.linux.fs.stdio import StreamStat

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


def test_what_came_from_the_host(tmp_path: Path) -> None:
    """Answers, inputs and bytes are in the file in front of the entries that came of them."""
    journal, inputs, witness = Journal(), HostInputs(), HostWitness()
    shape = StreamShape(0, 0, StreamStat(0o10600, 0, 0, 0, 0, 0), False)
    with io.FileIO(tmp_path / "r", "w") as file:
        writer = RecordWriter(file, PROGRAM, journal, inputs, witness)
        writer.store(("/lib",), b"library" * 100)
        witness.begin(writer.keep)
        writer.begin([shape, None, shape])
        inputs.now = lambda: (journal.total, 0)
        for number in range(40):
            assert witness.ask(HostQuestion.TARGET, b"/a", b"%d" % number, lambda: b"x") == b"x"
            assert inputs.read(lambda: b"data") == b"data"
            inputs.ready(0, 1, lambda: 1)
            data = b"file %d" % (number // 2)
            witness.facts.append(HostFact(4, b"/f", b"%d" % number, 0, writer.keep(data)))
            writer.grown(journal.add(Entry(number, 0, 1, EntryCause.SYSCALL, [])))
            if number % 8 == 7:
                writer.flush()
        digest = writer.keep(b"library" * 100)  # it is there already
        writer.store(("/again",), b"file 3")
        journal.complete = True
        writer.flush(end=True)
    data = (tmp_path / "r").read_bytes()
    recorded = read(memoryview(data), "r")
    assert recorded.damage == ""
    assert recorded.streams == (shape, None, shape)
    assert len(recorded.facts) == 80
    assert recorded.inputs.calls == [b"data"] * 40
    assert recorded.inputs.reads == list(range(40))
    assert [key[0] for key in recorded.inputs.readiness] == list(range(40))
    assert recorded.files[1] == (("/again",), b"file 3")
    assert digest not in recorded.journal.contents
    assert len(recorded.journal.contents) == 20
    for size in range(0, len(data), 7):
        try:
            cut = read(memoryview(data[:size]), "r")
        except RecordingError:
            continue
        count = len(cut.journal)
        assert len(cut.inputs.calls) >= count
        assert len(cut.facts) >= 2 * count
        for fact in cut.facts:
            if fact.question == 4:
                assert fact.answer in cut.journal.contents


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
        (struct.pack("<10sHI", MAGIC, VERSION + 1, 0), f"format {VERSION + 1}.*newer"),
        (struct.pack("<10sHI", MAGIC, VERSION - 1, 0), f"reads format {VERSION}: record it again"),
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

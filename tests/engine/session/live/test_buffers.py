"""Buffers of several CPUs, read as one."""

import os
import struct
import time
from pathlib import Path

import pytest
from livekit import DATA

from engine.session.live import buffers
from engine.session.live.buffers import LiveBuffers
from engine.session.live.instance import KernelInstance
from engine.session.live.tracefs import Tracefs

OURS = 7


def page(start: int, *records: tuple[int, int], lost: int = 0) -> bytes:
    """A page with records of a number, at distances."""
    body = b"".join(
        struct.pack("<IHHI", distance << 5 | 2, number, 0, 1) for distance, number in records
    )
    flags = 3 << 30 if lost else 0
    behind = struct.pack("<Q", lost) if lost else b""
    return (struct.pack("<QQ", start, len(body) | flags) + body + behind).ljust(4096, b"\0")


def row(at: int, record: bytes) -> bytes:
    return b"%d " % at


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "header_page").write_text((DATA / "header_page.txt").read_text())
    for cpu in (0, 1):
        path = tmp_path / "instances" / "mine" / "per_cpu" / f"cpu{cpu}"
        path.mkdir(parents=True)
        (path / "trace_pipe_raw").write_bytes(b"")
        (path / "stats").write_text("entries: 0\noverrun: 0\ncommit overrun: 0\n")
    return tmp_path


def write(folder: Path, cpu: int, *pages: bytes) -> None:
    path = folder / "instances" / "mine" / "per_cpu" / f"cpu{cpu}"
    (path / "trace_pipe_raw").write_bytes(b"".join(pages))


def opened(folder: Path) -> LiveBuffers:
    return LiveBuffers(KernelInstance(Tracefs(folder), "mine"), {OURS: row})


def test_rows_of_all_cpus_by_time(folder: Path) -> None:
    write(folder, 0, page(100, (0, OURS), (50, OURS)), page(300, (0, OURS)))
    write(folder, 1, page(120, (0, OURS), (100, OURS), (1, 99)))
    found = opened(folder)
    assert found.read(last=True).rows == b"100 120 150 220 300 "
    assert (found.unknown, found.damaged) == (1, 0)
    found.close()


def test_rows_that_others_may_get_in_front_of_wait(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "_IN_FLIGHT", 1000)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: 5000)
    write(folder, 0, page(100, (0, OURS), (3899, OURS), (2, OURS)))
    found = opened(folder)
    assert found.read().rows == b"100 3999 "
    assert found.read(last=True).rows == b"4001 "
    found.close()


def test_a_busy_cpu_keeps_nobody_waiting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "_PAGES", 2)
    write(folder, 0, *(page(at, (0, OURS)) for at in (100, 200, 300, 400)))
    write(folder, 1, page(150, (0, OURS), (100, OURS)))
    found = opened(folder)
    assert found.read().rows == b"100 150 200 "  # 250 may be in front of what has not been read
    assert found.more
    assert found.read().rows == b"250 300 400 "
    found.read()
    assert not found.more
    found.close()


def test_losses_are_told_once(folder: Path) -> None:
    write(folder, 0, page(100, (0, OURS), lost=30))
    stats = folder / "instances" / "mine" / "per_cpu" / "cpu0" / "stats"
    stats.write_text("entries: 0\noverrun: 30\ncommit overrun: 2\ndropped events: 5\n")
    found = opened(folder)
    assert found.read().lost == 30
    assert found.untold() == 7
    found.close()


def test_damage_is_counted(folder: Path) -> None:
    short = struct.pack("<QQ", 1, 8) + struct.pack("<IB", 1, 7) + b"\0\0\0"
    write(folder, 0, short.ljust(4096, b"\0"), struct.pack("<QQ", 1, 1 << 20).ljust(4096, b"\0"))
    found = LiveBuffers(
        KernelInstance(Tracefs(folder), "mine"),
        {OURS: lambda at, record: bytes(struct.unpack_from("<Q", record))},
    )
    assert found.read(last=True).rows == b""
    assert found.damaged >= 2
    found.close()
    assert os.listdir(folder / "instances") == ["mine"]

"""Files of a format's own on a disk that has no room: whole, and what is missing is told."""

import errno
import os
from pathlib import Path

import pytest
from eventkit import INFOS, NAMES, facts
from foreign import output_of, tool, trace_cmd

from engine.session.guest.outputs import OutputTree
from engine.session.tracing.output import TraceOutput
from engine.trace.formats.tracedat import TraceDatFormat

EVENTS = {info.id: info for info in INFOS}


def test_a_full_disk_leaves_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    form = TraceDatFormat(EVENTS, NAMES)
    target = OutputTree("-o", str(path), lambda: form.is_directory, form.owns)
    out = TraceOutput(form, target, None)
    out.begin()
    out.header()
    out.rows(facts(100))
    write = os.pwrite

    def full(fd: int, data: memoryview, at: int) -> int:
        if at < 4096:
            return write(fd, data, at)
        write(fd, data[:100], at)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        out.rows(facts(50, 100))
        assert out.lost == 50
        assert len(trace_cmd(path)) == 100
    out.rows(facts(7, 150))
    out.end()
    out.close()
    assert [line.time for line in trace_cmd(path)] == [*range(100), *range(150, 157)]
    text = output_of(tool("trace-cmd"), "report", "-i", str(path))
    assert text.count("[50 EVENTS DROPPED]") == 1
    assert out.failure is not None
    assert out.failure.errno == errno.ENOSPC


def test_a_directory_of_others_is_refused_and_ones_own_is_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    tree = OutputTree("-o", str(folder), lambda: True, lambda name: name.endswith(".x"))
    assert not folder.exists()
    tree.begin()
    tree.file("a.x").write(b"old")
    tree.close()
    again = OutputTree("-o", str(folder), lambda: True, lambda name: name.endswith(".x"))
    assert (folder / "a.x").read_bytes() == b"old"
    again.begin()
    assert list(folder.iterdir()) == []
    again.close()

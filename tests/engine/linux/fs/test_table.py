"""Descriptors: how many there may be, and what they cost the host."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fskit import Process

from engine.linux.errno import LinuxError
from engine.linux.fs import table
from engine.linux.fs.table import FileTable
from engine.linux.fs.view import View


def _host_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_the_descriptors_of_all_processes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Process()
    monkeypatch.setattr(table, "MOST_IN_ALL", 4)
    zero = guest.open("/dev/zero")
    assert [guest.call("dup", zero) for _ in range(4)] == [1, 2, 3, -errno.ENFILE]
    assert guest.call("dup2", zero, 9) == -errno.ENFILE
    assert guest.call("dup2", zero, 3) == 3
    with pytest.raises(LinuxError, match="ENOMEM"):
        guest.files.copy(lambda: 1024)
    for fd in (1, 2):
        assert guest.call("close", fd) == 0
    other = guest.files.copy(lambda: 1024)
    assert list(other) == [0, 3]
    assert guest.call("dup", zero) == -errno.ENFILE
    other.join().leave()
    assert guest.call("dup", zero) == 1


def test_the_last_thread_that_leaves_closes_all() -> None:
    guest = Process()
    files: FileTable = guest.files.join().join()
    fd = guest.open("/dev/zero")
    files.leave()
    assert files.peek(fd) is not None
    files.leave()
    assert len(files) == 0


def test_a_file_of_the_host_is_opened_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    guest = Process(View.make(cwd=str(tmp_path)), cwd=os.fsencode(tmp_path))
    assert guest.read(guest.open("file"), 9) == b"hello"
    before = _host_descriptors()
    opened = [guest.open("file") for _ in range(50)]
    assert _host_descriptors() == before
    assert {guest.read(fd, 9) for fd in opened} == {b"hello"}
    (tmp_path / "new").write_text("other")
    (tmp_path / "new").rename(tmp_path / "file")
    assert guest.read(guest.open("file"), 9) == b"other"
    assert guest.call("lseek", opened[0], 0, 0) == 0
    assert guest.read(opened[0], 9) == b"hello"


def test_a_host_without_descriptors_is_not_the_guests_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("hello")
    guest = Process(View.make(cwd=str(tmp_path)), cwd=os.fsencode(tmp_path))
    assert guest.call("access", "file", 0) == 0
    real: Callable[..., int] = os.open

    def none_left(path: object, flags: int, *rest: object, **named: object) -> int:
        if path == b"file":
            raise OSError(errno.EMFILE, "none left")
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", none_left)
    assert guest.open("file") == -errno.ENFILE

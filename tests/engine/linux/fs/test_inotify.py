"""Bounds of inotify; what it tells is compared with a kernel in test_differential."""

import errno

import pytest
from fskit import Process

from engine.linux.fs import inotify


def test_instances_run_out_and_come_back() -> None:
    process = Process()
    found = [process.call("inotify_init1", 0) for _ in range(128)]

    assert min(found) >= 0
    assert process.call("inotify_init1", 0) == -errno.EMFILE
    process.call("close", found[0])
    assert process.call("inotify_init1", 0) == found[0]


def test_all_queues_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "_MOST_OF_ALL", 5)
    process = Process()
    process.call("mkdir", "/tmp/d", 0o755)
    queues = [process.call("inotify_init1", 0) for _ in range(2)]
    for queue in queues:
        assert process.call("inotify_add_watch", queue, "/tmp/d", 0x100) == 1
    for number in range(9):
        process.call("mkdir", f"/tmp/d/{number}", 0o755)

    sizes = [len(process.read(queue, 4096)) for queue in queues]

    # Each has one event more than its share: that it lost some.
    assert sizes == [3 * 32 + 16, 2 * 32 + 16]
    assert process.fs.inotify.events == 0


def test_nothing_is_left_of_a_closed_instance() -> None:
    process = Process()
    queue = process.call("inotify_init1", 0)
    process.call("inotify_add_watch", queue, "/tmp", 0x100)
    process.call("mkdir", "/tmp/d", 0o755)
    process.call("close", queue)

    assert (process.fs.inotify.events, process.fs.inotify.instances) == (0, 0)
    assert process.fs.watches.by_inode == {}


def test_after_a_loss_another_one_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "_MOST_EVENTS", 2)
    process = Process()
    process.call("mkdir", "/tmp/d", 0o755)
    queue = process.call("inotify_init1", 0)
    process.call("inotify_add_watch", queue, "/tmp/d", 0x100)
    for turn in range(2):
        for number in range(4):
            process.call("mkdir", f"/tmp/d/{turn}{number}", 0o755)
        assert len(process.read(queue, 4096)) == 2 * 32 + 16

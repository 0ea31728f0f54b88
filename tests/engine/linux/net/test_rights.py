"""Descriptors on their way: kept, dropped, and found when nobody can receive them."""

import errno
import struct

import pytest
from fskit import Process

from engine.linux.net import rights

BUF = 0x200000


def pair(process: Process, kind: int = 1) -> tuple[int, int]:
    assert process.call("socketpair", 1, kind, 0, BUF) == 0
    one, other = struct.unpack("<ii", process.memory.read(BUF, 8))
    return one, other


def send(process: Process, fd: int, *files: int) -> int:
    control = process.put(
        struct.pack("<Qii", 16 + 4 * len(files), 1, 1) + struct.pack(f"<{len(files)}i", *files)
    )
    part = process.put(struct.pack("<QQ", process.put(b"x"), 1))
    size = 16 + 4 * len(files)
    message = process.put(struct.pack("<QI4xQQQQI4x", 0, 0, part, 1, control, size, 0))
    return process.call("sendmsg", fd, message, 0x40)


def test_what_is_dropped_with_a_socket_is_closed() -> None:
    process = Process()
    one, other = pair(process)
    assert process.call("pipe2", BUF, 0o4000) == 0
    reading, writing = struct.unpack("<ii", process.memory.read(BUF, 8))
    send(process, one, writing)
    process.call("close", writing)
    assert process.call("read", reading, BUF, 1) == -errno.EAGAIN
    process.call("close", other)
    assert process.call("read", reading, BUF, 1) == 0
    assert process.net.rights.count == 0


def test_a_circle_of_sockets_is_dropped() -> None:
    process = Process()
    ends = [pair(process) for _ in range(5)]
    for at, (one, other) in enumerate(ends):
        following = ends[(at + 1) % 5]
        assert send(process, one, *following) == 1
        assert send(process, other, *following) == 1
    for one, other in ends:
        process.call("close", one)
        process.call("close", other)
    assert process.net.rights.count == 20
    one, other = pair(process)
    process.call("close", one)  # now somebody looks
    process.call("close", other)
    assert process.net.rights.count == 0
    assert not process.net.sockets
    assert process.net.buffered == 0


def test_a_socket_that_somebody_can_receive_is_kept() -> None:
    process = Process()
    one, other = pair(process)
    inner, beside = pair(process)
    send(process, one, inner)
    send(process, beside, inner)
    for fd in (inner, beside):
        process.call("close", fd)
    assert process.net.rights.count == 2
    process.net.rights.collect()
    assert process.net.rights.count == 2
    process.call("close", other)
    assert process.net.rights.count == 0


def test_sockets_in_sockets_to_any_depth() -> None:
    process = Process()
    process.limits["nofile"] = 4096
    inner, other = pair(process)
    process.call("close", other)
    for _ in range(400):
        one, other = pair(process)
        assert send(process, one, inner) == 1
        process.call("close", one)
        process.call("close", inner)
        inner = other
    assert process.net.rights.count == 400
    process.call("close", inner)
    assert process.net.rights.count == 0
    assert not process.net.sockets


def test_files_on_their_way_are_limited() -> None:
    process = Process()
    process.limits["nofile"] = 100
    one, _ = pair(process)
    results = [send(process, one, *[one] * 50) for _ in range(4)]
    assert results == [1, 1, 1, -errno.ETOOMANYREFS]


def test_a_socket_that_is_open_is_kept_with_what_is_sent_to_it() -> None:
    """It waits in its own queue: open it is found, closed nobody can receive it."""
    process = Process()
    one, other = pair(process)
    assert send(process, one, other) == 1
    process.net.rights.collect()
    assert process.net.rights.count == 1
    assert process.call("read", other, BUF, 1) == 1
    assert process.net.rights.count == 0
    assert send(process, one, other) == 1
    process.call("close", one)
    process.call("close", other)
    process.net.rights.collect()
    assert (process.net.rights.count, list(process.net.sockets)) == (0, [])


def test_all_processes_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "_MOST", 70)
    process = Process()
    process.limits["nofile"] = 4096
    one, _ = pair(process)
    results = [send(process, one, *[one] * 50) for _ in range(3)]
    assert results == [1, 1, -errno.ETOOMANYREFS]

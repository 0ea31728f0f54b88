"""Reading, writing, descriptors, pipes, sockets, polling and the standard streams."""

import contextlib
import errno
import os
import pty
import struct
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from fskit import SIZE, Process

from engine.linux.fs.stdio import FeedStream, HostIO, HostStream, SinkStream, restore_terminals
from engine.linux.fs.view import View
from engine.linux.wait import Wait

BUF = SIZE // 2
O_NONBLOCK = 0o4000
IN, OUT, ERR, HUP = 1, 4, 8, 0x10


@pytest.fixture
def process() -> Process:
    return Process()


def make_pipe(process: Process, flags: int = 0) -> tuple[int, int]:
    assert process.call("pipe2", BUF, flags) == 0
    return struct.unpack("<ii", process.memory.read(BUF, 8))


def make_sockets(process: Process, kind: int = 1) -> tuple[int, int]:
    assert process.call("socketpair", 1, kind, 0, BUF) == 0
    return struct.unpack("<ii", process.memory.read(BUF, 8))


def test_pipe_blocks_delivers_and_ends(process: Process) -> None:
    reader, writer = make_pipe(process)
    waiting = process.start("read", reader, BUF, 100)
    assert isinstance(waiting, Wait)
    assert waiting.poll() is None
    assert process.write(writer, b"hello") == 5
    assert waiting.poll() == 5
    assert process.memory.read(BUF, 5) == b"hello"
    process.call("close", writer)
    assert process.read(reader, 10) == b""


def test_full_pipe_takes_the_rest_later(process: Process) -> None:
    reader, writer = make_pipe(process)
    address = process.put(bytes(range(256)) * 400)
    waiting = process.start("write", writer, address, 102_400)
    assert isinstance(waiting, Wait)
    got = b""
    while len(got) < 102_400:
        got += process.read(reader, 7000)
        result = waiting.poll()
        if result is not None:
            assert result == 102_400
            break
    got += process.read(reader, 70_000)
    assert got == bytes(range(256)) * 400


def test_nonblocking_pipe(process: Process) -> None:
    reader, writer = make_pipe(process, O_NONBLOCK)
    assert process.call("read", reader, BUF, 1) == -errno.EAGAIN
    address = process.put(bytes(100_000))
    assert process.call("write", writer, address, 100_000) == 65_536
    assert process.call("write", writer, address, 1) == -errno.EAGAIN
    assert process.call("fcntl", writer, 1032, 0) == 65_536
    assert process.call("fcntl", writer, 1031, 1 << 17) == 1 << 17


def test_broken_pipe_signals(process: Process) -> None:
    reader, writer = make_pipe(process)
    process.call("close", reader)
    assert process.write(writer, b"x") == -errno.EPIPE
    assert process.signals == [13]


def test_bad_pointers_cost_no_data(process: Process) -> None:
    reader, writer = make_pipe(process)
    process.write(writer, b"abc")
    assert process.call("read", reader, 0, 10) == -errno.EFAULT
    assert process.call("read", reader, SIZE - 2, 10) == 2
    assert process.memory.read(SIZE - 2, 2) == b"ab"
    assert process.call("write", writer, 8, 4) == -errno.EFAULT
    assert process.call("write", writer, BUF, 1 << 63) == -errno.EFAULT
    fd = process.open("/tmp/f", os.O_RDWR | os.O_CREAT)
    assert process.write(fd, b"0123456789") == 10
    process.call("lseek", fd, 0, 0)
    assert process.call("read", fd, SIZE - 4, (1 << 31) - 1) == 4
    assert process.call("lseek", fd, 0, 1) == 4


def test_vectors(process: Process) -> None:
    fd = process.open("/tmp/f", os.O_RDWR | os.O_CREAT)
    one, two = process.put(b"hello "), process.put(b"world\n")
    iov = process.put(struct.pack("<QQQQ", one, 6, two, 6))
    assert process.call("writev", fd, iov, 2) == 12
    assert process.cat("/tmp/f") == b"hello world\n"
    iov = process.put(struct.pack("<QQQQ", BUF, 4, BUF + 100, 100))
    assert process.call("preadv", fd, iov, 2, 2, 0) == 10
    assert process.memory.read(BUF, 4) == b"llo "
    assert process.memory.read(BUF + 100, 6) == b"world\n"
    assert process.call("writev", fd, iov, 2000) == -errno.EINVAL


def test_descriptors(process: Process) -> None:
    fd = process.open("/tmp/f", os.O_RDWR | os.O_CREAT)
    assert process.call("dup2", fd, 9) == 9
    process.write(9, b"shared offset")
    assert process.call("lseek", fd, 0, 1) == 13
    assert process.call("fcntl", 9, 2, 1) == 0
    assert process.call("fcntl", 9, 1, 0) == 1
    assert process.call("fcntl", fd, 1, 0) == 0
    assert process.call("fcntl", fd, 0, 20) == 20
    assert process.call("fcntl", fd, 3, 0) & 3 == os.O_RDWR
    assert process.call("fcntl", fd, 4, 0o2000) == 0
    process.call("lseek", fd, 0, 0)
    process.write(fd, b"!")
    assert process.cat("/tmp/f") == b"shared offset!"
    assert process.call("dup3", fd, fd, 0) == -errno.EINVAL
    assert process.call("dup2", 77, 5) == -errno.EBADF
    assert list(process.files) == [fd, 9, 20]
    assert process.call("close_range", 0, 0xFFFFFFFF, 0) == 0
    assert list(process.files) == []


@pytest.mark.parametrize(("arch", "directory"), [("x86_64", 0o200000), ("aarch64", 0o40000)])
def test_flags_of_the_architecture(arch: str, directory: int) -> None:
    process = Process(arch=arch)
    fd = process.open("/tmp/f", os.O_RDWR | os.O_CREAT)
    assert process.call("fcntl", fd, 3, 0) & directory == 0
    assert process.open("/tmp/f", directory) == -errno.ENOTDIR
    assert process.open("/tmp", directory) >= 0
    assert process.call("fstat", fd, BUF) == 0
    size_at = 48
    assert process.write(fd, b"12345") == 5
    process.call("fstat", fd, BUF)
    assert process.memory.read(BUF + size_at, 8) == (5).to_bytes(8, "little")


@pytest.mark.parametrize("kind", [1, 2, 5])
def test_socket_pairs(process: Process, kind: int) -> None:
    one, two = make_sockets(process, kind)
    process.write(one, b"ping")
    process.write(one, b"pong")
    assert process.read(two, 16) == (b"pingpong" if kind == 1 else b"ping")
    assert process.call("shutdown", one, 1) == 0
    if kind == 5:
        assert process.read(two, 16) == b"pong"
    if kind != 2:
        assert process.read(two, 16) == b""
        assert process.write(one, b"x") == -errno.EPIPE
        process.write(two, b"back")
        assert process.read(one, 16) == b"back"
    process.call("close", two)
    if kind == 1:
        assert process.read(one, 1) == b""


def test_descriptors_travel(process: Process) -> None:
    one, two = make_sockets(process)
    fd = process.open("/tmp/f", os.O_RDWR | os.O_CREAT)
    process.write(fd, b"content")
    data = process.put(b"x")
    iov = process.put(struct.pack("<QQ", data, 1))
    control = process.put(struct.pack("<QiiI4x", 20, 1, 1, fd))
    message = process.put(struct.pack("<QI4xQQQQI4x", 0, 0, iov, 1, control, 24, 0))
    assert process.call("sendmsg", one, message, 0) == 1
    process.call("close", fd)
    process.memory.write(control, bytes(24))
    message = process.put(struct.pack("<QI4xQQQQI4x", 0, 0, iov, 1, control, 24, 0))
    assert process.call("recvmsg", two, message, 0) == 1
    length, level, kind, received = struct.unpack("<QiiI4x", process.memory.read(control, 24))
    assert (length, level, kind) == (20, 1, 1)
    process.call("lseek", received, 0, 0)
    assert process.read(received, 10) == b"content"


def test_a_family_that_there_is_not_is_told(process: Process) -> None:
    assert process.call("socket", 40, 1, 0) == -errno.EAFNOSUPPORT
    assert process.reports == ["sockets of address family 40"]
    fd = process.call("socket", 1, 1, 0)
    address = process.put(struct.pack("<H", 1) + b"/tmp/none\0")
    assert process.call("connect", fd, address, 12) == -errno.ENOENT
    size = process.put((4).to_bytes(4, "little"))
    assert process.call("getsockopt", fd, 1, 3, BUF, size) == 0
    assert process.memory.read(BUF, 4) == (1).to_bytes(4, "little")
    assert process.call("listen", 99, 1) == -errno.EBADF


def poll_fds(process: Process, timeout: int, *fds: tuple[int, int]) -> tuple[object, list[int]]:
    address = process.put(b"".join(struct.pack("<ihh", fd, events, 0) for fd, events in fds))
    result = process.start("poll", address, len(fds), timeout)
    raw = bytes(process.memory.read(address, 8 * len(fds)))
    return result, [events for _, _, events in struct.iter_unpack("<ihH", raw)]


def test_poll(process: Process) -> None:
    reader, writer = make_pipe(process)
    assert poll_fds(process, 0, (reader, IN), (writer, OUT)) == (1, [0, OUT])
    assert poll_fds(process, 0, (reader, IN)) == (0, [0])
    waiting, _ = poll_fds(process, 100, (reader, IN), (-1, IN), (99, IN))
    assert waiting == 1
    waiting, _ = poll_fds(process, 100, (reader, IN))
    assert isinstance(waiting, Wait)
    assert waiting.deadline is not None
    assert waiting.poll() is None
    process.write(writer, b"x")
    assert waiting.poll() == 1
    process.call("close", writer)
    assert poll_fds(process, 0, (reader, IN)) == (1, [IN | HUP])


def test_select(process: Process) -> None:
    reader, writer = make_pipe(process)
    process.write(writer, b"x")
    sets = process.put(struct.pack("<QQ", 1 << reader, 1 << writer))
    timeout = process.put(struct.pack("<qq", 0, 0))
    assert process.call("select", writer + 1, sets, sets + 8, 0, timeout) == 2
    process.read(reader, 1)
    process.memory.write(sets, struct.pack("<QQ", 1 << reader, 0))
    assert process.call("select", writer + 1, sets, 0, 0, timeout) == 0
    assert process.memory.read(sets, 8) == bytes(8)
    process.memory.write(sets, struct.pack("<Q", 1 << 60))
    assert process.call("select", 61, sets, 0, 0, timeout) == -errno.EBADF


def epoll_events(process: Process, epoll: int) -> list[tuple[int, int]]:
    count = process.call("epoll_wait", epoll, BUF, 8, 0)
    raw = bytes(process.memory.read(BUF, 12 * count))
    return list(struct.iter_unpack("<IQ", raw))


def test_epoll_level_edge_oneshot(process: Process) -> None:
    reader, writer = make_pipe(process)
    epoll = process.call("epoll_create1", 0)

    def control(operation: int, events: int) -> int:
        return process.call(
            "epoll_ctl", epoll, operation, reader, process.put(struct.pack("<IQ", events, 7))
        )

    assert control(1, IN) == 0
    assert control(1, IN) == -errno.EEXIST
    assert epoll_events(process, epoll) == []
    process.write(writer, b"x")
    assert epoll_events(process, epoll) == [(IN, 7)]
    assert epoll_events(process, epoll) == [(IN, 7)]
    assert control(3, IN | 1 << 31) == 0
    assert epoll_events(process, epoll) == [(IN, 7)]
    assert epoll_events(process, epoll) == []
    process.write(writer, b"y")
    assert epoll_events(process, epoll) == [(IN, 7)]
    assert control(3, IN | 1 << 30) == 0
    assert epoll_events(process, epoll) == [(IN, 7)]
    assert epoll_events(process, epoll) == []
    assert control(3, IN | 1 << 30) == 0
    assert epoll_events(process, epoll) == [(IN, 7)]
    assert control(2, 0) == 0
    assert control(2, 0) == -errno.ENOENT
    regular = process.open("/tmp/f", os.O_CREAT | os.O_RDWR)
    event = process.put(struct.pack("<IQ", IN, 1))
    assert process.call("epoll_ctl", epoll, 1, regular, event) == -errno.EPERM
    assert process.call("epoll_ctl", epoll, 1, epoll, event) == -errno.EINVAL
    other = process.call("epoll_create1", 0)
    assert process.call("epoll_ctl", epoll, 1, other, event) == 0
    assert process.call("epoll_ctl", other, 1, epoll, event) == -errno.ELOOP


def test_eventfd_and_timerfd(process: Process) -> None:
    event = process.call("eventfd2", 3, 0)
    process.write(event, (4).to_bytes(8, "little"))
    assert process.read(event, 8) == (7).to_bytes(8, "little")
    assert isinstance(process.start("read", event, BUF, 8), Wait)
    timer = process.call("timerfd_create", 1, 0)
    value = process.put(struct.pack("<4q", 0, 500, 0, 1000))
    assert process.call("timerfd_settime", timer, 0, value, 0) == 0
    waiting = process.start("read", timer, BUF, 8)
    assert isinstance(waiting, Wait)
    assert waiting.due is not None
    assert waiting.due() == process.clock.now + 1000
    process.clock.now += 2100
    assert waiting.poll() == 8
    assert process.memory.read(BUF, 8) == (3).to_bytes(8, "little")
    epoll = process.call("epoll_create1", 0)
    process.call("epoll_ctl", epoll, 1, timer, process.put(struct.pack("<IQ", IN, 5)))
    waiting = process.start("epoll_wait", epoll, BUF, 1, -1)
    assert isinstance(waiting, Wait)
    assert waiting.due is not None
    assert waiting.due() == process.clock.now + 400
    process.clock.now += 400
    assert waiting.poll() == 1


def test_fifo_waits_for_the_other_side(process: Process) -> None:
    assert process.call("mknod", "/tmp/fifo", 0o010644, 0) == 0
    assert process.open("/tmp/fifo", os.O_WRONLY | O_NONBLOCK) == -errno.ENXIO
    waiting = process.start("open", "/tmp/fifo", os.O_RDONLY, 0)
    assert isinstance(waiting, Wait)
    assert waiting.poll() is None
    writer = process.open("/tmp/fifo", os.O_WRONLY)
    reader = waiting.poll()
    assert reader is not None
    process.write(writer, b"through")
    assert process.read(reader, 10) == b"through"
    process.call("close", writer)
    assert process.read(reader, 10) == b""


def test_memfd_seals(process: Process) -> None:
    fd = process.call("memfd_create", "name", 2)
    assert process.write(fd, b"12345") == 5
    assert process.call("fcntl", fd, 1033, 2 | 4 | 8) == 0
    assert process.call("fcntl", fd, 1034, 0) == 14
    assert process.call("ftruncate", fd, 1) == -errno.EPERM
    assert process.write(fd, b"x") == -errno.EPERM
    assert process.call("readlink", f"/proc/self/fd/{fd}", BUF, 100) > 0
    assert bytes(process.memory.read(BUF, 12)) == b"/memfd:name "


def test_unnamed_file_gets_a_name(process: Process) -> None:
    fd = process.open("/tmp", 0o20200000 | os.O_RDWR)
    assert process.write(fd, b"data") == 4
    assert process.call("linkat", -100, f"/proc/self/fd/{fd}", -100, "/tmp/named", 0x400) == 0
    assert process.cat("/tmp/named") == b"data"


def test_copies(process: Process) -> None:
    source = process.open("/tmp/from", os.O_RDWR | os.O_CREAT)
    process.write(source, b"0123456789" * 20_000)
    process.call("lseek", source, 0, 0)
    target = process.open("/tmp/to", os.O_RDWR | os.O_CREAT)
    assert process.call("copy_file_range", source, 0, target, 0, 100_000, 0) == 100_000
    assert process.call("sendfile", target, source, 0, 1 << 30) == 100_000
    assert process.cat("/tmp/to") == process.cat("/tmp/from")
    reader, writer = make_pipe(process)
    offset = process.put((5).to_bytes(8, "little"))
    assert process.call("sendfile", writer, source, offset, 3) == 3
    assert process.read(reader, 10) == b"567"
    assert process.memory.read(offset, 8) == (8).to_bytes(8, "little")
    process.write(writer, b"piped")
    process.call("lseek", target, 0, 0)
    assert process.call("splice", reader, 0, target, 0, 99, 0) == 5
    assert process.call("splice", source, 0, target, 0, 1, 0) == -errno.EINVAL
    assert process.cat("/tmp/to")[:6] == b"piped5"


def test_mapping_sources(process: Process) -> None:
    fd = process.open("/tmp/f", os.O_RDWR | os.O_CREAT)
    process.write(fd, b"before")
    source = process.files.get(fd).mmap_source()
    assert not source.can_map
    assert source.write is not None
    process.call("close", fd)
    source.write(0, b"BE")
    assert process.cat("/tmp/f") == b"BEfore"
    assert source.read(0, 100) == b"BEfore"
    libc = process.open("/etc/ld.so.cache")
    if libc >= 0:
        source = process.files.get(libc).mmap_source()
        assert source.can_map
        assert source.host_fd is not None
        process.call("close", libc)
        assert os.pread(source.host_fd, 4, 0) == source.read(0, 4)


def test_a_file_that_has_changed_is_not_mapped_from_the_host(tmp_path: Path) -> None:
    tmp_path.joinpath("file").write_bytes(b"before")
    process = Process(View(cwd=bytes(tmp_path)), cwd=bytes(tmp_path), uid=os.getuid())
    fd = process.open("file", os.O_RDWR)
    source = process.files.get(fd).mmap_source()
    assert source.can_map
    process.write(fd, b"BE")
    assert not source.can_map
    assert source.read(0, 100) == b"BEfore"


@contextlib.contextmanager
def host_pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for fd in ends:
            with contextlib.suppress(OSError):
                os.close(fd)


def test_host_streams_never_block() -> None:
    with host_pipe() as (reader, writer), host_pipe() as (sink, out):
        process = Process(stdio=(HostStream(reader, HostIO(), 0), HostStream(out, HostIO(), 1)))
        waiting = process.start("read", 0, BUF, 10)
        assert isinstance(waiting, Wait)
        assert waiting.host_fds == ((reader, IN),)
        os.write(writer, b"input")
        assert waiting.poll() == 5
        address = process.put(bytes(300_000))
        waiting = process.start("write", 1, address, 300_000)
        assert isinstance(waiting, Wait)
        taken = 0
        result = None
        while result is None:
            taken += len(os.read(sink, 1 << 16))
            result = waiting.poll()
        assert result == 300_000
        os.close(sink)
        assert process.write(1, b"x") == -errno.EPIPE
        assert process.signals == [13]
        os.close(writer)
        assert process.read(0, 10) == b""


def test_copies_to_a_stream_are_left_to_read_and_write(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        process = Process(stdio=(HostStream(out.fileno(), HostIO(), 1),))
        process.write(0, b"before ")
        source = process.open("/tmp/f", os.O_RDWR | os.O_CREAT)
        process.write(source, b"after")
        process.call("lseek", source, 0, 0)
        assert process.call("copy_file_range", source, 0, 0, 0, 5, 0) == -errno.EXDEV
        assert process.call("sendfile", 0, source, 0, 5) == 5
    assert (tmp_path / "out").read_bytes() == b"before after"


def test_pluggable_streams_and_dev_names() -> None:
    out: list[bytes] = []
    process = Process(stdio=(FeedStream(b"line\n", ended=True), SinkStream(out.append)))
    assert process.read(0, 100) == b"line\n"
    assert process.read(0, 100) == b""
    fd = process.open("/dev/stdout", os.O_WRONLY)
    process.write(fd, b"to stdout")
    assert out == [b"to stdout"]
    assert process.call("ioctl", 1, 0x5401, BUF) == -errno.ENOTTY


def test_terminal_settings_are_put_back() -> None:
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        process = Process(stdio=(HostStream(slave, HostIO(), 2),))
        assert process.call("ioctl", 0, 0x5401, BUF) == 0
        raw = bytearray(process.memory.read(BUF, 36))
        raw[12] &= ~0x0A & 0xFF
        process.memory.write(BUF, bytes(raw))
        assert process.call("ioctl", 0, 0x5402, BUF) == 0
        assert termios.tcgetattr(slave)[3] != before[3]
        assert process.call("ioctl", 0, 0x5413, BUF) == 0
        assert process.open("/dev/tty", os.O_RDWR) >= 0
        restore_terminals()
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)

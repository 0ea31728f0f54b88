"""Standard streams of a recorded guest: what they were, and where they lead now."""

import os
import select
import stat
import termios

import pytest

from engine.history.recordedstreams import RecordedStreams, StreamShape, shape_of
from engine.linux.fs.stdio import HostIO, HostStream, StreamStat
from engine.session.guest.terminal import CapturedStreams, GuestTerminal


def _shape(kind: int, content: bytes = b"", place: int = -1) -> StreamShape:
    found = StreamStat(kind | 0o600, 0, 10 if kind == stat.S_IFREG else 0, 0, 0, 0)
    return StreamShape(0, 0, found, False, place, content=content)


def test_a_pipe_has_what_was_still_read_of_it() -> None:
    front = CapturedStreams()
    shapes = [_shape(stat.S_IFIFO), _shape(stat.S_IFIFO), None]
    streams = RecordedStreams(shapes, {}, front.streams())
    streams.go_live(b"rest of it", {})
    assert streams.poll(0, select.POLLIN) == select.POLLIN
    assert streams.read(0, 4) == b"rest"
    assert streams.unread == b" of it"
    assert streams.read(0, 99) == b" of it"
    assert streams.poll(0, select.POLLIN) == select.POLLHUP
    assert streams.read(0, 1) == b""
    assert streams.write(1, b"out") == 3
    assert front.output == b"out"
    with pytest.raises(OSError, match="Illegal seek"):
        streams.seek(0, 0, os.SEEK_CUR)
    with pytest.raises(OSError, match="Bad file descriptor"):
        streams.stat(2)
    front.close()


def test_a_file_is_read_from_where_the_guest_stands() -> None:
    front = CapturedStreams()
    shapes = [_shape(stat.S_IFREG, b"key", 2), _shape(stat.S_IFREG, place=0), None]
    streams = RecordedStreams(shapes, {b"key": b"0123456789"}, front.streams())
    assert streams.read(0, 3) == b"234"
    assert streams.seek(0, -2, os.SEEK_END) == 8
    assert streams.read(0, 9) == b"89"
    streams.go_live(b"", {1: 25})
    assert streams.stat(1).size == 25
    assert streams.seek(1, 0, os.SEEK_CUR) == 25
    streams.write(1, b"xy")
    assert streams.stat(1).size == 27
    front.close()


def test_a_terminal_is_the_front_ends() -> None:
    terminal = GuestTerminal(100, 30)
    front = terminal.streams()
    shape = shape_of(front[0], lambda data: b"", 0)
    assert shape is not None
    assert shape.terminal
    streams = RecordedStreams([shape] * 3, {}, front)
    assert streams.ioctl(0, termios.TIOCGWINSZ, bytes(8))[:4] == b"\x1e\0\x64\0"
    assert not streams.poll(0, select.POLLIN)
    asked: list[dict[int, int]] = []

    def wait(wanted: object, timeout: float | None) -> bool:
        assert isinstance(wanted, dict)
        asked.append(wanted)
        return False

    assert not streams.waiting(wait)({0: select.POLLIN}, None)
    assert asked == [{front[0].fd: select.POLLIN}]
    terminal.write(b"typed\n")
    assert streams.read(0, 99) == b"typed\n"
    terminal.close()


def test_a_terminal_that_the_front_end_has_none_for() -> None:
    terminal, front = GuestTerminal(), CapturedStreams()
    shape = shape_of(terminal.streams()[0], lambda data: b"", 0)
    assert shape is not None
    streams = RecordedStreams([shape] * 3, {}, front.streams())
    settings = streams.ioctl(0, termios.TCGETS, bytes(36))
    assert len(settings) == 36
    other = bytes(36)
    streams.ioctl(0, termios.TCSETS, other)
    assert streams.ioctl(0, termios.TCGETS, bytes(36)) == other
    assert streams.read(0, 1) == b""
    terminal.close()
    front.close()


def test_what_a_stream_is_is_seen_before_the_guest_begins() -> None:
    descriptor = os.memfd_create("input")
    os.write(descriptor, b"some text")
    os.lseek(descriptor, 5, os.SEEK_SET)
    kept: dict[bytes, bytes] = {}
    shape = shape_of(
        HostStream(descriptor, HostIO(), os.O_RDONLY),
        lambda data: kept.setdefault(data, b"key"),
        100,
    )
    assert shape is not None
    assert (shape.place, shape.content, kept) == (5, b"key", {b"some text": b"key"})
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == 5
    assert shape_of(None, lambda data: b"", 0) is None
    os.close(descriptor)

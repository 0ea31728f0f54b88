"""Streams of the same kind as our own."""

import os
import stat
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.session.live.standins import standin_streams


@contextmanager
def output(number: int, descriptor: int) -> Iterator[None]:
    """Our own stream is something else for a while."""
    kept = os.dup(number)
    os.dup2(descriptor, number)
    os.close(descriptor)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def test_a_file_that_is_given_can_be_read_and_moved_in(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"")
    with (
        output(0, os.open(tmp_path / "in", os.O_RDONLY)),
        standin_streams(b"some input") as streams,
    ):
        file = streams.descriptors[0]
        assert os.read(file, 4) == b"some"
        os.lseek(file, 0, os.SEEK_SET)
        assert os.read(file, 100) == b"some input"


def test_what_came_by_a_pipe_or_was_typed_comes_by_a_pipe() -> None:
    given = b"line\n" * 40_000  # more than a pipe holds
    terminal = os.openpty()
    for descriptor in (os.pipe()[0], terminal[1]):
        with (
            output(0, descriptor),
            standin_streams(given) as streams,
            open(os.dup(streams.descriptors[0]), "rb") as file,
        ):
            assert file.read() == given
            assert not file.seekable()
    with output(0, os.open(os.devnull, os.O_RDONLY)), standin_streams(b"") as streams:
        assert os.path.samestat(os.fstat(streams.descriptors[0]), os.stat(os.devnull))


def test_a_terminal_has_the_size_of_our_own() -> None:
    reading, writing = os.openpty()
    termios.tcsetwinsize(writing, (33, 101))
    with output(1, writing), standin_streams(b"") as streams:
        assert termios.tcgetwinsize(streams.descriptors[1]) == (33, 101)
    os.close(reading)


@pytest.mark.parametrize("kind", ["file", "pipe", "terminal", "null"])
def test_what_is_written_comes_back(kind: str, tmp_path: Path) -> None:
    others: list[int] = []
    if kind == "file":
        descriptor = os.open(tmp_path / "out", os.O_CREAT | os.O_WRONLY)
    elif kind == "pipe":
        reading, descriptor = os.pipe()
        others = [reading]
    elif kind == "terminal":
        reading, descriptor = os.openpty()
        others = [reading]
    else:
        descriptor = os.open(os.devnull, os.O_WRONLY)
    with output(1, descriptor), standin_streams(b"") as streams:
        stream = streams.descriptors[1]
        assert os.isatty(stream) == (kind == "terminal")
        assert stat.S_ISREG(os.fstat(stream).st_mode) == (kind == "file")
        os.write(stream, b"line\n" * 1000)
        found = streams.written(1)
    assert found == (None if kind == "null" else b"line\n" * 1000)
    for each in others:
        os.close(each)

"""What is typed at a machine's console: files, pipes, and a terminal's keys."""

import os
from pathlib import Path

from engine.machine.console import ConsoleDescriptor


def test_a_file_is_given_at_once_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "typed"
    path.write_bytes(b"x" * 1500)
    with path.open("rb") as file:
        given = ConsoleDescriptor(file.fileno())
        assert [len(given.take(10**12)) for _ in range(3)] == [1024, 476, 0]
        assert given.over


def test_a_pipe_is_waited_for_until_its_end() -> None:
    reading, writing = os.pipe()
    given = ConsoleDescriptor(reading)
    assert given.take(1_000_000) == b""
    assert not given.over
    os.write(writing, b"ls\n")
    assert given.take(10**12) == b"ls\n"
    os.close(writing)
    assert given.take(10**12) == b""
    assert given.over
    os.close(reading)


def test_a_descriptor_that_cannot_be_read_is_at_its_end() -> None:
    closed = os.open(os.devnull, os.O_PATH)
    given = ConsoleDescriptor(closed)
    assert given.take(10**12) == b""
    assert given.over
    os.close(closed)


def test_control_a_x_leaves_and_control_a_twice_is_one() -> None:
    reading, writing = os.pipe()
    left: list[bool] = []
    given = ConsoleDescriptor(reading, lambda: left.append(True))
    os.write(writing, b"a\x01\x01b\x01")
    assert given.take(10**12) == b"a\x01b"
    assert not left
    os.write(writing, b"xmore")
    assert given.take(10**12) == b""
    assert left == [True]
    os.close(reading)
    os.close(writing)

"""The terminal of a guest in an editor: what goes through it, and what has no room."""

import os
from collections.abc import Iterator

import pytest

from engine.errors import CommandError
from engine.session.serve.dap.streams import ConsoleStreams, OutputEvents


@pytest.fixture
def output() -> Iterator[OutputEvents]:
    found = OutputEvents(lambda category, text: None)
    yield found
    found.close()


@pytest.fixture
def streams(output: OutputEvents) -> Iterator[ConsoleStreams]:
    found = ConsoleStreams(output)
    yield found
    found.close()


def test_the_longest_line_is_typed_and_a_longer_one_refused(streams: ConsoleStreams) -> None:
    (typed, _, _) = streams.streams()
    line = b"x" * 4095 + b"\n"
    streams.write(line)
    assert os.read(typed.fd, 9000) == line
    with pytest.raises(CommandError, match="a line of 4096 bytes"):
        streams.write(b"x" + line)
    streams.write(b"y\n")
    assert os.read(typed.fd, 9000) == b"y\n"


def test_what_nobody_reads_is_told(streams: ConsoleStreams) -> None:
    lines = (b"x" * 3999 + b"\n") * 1000
    with pytest.raises(CommandError, match=r"does not read: .* took \d+ of 4000000 bytes"):
        streams.write(lines)


def test_a_host_without_terminals_refuses(
    monkeypatch: pytest.MonkeyPatch, output: OutputEvents
) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "openpty", none_left)
    with pytest.raises(CommandError, match="a terminal for the program: No space left"):
        ConsoleStreams(output)

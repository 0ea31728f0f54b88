"""Standard streams in the place of our own, of the same kind: programs treat them alike.

A terminal as standard input is a pipe here: what was typed comes, and behind it the end.
"""

import fcntl
import os
import stat
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_PIECE: Final = 1 << 16


class StandinStreams:
    """The streams.

    Attributes:
        descriptors: for a program that is started.
    """

    def __init__(self, given: bytes) -> None:
        """Make them.

        Args:
            given: to be read from the first one.
        """
        self._written: dict[int, bytearray] = {}
        self._open: list[int] = []
        self._files: dict[int, int] = {}
        self._threads: list[threading.Thread] = []
        self.descriptors = (self._input(given), self._output(1), self._output(2))

    def _input(self, given: bytes) -> int:
        try:
            mode = os.fstat(0).st_mode
        except OSError:
            mode = 0
        if stat.S_ISREG(mode):
            file = self._own(os.memfd_create("stdin"))
            with open(os.dup(file), "wb") as whole:
                whole.write(given)
            os.lseek(file, 0, os.SEEK_SET)
            return file
        if not given and not (stat.S_ISFIFO(mode) or os.isatty(0)):
            return self._own(os.open(os.devnull, os.O_RDONLY))
        reading, writing = os.pipe()
        threading.Thread(target=_feed, args=(writing, given), daemon=True).start()
        return self._own(reading)

    def _output(self, number: int) -> int:
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            return self._own(os.open(os.devnull, os.O_RDWR))
        if os.isatty(number):
            reading, writing = os.openpty()
            tty.setraw(writing)
            size = fcntl.ioctl(number, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(writing, termios.TIOCSWINSZ, size)
        elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            reading, writing = os.pipe()
        elif stat.S_ISREG(mode):
            self._files[number] = self._own(os.memfd_create("output"))
            return self._files[number]
        else:
            return self._own(os.open(os.devnull, os.O_RDWR))
        self._own(writing)
        self._own(reading)
        self._written[number] = bytearray()
        thread = threading.Thread(target=self._drain, args=(reading, number), daemon=True)
        thread.start()
        self._threads.append(thread)
        return writing

    def _own(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor

    def _drain(self, reading: int, number: int) -> None:
        with suppress(OSError):  # a terminal without a writer
            while data := os.read(reading, _PIECE):
                self._written[number] += data

    def written(self, number: int) -> bytes | None:
        """All that went to the second or third one; None if it goes where nobody looks.

        The program has ended: whoever still has a stream may write to it no longer.
        """
        for descriptor in {self.descriptors[1], self.descriptors[2]}:
            if descriptor in self._open and descriptor not in self._files.values():
                os.close(descriptor)
                self._open.remove(descriptor)
        for thread in self._threads:
            thread.join(1)
        if number in self._files:
            return os.pread(self._files[number], os.fstat(self._files[number]).st_size, 0)
        return bytes(self._written[number]) if number in self._written else None

    def close(self) -> None:
        """Let them go."""
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()


def _feed(writing: int, given: bytes) -> None:
    """Write all to a pipe, as long as somebody reads it."""
    with suppress(BrokenPipeError), open(writing, "wb") as pipe:
        pipe.write(given)


@contextmanager
def standin_streams(given: bytes) -> Iterator[StandinStreams]:
    """Streams with something to read, while they are used."""
    streams = StandinStreams(given)
    try:
        yield streams
    finally:
        streams.close()

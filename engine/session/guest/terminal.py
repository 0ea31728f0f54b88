"""A terminal of its own for a guest: what a front end with a pane gives it as its streams.

A pseudo-terminal of the host does the line editing and the echo, so that programs behave as
in a terminal window. It is never the controlling terminal of anything: Ctrl-C is the front
end's to turn into a signal.
"""

import fcntl
import os
import select
import struct
import termios
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final, Protocol

from engine.errors import CommandError
from engine.linux.fs import flags as fl
from engine.linux.fs.stdio import HostIO, HostStream

_CHUNK: Final = 1 << 16
_KEPT_MOST: Final = 16 << 20
"""Bytes of output that are kept in memory."""
_USUAL: Final = termios.OPOST | termios.ONLCR
"""The modes of output that a fresh terminal has (tty_std_termios of the kernel)."""
_STOP: Final = b"\x13"
_ECHO: Final = 1.0
"""Seconds after which all of an echo has come."""
_INPUT_MAX: Final = 1 << 20
"""Bytes typed ahead that are kept; a guest that never reads must not fill the host."""


class FrontEndStreams(Protocol):
    """Standard streams that a front end has for a guest."""

    def streams(self) -> tuple[HostStream, ...]:
        """Standard input, output and error."""

    def write(self, data: bytes) -> None:
        """The user has typed something."""

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size."""


class ChosenTerminal:
    """A terminal, or a file, of the user's choice as a guest's standard streams."""

    def __init__(self, path: str) -> None:
        """Open it; it becomes nobody's controlling terminal.

        Raises:
            CommandError: it cannot be opened for reading and writing.
        """
        try:
            # Without O_NONBLOCK a serial line may wait for its carrier.
            self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from error
        os.set_blocking(self._fd, True)

    def streams(self) -> tuple[HostStream, ...]:
        """Standard input, output and error of a guest."""
        return tuple(HostStream(self._fd, HostIO(), fl.O_RDWR) for _ in range(3))

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)


class CapturedStreams:
    """Standard streams in memory: input that is known beforehand, output that is kept.

    Attributes:
        output: the first bytes that were written to standard output.
        errors: the same of standard error.
        dropped: bytes of both that were too many.
    """

    def __init__(self, data: bytes = b"") -> None:
        """`data` is what the guest can read."""
        self.output, self.errors = bytearray(), bytearray()
        self.dropped = 0
        self._input = os.memfd_create("input")
        os.write(self._input, data)
        self._sink = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def streams(self) -> tuple[HostStream, ...]:
        """Standard input, output and error of a guest; what was read can be read again."""
        os.lseek(self._input, 0, os.SEEK_SET)
        self.output.clear()
        self.errors.clear()
        return (
            HostStream(self._input, HostIO(), fl.O_RDONLY),
            HostStream(self._sink, _KeptOutput(self, self.output), fl.O_WRONLY),
            HostStream(self._sink, _KeptOutput(self, self.errors), fl.O_WRONLY),
        )

    def write(self, data: bytes) -> None:
        """Do nothing: these streams have no user who types."""

    def resize(self, columns: int, rows: int) -> None:
        """Do nothing: these streams have no size."""

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self._input)
        os.close(self._sink)


class _KeptOutput(HostIO):
    """Keeps what is written."""

    def __init__(self, streams: CapturedStreams, into: bytearray) -> None:
        self._streams = streams
        self._into = into

    def write(self, fd: int, data: bytes) -> int:
        """Take all of it."""
        room = max(_KEPT_MOST - len(self._into), 0)
        self._into += data[:room]
        self._streams.dropped += len(data) - len(data[:room])
        return len(data)


class _TerminalEnd(HostIO):
    """Tells a terminal of each write."""

    def __init__(self, terminal: "GuestTerminal") -> None:
        self._terminal = terminal

    def write(self, fd: int, data: bytes) -> int:
        """Write; the number of bytes taken."""
        return self._terminal.writing(fd, data)

    def has_room(self, fd: int) -> bool:
        """True if the terminal is passed by."""
        return self._terminal.passes_by()

    def ioctl(self, fd: int, request: int, argument: bytes) -> bytes:
        """Answer an ioctl, which may set other modes."""
        self._terminal.forget_modes()
        try:
            return super().ioctl(fd, request, argument)
        finally:
            self._terminal.forget_modes()


class GuestTerminal:
    """The two ends of a pseudo-terminal.

    `wait` and `read` belong to one thread, `write` and `resize` to another.

    Attributes:
        dropped: bytes of input that found no room.
        writing: carries a write of the guest's to a descriptor out; the bytes taken.
        passes_by: True if `writing` takes all of a write that comes now, room or not.
    """

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        """Open one.

        Raises:
            OSError: the host has none left.
        """
        self._master, self._slave = os.openpty()
        os.set_blocking(self._master, False)
        self._waiting: deque[bytes] = deque()
        self._queued = 0
        self._ended, self._end = os.pipe()
        self.writing: Callable[[int, bytes], int] = os.write
        self.passes_by: Callable[[], bool] = lambda: False
        self._modes: int | None = None
        self.dropped = 0
        self._typed_at, self._stops = 0.0, False
        self.resize(columns, rows)

    def streams(self) -> tuple[HostStream, ...]:
        """Standard input, output and error of a guest."""
        self.forget_modes()  # those of the guest before are taken back
        return tuple(HostStream(self._slave, _TerminalEnd(self), fl.O_RDWR) for _ in range(3))

    def resize(self, columns: int, rows: int) -> None:
        """Tell the guest another size."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("=4H", rows, columns, 0, 0))

    def write(self, data: bytes) -> None:
        """The user has typed something; what does not fit now goes out by later calls."""
        if self._queued + len(data) > _INPUT_MAX:
            self.dropped += len(data)
            data = b""
        if data:
            self._typed_at = monotonic()
            self._stops = self._stops or _STOP in data
            self._waiting.append(data)
            self._queued += len(data)
        while self._waiting:
            try:
                done = os.write(self._master, self._waiting[0])
            except BlockingIOError:
                return
            self._queued -= done
            rest = self._waiting.popleft()[done:]
            if rest:
                self._waiting.appendleft(rest)

    @property
    def echoes(self) -> bool:
        """True if something was typed just now, whose echo may stand in the terminal."""
        return bool(self._waiting) or monotonic() - self._typed_at < _ECHO

    @property
    def translates_only_ends(self) -> bool:
        """True if all that the terminal does to output is a carriage return before a newline.

        So it is until the guest sets other modes, or somebody types Ctrl-S.
        """
        if self._modes is None:  # asked for each line of output
            self._modes = termios.tcgetattr(self._slave)[1]
        return not self._stops and self._modes == _USUAL

    def forget_modes(self) -> None:
        """Look at the modes again: the guest may have set others."""
        self._modes = None

    def wait(self) -> bool:
        """Wait until there is something to `read`; False once all is out after `finish`."""
        poller = select.poll()
        poller.register(self._master, select.POLLIN)
        poller.register(self._ended, select.POLLIN)
        return self._master in dict(poller.poll())

    def pending(self, patience: int = 0) -> bool:
        """True if the guest has written something that was not read.

        Args:
            patience: milliseconds to wait for that.
        """
        poller = select.poll()
        poller.register(self._master, select.POLLIN)
        return bool(poller.poll(patience))

    def read(self) -> bytes:
        """Take what the guest has written, b"" for nothing (yet)."""
        try:
            return os.read(self._master, _CHUNK)
        except BlockingIOError:
            return b""

    def finish(self) -> None:
        """Make `wait` return False once all output is out; from any thread."""
        os.write(self._end, b"x")

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in (self._master, self._slave, self._ended, self._end):
            os.close(descriptor)

"""A program of this machine that waits before its first instruction until its probes stand."""

import ctypes
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

_NO_RANDOM: Final = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2)."""
_ASKED: Final = 0xFFFFFFFF
_PLAIN: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores, and programs do not."""


class CommandStart(Struct, frozen=True):
    """The start of a program.

    Attributes:
        path: of its file.
        argv: with argv[0].
        env: `K=V` each.
        cwd: its directory, None for ours.
        randomized: its addresses are, if the machine's usually are.
        streams: descriptors that are its standard streams; None for ours.
    """

    path: str
    argv: Sequence[str]
    env: Sequence[str]
    cwd: str | None = None
    randomized: bool = False
    streams: tuple[int, int, int] | None = None


class LiveCommand:
    """A process that was forked and has not executed its file yet.

    Attributes:
        pid: its id.
        status: as waitpid tells it, None while it runs.
    """

    def __init__(self, start: CommandStart) -> None:
        """Fork it."""
        self.status: int | None = None
        self._path = start.path
        read, self._go = os.pipe()
        self._failure, write = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._go)
            _become(start, read, write)
        os.close(read)
        os.close(write)
        self.pidfd = os.pidfd_open(self.pid)
        self._open = True

    def go(self) -> None:
        """Let it execute its file.

        Raises:
            CommandError: that cannot be.
        """
        os.write(self._go, b"\0")
        with open(self._failure, "rb", closefd=False) as file:
            number = file.read()
        if number:
            self._wait()
            raise CommandError(f"cannot run {self._path}: {os.strerror(int(number))}")

    def poll(self) -> bool:
        """True if it has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def send(self, number: int) -> None:
        """Send it a signal; nothing if it has ended."""
        if self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    @property
    def exit_code(self) -> int:
        """128+N for the end by signal N."""
        if self.status is None:
            return 0
        code = os.waitstatus_to_exitcode(self.status)
        return code if code >= 0 else 128 - code

    def _wait(self) -> None:
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]

    def close(self) -> None:
        """It ends, if it has not yet."""
        if not self.poll():
            self.send(signal.SIGKILL)
            self._wait()
        descriptors = [self._go, self._failure, self.pidfd]
        while self._open and descriptors:
            os.close(descriptors.pop())
        self._open = False


def _become(start: CommandStart, read: int, write: int) -> None:
    """In the new process: wait, then execute the file; never returns."""
    try:
        if not os.read(read, 1):
            os._exit(0)  # whoever has started it is gone
        for number in _PLAIN:
            signal.signal(number, signal.SIG_DFL)
        if not start.randomized:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.personality(ctypes.c_ulong(libc.personality(ctypes.c_ulong(_ASKED)) | _NO_RANDOM))
        for stream, descriptor in enumerate(start.streams or ()):
            os.dup2(descriptor, stream)
        if start.cwd is not None:
            os.chdir(start.cwd)
        env = dict(entry.split("=", 1) for entry in start.env)
        os.execve(start.path, list(start.argv), env)
    except OSError as error:
        os.write(write, str(error.errno).encode())
    finally:
        os._exit(127)

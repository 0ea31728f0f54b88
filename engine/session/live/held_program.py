"""A program of this machine that waits before its first instruction until its probes stand.

It is stopped where its exec has succeeded (PTRACE_EVENT_EXEC, ptrace(2)): its file and its loader
are mapped, and no instruction of theirs has run. Probes that are enabled there miss nothing of the
program, and see nothing of the process that has started it, which runs the same libraries.
"""

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
# Numbers of include/uapi/linux/ptrace.h.
_CONT, _DETACH, _SEIZE = 7, 17, 0x4206
_TRACE_EXEC, _EXIT_KILL = 1 << 4, 1 << 20
_EVENT_EXEC: Final = 4


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
        self._traced = False
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

    def execute(self) -> None:
        """Let it execute its file, and stop it before the first instruction of that.

        Raises:
            CommandError: it cannot be executed, or not be stopped.
        """
        self._ptrace(_SEIZE, _TRACE_EXEC | _EXIT_KILL)
        self._traced = True
        os.write(self._go, b"\0")
        while True:
            _, status = os.waitpid(self.pid, 0)
            if not os.WIFSTOPPED(status):
                self.status, self._traced = status, False
                break
            event = status >> 16
            if event == _EVENT_EXEC:
                return
            self._ptrace(_CONT, 0 if event else os.WSTOPSIG(status))
        with open(self._failure, "rb", closefd=False) as file:
            number = file.read()
        why = os.strerror(int(number)) if number else f"it ended with {self.exit_code}"
        raise CommandError(f"cannot run {self._path}: {why}")

    def go(self) -> None:
        """Let the program run.

        Raises:
            CommandError: somebody has killed it meanwhile.
        """
        self._ptrace(_DETACH, 0)
        self._traced = False

    def _ptrace(self, request: int, data: int) -> None:
        """Make a request about the process; the thread that made it is its tracer.

        Raises:
            CommandError: the kernel refuses it.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(
            ctypes.c_long(request),
            ctypes.c_long(self.pid),
            ctypes.c_void_p(),
            ctypes.c_void_p(data),
        ):
            number = ctypes.get_errno()
            if self.poll():
                raise CommandError(f"cannot run {self._path}: it ended with {self.exit_code}")
            raise CommandError(
                f"cannot stop {self._path} before its first instruction: ptrace:"
                f" {os.strerror(number)}; --pid records programs that run already"
            )

    def poll(self) -> bool:
        """True if it has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid and not os.WIFSTOPPED(status):
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
        """End the program, if it has not ended yet."""
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

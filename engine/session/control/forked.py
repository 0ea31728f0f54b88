"""A process of our own that works beside this one, on a copy of all that this one has."""

import ctypes
import gc
import os
import signal
import struct
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from engine.cpu import hostmemory

_SIZE: Final = struct.Struct("<I")
_PIECE: Final = 1 << 18
"""Bytes that are read at once."""
_SET_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG (linux/prctl.h)."""

Send = Callable[[bytes], None]
"""Takes a message for the process that waits for it."""


class ForkedProcess:
    """A forked process: it sends messages, and ends.

    It shares nothing that either writes to but the pipe of its messages, hears no signals of the
    terminal's, and ends with the thread that has made it. Files stay open in it as long as it
    lives; what it runs must use none of them.

    Attributes:
        descriptor: to wait for: there is something to read.
    """

    def __init__(self, work: Callable[[Send], None]) -> None:
        """Let it work.

        Args:
            work: what it does; it ends with it.

        Raises:
            OSError: the host makes no process.
        """
        self.descriptor, theirs = os.pipe()
        self._buffer = bytearray()
        maker = os.getpid()
        try:
            with warnings.catch_warnings():  # of the other threads: they are not there
                warnings.simplefilter("ignore", DeprecationWarning)
                self.pid = os.fork()
        except OSError:
            os.close(self.descriptor)
            os.close(theirs)
            raise
        if not self.pid:
            _be_forked(work, theirs, maker)
        os.close(theirs)
        os.set_blocking(self.descriptor, False)

    def messages(self) -> tuple[list[bytes], bool]:
        """The messages that have come since, and whether that was all of them."""
        ended, found, buffer = False, [], self._buffer
        with suppress(BlockingIOError):
            while len(buffer) < _PIECE:
                data = os.read(self.descriptor, _PIECE)
                if not data:
                    ended = True
                    break
                buffer += data
        position = 0
        while position + _SIZE.size <= len(buffer):
            end = position + _SIZE.size + _SIZE.unpack_from(buffer, position)[0]
            if end > len(buffer):
                break
            found.append(bytes(memoryview(buffer)[position + _SIZE.size : end]))
            position = end
        del buffer[:position]
        return found, ended

    def end(self) -> threading.Thread:
        """End it, if it still works; nobody waits while the host takes its memory apart.

        Returns:
            Ends when nothing of it is left.
        """
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.descriptor)
        reaping = threading.Thread(target=_reap, args=(self.pid,), daemon=True)
        reaping.start()
        return reaping


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _be_forked(work: Callable[[Send], None], pipe: int, maker: int) -> NoReturn:
    """The life of the forked process."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == maker:
            gc.disable()  # what it looks at, it copies
            hostmemory.unshare()

            def send(message: bytes) -> None:
                data = memoryview(_SIZE.pack(len(message)) + message)
                while data:
                    data = data[os.write(pipe, data) :]

            work(send)
            code = 0
    finally:
        os._exit(code)  # whatever has happened: nothing of the maker's is carried on here

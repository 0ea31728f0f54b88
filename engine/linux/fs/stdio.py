"""The guest's standard streams.

`HostIO` is the one place where something that differs between two runs comes in: what the
host's descriptors deliver and when they are ready. A journal wraps it to record and replay;
output passes here too. A stream need not be a host descriptor: `SinkStream` hands output
to a function and `FeedStream` takes input from a queue, for front ends with panes.
"""

import contextlib
import fcntl
import os
import select
import stat
import termios
from collections.abc import Callable
from typing import NamedTuple

from engine.linux.clock import Clock
from engine.linux.context import s32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import Stat
from engine.linux.fs.devices import PTS, STREAMS
from engine.linux.fs.host import translated
from engine.linux.fs.terminal import REQUESTS, SIGTTIN, SIGTTOU
from engine.linux.fs.vfs import IoctlCaller, OpenFile

EINVAL, ENOTTY = 22, 25

TCGETS, TCSETS, TCSETSW, TCSETSF = 0x5401, 0x5402, 0x5403, 0x5404
TCSBRK, TCXONC, TCFLSH = 0x5409, 0x540A, 0x540B
TIOCGWINSZ, TIOCSWINSZ, FIONREAD = 0x5413, 0x5414, 0x541B

_TERMIOS_SIZE = 36
"""The kernel's struct termios: four words of flags, the line, 19 control characters."""

_SAFE_WRITE = 4096
"""A pipe that polls as writable takes this much without blocking (PIPE_BUF)."""

_TERMINAL_INODE = 3
"""Of /dev/pts/0."""
_MODES = {stat.S_IFCHR: 0o666, stat.S_IFREG: 0o644, stat.S_IFSOCK: 0o777}


class StreamStat(NamedTuple):
    """Attributes of a host descriptor that a guest may see; times in nanoseconds."""

    mode: int
    rdev: int
    size: int
    atime: int
    mtime: int
    ctime: int


class HostIO:
    """Access to host descriptors; every call may be recorded and replayed by a subclass.

    Attributes:
        told: told (descriptor, bytes) of what it has taken.
    """

    told: Callable[[int, bytes], object] | None = None

    def read(self, fd: int, count: int) -> bytes:
        """Read what is there; called only when `poll` said that it will not block."""
        return os.read(fd, count)

    def write(self, fd: int, data: bytes) -> int:
        """Write; returns how much was taken."""
        return os.write(fd, data)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read a regular file at an offset."""
        return os.pread(fd, count, offset)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write a regular file at an offset."""
        return os.pwrite(fd, data, offset)

    def seek(self, fd: int, offset: int, whence: int) -> int:
        """Move the position that the host's process group shares."""
        return os.lseek(fd, offset, whence)

    def truncate(self, fd: int, size: int) -> None:
        """Set the size of a regular file."""
        os.ftruncate(fd, size)

    def poll(self, fd: int, events: int) -> int:
        """POLL* bits that hold now."""
        poller = select.poll()
        poller.register(fd, events)
        for _, mask in poller.poll(0):
            return mask
        return 0

    def has_room(self, fd: int) -> bool:
        """True if a write that comes now never waits, so that `poll` need not be asked."""
        return False

    def stat(self, fd: int) -> StreamStat:
        """Attributes of the descriptor."""
        host = os.fstat(fd)
        return StreamStat(
            host.st_mode,
            host.st_rdev,
            host.st_size,
            host.st_atime_ns,
            host.st_mtime_ns,
            host.st_ctime_ns,
        )

    def status(self, fd: int) -> int:
        """The stream's status flags, as F_GETFL says."""
        return int(fcntl.fcntl(fd, fcntl.F_GETFL))

    def is_terminal(self, fd: int) -> bool:
        """True if it is a terminal."""
        return os.isatty(fd)

    def ioctl(self, fd: int, request: int, argument: bytes) -> bytes:
        """A terminal's or pipe's ioctl with a fixed-size buffer."""
        return fcntl.ioctl(fd, request, argument)

    def keep_settings(self, fd: int) -> None:
        """The guest is about to change a terminal's settings, which come back at the end."""
        TERMINALS.remember(fd)

    def flush(self, fd: int, queue: int) -> None:
        """Drop what a terminal has not handed over: tcflush(3)."""
        termios.tcflush(fd, queue)


class Terminals:
    """Host terminals whose settings the guest has changed."""

    def __init__(self) -> None:
        self._saved: dict[int, bytes] = {}

    def remember(self, fd: int) -> None:
        """Called before the settings change."""
        if fd not in self._saved:
            self._saved[fd] = fcntl.ioctl(fd, termios.TCGETS, bytes(_TERMIOS_SIZE))

    def restore(self) -> None:
        """Put all settings back as they were."""
        for fd, settings in self._saved.items():
            with contextlib.suppress(OSError):
                fcntl.ioctl(fd, termios.TCSETS + 1, settings)
        self._saved.clear()


TERMINALS = Terminals()


def restore_terminals() -> None:
    """Undo what guests did to the host's terminals; call it before exit and on a crash."""
    TERMINALS.restore()


class HostStream(OpenFile):
    """A host descriptor as one of the guest's: terminal, pipe, file, whatever it is.

    Of what the host says of it the guest sees what programs go by: its type, the size and the
    position of a file. Owners, permissions and numbers are the same wherever a stream leads.
    """

    def __init__(
        self, fd: int, io: HostIO, flags: int = fl.O_RDWR, clock: Clock | None = None
    ) -> None:
        super().__init__(flags)
        self.fd = fd
        self.io = io
        self._clock = clock
        self.is_terminal = io.is_terminal(fd)
        kind = stat.S_IFMT(io.stat(fd).mode)
        self._kind = kind
        self.is_regular = kind == stat.S_IFREG
        self.seekable = self.is_regular
        # Files never wait, and pieces would only slow them down.
        self._stalls = 0
        self._limit = (1 << 20) if self.is_regular else _SAFE_WRITE

    def reopen(self, flags: int) -> OpenFile:
        """A new description of the same object (opening /proc/self/fd/N)."""
        twin = HostStream(self.fd, self.io, flags, self._clock)
        twin.terminal = self.terminal
        if flags & fl.O_TRUNC and self.is_regular:
            twin.truncate(0)
        return twin

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        if self.terminal is not None:
            self.terminal.check(SIGTTIN)
        if not self.is_regular and not self.io.poll(self.fd, select.POLLIN):
            self._stalls += 1
            return None
        try:
            return self.io.read(self.fd, count)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LinuxError(error.errno or 5) from error

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        done = 0
        view = memoryview(data)
        if self.flags & fl.O_APPEND and self.is_regular:
            with translated():
                self.io.seek(self.fd, 0, os.SEEK_END)
        while done < len(data):
            try:
                if not self.is_regular and not self.io.poll(self.fd, select.POLLOUT):
                    break
                piece = bytes(view[done : done + self._limit])
                taken = self.io.write(self.fd, piece)
                done += taken
                if self.io.told is not None:
                    self.io.told(self.fd, piece[:taken])
            except BlockingIOError:
                break
            except OSError as error:
                if done:
                    break
                raise LinuxError(error.errno or 5) from error
        if done < len(data):
            self._stalls += 1
        return done if done or not data else None

    @property
    def activity(self) -> int:
        """Counts how often it ran dry: readiness after that is news."""
        return self._stalls

    def pread(self, count: int, offset: int) -> bytes:
        """Read at an offset."""
        with translated():
            return self.io.pread(self.fd, count, offset)

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at an offset."""
        with translated():
            taken = self.io.pwrite(self.fd, data, offset)
        if self.io.told is not None:
            self.io.told(self.fd, data[:taken])
        return taken

    def seek(self, offset: int, whence: int) -> int:
        """Move the file position."""
        with translated():
            return self.io.seek(self.fd, offset, whence)

    def truncate(self, size: int) -> None:
        """Set the size."""
        self.check_writable()
        with translated():
            self.io.truncate(self.fd, size)

    def sync(self) -> None:
        """Write to the disk what fsync would."""
        if not self.is_regular:
            raise LinuxError(EINVAL)

    def stat(self) -> Stat:
        """Attributes."""
        with translated():
            host = self.io.stat(self.fd)
        shown = self._clock.file_time if self._clock is not None else int
        times = (host.atime, host.mtime, host.ctime) if self.is_regular else (0, 0, 0)
        return Stat(
            *((PTS, _TERMINAL_INODE) if self.is_terminal else (STREAMS, self.fd + 3)),
            self._kind | (0o620 if self.is_terminal else _MODES.get(self._kind, 0o600)),
            1,
            *self.owner,
            0x8800 if self.is_terminal else host.rdev if self._kind == stat.S_IFCHR else 0,
            host.size if self.is_regular else 0,
            4096 if self.is_regular else 1024,
            (host.size + 511) >> 9 if self.is_regular else 0,
            *map(shown, times),
        )

    owner: tuple[int, int] = (1000, 1000)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        if self.is_regular:
            return fl.READABLE | fl.WRITABLE
        want = {fl.O_RDONLY: select.POLLIN, fl.O_WRONLY: select.POLLOUT}.get(
            self.flags & fl.O_ACCMODE, select.POLLIN | select.POLLOUT
        )
        ready = self.io.poll(self.fd, want)
        mask = ready & 0x3F
        if ready & select.POLLIN:
            mask |= fl.POLLRDNORM
        if ready & select.POLLOUT:
            mask |= fl.POLLWRNORM
        return mask

    def wait_fds(self, events: int) -> tuple[tuple[int, int], ...]:
        """Host descriptors whose readiness may change `readiness`, for `Wait.host_fds`."""
        mask = events & (select.POLLIN | select.POLLOUT)
        return () if self.is_regular else ((self.fd, mask),)

    def host_fd(self) -> int | None:
        """The host descriptor behind it, if there is exactly one."""
        return self.fd

    def describe(self) -> bytes:
        """The text that readlink of /proc/self/fd/N shows."""
        if self.is_terminal:
            return b"/dev/pts/0"
        kinds = {stat.S_IFIFO: b"pipe", stat.S_IFSOCK: b"socket"}
        if self._kind in kinds:
            return b"%s:[%d]" % (kinds[self._kind], self.fd + 3)
        return b"/dev/null" if self._kind == stat.S_IFCHR else b"/stream/%d" % self.fd

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """Device control."""
        if request == FIONREAD:
            with translated():
                answer = self.io.ioctl(self.fd, termios.FIONREAD, bytes(4))
            caller.memory.write(argument, answer)
            return 0
        if not self.is_terminal:
            raise LinuxError(ENOTTY)
        if self.terminal is not None and request in (TCSETS, TCSETSW, TCSETSF, TCFLSH):
            self.terminal.check(SIGTTOU)
        if request == TCGETS:
            self._get(caller, argument, termios.TCGETS, _TERMIOS_SIZE)
        elif request in (TCSETS, TCSETSW, TCSETSF):
            settings = bytes(caller.memory.read(argument, _TERMIOS_SIZE))
            with translated():
                self.io.keep_settings(self.fd)
                self.io.ioctl(self.fd, termios.TCSETS + request - TCSETS, settings)
        elif request == TIOCGWINSZ:
            self._get(caller, argument, termios.TIOCGWINSZ, 8)
        elif request in REQUESTS and self.terminal is not None:
            self.terminal.control(caller.memory, request, argument)
        elif request in (TIOCSWINSZ, TCXONC, TCSBRK):
            # Sizes stay the host's own business.
            return 0
        elif request == TCFLSH:
            with translated():
                self.io.flush(self.fd, s32(argument) if 0 <= s32(argument) <= 2 else 0)
        else:
            raise LinuxError(ENOTTY)
        return 0

    def _get(self, caller: IoctlCaller, address: int, request: int, size: int) -> None:
        with translated():
            answer = self.io.ioctl(self.fd, request, bytes(size))
        caller.memory.write(address, answer)


class SinkStream(OpenFile):
    """Output that goes to a function: a pane, a buffer, a test."""

    def __init__(
        self, sink: Callable[[bytes], object], *, terminal: bool = False, ino: int = 1
    ) -> None:
        super().__init__(fl.O_WRONLY)
        self._sink = sink
        self.is_terminal = terminal
        self._ino = ino

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        self._sink(data)
        return len(data)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        return fl.WRITABLE

    def reopen(self, flags: int) -> OpenFile:
        """A new description of the same object (opening /proc/self/fd/N)."""
        return SinkStream(self._sink, terminal=self.is_terminal, ino=self._ino)

    def stat(self) -> Stat:
        """Attributes."""
        mode = (stat.S_IFCHR if self.is_terminal else stat.S_IFIFO) | 0o620
        return Stat(STREAMS, self._ino, mode, 1, 1000, 1000, 0, 0, 1024, 0, 0, 0, 0)

    def describe(self) -> bytes:
        """The text that readlink of /proc/self/fd/N shows."""
        return b"/dev/pts/0" if self.is_terminal else b"pipe:[%d]" % self._ino


class FeedStream(OpenFile):
    """Input that a front end or a test feeds."""

    def __init__(self, data: bytes = b"", *, ended: bool = False, ino: int = 0) -> None:
        super().__init__(fl.O_RDONLY)
        self._waiting = bytearray(data)
        self._ended = ended
        self._ino = ino

    def feed(self, data: bytes) -> None:
        """Add input."""
        self._waiting += data

    def end(self) -> None:
        """No more input will come."""
        self._ended = True

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        if not self._waiting and not self._ended:
            return None
        data = bytes(self._waiting[:count])
        del self._waiting[:count]
        return data

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        hang = fl.POLLHUP if self._ended else 0
        return (fl.READABLE if self._waiting or self._ended else 0) | hang

    def stat(self) -> Stat:
        """Attributes."""
        mode = stat.S_IFIFO | 0o600
        return Stat(STREAMS, self._ino, mode, 1, 1000, 1000, 0, 0, 4096, 0, 0, 0, 0)

    def reopen(self, flags: int) -> OpenFile:
        """A new description of the same object (opening /proc/self/fd/N)."""
        # One input has one reader's position, however often it is opened.
        return self

    def describe(self) -> bytes:
        """The text that readlink of /proc/self/fd/N shows."""
        return b"pipe:[%d]" % self._ino


def host_stdio(
    io: HostIO | None = None, clock: Clock | None = None
) -> tuple[HostStream | None, ...]:
    """The host's standard streams for a headless run; None for one that is closed.

    Args:
        io: how the host is asked.
        clock: the guest's, to which times of files are fitted.
    """
    io = io or HostIO()
    streams: list[HostStream | None] = []
    for fd in (0, 1, 2):
        try:
            status = io.status(fd)
            closed = status & os.O_PATH  # its number is occupied
            access = status & (fl.O_ACCMODE | fl.O_APPEND)
            streams.append(None if closed else HostStream(fd, io, access, clock))
        except OSError:
            streams.append(None)
    return tuple(streams)

"""The standard streams of a recorded guest, for one that goes on by itself.

They are what they were: a terminal, a pipe, a file. What comes of them up to the moment at which
the guest is live is kept elsewhere (`inputs`). From there on it is the front end's stream that a
terminal stands for; a pipe or a file has what the recorded guest still read of it, or could have,
and then it is at its end. What is written goes to the front end.
"""

import contextlib
import errno
import os
import select
import stat
import termios
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from engine.linux.clock import Clock
from engine.linux.fs import flags as fl
from engine.linux.fs.stdio import (
    TCSETS,
    TCSETSF,
    TCSETSW,
    HostIO,
    HostStream,
    StreamStat,
)
from engine.linux.fs.vfs import OpenFile

_TERMIOS_SIZE = 36
_NO_DIGEST = b""


class StreamShape(Struct, frozen=True):
    """A standard stream as it was when the guest began.

    Attributes:
        flags: as the guest has it open.
        status: its status flags.
        stat: its attributes.
        terminal: it is a terminal.
        place: position in it; -1 where it has none.
        settings: of a terminal; b"" for none.
        window: size of a terminal; b"" for none.
        content: digest of a file's bytes; b"" where they are not known.
    """

    flags: int
    status: int
    stat: StreamStat
    terminal: bool
    place: int = -1
    settings: bytes = b""
    window: bytes = b""
    content: bytes = _NO_DIGEST


def shape_of(
    file: OpenFile | None, keep: Callable[[bytes], bytes], most: int
) -> StreamShape | None:
    """A standard stream of a guest that begins; None where it is closed, or none of the host's.

    Args:
        file: the stream as the guest has it.
        keep: keeps the bytes of a file, and gives their digest.
        most: bytes of one that is kept.
    """
    if not isinstance(file, HostStream):
        return None
    io, place, settings, window, content = HostIO(), -1, b"", b"", _NO_DIGEST
    found = io.stat(file.fd)
    with contextlib.suppress(OSError):
        place = io.seek(file.fd, 0, os.SEEK_CUR)
    try:
        if file.is_regular:
            if file.flags & fl.O_ACCMODE != fl.O_WRONLY and found.size <= most:
                content = keep(io.pread(file.fd, found.size, 0))
        elif file.is_terminal:
            settings = io.ioctl(file.fd, termios.TCGETS, bytes(_TERMIOS_SIZE))
            window = io.ioctl(file.fd, termios.TIOCGWINSZ, bytes(8))
    except OSError:
        pass  # the guest will not get it either
    return StreamShape(
        *(file.flags, io.status(file.fd), found, file.is_terminal),
        *(place, settings, window, content),
    )


class RecordedStreams(HostIO):
    """Standard streams of a recorded guest; the descriptors are its own."""

    def __init__(
        self,
        shapes: Sequence[StreamShape | None],
        contents: Mapping[bytes, bytes],
        front: Sequence[OpenFile | None],
    ) -> None:
        """Stand where the recorded guest began.

        Args:
            shapes: what its streams were.
            contents: bytes of files by digest.
            front: the front end's streams.
        """
        self._shapes = {fd: shape for fd, shape in enumerate(shapes) if shape is not None}
        self._contents = contents
        self._front = {fd: file for fd, file in enumerate(front) if isinstance(file, HostStream)}
        self._places = {fd: shape.place for fd, shape in self._shapes.items()}
        self._sizes = {fd: shape.stat.size for fd, shape in self._shapes.items()}
        self._unread = bytearray()
        self._settings = b""  # of a terminal that the front end has none for

    @property
    def unread(self) -> bytes:
        """Bytes that are still to be read of a pipe."""
        return bytes(self._unread)

    def streams(self, clock: Clock) -> tuple[HostStream | None, ...]:
        """Standard input, output and error of the guest."""
        return tuple(
            HostStream(fd, self, self._shapes[fd].flags, clock) if fd in self._shapes else None
            for fd in range(3)
        )

    def go_live(self, unread: bytes, written: Mapping[int, int]) -> None:
        """The guest goes on by itself.

        Args:
            unread: what the recorded guest read from a pipe behind this moment.
            written: bytes that have been written to each descriptor.
        """
        self._unread[:] = unread
        for fd, count in written.items():
            if fd in self._places and not self._contents_of(fd):
                self._places[fd] += count
                self._sizes[fd] = max(self._sizes[fd], self._places[fd])

    def waiting(
        self, wait: Callable[[Mapping[int, int], float | None], bool]
    ) -> Callable[[Mapping[int, int], float | None], bool]:
        """Wait for the front end's streams in place of the guest's.

        Args:
            wait: waits for those of the host.
        """

        def waits(asked: Mapping[int, int], timeout: float | None) -> bool:
            wanted: dict[int, int] = {}
            for fd, events in asked.items():
                if fd not in self._shapes:
                    wanted[fd] = events
                elif (front := self._terminal(fd)) is not None:
                    wanted[front.fd] = wanted.get(front.fd, 0) | events
                elif self.poll(fd, events):
                    return True
            return wait(wanted, timeout)

        return waits

    def _shape(self, fd: int) -> StreamShape:
        shape = self._shapes.get(fd)
        if shape is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return shape

    def _terminal(self, fd: int) -> HostStream | None:
        """The front end's stream that stands for a terminal."""
        return self._front.get(fd) if self._shape(fd).terminal else None

    def _contents_of(self, fd: int) -> bytes:
        return self._contents.get(self._shape(fd).content, b"")

    def _is_file(self, fd: int) -> bool:
        return stat.S_ISREG(self._shape(fd).stat.mode)

    def read(self, fd: int, count: int) -> bytes:
        """Read a stream."""
        front = self._terminal(fd)
        if front is not None:
            return front.io.read(front.fd, count)
        if self._is_file(fd):
            data = self.pread(fd, count, self._places[fd])
            self._places[fd] += len(data)
            return data
        data = bytes(self._unread[:count])
        del self._unread[:count]
        return data

    def write(self, fd: int, data: bytes) -> int:
        """Write to the front end; the number of bytes taken."""
        front = self._front.get(fd)
        taken = front.io.write(front.fd, data) if front is not None else len(data)
        if self._is_file(fd):
            self._places[fd] += taken
            self._sizes[fd] = max(self._sizes[fd], self._places[fd])
        return taken

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read a redirected file."""
        return self._contents_of(fd)[offset : offset + count]

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write a redirected file: the front end gets it as if it had come in its turn."""
        front = self._front.get(fd)
        taken = front.io.write(front.fd, data) if front is not None else len(data)
        self._sizes[fd] = max(self._sizes.get(fd, 0), offset + taken)
        return taken

    def seek(self, fd: int, offset: int, whence: int) -> int:
        """Move the position in a redirected file."""
        if self._shape(fd).place < 0:
            raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))
        if not self._is_file(fd):
            return 0  # as of /dev/null
        base = {os.SEEK_CUR: self._places[fd], os.SEEK_END: self._sizes[fd]}.get(whence, 0)
        if base + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._places[fd] = base + offset
        return base + offset

    def truncate(self, fd: int, size: int) -> None:
        """Cut a redirected file."""
        self._sizes[fd] = size

    def poll(self, fd: int, events: int) -> int:
        """POLL* bits that hold now."""
        front = self._terminal(fd)
        if front is not None:
            return front.io.poll(front.fd, events)
        found = events & select.POLLOUT
        if events & select.POLLIN:
            ended = stat.S_ISFIFO(self._shape(fd).stat.mode) and not self._unread
            found |= select.POLLHUP if ended else select.POLLIN
        return found

    def stat(self, fd: int) -> StreamStat:
        """Attributes of the descriptor."""
        return self._shape(fd).stat._replace(size=self._sizes[fd])

    def status(self, fd: int) -> int:
        """The streams' status flags."""
        return self._shape(fd).status

    def is_terminal(self, fd: int) -> bool:
        """True if it is a terminal."""
        return self._shape(fd).terminal

    def ioctl(self, fd: int, request: int, argument: bytes) -> bytes:
        """A terminal's or pipe's answer."""
        front = self._terminal(fd)
        if front is not None and front.is_terminal:
            return front.io.ioctl(front.fd, request, argument)
        shape = self._shape(fd)
        if shape.terminal and request in (TCSETS, TCSETSW, TCSETSF):
            self._settings = argument
            return argument
        known = {
            termios.TCGETS: self._settings or shape.settings,
            termios.TIOCGWINSZ: shape.window,
        }
        if known.get(request):
            return known[request]
        if request == termios.FIONREAD:
            return len(self._unread).to_bytes(4, "little")
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))

    def keep_settings(self, fd: int) -> None:
        """The guest is about to change a terminal's settings."""
        front = self._terminal(fd)
        if front is not None and front.is_terminal:
            front.io.keep_settings(front.fd)

    def flush(self, fd: int, queue: int) -> None:
        """Drop what a terminal has not handed over."""
        front = self._terminal(fd)
        if front is not None and front.is_terminal:
            front.io.flush(front.fd, queue)

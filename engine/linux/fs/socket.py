"""Connected pairs of UNIX sockets, and unconnected ones that lead nowhere."""

import stat
import struct
from collections import deque

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import Stat
from engine.linux.fs.vfs import IoctlCaller, OpenFile

EINVAL, EPIPE, ENOTTY, EMSGSIZE, ENOTCONN, ECONNREFUSED = 22, 32, 25, 90, 107, 111

SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET = 1, 2, 5

_DEV_SOCKETS = 0x09
_CAPACITY = 212_992

FIONREAD = 0x541B


class Message:
    """Bytes on the way, with the open files sent along."""

    __slots__ = ("data", "files")

    def __init__(self, data: bytes, files: list[OpenFile]) -> None:
        self.data = data
        self.files = files


class UnixSocket(OpenFile):
    """One socket.

    Attributes:
        kind: SOCK_STREAM, SOCK_DGRAM or SOCK_SEQPACKET.
        peer: the other end, None if never connected.
        options: what setsockopt stored, by (level, name).
    """

    def __init__(self, kind: int, ino: int, flags: int = 0) -> None:
        super().__init__(fl.O_RDWR | flags)
        self.kind = kind
        self.messages = kind != SOCK_STREAM
        self.peer: UnixSocket | None = None
        self.options: dict[tuple[int, int], int] = {}
        self._ino = ino
        self._queue: deque[Message] = deque()
        self._queued = 0
        self._no_more_input = False
        self._no_more_output = False
        self._activity = 0

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return self._activity

    @property
    def connected(self) -> bool:
        """True if it has another end that is still there."""
        return self.peer is not None and self.peer.references > 0

    def shut(self, how: int) -> None:
        """Shutdown: 0 input, 1 output, 2 both."""
        if self.peer is None:
            raise LinuxError(ENOTCONN)
        if how in (0, 2):
            self._no_more_input = True
            self.peer._no_more_output = True
        if how in (1, 2):
            self._no_more_output = True
            self.peer._no_more_input = True
        self._touch()

    def _touch(self) -> None:
        self._activity += 1
        if self.peer is not None:
            self.peer._activity += 1

    def on_close(self) -> None:
        """The last descriptor is gone."""
        for message in self._queue:
            for file in message.files:
                file.release()
        self._queue.clear()
        self._touch()

    def receive(
        self, count: int, *, peek: bool = False
    ) -> tuple[bytes, int, list[OpenFile]] | None:
        """(bytes, length of the whole message, files), or None if it would block."""
        if not self._queue:
            if self.peer is None and self.kind != SOCK_DGRAM:
                raise LinuxError(ENOTCONN if self.kind == SOCK_SEQPACKET else EINVAL)
            if self._no_more_input or (self.kind != SOCK_DGRAM and not self.connected):
                return b"", 0, []
            return None
        first = self._queue[0]
        if self.kind != SOCK_STREAM:
            if not peek:
                self._queue.popleft()
                self._queued -= len(first.data)
                self._touch()
            return first.data[:count], len(first.data), [] if peek else first.files
        pieces: list[bytes] = []
        files: list[OpenFile] = []
        taken = 0
        for index, message in enumerate(list(self._queue)):
            # Files belong to the bytes they came with: reading stops before the next ones.
            if (message.files and index) or taken >= count:
                break
            piece = message.data[: count - taken]
            pieces.append(piece)
            taken += len(piece)
            if peek:
                continue
            files, message.files = files + message.files, []
            if len(piece) == len(message.data):
                self._queue.popleft()
            else:
                message.data = message.data[len(piece) :]
            self._queued -= len(piece)
        if not peek:
            self._touch()
        return b"".join(pieces), taken, files

    def send(self, data: bytes, files: list[OpenFile] | None = None) -> int | None:
        """Take bytes: their number, None if it would block."""
        if self.peer is None:
            raise LinuxError(ENOTCONN)
        if self.kind == SOCK_DGRAM and not self.connected:
            raise LinuxError(ECONNREFUSED)
        if self._no_more_output or not self.connected:
            raise LinuxError(EPIPE)
        room = _CAPACITY - self.peer._queued
        if self.kind != SOCK_STREAM and len(data) > _CAPACITY:
            raise LinuxError(EMSGSIZE)
        if room <= 0 or (self.kind != SOCK_STREAM and len(data) > room):
            return None
        piece = data[:room]
        self.peer._queue.append(Message(piece, [file.acquire() for file in files or []]))
        self.peer._queued += len(piece)
        self._touch()
        return len(piece)

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        got = self.receive(count)
        if got is None:
            return None
        for file in got[2]:
            file.release()
        return got[0]

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        return self.send(data)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        mask = fl.READABLE if self._queue else 0
        ended = self.kind != SOCK_DGRAM and not self.connected
        if self._no_more_input or ended:
            mask |= fl.READABLE | fl.POLLRDHUP
        if ended or (self._no_more_input and self._no_more_output):
            mask |= fl.POLLHUP
        if self.peer is not None and self.peer._queued < _CAPACITY // 2:
            mask |= fl.WRITABLE
        return mask

    def stat(self) -> Stat:
        """Attributes."""
        mode = stat.S_IFSOCK | 0o777
        return Stat(_DEV_SOCKETS, self._ino, mode, 1, 1000, 1000, 0, 0, 4096, 0, 0, 0, 0)

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """Device control."""
        if request != FIONREAD:
            raise LinuxError(ENOTTY)
        size = len(self._queue[0].data) if self._queue and self.messages else self._queued
        order = "<" if caller.arch.byteorder == "little" else ">"
        caller.memory.write(argument, struct.pack(order + "i", size))
        return 0

    def describe(self) -> bytes:
        """The text that readlink of /proc/self/fd/N shows."""
        return b"socket:[%d]" % self._ino


def make_pair(kind: int, inos: tuple[int, int], flags: int) -> tuple[UnixSocket, UnixSocket]:
    """Two sockets connected to each other."""
    one, other = UnixSocket(kind, inos[0], flags), UnixSocket(kind, inos[1], flags)
    one.peer, other.peer = other, one
    return one, other

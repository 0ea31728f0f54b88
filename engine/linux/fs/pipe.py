"""Pipes and FIFOs."""

import itertools
import stat
import struct

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import InodeNumber, Meta, Stat
from engine.linux.fs.devices import PIPES
from engine.linux.fs.vfs import IoctlCaller, Node, OpenFile, OverlayNode, Volume
from engine.linux.memorylimit import MemoryLimit

EBUSY, EPIPE, ENXIO, ENOTTY = 16, 32, 6, 25

_ATOMIC = 4096
_DEFAULT, _LARGEST = 1 << 16, 1 << 20

FIONREAD = 0x541B


class Pipe:
    """Bytes between writers and readers.

    Attributes:
        data: what was written and not yet read.
        capacity: bytes it holds.
        readers: open descriptions that may read.
        writers: open descriptions that may write.
        ino: its inode number.
        activity: counts reads and writes, for edge-triggered epoll.
        came: counts what may interest readers, and writers.
        opened: how often it was opened for reading and for writing (FIFOs wait for that).
    """

    def __init__(self, ino: int, memory: MemoryLimit) -> None:
        self.data = bytearray()
        self._memory = memory
        self.capacity = _DEFAULT
        self.readers = 0
        self.writers = 0
        self.ino = ino
        self.activity = 0
        self.came = [0, 0]
        self.opened = [0, 0]

    @property
    def room(self) -> int:
        """Bytes that it has room for."""
        return self.capacity - len(self.data)

    def resize(self, size: int) -> None:
        """F_SETPIPE_SZ: rounded up to a power of two of pages."""
        if size > _LARGEST:
            raise LinuxError(1)
        size = max(_ATOMIC, 1 << max(0, size - 1).bit_length())
        if size < len(self.data):
            raise LinuxError(EBUSY)
        self.capacity = size

    def read(self, count: int) -> bytes | None:
        """Take bytes that are there; None while a writer may still send."""
        if not self.data:
            return None if self.writers else b""
        piece = bytes(self.data[:count])
        del self.data[:count]
        self._memory.change(-len(piece))
        self.activity += 1
        self.came[1] += 1
        return piece

    def write(self, data: bytes) -> int | None:
        """Take what fits; up to PIPE_BUF bytes all or nothing.

        Raises:
            LinuxError: EPIPE without readers, ENOMEM beyond the guest's memory.
        """
        if not self.readers:
            raise LinuxError(EPIPE)
        room = self.room
        if room <= 0 or (len(data) <= _ATOMIC and len(data) > room):
            return None
        data = data[:room]
        if len(data) > _ATOMIC:
            data = data[: max(_ATOMIC, self._memory.left)]
        self._memory.take(len(data))
        self.data += data
        self.activity += 1
        self.came[0] += 1
        return len(data)

    def __del__(self) -> None:
        self._memory.change(-len(self.data))


class PipeEnd(OpenFile):
    """A description of a pipe: its read end, its write end, or both (a FIFO)."""

    def __init__(self, pipe: Pipe, flags: int, node: Node | None = None) -> None:
        super().__init__(flags, node)
        self.pipe = pipe
        access = flags & fl.O_ACCMODE
        self._reads = access != fl.O_WRONLY
        self._writes = access != fl.O_RDONLY
        pipe.readers += self._reads
        pipe.writers += self._writes
        pipe.opened[0] += self._reads
        pipe.opened[1] += self._writes
        self._partners = pipe.opened[self._reads]
        # A FIFO that nobody has opened for writing yet has not been hung up.
        self._seen_writer = node is None or pipe.writers > 0
        self._opened = pipe.opened[1]

    def on_close(self) -> None:
        """The last descriptor is gone."""
        self.pipe.readers -= self._reads
        self.pipe.writers -= self._writes
        self.pipe.activity += 1
        if bool(self.pipe.readers) != bool(self.pipe.writers):
            self.pipe.came[:] = (count + 1 for count in self.pipe.came)

    def came(self) -> tuple[int, int]:
        """Counts what came to read, and room to write."""
        to_read, to_write = self.pipe.came
        return to_read if self._reads else 0, to_write if self._writes else 0

    @property
    def activity(self) -> int:
        """Counts what happened, for edge-triggered epoll."""
        return self.pipe.activity

    def met(self) -> bool:
        """True if the other side of a FIFO has been opened since, or is open."""
        if self._reads and self._writes:
            return True
        present = self.pipe.writers if self._reads else self.pipe.readers
        return present > 0 or self.pipe.opened[self._reads] > self._partners

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        return self.pipe.read(count)

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        return self.pipe.write(data)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        pipe, mask = self.pipe, 0
        if self._reads:
            if pipe.data:
                mask |= fl.READABLE
            if not pipe.writers and (self._seen_writer or pipe.opened[1] > self._opened):
                mask |= fl.POLLHUP
        if self._writes:
            if pipe.room >= _ATOMIC:
                mask |= fl.WRITABLE
            if not pipe.readers:
                mask |= fl.POLLERR
        return mask

    def stat(self) -> Stat:
        """Attributes."""
        if self.node is not None:
            return self.node.stat()
        return Stat(
            PIPES, self.pipe.ino, stat.S_IFIFO | 0o600, 1, 1000, 1000, 0, 0, 4096, 0, 0, 0, 0
        )

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """Device control."""
        if request != FIONREAD:
            raise LinuxError(ENOTTY)
        order = "<" if caller.arch.byteorder == "little" else ">"
        caller.memory.write(argument, struct.pack(order + "i", len(self.pipe.data)))
        return 0

    def reopen(self, flags: int) -> OpenFile:
        """A new description of the same object (opening /proc/self/fd/N)."""
        return PipeEnd(self.pipe, flags, self.node)

    def describe(self) -> bytes:
        """The text that readlink of /proc/self/fd/N shows."""
        return super().describe() if self.node is not None else b"pipe:[%d]" % self.pipe.ino


class FifoNode(OverlayNode):
    """A named pipe of the private overlay."""

    __slots__ = ("pipe",)

    kind = stat.S_IFIFO

    def __init__(self, volume: Volume, *, meta: Meta, number: InodeNumber | None = None) -> None:
        super().__init__(volume, meta=meta, number=number)
        self.pipe = Pipe(self.ino, volume.budget.memory)

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        if (
            flags & fl.O_NONBLOCK
            and flags & fl.O_ACCMODE == fl.O_WRONLY
            and self.pipe.readers == 0
        ):
            raise LinuxError(ENXIO)
        return PipeEnd(self.pipe, flags, self)


class Numbers:
    """Inode numbers of anonymous files, counted up per guest."""

    def __init__(self) -> None:
        self._counter = itertools.count(1)

    def next(self) -> int:
        """The next one."""
        return next(self._counter)


def make_pipe(ino: int, memory: MemoryLimit, flags: int = 0) -> tuple[PipeEnd, PipeEnd]:
    """A pipe's (read end, write end); what waits in it counts against a limit."""
    pipe = Pipe(ino, memory)
    return PipeEnd(pipe, fl.O_RDONLY | flags), PipeEnd(pipe, fl.O_WRONLY | flags)

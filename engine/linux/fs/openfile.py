"""Open file descriptions: what a descriptor refers to.

Nothing here blocks: `read` and `write` return None when they would, and the handlers of
system calls turn that into EAGAIN or a `Wait`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl

if TYPE_CHECKING:
    from engine.linux.context import Context
    from engine.linux.fs.directory import Directory
    from engine.linux.fs.host import HostHandle
    from engine.linux.fs.node import Node, Stat

EBADF, ENODEV, ENOTDIR, EINVAL, ENOTTY, ESPIPE = 9, 19, 20, 22, 25, 29


@dataclass(frozen=True, slots=True)
class MmapSource:
    """What a mapping of a file is made from.

    Attributes:
        size: bytes in the file now.
        host_fd: descriptor of a read-only host file that may be mapped privately, else None.
            It stays open as long as this record lives.
        can_map: whether `host_fd` can stand for the contents at this moment.
        read: (offset, size) -> bytes, short at the end of the file.
        write: (offset, data) -> count for MAP_SHARED; None where writing is not possible.
        identity: equal for two mappings of one file (MAP_SHARED, futexes).
    """

    size: int
    host_fd: int | None
    can_map: bool
    read: Callable[[int, int], bytes]
    write: Callable[[int, bytes], int] | None
    identity: object
    keep: "HostHandle | None" = field(default=None, repr=False)


class OpenFile:
    """An open file description, shared by duplicated and inherited descriptors.

    Attributes:
        flags: access mode and status flags, in the values of `fs.flags`.
        offset: file position.
        node: its inode, None for anonymous files (pipes, sockets, epoll).
        references: descriptors that refer to it.
        place: directory and name it was opened by, for /proc/self/fd.
        title: what /proc/self/fd shows of a file without a place.
    """

    is_directory = False
    is_regular = False
    seekable = False
    is_terminal = False
    messages = False
    """Whether one write is one message that must not be cut."""

    def __init__(self, flags: int = fl.O_RDWR, node: "Node | None" = None) -> None:
        self.flags = flags
        self.offset = 0
        self.node = node
        self.references = 0
        self.place: tuple[Directory, bytes] | None = None
        self.title = b"anon_inode:[file]"

    def acquire(self) -> "OpenFile":
        """One more descriptor refers to it."""
        self.references += 1
        return self

    def release(self) -> None:
        """One descriptor fewer; the last one closes it."""
        self.references -= 1
        if self.references == 0:
            self.on_close()

    def on_close(self) -> None:
        """The last descriptor is gone."""

    @property
    def nonblocking(self) -> bool:
        """Whether O_NONBLOCK is set."""
        return bool(self.flags & fl.O_NONBLOCK)

    def check_readable(self) -> None:
        """EBADF unless opened for reading."""
        if self.flags & fl.O_ACCMODE == fl.O_WRONLY:
            raise LinuxError(EBADF)

    def check_writable(self) -> None:
        """EBADF unless opened for writing."""
        if self.flags & fl.O_ACCMODE == fl.O_RDONLY:
            raise LinuxError(EBADF)

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        raise LinuxError(EINVAL)

    def write(self, data: bytes) -> int | None:
        """How many bytes were taken, None if it would block."""
        raise LinuxError(EINVAL)

    def pread(self, count: int, offset: int) -> bytes:
        """Read at an offset."""
        raise LinuxError(ESPIPE)

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at an offset."""
        raise LinuxError(ESPIPE)

    def seek(self, offset: int, whence: int) -> int:
        """Move the file position."""
        raise LinuxError(ESPIPE)

    def stat(self) -> "Stat":
        """Attributes."""
        if self.node is None:
            raise NotImplementedError
        return self.node.stat()

    def truncate(self, size: int) -> None:
        """Set the size."""
        raise LinuxError(EINVAL)

    def allocate(self, mode: int, offset: int, length: int) -> None:
        """Reserve, extend or punch as fallocate says."""
        raise LinuxError(ENODEV)

    def sync(self) -> None:
        """Write to the disk what fsync would."""
        raise LinuxError(EINVAL)

    def readdir(self) -> list[tuple[bytes, int, int]]:
        """(name, inode number, S_IFMT type) of a directory, taken when reading starts."""
        raise LinuxError(ENOTDIR)

    def ioctl(self, ctx: "Context", request: int, argument: int) -> int:
        """Device control."""
        raise LinuxError(ENOTTY)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        return fl.READABLE | fl.WRITABLE

    def wait_fds(self, events: int) -> tuple[tuple[int, int], ...]:
        """Host descriptors whose readiness may change `readiness`, for `Wait.host_fds`."""
        return ()

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return 0

    def next_deadline(self) -> int | None:
        """Guest time (monotonic) at which `readiness` changes by itself: a timerfd."""
        return None

    def host_fd(self) -> int | None:
        """The host descriptor behind it, if there is exactly one."""
        return None

    def mmap_source(self) -> MmapSource:
        """What a mapping is made from; ENODEV if it cannot be mapped."""
        raise LinuxError(ENODEV)

    def reopen(self, flags: int) -> "OpenFile":
        """A new description of the same object (opening /proc/self/fd/N)."""
        if self.node is None:
            raise LinuxError(6)
        return self.node.open(flags)

    def describe(self) -> bytes:
        """What readlink of /proc/self/fd/N shows."""
        if self.place is None:
            return self.title
        directory, name = self.place
        path = directory.path_of(name)
        try:
            gone = directory.lookup(name) is not self.node if name else False
        except LinuxError:
            gone = True
        return path + b" (deleted)" if gone else path


class PathFile(OpenFile):
    """O_PATH: a place in the tree, not its contents."""

    def __init__(self, node: "Node", flags: int) -> None:
        super().__init__(flags, node)
        self.is_directory = node.is_directory

    def check_readable(self) -> None:
        """EBADF unless opened for reading."""
        raise LinuxError(EBADF)

    def check_writable(self) -> None:
        """EBADF unless opened for writing."""
        raise LinuxError(EBADF)

    def seek(self, offset: int, whence: int) -> int:
        """Move the file position."""
        raise LinuxError(EBADF)

    def readdir(self) -> list[tuple[bytes, int, int]]:
        """(name, inode number, S_IFMT type) of a directory, taken when reading starts."""
        raise LinuxError(EBADF)

    def truncate(self, size: int) -> None:
        """Set the size."""
        raise LinuxError(EBADF)

    def sync(self) -> None:
        """Write to the disk what fsync would."""
        raise LinuxError(EBADF)

    def ioctl(self, ctx: "Context", request: int, argument: int) -> int:
        """Device control."""
        raise LinuxError(EBADF)

    def mmap_source(self) -> MmapSource:
        """What a mapping is made from; ENODEV if it cannot be mapped."""
        raise LinuxError(EBADF)


class SeekableFile(OpenFile):
    """A file with a position: reading and writing are pread and pwrite there."""

    seekable = True

    def size(self) -> int:
        """Current size in bytes."""
        return self.stat().size

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        data = self.pread(count, self.offset)
        self.offset += len(data)
        return data

    def write(self, data: bytes) -> int | None:
        """How many bytes were taken, None if it would block."""
        if self.flags & fl.O_APPEND:
            self.offset = self.size()
        count = self.pwrite(data, self.offset)
        self.offset += count
        return count

    def seek(self, offset: int, whence: int) -> int:
        """Move the file position."""
        if whence == 1:
            offset += self.offset
        elif whence == 2:
            offset += self.size()
        elif whence in (3, 4):
            # SEEK_DATA and SEEK_HOLE: all of the file is data, as the simplest of
            # file systems answer.
            size = self.size()
            if not 0 <= offset < size:
                raise LinuxError(6)
            offset = offset if whence == 3 else size
        elif whence != 0:
            raise LinuxError(EINVAL)
        if offset < 0:
            raise LinuxError(EINVAL)
        if offset >= 1 << 63:
            raise LinuxError(75)
        self.offset = offset
        return offset

    def sync(self) -> None:
        """Write to the disk what fsync would."""

"""Kinds of open files that others build on: with a position, and of a place only (O_PATH)."""

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.data import MmapSource
from engine.linux.fs.vfs import IoctlCaller, Node, OpenFile

EBADF, EINVAL = 9, 22


class PathFile(OpenFile):
    """O_PATH: a place in the tree, not its contents."""

    def __init__(self, node: Node, flags: int) -> None:
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

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """Device control."""
        raise LinuxError(EBADF)

    def mmap_source(self) -> MmapSource:
        """The source of a mapping; ENODEV if it cannot be mapped."""
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
        """Take bytes: their number, None if it would block."""
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
        if not 0 <= offset < 1 << 63:
            raise LinuxError(EINVAL)  # what is too large has wrapped around (vfs_setpos)
        self.offset = offset
        return offset

    def sync(self) -> None:
        """Write to the disk what fsync would."""

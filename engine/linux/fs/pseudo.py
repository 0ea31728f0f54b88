"""Building blocks of /proc, /sys and /dev: directories and files made of functions."""

import stat
from collections.abc import Callable

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import Meta, Stat
from engine.linux.fs.links import SymlinkNode
from engine.linux.fs.openfile import SeekableFile
from engine.linux.fs.vfs import Directory, Listing, Node, OpenFile, Volume

EPERM, EIO, EACCES = 1, 5, 13

Content = Callable[[], bytes]
Store = Callable[[bytes], None]


class PseudoDirectory(Directory):
    """A directory that the guest cannot change; its entries are its mounts."""

    def __init__(self, volume: Volume, mode: int = 0o555, owner: tuple[int, int] = (0, 0)) -> None:
        super().__init__(volume, meta=Meta(mode, *owner, 2, volume.clock.realtime()))

    def lookup(self, name: bytes) -> Node | None:
        """The entry of that name, None if there is none."""
        return self.mounts.get(name)

    def listing(self) -> Listing:
        """All entries but . and .., sorted by name."""
        return [(name, node.ino, node.kind) for name, node in sorted(self.mounts.items())]

    def change_mode(self, mode: int) -> None:
        """Set the permission bits."""
        raise LinuxError(EPERM)

    def change_owner(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one alone."""
        raise LinuxError(EPERM)

    def change_times(self, atime: int | None, mtime: int | None) -> None:
        """Set times in nanoseconds; None leaves one alone."""
        raise LinuxError(EPERM)


class StaticLink(SymlinkNode):
    """A symlink with a fixed target."""

    __slots__ = ()

    def __init__(self, volume: Volume, target: bytes) -> None:
        super().__init__(volume, target, meta=Meta(0o777, 0, 0, 1, volume.clock.realtime()))


class PseudoFile(Node):
    """A file whose contents are made when reading starts."""

    __slots__ = ("content", "mode", "store")

    kind = stat.S_IFREG

    def __init__(
        self, volume: Volume, content: Content, store: Store | None = None, mode: int = 0
    ) -> None:
        super().__init__(volume)
        self.content = content
        self.store = store
        self.mode = mode or (0o444 if store is None else 0o644)

    def stat(self) -> Stat:
        """The file's attributes."""
        identity = self.volume.identity
        private = self.store is not None or not self.mode & 0o004
        uid, gid = (identity.uid, identity.gid) if private else (0, 0)
        now = self.volume.clock.realtime()
        return Stat(
            self.dev,
            self.ino,
            self.kind | self.mode,
            1,
            uid,
            gid,
            0,
            0,
            1024,
            0,
            now,
            now,
            now,
        )

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        return PseudoOpenFile(self, flags)

    def truncate(self, size: int) -> None:
        """Set the size of a regular file."""


class ForeignFile(PseudoFile):
    """A file about what is root's alone: shown, but nobody else may have it.

    Opening it is refused where its mode would allow it, too (ptrace_may_access).
    """

    __slots__ = ()

    def __init__(self, volume: Volume, mode: int = 0o444) -> None:
        super().__init__(volume, lambda: b"", None, mode)

    def stat(self) -> Stat:
        """The file's attributes."""
        return super().stat()._replace(uid=0, gid=0)

    def open(self, flags: int) -> OpenFile:
        """Refused."""
        raise LinuxError(EACCES)


class PseudoOpenFile(SeekableFile):
    """An open file of /proc: the contents as they were at the first read from the start."""

    is_regular = True

    def __init__(self, node: PseudoFile, flags: int) -> None:
        super().__init__(flags, node)
        self._file = node
        self._text: bytes | None = None

    def pread(self, count: int, offset: int) -> bytes:
        """Read at an offset."""
        if self._text is None or offset == 0:
            self._text = self._file.content()
        return self._text[offset : offset + count]

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at an offset."""
        if self._file.store is None:
            raise LinuxError(EIO)
        self._file.store(data)
        return len(data)

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        count = self.pwrite(data, self.offset)
        self.offset += count
        return count

    def truncate(self, size: int) -> None:
        """Set the size."""
        if self.flags & fl.O_ACCMODE == fl.O_RDONLY:
            raise LinuxError(22)

"""Namespaces as /proc shows them: everybody is in the first ones (fs/nsfs.c)."""

import stat
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.fs.attributes import InodeNumber, Stat
from engine.linux.fs.devices import NAMESPACES
from engine.linux.fs.openfile import SeekableFile
from engine.linux.fs.vfs import Node, OpenFile, Volume

EINVAL: Final = 22
_NUMBERS: Final = {
    b"ipc": 0xEFFFFFFF,
    b"uts": 0xEFFFFFFE,
    b"user": 0xEFFFFFFD,
    b"pid": 0xEFFFFFFC,
    b"cgroup": 0xEFFFFFFB,
    b"time": 0xEFFFFFFA,
    b"net": 0xF0000000,
    b"mnt": 0xF0000001,
}
"""Inode numbers: those of linux/proc_ns.h, and of the two that have none there."""
_FLAGS: Final = {
    b"ipc": 0x08000000,
    b"uts": 0x04000000,
    b"user": 0x10000000,
    b"pid": 0x20000000,
    b"cgroup": 0x02000000,
    b"time": 0x80,
    b"net": 0x40000000,
    b"mnt": 0x00020000,
}
NAMES: Final = {
    **{name: name for name in _NUMBERS},
    b"pid_for_children": b"pid",
    b"time_for_children": b"time",
}
"""Entries of /proc/PID/ns, with the kind that each is of."""


class Namespace(Node):
    """A namespace; it can be opened, and told from others by its inode number."""

    __slots__ = ("title",)

    kind = stat.S_IFREG

    def __init__(self, volume: Volume, kind: bytes) -> None:
        number = _NUMBERS[kind]
        super().__init__(volume, InodeNumber(NAMESPACES, number))
        self.title = b"%s:[%d]" % (kind, number)

    def stat(self) -> Stat:
        """The namespace's attributes."""
        now = self.volume.clock.realtime()
        mode = self.kind | 0o444
        return Stat(self.dev, self.ino, mode, 1, 0, 0, 0, 0, 4096, 0, now, now, now)

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        return NamespaceFile(self, flags)


class NamespaceFile(SeekableFile):
    """An open namespace: there is nothing to read in it.

    Attributes:
        flag: CLONE_NEW*, which tells its kind.
    """

    def __init__(self, node: Namespace, flags: int) -> None:
        super().__init__(flags, node)
        self.title = node.title
        self.flag = _FLAGS[node.title.partition(b":")[0]]

    def pread(self, count: int, offset: int) -> bytes:
        """Refused."""
        raise LinuxError(EINVAL)

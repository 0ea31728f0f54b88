"""/dev/ptmx and /dev/pts: pseudo-terminals by name (fs/devpts/inode.c)."""

import errno
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import Meta
from engine.linux.fs.devicenode import DeviceNode
from engine.linux.fs.procsource import ProcSource
from engine.linux.fs.pseudo import PseudoDirectory
from engine.linux.fs.pty import MasterFile, Pty
from engine.linux.fs.vfs import Listing, Node, OpenFile, Volume

_MOST: Final = 255
"""Pseudo-terminals at a time: numbers 1 to 255 (Linux: kernel.pty.max)."""
_TTY_GROUP: Final = 5
"""Slaves belong to the group tty (mount option gid=5)."""
_FIRST_INODE: Final = 3


class PtsNode(DeviceNode):
    """/dev/pts/N: its owner may change its mode, as mesg does."""

    __slots__ = ()

    def change_mode(self, mode: int) -> None:
        """Set the permission bits."""
        self.meta.mode = mode & 0o7777

    def change_owner(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one alone."""
        self.meta.uid = self.meta.uid if uid < 0 else uid
        self.meta.gid = self.meta.gid if gid < 0 else gid

    def change_times(self, atime: int | None, mtime: int | None) -> None:
        """Set times in nanoseconds; None leaves one alone."""
        self.meta.mtime = self.meta.mtime if mtime is None else mtime


class PtyDirectory(PseudoDirectory):
    """/dev/pts: a name for each pseudo-terminal whose master is open, 0 for the host's."""

    def __init__(self, volume: Volume, proc: ProcSource) -> None:
        super().__init__(volume, 0o755)
        self._proc = proc
        self._outer = PtsNode(volume, 136, 0, self._open_outer)
        self._outer.ino = _FIRST_INODE
        self._outer.meta = self._new_meta()
        ptmx = DeviceNode(volume, 5, 2, self.new)
        ptmx.ino = 2
        self.mount(b"ptmx", ptmx)

    def _new_meta(self) -> Meta:
        return Meta(0o620, self.volume.identity.uid, _TTY_GROUP, 1, self.volume.clock.realtime())

    def lookup(self, name: bytes) -> Node | None:
        """The entry of that name, None if there is none."""
        if name == b"0":
            return self._outer if self._outer_file() is not None else None
        return super().lookup(name)

    def listing(self) -> Listing:
        """All entries but . and .., sorted by name."""
        found = super().listing()
        if self._outer_file() is not None:
            found.append((b"0", self._outer.ino, self._outer.kind))
        return sorted(found)

    def _outer_file(self) -> OpenFile | None:
        """A standard stream that is a terminal of the host's."""
        process = self._proc.process(self._proc.current_pid())
        for fd in (0, 1, 2):
            file = process.files.peek(fd) if process is not None else None
            if file is not None and file.is_terminal and file.node is None:
                return file
        return None

    def _open_outer(self, node: Node, flags: int) -> OpenFile:
        file = self._outer_file()
        if file is None:
            raise LinuxError(errno.EIO)
        return file.reopen(flags & ~fl.O_TRUNC)

    def new(self, node: Node, flags: int) -> OpenFile:
        """Open /dev/ptmx: a master with a slave of its own."""
        number = 1
        while b"%d" % number in self.mounts:
            number += 1
        if number > _MOST:
            raise LinuxError(errno.ENOSPC)

        def opened(_: Node, flags: int) -> OpenFile:
            return pty.open_slave(flags)

        slave = PtsNode(self.volume, 136, number, opened)
        slave.ino = _FIRST_INODE + number
        slave.meta = self._new_meta()
        pty = Pty(number, self._proc.jobs, self.volume.clock, slave)
        pty.gone = lambda: self.mounts.pop(b"%d" % number, None)
        self.mount(b"%d" % number, slave)
        return MasterFile(pty, flags, node)

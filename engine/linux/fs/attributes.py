"""Attributes of files: what stat shows, who owns them, and where the host has them."""

import os
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.linux.errno import LinuxError
from engine.linux.fs.host import HostDir

NOW: Final = -(1 << 80)
"""For a time to be set: the present, by the clock of the file's own system."""
MAY_EXEC, MAY_WRITE, MAY_READ = 1, 2, 4


class Stat(NamedTuple):
    """Attributes as the guest sees them; times in nanoseconds."""

    dev: int
    ino: int
    mode: int
    nlink: int
    uid: int
    gid: int
    rdev: int
    size: int
    blksize: int
    blocks: int
    atime: int
    mtime: int
    ctime: int


class Meta:
    """Attributes that the guest has changed or made itself."""

    __slots__ = ("atime", "ctime", "gid", "mode", "mtime", "nlink", "uid")

    def __init__(self, mode: int, uid: int, gid: int, nlink: int, now: int) -> None:
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.nlink = nlink
        self.atime = self.mtime = self.ctime = now


class InodeNumber(NamedTuple):
    """Device and inode number of a file: the host's own where it is a host file.

    Attributes:
        dev: the device, as stat shows it.
        ino: the inode number on it.
    """

    dev: int
    ino: int

    @classmethod
    def of(cls, host: os.stat_result) -> "InodeNumber":
        """The numbers of a host file."""
        return cls(host.st_dev, host.st_ino)


class Identity:
    """The guest's user, and the owners of files as that user sees them.

    Attributes:
        uid: its user.
        gid: its group.
        groups: all of its groups.
        own: it is the user who runs the tool, so that all owners are shown as they are.
        plain: owners of files are shown as they are even so; those of directories are not.
    """

    __slots__ = ("_host_groups", "_host_uid", "gid", "groups", "own", "plain", "uid")

    def __init__(
        self,
        host: tuple[int, Sequence[int]],
        uid: int | None = None,
        gid: int | None = None,
        *,
        plain: bool = False,
    ) -> None:
        """Make one.

        Args:
            host: the user who runs the tool; its group, then its other groups.
            uid: the guest's user, as whose the files of the tool's user count; None if it is that
                very user.
            gid: likewise its group.
            plain: see above.
        """
        self._host_uid, groups = host
        self._host_groups = frozenset(groups)
        self.own = uid is None or gid is None
        self.plain = plain
        self.uid = self._host_uid if uid is None else uid
        self.gid = next(iter(groups), 0) if gid is None else gid
        self.groups = tuple(groups) if self.own else (self.gid,)

    def owner(self, uid: int, gid: int, *, directory: bool) -> tuple[int, int]:
        """Owner shown for a host file.

        The host's if the guest is the tool's user; else the guest for files of that user, and root
        for all others.
        """
        if self.own or (self.plain and not directory):
            return uid, gid
        return (
            self.uid if uid == self._host_uid else 0,
            self.gid if gid in self._host_groups else 0,
        )

    def counted(self, uid: int, gid: int) -> tuple[int, int]:
        """Owner that counts for what the guest may do with a host file, by the one shown."""
        if self.own or not self.plain:
            return uid, gid
        return (
            self.uid if uid == self._host_uid else uid,
            self.gid if gid in self._host_groups else gid,
        )

    def may(self, mode: int, uid: int, gid: int, want: int) -> bool:
        """True if permission bits allow MAY_READ | MAY_WRITE | MAY_EXEC."""
        if self.uid == 0:
            return want != MAY_EXEC or stat.S_ISDIR(mode) or bool(mode & 0o111)
        if uid == self.uid:
            bits = mode >> 6
        elif gid in self.groups:
            bits = mode >> 3
        else:
            bits = mode
        return bits & want == want


class LowerRef(NamedTuple):
    """A file of the host: the directory it is in and its name there."""

    directory: HostDir
    name: bytes

    def stat(self) -> os.stat_result:
        """Attributes on the host; the guest's errno if it is gone."""
        try:
            return self.directory.lstat(self.name)
        except OSError as error:
            raise LinuxError(error.errno or 5) from error

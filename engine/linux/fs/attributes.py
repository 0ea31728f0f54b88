"""Attributes of files: what stat shows, who owns them, and where the host has them."""

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from engine.linux.errno import LinuxError
from engine.linux.fs.host import HostDir

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


class Identity:
    """Who the guest is, and who owns what in its eyes."""

    __slots__ = ("_groups", "_host_uid", "gid", "uid")

    def __init__(self, uid: int, gid: int, owners: tuple[int, Sequence[int]]) -> None:
        self.uid = uid
        self.gid = gid
        self._host_uid, groups = owners
        self._groups = frozenset(groups)

    def owner(self, uid: int, gid: int) -> tuple[int, int]:
        """Owner shown for a host file: the guest for its own user's files, else root."""
        return (
            self.uid if uid == self._host_uid else 0,
            self.gid if gid in self._groups else 0,
        )

    def may(self, mode: int, uid: int, gid: int, want: int) -> bool:
        """True if permission bits allow MAY_READ | MAY_WRITE | MAY_EXEC."""
        if self.uid == 0:
            return want != MAY_EXEC or stat.S_ISDIR(mode) or bool(mode & 0o111)
        if uid == self.uid:
            bits = mode >> 6
        elif gid == self.gid:
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

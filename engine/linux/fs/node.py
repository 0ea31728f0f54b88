"""What an inode is: attributes, volumes, the guest's identity."""

import itertools
import os
import stat
import weakref
from typing import TYPE_CHECKING, NamedTuple

from engine.linux.context import Clock
from engine.linux.errno import LinuxError
from engine.linux.fs.data import Budget

if TYPE_CHECKING:
    from engine.linux.fs.directory import Directory
    from engine.linux.fs.host import HostDir
    from engine.linux.fs.openfile import OpenFile

EPERM, ENXIO = 1, 6

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

    def __init__(self, uid: int, gid: int) -> None:
        self.uid = uid
        self.gid = gid
        self._host_uid = os.geteuid()
        self._groups = {os.getegid(), *os.getgroups()}

    def owner(self, uid: int, gid: int) -> tuple[int, int]:
        """Owner shown for a host file: the guest for its own user's files, else root."""
        return (
            self.uid if uid == self._host_uid else 0,
            self.gid if gid in self._groups else 0,
        )

    def may(self, mode: int, uid: int, gid: int, want: int) -> bool:
        """Whether permission bits allow MAY_READ | MAY_WRITE | MAY_EXEC."""
        if self.uid == 0:
            return want != MAY_EXEC or stat.S_ISDIR(mode) or bool(mode & 0o111)
        if uid == self.uid:
            bits = mode >> 6
        elif gid == self.gid:
            bits = mode >> 3
        else:
            bits = mode
        return bits & want == want


class Volume:
    """One device number: inode numbers, time, space, identity.

    Host inodes get their guest number when first seen, so numbers depend on what the
    guest does and not on the host's disk.
    """

    def __init__(
        self, dev: int, identity: Identity, clock: Clock, budget: Budget, *, writable: bool = True
    ) -> None:
        self.dev = dev
        self.identity = identity
        self.clock = clock
        self.budget = budget
        self.writable = writable
        self._numbers: dict[tuple[int, int], int] = {}
        self._counter = itertools.count(2)
        # Host files that the guest changed: other names of them must lead to the same node.
        self.changed: set[Node] = set()
        self.nodes: weakref.WeakValueDictionary[tuple[int, int], Node] = (
            weakref.WeakValueDictionary()
        )

    def new_ino(self) -> int:
        """A number for an inode that is not the host's."""
        return next(self._counter)

    def host_ino(self, dev: int, ino: int) -> int:
        """The guest's number of a host inode."""
        number = self._numbers.get((dev, ino))
        if number is None:
            number = self._numbers[dev, ino] = next(self._counter)
        return number

    def host_stat(self, host: os.stat_result) -> Stat:
        """Attributes of a host file as the guest sees them."""
        uid, gid = self.identity.owner(host.st_uid, host.st_gid)
        return Stat(
            self.dev,
            self.host_ino(host.st_dev, host.st_ino),
            host.st_mode,
            host.st_nlink,
            uid,
            gid,
            0,
            host.st_size,
            4096,
            host.st_blocks,
            host.st_atime_ns,
            host.st_mtime_ns,
            host.st_ctime_ns,
        )

    def new_meta(self, mode: int, nlink: int = 1) -> Meta:
        """Attributes of something the guest makes now."""
        who = self.identity
        return Meta(mode, who.uid, who.gid, nlink, self.clock.realtime())


class LowerRef(NamedTuple):
    """A file of the host: the directory it is in and its name there."""

    directory: "HostDir"
    name: bytes

    def stat(self) -> os.stat_result:
        """Attributes on the host; the guest's errno if it is gone."""
        try:
            return self.directory.lstat(self.name)
        except OSError as error:
            raise LinuxError(error.errno or 5) from error


class Node:
    """An inode. `kind` is its S_IFMT part."""

    __slots__ = ("__weakref__", "ino", "volume")

    kind = 0
    is_directory = False
    is_symlink = False

    def __init__(self, volume: Volume, ino: int | None = None) -> None:
        self.volume = volume
        self.ino = volume.new_ino() if ino is None else ino

    def stat(self) -> Stat:
        """Its attributes."""
        raise NotImplementedError

    def open(self, flags: int) -> "OpenFile":
        """A new open file description; permissions were checked."""
        raise LinuxError(ENXIO)

    def truncate(self, size: int) -> None:
        """Set the size of a regular file."""
        raise LinuxError(22)

    def change_mode(self, mode: int) -> None:
        """Set the permission bits."""
        raise LinuxError(EPERM)

    def change_owner(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one alone."""
        raise LinuxError(EPERM)

    def change_times(self, atime: int | None, mtime: int | None) -> None:
        """Set times in nanoseconds; None leaves one alone."""
        raise LinuxError(EPERM)

    def renamed(self) -> None:
        """It has another name now."""

    def may(self, want: int) -> bool:
        """Whether the guest's identity has the permission bits."""
        st = self.stat()
        return self.volume.identity.may(st.mode, st.uid, st.gid, want)


class OverlayNode(Node):
    """A node of the private tree: the host's until something changes, then ours.

    Attributes:
        lower: the host's file, None for what the guest made.
        meta: changed attributes, None as long as the host's hold.
        home: directory entry that keeps a changed node alive and in place.
    """

    __slots__ = ("home", "lower", "meta")

    def __init__(
        self,
        volume: Volume,
        *,
        meta: Meta | None = None,
        lower: LowerRef | None = None,
        ino: int | None = None,
        home: "tuple[Directory, bytes] | None" = None,
    ) -> None:
        super().__init__(volume, ino)
        self.meta = meta
        self.lower = lower
        self.home = home

    def stat(self) -> Stat:
        """Its attributes."""
        meta = self.meta
        if meta is None:
            return self.volume.host_stat(self.host_stat())
        size, blocks = self.extent()
        return Stat(
            self.volume.dev,
            self.ino,
            self.kind | meta.mode,
            meta.nlink,
            meta.uid,
            meta.gid,
            0,
            size,
            4096,
            blocks,
            meta.atime,
            meta.mtime,
            meta.ctime,
        )

    def host_stat(self) -> os.stat_result:
        """Attributes on the host."""
        assert self.lower is not None, "a node without a host file has attributes of its own"
        return self.lower.stat()

    def extent(self) -> tuple[int, int]:
        """Size and 512-byte blocks of a node with attributes of its own."""
        return 0, 0

    def own_meta(self) -> Meta:
        """Attributes to change: copied from the host's the first time."""
        meta = self.meta
        if meta is None:
            st = self.volume.host_stat(self.host_stat())
            meta = Meta(stat.S_IMODE(st.mode), st.uid, st.gid, st.nlink, 0)
            meta.atime, meta.mtime, meta.ctime = st.atime, st.mtime, st.ctime
            self.meta = meta
            self.settle()
        return meta

    def settle(self) -> None:
        """Keep the changed node in its directory, even if the host replaces its file."""
        if self.lower is not None:
            self.volume.changed.add(self)
        if self.home is not None:
            directory, name = self.home
            directory.pin(name, self)

    def touch(self) -> None:
        """Contents changed now."""
        meta = self.own_meta()
        meta.mtime = meta.ctime = self.volume.clock.realtime()

    def renamed(self) -> None:
        """It has another name now."""
        self.own_meta().ctime = self.volume.clock.realtime()

    def change_mode(self, mode: int) -> None:
        """Set the permission bits."""
        meta = self.own_meta()
        meta.mode = mode & 0o7777
        meta.ctime = self.volume.clock.realtime()

    def change_owner(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one alone."""
        meta = self.own_meta()
        meta.uid = meta.uid if uid < 0 else uid
        meta.gid = meta.gid if gid < 0 else gid
        if self.kind == stat.S_IFREG:
            meta.mode &= ~0o6000
        meta.ctime = self.volume.clock.realtime()

    def change_times(self, atime: int | None, mtime: int | None) -> None:
        """Set times in nanoseconds; None leaves one alone."""
        meta = self.own_meta()
        meta.atime = meta.atime if atime is None else atime
        meta.mtime = meta.mtime if mtime is None else mtime
        meta.ctime = self.volume.clock.realtime()

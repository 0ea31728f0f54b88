"""The objects of the virtual file system: volumes, inodes, open files, directories.

They refer to each other, as in Linux (include/linux/fs.h); what they are made of stands in
`attributes` and `data`, kinds of them in files of their own. Nothing here blocks: `read` and
`write` return None when they would, and the handlers of system calls turn that into EAGAIN or
a `Wait`.
"""

import itertools
import os
import stat
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from engine.arch.base import Arch
from engine.guest.memory import Memory
from engine.linux.clock import Clock
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import MAY_EXEC, NOW, Identity, InodeNumber, LowerRef, Meta, Stat
from engine.linux.fs.data import Budget, MmapSource
from engine.linux.fs.fsnotify import Watches
from engine.linux.fs.host import PlantedLinks
from engine.linux.fs.locks import InodeLocks
from engine.linux.fs.signalled import FileOwner
from engine.linux.fs.terminal import Terminal
from engine.linux.fs.xattrs import AttributeSet

EPERM, ENOENT, ENXIO, EBADF, EACCES, ENODEV, ENOTDIR = 1, 2, 6, 9, 13, 19, 20
EISDIR, EINVAL, ENOTTY, ESPIPE = 21, 22, 25, 29

FIRST_INODE: Final = 1 << 52
"""The guest's inodes beside host files begin here: beyond a disk's numbers, exact as a double."""

Listing = list[tuple[bytes, int, int]]
"""(name, inode number, S_IFMT type) of a directory's entries."""


class Volume:
    """A kind of files, with the numbers, time, space and identity that they share.

    Attributes:
        dev: device number of what is not the host's.
        watches: who wants to hear of changes.
        links: symlinks that the guest has made on the host.
        accessed: gives the time of the last access that a host file is shown with, by its device,
            its number, and the host's time.
        beyond: gives what is at a name of a directory where the tree has nothing; None for nobody.
        foreign: all host files are shown as root's, whoever runs the tool: the guest may do
            with them what the permission bits allow others.
    """

    def __init__(
        self,
        dev: int,
        identity: Identity,
        clock: Clock,
        budget: Budget,
        *,
        writable: bool = True,
        foreign: bool = False,
        links: PlantedLinks | None = None,
        watches: Watches | None = None,
        inodes: Iterator[int] | None = None,
    ) -> None:
        self.dev = dev
        self.watches = Watches() if watches is None else watches
        self.links = PlantedLinks() if links is None else links
        self.identity = identity
        self.clock = clock
        self.budget = budget
        self.writable = writable
        self.foreign = foreign
        self.accessed: Callable[[int, int, int], int] = lambda device, number, time: time
        self.beyond: Callable[[Directory, bytes], Node | None] | None = None
        self._counter = itertools.count(2) if inodes is None else inodes
        # Host files that the guest changed: other names of them must lead to the same node.
        self.changed: set[Node] = set()
        self.nodes: weakref.WeakValueDictionary[tuple[int, int], Node] = (
            weakref.WeakValueDictionary()
        )

    def new_ino(self) -> int:
        """An inode number that no file of the host has."""
        return next(self._counter)

    def host_stat(self, host: os.stat_result) -> Stat:
        """Attributes of a host file as the guest sees them."""
        uid, gid = 0, 0
        if not self.foreign:
            directory = stat.S_ISDIR(host.st_mode)
            uid, gid = self.identity.owner(host.st_uid, host.st_gid, directory=directory)
        shown = self.clock.file_time
        return Stat(
            host.st_dev,
            host.st_ino,
            host.st_mode,
            host.st_nlink,
            uid,
            gid,
            0,
            host.st_size,
            4096,
            host.st_blocks,
            shown(self.accessed(host.st_dev, host.st_ino, host.st_atime_ns)),
            shown(host.st_mtime_ns),
            shown(host.st_ctime_ns),
        )

    def new_meta(self, mode: int, nlink: int = 1) -> Meta:
        """Attributes of something the guest makes now."""
        who = self.identity
        return Meta(mode, who.uid, who.gid, nlink, self.clock.realtime())


class Sleeper(Protocol):
    """Whoever waits for a file."""

    def wake(self) -> None:
        """Something has happened that may end its wait."""


class IoctlCaller(Protocol):
    """The process that makes a call, as device control sees it."""

    @property
    def arch(self) -> Arch:
        """The caller's architecture."""

    @property
    def memory(self) -> Memory:
        """The caller's memory."""

    @property
    def pid(self) -> int:
        """The caller's process id."""


class Node:
    """An inode. `kind` is its S_IFMT part, `locks` are those on it, None until there were some.

    It is abstract without ABCMeta, whose isinstance is slow where paths are walked.
    """

    __slots__ = ("__weakref__", "dev", "ino", "locks", "volume")

    kind = 0
    is_directory = False
    is_symlink = False

    def __init__(self, volume: Volume, number: InodeNumber | None = None) -> None:
        self.volume = volume
        self.dev, self.ino = (volume.dev, volume.new_ino()) if number is None else number
        self.locks: InodeLocks | None = None

    @property
    def made_here(self) -> bool:
        """True if the guest has made it, or the engine for the guest: there is no host file."""
        return True

    def owned(self, st: Stat | None = None) -> bool:
        """True if the guest may do what only its owner, and root, may; `st` if it is known."""
        who = self.volume.identity
        return who.uid in (0, self._counted(self.stat() if st is None else st)[0])

    def _counted(self, st: Stat) -> tuple[int, int]:
        """Owner that counts for what the guest may do."""
        if self.made_here or self.volume.foreign:
            return st.uid, st.gid
        return self.volume.identity.counted(st.uid, st.gid)

    @abstractmethod
    def stat(self) -> Stat:
        """The node's attributes."""

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
        """Set times in nanoseconds, or to `NOW`; None leaves one alone."""
        raise LinuxError(EPERM)

    def renamed(self) -> None:
        """Take note that the node has another name now."""

    def may(self, want: int) -> bool:
        """True if the guest's identity has the permission bits."""
        st = self.stat()
        return self.volume.identity.may(st.mode, *self._counted(st), want)


class OverlayNode(Node):
    """A node of the private tree: the host's until something changes, then ours.

    Attributes:
        lower: the host's file, None for what the guest made.
        meta: changed attributes, None as long as the host's hold.
        home: directory entry that keeps a changed node alive and in place.
        xattrs: extended attributes that the guest has set, None as long as there are none.
        links: names beside the first that the guest has made; each takes an inode, as in tmpfs.
    """

    __slots__ = ("home", "links", "lower", "meta", "xattrs")

    def __init__(
        self,
        volume: Volume,
        *,
        meta: Meta | None = None,
        lower: LowerRef | None = None,
        number: InodeNumber | None = None,
        home: "tuple[Directory, bytes] | None" = None,
    ) -> None:
        super().__init__(volume, number)
        self.meta = meta
        self.lower = lower
        self.home = home
        self.xattrs: AttributeSet | None = None
        self.links = 0

    def stat(self) -> Stat:
        """The node's attributes."""
        meta = self.meta
        if meta is None:
            return self.volume.host_stat(self.host_stat())
        size, blocks = self.extent()
        return Stat(
            self.dev,
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

    @property
    def made_here(self) -> bool:
        """True if the guest has made it, or the engine for the guest: there is no host file."""
        return self.lower is None

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
        """Take note that the node has another name now."""
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
        """Set times in nanoseconds, or to `NOW`; None leaves one alone."""
        meta, now = self.own_meta(), self.volume.clock.realtime()
        if atime is not None:
            meta.atime = now if atime == NOW else atime
        if mtime is not None:
            meta.mtime = now if mtime == NOW else mtime
        meta.ctime = now


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
    terminal: Terminal | None = None
    """The terminal that it is, as job control sees it."""
    messages = False
    """True if one write is one message that must not be cut."""
    least = 0
    """Bytes that a read or a write needs room for, even before its memory is looked at."""
    timed = False
    """True if it may become readable by time alone, at `next_deadline`."""
    sleepers: dict[Sleeper, None] | None = None
    """Threads that wait to read, of a file that wakes them; others are asked again and again."""
    breaks = True
    """True if SIGPIPE comes with EPIPE."""
    listener: FileOwner | None = None
    """Who gets its signals (F_SETOWN)."""
    locks: InodeLocks | None = None
    """The locks on it where it has no node."""

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

    def unlock(self, owner: object) -> None:
        """Give up all locks on its inode that belong to somebody."""
        locks = self.locks if self.node is None else self.node.locks
        if locks is not None:
            locks.closed(owner)

    def release(self) -> None:
        """One descriptor fewer; the last one closes it."""
        self.references -= 1
        if self.references == 0:
            self.unlock(self)
            self.on_close()
            node = self.node
            if node is not None and node.volume.watches.by_inode and not self.flags & fl.O_PATH:
                node.volume.watches.closed(self)

    def on_close(self) -> None:
        """The last descriptor is gone."""

    @property
    def outside(self) -> bool:
        """True if the host's user may make it readable at any time, by a signal."""
        return False

    @property
    def nonblocking(self) -> bool:
        """True if O_NONBLOCK is set."""
        return bool(self.flags & fl.O_NONBLOCK)

    def check_readable(self) -> None:
        """EBADF unless opened for reading."""
        if self.flags & fl.O_ACCMODE == fl.O_WRONLY:
            raise LinuxError(EBADF)

    def check_writable(self) -> None:
        """EBADF unless opened for writing."""
        if self.flags & fl.O_ACCMODE == fl.O_RDONLY:
            raise LinuxError(EBADF)

    def start_reading(self) -> None:
        """A read begins of a file that is `timed`."""

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        raise LinuxError(EINVAL)

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
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
        assert self.node is not None, "a file without a node has attributes of its own"
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

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
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

    def wakeups(self, events: int) -> int:
        """Counts what happened that concerns some POLL* bits, for edge-triggered epoll."""
        return self.activity

    def came(self) -> tuple[int, int] | None:
        """Counts what came to read, and room to write, of a file that tells by signals (O_ASYNC).

        None for one that cannot.
        """
        return None

    def patience(self, *, writing: bool) -> int | None:
        """Nanoseconds that a blocked read or write lasts, None for no limit."""
        return None

    def next_deadline(self) -> int | None:
        """Guest time (monotonic) at which `readiness` changes by itself: a timerfd."""
        return None

    def host_fd(self) -> int | None:
        """The host descriptor behind it, if there is exactly one."""
        return None

    def mmap_source(self) -> MmapSource:
        """The source of a mapping; ENODEV if it cannot be mapped."""
        raise LinuxError(ENODEV)

    def shown_at(self, offset: int, size: int) -> "tuple[OpenFile, int]":
        """The file that a mapping of so many bytes at an offset shows, and from where on."""
        return self, offset

    def reopen(self, flags: int) -> "OpenFile":
        """A new description of the same object (opening /proc/self/fd/N)."""
        if self.node is None:
            raise LinuxError(6)
        return self.node.open(flags)

    def known_place(self) -> "tuple[Directory, bytes] | None":
        """Directory and name that lead to it, or did when it was opened."""
        node = self.node
        if isinstance(node, Directory):
            return node.parent, node.name
        place = self.place
        if isinstance(node, OverlayNode) and node.home is not None and place is not None:
            try:
                return place if place[0].lookup(place[1]) is node else node.home
            except LinuxError:
                return node.home
        return place

    def details(self) -> bytes:
        """Lines of /proc/self/fdinfo/N that only its kind has."""
        return b""

    def describe(self) -> bytes:
        """The text that readlink of /proc/self/fd/N shows."""
        return self.title if self.place is None else path_shown(*self.place, self.node)


def path_shown(directory: "Directory", name: bytes, node: Node | None) -> bytes:
    """The path of what a name led to, and " (deleted)" if it leads elsewhere now (d_path)."""
    path = directory.path_of(name)
    try:
        gone = directory.lookup(name) is not node if name else False
    except LinuxError:
        gone = True
    return path + b" (deleted)" if gone else path


class Directory(OverlayNode):
    """A directory, as path resolution and the calls that change names see it.

    Attributes:
        parent: the directory above; the root is its own parent.
        name: its name there.
        removed: rmdir has taken it away; only open descriptors still lead here.
        mounts: entries of the view itself; they hide others and cannot be removed.
        hidden: host path whose entries are not visible here although they may exist.
    """

    kind = stat.S_IFDIR
    is_directory = True

    def __init__(
        self,
        volume: Volume,
        *,
        meta: Meta | None = None,
        lower: LowerRef | None = None,
        number: InodeNumber | None = None,
    ) -> None:
        super().__init__(volume, meta=meta, lower=lower, number=number)
        self.parent: Directory = self
        self.name = b""
        self.removed = False
        self.mounts: dict[bytes, Node] = {}
        self.hidden: bytes | None = None
        self._searchable: bool | None = None

    def path_of(self, name: bytes = b"") -> bytes:
        """Guest path of an entry, or of the directory itself."""
        parts = [name] if name else []
        directory = self
        while directory.parent is not directory:
            parts.append(directory.name)
            directory = directory.parent
        return b"/" + b"/".join(reversed(parts))

    def attach(self, name: bytes, node: Node) -> None:
        """Tell a node where it now is."""
        if isinstance(node, Directory):
            node.parent = self
            node.name = name

    def mount(self, name: bytes, node: Node) -> None:
        """Make an entry part of the view."""
        self.mounts[name] = node
        self.attach(name, node)

    def searchable(self) -> bool:
        """True if the guest may resolve names in it."""
        if self._searchable is None:
            self._searchable = self.may(MAY_EXEC)
        return self._searchable

    def change_mode(self, mode: int) -> None:
        """Set the permission bits."""
        super().change_mode(mode)
        self._searchable = None

    def change_owner(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one alone."""
        super().change_owner(uid, gid)
        self._searchable = None

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        if flags & fl.O_ACCMODE != fl.O_RDONLY:
            raise LinuxError(EISDIR)
        return DirectoryFile(self, flags)

    @abstractmethod
    def lookup(self, name: bytes) -> Node | None:
        """The entry of that name, None if there is none."""

    @abstractmethod
    def listing(self) -> Listing:
        """All entries but . and .., sorted by name."""

    def is_empty(self) -> bool:
        """True if rmdir may remove it."""
        return not self.listing()

    def pin(self, name: bytes, node: Node) -> None:
        """Keep a changed node in its entry."""

    def make_file(self, name: bytes, mode: int) -> Node:
        """Create a regular file."""
        raise LinuxError(EACCES)

    def make_directory(self, name: bytes, mode: int) -> None:
        """Create a directory."""
        raise LinuxError(EACCES)

    def make_symlink(self, name: bytes, target: bytes) -> None:
        """Create a symlink."""
        raise LinuxError(EACCES)

    def make_fifo(self, name: bytes, mode: int) -> None:
        """Create a FIFO."""
        raise LinuxError(EACCES)

    def make_socket(self, name: bytes, mode: int) -> Node:
        """Create the name of a UNIX socket."""
        raise LinuxError(EACCES)

    def add_link(self, name: bytes, node: Node) -> None:
        """Give a node one more name."""
        raise LinuxError(EACCES)

    def remove(self, name: bytes, node: Node) -> None:
        """Take a name away (unlink, rmdir)."""
        raise LinuxError(EACCES)


class DirectoryFile(OpenFile):
    """An open directory: a listing taken when reading starts, and a position in it."""

    is_directory = True

    def __init__(self, node: Directory, flags: int) -> None:
        super().__init__(flags, node)
        self.directory = node
        self._listing: Listing | None = None

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        raise LinuxError(EISDIR)

    def pread(self, count: int, offset: int) -> bytes:
        """Read at an offset."""
        raise LinuxError(EISDIR)

    def readdir(self) -> Listing:
        """(name, inode number, S_IFMT type) of a directory, taken when reading starts."""
        if self.directory.removed:
            raise LinuxError(ENOENT)
        if self._listing is None or self.offset == 0:
            directory = self.directory
            own = (b".", directory.ino, stat.S_IFDIR)
            above = (b"..", directory.parent.ino, stat.S_IFDIR)
            self._listing = [own, above, *directory.listing()]
        return self._listing

    def seek(self, offset: int, whence: int) -> int:
        """Move the file position."""
        if whence == 1:
            offset += self.offset
        elif whence != 0:
            raise LinuxError(EINVAL)
        if offset < 0:
            raise LinuxError(EINVAL)
        self.offset = offset
        return offset

    def sync(self) -> None:
        """Write to the disk what fsync would."""

    def describe(self) -> bytes:
        """The text that readlink of /proc/self/fd/N shows."""
        path = self.directory.path_of()
        return path + b" (deleted)" if self.directory.removed else path

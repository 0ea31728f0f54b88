"""Directories given with `--share PATH:rw`: every change goes to the host at once.

But for what would outlive the guest as a right of somebody else's: files that it makes or changes
have neither setuid nor setgid bits, there are no devices, and the symlinks that it leaves are told
at the end. The sticky bit, which only takes rights away, stays.
"""

import contextlib
import os
import stat
import time
from weakref import WeakSet

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import NOW, InodeNumber, LowerRef, Stat
from engine.linux.fs.data import MmapSource
from engine.linux.fs.host import HostDir, HostHandle, translated
from engine.linux.fs.links import HostSpecialNode, SymlinkNode
from engine.linux.fs.openfile import SeekableFile
from engine.linux.fs.pipe import FifoNode
from engine.linux.fs.socket import SocketNode
from engine.linux.fs.vfs import Directory, Listing, Node, OpenFile, OverlayNode, Volume

EPERM, EXDEV, ESTALE = 1, 18, 116

_ALLOWED = 0o1777
"""Bits of a mode that the guest may set."""


def _make_plain(fd: int) -> None:
    """Take setuid and setgid bits from a file that is about to be changed.

    Linux does (file_remove_privs), but not for a privileged writer, which this process may be.
    """
    mode = stat.S_IMODE(os.fstat(fd).st_mode)
    if mode & ~_ALLOWED:
        os.fchmod(fd, mode & _ALLOWED)


def _path_handle(lower: LowerRef) -> HostHandle:
    """A descriptor of a place: opened without following, as fchmodat and utime would not be."""
    with translated():
        fd = lower.directory.fd()
        return HostHandle(os.open(lower.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd))


def _change_mode(handle: HostHandle, mode: int) -> None:
    with translated():
        if stat.S_ISLNK(os.fstat(handle.fd).st_mode):
            raise LinuxError(95)
        os.chmod(f"/proc/self/fd/{handle.fd}", mode & _ALLOWED)


def _times(known: os.stat_result, atime: int | None, mtime: int | None) -> tuple[int, int]:
    """Times to set, access first; the present is the host's, as it is where data is written."""
    now = time.time_ns()
    times = (known.st_atime_ns, atime), (known.st_mtime_ns, mtime)
    first, second = (old if new is None else now if new == NOW else new for old, new in times)
    return first, second


def _change_times(handle: HostHandle, atime: int | None, mtime: int | None) -> None:
    with translated():
        now = os.fstat(handle.fd)
        os.utime(f"/proc/self/fd/{handle.fd}", ns=_times(now, atime, mtime))


def _change_owner(node: Node, uid: int, gid: int) -> None:
    st = node.stat()
    if uid not in (-1, st.uid) or gid not in (-1, st.gid):
        raise LinuxError(EPERM)


class SharedFileNode(Node):
    """A regular file of the host that the guest may change.

    As long as the guest has it open or mapped it is that file, also if its name is gone or
    belongs to another.
    """

    __slots__ = ("_opened", "lower")

    kind = stat.S_IFREG
    made_here = False

    def __init__(self, volume: Volume, lower: LowerRef, number: InodeNumber) -> None:
        super().__init__(volume, number)
        self.lower = lower
        self._opened: WeakSet[HostHandle] = WeakSet()

    def _find(self) -> tuple[os.stat_result, HostHandle | None]:
        """Attributes, and a descriptor where the name no longer leads to the file.

        Raises:
            LinuxError: ENOENT or ESTALE, where nobody has it open either.
        """
        code = ESTALE
        try:
            host = self.lower.stat()
            if InodeNumber.of(host) == (self.dev, self.ino):
                return host, None
        except LinuxError as error:
            code = error.code
        kept = next(iter(self._opened), None)
        if kept is None:
            raise LinuxError(code)
        with translated():
            return os.fstat(kept.fd), kept

    def _handle(self, flags: int) -> HostHandle:
        kept = self._find()[1]
        if kept is not None:
            return kept.reopened(flags)
        return self.lower.directory.open_file(self.lower.name, flags)

    def stat(self) -> Stat:
        """The file's attributes."""
        return self.volume.host_stat(self._find()[0])

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        access = flags & fl.O_ACCMODE
        handle = self._handle((os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR)[access])
        self._opened.add(handle)
        return SharedFile(self, flags, handle)

    def truncate(self, size: int) -> None:
        """Set the size of a regular file."""
        handle = self._handle(os.O_WRONLY)
        with translated():
            _make_plain(handle.fd)
            os.ftruncate(handle.fd, size)

    def change_mode(self, mode: int) -> None:
        """Set the permission bits."""
        _change_mode(self._find()[1] or _path_handle(self.lower), mode)

    def change_owner(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one alone."""
        _change_owner(self, uid, gid)

    def change_times(self, atime: int | None, mtime: int | None) -> None:
        """Set times in nanoseconds, or to `NOW`; None leaves one alone."""
        _change_times(self._find()[1] or _path_handle(self.lower), atime, mtime)


class SharedFile(SeekableFile):
    """An open file of a writable share."""

    is_regular = True

    def __init__(self, node: SharedFileNode, flags: int, handle: HostHandle) -> None:
        super().__init__(flags, node)
        self._handle = handle
        self._changed = False

    def stat(self) -> Stat:
        """Attributes."""
        assert self.node is not None
        with translated():
            return self.node.volume.host_stat(os.fstat(self._handle.fd))

    def pread(self, count: int, offset: int) -> bytes:
        """Read at an offset."""
        with translated():
            return os.pread(self._handle.fd, count, offset)

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at an offset."""
        with translated():
            self._change()
            return os.pwrite(self._handle.fd, data, offset)

    def truncate(self, size: int) -> None:
        """Set the size."""
        with translated():
            self._change()
            os.ftruncate(self._handle.fd, size)

    def allocate(self, mode: int, offset: int, length: int) -> None:
        """Reserve, extend or punch as fallocate says."""
        if mode:
            raise LinuxError(95)
        with translated():
            self._change()
            os.posix_fallocate(self._handle.fd, offset, length)

    def _change(self) -> None:
        if not self._changed:
            self._changed = True
            _make_plain(self._handle.fd)

    def sync(self) -> None:
        """Write to the disk what fsync would."""
        with translated():
            os.fsync(self._handle.fd)

    def host_fd(self) -> int | None:
        """The host descriptor behind it, if there is exactly one."""
        return self._handle.fd

    def mmap_source(self) -> MmapSource:
        """The source of a mapping; ENODEV if it cannot be mapped."""
        handle = self._handle

        def read(offset: int, size: int) -> bytes:
            with translated():
                return os.pread(handle.fd, size, offset)

        def write(offset: int, data: bytes) -> int:
            with translated():
                self._change()
                return os.pwrite(handle.fd, data, offset)

        writable = self.flags & fl.O_ACCMODE == fl.O_RDWR
        return MmapSource(
            size=self.size(),
            host_fd=handle.fd,
            read=read,
            write=write if writable else None,
            identity=self.node,
            keep=handle,
        )


class SharedSymlink(SymlinkNode):
    """A symlink in a writable share."""

    __slots__ = ()

    def change_mode(self, mode: int) -> None:
        """Set the permission bits."""
        raise LinuxError(95)

    def change_owner(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one alone."""
        _change_owner(self, uid, gid)

    def change_times(self, atime: int | None, mtime: int | None) -> None:
        """Set times in nanoseconds, or to `NOW`; None leaves one alone."""
        assert self.lower is not None
        with translated():
            now = self.lower.directory.lstat(self.lower.name)
            times = _times(now, atime, mtime)
            fd = self.lower.directory.fd()
            os.utime(self.lower.name, ns=times, dir_fd=fd, follow_symlinks=False)


class SharedDirectory(Directory):
    """A directory of a writable share; entries are looked up on the host every time."""

    made_here = False

    def __init__(self, volume: Volume, host: HostDir, number: InodeNumber) -> None:
        super().__init__(volume, number=number)
        self.host = host
        self._directories: dict[bytes, SharedDirectory] = {}
        # FIFOs and sockets, which no process of the host could use.
        self._own: dict[bytes, OverlayNode] = {}

    def host_stat(self) -> os.stat_result:
        """Attributes on the host."""
        with translated():
            return self.host.stat()

    def stat(self) -> Stat:
        """The directory's attributes."""
        st = self.volume.host_stat(self.host_stat())
        return st._replace(nlink=1) if self.mounts else st

    def searchable(self) -> bool:
        """True if the guest may resolve names in it."""
        return self.may(1)

    def lookup(self, name: bytes) -> Node | None:
        """The entry of that name, None if there is none."""
        node = self.mounts.get(name) or self._own.get(name)
        if node is not None:
            return node
        try:
            st = self.host.lstat(name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise LinuxError(error.errno or 5) from error
        key = InodeNumber.of(st)
        if stat.S_ISDIR(st.st_mode):
            directory = self._directories.get(name)
            if directory is None or (directory.dev, directory.ino) != key:
                directory = SharedDirectory(self.volume, self.host.child(name), key)
                self.attach(name, directory)
                self._directories[name] = directory
            return directory
        lower = LowerRef(self.host, name)
        known = self.volume.nodes.get(key)
        if isinstance(known, SharedFileNode) and stat.S_ISREG(st.st_mode):
            known.lower = lower
            return known
        if stat.S_ISREG(st.st_mode):
            node = self.volume.nodes[key] = SharedFileNode(self.volume, lower, key)
            return node
        if stat.S_ISLNK(st.st_mode):
            return SharedSymlink(self.volume, lower=lower, number=key)
        return HostSpecialNode(self.volume, stat.S_IFMT(st.st_mode), lower, key)

    def listing(self) -> Listing:
        """Return all entries but . and .., by name or in the host's order (`DirectoryPool`)."""
        with translated():
            found = {name: (ino, kind) for name, ino, kind in self.host.entries()}
        for name, node in (*self._own.items(), *self.mounts.items()):
            found[name] = (node.ino, node.kind)
        names = sorted(found) if self.host.pool.sorts else [*found]
        return [(name, *found[name]) for name in names]

    def make_file(self, name: bytes, mode: int) -> Node:
        """Create a regular file."""
        handle = self.host.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & _ALLOWED)
        with contextlib.suppress(OSError):
            os.fchmod(handle.fd, mode & _ALLOWED)
        node = self.lookup(name)
        if node is None:
            raise LinuxError(ESTALE)
        return node

    def make_directory(self, name: bytes, mode: int) -> None:
        """Create a directory."""
        with translated():
            os.mkdir(name, mode & _ALLOWED, dir_fd=self.host.fd())

    def make_symlink(self, name: bytes, target: bytes) -> None:
        """Create a symlink."""
        with translated():
            os.symlink(target, name, dir_fd=self.host.fd())
        self.volume.links.note(self.host, name)

    def make_fifo(self, name: bytes, mode: int) -> None:
        """Create a FIFO: the guest's alone."""
        meta, number = self.volume.new_meta(mode), self._new_number()
        self._keep(name, FifoNode(self.volume, meta=meta, number=number))

    def make_socket(self, name: bytes, mode: int) -> Node:
        """Create the name of a UNIX socket: the guest's alone."""
        meta, number = self.volume.new_meta(mode), self._new_number()
        node = SocketNode(self.volume, meta=meta, number=number)
        self._keep(name, node)
        return node

    def _new_number(self) -> InodeNumber:
        return InodeNumber(self.dev, self.volume.new_ino())

    def _keep(self, name: bytes, node: OverlayNode) -> None:
        self.volume.budget.charge_inode()
        self._own[name] = node

    def add_link(self, name: bytes, node: Node) -> None:
        """Give a node one more name."""
        lower = node.lower if isinstance(node, SharedFileNode | SharedSymlink) else None
        if lower is None or node.volume is not self.volume:
            raise LinuxError(EXDEV)
        with translated():
            os.link(
                lower.name,
                name,
                src_dir_fd=lower.directory.fd(),
                dst_dir_fd=self.host.fd(),
                follow_symlinks=False,
            )
        if isinstance(node, SharedSymlink):
            self.volume.links.note(self.host, name)

    def remove(self, name: bytes, node: Node) -> None:
        """Take a name away (unlink, rmdir)."""
        own = self._own.pop(name, None)
        if own is not None:
            own.own_meta().nlink -= 1
            self.volume.budget.release_inode()
            return
        with translated():
            if node.is_directory:
                os.rmdir(name, dir_fd=self.host.fd())
                self._directories.pop(name, None)
                if isinstance(node, Directory):
                    node.removed = True
            else:
                os.unlink(name, dir_fd=self.host.fd())

    def rename_to(self, name: bytes, target: "SharedDirectory", new_name: bytes) -> None:
        """Rename on the host, within one share."""
        node = self.lookup(name)
        if name in self._own:
            replaced = target.lookup(new_name)
            if replaced is not None:
                target.remove(new_name, replaced)
            target._own[new_name] = self._own.pop(name)
            return
        if target._own.pop(new_name, None) is not None:
            self.volume.budget.release_inode()
        with translated():
            os.rename(name, new_name, src_dir_fd=self.host.fd(), dst_dir_fd=target.host.fd())
        if isinstance(node, SharedFileNode):
            node.lower = LowerRef(target.host, new_name)
        elif isinstance(node, SharedSymlink):
            target.volume.links.note(target.host, new_name)
        moved = self._directories.pop(name, None)
        target._directories.pop(new_name, None)
        if moved is not None:
            moved.host.parent, moved.host.name = target.host, new_name
            moved.host.pool.forget(moved.host)
            target.attach(new_name, moved)
            target._directories[new_name] = moved

    def change_mode(self, mode: int) -> None:
        """Set the permission bits."""
        with translated():
            os.chmod(f"/proc/self/fd/{self.host.fd()}", mode & _ALLOWED)

    def change_owner(self, uid: int, gid: int) -> None:
        """Set owner and group; -1 leaves one alone."""
        _change_owner(self, uid, gid)

    def change_times(self, atime: int | None, mtime: int | None) -> None:
        """Set times in nanoseconds, or to `NOW`; None leaves one alone."""
        with translated():
            now = self.host.stat()
            times = _times(now, atime, mtime)
            os.utime(f"/proc/self/fd/{self.host.fd()}", ns=times)

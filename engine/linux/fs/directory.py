"""Directories: the interface of all kinds, and those of the private overlay."""

import os
import stat
from collections.abc import Callable

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.host import HostDir, translated
from engine.linux.fs.links import HostSpecialNode, SymlinkNode
from engine.linux.fs.node import MAY_EXEC, LowerRef, Meta, Node, OverlayNode, Stat, Volume
from engine.linux.fs.openfile import OpenFile
from engine.linux.fs.pipe import FifoNode
from engine.linux.fs.regular import FileNode

EPERM, ENOENT, EACCES, EISDIR, EINVAL = 1, 2, 13, 21, 22

Listing = list[tuple[bytes, int, int]]
"""(name, inode number, S_IFMT type) of a directory's entries."""

NameFilter = Callable[[bytes, int], bool]
"""Whether an entry (name, mode) of a host directory is visible."""


class Directory(OverlayNode):
    """What path resolution and the calls that change names ask of a directory.

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
        ino: int | None = None,
    ) -> None:
        super().__init__(volume, meta=meta, lower=lower, ino=ino)
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
        """Whether the guest may resolve names in it."""
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

    def lookup(self, name: bytes) -> Node | None:
        """The entry of that name, None if there is none."""
        raise NotImplementedError

    def listing(self) -> Listing:
        """All entries but . and .., sorted by name."""
        raise NotImplementedError

    def is_empty(self) -> bool:
        """Whether rmdir may remove it."""
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

    def add_link(self, name: bytes, node: Node) -> None:
        """Give a node one more name."""
        raise LinuxError(EACCES)

    def remove(self, name: bytes, node: Node) -> None:
        """Take a name away (unlink, rmdir)."""
        raise LinuxError(EACCES)


class OverlayDirectory(Directory):
    """A directory of the private overlay, with a host directory below or none.

    Attributes:
        entries: what the guest made or changed; None marks a name it removed.
        host: the host directory below.
        visible: which of the host's entries may be seen; None = all.
    """

    def __init__(
        self,
        volume: Volume,
        *,
        meta: Meta | None = None,
        lower: LowerRef | None = None,
        ino: int | None = None,
        host: HostDir | None = None,
        visible: NameFilter | None = None,
    ) -> None:
        super().__init__(volume, meta=meta, lower=lower, ino=ino)
        self.host = host
        self.visible = visible
        self.entries: dict[bytes, Node | None] = {}
        self._directories: dict[bytes, OverlayDirectory] = {}
        if host is not None and visible is not None:
            self.hidden = host.path

    def host_stat(self) -> os.stat_result:
        """Attributes on the host."""
        assert self.host is not None, "a directory without a host's has attributes of its own"
        with translated():
            return self.host.stat()

    def stat(self) -> Stat:
        """Its attributes."""
        st = super().stat()
        # One link means "do not count subdirectories by my links"; of our own we know.
        if self.host is None and not self.mounts:
            directories = sum(1 for node in self.entries.values() if node and node.is_directory)
            return st._replace(nlink=0 if self.removed else 2 + directories, size=4096)
        if self.entries or self.mounts or self.visible:
            return st._replace(nlink=1)
        return st

    def extent(self) -> tuple[int, int]:
        """Size and 512-byte blocks of a node with attributes of its own."""
        return 4096, 8

    def lookup(self, name: bytes) -> Node | None:
        """The entry of that name, None if there is none."""
        node = self.mounts.get(name)
        if node is not None:
            return node
        if name in self.entries:
            return self.entries[name]
        return self._lower_lookup(name) if self.host is not None else None

    def listing(self) -> Listing:
        """All entries but . and .., sorted by name."""
        found: dict[bytes, tuple[int, int]] = {}
        if self.host is not None:
            found = self._lower_listing(self.host)
        for name, node in self.entries.items():
            if node is None:
                found.pop(name, None)
            else:
                found[name] = (node.ino, node.kind)
        for name, node in self.mounts.items():
            found[name] = (node.ino, node.kind)
        return [(name, *found[name]) for name in sorted(found)]

    def pin(self, name: bytes, node: Node) -> None:
        """Keep a changed node in its entry."""
        self.entries.setdefault(name, node)

    def make_file(self, name: bytes, mode: int) -> Node:
        """Create a regular file."""
        node = FileNode(self.volume, meta=self._new_meta(mode))
        self._add(name, node)
        return node

    def make_directory(self, name: bytes, mode: int) -> None:
        """Create a directory."""
        self._add(name, OverlayDirectory(self.volume, meta=self._new_meta(mode, 2)))

    def make_symlink(self, name: bytes, target: bytes) -> None:
        """Create a symlink."""
        self._add(name, SymlinkNode(self.volume, target, meta=self._new_meta(0o777)))

    def make_fifo(self, name: bytes, mode: int) -> None:
        """Create a FIFO."""
        self._add(name, FifoNode(self.volume, meta=self._new_meta(mode)))

    def add_link(self, name: bytes, node: Node) -> None:
        """Give a node one more name."""
        if not isinstance(node, OverlayNode):
            raise LinuxError(EPERM)
        meta = node.own_meta()
        if meta.nlink == 0:
            self.volume.budget.charge_inode()
        meta.nlink += 1
        meta.ctime = self.volume.clock.realtime()
        self._add(name, node)

    def remove(self, name: bytes, node: Node) -> None:
        """Take a name away (unlink, rmdir)."""
        if isinstance(node, Directory):
            node.removed = True
            if isinstance(node, OverlayDirectory) and node.host is None:
                self.volume.budget.release_inode()
        elif isinstance(node, OverlayNode):
            meta = node.own_meta()
            meta.nlink -= 1
            meta.ctime = self.volume.clock.realtime()
            if meta.nlink == 0:
                self.volume.changed.discard(node)
                if node.lower is None:
                    self.volume.budget.release_inode()
            if node.home == (self, name):
                node.home = None
        self.detach(name)

    def detach(self, name: bytes) -> None:
        """Take a name away without touching the node (rename)."""
        if self.host is not None and self._lower_exists(name):
            self.entries[name] = None
        else:
            self.entries.pop(name, None)
        self._directories.pop(name, None)
        self.touch()

    def put(self, name: bytes, node: Node) -> None:
        """Enter a node that exists already (rename)."""
        self._add(name, node)

    def _add(self, name: bytes, node: Node) -> None:
        self.entries[name] = node
        self.attach(name, node)
        if isinstance(node, OverlayNode) and not isinstance(node, Directory):
            node.home = (self, name)
        self.touch()

    def _new_meta(self, mode: int, nlink: int = 1) -> Meta:
        self.volume.budget.charge_inode()
        meta = self.volume.new_meta(mode, nlink)
        own = self.stat()
        if own.mode & stat.S_ISGID:
            meta.gid = own.gid
            if nlink == 2:
                meta.mode |= stat.S_ISGID
        return meta

    def _lower_exists(self, name: bytes) -> bool:
        assert self.host is not None
        try:
            self.host.lstat(name)
        except OSError:
            return False
        return True

    def _lower_lookup(self, name: bytes) -> Node | None:
        found = self._directories.get(name)
        if found is not None:
            return found
        host = self.host
        assert host is not None
        try:
            st = host.lstat(name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise LinuxError(error.errno or 5) from error
        mode = st.st_mode
        if self.visible is not None and not self.visible(name, mode):
            return None
        if stat.S_ISDIR(mode):
            ino = self.volume.host_ino(st.st_dev, st.st_ino)
            directory = OverlayDirectory(
                self.volume, host=host.child(name), visible=self.visible, ino=ino
            )
            self.attach(name, directory)
            self._directories[name] = directory
            return directory
        key = (st.st_dev, st.st_ino)
        node = self.volume.nodes.get(key)
        if node is None or node.kind != stat.S_IFMT(mode):
            node = self._host_node(LowerRef(host, name), st)
            self.volume.nodes[key] = node
        return node

    def _host_node(self, lower: LowerRef, st: os.stat_result) -> OverlayNode:
        node: OverlayNode
        ino = self.volume.host_ino(st.st_dev, st.st_ino)
        if stat.S_ISREG(st.st_mode):
            node = FileNode(self.volume, lower=lower, ino=ino)
        elif stat.S_ISLNK(st.st_mode):
            node = SymlinkNode(self.volume, lower=lower, ino=ino)
        else:
            node = HostSpecialNode(self.volume, stat.S_IFMT(st.st_mode), lower, ino)
        node.home = (self, lower.name)
        return node

    def _lower_listing(self, host: HostDir) -> dict[bytes, tuple[int, int]]:
        found = {}
        with translated():
            device = host.stat().st_dev
            for name, ino, kind in host.entries():
                if self.visible is not None and not self.visible(name, kind):
                    continue
                found[name] = (self.volume.host_ino(device, ino), kind)
        return found


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
        """What readlink of /proc/self/fd/N shows."""
        path = self.directory.path_of()
        return path + b" (deleted)" if self.directory.removed else path

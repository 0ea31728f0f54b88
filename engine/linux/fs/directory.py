"""Directories of the private overlay."""

import os
import stat
from collections.abc import Callable

from engine.linux.errno import LinuxError
from engine.linux.fs.attributes import InodeNumber, LowerRef, Meta, Stat
from engine.linux.fs.host import HostDir, translated
from engine.linux.fs.links import HostSpecialNode, SymlinkNode
from engine.linux.fs.pipe import FifoNode
from engine.linux.fs.regular import FileNode
from engine.linux.fs.socket import SocketNode
from engine.linux.fs.vfs import Directory, Listing, Node, OverlayNode, Volume

EPERM = 1

NameFilter = Callable[[bytes, int], bool]
"""True if an entry (name, mode) of a host directory is visible."""


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
        number: InodeNumber | None = None,
        host: HostDir | None = None,
        visible: NameFilter | None = None,
    ) -> None:
        super().__init__(volume, meta=meta, lower=lower, number=number)
        self.host = host
        self.visible = visible
        self.entries: dict[bytes, Node | None] = {}
        self._directories: dict[bytes, OverlayDirectory] = {}
        if host is not None and visible is not None:
            self.hidden = host.path

    @property
    def made_here(self) -> bool:
        """True if the guest has made it, or the engine for the guest: there is no host file."""
        return self.host is None

    def host_stat(self) -> os.stat_result:
        """Attributes on the host."""
        assert self.host is not None, "a directory without a host's has attributes of its own"
        with translated():
            return self.host.stat()

    def stat(self) -> Stat:
        """The directory's attributes."""
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
        node = self._lower_lookup(name) if self.host is not None else None
        if node is None and self.volume.beyond is not None:
            node = self.volume.beyond(self, name)
        return node

    def listing(self) -> Listing:
        """Return all entries but . and .., by name or in the host's order (`DirectoryPool`)."""
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
        names = sorted(found) if self.host is None or self.host.pool.sorts else [*found]
        return [(name, *found[name]) for name in names]

    def pin(self, name: bytes, node: Node) -> None:
        """Keep a changed node in its entry."""
        self.entries.setdefault(name, node)

    def make_file(self, name: bytes, mode: int) -> Node:
        """Create a regular file."""
        node = FileNode(self.volume, meta=self._new_meta(mode), number=self._new_number())
        self._add(name, node)
        return node

    def make_directory(self, name: bytes, mode: int) -> None:
        """Create a directory."""
        meta = self._new_meta(mode, 2)
        self._add(name, OverlayDirectory(self.volume, meta=meta, number=self._new_number()))

    def make_symlink(self, name: bytes, target: bytes) -> None:
        """Create a symlink."""
        meta = self._new_meta(0o777)
        self._add(name, SymlinkNode(self.volume, target, meta=meta, number=self._new_number()))

    def make_fifo(self, name: bytes, mode: int) -> None:
        """Create a FIFO."""
        meta = self._new_meta(mode)
        self._add(name, FifoNode(self.volume, meta=meta, number=self._new_number()))

    def make_socket(self, name: bytes, mode: int) -> Node:
        """Create the name of a UNIX socket."""
        node = SocketNode(self.volume, meta=self._new_meta(mode), number=self._new_number())
        self._add(name, node)
        return node

    def add_link(self, name: bytes, node: Node) -> None:
        """Give a node one more name."""
        if not isinstance(node, OverlayNode):
            raise LinuxError(EPERM)
        meta = node.own_meta()
        self.volume.budget.charge_inode()
        if meta.nlink:
            node.links += 1
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
            if node.links:
                node.links -= 1
                self.volume.budget.release_inode()
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

    def _new_number(self) -> InodeNumber:
        """For something made in it: on its own device, as it is no place where one begins."""
        return InodeNumber(self.dev, self.volume.new_ino())

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
            directory = OverlayDirectory(
                self.volume,
                host=host.child(name),
                visible=self.visible,
                number=InodeNumber.of(st),
            )
            self.attach(name, directory)
            self._directories[name] = directory
            return directory
        key = InodeNumber.of(st)
        node = self.volume.nodes.get(key)
        if node is None or node.kind != stat.S_IFMT(mode):
            node = self._host_node(LowerRef(host, name), st)
            self.volume.nodes[key] = node
        return node

    def _host_node(self, lower: LowerRef, st: os.stat_result) -> OverlayNode:
        node: OverlayNode
        number = InodeNumber.of(st)
        if stat.S_ISREG(st.st_mode):
            node = FileNode(self.volume, lower=lower, number=number)
        elif stat.S_ISLNK(st.st_mode):
            node = SymlinkNode(self.volume, lower=lower, number=number)
        else:
            node = HostSpecialNode(self.volume, stat.S_IFMT(st.st_mode), lower, number)
        node.home = (self, lower.name)
        return node

    def _lower_listing(self, host: HostDir) -> dict[bytes, tuple[int, int]]:
        found = {}
        with translated():
            for name, ino, kind in host.entries():
                if self.visible is None or self.visible(name, kind):
                    found[name] = (ino, kind)
        return found

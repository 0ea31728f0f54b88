"""Makes the tree of a view: what is shown where."""

import functools
import os
import stat
from collections.abc import Callable

from engine.linux.fs.attributes import InodeNumber, LowerRef, Meta
from engine.linux.fs.directory import OverlayDirectory
from engine.linux.fs.host import DirectoryPool, HostAnswers, HostDir
from engine.linux.fs.links import SymlinkNode
from engine.linux.fs.regular import FileNode
from engine.linux.fs.shared import SharedDirectory, SharedFileNode
from engine.linux.fs.vfs import Directory, Node, Volume
from engine.linux.fs.view import (
    LIBRARY_DIRECTORIES,
    LOADER_CACHE,
    View,
    library_entry,
    program_directories,
)

_SHARED_MEMORY = b"/dev/shm"
_TEMPORARY = (b"/tmp", b"/var/tmp", _SHARED_MEMORY)
_OWN_TREES = (b"/proc", b"/sys", b"/dev")

NewVolume = Callable[[], Volume]


def split(path: bytes) -> list[bytes]:
    """Names of a path, without empty ones and dots."""
    return [name for name in path.split(b"/") if name not in (b"", b".")]


def within(path: bytes, tree: bytes) -> bool:
    """True if a path is a directory or something in it."""
    return tree == b"/" or path == tree or path.startswith(tree + b"/")


class TreeBuilder:
    """Puts host directories and files into the guest's tree at their own paths.

    A symlink that the host has on the way is shown as a symlink, so that both spellings of
    a path work; directories on the way show nothing but what leads on.
    """

    def __init__(
        self,
        view: View,
        volume: Volume,
        programs: Volume,
        shared_memory: Volume,
        new_volume: NewVolume,
        host: HostAnswers,
    ) -> None:
        self.view = view
        self.volume = volume
        self.programs = programs
        self._shared_memory = shared_memory
        self.new_volume = new_volume
        self.pool = DirectoryPool(answers=host, sorts=not view.host_order)
        self._host = host
        # Each path is asked for once while a tree is made.
        self._real: Callable[[bytes], bytes] = functools.cache(host.real)
        self.root = self._root()

    def build(self, own: dict[bytes, Directory]) -> OverlayDirectory | Directory:
        """The whole tree; `own` gives /proc, /sys and /dev."""
        for path, directory in own.items():
            self.root.mount(path.strip(b"/"), directory)
        for path in _TEMPORARY:
            self._temporary(path)
        whole = [path for path, _ in self.view.shares]
        if self.view.cwd is not None:
            whole.append(self.view.cwd)
        if self.view.root is None and self.view.programs:
            self._show_programs(whole)
        elif self.view.root is None:
            for path in LIBRARY_DIRECTORIES:
                if self._host.is_directory(path) and not self._inside(path, whole):
                    self._graft(path, self._library(path))
            self._show_file(LOADER_CACHE)
        trees = [(path, rw) for path, rw in self.view.shares]
        if self.view.cwd is not None and not any(path == self.view.cwd for path, _ in trees):
            trees.append((self.view.cwd, False))
        for path, writable in sorted(trees, key=lambda tree: tree[0].count(b"/")):
            self._show_tree(path, writable=writable)
        for path in (*self.view.files, *([self.view.guest] if self.view.guest else [])):
            self._show_file(path)
        self._show_home()
        return self.root

    def _root(self) -> OverlayDirectory:
        trees = {self.view.cwd, *(path for path, rw in self.view.shares if not rw)}
        base = self.view.root or (b"/" if b"/" in trees else None)
        if base is None:
            return self._shadow(b"/")
        host = HostDir(self.pool, base)
        return OverlayDirectory(self.volume, host=host, number=InodeNumber.of(host.stat()))

    def _shadow(self, path: bytes) -> OverlayDirectory:
        """A directory that shows nothing of the host's but looks like it."""
        meta, number = Meta(0o755, 0, 0, 2, 0), None
        try:
            host = self._host.attributes(path)
        except OSError:
            pass
        else:
            number = InodeNumber.of(host)
            meta.mode = stat.S_IMODE(host.st_mode)
            meta.uid, meta.gid = self.volume.identity.owner(
                host.st_uid, host.st_gid, directory=True
            )
            shown = self.volume.clock.file_time
            meta.atime = shown(host.st_atime_ns)
            meta.mtime = shown(host.st_mtime_ns)
            meta.ctime = shown(host.st_ctime_ns)
        directory = OverlayDirectory(self.volume, meta=meta, number=number)
        if self.view.root is None:
            directory.hidden = path
        return directory

    def _temporary(self, path: bytes) -> None:
        meta = Meta(0o1777, 0, 0, 2, self.volume.clock.realtime())
        volume, dev = self.volume, self.root.dev  # no place where another file system begins
        if path == _SHARED_MEMORY:
            volume, dev = self._shared_memory, self._shared_memory.dev
        number = InodeNumber(dev, volume.new_ino())
        directory = OverlayDirectory(volume, meta=meta, number=number)
        if self.view.root is None and path != _SHARED_MEMORY:
            directory.hidden = path
        self._graft(path, lambda: directory, follow=False)

    def _show_programs(self, whole: list[bytes]) -> None:
        host = self._host
        directories = program_directories(host)
        for path in directories:
            if not self._inside(path, whole):
                self._graft(path, self._program_directory(path), replace=False)
        # A home among them stays hidden, unless the user named a tree in it.
        shown = [self._real(path) for path in directories]
        for home in filter(host.is_directory, host.homes()):
            if home in shown or not self._inside(home, shown):
                continue
            if not self._inside(home, whole):
                self._graft(home, functools.partial(self._shadow, home))

    def _inside(self, path: bytes, trees: list[bytes]) -> bool:
        """True if a path is in one of some trees of the host."""
        real = self._real(path)
        return any(within(real, self._real(tree)) for tree in trees)

    def _show_home(self) -> None:
        """Have the home that a program is told of: it can write there, and sees nothing in it."""
        home = self.view.home
        if home is None or self.view.root is not None:
            return
        if any(within(home, own) for own in _OWN_TREES) or not self._host.is_directory(home):
            return
        self._graft(home, functools.partial(self._shadow, home), replace=False)

    def _program_directory(self, path: bytes) -> Callable[[], Node]:
        def make() -> Node:
            host = HostDir(self.pool, path)
            return OverlayDirectory(self.programs, host=host, number=InodeNumber.of(host.stat()))

        return make

    def _library(self, path: bytes) -> Callable[[], Node]:
        def make() -> Node:
            host = HostDir(self.pool, path)
            number = InodeNumber.of(host.stat())
            return OverlayDirectory(self.volume, host=host, visible=library_entry, number=number)

        return make

    def _show_tree(self, path: bytes, *, writable: bool) -> None:
        if any(within(path, own) for own in _OWN_TREES) and not within(path, b"/dev/shm"):
            return
        if path == b"/":
            return
        if not self._host.is_directory(path):
            self._show_file(path, writable=writable)
            return

        def make() -> Node:
            host = HostDir(self.pool, path)
            number = InodeNumber.of(host.stat())
            volume = self.new_volume() if writable else self.volume
            if writable and not self.view.copied:
                return SharedDirectory(volume, host, number)
            return OverlayDirectory(volume, host=host, number=number)

        self._graft(path, make)

    def _show_file(self, path: bytes, *, writable: bool = False) -> None:
        try:
            real = self._host.real_file(path)
            st = self._host.attributes(real)
        except OSError:
            return
        if not stat.S_ISREG(st.st_mode) or any(within(real, own) for own in _OWN_TREES[:2]):
            return

        def make() -> Node:
            volume = self.new_volume() if writable else self.volume
            lower = LowerRef(HostDir(self.pool, os.path.dirname(real)), os.path.basename(real))
            number = InodeNumber.of(st)
            if writable and not self.view.copied:
                return SharedFileNode(volume, lower, number)
            known = volume.nodes.get(number)
            node = known or FileNode(volume, lower=lower, number=number)
            volume.nodes[number] = node
            return node

        self._graft(path, make, replace=writable)

    def _graft(
        self, path: bytes, make: Callable[[], Node], *, replace: bool = True, follow: bool = True
    ) -> None:
        """Make `path` lead to a node, with the symlinks that the host has on the way."""
        todo = split(path)[::-1]
        current: Directory = self.root
        links = 0
        while todo and links <= 40:
            name = todo.pop()
            if name == b"..":
                current = current.parent
                continue
            node = current.lookup(name)
            here = current.path_of(name)
            if node is None and follow and self._host.is_link(here):
                target = self._host.link(here)
                node = SymlinkNode(self.volume, target, meta=Meta(0o777, 0, 0, 1, 0))
                current.mount(name, node)
            if isinstance(node, SymlinkNode) and (follow or todo):
                links += 1
                target = node.target()
                if target.startswith(b"/"):
                    current = self.root
                todo.extend(split(target)[::-1])
                continue
            if not todo:
                if replace or node is None:
                    current.mount(name, make())
                return
            if not isinstance(node, Directory):
                node = self._shadow(here)
                current.mount(name, node)
            current = node

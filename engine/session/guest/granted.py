"""Files that a branch of a recording sees beside it: the user has granted them."""

import os

from engine.history.hostfiles import RecordedHost
from engine.linux.errno import LinuxError
from engine.linux.fs.directory import OverlayDirectory
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.host import HostHandle
from engine.linux.fs.regular import FileNode
from engine.linux.fs.shared import SharedDirectory
from engine.linux.fs.vfs import Directory, Node
from engine.linux.fs.view import Refusals, View


class MissingFiles(Refusals):
    """Paths that a guest has looked for and that its recording does not hold, each once."""

    word = "missing"
    why = "not in the recording, nor visible"
    way = "replay --root / would show it this machine's"

    def note(self, path: bytes) -> None:
        """Nothing is missing that was kept from the recorded guest, too."""

    def miss(self, path: bytes) -> None:
        """Remember a path."""
        self.add(path)


class GrantedFiles:
    """Files of this host behind those of a recording.

    A name that the recording knows, or knows to be absent, is what it was.
    """

    def __init__(
        self, fs: FileSystem, host: RecordedHost, missing: MissingFiles, view: View | None
    ) -> None:
        """Nothing is seen of them yet.

        Args:
            fs: the guest's tree.
            host: the recorded one.
            missing: collects what neither has.
            view: what is granted; None for nothing.
        """
        self._fs = fs
        self._host = host
        self._missing = missing
        self._root = os.fsencode(fs.view.root or b"")
        self._tree = fs.granted(view) if view is not None else None

    def begin(self) -> None:
        """The guest goes on by itself: from here on it sees them."""
        host = self._host
        host.live = True
        host.missing = lambda path: self._missing.miss(self._guest_path(path))
        host.names_beyond = self._names
        host.file_beyond = self._file
        self._fs.look_beyond(self._lookup)

    def _guest_path(self, path: bytes) -> bytes:
        """The guest's path of a path of the recorded host."""
        root = self._root.rstrip(b"/")
        if root and (path == root or path.startswith(root + b"/")):
            return path[len(root) :] or b"/"
        return path

    def _lookup(self, directory: Directory, name: bytes) -> Node | None:
        """The node at a name of a directory where the guest's tree has nothing."""
        place = directory.host if isinstance(directory, OverlayDirectory) else None
        recorded = place is not None and place.pool.answers is self._host
        if recorded and place is not None and self._host.knows(place.path, name):
            return None
        path = directory.path_of(name)
        node = self._find(path)
        if node is not None:
            directory.attach(name, node)
        elif recorded:
            self._missing.miss(path)
        return node

    def _find(self, path: bytes) -> Node | None:
        node: Node | None = self._tree
        for name in filter(None, path.split(b"/")):
            if not isinstance(node, Directory):
                return None
            try:
                node = node.mounts.get(name) or node.lookup(name)
            except LinuxError:
                return None
        return node

    def _names(self, path: bytes) -> list[tuple[bytes, int, int]] | None:
        node = self._find(self._guest_path(path))
        if isinstance(node, OverlayDirectory | SharedDirectory) and node.host is not None:
            return node.host.entries()
        return None

    def _file(self, path: bytes) -> HostHandle | None:
        node = self._find(self._guest_path(path))
        if isinstance(node, FileNode) and node.lower is not None:
            return node.open_lower()
        return None

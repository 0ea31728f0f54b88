"""Who watches which files and directories, and what they are told (fs/notify/fsnotify.c)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from engine.linux.fs.vfs import Directory, Node, OpenFile

ACCESS, MODIFY, ATTRIB, CLOSE_WRITE, CLOSE_NOWRITE, OPEN = 1, 2, 4, 8, 0x10, 0x20
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF, UNMOUNT, Q_OVERFLOW, IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
ONLYDIR, DONT_FOLLOW, EXCL_UNLINK = 0x01000000, 0x02000000, 0x04000000
MASK_CREATE, MASK_ADD, ISDIR, ONESHOT = 0x10000000, 0x20000000, 0x40000000, 0x80000000
EVENTS: Final = 0xFFF
"""All that can happen."""
_SELF: Final = DELETE_SELF | MOVE_SELF
MOST_WATCHES: Final = 1 << 16
"""Of all processes together (fs.inotify.max_user_watches)."""


class Listener(Protocol):
    """Somebody who has watches."""

    def tell(self, number: int, mask: int, cookie: int, name: bytes) -> None:
        """Something has happened."""

    def forget(self, number: int) -> None:
        """A watch is over."""


class InodeWatch:
    """A node that somebody watches.

    Attributes:
        listener: who.
        number: the watch descriptor.
        node: it, kept alive as long as it is watched.
        mask: events that count, with EXCL_UNLINK and ONESHOT.
    """

    __slots__ = ("listener", "mask", "node", "number")

    def __init__(self, listener: Listener, number: int, node: "Node", mask: int) -> None:
        self.listener, self.number, self.node, self.mask = listener, number, node, mask


class Watches:
    """All watches of a tree.

    Attributes:
        by_inode: watches by (device, inode number); empty where nothing has to be told.
        count: their number.
        is_open: true if any process has a node open.
    """

    def __init__(self) -> None:
        self.by_inode: dict[tuple[int, int], list[InodeWatch]] = {}
        self.count = 0
        self.is_open: Callable[[Node], bool] = lambda node: False
        self._dying: set[Node] = set()
        self._cookie = 0

    def of(self, node: "Node") -> list[InodeWatch]:
        """The watches of a node."""
        return self.by_inode.get((node.dev, node.ino), [])

    def add(self, watch: InodeWatch) -> None:
        """Begin to watch."""
        node = watch.node
        self.by_inode.setdefault((node.dev, node.ino), []).append(watch)
        self.count += 1

    def remove(self, watch: InodeWatch, *, told: bool = True) -> None:
        """InodeWatch no longer; its listener is told unless it has gone itself."""
        key = watch.node.dev, watch.node.ino
        self.by_inode[key].remove(watch)
        if not self.by_inode[key]:
            del self.by_inode[key]
        self.count -= 1
        watch.listener.forget(watch.number)
        if told:
            watch.listener.tell(watch.number, IGNORED, 0, b"")

    def _tell(self, watch: InodeWatch, mask: int, cookie: int = 0, name: bytes = b"") -> None:
        if not watch.mask & mask & EVENTS:
            return
        watch.listener.tell(watch.number, mask & ~ISDIR if mask & _SELF else mask, cookie, name)
        if watch.mask & ONESHOT:
            self.remove(watch)

    def named(self, directory: "Directory", name: bytes, mask: int, cookie: int = 0) -> None:
        """Something has happened to an entry of a directory."""
        for watch in tuple(self.of(directory)):
            self._tell(watch, mask, cookie, name)

    def itself(self, node: "Node", mask: int) -> None:
        """Something has happened to a node, which is nothing to its directory."""
        for watch in tuple(self.of(node)):
            self._tell(watch, mask | (ISDIR if node.is_directory else 0))

    def on(self, node: "Node", mask: int, place: "tuple[Directory, bytes] | None") -> None:
        """Something has happened to a node, by one of its names or None."""
        if node.is_directory:
            mask |= ISDIR
        if place is not None and place[1]:
            directory, name = place
            gone = None
            for watch in tuple(self.of(directory)):
                if watch.mask & EXCL_UNLINK:
                    gone = directory.lookup(name) is not node if gone is None else gone
                    if gone:
                        continue
                self._tell(watch, mask, 0, name)
        for watch in tuple(self.of(node)):
            self._tell(watch, mask)

    def on_file(self, file: "OpenFile", mask: int) -> None:
        """Something has happened through an open file."""
        node = file.node
        if node is not None:
            self.on(node, mask, file.known_place())

    def closed(self, file: "OpenFile") -> None:
        """The last descriptor of an open file is gone."""
        node = file.node
        if node is None:
            return
        self.on_file(file, CLOSE_WRITE if file.flags & 3 else CLOSE_NOWRITE)
        if node in self._dying and not self.is_open(node):
            self._end(node)

    def moved(
        self,
        node: "Node",
        old: "tuple[Directory, bytes]",
        new: "tuple[Directory, bytes]",
    ) -> None:
        """A node has got another name; what it replaces is told of by `unlinked`."""
        self._cookie += 1
        kind = ISDIR if node.is_directory else 0
        self.named(*old, MOVED_FROM | kind, self._cookie)
        self.named(*new, MOVED_TO | kind, self._cookie)

    def unlinked(self, node: "Node", *, last: bool) -> None:
        """A name of a node is gone; with the last one, and when nobody has it open, it is."""
        if not last or not self.of(node):
            return
        if self.is_open(node):
            self._dying.add(node)
        else:
            self._end(node)

    def _end(self, node: "Node") -> None:
        self._dying.discard(node)
        for watch in tuple(self.of(node)):
            self._tell(watch, DELETE_SELF)
        for watch in tuple(self.of(node)):
            self.remove(watch)

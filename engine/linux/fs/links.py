"""Symlinks, and files of the host that may be seen but not opened."""

import stat
from collections.abc import Callable

from engine.linux.errno import LinuxError
from engine.linux.fs.attributes import InodeNumber, LowerRef, Meta, Stat
from engine.linux.fs.host import translated
from engine.linux.fs.vfs import Node, OpenFile, OverlayNode, Volume
from engine.linux.memorylimit import HeldMemory

EACCES, ENOSPC, ELOOP = 13, 28, 40


class SymlinkNode(OverlayNode):
    """A symlink; its target is resolved in the guest's tree, never by the host."""

    __slots__ = ("_held", "_target")

    kind = stat.S_IFLNK
    is_symlink = True

    def __init__(
        self,
        volume: Volume,
        target: bytes | None = None,
        *,
        meta: Meta | None = None,
        lower: LowerRef | None = None,
        number: InodeNumber | None = None,
    ) -> None:
        super().__init__(volume, meta=meta, lower=lower, number=number)
        self._held = HeldMemory(volume.budget.memory, len(target or b""), ENOSPC)
        self._target = target

    def target(self) -> bytes:
        """The path it points to."""
        if self._target is not None:
            return self._target
        assert self.lower is not None, "a symlink without a host file has a target of its own"
        with translated():
            return self.lower.directory.readlink(self.lower.name)

    def extent(self) -> tuple[int, int]:
        """Size and 512-byte blocks of a node with attributes of its own."""
        return len(self.target()), 0

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        raise LinuxError(ELOOP)


class MagicLink(Node):
    """A link of /proc that leads straight to an object instead of to a path.

    Its attributes are made up on the spot.
    """

    __slots__ = ("_jump", "_owner", "_target")

    kind = stat.S_IFLNK
    is_symlink = True

    def __init__(
        self,
        volume: Volume,
        target: Callable[[], bytes],
        jump: Callable[[], Node | OpenFile],
        number: InodeNumber | None = None,
        owner: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(volume, number)
        self._owner = owner or (volume.identity.uid, volume.identity.gid)
        self._target = target
        self._jump = jump

    def target(self) -> bytes:
        """The text that readlink shows."""
        return self._target()

    def jump(self) -> Node | OpenFile:
        """The object it leads to: a node, or an open file without one (a pipe, a socket)."""
        return self._jump()

    def stat(self) -> Stat:
        """The link's attributes."""
        now = self.volume.clock.realtime()
        mode = self.kind | 0o777
        return Stat(self.dev, self.ino, mode, 1, *self._owner, 0, 64, 1024, 0, now, now, now)


class HostSpecialNode(OverlayNode):
    """A FIFO, socket or device of the host: its attributes only."""

    __slots__ = ("_kind",)

    def __init__(self, volume: Volume, kind: int, lower: LowerRef, number: InodeNumber) -> None:
        super().__init__(volume, lower=lower, number=number)
        self._kind = kind

    @property
    def kind(self) -> int:  # type: ignore[override]
        """The file's type on the host."""
        return self._kind

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        raise LinuxError(EACCES)

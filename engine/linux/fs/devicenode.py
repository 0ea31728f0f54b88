"""Character devices as inodes."""

import stat
from collections.abc import Callable

from engine.linux.fs.attributes import Meta, Stat
from engine.linux.fs.vfs import Node, OpenFile, Volume


class DeviceNode(Node):
    """A character device; `make` opens it."""

    __slots__ = ("make", "meta", "rdev")

    kind = stat.S_IFCHR

    def __init__(
        self, volume: Volume, major: int, minor: int, make: Callable[[Node, int], OpenFile]
    ) -> None:
        super().__init__(volume)
        self.rdev = major << 8 | minor
        self.make = make
        self.meta = Meta(0o666, 0, 0, 1, volume.clock.realtime())

    def stat(self) -> Stat:
        """The device's attributes."""
        meta = self.meta
        now = meta.mtime
        return Stat(
            self.dev,
            self.ino,
            self.kind | meta.mode,
            1,
            meta.uid,
            meta.gid,
            self.rdev,
            0,
            4096,
            0,
            now,
            now,
            now,
        )

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        return self.make(self, flags)

    def change_times(self, atime: int | None, mtime: int | None) -> None:
        """Set times in nanoseconds; None leaves one alone."""

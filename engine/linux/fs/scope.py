"""Limits on where a path may lead: the RESOLVE flags of openat2 (fs/namei.c)."""

from typing import Final

from msgspec import Struct

from engine.linux.errno import LinuxError
from engine.linux.fs.vfs import Node

EXDEV, ELOOP = 18, 40

NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS = 0x01, 0x02, 0x04
BENEATH, IN_ROOT, CACHED = 0x08, 0x10, 0x20
VALID: Final = NO_XDEV | NO_MAGICLINKS | NO_SYMLINKS | BENEATH | IN_ROOT | CACHED


class PathScope(Struct, frozen=True):
    """Limits of one walk.

    Attributes:
        flags: RESOLVE flags.
    """

    flags: int

    @property
    def inside(self) -> bool:
        """True if the directory that the walk begins in is its root."""
        return bool(self.flags & (BENEATH | IN_ROOT))

    @property
    def rooted(self) -> bool:
        """True if absolute paths begin in that directory, too."""
        return bool(self.flags & IN_ROOT)

    def to_root(self, here: Node | None, root: Node) -> None:
        """Go to the root, from a node by an absolute symlink, or from nowhere.

        Raises:
            LinuxError: EXDEV.
        """
        if self.flags & BENEATH:
            raise LinuxError(EXDEV)
        if here is not None:
            self.cross(here, root)

    def above_root(self) -> None:
        """Go up from the root of the walk.

        Raises:
            LinuxError: EXDEV.
        """
        if self.flags & BENEATH:
            raise LinuxError(EXDEV)

    def cross(self, here: Node, there: Node) -> None:
        """Go from a node to another one.

        Raises:
            LinuxError: EXDEV.
        """
        if self.flags & NO_XDEV and here.volume is not there.volume:
            raise LinuxError(EXDEV)

    def follow(self) -> None:
        """Follow a symlink.

        Raises:
            LinuxError: ELOOP.
        """
        if self.flags & NO_SYMLINKS:
            raise LinuxError(ELOOP)

    def jump(self, here: Node, there: Node | None) -> None:
        """Follow a magic link, which leads to a node or to a file without one (nd_jump_link).

        Raises:
            LinuxError: ELOOP or EXDEV.
        """
        if self.flags & NO_MAGICLINKS:
            raise LinuxError(ELOOP)
        if self.inside or (self.flags & NO_XDEV and there is None):
            raise LinuxError(EXDEV)
        if there is not None:
            self.cross(here, there)

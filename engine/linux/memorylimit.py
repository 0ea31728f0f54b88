"""The one limit for memory that a guest makes the host hold: its pages, and what its kernel keeps.

Pages that programs touch are counted where they are touched (`engine.cpu.ram`). What the kernel
keeps for them is counted here, in bytes, and takes whole pages from the same number: contents and
names of files that are the guest's alone, data in pipes and sockets, messages, threads, mappings.
"""

import errno
from typing import Final, Protocol

from engine.linux.errno import LinuxError

PAGE: Final = 4096
DEFAULT_SPACE: Final = 1 << 30
"""Bytes that may be held where nobody says how many."""

_SPARE: Final = 1 << 20
_SPARE_SHARE: Final = 64
"""The kernel leaves so much, or this part of all memory, to programs, so that one that is told
of an error can still say so (as Linux keeps vm.min_free_kbytes)."""
_FORCED: Final = -(1 << 62)


class PageSource(Protocol):
    """Whoever counts the pages that programs touch.

    Attributes:
        refused: something was not done as no pages were left.
    """

    refused: bool

    def take_pages(self, count: int, spare: int = 0) -> bool:
        """Count so many pages more; False, and nothing is counted, where they are not left.

        So many spare ones are to be left behind them; with less than 0, pages are taken that are
        not left.
        """

    def give_pages(self, count: int) -> None:
        """Count so many pages less."""

    def pages_left(self) -> int:
        """Pages that may still be taken; may be less than 0."""

    def own_pages(self) -> int:
        """Pages that the engine has taken for itself."""


class CountedPages:
    """Pages of a machine of which nobody touches any.

    Attributes:
        refused: something was not done as no pages were left.
    """

    def __init__(self, size: int) -> None:
        self._left = size // PAGE
        self.refused = False

    def take_pages(self, count: int, spare: int = 0) -> bool:
        """Count so many pages more, if they are left."""
        if count + spare > self._left:
            self.refused = True
            return False
        self._left -= count
        return True

    def give_pages(self, count: int) -> None:
        """Count so many pages less."""
        self._left += count

    def pages_left(self) -> int:
        """Pages that may still be taken."""
        return self._left

    def own_pages(self) -> int:
        """None."""
        return 0


class MemoryLimit:
    """The limit of what all processes of a guest make the host hold.

    Attributes:
        total: bytes of it.
        held: bytes of what the kernel keeps.
    """

    __slots__ = ("_pages", "_refused", "_source", "_spare", "held", "total")

    def __init__(self, total: int = DEFAULT_SPACE, source: PageSource | None = None) -> None:
        """Count nothing yet.

        Args:
            total: bytes that may be held.
            source: counts the pages of programs; None where there are no programs.
        """
        self.total = total
        self.held = 0
        self._refused = False
        self._source: PageSource = CountedPages(total) if source is None else source
        self._spare = 0 if source is None else min(total // _SPARE_SHARE, _SPARE) // PAGE
        self._pages = 0

    @property
    def reached(self) -> bool:
        """True if something was refused because of the limit."""
        return self._refused or self._source.refused

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        pages = self._pages + self._source.pages_left() - self._spare
        return max(0, pages * PAGE - self.held)

    @property
    def shown(self) -> int:
        """The same as the guest is told, which has none of the engine's pages."""
        return self.left + self._source.own_pages() * PAGE

    def take(self, size: int, code: int = errno.ENOMEM) -> None:
        """Hold so many bytes more.

        Raises:
            LinuxError: of this code, if they are not left.
        """
        held = self.held + size
        more = (held + PAGE - 1) // PAGE - self._pages
        if more > 0:
            if not self._source.take_pages(more, self._spare):
                raise LinuxError(code)
            self._pages += more
        self.held = held

    def change(self, size: int) -> None:
        """Hold so many bytes more or less, whether or not they are left.

        For what must not fail: a caller that has asked `left`, data on its way, a rename.
        """
        self.held += size
        more = (self.held + PAGE - 1) // PAGE - self._pages
        if more > 0:
            self._source.take_pages(more, _FORCED)
        elif more < 0:
            self._source.give_pages(-more)
        self._pages += more

    def refuse(self, code: int = errno.ENOMEM) -> LinuxError:
        """The error of a call for which nothing is left, of which the user is told."""
        self.note()
        return LinuxError(code)

    def note(self) -> None:
        """Note that a call was refused because of the limit; the user is told at the end."""
        self._refused = True

    def require(self, size: int, code: int = errno.ENOMEM) -> None:
        """Look whether so many bytes are left, and hold none of them.

        Raises:
            LinuxError: of this code, if they are not.
        """
        if size > self.left:
            raise self.refuse(code)


class HeldMemory:
    """Memory of the guest that one object of its kernel holds; it goes back with the object.

    Attributes:
        size: bytes of it.
    """

    __slots__ = ("_limit", "size")

    def __init__(self, limit: MemoryLimit, size: int = 0, code: int = errno.ENOMEM) -> None:
        """Hold so many bytes.

        Args:
            limit: what they count against.
            size: bytes.
            code: that of the LinuxError beyond the limit.
        """
        self.size = 0
        self._limit = limit
        self.resize(size, code)

    def __del__(self) -> None:
        self._limit.change(-self.size)

    def resize(self, size: int, code: int = errno.ENOMEM) -> None:
        """Hold so many bytes from now on.

        Raises:
            LinuxError: of this code beyond the limit; what is held stays as it was.
        """
        more = size - self.size
        if more > 0:
            self._limit.take(more, code)
        else:
            self._limit.change(more)
        self.size = size

"""Mappings as values: what Linux calls vm_area_structs, and the pages that some share."""

import errno
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from engine.cpu.ram import PAGE


class ShownPages(Protocol):
    """Pages that hold a part of a file in its place, as long as shared mappings show them.

    Attributes:
        low: the first byte of the file that they hold.
        high: one past the last.
    """

    @property
    def low(self) -> int:
        """The first byte of the file that they hold."""

    @property
    def high(self) -> int:
        """One past the last."""

    def load(self, offset: int, size: int) -> bytes:
        """Bytes of the file."""

    def store(self, offset: int, data: bytes) -> bool:
        """Change them; False, and nothing is changed, beyond the guest's memory."""

    def clear(self, offset: int, size: int) -> None:
        """Make them zeros: whole pages take no memory any more."""

    def taken(self, offset: int, size: int) -> list[tuple[int, int]]:
        """(first, one past the last) of bytes that take memory; all others are zeros."""


class Contents(Protocol):
    """The content of a file that is the guest's alone, which pages can hold in its place."""

    def lend(self, pages: ShownPages, ranges: Sequence[tuple[int, int]]) -> bool:
        """Move bytes to pages, for as long as these show them; False beyond the guest's memory."""

    def reclaim(self, *, keep: bool) -> None:
        """Take all bytes back; the pages keep theirs if asked to, else they become zeros."""


class Backing(Protocol):
    """A file as a mapping needs it."""

    @property
    def size(self) -> int:
        """Bytes of the file now."""

    @property
    def writable(self) -> bool:
        """True if stores through shared mappings reach it."""

    @property
    def identity(self) -> object:
        """Equal for all mappings of one file."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes of the file; short at its end."""

    def write_back(self, offset: int, data: bytes) -> None:
        """Take the content of a shared writable mapping."""

    def host_descriptor(self) -> int | None:
        """A host descriptor that may be mapped privately, or None."""

    def contents(self) -> Contents | None:
        """Return the content that shared pages can hold in the file's place, if any."""


class SharedExtent(Struct, eq=False):
    """Physical pages of a file or of shared anonymous memory, for all its shared mappings.

    Attributes:
        backing: the file; None for anonymous memory.
        low: first offset in the object that has pages here.
        high: one past the last.
        physical: arena offset of `low`.
        mapped: bytes that mappings show of it; the pages go with the last.
        written: whether a mapping that may be written has ever shown it.
        lent: the content that these pages hold in its place; None where they are copies.
        mixed: whether one view may be written and another executed: the emulator does not
            notice that code changes through another view, so each page is open for one of the two.
        executing: numbers of the pages that are open to be executed.
        both: of those that are open for both, as their code writes to them.
    """

    backing: Backing | None
    low: int
    high: int
    physical: int
    mapped: int = 0
    written: bool = False
    lent: Contents | None = None
    mixed: bool = False
    executing: set[int] = field(default_factory=set)
    both: set[int] = field(default_factory=set)


COPIED, WIPED, OMITTED = 0, 1, 2
"""Bits of what a copy of an address space has of a mapping: the pages, empty ones, nothing."""


class Mapping(NamedTuple):
    """One mapping (a vm_area_struct).

    Attributes:
        start: first byte.
        end: one past the last.
        perms: READ, WRITE, EXECUTE bits.
        physical: arena offset of `start`; None while nobody may access it, and of private
            anonymous memory that gets pages where it is touched first (`FirstTouch`).
        name: path of the file, or "[stack]" and the like.
        offset: file offset of `start`.
        backing: the file, None for anonymous memory.
        shared: MAP_SHARED.
        inode: (device, inode) for /proc/self/maps.
        reserved: the engine's own window: the guest may not change it.
        extent: the pages that shared mappings of one object have in common.
        at_fork: COPIED, or WIPED and OMITTED bits of MADV_WIPEONFORK and MADV_DONTFORK.
    """

    start: int
    end: int
    perms: int
    physical: int | None = None
    name: str = ""
    offset: int = 0
    backing: Backing | None = None
    shared: bool = False
    inode: tuple[int, int] = (0, 0)
    reserved: bool = False
    extent: SharedExtent | None = None
    at_fork: int = COPIED

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start

    @property
    def awaits_pages(self) -> bool:
        """True for memory that may be accessed and has no pages yet."""
        return self.physical is None and self.perms != 0

    def continues(self, right: "Mapping") -> bool:
        """True if a mapping behind this one differs in nothing that a program could see."""
        return (
            self.end == right.start
            and self.perms == right.perms
            and self.name == right.name
            and self.backing is right.backing
            and self.extent is right.extent
            and self.shared == right.shared
            and self.inode == right.inode
            and self.reserved == right.reserved
            and self.at_fork == right.at_fork
            and right.offset
            == (self.offset + self.end - self.start if self.backing or self.extent else 0)
        )

    def part(self, start: int, end: int) -> "Mapping":
        """The piece between two addresses inside it."""
        at, _, perms, physical, name, offset, backing, shared, inode, *rest = self
        skip = start - at
        if physical is not None:
            physical += skip
        if backing or rest[1] or offset:
            offset += skip
        piece = (start, end, perms, physical, name, offset, backing, shared, inode, *rest)
        return tuple.__new__(Mapping, piece)  # `_replace` takes three times as long

    def at(self, physical: int) -> "Mapping":
        """The same mapping with pages in another place."""
        return tuple.__new__(Mapping, (*self[:3], physical, *self[4:]))


class MappingError(Exception):
    """A mapping call fails; `code` is the errno the guest gets."""

    def __init__(self, code: int) -> None:
        super().__init__(errno.errorcode.get(code, str(code)))
        self.code = code


def page_up(value: int) -> int:
    """Round up to a page."""
    return (value + PAGE - 1) & -PAGE

"""Archives of cpio's format `newc`, from which a kernel unpacks its first file system.

The same entries make the same bytes: all belong to root, their time is 0, and inodes are numbered
by the order of the entries. Source: Documentation/driver-api/early-userspace/buffer-format.rst.
"""

import stat
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

_MAGIC: Final = b"070701"
_ALIGNMENT: Final = 4
_TRAILER: Final = b"TRAILER!!!"
_HEADER: Final = 110


class ArchiveEntry(Struct, frozen=True):
    """A file, a folder, a link or a device of an archive.

    Attributes:
        path: from the root on, without a slash in front.
        mode: kind and permissions, as `stat` has them.
        data: of a file; a symbolic link's target.
        device: numbers of a device file, major and minor.
        links: number of names that the file has in the archive.
        identity: the same for all names of one file; None where it has one.
    """

    path: bytes
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)
    links: int = 1
    identity: tuple[int, int] | None = None


def entry_size(path: bytes, data: int) -> int:
    """The bytes that an entry takes in an archive.

    Args:
        path: of the entry.
        data: bytes of its content.
    """
    return _aligned(_HEADER + len(path) + 1) + _aligned(data)


def archive(entries: Sequence[ArchiveEntry]) -> bytes:
    """An archive of entries, in their order; folders stand in front of what is in them."""
    return b"".join(_pieces(entries))


def _pieces(entries: Sequence[ArchiveEntry]) -> Iterable[bytes]:
    inodes: dict[tuple[int, int], int] = {}
    for number, entry in enumerate(entries, 1):
        inode = number
        if entry.identity is not None:
            inode = inodes.setdefault(entry.identity, number)
        yield from _entry(entry, inode)
    yield from _entry(ArchiveEntry(_TRAILER, 0), 0)


def _entry(entry: ArchiveEntry, inode: int) -> Iterable[bytes]:
    links = 2 if stat.S_ISDIR(entry.mode) else entry.links
    fields = (
        *(inode, entry.mode, 0, 0, links, 0, len(entry.data)),
        *(0, 0, *entry.device, len(entry.path) + 1, 0),
    )
    head = _MAGIC + b"".join(b"%08x" % field for field in fields) + entry.path + b"\0"
    yield head.ljust(_aligned(len(head)), b"\0")
    yield entry.data
    yield bytes(-len(entry.data) % _ALIGNMENT)


def _aligned(size: int) -> int:
    return size + -size % _ALIGNMENT

"""The entries of an initramfs: what a kernel unpacks as its first file system.

Source: Documentation/driver-api/early-userspace/buffer-format.rst. An initramfs is a row of
archives of cpio's formats `newc` and `crc`, with zeros between; the last may be compressed, in
each way that kernels know. What is not well-formed ends it, as it does for the kernel.
"""

import stat
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.image.headers import Buffer
from engine.image.kernel.packing import decompressed
from engine.image.kernel.recognition import compression

_MAGICS: Final = (b"070701", b"070702")
_HEADER: Final = 110
_FIELD: Final = 8
_TRAILER: Final = b"TRAILER!!!"
_NAME_MAX: Final = 4096
"""PATH_MAX."""
_DEPTH: Final = 3
"""Of what is compressed in what is compressed."""


class ArchivedFile(Struct, frozen=True):
    """An entry of an initramfs: a file, a folder, a link.

    Attributes:
        path: from the root on, with a slash in front.
        data: its content; a symbolic link's target.
        mode: kind and permissions, as `stat` has them.
    """

    path: str
    data: memoryview
    mode: int


def initramfs_files(data: Buffer, name: str) -> Iterator[ArchivedFile]:
    """The regular files in an initramfs, in their order; of links to one it is the last name.

    Args:
        data: the whole file.
        name: of it, for messages.

    Raises:
        ImageError: what is compressed in it is damaged.
    """
    return (
        file for file in initramfs_entries(data, name) if stat.S_ISREG(file.mode) and file.data
    )


def initramfs_entries(data: Buffer, name: str) -> Iterator[ArchivedFile]:
    """Return the entries of an initramfs, in their order.

    Args:
        data: the whole file.
        name: of it, for messages.

    Raises:
        ImageError: what is compressed in it is damaged.
    """
    rest = memoryview(data)
    at = depth = 0
    while True:
        at += _zeros(rest, at)
        if depth < _DEPTH and compression(bytes(rest[at : at + _FIELD])):
            rest, at, depth = memoryview(decompressed(rest[at:], name)), 0, depth + 1
        numbers = _numbers(rest, at)
        if numbers is None:
            return
        mode, size, name_size = numbers[1], numbers[6], numbers[11]
        begin = at + _HEADER
        if not 0 < name_size <= _NAME_MAX or begin + name_size > len(rest):
            return
        path = bytes(rest[begin : begin + name_size]).rstrip(b"\0")
        start = begin + name_size + (-(begin + name_size) & 3)
        end = start + size
        if end > len(rest):
            return
        if path != _TRAILER:
            plain = path.removeprefix(b"./").lstrip(b"/").decode(errors="surrogateescape")
            yield ArchivedFile(f"/{plain}", rest[start:end], mode)
        at = end + (-end & 3)


def _zeros(data: memoryview, at: int) -> int:
    """The number of zeros at a place."""
    found = 0
    while True:
        piece = bytes(data[at + found : at + found + _NAME_MAX])
        plain = piece.lstrip(b"\0")
        found += len(piece) - len(plain)
        if plain or not piece:
            return found


def _numbers(data: memoryview, at: int) -> list[int] | None:
    """The fields of a header; None where there is none."""
    header = bytes(data[at : at + _HEADER])
    if len(header) < _HEADER or not header.startswith(_MAGICS):
        return None
    fields = header[6:]
    try:
        return [int(fields[n : n + _FIELD], 16) for n in range(0, len(fields), _FIELD)]
    except ValueError:
        return None

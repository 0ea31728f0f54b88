"""Columns of numbers in one file, ready to be used as they are mapped.

A file has a header with a format and a stamp, the names and places of its columns, and a checksum
of each. What does not fit is no error of anybody's: whoever reads it makes the columns anew.
"""

import struct
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from engine.image.headers import Buffer

if TYPE_CHECKING:
    from array import array

    _Numbers: TypeAlias = array[int]

Column: TypeAlias = "bytes | bytearray | memoryview | _Numbers"
"""The contents of a column."""

_MAGIC: Final = b"KTUICOLS"
_FORMAT: Final = 1
"""Counted up when the layout of these files changes."""
_HEADER: Final = struct.Struct("<8sII32s")
_PLACE: Final = struct.Struct("<24scxxxIQQ")
_SUM: Final = struct.Struct("<I4x")
_ALIGN: Final = 8
_MOST: Final = 64


class ColumnSet(Struct, frozen=True, eq=False):
    """Columns by name: bytes, or numbers of one of the formats B, I, Q.

    Attributes:
        parts: the columns by name.
    """

    parts: Mapping[str, memoryview]

    def numbers(self, name: str) -> memoryview:
        """A column of numbers."""
        return self.parts[name]

    def bytes(self, name: str) -> bytes:
        """A column of bytes, copied."""
        return self.parts[name].tobytes()


def columns_of(columns: Mapping[str, Column]) -> ColumnSet:
    """Columns that are in no file."""
    return ColumnSet({name: memoryview(column) for name, column in columns.items()})


def pack_columns(columns: Mapping[str, Column], stamp: bytes) -> Iterator[bytes | memoryview]:
    """The pieces of a file.

    Args:
        columns: by name, of 24 bytes at most.
        stamp: 32 bytes of what the columns were made by.
    """
    views = {name: memoryview(column) for name, column in columns.items()}
    at = _HEADER.size + len(views) * _PLACE.size + _SUM.size
    head = _HEADER.pack(_MAGIC, _FORMAT, len(views), stamp)
    for name, view in views.items():
        at += -at % _ALIGN
        kind = view.format.encode()
        head += _PLACE.pack(name.encode(), kind, zlib.crc32(view), at, view.nbytes)
        at += view.nbytes
    yield head + _SUM.pack(zlib.crc32(head))
    at = len(head) + _SUM.size
    for view in views.values():
        yield bytes(-at % _ALIGN)
        at += -at % _ALIGN + view.nbytes
        yield view.cast("B")


def read_columns(data: Buffer, stamp: bytes) -> ColumnSet:
    """The columns of a file.

    Args:
        data: the bytes of the file.
        stamp: that it must have.

    Raises:
        ValueError: it is damaged, or of another stamp or format.
    """
    if len(data) < _HEADER.size or sys.byteorder != "little":
        raise ValueError(f"{len(data)} bytes are no columns")
    magic, form, count, found = _HEADER.unpack_from(data)
    if (magic, form) != (_MAGIC, _FORMAT) or count > _MOST:
        raise ValueError("no columns of this format")
    if found != stamp:
        raise ValueError("made by another version of this program")
    end = _HEADER.size + count * _PLACE.size
    if len(data) < end + _SUM.size or _SUM.unpack_from(data, end) != (zlib.crc32(data[:end]),):
        raise ValueError("the header is damaged")
    whole = memoryview(data)
    parts: dict[str, memoryview] = {}
    for number in range(count):
        name, kind, check, at, size = _PLACE.unpack_from(data, _HEADER.size + number * _PLACE.size)
        title = name.rstrip(b"\0").decode()
        part = whole[at : at + size]
        if part.nbytes != size or zlib.crc32(part) != check:
            raise ValueError(f"column {title} is damaged")
        parts[title] = part.cast(kind.decode())
    return ColumnSet(parts)

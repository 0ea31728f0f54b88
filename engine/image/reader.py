"""A bounded cursor over bytes: what every parser of debug sections reads with.

Damage is normal input here. Nothing reads outside [start, end), nothing loops without
consuming a byte, and the only exception is `DamagedError`, which the parsers of this
package turn into "no information".
"""

import struct
from typing import Final

from engine.image.headers import Buffer

_MAX_LEB_BITS: Final = 70  # ten bytes hold 64 bits; longer ones are damage, not padding


class DamagedError(ValueError):
    """A record is not what its format says; never leaves engine.image."""


class Reader:
    """Reads integers, strings and blocks from `data` between `place` and `end`.

    Attributes:
        data: the bytes; offsets below are offsets into it.
        place: next offset to read.
        end: first offset that must not be read.
        order: "<" or ">" as struct spells it.
    """

    __slots__ = ("data", "end", "order", "place")

    def __init__(self, data: Buffer, place: int, end: int, order: str) -> None:
        """Start at `place`; an `end` behind the data is cut to its length."""
        self.data = data
        self.place = place
        self.end = min(end, len(data))
        self.order = order
        if place < 0:
            raise DamagedError("a negative offset")

    def take(self, size: int) -> int:
        """Move over `size` bytes and return where they start."""
        place = self.place
        if size < 0 or place + size > self.end:
            raise DamagedError(f"{size} bytes at {place:#x} reach past the end")
        self.place = place + size
        return place

    def block(self, size: int) -> bytes:
        """Copy `size` bytes."""
        place = self.take(size)
        return self.data[place : place + size]

    def u8(self) -> int:
        """One byte."""
        place = self.place
        if place >= self.end:
            self.take(1)  # which says so
        self.place = place + 1
        return self.data[place]

    def uint(self, size: int) -> int:
        """An unsigned integer of 1, 2, 4 or 8 bytes in the file's byte order."""
        form = {1: "B", 2: "H", 4: "I", 8: "Q"}.get(size)
        if form is None:
            raise DamagedError(f"an integer of {size} bytes")
        value: int = struct.unpack_from(self.order + form, self.data, self.take(size))[0]
        return value

    def sint(self, size: int) -> int:
        """As `uint`, in two's complement."""
        value = self.uint(size)
        return value - (1 << 8 * size) if value >> (8 * size - 1) else value

    def uleb(self) -> int:
        """An unsigned LEB128 number of at most 64 bits."""
        place = self.place
        if place < self.end and self.data[place] < 0x80:  # as nearly all are
            self.place = place + 1
            return self.data[place]
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF
            if shift >= _MAX_LEB_BITS:
                raise DamagedError("a LEB128 number of more than 64 bits")

    def sleb(self) -> int:
        """A signed LEB128 number of at most 64 bits."""
        start = self.place
        value = self.uleb()
        bits = 7 * (self.place - start)
        if bits >= 64:
            return value - (1 << 64) if value >> 63 else value
        return value - (1 << bits) if value >> (bits - 1) else value

    def cstring(self) -> bytes:
        """The bytes up to a NUL, which is consumed."""
        stop = self.data.find(b"\0", self.place, self.end)
        if stop < 0:
            raise DamagedError(f"no end of the string at {self.place:#x}")
        found = self.data[self.place : stop]
        self.place = stop + 1
        return found

    def initial_length(self) -> tuple[int, int]:
        """A DWARF unit length as (bytes that follow, size of an offset: 4 or 8).

        DWARF 5 section 7.4: 0xffffffff announces the 64-bit format.
        """
        length = self.uint(4)
        return (self.uint(8), 8) if length == 0xFFFFFFFF else (length, 4)

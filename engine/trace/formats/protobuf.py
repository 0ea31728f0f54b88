"""Protocol Buffers' wire format, as much as writing needs (protobuf.dev, "Encoding")."""

import struct
from collections.abc import Sequence
from functools import cache
from typing import Final

_SHORT: Final = tuple(bytes([value]) for value in range(0x80))
PIECE_BITS: Final = 14
PIECE: Final = 1 << PIECE_BITS


@cache
def pieces() -> tuple[list[bytes], list[bytes]]:
    """Groups of fourteen bits as the last bytes of a number, and with more behind them."""
    last = [bytes([n]) if n < 0x80 else bytes([n & 0x7F | 0x80, n >> 7]) for n in range(PIECE)]
    more = [bytes([n & 0x7F | 0x80, n >> 7 | 0x80]) for n in range(PIECE)]
    return last, more


def varint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first; negative ones as 64-bit."""
    if 0 <= value < 0x80:
        return _SHORT[value]
    last, more = pieces()
    if 0 <= value < PIECE:
        return last[value]
    value &= (1 << 64) - 1
    out = more[value & PIECE - 1]
    value >>= PIECE_BITS
    while value >= PIECE:
        out += more[value & PIECE - 1]
        value >>= PIECE_BITS
    return out + last[value]


def varints(values: Sequence[int]) -> list[bytes]:
    """The same of several that are not negative, quicker where many have the same high bits."""
    last, more = pieces()
    if max(values, default=0) < PIECE:
        return [last[value] for value in values]
    rests = {high: varint(high) for high in {value >> PIECE_BITS for value in values}}
    rests[0] = b""
    low = PIECE - 1
    return [
        more[value & low] + rests[value >> PIECE_BITS] if value > low else last[value]
        for value in values
    ]


def tag(field: int, wire: int) -> bytes:
    """The begin of a field: its number and how it is written, 0 for a number, 2 for bytes."""
    return varint(field << 3 | wire)


def number(field: int, value: int) -> bytes:
    """An integer, bool or enum field."""
    return tag(field, 0) + varint(value)


def fixed64(field: int, value: float) -> bytes:
    """A double field."""
    return tag(field, 1) + struct.pack("<d", value)


def data(field: int, value: bytes) -> bytes:
    """A string, bytes or message field."""
    return tag(field, 2) + varint(len(value)) + value

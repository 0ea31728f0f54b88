"""Protocol Buffers' wire format, as much as writing needs (protobuf.dev, "Encoding")."""

from functools import cache
from typing import Final

_SHORT: Final = tuple(bytes([value]) for value in range(0x80))
_PIECE: Final = 1 << 14


@cache
def _pieces() -> tuple[list[bytes], list[bytes]]:
    """Groups of fourteen bits as the last bytes of a number, and with more behind them."""
    last = [bytes([n]) if n < 0x80 else bytes([n & 0x7F | 0x80, n >> 7]) for n in range(_PIECE)]
    more = [bytes([n & 0x7F | 0x80, n >> 7 | 0x80]) for n in range(_PIECE)]
    return last, more


def varint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first; negative ones as 64-bit."""
    if 0 <= value < 0x80:
        return _SHORT[value]
    last, more = _pieces()
    if 0 <= value < _PIECE:
        return last[value]
    value &= (1 << 64) - 1
    out = more[value & _PIECE - 1]
    value >>= 14
    while value >= _PIECE:
        out += more[value & _PIECE - 1]
        value >>= 14
    return out + last[value]


def tag(field: int, wire: int) -> bytes:
    """The begin of a field: its number and how it is written, 0 for a number, 2 for bytes."""
    return varint(field << 3 | wire)


def number(field: int, value: int) -> bytes:
    """An integer, bool or enum field."""
    return tag(field, 0) + varint(value)


def data(field: int, value: bytes) -> bytes:
    """A string, bytes or message field."""
    return tag(field, 2) + varint(len(value)) + value

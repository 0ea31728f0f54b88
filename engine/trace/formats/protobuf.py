"""Protocol Buffers' wire format, as much as writing needs (protobuf.dev, "Encoding")."""

_SHORT = tuple(bytes([value]) for value in range(0x80))


def varint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first; negative ones as 64-bit."""
    if 0 <= value < 0x80:
        return _SHORT[value]
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An integer, bool or enum field."""
    return varint(field << 3) + varint(value)


def data(field: int, value: bytes) -> bytes:
    """A string, bytes or message field."""
    return varint(field << 3 | 2) + varint(len(value)) + value

"""Numbers of any length as DWARF writes them (DWARF 5, section 7.6)."""


def unsigned(value: int) -> bytes:
    """A number of at least 0."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def signed(value: int) -> bytes:
    """Any number."""
    found = bytearray()
    while not -0x40 <= value <= 0x3F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value & 0x7F)
    return bytes(found)

"""Bytes of a guest as string literals of C, in strace's manner."""

from typing import Final

_PLAIN: Final = {9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_SPACES: Final = frozenset((9, 10, 11, 12, 13))


def quoted(data: bytes, hexadecimal: int = 0) -> str:
    """A literal in double quotes.

    Args:
        data: the bytes.
        hexadecimal: 1 = text with bytes that no terminal shows is hexadecimal as a whole, 2 = all.
    """
    return f'"{escaped_text(data, hexadecimal)}"'


def escaped_text(data: bytes, hexadecimal: int = 0) -> str:
    """The same without the quotes."""
    odd = any(not 32 <= byte < 127 and byte not in _SPACES for byte in data)
    if hexadecimal > 1 or (hexadecimal and odd):
        return "".join(f"\\x{byte:02x}" for byte in data)
    found = []
    for index, byte in enumerate(data):
        if byte in _PLAIN:
            found.append(_PLAIN[byte])
        elif 32 <= byte < 127:
            found.append(chr(byte))
        else:
            digit = index + 1 < len(data) and 48 <= data[index + 1] <= 55
            found.append(f"\\{byte:03o}" if digit else f"\\{byte:o}")
    return "".join(found)

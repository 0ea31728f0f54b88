"""Packets of gdb's remote protocol: `$TEXT#SUM`, acknowledged or not (its manual, "Overview")."""

from collections import deque
from collections.abc import Iterator
from typing import Final

INTERRUPT: Final = b"\x03"
"""The byte that is no packet: the user wants the program to stop."""
MOST: Final = 1 << 20
"""Bytes of a packet that are taken at the most; gdb is told of fewer."""
_ESCAPED: Final = b"#$}*"
_XOR: Final = 0x20


class PacketReader:
    """Takes bytes as they come, and gives packets.

    Attributes:
        acknowledges: each packet is answered by `+` or `-`.
        answers: what is to be sent back for that.
    """

    def __init__(self) -> None:
        """Nothing has come."""
        self.acknowledges = True
        self.answers: deque[bytes] = deque()
        self._rest = bytearray()

    def take(self, data: bytes) -> Iterator[bytes]:
        """The packets that are whole now, `INTERRUPT` among them; what is no packet is dropped."""
        self._rest += data
        rest = self._rest
        while rest:
            if rest[0] == INTERRUPT[0]:
                del rest[0]
                yield INTERRUPT
                continue
            if rest[0] != ord("$"):
                # Acknowledgements, and anything else: up to what may be a begin.
                places = [at for at in (rest.find(b"$"), rest.find(INTERRUPT)) if at >= 0]
                del rest[: min(places, default=len(rest))]
                continue
            end = rest.find(b"#")
            if end < 0 or len(rest) < end + 3:
                if len(rest) > MOST:
                    rest.clear()
                return
            body, shown = bytes(rest[1:end]), bytes(rest[end + 1 : end + 3])
            del rest[: end + 3]
            if self.acknowledges:
                good = shown.lower() == b"%02x" % (sum(body) & 0xFF)
                self.answers.append(b"+" if good else b"-")
                if not good:
                    continue
            yield unescaped(body)


def unescaped(data: bytes) -> bytes:
    """The bytes of a packet as they are meant."""
    if b"}" not in data:
        return data
    first, *others = data.split(b"}")
    out = bytearray(first)
    for part in others:
        if part:
            out.append(part[0] ^ _XOR)
            out += part[1:]
    return bytes(out)


def escaped(data: bytes) -> bytes:
    """Bytes as a part of a packet."""
    if not any(each in data for each in _ESCAPED):
        return data
    out = bytearray()
    for each in data:
        if each in _ESCAPED:
            out += bytes((ord("}"), each ^ _XOR))
        else:
            out.append(each)
    return bytes(out)


def packet(body: bytes) -> bytes:
    """A packet of a text that is escaped already."""
    return b"$%s#%02x" % (body, sum(body) & 0xFF)

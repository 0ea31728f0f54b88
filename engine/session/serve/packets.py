"""Packets of gdb's remote protocol: `$TEXT#SUM`, acknowledged or not (its manual, "Overview").

Whoever can be made to connect could be made to send packets among other things: a browser, by a
page that is open in it, sends a request with any text. So nothing but packets, acknowledgements
and interrupts is taken, and the first packet is one that only a debugger begins with.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

INTERRUPT: Final = b"\x03"
"""The byte that is no packet: the user wants the program to stop."""
MOST: Final = 1 << 20
"""Bytes of a packet that are taken at the most; gdb is told of fewer."""
_ESCAPED: Final = b"#$}*"
_XOR: Final = 0x20
_BEGIN: Final = ord("$")
_ACKNOWLEDGEMENTS: Final = b"+-"
_GOOD: Final = ord("+")
_FIRST: Final = (b"qSupported", b"QStartNoAckMode", b"!", b"?", b"Hg", b"Hc")
"""Packets that debuggers begin with: gdb, lldb, simple clients that ask for the stop."""
_DIGITS: Final = re.compile(rb"[0-9a-fA-F]{1,32}")
_HTTP: Final = re.compile(rb"[!#$%&'*+.^_`|~A-Za-z0-9-]+ [^\r\n]* HTTP/|PRI \* HTTP/2")


class ForeignBytesError(Exception):
    """Bytes that are not the protocol; the text says what they look like.

    Attributes:
        is_http: a request of a browser's.
    """

    def __init__(self, text: str, *, is_http: bool = False) -> None:
        super().__init__(text)
        self.is_http = is_http


class Documents:
    """Answers qXfer: documents that gdb reads piece by piece."""

    def __init__(self, find: Callable[[bytes, bytes], bytes | None], size: int) -> None:
        """Serve documents.

        Args:
            find: the document of a name and an annex; None for one that is not known.
            size: bytes of a packet.
        """
        self._find, self._most = find, size // 2

    def answer(self, words: bytes) -> bytes:
        """A piece of a document, escaped; nothing where there is none.

        Raises:
            ValueError: the question is damaged.
        """
        what, verb, annex, where = words.split(b":", 3)
        offset, size = (number(word) for word in where.split(b","))
        data = self._find(what, annex) if verb == b"read" else None
        if data is None:
            return b""
        piece = data[offset : offset + min(size, self._most)]
        more = b"m" if offset + len(piece) < len(data) else b"l"
        return more + escaped(piece)


class PacketReader:
    """Takes bytes as they come, and gives packets.

    Attributes:
        acknowledges: each packet is answered by `+` or `-`.
        answers: acknowledgements to be sent.
        begun: the first packet has come.
    """

    def __init__(self) -> None:
        """Nothing has come."""
        self.acknowledges = True
        self.answers: deque[bytes] = deque()
        self.begun = False
        self._rest = bytearray()
        self._last: bytes | None = None
        self._confirms = False
        self._confirmed = False

    def take(self, data: bytes) -> list[bytes]:
        """Return the packets that are whole now, `INTERRUPT` among them.

        Raises:
            ForeignBytesError: something among the bytes is not the protocol; none of what came
                with it is given.
        """
        self._rest += data
        try:
            return list(self._packets())
        except ForeignBytesError:
            self._rest.clear()
            raise

    def _packets(self) -> Iterator[bytes]:
        rest = self._rest
        if not self.begun and _HTTP.match(rest):
            raise ForeignBytesError("an HTTP request, as a browser sends one", is_http=True)
        while rest:
            if rest[0] == INTERRUPT[0] and self.begun:
                del rest[0]
                yield INTERRUPT
                continue
            if rest[0] in _ACKNOWLEDGEMENTS:
                if rest[0] == _GOOD:
                    self._confirms = self._confirmed = True
                del rest[0]
                continue
            if rest[0] != _BEGIN:
                raise ForeignBytesError(f"bytes that begin with {bytes(rest[:16])!r}")
            end = rest.find(b"#")
            if end < 0 or len(rest) < end + 3:
                if len(rest) > MOST:
                    raise ForeignBytesError(f"a packet of more than {MOST} bytes")
                return
            body, shown = bytes(rest[1:end]), bytes(rest[end + 1 : end + 3])
            del rest[: end + 3]
            good = shown.lower() == b"%02x" % (sum(body) & 0xFF)
            if not self.begun:
                if not good or not body.startswith(_FIRST):
                    raise ForeignBytesError(f"a first packet {body[:16]!r}")
                self.begun = True
            if self.acknowledges:
                if good and self._is_again(body):
                    continue
                self.answers.append(b"+" if good else b"-")
                if not good:
                    continue
                self._last, self._confirmed = body, False
            yield unescaped(body)

    def _is_again(self, body: bytes) -> bool:
        """Return whether a packet is the one before, sent again as its `+` came late.

        gdb sends a packet again every two seconds until the server, which may still be starting,
        acknowledges the packet (`putpkt_binary` of gdb/remote.c). A second answer would be taken
        for that of the next packet. Links lose nothing, so the first `+` is on its way, and
        between two packets that are meant gdb acknowledges an answer. A client that has never
        acknowledged anything may send what it likes.
        """
        return self._confirms and not self._confirmed and body == self._last


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


def number(word: bytes) -> int:
    """Return the number that a word of a packet stands for, which is hexadecimal.

    Raises:
        ValueError: the word is another one; Python's own reading takes signs and underscores.
    """
    if not _DIGITS.fullmatch(word):
        raise ValueError(word)
    return int(word, 16)

"""Strings in memory: runs of characters that can be shown, found page by page."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

PAGE: Final = 4096
PAGES: Final = 16
"""Pages that are looked through at once."""
LEAST: Final = 4
"""Bytes of a string."""
_STRING: Final = re.compile(
    rb"(?:[\t\n\r\x1b\x20-\x7e]|[\xc2-\xdf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}){%d,}" % LEAST
)


class FoundString(Struct, frozen=True):
    """A string.

    Attributes:
        address: of its first byte.
        data: its bytes, without the NUL behind it.
        ended: a NUL stands behind it.
    """

    address: int
    data: bytes
    ended: bool

    @property
    def text(self) -> str:
        """The string, as C writes it."""
        text = self.data.decode(errors="replace")
        for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
            text = text.replace(sign, written)
        text = text.replace("\r", "\\r").replace("\x1b", "\\033")
        return f'"{text}"'


class StringScan:
    """Finds the strings from an address on."""

    def __init__(self, page_of: Callable[[int], bytes | None]) -> None:
        """Look at nothing yet.

        Args:
            page_of: bytes of the page at an address, b"" where nothing is mapped, None while the
                page is not known; it is asked for then.
        """
        self._page_of = page_of
        self._start = 0
        self._found: list[FoundString] | None = None

    def begin(self, address: int) -> None:
        """Look from an address on."""
        self._start = address
        self._found = None

    def forget(self) -> None:
        """Look anew: pages have come, or memory has changed."""
        self._found = None

    @property
    def end(self) -> int:
        """The address up to which is looked."""
        return (self._start & -PAGE) + PAGES * PAGE

    @property
    def found(self) -> Sequence[FoundString]:
        """The strings, by address."""
        if self._found is None:
            self._found = list(self._look())
        return self._found

    def _look(self) -> list[FoundString]:
        found: list[FoundString] = []
        known, start = bytearray(), self._start & -PAGE
        for page in range(start, self.end, PAGE):
            data = self._page_of(page)
            if not data:  # a string does not go on beyond what is known
                found += self._strings(bytes(known), start)
                known.clear()
                start = page + PAGE
            else:
                known += data
        return found + self._strings(bytes(known), start)

    def _strings(self, data: bytes, start: int) -> list[FoundString]:
        from_here = max(self._start - start, 0)
        return [
            FoundString(start + at.start(), at[0], data[at.end() : at.end() + 1] == b"\0")
            for at in _STRING.finditer(data, from_here)
        ]

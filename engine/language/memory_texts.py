"""Texts in a guest's memory, in quotes as gdb shows them (gdb/valprint.c, val_print_string)."""

from contextlib import suppress
from typing import Final

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.language.print_options import PrintOptions
from engine.language.quoting import quoted, quoted_wide
from engine.language.surroundings import Surroundings

_WIDE_MARKS: Final = {2: "u", 4: "U"}
"""Marks of texts in memory that `x/hs` and `x/ws` read."""


class MemoryTexts(Struct, frozen=True):
    """Reads texts.

    Attributes:
        around: the place that they are from.
        options: how much of them is shown.
    """

    around: Surroundings
    options: PrintOptions

    def pointed(self, address: int) -> str:
        """A text that a pointer leads to, behind its address; "" for none."""
        if not address:
            return ""
        try:
            return " " + self.string_at(address)[0]
        except GuestFaultError as error:
            return f" {marked_error(error)}"

    def wide(self, address: int, size: int, mark: str) -> str:
        """A text of wider characters in memory in quotes."""
        try:
            found, ends = self.wide_until_nul(address, size, self.options.elements)
        except GuestFaultError as error:
            return marked_error(error)
        shown = quoted_wide(found, size, self.around.order, mark, self.options.repeats)
        return shown + ("" if ends else "...")

    def string_at(self, address: int, most: int | None = None) -> tuple[str, int]:
        """A string in memory in quotes, and the bytes that it takes with its NUL.

        Raises:
            GuestFaultError: not even its first byte can be read.
        """
        most = self.options.elements if most is None else most
        data, ends = self.until_nul(address, most)
        size = len(data) + ends
        if not ends and len(data) == most:
            with suppress(GuestFaultError):  # its end may be just behind
                ends = self.around.read(address + most, 1) == b"\0"
        return quoted(data, self.options.repeats) + ("" if ends else "..."), size

    def text_at(self, address: int, size: int) -> tuple[str, int]:
        """The same with characters of 1, 2 (u"") or 4 bytes (U"").

        Raises:
            GuestFaultError: not even its first character can be read.
        """
        mark = _WIDE_MARKS.get(size)
        if mark is None:
            return self.string_at(address)
        raw, ends = self.wide_until_nul(address, size, self.options.elements)
        shown = quoted_wide(raw, size, self.around.order, mark, self.options.repeats)
        return shown + ("" if ends else "..."), len(raw) + size * ends

    def wide_until_nul(self, address: int, size: int, most: int) -> tuple[bytes, bool]:
        """Bytes of a text of wider characters, at most so many of these; True if it ends there.

        Raises:
            GuestFaultError: not even its first character can be read.
        """
        found = b""
        while len(found) < most * size:
            try:
                piece = self.around.read(address + len(found), size)
            except GuestFaultError:
                if not found:
                    raise
                break
            if not any(piece):
                return found, True
            found += piece
        return found, False

    def until_nul(self, address: int, most: int) -> tuple[bytes, bool]:
        """Bytes of a string in memory, at most so many; True if it ends there.

        Raises:
            GuestFaultError: not even its first byte can be read.
        """
        found = b""
        while len(found) < most:
            at = address + len(found)
            step = min(64 - at % 64, most - len(found))
            try:
                piece = self.around.read(at, step)
            except GuestFaultError:  # as far as it goes, a byte at a time
                try:
                    piece = self.around.read(at, 1)
                except GuestFaultError:
                    if not found:
                        raise
                    return found, False
            end = piece.find(b"\0")
            if end >= 0:
                return found + piece[:end], True
            found += piece
        return found, False


def marked_error(error: Exception) -> str:
    """The text in place of a value that cannot be read, as gdb has it."""
    if isinstance(error, GuestFaultError):
        return f"<error: Cannot access memory at address {error.address:#x}>"
    return f"<error: {error}>"

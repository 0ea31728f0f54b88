"""A system call that is being shown: its numbers, and the guest's memory behind them."""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct, field

from engine.arch.base import LinuxAbi
from engine.errors import GuestFaultError

READ_MAX: Final = 1 << 20
"""Bytes that one argument makes us read at most."""
_PAGE: Final = 4096
PATH_MAX: Final = 4096
"""Bytes of a path that are shown (PATH_MAX)."""
MASK64: Final = (1 << 64) - 1
_ARRAY_MAX: Final = 1 << 12


class CallStyle(Struct, frozen=True):
    """The style in which calls are shown.

    Attributes:
        string_max: bytes of a string or a buffer that are shown (-s).
        verbose: structures are shown whole (-v).
        hexadecimal: 1 for strings that no terminal shows, 2 for all (-x, -xx).
        paths: 1 = descriptors with their files, 2 = with what sockets are connected to (-y, -yy).
        whole: calls whose structures are shown whole (-e abbrev=!...); None for all or none,
            by `verbose`.
        plain: calls whose structures are not read (-e verbose=!...).
        raw: calls whose arguments are shown as numbers (-e raw=...).
    """

    string_max: int = 32
    verbose: bool = False
    hexadecimal: int = 0
    paths: int = 0
    whole: Callable[[str], bool] | None = None
    plain: Callable[[str], bool] = lambda name: False
    raw: Callable[[str], bool] = lambda name: False


class GuestFacts(Struct, frozen=True):
    """The ABI of the guest.

    Attributes:
        order: of bytes, for `struct`.
        linux: facts of the architecture in the ABI of Linux.
    """

    order: str
    linux: LinuxAbi

    @property
    def byteorder(self) -> Literal["little", "big"]:
        """The order of bytes in words."""
        return "little" if self.order == "<" else "big"


class TracedCall(Struct):
    """One system call.

    Attributes:
        name: of the call.
        arguments: its six numbers.
        facts: of the architecture.
        style: how it is shown.
        memory: reads (address, size); raises GuestFaultError.
        path_of: shows the file of a descriptor, "" for none.
        netlink_of: the protocol of a descriptor that is a netlink socket, -1 for any other.
        result: of a call that has returned; None before.
        saved: what was noted when it was made, for what is shown when it returns.
        comment: stands behind the result.
    """

    name: str
    arguments: tuple[int, ...]
    facts: GuestFacts
    style: CallStyle
    memory: Callable[[int, int], bytes]
    path_of: Callable[[int], str]
    netlink_of: Callable[[int], int] = lambda number: -1
    result: int | None = None
    saved: dict[Any, Any] = field(default_factory=dict)
    comment: str = ""

    @property
    def failed(self) -> bool:
        """True if it has returned an error."""
        return self.result is not None and -4096 < self.result < 0

    @property
    def whole(self) -> bool:
        """True if structures are shown whole."""
        found = self.style.whole
        return self.style.verbose if found is None else found(self.name)

    @property
    def plain(self) -> bool:
        """True if structures are shown as addresses."""
        return self.style.plain(self.name)

    def read(self, address: int, size: int) -> bytes | None:
        """Bytes of a structure; None where they cannot be read, are too many, or not wanted."""
        return None if self.plain else self.peek(address, size)

    def peek(self, address: int, size: int) -> bytes | None:
        """Bytes of text or of a buffer; None where they cannot be read, or are too many."""
        if not 0 <= size <= READ_MAX or not address:
            return None
        try:
            return self.memory(address & MASK64, size)
        except GuestFaultError:
            return None

    def number(self, address: int, size: int = 8, *, signed: bool = False) -> int | None:
        """A number of the guest's memory; None where it cannot be read."""
        data = self.read(address, size)
        if data is None:
            return None
        return int.from_bytes(data, self.facts.byteorder, signed=signed)

    def cstring(self, address: int, limit: int) -> tuple[bytes, bool] | None:
        """Text up to its NUL, and whether that came within the limit; None for a bad address."""
        found = bytearray()
        while len(found) < limit:
            here = address + len(found)
            data = self.peek(here, min(limit - len(found), _PAGE - here % _PAGE))
            if data is None:
                return None
            end = data.find(0)
            if end >= 0:
                return bytes(found) + data[:end], True
            found += data
        return bytes(found), False

    def count(self, wanted: int) -> int:
        """Elements of an array that are looked at."""
        return min(wanted, _ARRAY_MAX)


Words = tuple[str, ...]
Kind = Callable[[TracedCall, int, Words], str | None]
"""Shows an argument of a call by its place; None where it and those behind it are not shown."""
Scalar = Callable[[TracedCall, int, Words], str]
"""Shows a number."""


def pointer(address: int) -> str:
    """An address."""
    return f"{address & MASK64:#x}" if address & MASK64 else "NULL"


def signed(value: int, bits: int) -> int:
    """The low bits of a number, with their sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value

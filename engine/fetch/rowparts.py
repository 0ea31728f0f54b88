"""Functions that recorders call: arrays, arrays of strings, rows as long as their strings."""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from engine.errors import GuestFaultError
from engine.fetch.context import STRING_MAX, FetchMemory

Pack: TypeAlias = Callable[..., None]


class Packers(dict[int, Pack]):
    """`pack_into` for rows with strings' bytes, by the size of the row in bytes.

    What is packed last is padded with zeros.
    """

    def __init__(self, words: int) -> None:
        """`words` are those of a row without the bytes."""
        super().__init__()
        self._words = words

    def __missing__(self, size: int) -> Pack:
        """One for a size that has not been met yet."""
        room = size - self._words * 8
        pack = self[size] = struct.Struct(f"<II{self._words - 1}Q{room}s").pack_into
        return pack


@lru_cache(64)
def packers(words: int) -> Packers:
    """The packers of rows with so many words, which all recorders share."""
    return Packers(words)


class Shapes(dict[int, tuple[Pack, int, int, int]]):
    """Rows with one string, by its length; -1 stands for one that could not be read.

    A shape is the `pack_into`, half of the first word, the string's word, and the row's size.
    """

    def __init__(self, number: int, words: int) -> None:
        """For rows.

        Args:
            number: the low half of the event's.
            words: of a row without the string's bytes.
        """
        super().__init__()
        self._number = number
        self._fixed = words * 8
        self._packers = packers(words)

    def __missing__(self, length: int) -> tuple[Pack, int, int, int]:
        """One for a length that has not been met yet."""
        size = self._fixed + length + 1 + 7 & -8
        head, word = self._number | size << 13, self._fixed | length + 1 << 32
        shape = self[length] = self._packers[size], head, word, size
        return shape


def lay_texts(fixed: int, room: int, texts: Sequence[bytes]) -> tuple[list[int], bytes]:
    """The words and the bytes of strings that stand one behind the other.

    Args:
        fixed: bytes of the row in front of them.
        room: bytes that a row may have: what does not fit is cut, and gets a NUL.
        texts: each with its NUL; one that is empty could not be read.
    """
    words: list[int] = []
    end = fixed
    kept: list[bytes] = []
    for text in texts:
        if end + len(text) > room:
            text = text[: room - end - 1] + b"\0" if room - end > 1 else b""
        words.append(end | len(text) << 32)
        kept.append(text)
        end += len(text)
    return words, b"".join(kept)


def array_reader(
    memory: FetchMemory, element: str, count: int, mask: int
) -> Callable[[int], Sequence[int]]:
    """Reads an array of numbers; an element that cannot be read is 0.

    Args:
        memory: of the guest.
        element: format of one, for `struct`.
        count: of elements.
        mask: of an address.
    """
    single = struct.Struct(element)
    size, one = single.size, memory.reader(single)
    whole = memory.reader(struct.Struct(f"{element[0]}{count}{element[1]}"))

    def load(address: int) -> Sequence[int]:
        try:
            return whole(address)
        except GuestFaultError:
            return [number(address + size * index & mask) for index in range(count)]

    def number(address: int) -> int:
        try:
            value: int = one(address)[0]
        except GuestFaultError:
            return 0
        return value

    return load


def texts_reader(
    memory: FetchMemory, pointer: str, count: int, mask: int
) -> Callable[[int], Sequence[bytes]]:
    """Reads strings by an array of pointers; one that cannot be read is empty.

    Args:
        memory: of the guest.
        pointer: format of one, for `struct`.
        count: of strings.
        mask: of an address.
    """
    layout = struct.Struct(pointer)
    follow, text, size = memory.reader(layout), memory.text_reader(STRING_MAX - 1), layout.size

    def one(address: int) -> bytes:
        try:
            return text(follow(address)[0]) + b"\0"
        except GuestFaultError:
            return b""

    return lambda address: [one(address + size * index & mask) for index in range(count)]


def symbol_finder(
    name: str, offset: int, mask: int, where: Callable[[str], int | None]
) -> Callable[[], int]:
    """Gives the address of a symbol plus an offset, a fault while its file is not there.

    Args:
        name: of the symbol.
        offset: from it.
        mask: of an address.
        where: looks it up in the guest.
    """

    def address() -> int:
        found = where(name)
        if found is None:
            raise GuestFaultError(0, "read")
        return found + offset & mask

    return address

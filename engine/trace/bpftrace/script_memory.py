"""Memory that actions read where a script takes the address of its own variables (`&$x`).

A variable has an address that no guest has anything at, as it is not canonical; what is read there
is the value that the variable has at that moment.
"""

from collections.abc import Callable
from typing import Any, Final

from engine.trace.bpftrace.conversion_code import memory_bytes
from engine.trace.bpftrace.type_rules import type_size
from engine.trace.bpftrace.types import (
    Array,
    Boolean,
    BufferType,
    Enumeration,
    Integer,
    Pointer,
    Structure,
    TextType,
    Type,
)

_FIRST: Final = 0x00F0 << 48
"""The address of the first variable."""
_ROOM: Final = 1 << 24
"""Bytes between two variables: more than a value has."""
_MASK: Final = (1 << 64) - 1


def has_address(kind: Type) -> bool:
    """True for types whose values are the same bytes wherever they are."""
    if isinstance(kind, Array):
        return has_address(kind.element)
    plain = Integer | Enumeration | Boolean | Pointer | TextType | BufferType | Structure
    return isinstance(kind, plain)


class BytesOf:
    """Makes the bytes of values of a type."""

    def __init__(self, kind: Type) -> None:
        self._kind = kind
        self._size = type_size(kind)

    def __call__(self, value: Any) -> bytes:
        """The bytes of a value, as many as its type has."""
        if isinstance(self._kind, Boolean):
            return bytes((bool(value),))
        if isinstance(self._kind, Pointer):
            return (int(value) & _MASK).to_bytes(8, "little")
        return memory_bytes(value, self._kind).ljust(self._size, b"\0")[: self._size]


class ScriptMemory:
    """The guest's memory with the variables of one action in it.

    Args:
        memory: reads bytes of the guest.
        string: reads a string of the guest.
    """

    def __init__(
        self,
        memory: Callable[[int, int], bytes | None],
        string: Callable[[int, int], bytes],
    ) -> None:
        self._memory = memory
        self._string = string
        self._taken: dict[int, Callable[[], bytes]] = {}

    def taken(self, number: int, read: Callable[[], bytes]) -> int:
        """Give a variable its address.

        Args:
            number: of the variable in the action.
            read: makes the bytes of its value.
        """
        self._taken[number] = read
        return _FIRST + number * _ROOM

    def memory(self, address: int, size: int) -> bytes | None:
        """Bytes at an address; None where they cannot be read."""
        found = self._own(address)
        return self._memory(address, size) if found is None else found[:size].ljust(size, b"\0")

    def string(self, address: int, size: int) -> bytes:
        """A string of at most so many bytes with its NUL, which is left out."""
        found = self._own(address)
        if found is None:
            return self._string(address, size)
        return found.split(b"\0", 1)[0][: max(size - 1, 0)]

    def _own(self, address: int) -> bytes | None:
        """The bytes of a variable from an address on; None if it is none of a variable."""
        number, offset = divmod((address & _MASK) - _FIRST, _ROOM)
        read = self._taken.get(number)
        return None if read is None else read()[offset:]

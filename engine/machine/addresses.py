"""A machine's memory by the addresses that its kernel uses: through the page tables of the moment.

The tables are walked as the processor walks them (Intel's manual, volume 3, 4-level paging),
without its faults and without marks of an access. What is not mapped, or where no memory is,
raises `GuestFaultError`; who may read a page does not matter.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from engine.cpu.unicorn_system import PAGE, SystemCpu
from engine.errors import GuestFaultError

_WORD: Final = struct.Struct("<Q")
_PRESENT, _LARGE = 1, 1 << 7
_FRAME: Final = ((1 << 52) - 1) & -PAGE
_LEVELS: Final = (39, 30, 21, 12)
"""The bit of an address that each level's index begins at."""
_CANONICAL: Final = (0, (1 << 17) - 1)
"""Bits 47 to 63 of an address that there may be."""


class KernelAddresses:
    """The addresses of what runs, while the processor stands still.

    Pages that were found are remembered until `forget`.
    """

    def __init__(self, cpu: SystemCpu) -> None:
        """Read a processor's memory."""
        self._cpu = cpu
        self._memory = cpu.memory
        self._size = len(cpu.memory)
        self._pages: dict[int, int] = {}
        self._root = -1

    def leave_program(self) -> bool:
        """Read by the kernel's own tables from now on, where programs run with others.

        A kernel that isolates its page tables has two at a time, of a page each: that of programs
        stands behind its own (arch/x86/entry/calling.h).

        Returns:
            False if that changes nothing.
        """
        if self._root != -1 or not self._cpu.tables & PAGE:
            return False
        self._root = ~PAGE
        self.forget()
        return True

    def forget(self) -> None:
        """The processor has run: other pages may be mapped now."""
        self._pages.clear()

    def physical(self, address: int) -> tuple[int, int]:
        """Return the place in the memory that an address leads to, and how many bytes follow.

        Raises:
            GuestFaultError: it is not mapped, or leads to no memory.
        """
        known = self._pages.get(address >> 12)
        if known is not None:
            offset = address & PAGE - 1
            return known + offset, PAGE - offset
        if address >> 47 not in _CANONICAL:
            raise GuestFaultError(address, "read")
        entry = self._cpu.tables & self._root
        for shift in _LEVELS:
            at = (entry & _FRAME) + 8 * (address >> shift & 511)
            if at + 8 > self._size:
                raise GuestFaultError(address, "read")
            (entry,) = _WORD.unpack_from(self._memory, at)
            if not entry & _PRESENT:
                raise GuestFaultError(address, "read")
            if shift == _LEVELS[-1] or (entry & _LARGE and shift < _LEVELS[0]):
                span = 1 << shift
                at = (entry & _FRAME & -span) + address % span
                left = span - address % span
                if at >= self._size:
                    raise GuestFaultError(address, "read")
                self._pages[address >> 12] = at & -PAGE
                return at, min(left, self._size - at)
        raise GuestFaultError(address, "read")

    def is_empty(self, address: int) -> bool:
        """True if the tables have nothing at all for an address: no page that is elsewhere."""
        entry = self._cpu.tables & self._root
        for shift in _LEVELS:
            at = (entry & _FRAME) + 8 * (address >> shift & 511)
            if at + 8 > self._size:
                return False
            (entry,) = _WORD.unpack_from(self._memory, at)
            if not entry & _PRESENT:
                return not entry
            if entry & _LARGE and shift < _LEVELS[0]:
                return False
        return False

    def read_physical(self, at: int, size: int) -> bytes:
        """Bytes at a place in the memory.

        Raises:
            GuestFaultError: the memory ends in front of it.
        """
        if not 0 <= at <= self._size - size:
            raise GuestFaultError(at, "read")
        return self._memory[at : at + size]

    def read(self, address: int, size: int) -> bytes:
        """Some bytes.

        Raises:
            GuestFaultError: not all of them are there.
        """
        at, left = self.physical(address)
        if size <= left:
            return self._memory[at : at + size]
        pieces = [self._memory[at : at + left]]
        while left < size:
            at, more = self.physical(address + left)
            pieces.append(self._memory[at : at + min(more, size - left)])
            left += more
        return b"".join(pieces)

    def reader(self, layout: struct.Struct) -> Callable[[int], tuple[Any, ...]]:
        """A function that unpacks a structure at an address; it raises `GuestFaultError`."""
        size, unpack, memory, physical = (
            layout.size,
            layout.unpack_from,
            self._memory,
            self.physical,
        )

        def load(address: int) -> tuple[Any, ...]:
            at, left = physical(address)
            if size <= left:
                return unpack(memory, at)
            return layout.unpack(self.read(address, size))

        return load

    def text_reader(self, limit: int) -> Callable[[int], bytes]:
        """A function that copies a string at an address, cut at `limit` bytes, without its NUL."""
        return lambda address: self.read_cstring(address, limit)

    def read_cstring(self, address: int, limit: int = 4096) -> bytes:
        """Bytes up to a NUL, without it; cut at `limit` bytes if there is none.

        Raises:
            GuestFaultError: memory ends in front of it.
        """
        found = b""
        while len(found) < limit:
            at, left = self.physical(address + len(found))
            left = min(left, limit - len(found))
            end = self._memory.find(b"\0", at, at + left)
            if end >= 0:
                return found + self._memory[at:end]
            found += self._memory[at : at + left]
        return found

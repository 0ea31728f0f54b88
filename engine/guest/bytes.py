"""Bytes of the guest's memory, as its kernel and the engine copy them."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Final

from engine.cpu.base import Cpu
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE, Ram
from engine.errors import GuestFaultError
from engine.guest.mapping import Mapping

NO_WINDOW: Final = (0, 0, 0)
"""No address is inside."""

_SHORT: Final = 64
"""Bytes that are looked at first for the end of a string."""


class MappedBytes:
    """Copies in and out of mappings that `find` knows."""

    _ram: Ram
    _cpu: Cpu
    on_exhausted: Callable[[int], None]
    """Told the address when a copy into the guest finds no memory left."""
    closed: dict[int, int]
    """Pages that keep only some of their permissions, and which."""
    before_write: Callable[[int, int], None]
    """Told (address, size) before the kernel writes while there are closed pages."""
    after_write: Callable[[int, int], None]
    """Told afterwards."""
    _window: tuple[int, int, int]
    """(first, behind the last, what gives the place in the arena) of where the last string that
    was read may begin; `NO_WINDOW` when mappings have changed."""

    def find(self, address: int) -> Mapping | None:
        """The mapping that covers an address."""
        raise NotImplementedError

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes out as the kernel would for the program (`PROT_NONE` faults)."""
        mapping = self.find(address)
        if mapping is not None and address + size <= mapping.end:  # the usual case
            if mapping.physical is None or not mapping.perms:
                raise GuestFaultError(address, "read")
            return self._ram.read(mapping.physical + address - mapping.start, size)
        return b"".join(
            self._ram.read(at, part) for at, part in self._pieces(address, size, READ, "read")
        )

    def words(self, mapping: Mapping) -> memoryview:
        """A mapping's memory as the host's 64-bit words, for as long as `find` gives it.

        For whoever reads single words again and again.
        """
        assert mapping.physical is not None
        place = self._ram.base + mapping.physical
        array = (ctypes.c_uint64 * (mapping.size // 8)).from_address(place)
        return memoryview(array).cast("B").cast("Q")

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes in as the kernel would for the program (read-only pages fault)."""
        done = 0
        if self.closed:
            self.before_write(address, len(data))
        for at, part in list(self._pieces(address, len(data), WRITE, "write")):
            if not self._ram.touch(at, part):
                self.on_exhausted(address + done)
                raise GuestFaultError(address + done, "write")
            self._ram.write(at, data[done : done + part])
            self._forget_code(address + done, part)
            done += part
        if self.closed:
            self.after_write(address, len(data))

    def _forget_code(self, address: int, size: int) -> None:
        """Drop translations of bytes that were changed from outside the guest."""
        mapping = self.find(address)
        if mapping is not None and mapping.perms & EXECUTE:
            self._cpu.invalidate(address, size)

    def _pieces(
        self, address: int, size: int, need: int, access: str
    ) -> Iterator[tuple[int, int]]:
        while size > 0:
            mapping = self.find(address)
            if mapping is None or mapping.physical is None or not mapping.perms:
                raise GuestFaultError(address, access)
            if need == WRITE and not mapping.perms & WRITE:
                raise GuestFaultError(address, access)
            part = min(size, mapping.end - address)
            yield mapping.physical + address - mapping.start, part
            address += part
            size -= part

    def accessible(self, address: int, size: int, write: bool) -> bool:
        """Whether `read` or `write` of the range would work."""
        need, access = (WRITE, "write") if write else (READ, "read")
        try:
            for _ in self._pieces(address, size, need, access):
                pass
        except GuestFaultError:
            return False
        return True

    def read_cstring(self, address: int, limit: int = 4096) -> bytes:
        """Bytes up to a NUL, without it; cut at `limit` bytes if there is none."""
        start, end, delta = self._window
        if not start <= address < end:
            start, end, delta = self._open_window(address)
        if address < end and limit >= _SHORT:  # the usual case: a short text
            place = address + delta
            short = self._ram.view[place : place + _SHORT].tobytes()
            size = short.find(0)
            if size >= 0:
                return short[:size]
        parts = []
        while limit > 0:
            size = min(limit, PAGE - address % PAGE)
            data = self.read(address, size)
            end = data.find(b"\0")
            if end >= 0:
                parts.append(data[:end])
                break
            parts.append(data)
            address += size
            limit -= size
        return b"".join(parts)

    def _open_window(self, address: int) -> tuple[int, int, int]:
        """Where strings are read without a search: the mapping around an address."""
        mapping = self.find(address)
        if mapping is None or mapping.physical is None or not mapping.perms:
            return NO_WINDOW
        # Not its last bytes: a read of `_SHORT` bytes stays inside.
        found = mapping.start, mapping.end - _SHORT + 1, mapping.physical - mapping.start
        self._window = found
        return found

    def poke(self, address: int, data: bytes, *, forget: bool = True) -> None:
        """Write whatever the protection (the engine itself: loader, ptrace-like access).

        Without `forget` the caller sees to translated code himself.
        """
        for at, part in list(self._pieces(address, len(data), READ, "write")):
            if not self._ram.touch(at, part):
                raise GuestFaultError(address, "write")
            self._ram.write(at, data[:part])
            if forget:
                self._forget_code(address, part)
            address += part
            data = data[part:]

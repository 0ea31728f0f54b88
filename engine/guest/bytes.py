"""Bytes of the guest's memory, as its kernel and the engine copy them."""

import ctypes
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE, Ram
from engine.errors import GuestFaultError
from engine.guest import mapping as vm
from engine.guest.mappingtable import MappingTable
from engine.guest.translations import Translations

if TYPE_CHECKING:
    from engine.guest.watched import WatchedMemory

_SHORT: Final = struct.Struct("64s")
"""Looked at first for the end of a string."""
_AROUND: Final = 1 << 16
"""Bytes around a page of a file that comes (fault_around_bytes)."""
_UNTOUCHED: Final = -1
"""In place of an arena offset: there are no pages yet."""


class MappedBytes:
    """Copies in and out of the mappings of one table.

    Attributes:
        closed: pages that keep only some of their permissions, and which.
        before_write: told (address, size) before the kernel writes while there are such pages.
        after_write: told afterwards.
        watcher: sees copies that stand for accesses of the program; None for nobody.
        on_exhausted: told the address when a copy into the guest finds no memory left.
        provide: (address, access) gives pages to memory that is about to be touched first, see
            `engine.guest.firsttouch.FirstTouch.provide`.
        written: told (address, bytes, whether the program could not write there) of what the
            guest's kernel writes; None for nobody.
    """

    def __init__(
        self, table: MappingTable, ram: Ram, code: Translations, closed: Mapping[int, int]
    ) -> None:
        self._table = table
        self._find = table.find
        self._starts, self._mappings = table.starts, table.mappings
        self._ram = ram
        self._code = code
        self.closed = closed
        self.before_write: Callable[[int, int], None] = lambda address, size: None
        self.after_write: Callable[[int, int], None] = lambda address, size: None
        self.watcher: WatchedMemory | None = None
        self.on_exhausted: Callable[[int], None] = lambda address: None
        self.written: Callable[[int, bytes, bool], None] | None = None
        self.provide: Callable[[int, str], bool] = lambda address, access: False

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes out as the kernel would for the program (`PROT_NONE` faults)."""
        if self.watcher is not None:
            self.watcher.read(address, size)
        index = bisect_right(self._starts, address) - 1  # `find`, but for the cost of a call
        if index >= 0:
            mapping = self._mappings[index]
            if address < mapping.end >= address + size:  # the usual case
                if not mapping.perms:
                    raise GuestFaultError(address, "read")
                if mapping.physical is not None:
                    if self._ram.watches_reached:
                        self._ram.mark_reached(mapping.physical + address - mapping.start, size)
                    return self._ram.read(mapping.physical + address - mapping.start, size)
        return b"".join(
            self._content(at, part) for at, part in self._pieces(address, size, READ, "read")
        )

    def is_used(self, address: int, size: int) -> bool:
        """True if Linux would have all pages of a stretch there: code that may not wait reads it.

        A page of a file comes with those around it that the file's mapping has, once one of them
        is used (`do_fault_around` in mm/memory.c; the file is in the cache). Anonymous memory that
        was never used holds zeros, which is what such code gets for it.
        """
        for at in range(address & -PAGE, address + size, PAGE):
            mapping = self._find(at)
            if mapping is None or not mapping.perms:
                return False
            if mapping.backing is None or mapping.physical is None:
                continue
            start, end = (
                max(mapping.start, at & -_AROUND),
                min(mapping.end, (at | _AROUND - 1) + 1),
            )
            if not self._ram.reached_pages(mapping.physical + start - mapping.start, end - start):
                return False
        return True

    def used_bytes(self, address: int, size: int) -> bytes:
        """Bytes as code that may not wait reads them (copy_from_user_nofault).

        Raises:
            GuestFaultError: a page is not there.
        """
        if not self.is_used(address, size):
            raise GuestFaultError(address, "read")
        return self.peek(address, size)

    def used_cstring(self, address: int, limit: int) -> bytes:
        """`read_cstring` for such code (strncpy_from_user_nofault).

        Raises:
            GuestFaultError: a page up to the end of the string is not there.
        """
        parts = []
        while limit > 0:
            size = min(limit, PAGE - address % PAGE)
            data, nul, _ = self.used_bytes(address, size).partition(b"\0")
            parts.append(data)
            if nul:
                break
            address += size
            limit -= size
        return b"".join(parts)

    def _content(self, at: int, size: int) -> bytes:
        """Bytes of a piece of `_pieces`: memory without pages holds zeros."""
        return bytes(size) if at == _UNTOUCHED else self._ram.read(at, size)

    def words(self, mapping: vm.Mapping) -> memoryview | None:
        """A mapping's memory as the host's 64-bit words, for as long as `find` gives it.

        For whoever reads single words again and again. None where looking at an untouched page
        takes room: `read` does not.
        """
        if mapping.physical is None or self._ram.prepared(mapping.physical, mapping.size):
            return None
        place = self._ram.base + mapping.physical
        array = (ctypes.c_uint64 * (mapping.size // 8)).from_address(place)
        return memoryview(array).cast("B").cast("Q")

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes in as the kernel would for the program (read-only pages fault)."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and data and not self.closed and self.watcher is None:
            mapping = self._mappings[index]
            physical = mapping.physical
            if (  # the usual case
                address < mapping.end >= address + len(data)
                and physical is not None
                and mapping.perms & (WRITE | EXECUTE) == WRITE
                and self._ram.touch(physical + address - mapping.start, len(data))
            ):
                if self.written is None:
                    self._ram.put(physical + address - mapping.start, data)
                else:
                    self._ram.write(physical + address - mapping.start, data)
                    self.written(address, data, False)
                return
        done = 0
        if self.closed:
            self.before_write(address, len(data))
        if self.watcher is not None:
            self.watcher.write(address, len(data))
        for at, part in list(self._pieces(address, len(data), WRITE, "write")):
            if not self._ram.touch(at, part):
                self.on_exhausted(address + done)
                raise GuestFaultError(address + done, "write")
            self._put(at, address + done, data[done : done + part], forced=False)
            self._forget_code(address + done, part)
            done += part
        if self.closed:
            self.after_write(address, len(data))
        if self.watcher is not None:
            self.watcher.written(address, len(data))

    def _put(self, offset: int, address: int, data: bytes, *, forced: bool) -> None:
        if self.written is None:
            self._ram.put(offset, data)
        else:
            self._ram.write(offset, data)
            self.written(address, data, forced)

    def _forget_code(self, address: int, size: int) -> None:
        """Drop translations of bytes that were changed from outside the guest."""
        mapping = self._find(address)
        if mapping is not None and mapping.perms & EXECUTE:
            self._code.invalidate(address, size)

    def _pieces(
        self, address: int, size: int, need: int, access: str
    ) -> Iterator[tuple[int, int]]:
        while size > 0:
            mapping = self._find(address)
            if mapping is None or (need and not mapping.perms):
                raise GuestFaultError(address, access)
            if need == WRITE and not mapping.perms & WRITE:
                raise GuestFaultError(address, access)
            if mapping.awaits_pages and access == "write":
                mapping = self._provided(address)
            part = min(size, mapping.end - address)
            if mapping.physical is not None:
                yield mapping.physical + address - mapping.start, part
            elif mapping.perms:
                yield _UNTOUCHED, part
            else:
                raise GuestFaultError(address, access)
            address += part
            size -= part

    def _provided(self, address: int) -> vm.Mapping:
        """A mapping of memory that is about to be written to, with pages from now on."""
        try:
            self.provide(address, "read")  # whatever its protection
        except vm.MappingError:
            self.on_exhausted(address)
            raise GuestFaultError(address, "write") from None
        mapping = self._find(address)
        assert mapping is not None, "it was there"
        return mapping

    def accessible(self, address: int, size: int, write: bool) -> bool:
        """Tell whether `read` or `write` of the range would work."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and size > 0:
            mapping = self._mappings[index]
            if address < mapping.end >= address + size:  # the usual case
                return bool(mapping.perms & WRITE if write else mapping.perms)
        need, access = (WRITE, "write") if write else (READ, "read")
        try:
            for _ in self._pieces(address, size, need, access):
                pass
        except GuestFaultError:
            return False
        return True

    def read_cstring(self, address: int, limit: int = 4096) -> bytes:
        """Bytes up to a NUL, without it; cut at `limit` bytes if there is none."""
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

    def reader(self, layout: struct.Struct) -> Callable[[int], tuple[Any, ...]]:
        """A function that unpacks a structure at an address; it raises `GuestFaultError`.

        It remembers the mapping that it was in last: the next one will be there too.
        """
        unpack, ram, size = layout.unpack_from, self._ram, layout.size
        table = self._table
        start = end = delta = 0
        known: object = None

        def load(address: int) -> tuple[Any, ...]:
            nonlocal start, end, delta, known
            if start <= address < end and known is table.layout:
                return unpack(ram.view, address + delta)
            found = self._span(address, size)
            if found is None:
                return layout.unpack(self.read(address, size))
            (start, end, delta), known = found, table.layout
            return unpack(ram.view, address + delta)

        return load

    def text_reader(self, limit: int) -> Callable[[int], bytes]:
        """`read_cstring` with a limit, for whoever asks again and again.

        It remembers the mapping that it was in last.
        """
        peek, ram, short = _SHORT.unpack_from, self._ram, min(_SHORT.size, limit + 1)
        table = self._table
        start = end = delta = 0
        known: object = None

        def load(address: int) -> bytes:
            nonlocal start, end, delta, known
            if not (start <= address < end and known is table.layout):
                found = self._span(address, _SHORT.size)
                if found is None:
                    return self.read_cstring(address, limit)
                (start, end, delta), known = found, table.layout
            text: bytes = peek(ram.view, address + delta)[0].partition(b"\0")[0]
            return text if len(text) < short else self.read_cstring(address, limit)

        return load

    def _span(self, address: int, size: int) -> tuple[int, int, int] | None:
        """The mapping around some bytes; None where they go beyond it, or see `words`.

        The first address at which so many can be read, the one behind the last, and what gives
        the place in the arena.
        """
        mapping = self._find(address)
        if mapping is None or not mapping.perms:
            raise GuestFaultError(address, "read")
        last = mapping.end - size
        if (
            mapping.physical is None
            or address > last
            or self._ram.prepared(mapping.physical, mapping.size)
        ):
            return None
        return mapping.start, last + 1, mapping.physical - mapping.start

    def peek(self, address: int, size: int) -> bytes:
        """Read whatever the protection, even none (the engine itself: ptrace-like access)."""
        mapping = self._find(address)
        if mapping is not None and mapping.physical is not None and address + size <= mapping.end:
            return self._ram.read(mapping.physical + address - mapping.start, size)
        return b"".join(
            self._content(at, part) for at, part in self._pieces(address, size, 0, "read")
        )

    def poke(self, address: int, data: bytes) -> None:
        """Write whatever the protection (loader, ptrace-like access)."""
        for at, part in list(self._pieces(address, len(data), 0, "write")):
            if not self._ram.touch(at, part):
                raise GuestFaultError(address, "write")
            self._put(at, address, data[:part], forced=True)
            self._forget_code(address, part)
            address += part
            data = data[part:]

    def patch(self, address: int, data: bytes, *, forget: bool = True) -> None:
        """The same for bytes of the engine's own, which the program is not meant to have.

        Without `forget` the caller sees to translated code itself.
        """
        mapping, size = self._find(address), len(data)
        if (  # the usual case
            size
            and mapping is not None
            and mapping.physical is not None
            and address + size <= mapping.end
        ):
            at = mapping.physical + address - mapping.start
            if not self._ram.touch_unseen(at, size):
                raise GuestFaultError(address, "write")
            self._ram.write(at, data)
            if forget and mapping.perms & EXECUTE:
                self._code.invalidate(address, size)
            return
        for at, part in list(self._pieces(address, len(data), 0, "write")):
            if not self._ram.touch_unseen(at, part):
                raise GuestFaultError(address, "write")
            self._ram.write(at, data[:part])
            if forget:
                self._forget_code(address, part)
            address += part
            data = data[part:]

"""The guest's address space: what Linux calls the mappings of a process.

A list of mappings, each with permissions and backing, kept sorted; the emulator's page table
is rebuilt from it after every change. Mappings that nobody may access take no physical memory,
so a program may reserve terabytes.
"""

import errno
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from engine.arch.base import AddressPlan
from engine.cpu.base import Cpu
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE, Ram, Region
from engine.errors import GuestFaultError

MAX_MAPPINGS: Final = 65_530
_EAGER: Final = 1 << 20
"""Files up to this size are copied; larger ones are mapped where the host allows it."""


class Backing(Protocol):
    """A file as a mapping needs it."""

    size: int

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes of the file; short at its end."""

    def write_back(self, offset: int, data: bytes) -> None:
        """Take the content of a shared writable mapping."""

    def host_descriptor(self) -> int | None:
        """A host descriptor that may be mapped privately, or None."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """One mapping (a vm_area_struct).

    Attributes:
        start: first byte.
        end: one past the last.
        perms: READ, WRITE, EXECUTE bits.
        physical: arena offset of `start`; None while nobody may access it.
        name: path of the file, or "[stack]" and the like.
        offset: file offset of `start`.
        backing: the file, None for anonymous memory.
        shared: MAP_SHARED.
        inode: (device, inode) for /proc/self/maps.
        reserved: the engine's own window: the guest may not change it.
    """

    start: int
    end: int
    perms: int
    physical: int | None = None
    name: str = ""
    offset: int = 0
    backing: Backing | None = None
    shared: bool = False
    inode: tuple[int, int] = (0, 0)
    reserved: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start

    def part(self, start: int, end: int) -> "Mapping":
        """The piece between two addresses inside it."""
        skip = start - self.start
        return replace(
            self,
            start=start,
            end=end,
            physical=None if self.physical is None else self.physical + skip,
            offset=self.offset + skip if self.backing else 0,
        )


class MappingError(Exception):
    """A mapping call fails; `code` is the errno the guest gets."""

    def __init__(self, code: int) -> None:
        super().__init__(errno.errorcode.get(code, str(code)))
        self.code = code


def page_up(value: int) -> int:
    """Round up to a page."""
    return (value + PAGE - 1) & -PAGE


class Memory:
    """Mappings and bytes of one guest process."""

    def __init__(self, plan: AddressPlan, ram: Ram, cpu: Cpu) -> None:
        self.plan = plan
        self._ram = ram
        self._cpu = cpu
        self.mappings: list[Mapping] = []
        self._starts: list[int] = []
        self._dirty = False
        self.on_change: Callable[[str, int, int], None] = lambda what, start, size: None

    # -- finding --------------------------------------------------------------------------

    def find(self, address: int) -> Mapping | None:
        """The mapping that covers an address."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        mapping = self.mappings[index]
        return mapping if address < mapping.end else None

    def overlapping(self, start: int, end: int) -> list[Mapping]:
        """Mappings with at least one byte in [start, end)."""
        index = max(bisect_right(self._starts, start) - 1, 0)
        found = []
        for mapping in self.mappings[index:]:
            if mapping.start >= end:
                break
            if mapping.end > start:
                found.append(mapping)
        return found

    def free_range(self, size: int, top: int | None = None) -> int | None:
        """The highest free place of `size` bytes below the mapping area's top, as Linux picks."""
        end = self.plan.mmap_top if top is None else top
        index = bisect_right(self._starts, end - 1)
        for mapping in reversed(self.mappings[:index]):
            if end - max(mapping.end, self.plan.mmap_min) >= size and mapping.end <= end:
                return end - size
            end = min(end, mapping.start)
        return end - size if end - size >= self.plan.mmap_min else None

    def is_free(self, start: int, end: int) -> bool:
        """Whether nothing is mapped there."""
        return not self.overlapping(start, end)

    # -- changing -------------------------------------------------------------------------

    def map(
        self,
        start: int,
        size: int,
        perms: int,
        *,
        name: str = "",
        backing: Backing | None = None,
        offset: int = 0,
        shared: bool = False,
        inode: tuple[int, int] = (0, 0),
        reserved: bool = False,
    ) -> None:
        """Map `size` bytes at `start`, replacing what is there (MAP_FIXED).

        Raises:
            MappingError: ENOMEM without room, EPERM over an engine window.
        """
        end = start + page_up(size)
        if len(self.mappings) >= MAX_MAPPINGS:
            raise MappingError(errno.ENOMEM)
        self.unmap(start, end - start)
        mapping = Mapping(start, end, perms, None, name, offset, backing, shared, inode, reserved)
        if perms or backing is not None:
            mapping = self._back(mapping)
        self._insert(mapping)
        self.on_change("map", start, end - start)

    def _back(self, mapping: Mapping) -> Mapping:
        """Give a mapping physical pages, filled from its file."""
        physical = self._ram.allocate(mapping.size)
        if physical is None:
            raise MappingError(errno.ENOMEM)
        backed = replace(mapping, physical=physical)
        if mapping.backing is not None:
            self._fill(backed, mapping.backing, physical)
        return backed

    def _fill(self, mapping: Mapping, backing: Backing, physical: int) -> None:
        available = max(min(mapping.size, backing.size - mapping.offset), 0)
        if available > _EAGER and not mapping.shared:
            descriptor = backing.host_descriptor()
            whole = page_up(available)
            if descriptor is not None and self._ram.map_file(
                physical, whole, descriptor, mapping.offset
            ):
                return
        done = 0
        while done < available:
            data = backing.read_at(mapping.offset + done, min(1 << 20, available - done))
            if not data:
                break
            if not self._ram.touch(physical + done, len(data)):
                self._ram.release(physical, mapping.size)
                raise MappingError(errno.ENOMEM)
            self._ram.write(physical + done, data)
            done += len(data)

    def unmap(self, start: int, size: int) -> None:
        """Unmap a range; holes in it are no error.

        Raises:
            MappingError: EPERM if it touches an engine window.
        """
        end = start + page_up(size)
        touched = self.overlapping(start, end)
        if any(mapping.reserved for mapping in touched):
            raise MappingError(errno.EPERM)
        for mapping in touched:
            self._remove(mapping)
            if mapping.start < start:
                self._insert(mapping.part(mapping.start, start))
            if mapping.end > end:
                self._insert(mapping.part(end, mapping.end))
            self._drop(mapping.part(max(start, mapping.start), min(end, mapping.end)))
        if touched:
            self.on_change("unmap", start, end - start)

    def _drop(self, mapping: Mapping) -> None:
        self.write_back(mapping)
        if mapping.physical is not None:
            if mapping.perms & EXECUTE:
                self._cpu.invalidate(mapping.start, mapping.size)
            self._ram.release(mapping.physical, mapping.size)

    def write_back(self, mapping: Mapping) -> None:
        """Give a shared writable mapping's content to its file (msync, munmap, exit)."""
        backing = mapping.backing
        if not (mapping.shared and backing is not None and mapping.physical is not None):
            return
        if not mapping.perms & WRITE:
            return
        size = max(min(mapping.size, backing.size - mapping.offset), 0)
        if size:
            backing.write_back(mapping.offset, self._ram.read(mapping.physical, size))

    def protect(self, start: int, size: int, perms: int) -> None:
        """Change permissions.

        Raises:
            MappingError: ENOMEM where a part is not mapped, EPERM over an engine window.
        """
        end = start + page_up(size)
        at = start
        pieces = self.overlapping(start, end)
        for mapping in pieces:
            if mapping.reserved:
                raise MappingError(errno.EPERM)
            if mapping.start > at:
                raise MappingError(errno.ENOMEM)
            at = mapping.end
        if at < end:
            raise MappingError(errno.ENOMEM)
        for mapping in pieces:
            if mapping.perms == perms:
                continue
            if mapping.perms & EXECUTE and mapping.physical is not None:
                # While it is still executable: the emulator finds blocks by fetching.
                low, high = max(start, mapping.start), min(end, mapping.end)
                self._cpu.invalidate(low, high - low)
            self._remove(mapping)
            if mapping.start < start:
                self._insert(mapping.part(mapping.start, start))
            if mapping.end > end:
                self._insert(mapping.part(end, mapping.end))
            piece = mapping.part(max(start, mapping.start), min(end, mapping.end))
            piece = replace(piece, perms=perms)
            if perms and piece.physical is None:
                piece = self._back(piece)
            self._insert(piece)
        self.on_change("protect", start, end - start)

    def move(self, mapping: Mapping, target: int, size: int) -> None:
        """Move a mapping (or a piece of one) with its pages to `target`, growing or not."""
        keep = min(mapping.size, size)
        content = mapping.part(mapping.start, mapping.start + keep)
        whole = self.find(mapping.start)
        assert whole is not None
        if mapping.perms & EXECUTE and mapping.physical is not None:
            self._cpu.invalidate(mapping.start, mapping.size)
        moved = replace(content, start=target, end=target + keep)
        if size > keep and content.physical is not None:
            physical = self._ram.allocate(size)
            if physical is None:
                raise MappingError(errno.ENOMEM)
            for done in range(0, keep, 1 << 20):
                part = min(1 << 20, keep - done)
                if not self._ram.touch(physical + done, part):
                    raise MappingError(errno.ENOMEM)
                self._ram.write(physical + done, self._ram.read(content.physical + done, part))
            moved = replace(moved, physical=physical)
            if moved.backing is not None:
                tail = replace(
                    moved, start=target + keep, end=target + size, offset=moved.offset + keep
                )
                self._fill(tail, moved.backing, physical + keep)
        moved = replace(moved, end=target + size)
        self.unmap(target, size)
        self._remove(whole)
        if whole.start < mapping.start:
            self._insert(whole.part(whole.start, mapping.start))
        if whole.end > mapping.end:
            self._insert(whole.part(mapping.end, whole.end))
        if moved.physical == content.physical:
            if mapping.size > keep:
                self._drop(mapping.part(mapping.start + keep, mapping.end))
        else:
            self._drop(replace(mapping, shared=False))
        self._insert(moved)
        self.on_change("unmap", mapping.start, mapping.size)
        self.on_change("map", target, size)

    def extend(self, mapping: Mapping, end: int) -> None:
        """Let a mapping grow in place to `end`, where nothing is mapped."""
        tail = replace(
            mapping,
            start=mapping.end,
            end=end,
            physical=None,
            offset=mapping.offset + mapping.size if mapping.backing else 0,
        )
        self._insert(self._back(tail) if tail.perms else tail)
        self.on_change("map", tail.start, tail.size)

    def total(self) -> int:
        """Bytes of all the program's mappings."""
        return sum(mapping.size for mapping in self.mappings if not mapping.reserved)

    def discard(self, start: int, size: int) -> None:
        """MADV_DONTNEED: private pages go back to their file's content or to zero."""
        end = start + page_up(size)
        for mapping in self.overlapping(start, end):
            if mapping.reserved or mapping.shared or mapping.physical is None:
                continue
            piece = mapping.part(max(start, mapping.start), min(end, mapping.end))
            if piece.physical is None:
                continue
            if piece.perms & EXECUTE:
                self._cpu.invalidate(piece.start, piece.size)
            self._ram.discard(piece.physical, piece.size)
            if piece.backing is not None:
                self._fill(piece, piece.backing, piece.physical)

    def _insert(self, mapping: Mapping) -> None:
        index = bisect_right(self._starts, mapping.start)
        self.mappings.insert(index, mapping)
        self._starts.insert(index, mapping.start)
        self._dirty = True

    def _remove(self, mapping: Mapping) -> None:
        index = bisect_right(self._starts, mapping.start) - 1
        del self.mappings[index], self._starts[index]
        self._dirty = True

    def sync(self) -> None:
        """Bring the emulator's page table up to date; before the guest runs on."""
        if not self._dirty:
            return
        self._dirty = False
        self._cpu.page_table.load(list(self._regions()))
        self._cpu.flush_tlb()

    def _regions(self) -> Iterator[Region]:
        for mapping in self.mappings:
            if mapping.physical is None or not mapping.perms:
                continue
            end = mapping.end
            if mapping.backing is not None and not mapping.reserved:
                # Pages wholly behind the end of the file raise SIGBUS.
                end = min(
                    end, mapping.start + page_up(max(mapping.backing.size - mapping.offset, 0))
                )
                if end <= mapping.start:
                    continue
            perms = mapping.perms
            if perms & (WRITE | EXECUTE):
                perms |= READ  # neither architecture has write-only or execute-only pages
            yield Region(mapping.start, end, mapping.physical, perms)

    # -- bytes ----------------------------------------------------------------------------

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

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes in as the kernel would for the program (read-only pages fault)."""
        done = 0
        for at, part in list(self._pieces(address, len(data), WRITE, "write")):
            if not self._ram.touch(at, part):
                raise GuestFaultError(address + done, "write")
            self._ram.write(at, data[done : done + part])
            self._forget_code(address + done, part)
            done += part

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

    def poke(self, address: int, data: bytes) -> None:
        """Write whatever the protection (the engine itself: loader, ptrace-like access)."""
        for at, part in list(self._pieces(address, len(data), READ, "write")):
            if not self._ram.touch(at, part):
                raise GuestFaultError(address, "write")
            self._ram.write(at, data[:part])
            self._forget_code(address, part)
            address += part
            data = data[part:]

    def used(self) -> int:
        """Bytes of physical pages in use."""
        return self._ram.used()

"""The guest's address space: what Linux calls the mappings of a process.

A list of mappings, each with permissions and backing, kept sorted; the emulator's page table
is rebuilt from it after every change. Mappings that nobody may access take no physical memory,
so a program may reserve terabytes.
"""

import errno
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from engine.arch.base import AddressPlan
from engine.cpu.base import Cpu
from engine.cpu.ram import EXECUTE, READ, WRITE, Ram
from engine.guest.bytes import MappedBytes
from engine.guest.mapping import Backing, Mapping, MappingError, SharedExtent, page_up
from engine.guest.moving import MovingMappings
from engine.guest.pages import MixedViews, regions
from engine.guest.shared import SharedPages, fill

__all__ = ["Backing", "Mapping", "MappingError", "Memory", "page_up"]

MAX_MAPPINGS: Final = 65_530
_EAGER: Final = 1 << 20
"""Files up to this size are copied; larger ones are mapped where the host allows it."""


class Memory(MappedBytes, MixedViews, MovingMappings):
    """Mappings and bytes of one guest process."""

    def __init__(self, plan: AddressPlan, ram: Ram, cpu: Cpu) -> None:
        self.plan = plan
        self._ram = ram
        self._cpu = cpu
        self.mappings: list[Mapping] = []
        self._starts: list[int] = []
        self._dirty = False
        self._layout = object()
        self.closed: dict[int, int] = {}
        self.before_write = self.after_write = lambda address, size: None
        self.shared = SharedPages(ram, self._repoint)
        self.on_exhausted = lambda address: None
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
        self._need_room(1)
        self.unmap(start, end - start)
        mapping = Mapping(start, end, perms, None, name, offset, backing, shared, inode, reserved)
        if perms or backing is not None or shared:
            mapping = self._back(mapping)
        self._insert(mapping)
        self.on_change("map", start, end - start)

    def _need_room(self, more: int) -> None:
        """ENOMEM if so many more mappings would be too many."""
        if more and len(self.mappings) + more > MAX_MAPPINGS:
            raise MappingError(errno.ENOMEM)

    def _back(self, mapping: Mapping) -> Mapping:
        """Give a mapping physical pages, filled from its file."""
        if mapping.shared:
            return self.shared.attach(mapping)
        physical = self._ram.allocate(mapping.size)
        if physical is None:
            raise MappingError(errno.ENOMEM)
        backed = replace(mapping, physical=physical)
        if mapping.backing is not None:
            try:
                self._fill(backed, mapping.backing, physical)
            except MappingError:
                self._ram.release(physical, mapping.size)
                raise
        return backed

    def _fill(self, mapping: Mapping, backing: Backing, physical: int) -> None:
        available = max(min(mapping.size, backing.size - mapping.offset), 0)
        if available > _EAGER:
            descriptor = backing.host_descriptor()
            whole = page_up(available)
            if descriptor is not None and self._ram.map_file(
                physical, whole, descriptor, mapping.offset
            ):
                return
        fill(self._ram, physical, backing, mapping.offset, mapping.size)

    def _repoint(self, extent: SharedExtent, delta: int) -> None:
        """An extent's pages have moved in the arena."""
        for index, mapping in enumerate(self.mappings):
            if mapping.extent is extent and mapping.physical is not None:
                if mapping.perms & EXECUTE:
                    self._cpu.invalidate(mapping.start, mapping.size)
                self.mappings[index] = replace(mapping, physical=mapping.physical + delta)
                self._layout = object()
        self._dirty = True

    def unmap(self, start: int, size: int) -> None:
        """Unmap a range; holes in it are no error.

        Raises:
            MappingError: EPERM if it touches an engine window.
        """
        end = start + page_up(size)
        touched = self.overlapping(start, end)
        if any(mapping.reserved for mapping in touched):
            raise MappingError(errno.EPERM)
        if len(touched) == 1 and touched[0].start < start and end < touched[0].end:
            self._need_room(1)
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
        if mapping.physical is None:
            return
        if mapping.perms & EXECUTE:
            self._cpu.invalidate(mapping.start, mapping.size)
        if mapping.extent is not None:
            self.shared.detach(mapping.extent, mapping.size)
        else:
            self._ram.release(mapping.physical, mapping.size)

    def shows(self, identity: object) -> bool:
        """Whether any mapping shows this file."""
        return any(
            mapping.backing is not None and mapping.backing.identity is identity
            for mapping in self.mappings
        )

    def file_changed(self, identity: object) -> None:
        """A file has been written or cut by a call: its mappings show that."""
        self.shared.refresh(identity)
        for mapping in self.mappings:
            if mapping.backing is not None and mapping.backing.identity is identity:
                self._dirty = True
                if mapping.perms & EXECUTE:
                    self._cpu.invalidate(mapping.start, mapping.size)

    def protect(self, start: int, size: int, perms: int) -> None:
        """Change permissions.

        Raises:
            MappingError: ENOMEM where a part is not mapped, EPERM over an engine window.
        """
        end = start + page_up(size)
        at = start
        pieces = self.overlapping(start, end)
        if any(mapping.reserved for mapping in pieces):
            raise MappingError(errno.EPERM)
        changed = [mapping for mapping in pieces if mapping.perms != perms]
        self._need_room(sum((mapping.start < start) + (end < mapping.end) for mapping in changed))
        for mapping in pieces:
            if mapping.start > at:
                break
            at = mapping.end
            if mapping.perms != perms:
                self._protect(mapping, max(start, mapping.start), min(end, mapping.end), perms)
        self._merge(start, end)
        self.on_change("protect", start, min(at, end) - start)
        if at < end:  # as far as the first hole
            raise MappingError(errno.ENOMEM)

    def _protect(self, mapping: Mapping, low: int, high: int, perms: int) -> None:
        if mapping.perms & EXECUTE and mapping.physical is not None:
            # While it is still executable: the emulator finds blocks by fetching.
            self._cpu.invalidate(low, high - low)
        piece = replace(mapping.part(low, high), perms=perms)
        if perms and piece.physical is None:
            piece = self._back(piece)
        elif piece.extent is not None and perms & WRITE:
            piece.extent.written = True
        self._remove(mapping)
        if mapping.start < low:
            self._insert(mapping.part(mapping.start, low))
        if mapping.end > high:
            self._insert(mapping.part(high, mapping.end))
        self._insert(piece)

    def _merge(self, start: int, end: int) -> None:
        """Make one mapping of neighbours that differ in nothing and have adjacent pages."""
        index = max(bisect_right(self._starts, start) - 2, 0)
        while index + 1 < len(self.mappings) and self._starts[index] < end:
            first, second = self.mappings[index], self.mappings[index + 1]
            if not first.continues(second) or (first.physical is None) != (
                second.physical is None
            ):
                index += 1
                continue
            if first.physical is not None and first.physical + first.size != second.physical:
                index += 1
                continue
            self.mappings[index] = replace(first, end=second.end)
            del self.mappings[index + 1], self._starts[index + 1]
            self._dirty = True

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
            self.on_change("map", piece.start, piece.size)

    def _insert(self, mapping: Mapping) -> None:
        index = bisect_right(self._starts, mapping.start)
        self.mappings.insert(index, mapping)
        self._starts.insert(index, mapping.start)
        self._dirty = True
        self._layout = object()

    def _remove(self, mapping: Mapping) -> None:
        index = bisect_right(self._starts, mapping.start) - 1
        del self.mappings[index], self._starts[index]
        self._dirty = True
        self._layout = object()

    def sync(self) -> None:
        """Bring the emulator's page table up to date; before the guest runs on."""
        if not self._dirty:
            return
        self._dirty = False
        self._mix()
        self._cpu.page_table.load(list(regions(self.mappings, self.closed)))
        self._cpu.flush_tlb()

    def close_pages(self, pages: dict[int, int]) -> None:
        """Take permissions from single pages (address to the bits that stay), nobody else's.

        The mappings keep theirs: an access that is refused only for this is the business of
        the one who closed the page.
        """
        self.closed = pages
        self._dirty = True

    def commit(self, start: int, size: int) -> None:
        """Make a part of an engine window readable and executable, for the engine's code.

        Raises:
            MappingError: ENOMEM without room.
        """
        mapping = self.find(start)
        end = start + page_up(size)
        if mapping is None or not mapping.reserved or end > mapping.end:
            raise MappingError(errno.EINVAL)
        self._need_room(2)
        self._protect(mapping, start, end, READ | EXECUTE)
        self._merge(start, end)

    def attach(self, start: int, size: int, perms: int, host: int = 0) -> None:
        """Open a part of an engine window for data of the engine's code.

        Args:
            start: first byte, page aligned.
            size: bytes.
            perms: what the engine's code may do there; so may the program.
            host: address of a shared mapping of the host's to show; 0 = fresh memory.

        Raises:
            MappingError: ENOMEM without room, EINVAL outside of the window.
        """
        mapping = self.find(start)
        end = start + page_up(size)
        if mapping is None or not mapping.reserved or mapping.perms or end > mapping.end:
            raise MappingError(errno.EINVAL)
        self._need_room(2)
        physical = self._ram.show(host, end - start) if host else self._ram.allocate(end - start)
        if physical is None or not self._ram.touch(physical, end - start):
            raise MappingError(errno.ENOMEM)
        self._remove(mapping)
        if mapping.start < start:
            self._insert(mapping.part(mapping.start, start))
        if end < mapping.end:
            self._insert(mapping.part(end, mapping.end))
        self._insert(replace(mapping.part(start, end), perms=perms, physical=physical))

    def used(self) -> int:
        """Bytes of physical pages in use by the guest: the engine's windows do not show."""
        own = sum(
            self._ram.touched(mapping.physical, mapping.size)
            for mapping in self.mappings
            if mapping.reserved and mapping.physical is not None
        )
        return self._ram.used() - own

"""The physical pages behind mappings: given, filled from files, copied, taken back."""

import errno
from collections.abc import Iterable
from typing import Final

from engine.cpu.ram import EXECUTE, PAGE, Ram
from engine.guest.mapping import WIPED, Backing, Mapping, MappingError, SharedExtent, page_up
from engine.guest.mappingtable import MappingTable
from engine.guest.shared import SharedPages, copy_pages, fill
from engine.guest.translations import Translations

RETURN_CODE: Final = "[kprobe-tui:trampoline]"
"""Name of the window with the code that signal handlers return to."""
_LARGE: Final = 32 << 20
"""Anonymous mappings from this size on are prepared for copies of the address space."""
VAST: Final = 4 << 30
"""Anonymous mappings from this size on get pages only where they are touched."""
PROVIDED: Final = 4 << 20
"""Bytes of such a mapping that get pages at once, at a multiple of that."""
_EAGER: Final = 1 << 20
"""Files up to this size are copied; larger ones are mapped where the host allows it."""


def _of_file(mapping: Mapping, offset: int) -> bytes:
    """A page of a mapping's file, with zeros behind the end."""
    assert mapping.backing is not None
    return mapping.backing.read_at(offset, PAGE).ljust(PAGE, b"\0")


class Pager:
    """Gives the mappings of one table their pages.

    Attributes:
        shared: the pages that shared mappings have in common.
    """

    def __init__(
        self,
        table: MappingTable,
        ram: Ram,
        code: Translations,
        shared: SharedPages | None = None,
    ) -> None:
        self._table = table
        self._ram = ram
        self._code = code
        self.shared = SharedPages(ram) if shared is None else shared
        self.shared.moved.append(self._repoint)

    def close(self) -> None:
        """Take back the pages of all mappings."""
        for mapping in self._table.mappings:
            self.drop(mapping)
        self.shared.moved.remove(self._repoint)

    def adopt(self, mapping: Mapping) -> Mapping:
        """The same mapping in a copy of its address space, with pages of its own if private.

        The engine's windows are empty there but for what the guest's kernel needs.

        Raises:
            MappingError: ENOMEM without room.
        """
        if mapping.extent is not None:
            mapping.extent.mapped += mapping.size
            return mapping
        if _is_engines(mapping):
            return mapping._replace(physical=None, perms=0)
        if mapping.physical is None:
            return mapping
        physical = self._allocate(mapping.size, high=mapping.backing is None)
        copied = mapping._replace(physical=physical)
        if mapping.at_fork & WIPED:
            return copied
        if mapping.backing is not None and self._ram.maps_file(mapping.physical, mapping.size):
            # Whoever hears of the copy has the bytes of the file in what is copied.
            heard, self._ram.effects = self._ram.effects, None
            try:
                self._fill(copied, mapping.backing, physical)
            finally:
                self._ram.effects = heard
        if not self._ram.copy(mapping.physical, physical, mapping.size):
            self._ram.release(physical, mapping.size)
            raise MappingError(errno.ENOMEM)
        return copied

    def back(self, mapping: Mapping, *, grows: bool = False, alone: bool = False) -> Mapping:
        """The mapping with pages of its own, filled from its file; or with its object's.

        Anonymous pages stand beside those of a neighbour where they can, so that the two are
        one mapping. Those of mappings go down as their addresses do, those of what grows up.
        A vast anonymous mapping stays without, until parts of it are touched.

        Args:
            mapping: not yet in the table.
            grows: what will come beside it comes behind it.
            alone: it has no such neighbour.

        Raises:
            MappingError: ENOMEM without room.
        """
        if mapping.shared:
            return self.shared.attach(mapping)
        if mapping.size >= VAST and mapping.backing is None and not mapping.reserved:
            return mapping
        physical, beside = (None, 0) if alone else self._beside(mapping)
        if physical is None:
            high = mapping.backing is None and not grows
            physical = self._allocate(mapping.size, high=high, own=_is_engines(mapping))
        self._prepare(mapping, physical, beside)
        backed = mapping.at(physical)
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

    def drop(self, mapping: Mapping) -> None:
        """Take the pages of a mapping back that is no longer in the table."""
        if mapping.physical is None:
            return
        if mapping.perms & EXECUTE:
            self._code.invalidate(mapping.start, mapping.size)
        if mapping.extent is not None:
            self.shared.detach(mapping.extent, mapping.size)
        elif _is_engines(mapping):
            heard, self._ram.effects = self._ram.effects, None  # the program had no such pages
            try:
                self._ram.release(mapping.physical, mapping.size)
            finally:
                self._ram.effects = heard
        else:
            self._ram.release(mapping.physical, mapping.size)

    def discard(self, mapping: Mapping) -> bool:
        """Make private pages what they were at first: their file's content, or zero.

        False if they were so, and nobody had touched them.
        """
        if mapping.physical is None:
            return False
        if mapping.perms & EXECUTE:
            self._code.invalidate(mapping.start, mapping.size)
        touched = self._ram.discard(mapping.physical, mapping.size)
        if mapping.backing is not None:
            self._fill(mapping, mapping.backing, mapping.physical)
        return touched

    def unwritten(
        self, mappings: Iterable[Mapping], low: int, high: int
    ) -> list[tuple[Mapping, int]]:
        """Pages of private mappings, by offset in the file, that are as bytes of the file are.

        Args:
            mappings: of one file.
            low: the first byte.
            high: one past the last.
        """
        found: list[tuple[Mapping, int]] = []
        for mapping in mappings:
            first = max(low & -PAGE, mapping.offset)
            found.extend(
                (mapping, offset)
                for offset in range(first, min(high, mapping.offset + mapping.size), PAGE)
                if self._content(mapping, offset) == _of_file(mapping, offset)
            )
        return found

    def _content(self, mapping: Mapping, offset: int) -> bytes:
        assert mapping.physical is not None
        return self._ram.read(mapping.physical + offset - mapping.offset, PAGE)

    def refill(self, pages: Iterable[tuple[Mapping, int]]) -> None:
        """Bring a file's content to pages, as `unwritten` gives them."""
        for mapping, offset in pages:
            assert mapping.physical is not None
            data = _of_file(mapping, offset)
            place = mapping.physical + offset - mapping.offset
            if data != self._content(mapping, offset) and self._ram.touch(place, PAGE):
                self._ram.put(place, data)

    def drop_behind_end(self, mapping: Mapping) -> None:
        """A file has been cut: private pages wholly behind its end are gone, written or not."""
        assert mapping.backing is not None
        assert mapping.physical is not None
        kept = page_up(max(mapping.backing.size - mapping.offset, 0))
        if kept < mapping.size:
            self._ram.discard(mapping.physical + kept, mapping.size - kept)

    def copy(self, old: Mapping, new: Mapping, keep: int) -> Mapping:
        """A private mapping with pages of its own that begin with `keep` bytes of an old one's.

        Raises:
            MappingError: ENOMEM without room.
        """
        assert old.physical is not None
        physical = self._allocate(new.size)
        self._prepare(new, physical)
        try:
            copy_pages(self._ram, old.physical, physical, keep)
            if new.backing is not None and new.size > keep:
                rest = new.size - keep
                fill(self._ram, physical + keep, new.backing, new.offset + keep, rest)
        except MappingError:
            self._ram.release(physical, new.size)
            raise
        return new._replace(physical=physical)

    def join(self, joined: Mapping, run: list[Mapping]) -> Mapping:
        """A private mapping with pages of its own that hold what those of neighbours do.

        Raises:
            MappingError: ENOMEM without room.
        """
        physical = self._allocate(joined.size)
        self._prepare(joined, physical)
        for mapping in run:
            if mapping.physical is not None:
                target = physical + mapping.start - joined.start
                copy_pages(self._ram, mapping.physical, target, mapping.size)
        return joined._replace(physical=physical)

    def _prepare(self, mapping: Mapping, physical: int, beside: int = 0) -> None:
        """Prepare fresh pages for copies of the address space, if that is worth it.

        Args:
            mapping: whose pages they are.
            physical: the first of them.
            beside: bytes that neighbours have already.
        """
        if mapping.size + beside >= _LARGE and mapping.backing is None and not mapping.reserved:
            self._ram.prepare(physical, mapping.size)

    def _beside(self, mapping: Mapping) -> tuple[int | None, int]:
        """Pages next to those of a neighbour that differs in nothing, if they are free.

        Also the neighbour's size.
        """
        if mapping.backing is not None or mapping.reserved:
            return None, 0
        size = mapping.size
        right = self._table.find(mapping.end)
        if right is not None and right.physical is not None and mapping.continues(right):
            physical = right.physical - size
            if self._ram.allocate_at(physical, size):
                return physical, right.size
        left = self._table.find(mapping.start - 1)
        if left is not None and left.physical is not None and left.continues(mapping):
            physical = left.physical + left.size
            if self._ram.allocate_at(physical, size):
                return physical, left.size
        return None, 0

    def _allocate(self, size: int, *, high: bool = False, own: bool = False) -> int:
        physical = self._ram.allocate(size, high=high, own=own)
        if physical is None:
            raise MappingError(errno.ENOMEM)
        return physical

    def _repoint(self, extent: SharedExtent, delta: int) -> None:
        """An extent's pages have moved in the arena."""
        for index, mapping in enumerate(self._table.mappings):
            if mapping.extent is extent and mapping.physical is not None:
                if mapping.perms & EXECUTE:
                    self._code.invalidate(mapping.start, mapping.size)
                self._table.replace(index, mapping._replace(physical=mapping.physical + delta))


def _is_engines(mapping: Mapping) -> bool:
    """True for a part of the engine's windows that a program of its own would not have."""
    return mapping.reserved and not (mapping.name == RETURN_CODE and bool(mapping.perms))

"""Mappings that move, grow or are shown twice: what mremap asks for."""

import errno
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from engine.cpu.ram import Ram
from engine.guest.mapping import Mapping, MappingError
from engine.guest.shared import SharedPages, copy_pages, fill


class MovingMappings:
    """Moves of the mappings of one guest."""

    _ram: Ram
    mappings: list[Mapping]
    shared: SharedPages
    on_change: Callable[[str, int, int], None]

    def find(self, address: int) -> Mapping | None:
        """The mapping that covers an address."""
        raise NotImplementedError

    def overlapping(self, start: int, end: int) -> list[Mapping]:
        """Mappings with at least one byte in [start, end)."""
        raise NotImplementedError

    def map(self, start: int, size: int, perms: int, *, name: str = "") -> None:
        """Map fresh memory."""
        raise NotImplementedError

    def unmap(self, start: int, size: int) -> None:
        """Unmap a range."""
        raise NotImplementedError

    def _need_room(self, more: int) -> None:
        raise NotImplementedError

    def _back(self, mapping: Mapping) -> Mapping:
        raise NotImplementedError

    def _drop(self, mapping: Mapping) -> None:
        raise NotImplementedError

    def _insert(self, mapping: Mapping) -> None:
        raise NotImplementedError

    def _remove(self, mapping: Mapping) -> None:
        raise NotImplementedError

    def _merge(self, start: int, end: int) -> None:
        raise NotImplementedError

    def whole(self, start: int, end: int) -> Mapping | None:
        """One mapping that covers a range, made of neighbours if they differ in nothing.

        Linux keeps such neighbours as one mapping from the start; here their pages lie apart.
        """
        first = self.find(start)
        if first is None or end <= first.end:
            return first
        run = self.overlapping(start, end)
        for left, right in pairwise(run):
            if not left.continues(right):
                return None
        if run[-1].end < end or first.extent is not None:
            return None
        joined = replace(first, end=run[-1].end, physical=None)
        if any(mapping.physical is not None for mapping in run):
            physical = self._ram.allocate(joined.size)
            if physical is None:
                raise MappingError(errno.ENOMEM)
            joined = replace(joined, physical=physical)
            for mapping in run:
                if mapping.physical is not None:
                    target = physical + mapping.start - joined.start
                    copy_pages(self._ram, mapping.physical, target, mapping.size)
        for mapping in run:
            self._remove(mapping)
            self._drop(mapping)
        self._insert(joined)
        return joined

    def move(self, mapping: Mapping, target: int, size: int, *, keep_old: bool = False) -> None:
        """Move a mapping (or a piece of one) with its pages to `target`, growing or not.

        With `keep_old` an empty mapping stays at the old place (MREMAP_DONTUNMAP).
        """
        keep = min(mapping.size, size)
        content = mapping.part(mapping.start, mapping.start + keep)
        moved = replace(content, start=target, end=target + size)
        if content.extent is not None:
            moved = self.shared.attach(moved)
        elif content.physical is not None:
            moved = self._copy(content, replace(moved, physical=None), keep)
        self.unmap(target, size)
        self.unmap(mapping.start, mapping.size)
        self._insert(moved)
        self.on_change("map", target, size)
        if keep_old:
            self.map(mapping.start, mapping.size, mapping.perms, name=mapping.name)

    def _copy(self, old: Mapping, new: Mapping, keep: int) -> Mapping:
        """Pages for a grown private mapping, with the old one's content."""
        assert old.physical is not None
        physical = self._ram.allocate(new.size)
        if physical is None:
            raise MappingError(errno.ENOMEM)
        try:
            copy_pages(self._ram, old.physical, physical, keep)
            if new.backing is not None and new.size > keep:
                rest = new.size - keep
                fill(self._ram, physical + keep, new.backing, new.offset + keep, rest)
        except MappingError:
            self._ram.release(physical, new.size)
            raise
        return replace(new, physical=physical)

    def double(self, mapping: Mapping, target: int, size: int) -> None:
        """Show a shared mapping's pages at a second place (mremap with an old size of 0)."""
        second = replace(mapping, start=target, end=target + size)
        self.unmap(target, size)
        self._insert(self.shared.attach(second))
        self.on_change("map", target, size)

    def extend(self, mapping: Mapping, end: int) -> None:
        """Let a mapping grow in place to `end`, where nothing is mapped."""
        self._need_room(1)
        tail = replace(
            mapping,
            start=mapping.end,
            end=end,
            physical=None,
            offset=mapping.offset + mapping.size if mapping.backing or mapping.extent else 0,
        )
        self._insert(self._back(tail) if tail.perms or tail.extent else tail)
        self._merge(mapping.start, end)
        self.on_change("map", tail.start, tail.size)

"""Mappings that move, grow or are shown twice: what mremap asks for."""

from itertools import pairwise

from engine.cpu.ram import EXECUTE
from engine.guest.mapping import Mapping, MappingError
from engine.guest.memory import Memory


class Mremap:
    """Moves the mappings of one address space."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._table = memory.table
        self._pager = memory.pager

    def whole(self, start: int, end: int) -> Mapping | None:
        """One mapping that covers a range, made of neighbours if they differ in nothing.

        Linux keeps such neighbours as one mapping from the start; here their pages lie apart.
        """
        first = self._table.find(start)
        if first is None or end <= first.end:
            return first
        run = self._table.overlapping(start, end)
        for left, right in pairwise(run):
            if not left.continues(right):
                return None
        if run[-1].end < end or first.extent is not None:
            return None
        joined = first._replace(end=run[-1].end, physical=None)
        if any(mapping.awaits_pages for mapping in run):
            return joined  # `move` takes piece by piece
        if any(mapping.physical is not None for mapping in run):
            joined = self._pager.join(joined, run)
        for mapping in run:
            self._table.remove(mapping)
            self._pager.drop(mapping)
        self._table.insert(joined)
        return joined

    def move(self, mapping: Mapping, target: int, size: int, *, keep_old: bool = False) -> None:
        """Move a mapping (or a piece of one) with its pages to `target`, growing or not.

        With `keep_old` a mapping stays at the old place that is as when it was made: empty, or
        with its file's content (MREMAP_DONTUNMAP).
        """
        memory = self._memory
        keep = min(mapping.size, size)
        if mapping.awaits_pages:
            self._move_pieces(mapping, target, size, keep_old=keep_old)
            return
        content = mapping.part(mapping.start, mapping.start + keep)
        moved = content._replace(start=target, end=target + size)
        memory.before_move(mapping.start, mapping.size)
        try:
            if content.extent is not None:
                moved = self._pager.shared.attach(moved)
            elif content.physical is not None:
                moved = self._pager.copy(content, moved._replace(physical=None), keep)
            memory.unmap(target, size)
        except MappingError:
            memory.changed("map", mapping.start, mapping.size)  # it stays after all
            raise
        memory.unmap(mapping.start, mapping.size)
        self._table.insert(moved)
        memory.changed("map", target, size)
        if keep_old:
            memory.before_move(mapping.start, mapping.size)  # the code is not what comes here now
            memory.map(
                mapping.start,
                mapping.size,
                mapping.perms,
                name=mapping.name,
                backing=mapping.backing,
                offset=mapping.offset,
                shared=mapping.shared,
                inode=mapping.inode,
            )
            memory.set_at_fork(mapping.start, mapping.size, mapping.at_fork, 0)

    def _move_pieces(self, mapping: Mapping, target: int, size: int, *, keep_old: bool) -> None:
        """Move a vast mapping: the parts that have pages take them along."""
        memory, table = self._memory, self._table
        start, end = mapping.start, mapping.start + min(mapping.size, size)
        table.need_room(3)
        memory.before_move(start, mapping.size)
        memory.unmap(target, size)
        for piece in table.overlapping(start, end):
            if piece.perms & EXECUTE and piece.physical is not None:
                memory.forget(piece.start, piece.size)
            taken = table.split(piece, max(start, piece.start), min(end, piece.end))
            moved = taken.start - start + target
            table.insert(taken._replace(start=moved, end=moved + taken.size))
        if target + end - start < target + size:
            tail = mapping._replace(start=target + end - start, end=target + size)
            table.insert(tail)
        table.merge(target, target + size)
        memory.unmap(end, mapping.end - end)
        if keep_old:
            table.insert(mapping)
        memory.changed("unmap", start, mapping.size)
        memory.changed("map", target, size)

    def double(self, mapping: Mapping, target: int, size: int) -> None:
        """Show a shared mapping's pages at a second place (mremap with an old size of 0)."""
        second = mapping._replace(start=target, end=target + size)
        self._memory.unmap(target, size)
        self._table.insert(self._pager.shared.attach(second))
        self._memory.changed("map", target, size)

    def extend(self, mapping: Mapping, end: int) -> None:
        """Let a mapping grow in place to `end`, where nothing is mapped."""
        self._table.need_room(1)
        tail = mapping._replace(
            start=mapping.end,
            end=end,
            physical=None,
            offset=mapping.offset + mapping.size if mapping.backing or mapping.extent else 0,
        )
        self._table.insert(self._pager.back(tail) if tail.perms or tail.extent else tail)
        self._table.merge(mapping.start, end)
        self._memory.changed("map", tail.start, tail.size)

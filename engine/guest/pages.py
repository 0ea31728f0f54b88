"""The mappings as the emulator may see them at the moment."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Mapping_
from typing import Protocol

from engine.cpu.pagetable import Region
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.guest.mapping import Mapping, SharedExtent, page_up
from engine.guest.mappingtable import MappingTable
from engine.guest.translations import Translations


class Viewer(Protocol):
    """An address space, as those of others whose pages it shares see it.

    Attributes:
        table: its mappings.
        code: its translations.
    """

    table: MappingTable
    code: Translations


class MixedViews:
    """Shared pages that one mapping may write and another execute, in whatever address spaces.

    The emulator does not see that a store through the one changes code of the other, so each page
    is open for one of the two at a time.
    """

    def __init__(self, table: MappingTable, viewers: Sequence[Viewer]) -> None:
        """Of the mappings of a table; `viewers` are all address spaces."""
        self._table = table
        self._viewers = viewers

    def mix(self) -> None:
        """Find shared pages that one mapping may write and another execute."""
        while self._table.mixing:
            extent = self._table.mixing.pop()
            mixed = self._mixes(extent)
            if mixed == extent.mixed:
                continue
            extent.mixed = mixed
            extent.executing.clear()
            for viewer in self._viewers:
                for mapping in _views(viewer, extent):
                    viewer.table.touch(mapping.start, mapping.end)
                    if mixed and mapping.perms & EXECUTE:
                        viewer.code.invalidate(mapping.start, mapping.size)

    def _mixes(self, extent: SharedExtent) -> bool:
        writing = executing = both = 0
        for viewer in self._viewers:
            views = viewer.table.views.get(extent)
            if views is not None:
                writing += views.writing
                executing += views.executing
                both += views.both
        return bool(writing and executing) and writing + executing - both > 1

    def turn(self, address: int, access: str) -> bool:
        """Open a mixed page for the other if an access was refused only for that; whether so."""
        found = self._page(address)
        if found is None or access == "read":
            return False
        mapping, page = found
        extent, execute = mapping.extent, access == "execute"
        assert extent is not None
        allowed = mapping.perms & (EXECUTE if execute else WRITE)
        if not (extent.mixed and allowed) or page in extent.both:
            return False
        if execute == (page in extent.executing):
            return False
        if execute:
            extent.executing.add(page)
        else:
            extent.executing.remove(page)
        self._show(extent, page, forget=not execute)
        return True

    def _page(self, address: int) -> tuple[Mapping, int] | None:
        """The mapping of a shared page, and the page's number."""
        mapping = self._table.find(address)
        if mapping is None or mapping.extent is None:
            return None
        return mapping, (address - mapping.start + mapping.offset) // PAGE

    def same(self, address: int, other: int) -> bool:
        """True if two addresses show one shared page."""
        one, two = self._page(address), self._page(other)
        if one is None or two is None:
            return False
        return one[0].extent is two[0].extent and one[1] == two[1]

    def open_both(self, address: int) -> None:
        """Code writes to the page it stands in: from now on that stays open for all.

        What it changes near itself may then be executed as it was.
        """
        found = self._page(address)
        if found is not None and found[0].extent is not None:
            found[0].extent.both.add(found[1])
            self._show(found[0].extent, found[1], forget=True)

    def _show(self, extent: SharedExtent, page: int, *, forget: bool) -> None:
        """Show a page anew everywhere, and forget what was translated of it."""
        for viewer in self._viewers:
            for mapping in _views(viewer, extent):
                start = mapping.start + page * PAGE - mapping.offset
                if mapping.start <= start < mapping.end:
                    viewer.table.touch(start, start + PAGE)
                    if forget and mapping.perms & EXECUTE:
                        viewer.code.invalidate(start, PAGE)


def _views(viewer: Viewer, extent: SharedExtent) -> list[Mapping]:
    """The mappings of an address space that show an extent."""
    if extent not in viewer.table.views:
        return []
    return [mapping for mapping in viewer.table.mappings if mapping.extent is extent]


def regions(
    mappings: Iterable[Mapping], closed: dict[int, int], watched: Mapping_[int, int] | None = None
) -> Iterator[Region]:
    """The emulator's page table.

    Args:
        mappings: of the address space.
        closed: pages to the permissions they keep.
        watched: those among them that the emulator itself need not refuse accesses to, to the
            permissions they keep there.
    """
    for mapping in mappings:
        start, end, perms, physical, _, offset, backing, _, _, reserved, extent, _ = mapping
        if physical is None or not perms:
            continue
        if backing is not None and not reserved:
            # Pages wholly behind the end of the file raise SIGBUS.
            end = min(end, start + page_up(max(backing.size - offset, 0)))
            if end <= start:
                continue
        if perms & (WRITE | EXECUTE):
            perms |= READ  # neither architecture has write-only or execute-only pages
        region = Region(start, end, physical, perms)
        if extent is not None and extent.mixed and perms & (WRITE | EXECUTE):
            pieces = _sides(region, offset, extent)
        elif not closed:
            yield region
            continue
        else:
            pieces = iter((region,))
        for piece in pieces:
            if closed:
                yield from _split(piece, closed, watched or {})
            else:
                yield piece


def _sides(region: Region, offset: int, extent: SharedExtent) -> Iterator[Region]:
    """The region of mixed pages, each open for what it is at the moment."""
    first, last = offset // PAGE, (offset + region.end - region.start - 1) // PAGE
    special = extent.executing | extent.both if extent.both else extent.executing
    if last == first:
        inside = [first] if first in special else []
    else:
        inside = sorted(page for page in special if first <= page <= last)
    at, physical = region.start, region.physical - region.start
    for page in inside:
        start = region.start + page * PAGE - offset
        end = min(start + PAGE, region.end)
        if at < start:
            yield Region(at, start, physical + at, region.perms & ~EXECUTE)
        perms = region.perms if page in extent.both else region.perms & ~WRITE
        yield Region(start, end, physical + start, perms)
        at = end
    if at < region.end:
        yield Region(at, region.end, physical + at, region.perms & ~EXECUTE)


def _split(
    region: Region, closed: dict[int, int], watched: Mapping_[int, int]
) -> Iterator[Region]:
    """The region, with closed pages as regions of their own."""
    at = region.start
    for page in sorted(page for page in closed if region.start <= page < region.end):
        if at < page:
            yield Region(at, page, region.physical + at - region.start, region.perms)
        perms = region.perms & closed[page]
        sifted = region.perms & watched.get(page, 0)
        if perms or sifted:
            physical = region.physical + page - region.start
            yield Region(page, page + PAGE, physical, perms, sifted)
        at = page + PAGE
    if at < region.end:
        yield Region(at, region.end, region.physical + at - region.start, region.perms)

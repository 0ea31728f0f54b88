"""The mappings as the emulator may see them at the moment."""

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Mapping_

from engine.cpu.pagetable import Region
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.guest.mapping import Mapping, SharedExtent, page_up
from engine.guest.mappingtable import MappingTable
from engine.guest.translations import Translations


class MixedViews:
    """Shared pages that one mapping may write and another execute.

    The emulator does not see that a store through the one changes code of the other, so only
    one side is open at a time.
    """

    def __init__(self, table: MappingTable, code: Translations) -> None:
        self._table = table
        self._code = code

    def mix(self) -> None:
        """Find shared pages that one mapping may write and another execute."""
        for extent in self._table.mixing:
            views = self._table.views.get(extent)
            mixed = views is not None and bool(views.writing and views.executing)
            if mixed != extent.mixed:
                self._show_anew(extent)
            if mixed and not extent.mixed:
                self._forget_views(extent)
            extent.mixed, extent.executing = mixed, mixed and extent.executing
        self._table.mixing.clear()

    def _show_anew(self, extent: SharedExtent) -> None:
        for mapping in self._table.mappings:
            if mapping.extent is extent:
                self._table.touch(mapping.start, mapping.end)

    def _forget_views(self, extent: SharedExtent) -> None:
        for mapping in self._table.mappings:
            if mapping.extent is extent and mapping.perms & EXECUTE:
                self._code.invalidate(mapping.start, mapping.size)

    def turn(self, address: int, access: str) -> SharedExtent | None:
        """Open the other side of mixed pages if an access was refused only for that."""
        mapping = self._table.find(address)
        if mapping is None or mapping.extent is None or access == "read":
            return None
        extent, execute = mapping.extent, access == "execute"
        allowed = mapping.perms & (EXECUTE if execute else WRITE)
        if not (extent.mixed and allowed) or extent.both or extent.executing == execute:
            return None
        if not execute:
            self._forget_views(extent)
        extent.executing = execute
        self._show_anew(extent)
        return extent

    def open_both(self, extent: SharedExtent) -> None:
        """Code writes to the pages it stands in: from now on all views stay open.

        What it changes near itself may then be executed as it was.
        """
        self._forget_views(extent)
        extent.both = True
        self._show_anew(extent)


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
        if mapping.physical is None or not mapping.perms:
            continue
        end = mapping.end
        if mapping.backing is not None and not mapping.reserved:
            # Pages wholly behind the end of the file raise SIGBUS.
            end = min(end, mapping.start + page_up(max(mapping.backing.size - mapping.offset, 0)))
            if end <= mapping.start:
                continue
        perms = mapping.perms
        extent = mapping.extent
        if extent is not None and extent.mixed and not extent.both:
            if not extent.executing:
                perms = perms & ~EXECUTE or READ
            elif not perms & EXECUTE:
                perms &= ~WRITE
        if perms & (WRITE | EXECUTE):
            perms |= READ  # neither architecture has write-only or execute-only pages
        region = Region(mapping.start, end, mapping.physical, perms)
        if closed:
            yield from _split(region, closed, watched or {})
        else:
            yield region


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

"""The exact address of a refused access.

The TLB-fill callback is told the page only. The instruction runs once more with that page
pointing at a physical address where nothing is, and Unicorn's own hook for such accesses
reports the whole address. Registers are put back afterwards; no memory changes.
"""

from collections.abc import Callable

import unicorn.unicorn_const as uc_const

from engine.cpu import unicorn_api as api
from engine.cpu.ram import PAGE, PageTable, Region


class FaultLocator:
    """Finds addresses of faults for one engine."""

    def __init__(self, table: PageTable, hole: int, hooks: api.Hooks) -> None:
        """`hole` is an arena offset at which the emulator has nothing mapped."""
        self._table = table
        self._hole = hole
        self._hooks = hooks
        self._hook = 0
        self._found = 0

    def locate(self, page: int, access: int, run: Callable[[], None]) -> int:
        """The address of the access that `run` repeats; the page's start if it does not.

        Args:
            page: the page that was refused.
            access: the kind of access, as the fill callback gets it.
            run: flushes the TLB and executes the instruction again.
        """
        if not self._hook:
            kinds = uc_const.UC_HOOK_MEM_READ_UNMAPPED | uc_const.UC_HOOK_MEM_WRITE_UNMAPPED
            self._hook = self._hooks.add(kinds, api.OnMemory(self._on_hole))
        regions = self._table.regions
        self._found = page
        try:
            self._table.load(self._with_hole(regions, page, 1 << (access - 16)))
            run()
        finally:
            self._table.load(regions)
        return self._found

    def _with_hole(self, regions: list[Region], page: int, perms: int) -> list[Region]:
        """The regions with one page cut out and pointing into the hole."""
        result: list[Region] = []
        for region in regions:
            if region.end <= page or region.start >= page + PAGE:
                result.append(region)
                continue
            if region.start < page:
                result.append(Region(region.start, page, region.physical, region.perms))
            if region.end > page + PAGE:
                skip = page + PAGE - region.start
                result.append(
                    Region(page + PAGE, region.end, region.physical + skip, region.perms)
                )
        result.append(Region(page, page + PAGE, self._hole, perms))
        return sorted(result, key=lambda region: region.start)

    def _on_hole(self, uc: int, kind: int, address: int, size: int, value: int, data: int) -> bool:
        self._found = self._found & -PAGE | address & (PAGE - 1)
        return False

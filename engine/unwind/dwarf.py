"""Rows from .eh_frame and .debug_frame, a function at a time and kept."""

from bisect import bisect_right
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from engine.arch.base import Arch
from engine.guest.modules import Module
from engine.image import ElfImage, find_fde
from engine.unwind.program import rows
from engine.unwind.rows import CfaRegister, CfiRow, Undefined

_FUNCTIONS: Final = 4096
"""Functions of one image whose rows are kept."""

_Rows = tuple[int, int, list[int], list[CfiRow | None]]
"""Start, end, where rows begin, the rows."""


class DwarfTables:
    """The unwind tables of all files in a guest."""

    source: Final = "cfi"

    def __init__(self, arch: Arch, module_at: Callable[[int], Module | None]) -> None:
        """Nothing is read before the first question."""
        self._arch = arch
        self._module_at = module_at
        self._names = {r.dwarf: r.name for r in arch.registers if r.dwarf is not None}
        self._known: WeakKeyDictionary[ElfImage, dict[int, _Rows]] = WeakKeyDictionary()
        self._sorted: WeakKeyDictionary[ElfImage, list[int]] = WeakKeyDictionary()

    def row(self, pc: int, exact: bool) -> CfiRow | None:
        """The rules at a place; None where no table has any.

        Args:
            pc: guest address.
            exact: an instruction about to be executed, not a return address.
        """
        lookup = pc if exact else pc - 1
        module = self._module_at(lookup)
        if module is None:
            return None
        link = lookup - module.bias
        found = self._function(module.image, link)
        if found is None:
            return None
        _, _, starts, table = found
        row = table[bisect_right(starts, link) - 1]
        if row is None or (isinstance(row.cfa, CfaRegister) and not row.cfa.register):
            return None
        return self._outermost(row)

    def _outermost(self, row: CfiRow) -> CfiRow:
        """Without the return address that nobody has pushed for a frame without a caller."""
        nobody = isinstance(row.rules.get(row.return_register), Undefined)
        if nobody and self._arch.roles.link is None and isinstance(row.cfa, CfaRegister):
            word = self._arch.bits // 8
            return replace(row, cfa=replace(row.cfa, offset=row.cfa.offset - word))
        return row

    def _function(self, image: ElfImage, link: int) -> _Rows | None:
        known = self._known.setdefault(image, {})
        order = self._sorted.setdefault(image, [])
        at = bisect_right(order, link) - 1
        if at >= 0:
            found = known[order[at]]
            if link < found[1]:
                return found
        fde = find_fde(image, link)
        if fde is None or not fde.start <= link < fde.start + fde.size:
            return None
        starts, table = rows(fde, self._names, image.bits, image.layout.order)
        if len(known) >= _FUNCTIONS:
            known.clear()
            order.clear()
        if fde.start not in known:
            order.insert(bisect_right(order, fde.start), fde.start)
        made = known[fde.start] = (fde.start, fde.start + fde.size, starts, table)
        return made

"""The accesses of one instruction, as Unicorn's own hooks of memory see them.

The hooks are there for that one instruction only: while there are any, Unicorn takes the slow
path for every access of what it translates.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from engine.cpu import unicorn_api as api
from engine.cpu.base import Access
from engine.cpu.pagetable import PageTable
from engine.cpu.ram import PAGE, PHYSICAL_BASE, Ram
from engine.cpu.unicorn_library import uc_const

_KINDS: Final = uc_const.UC_HOOK_MEM_READ | uc_const.UC_HOOK_MEM_WRITE


class AccessLog:
    """Sees what an instruction accesses."""

    def __init__(self, ram: Ram, table: PageTable, hooks: api.Hooks) -> None:
        self._ram = ram
        self._table = table
        self._hooks = hooks
        self._callback = api.OnMemory(self._on_access)
        self._places: Mapping[int, int] = {}
        self._found: list[Access] = []

    def _on_access(
        self, uc: int, kind: int, address: int, size: int, value: int, data: int
    ) -> bool:
        """Unicorn tells where the access is in physical memory, and does it afterwards."""
        at, write = address - PHYSICAL_BASE, kind == uc_const.UC_MEM_WRITE
        offset = at & PAGE - 1
        inside = offset + size <= PAGE
        page = self._places.get(at - offset)
        if page is None and not inside:
            page = self._table.address_of(at - offset)
        if page is None:
            return True
        old = b""
        if write:  # the next page is elsewhere in the arena
            first = min(size, PAGE - offset)
            old = self._ram.read(at, first)
            region = None if inside else self._table.find(page + PAGE)
            if region is not None:
                beyond = region.physical + page + PAGE - region.start
                old += self._ram.read(beyond, size - first)
        self._found.append(Access(write, page + offset, size, old))
        return True

    @contextmanager
    def kept(self, places: Mapping[int, int]) -> Iterator[list[Access]]:
        """Meanwhile accesses of what is translated are seen; see `engine.cpu.base.Cpu.observe`."""
        self._places, self._found = places, []
        hook = self._hooks.add(_KINDS, self._callback)
        try:
            yield self._found
        finally:
            self._hooks.remove(hook)

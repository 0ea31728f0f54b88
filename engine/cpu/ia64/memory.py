"""Guest memory as generated code sees it: views of pages, looked up by page number.

A page's view is made at its first use, so permissions are checked once a page. Pages whose
code has been translated have no writable view: the first store to one forgets its code.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, cast

from engine.cpu.base import Access
from engine.cpu.ia64.stops import CodeChanged, OutOfMemory, PageFault, Unaligned
from engine.cpu.pagetable import PageTable
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE, Ram

SHIFT: Final = 12
OFFSET: Final = PAGE - 1
FORMATS: Final[dict[int, Literal["B", "H", "I", "Q"]]] = {1: "B", 2: "H", 4: "I", 8: "Q"}

View = memoryview


class Views(dict[int, View]):
    """Page number to a view of its elements of one size; made when first asked for.

    Attributes:
        seen: where accesses through views that are made now are noted; None for nowhere.
    """

    def __init__(self, size: int, make: Callable[[int], View]) -> None:
        self._size, self._letter = size, FORMATS[size]
        self._make = make
        self.seen: list[Access] | None = None

    def __missing__(self, page: int) -> View:
        view = self._make(page).cast(self._letter)
        if self.seen is not None:
            view = cast(View, SeenView(view, self._size, page << SHIFT, self.seen))
        self[page] = view
        return view


class SeenView:
    """A page's elements of one size, of which each access is noted."""

    def __init__(self, view: View, size: int, address: int, seen: list[Access]) -> None:
        self._view, self._size, self._address, self._seen = view, size, address, seen

    def __getitem__(self, index: int) -> int:
        value = int(self._view[index])
        self._seen.append(Access(False, self._address + index * self._size, self._size))
        return value

    def __setitem__(self, index: int, value: int) -> None:
        size, old = self._size, int(self._view[index])
        self._view[index] = value
        before = old.to_bytes(size, "little")
        self._seen.append(Access(True, self._address + index * size, size, before))


class Ia64Memory:
    """One address space.

    Attributes:
        readable: size in bytes to views of readable pages.
        writable: the same of writable pages.
        code: arena offsets of pages with translated code.
        unlocked: those that the slot at hand may write all the same.
        emulate_unaligned: whether plain accesses may be unaligned, as under Linux's handler.
        on_change: what is called when pages may not be accessed any more as they were.
        base: where the arena is in the host.
    """

    def __init__(self, ram: Ram, page_table: PageTable) -> None:
        self._ram = ram
        self._table = page_table
        self._pages: dict[int, memoryview] = {}
        self.code: set[int] = set()
        self.unlocked: set[int] = set()
        self.emulate_unaligned = False
        self.on_change: list[Callable[[], None]] = []
        self.base = ram.base
        self.readable = {size: Views(size, self._make_readable) for size in FORMATS}
        self.writable = {size: Views(size, self._make_writable) for size in FORMATS}

    @contextmanager
    def observed(self) -> Iterator[list[Access]]:
        """Note all accesses meanwhile, in order."""
        seen: list[Access] = []
        tables = (*self.readable.values(), *self.writable.values())
        self.flush()
        for views in tables:
            views.seen = seen
        try:
            yield seen
        finally:
            for views in tables:
                views.seen = None
            self.flush()

    def flush(self) -> None:
        """Forget all views."""
        for views in (*self.readable.values(), *self.writable.values()):
            views.clear()
        for told in self.on_change:
            told()

    def protect(self, offset: int) -> None:
        """A page has translated code from now on: the next store to it is to be noticed."""
        if offset not in self.code:
            self.code.add(offset)
            for views in self.writable.values():
                views.clear()
            for told in self.on_change:
                told()

    def physical(self, page: int, permission: int, access: str) -> int:
        """Arena offset of a page; PageFault where it does not allow the access."""
        address = page << SHIFT
        region = self._table.find(address)
        if region is None or not region.perms & permission:
            raise PageFault(address, access)
        return region.physical + address - region.start

    def fetch(self, page: int) -> tuple[int, bytes]:
        """(arena offset, bytes) of an executable page."""
        offset = self.physical(page, EXECUTE, "execute")
        if not self._ram.touch(offset, PAGE):
            raise OutOfMemory(page << SHIFT)
        return offset, self._ram.read(offset, PAGE)

    def allowed(self, address: int, write: bool) -> bool:
        """True if the page of an address may be read or written."""
        region = self._table.find(address)
        return region is not None and bool(region.perms & (WRITE if write else READ))

    def _view(self, offset: int) -> memoryview:
        view = self._pages.get(offset)
        if view is None:
            array = (ctypes.c_ubyte * PAGE).from_address(self._ram.base + offset)
            view = self._pages[offset] = memoryview(array).cast("B")
        return view

    def _make_readable(self, page: int) -> View:
        offset = self.physical(page, READ, "read")
        if not self._ram.touch(offset, PAGE):
            raise OutOfMemory(page << SHIFT)
        return self._view(offset)

    def _make_writable(self, page: int) -> View:
        offset = self.physical(page, WRITE, "write")
        if not self._ram.touch(offset, PAGE):
            raise OutOfMemory(page << SHIFT)
        if offset in self.code and offset not in self.unlocked:
            raise CodeChanged(offset)
        self._ram.mark_changed(offset, PAGE)
        return self._view(offset)

    # -- accesses from helpers -------------------------------------------------------------

    def load(self, address: int, size: int) -> int:
        """An aligned or, where emulated, unaligned load of 1, 2, 4 or 8 bytes."""
        if address & size - 1:
            return self.load_unaligned(address, size)
        try:
            return self.readable[size][address >> SHIFT][(address & OFFSET) // size]
        except PageFault:
            raise PageFault(address, "read") from None

    def store(self, address: int, size: int, value: int) -> None:
        """A store of 1, 2, 4 or 8 bytes."""
        if address & size - 1:
            self.store_unaligned(address, size, value)
            return
        try:
            self.writable[size][address >> SHIFT][(address & OFFSET) // size] = value
        except PageFault:
            raise PageFault(address, "write") from None

    def load_unaligned(self, address: int, size: int) -> int:
        """A load that is not aligned: Unaligned unless such loads are emulated."""
        if not self.emulate_unaligned:
            raise Unaligned(address, "read")
        return sum(self.load(address + at, 1) << 8 * at for at in range(size))

    def store_unaligned(self, address: int, size: int, value: int) -> None:
        """A store that is not aligned; all bytes are checked before any is written."""
        if not self.emulate_unaligned:
            raise Unaligned(address, "write")
        for at in (0, size - 1):
            try:
                self.writable[1][address + at >> SHIFT]
            except PageFault:
                raise PageFault(address + at, "write") from None
        for at in range(size):
            self.store(address + at, 1, value >> 8 * at & 255)

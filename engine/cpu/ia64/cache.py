"""Translated blocks: where they are, what they came from, and when they go."""

from types import CodeType, TracebackType
from typing import Any

from engine.cpu.ia64.jit import Jit, plain
from engine.cpu.ia64.memory import SHIFT, Ia64Memory
from engine.cpu.ia64.translate import FIRST_LINE, LONGEST, Block, Translator
from engine.cpu.pagetable import PageTable
from engine.cpu.ram import EXECUTE, PAGE

Blocks = dict[int, Block]


class CodeCache:
    """All blocks of a core.

    Attributes:
        blocks: by entry, without and with NaT bits.
        single: the same of blocks of one slot.
    """

    def __init__(self, memory: Ia64Memory, page_table: PageTable) -> None:
        self._memory = memory
        self._table = page_table
        self._translator: Translator | None = None
        self._jits: tuple[Jit, ...] = ()
        self.blocks: tuple[Blocks, Blocks] = ({}, {})
        self.single: tuple[Blocks, Blocks] = ({}, {})
        self._apart: dict[tuple[int, bytes, bool], Block] = {}
        self._places: dict[CodeType, tuple[int, ...]] = {}
        self._entries: dict[int, set[int]] = {}  # virtual page to entries of blocks on it
        self._offsets: dict[int, int] = {}  # virtual page to arena offset

    def use(self, namespace: dict[str, Any]) -> None:
        """Set the functions that generated code calls; before the first translation."""
        self._translator = Translator(self._memory, namespace)

    def use_jits(self, jits: tuple[Jit, ...]) -> None:
        """Have machine code made for blocks without and with NaT bits."""
        self._jits = jits

    def translate(self, blocks: Blocks, ip: int, nats: bool, clocked: bool, longest: int) -> Block:
        """Make a block and keep it.

        Raises:
            PageFault: its first slot cannot be fetched.
            OutOfMemory: its page may not be touched.
        """
        jit = self._jits[nats] if longest > 1 and self._jits else None
        run = blocks[ip] = self._make(ip, nats, clocked, longest, jit is None)
        if jit is not None:
            jit.wrap(blocks, ip, run, clocked)
        return run

    def _make(self, ip: int, nats: bool, clocked: bool, longest: int, loops: bool) -> Block:
        assert self._translator is not None
        made = self._translator.translate(ip, nats, clocked, longest, loops)
        self._places[made.run.__code__] = made.places
        for page in made.pages:
            self.owns(ip, page)
        return made.run

    def owns(self, ip: int, page: int) -> None:
        """The code of an entry has been made from a page."""
        self._entries.setdefault(page, set()).add(ip)
        if page not in self._offsets:
            offset = self._offsets[page] = self._memory.physical(page, EXECUTE, "execute")
            self._memory.protect(offset)

    def looping(self, ip: int, nats: bool, clocked: bool) -> Block:
        """A block that may go round inside its function."""
        return self._make(ip, nats, clocked, LONGEST, True)

    def alone(self, ip: int, nats: bool) -> Block:
        """A block of one slot, which does not know of the clock."""
        return self._make(ip, nats, False, 1, False)

    def apart(self, ip: int, raw: bytes, nats: bool) -> Block:
        """A block of one slot of a bundle that is not in memory."""
        block = self._apart.get((ip, raw, nats))
        if block is None:
            assert self._translator is not None
            made = self._translator.apart(ip, raw, nats)
            block = self._apart[ip, raw, nats] = made.run
            self._places[block.__code__] = made.places
        return block

    def place(self, trace: TracebackType | None, entry: int) -> tuple[int, int | None]:
        """The slot that raised, and the address that it was about to access."""
        while trace is not None:
            places = self._places.get(trace.tb_frame.f_code)
            if places is not None:
                return places[trace.tb_lineno - FIRST_LINE], trace.tb_frame.f_locals.get("a")
            trace = trace.tb_next
        return entry, None

    def _drop(self, page: int) -> None:
        for ip in self._entries.pop(page, ()):
            for blocks in (*self.blocks, *self.single):
                block = blocks.pop(ip, None)
                if block is not None:
                    self._places.pop(plain(block).__code__, None)
            for jit in self._jits:
                jit.drop(ip)
        self._offsets.pop(page, None)

    def drop_entry(self, ip: int) -> None:
        """Forget the blocks that begin at an address and that may be of several slots."""
        for blocks in self.blocks:
            blocks.pop(ip, None)
        for jit in self._jits:
            jit.avoid(ip)

    def drop_offset(self, offset: int) -> None:
        """Forget code of a page of the arena."""
        for page in [page for page, at in self._offsets.items() if at == offset]:
            self._drop(page)
        self._memory.code.discard(offset)

    def _offset(self, page: int) -> int | None:
        region = self._table.find(page << SHIFT)
        if region is None:
            return None
        return region.physical + (page << SHIFT) - region.start

    def remapped(self) -> None:
        """The page table has changed: forget code that is not where it was."""
        for page, offset in list(self._offsets.items()):
            region = self._table.find(page << SHIFT)
            if region is None or not region.perms & EXECUTE or self._offset(page) != offset:
                self._drop(page)

    def invalidate(self, start: int, size: int) -> None:
        """Forget code of a range whose bytes have changed."""
        for page in range(start >> SHIFT, (start + size + PAGE - 1) >> SHIFT):
            offset = self._offset(page)
            if offset is not None and offset in self._memory.code:
                self.drop_offset(offset)

    def clear(self) -> None:
        """Forget all code."""
        for blocks in (*self.blocks, *self.single):
            blocks.clear()
        self._apart.clear()
        self._places.clear()
        self._entries.clear()
        self._offsets.clear()
        self._memory.code.clear()
        for jit in self._jits:
            jit.clear()

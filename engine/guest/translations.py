"""The processor's translations of one address space's code."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.cpu.base import Cpu, TrapTable
from engine.cpu.pagetable import RegionTable


class Translations:
    """Translations of code, found by the addresses of one address space.

    Attributes:
        regions: where those are.
        traps: its breakpoints that are dealt with inside the processor.
        used: the processor has been in it: before, nothing of it is translated.
    """

    def __init__(self, cpu: Cpu, regions: RegionTable | None) -> None:
        """`regions` are those that the processor begins with, if not given."""
        self._cpu = cpu
        self.regions = regions or cpu.page_table.shown
        self.used = regions is None
        self._together = 0
        self.traps: TrapTable = cpu.traps if regions is None else cpu.traps.another()

    @property
    def shown(self) -> bool:
        """True if the processor is in this address space."""
        return self._cpu.page_table.shown is self.regions

    def refresh(self) -> None:
        """The regions have changed."""
        if self.shown:
            self._cpu.page_table.refresh()

    def show(self) -> None:
        """Let the processor be in this address space, as it is now."""
        self.used = True
        self._cpu.page_table.show(self.regions)
        self._cpu.traps.use(self.traps)
        self._cpu.flush_tlb()

    def invalidate(self, start: int, size: int) -> None:
        """Forget translated code of a range whose bytes have changed."""
        if not self.used or self._together:
            return
        with self.elsewhere():
            self._cpu.invalidate(start, size)

    def invalidate_all(self) -> None:
        """Forget all translated code: cheaper than many ranges."""
        if self.used:
            self._cpu.invalidate_all()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Meanwhile the guest stands still: what changes is forgotten at the end, all at once."""
        self._together += 1
        try:
            yield
        finally:
            self._together -= 1
            if not self._together:
                self.invalidate_all()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let the processor be in this address space, wherever it is now, for a moment."""
        before = self._cpu.page_table.shown
        if before is self.regions:
            yield
            return
        self._cpu.page_table.show(self.regions)
        self._cpu.flush_tlb()
        try:
            yield
        finally:
            self._cpu.page_table.show(before)
            self._cpu.flush_tlb()

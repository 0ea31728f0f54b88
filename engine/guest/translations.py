"""The processor's translations of one address space's code."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.cpu.base import Cpu
from engine.cpu.ram import RegionTable


class Translations:
    """Translations of code, found by the addresses of one address space.

    Attributes:
        regions: where those are.
    """

    def __init__(self, cpu: Cpu, regions: RegionTable) -> None:
        self._cpu = cpu
        self.regions = regions

    @property
    def shown(self) -> bool:
        """True if the processor is in this address space."""
        return self._cpu.page_table.shown is self.regions

    def show(self) -> None:
        """Let the processor be in this address space, as it is now."""
        self._cpu.page_table.show(self.regions)
        self._cpu.flush_tlb()

    def invalidate(self, start: int, size: int) -> None:
        """Forget translated code of a range whose bytes have changed."""
        with self.elsewhere():
            self._cpu.invalidate(start, size)

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let the processor be in this address space, wherever it is now, for a moment."""
        before = self._cpu.page_table.shown
        if before is self.regions:
            yield
            return
        self.show()
        try:
            yield
        finally:
            self._cpu.page_table.show(before)
            self._cpu.flush_tlb()

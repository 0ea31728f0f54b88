"""The processor's translations of one address space's code."""

from engine.cpu.base import Cpu
from engine.cpu.ram import RegionTable


class Translations:
    """What the processor has made of code, found by the addresses of one address space.

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
        if self.shown:
            self._cpu.invalidate(start, size)
            return
        before = self._cpu.page_table.shown
        self.show()
        self._cpu.invalidate(start, size)
        self._cpu.page_table.show(before)
        self._cpu.flush_tlb()

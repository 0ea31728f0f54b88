"""Windows: address ranges of the guest that are kept for the engine."""

from engine.cpu.ram import PAGE
from engine.guest.mapping import MappingError
from engine.guest.memory import Memory


class EngineWindow:
    """A run of addresses of the engine that is filled page by page, from its start."""

    def __init__(self, memory: Memory, start: int, size: int) -> None:
        self._memory = memory
        self.start = start
        self.end = start + size
        self._used = start

    def page(self) -> int | None:
        """A fresh executable page; None when the window is full."""
        if self._used + PAGE > self.end:
            return None
        page = self._used
        try:
            self._memory.commit(page, PAGE)
        except MappingError:
            return None
        self._used += PAGE
        return page

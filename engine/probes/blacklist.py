"""Ranges that no probe may touch (kprobes' blacklist, /sys/kernel/debug/kprobes/blacklist)."""

from bisect import bisect_right


class Blacklist:
    """Named ranges of guest addresses; they do not overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int, str]] = []

    def add(self, start: int, end: int, name: str) -> None:
        """Forbid [start, end)."""
        index = bisect_right(self._starts, start)
        self._starts.insert(index, start)
        self._ranges.insert(index, (start, end, name))

    def find(self, address: int) -> str | None:
        """The name of the range around an address, None if it may be probed."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        start, end, name = self._ranges[index]
        return name if start <= address < end else None

    def touches(self, start: int, end: int) -> bool:
        """True if something in [start, end) is forbidden."""
        index = bisect_right(self._starts, end - 1) - 1
        return index >= 0 and self._ranges[index][1] > start

    def listing(self) -> list[str]:
        """Lines as debugfs shows them."""
        return [f"0x{start:016x}-0x{end:016x}\t{name}" for start, end, name in self._ranges]

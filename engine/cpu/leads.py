"""Breakpoints at which the guest goes on elsewhere, as host code looks them up.

A hash table in the host's memory: entries of four words, found by the pc that a trap leaves, each
beginning where a multiplication puts it or in one of those behind. The words of an entry are that
pc, the address to go on at, the program's own address behind the instruction at hand, and the
host address at which `ArchJumps.scratch` is saved, 0 where it is not.
"""

import ctypes
from typing import Final

MULTIPLIER: Final = 0x9E3779B97F4A7C15
"""Spreads addresses over the table (2**64 divided by the golden ratio)."""
_WORDS: Final = 4
_GONE: Final = 1
"""In place of the pc of an entry that was removed: what stands behind is still found."""
_LEAST: Final = 64


class LeadTable:
    """The breakpoints of one address space that lead elsewhere.

    Attributes:
        entries: host address of the entries.
        mask: their number less one.
    """

    __slots__ = ("_array", "_leads", "_used", "_words", "entries", "mask")

    def __init__(self) -> None:
        """No breakpoint leads anywhere."""
        self._leads: dict[int, tuple[int, int, int]] = {}
        self._rebuild()

    def _rebuild(self) -> None:
        """Lay out a table of twice to four times as many entries as there are breakpoints."""
        size = _LEAST
        while size < 2 * len(self._leads) + 2:
            size *= 2
        self._array = (ctypes.c_uint64 * (_WORDS * size))()
        self._words = memoryview(self._array).cast("B").cast("Q")
        self.entries, self.mask = ctypes.addressof(self._array), size - 1
        self._used = 0
        for pc, entry in self._leads.items():
            self._write(pc, entry)

    def _write(self, pc: int, entry: tuple[int, int, int]) -> None:
        words, mask = self._words, self.mask
        at = (pc * MULTIPLIER & 0xFFFF_FFFF_FFFF_FFFF) >> 32
        while True:
            at &= mask
            found = words[_WORDS * at]
            if found in (0, pc):
                break
            at += 1
        self._used += found == 0
        for number, word in enumerate(entry, 1):
            words[_WORDS * at + number] = word
        words[_WORDS * at] = pc

    def put(self, pc: int, target: int, follow: int, saves: int = 0) -> None:
        """Lead the guest elsewhere; never while it runs.

        Args:
            pc: as a trap there leaves it.
            target: where it goes on.
            follow: the program's own address behind the instruction at hand.
            saves: where the host has room for two registers, 0 for none.
        """
        self._leads[pc] = entry = target, follow, saves
        if 2 * (self._used + 1) > self.mask:
            self._rebuild()
        else:
            self._write(pc, entry)

    def drop(self, pc: int) -> None:
        """Lead it nowhere."""
        if self._leads.pop(pc, None) is None:
            return
        words, mask = self._words, self.mask
        at = (pc * MULTIPLIER & 0xFFFF_FFFF_FFFF_FFFF) >> 32 & mask
        while words[_WORDS * at] != pc:
            at = at + 1 & mask
        words[_WORDS * at] = _GONE

    def find(self, pc: int) -> tuple[int, int, int] | None:
        """The Python twin of the look-up: the words of an entry but for its pc."""
        return self._leads.get(pc)

    def __len__(self) -> int:
        """Number of breakpoints that lead elsewhere."""
        return len(self._leads)

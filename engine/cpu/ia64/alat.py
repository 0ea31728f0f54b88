"""The advanced load address table: what `ld.a` leaves for `ld.c` and `chk.a`.

Entries are kept until a store overlaps them, or until there are too many: then the oldest goes. A
processor may lose them at any time.
"""

from typing import Final

ENTRIES: Final = 32
"""As many as the Itaniums had."""


class Alat(dict[tuple[str, int], tuple[int, int]]):
    """(register file, physical register) to (address, address behind)."""

    def insert(self, kind: str, register: int, address: int, size: int) -> None:
        """Remember an advanced load."""
        self.pop((kind, register), None)
        if len(self) >= ENTRIES:
            del self[next(iter(self))]
        self[kind, register] = (address, address + size)

    def stored(self, address: int, size: int) -> None:
        """Forget all that a store overlaps."""
        end = address + size
        gone = [key for key, (start, stop) in self.items() if start < end and address < stop]
        for key in gone:
            del self[key]

    def holds(self, kind: str, register: int, clear: bool) -> bool:
        """True if chk.a or a check load finds its entry: the register decides, not the address."""
        key = (kind, register)
        if key not in self:
            return False
        if clear:
            del self[key]
        return True

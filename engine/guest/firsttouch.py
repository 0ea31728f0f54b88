"""Vast anonymous mappings, whose memory gets pages where a program touches it first."""

from collections.abc import Callable
from typing import Final

from engine.cpu.ram import EXECUTE, READ, WRITE
from engine.guest.mappingtable import MappingTable
from engine.guest.pager import PROVIDED, Pager

_ALL: Final = READ | WRITE | EXECUTE


class FirstTouch:
    """Gives pages to the parts of vast mappings that are touched.

    Nobody who listens to a memory's changes is told: the program sees no change.

    Attributes:
        provider: (address, access) gives pages to memory that `awaits` them; False if there are
            none. Whoever replays a run has them from the journal.
    """

    def __init__(
        self,
        table: MappingTable,
        pager: Pager,
        sync: Callable[[], object],
        provided: Callable[[int, int], object],
    ) -> None:
        """Give pages as they are touched.

        Args:
            table: the mappings.
            pager: has the pages.
            sync: tells the processor of mappings that are new.
            provided: told (start, size) of memory that got pages.
        """
        self._table = table
        self._pager = pager
        self._sync = sync
        self._told = provided
        self.provider: Callable[[int, str], bool] = self._provide

    def awaits(self, address: int, access: str) -> bool:
        """True if an access is refused only as there are no pages yet.

        Args:
            address: what is accessed.
            access: "read", "write" or "execute".
        """
        mapping = self._table.find(address)
        if mapping is None or not mapping.awaits_pages:
            return False
        needed = WRITE if access == "write" else EXECUTE if access == "execute" else _ALL
        return bool(mapping.perms & needed)

    def provide(self, address: int, access: str) -> bool:
        """Give pages to that part of a vast mapping which an access has reached.

        Args:
            address: what was accessed.
            access: "read", "write" or "execute".

        Returns:
            False where the access was refused for another reason.

        Raises:
            MappingError: ENOMEM without room.
        """
        return self.awaits(address, access) and self.provider(address, access)

    def _provide(self, address: int, access: str) -> bool:
        table = self._table
        mapping = table.find(address)
        assert mapping is not None, "it was asked for"
        first = address & -PROVIDED
        low, high = max(first, mapping.start), min(first + PROVIDED, mapping.end)
        table.need_room((mapping.start < low) + (high < mapping.end))
        piece = self._pager.back(mapping.part(low, high), grows=True)
        renewed = table.renewed
        table.split(mapping, low, high)
        table.insert(piece)
        table.merge(low, high)
        table.renewed = renewed  # the emulator knew of nothing there
        self._sync()  # the program may go on without anybody else seeing to that
        self._told(low, high - low)
        return True

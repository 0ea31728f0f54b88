"""Executions of told places that were told already, in a machine that goes back and runs again.

The order of executions is that of blocks, and within a block that of addresses: a translated block
has no way back into its middle. A repeated instruction is an exception, and counts as one
execution of each block that the emulator makes of its rounds.
"""

from typing import Protocol


class BlockCount(Protocol):
    """Counts the blocks of a processor that have begun."""

    @property
    def blocks(self) -> int:
        """The number of them."""


class ToldHits:
    """Says whether an execution was told before; for `ToldPlaces.was_told`."""

    def __init__(self, count: BlockCount) -> None:
        """Nothing was told."""
        self._count = count
        self._latest = -1, 0
        self._told: set[object] = set()

    def was_told(self, address: int, whom: object) -> bool:
        """True if somebody was told of an execution before; else that is noted.

        Args:
            address: of the instruction that is about to be executed.
            whom: who is to be told of it.
        """
        now = self._count.blocks, address
        if now < self._latest:
            return True
        if now > self._latest:
            self._latest = now
            self._told.clear()
        elif whom in self._told:
            return True
        self._told.add(whom)
        return False

    def come_to(self, blocks: int, address: int) -> None:
        """The machine has come to stand here: what is in front was told to whoever was to hear.

        Args:
            blocks: those that are complete.
            address: of the instruction that comes next.
        """
        here = blocks + 1, address
        if here > self._latest:
            self._latest = here
            self._told.clear()

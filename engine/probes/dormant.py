"""Uprobes that are armed and have no objects: of a million most are never hit.

A dormant uprobe is an address and an instruction, in columns. It wakes when it is hit, or when
somebody asks for its point: only then there are a probe and a point, like those of any other.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable


class DormantUprobes:
    """Uprobes whose breakpoints are planted, in the order of their addresses."""

    def __init__(self, wake: Callable[[int], None]) -> None:
        """There are none yet.

        Args:
            wake: given the number of one that is dormant, has it registered (`wakes`).
        """
        self._wake = wake
        self._addresses = array("Q")
        self._numbers = array("I")
        self._raws: list[bytes] = []
        self._awake: set[int] = set()

    def __len__(self) -> int:
        """Number of those that have not woken."""
        return len(self._addresses) - len(self._awake)

    def __contains__(self, address: int) -> bool:
        return self._find(address) is not None

    def add(self, address: int, number: int, raw: bytes) -> None:
        """Add one behind the others.

        Args:
            address: guest address, higher than all so far.
            number: that its owner knows it by.
            raw: bytes of the instruction; the same object for the same instruction elsewhere.
        """
        self._addresses.append(address)
        self._numbers.append(number)
        self._raws.append(raw)

    def wake(self, address: int) -> bool:
        """Wake the one at an address; False if none is dormant there."""
        found = self._find(address)
        if found is None:
            return False
        self._wake(self._numbers[found])
        return True

    def wakes(self, address: int, number: int) -> bytes | None:
        """One of them has its probe now.

        Args:
            address: of it.
            number: of it.

        Returns:
            Bytes of its instruction; None if it is none of the dormant ones.
        """
        found = self._find(address)
        if found is None or self._numbers[found] != number:
            return None
        self._awake.add(address)
        return self._raws[found]

    def wake_all(self) -> None:
        """Wake all of them."""
        for address in self._addresses:
            self.wake(address)

    def _find(self, address: int) -> int | None:
        addresses = self._addresses
        found = bisect_left(addresses, address)
        there = found < len(addresses) and addresses[found] == address
        return found if there and address not in self._awake else None

"""Returns in the program's code: did control come by one, can a call return to a place."""

from collections.abc import Sequence
from typing import Final

from engine.errors import GuestFaultError
from engine.probes.target import ProbeTarget

_RETURN_MAX: Final = 4
"""Bytes of the longest return instruction."""


class ReturnInsns:
    """Answers from the program's own code.

    Attributes:
        known: ends of instructions that are returns.
        resumed: bounds of functions that go on where a call returns to without a return.
    """

    def __init__(self, target: ProbeTarget) -> None:
        """No instruction has been looked at."""
        self.known: set[int] = set()
        self.resumed: Sequence[tuple[int, int]] = ()
        self._target = target

    def never_returns(self, address: int) -> bool:
        """True if a call ends its function: what follows need not even be code."""
        function = self._target.code_map.function(address - 1)
        return function is not None and address >= function[1]

    def may_be_passed(self, address: int) -> bool:
        """True if an address is reached without the call in front of it as well."""
        arch = self._target.arch
        if arch.returns is None:
            return False
        try:
            code = self._target.overlay.original(address - arch.insn_max, arch.insn_max)
        except GuestFaultError:
            return False
        return arch.returns.skipped(code)

    def came_by_return(self, end: int) -> bool:
        """True if the instruction that ends at an address is a return, or is not known."""
        if not end:
            return True
        if any(low < end <= high for low, high in self.resumed):
            self.known.add(end)
            return True
        target = self._target
        unit = target.arch.code_unit
        size = max(unit, _RETURN_MAX)
        start = (end - 1) // unit * unit if unit > 1 else end - size
        try:
            code = target.overlay.original(start, size)
        except GuestFaultError:
            return True
        sizes = target.arch.probes.returns(code)
        if not any(target.code_map.boundary(end - size) for size in sizes):
            return False
        self.known.add(end)
        return True

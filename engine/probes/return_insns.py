"""What the program's code says about returns: did control come by one, can a call return there."""

from typing import Final, Protocol

from engine.arch.base import Arch
from engine.errors import GuestFaultError
from engine.guest.text import TextOverlay
from engine.probes.code_map import CodeMap

_RETURN_MAX: Final = 4
"""Bytes of the longest return instruction."""


class Owner(Protocol):
    """What is asked of the manager of probes."""

    arch: Arch
    overlay: TextOverlay
    code_map: CodeMap


class ReturnInsns:
    """Answers from the program's own code.

    Attributes:
        known: ends of instructions that are returns.
    """

    def __init__(self, owner: Owner) -> None:
        """No instruction has been looked at."""
        self.known: set[int] = set()
        self._owner = owner

    def never_returns(self, address: int) -> bool:
        """Whether a call ends its function: what follows need not even be code."""
        function = self._owner.code_map.function(address - 1)
        return function is not None and address >= function[1]

    def may_be_passed(self, address: int) -> bool:
        """Whether an address is reached without the call in front of it as well."""
        arch = self._owner.arch
        if arch.returns is None:
            return False
        try:
            code = self._owner.overlay.original(address - arch.insn_max, arch.insn_max)
        except GuestFaultError:
            return False
        return arch.returns.skipped(code)

    def came_by_return(self, end: int) -> bool:
        """Whether the instruction that ends at an address is a return; yes where unknown."""
        if not end:
            return True
        owner = self._owner
        unit = owner.arch.code_unit
        size = max(unit, _RETURN_MAX)
        start = (end - 1) // unit * unit if unit > 1 else end - size
        try:
            code = owner.overlay.original(start, size)
        except GuestFaultError:
            return True
        sizes = owner.arch.probes.returns(code)
        if not any(owner.code_map.boundary(end - size) for size in sizes):
            return False
        self.known.add(end)
        return True

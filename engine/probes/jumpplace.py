"""A place as the conditions of a jump see it."""

from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.jump import ArchJumps
from engine.arch.plan import Mode, Rules
from engine.probes.site import FunctionCode, ImageCode


def _nobody(start: int, end: int) -> int | None:
    return None


class JumpPlace(Struct, eq=False, dict=True):
    """A place as the rules see it; addresses are those of `code`.

    Attributes:
        arch: its architecture.
        address: of the probe.
        rules: of the probe.
        mode: how strictly.
        code: its file.
        function: the function around it.
        wants: what its probes want beyond recording, "" for nothing.
        unfit: (the place) to why no code in the guest can record it, "" if one can.
        other: (start, end) to the address of a probe in there, None if there is none.
        reach: whether a detour can be had within reach of an address.
    """

    arch: Arch
    address: int
    rules: Rules
    mode: Mode
    code: ImageCode
    function: FunctionCode | None
    wants: str = ""
    unfit: "Callable[[JumpPlace], str]" = lambda place: ""
    other: Callable[[int, int], int | None] = _nobody
    reach: Callable[[int], bool] = lambda address: True

    @cached_property
    def window(self) -> tuple[tuple[int, bytes], ...]:
        """Addresses and bytes of the whole instructions that a jump overwrites."""
        function, jumps = self.function, self.arch.jumps
        if function is None or jumps is None:
            return ()
        starts, least = function.starts, jumps.least
        at = bisect_left(starts, self.address)
        found: list[tuple[int, bytes]] = []
        size = 0
        while size < least and at < len(starts):
            insn = function.numbered(at)
            if not insn[1]:
                break
            found.append(insn)
            size += len(insn[1])
            at += 1
        return tuple(found)

    @cached_property
    def size(self) -> int:
        """Bytes of the window."""
        return sum(len(raw) for _, raw in self.window)

    @property
    def jumps(self) -> ArchJumps:
        """The architecture's jumps; only asked for where it has them."""
        assert self.arch.jumps is not None
        return self.arch.jumps

    @property
    def raw(self) -> bytes:
        """The bytes of all of them."""
        return b"".join(raw for _, raw in self.window)

    @property
    def end(self) -> int:
        """The address behind the window."""
        return self.address + self.size

    def nearest(self, most: int) -> list[int]:
        """Other instructions of the function, the nearest first, of `most` to either side."""
        function = self.function
        if function is None:
            return []
        at = bisect_left(function.starts, self.address)
        near = function.starts[max(at - most, 0) : at + most]
        others = [address for address in near if address != self.address]
        return sorted(others, key=lambda address: abs(address - self.address))

    def show(self, address: int) -> str:
        """An instruction of the function in words."""
        found = self.function.around(address) if self.function is not None else None
        return self.code.show(*found) if found is not None else f"{address:#x}"

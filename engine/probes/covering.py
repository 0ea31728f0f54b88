"""Breakpoints of a debugger inside the guest, over places that are probed.

Such a debugger sees the program's own bytes, and what it writes are such. Nothing is planted at an
instruction that it has written over. Where it has put a breakpoint there, the program that comes
to it hits the probe, and then the breakpoint; that it executes the instruction when the debugger
lets it on, there or in a copy elsewhere, is no other hit.
"""

from collections import Counter

from engine.probes.arbitration import Arbitration
from engine.probes.arming import Arming
from engine.probes.point import ProbePoint, ProbePoints
from engine.probes.target import ProbeTarget


class Covering:
    """Changes of the program's text by a debugger inside, with regard to probes."""

    def __init__(
        self,
        target: ProbeTarget,
        points: ProbePoints,
        arming: Arming,
        techniques: Arbitration,
    ) -> None:
        """Nothing is covered.

        Args:
            target: the guest.
            points: all probed addresses.
            arming: arms and disarms them.
            techniques: whose replacements stand over instructions behind a point.
        """
        self._target = target
        self._points = points
        self._arming = arming
        self._techniques = techniques
        self._reach = 2 * target.arch.insn_max
        self._passing: Counter[int] = Counter()

    def rewrite(self, address: int, data: bytes) -> None:
        """Change the program's own bytes.

        Raises:
            GuestFaultError: not all of them are there; nothing has changed then.
        """
        overlay = self._target.overlay
        points = self._points
        before = overlay.original(address, len(data)) if points or points.dormant else data
        changed = [at for at in range(len(data)) if before[at] != data[at]]
        if changed:
            first, last = address + changed[0], address + changed[-1]
            for at in range(first, last + 1):
                self._techniques.give_way(at)
            touched = self._around(first, last + 1)
            self._arming.disarm([point for point in touched if point.armed])
            for point in touched:
                point.plan = point.plan  # kept: it cannot be made again from other bytes
                point.covered = True
        else:
            touched = []
        overlay.rewrite(address, data)
        for point in touched:
            self._uncover(point)

    def _uncover(self, point: ProbePoint) -> None:
        """Plant a point's breakpoint, if its instruction is back and nobody is about to pass."""
        raw, address = point.plan.raw, point.address
        if self._passing[address]:
            return
        if self._target.overlay.original(address, len(raw)) == raw:
            point.covered = False
            self._arming.refresh(point)

    def covers(self, address: int) -> bool:
        """True if a probe was hit in front of a debugger's breakpoint; `passed` is to follow."""
        point = self._points.get(address)
        if point is None or not point.covered:
            return False
        self._passing[address] += 1
        return True

    def passed(self, address: int) -> None:
        """A thread that has hit such a probe has executed the instruction, or gone elsewhere."""
        self._passing[address] -= 1
        point = self._points.get(address)
        if point is not None and point.covered:
            self._uncover(point)

    def _around(self, start: int, end: int) -> list[ProbePoint]:
        """The points whose instructions share bytes with a range."""
        found = (self._points.get(at) for at in range(start - self._reach, end))
        return [
            point
            for point in found
            if point is not None and start < point.address + len(point.plan.raw)
        ]

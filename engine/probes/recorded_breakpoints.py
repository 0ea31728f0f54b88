"""Breakpoints whose hits are recorded in the guest, with no Python at a hit.

A trap costs little as long as host code serves it: it leads the guest to the code that a jump
would lead it to, which records the hit, carries the one displaced instruction out and jumps back.
So it stands in for the breakpoint's action where no jump can, and nobody sees a difference: what
stands at the place, and what people are told of it, is a breakpoint.

A call in place of a no-operation is led there by its trampoline, instead of to a trap.
"""

from collections.abc import Callable

from engine.arch.jump import Movable
from engine.probes.detour_keeper import DetourKeeper
from engine.probes.detourmap import LiveDetour
from engine.probes.detours import Detour, build
from engine.probes.detourwork import in_parts
from engine.probes.point import ProbePoint
from engine.probes.point_state import LeadingReplacement, Stage
from engine.probes.site import screened
from engine.probes.target import ProbeTarget


class RecordedBreakpoints:
    """Makes the code that records at breakpoints, and takes it back."""

    def __init__(
        self, target: ProbeTarget, detours: DetourKeeper, after: Callable[[], int]
    ) -> None:
        """No breakpoint has any.

        Args:
            target: the guest.
            detours: keeps the code.
            after: hits of a breakpoint before its code is made, which takes as long as some
                hundred of them.
        """
        self._after = after
        self._target = target
        self._detours = detours
        self._ripe: set[ProbePoint] = set()
        self._worth: set[ProbePoint] = set()
        self._led: dict[ProbePoint, LiveDetour] = {}
        self._leading: dict[ProbePoint, LeadingReplacement] = {}  # what leads there, but traps

    def __len__(self) -> int:
        """Number of breakpoints whose hits are recorded in the guest."""
        return len(self._led)

    @property
    def saves(self) -> int:
        """Host address at which the registers that detours use are saved; 0 if they use none."""
        return self._detours.memory.scratch if self._detours.jumps.scratch else 0

    def code_of(self, point: ProbePoint) -> Detour | None:
        """The code that records a breakpoint's hits, None without any."""
        live = self._led.get(point)
        return live.detour if live is not None else None

    def waits(self, point: ProbePoint) -> int:
        """Hits of a breakpoint after which it is to come to the engine; 0 = never."""
        if not self._detours.ready or not self._promising(point):
            return 0
        return 1 if point in self._worth else self._after()

    def _promising(self, point: ProbePoint) -> bool:
        """True if nothing that is known at once speaks against it."""
        replacement = point.replacement
        leads = isinstance(replacement, LeadingReplacement)
        if replacement is not None and not (leads and point.state.stage is Stage.REPLACED):
            return False
        if point.wants_post() or point.wants_stop():
            return False
        probes = in_parts(point.enabled())
        detours = self._detours
        return detours.only_returns(probes) or not isinstance(detours.work(probes), str)

    def ripen(self, point: ProbePoint) -> None:
        """A point has been hit so often as `waits` says."""
        self._worth.add(point)
        self._ripe.add(point)

    def due(self, point: ProbePoint) -> bool:
        """True, once, if the engine has to see to a point."""
        if point not in self._ripe:
            return False
        self._ripe.remove(point)
        return True

    def forget(self, point: ProbePoint) -> None:
        """The point is gone."""
        self._worth.discard(point)
        self._ripe.discard(point)
        self.close(point)

    def close(self, point: ProbePoint) -> None:
        """Nothing leads to its code any more."""
        leading, live = self._leading.pop(point, None), self._led.pop(point, None)
        if leading is not None:
            leading.leave()
        if live is not None and not live.zombie:
            self._detours.close(live)
            self._detours.running.reap()

    def open(self, point: ProbePoint) -> int | None:
        """Address of code that does all that is wanted at a breakpoint; None if none can."""
        detours, target = self._detours, self._target
        probes = in_parts(point.enabled())
        moved = self._moved(point)
        if moved is None or isinstance(detours.work(probes), str):
            return None
        shared = detours.shared()
        raw = point.plan.raw
        if shared is None or target.overlay.original(point.address, len(raw)) != raw:
            return None
        recorder = detours.recorder(point, probes, raw, led=True)
        if recorder is None:
            return None
        rows = [(point.address, moved)]
        detour = build(shared.space, detours.jumps, point.address, raw, recorder, rows, led=True)
        if detour is None:
            detours.memory.give_back(probes)
            return None
        self._led[point] = detours.open(point, detour, probes)
        leading = point.replacement
        if isinstance(leading, LeadingReplacement):
            self._leading[point] = leading
            if not leading.lead(detour.start):
                self.close(point)
                return None
        return detour.start

    def _moved(self, point: ProbePoint) -> Movable | None:
        """The point's instruction for another place; None where it needs its slot."""
        plan, jumps = point.plan, self._detours.jumps
        raw = plan.raw
        if plan.repeats or plan.atomic or plan.wrong or plan.boosted_next or point.guard:
            return None
        if screened(self._target.arch, raw):
            return None
        one = jumps.movable(raw, point.address)
        return None if isinstance(one, str) or one.scratch else one

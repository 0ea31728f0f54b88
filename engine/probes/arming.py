"""Arming of points: breakpoints are planted, lifted and changed as their probes want them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from engine.arch.plan import InsnPlan, Rules
from engine.errors import ProbeRejectedError
from engine.probes.admission import Admission
from engine.probes.arbitration import Arbitration
from engine.probes.breakpoint_actions import Breakpoints, crowded
from engine.probes.kprobe import Kprobe
from engine.probes.plain_insns import PlainInsn
from engine.probes.point import ProbePoint, ProbePoints
from engine.probes.point_state import NO_COPY
from engine.probes.refcount import ReferenceCounters
from engine.probes.slots import InsnSlots
from engine.probes.target import ProbeTarget

_MANY: Final = 64
_NONE: Final[Mapping[int, PlainInsn]] = {}
_PLANS: Final = 10_000
"""Points whose plans are kept: with more, each plan is made again when it is needed."""


class Arming:
    """Brings the points of a guest in line with their probes.

    Attributes:
        points: all probed addresses.
        slots_of: by address, whose slot it is.
        counters: reference counters of uprobes.
    """

    def __init__(
        self,
        target: ProbeTarget,
        points: ProbePoints,
        admission: Admission,
        slots: tuple[InsnSlots, ...],
        breakpoints: Breakpoints,
        techniques: Arbitration,
    ) -> None:
        """No point is armed.

        Args:
            target: the guest.
            points: all probed addresses, to be kept here.
            admission: for plans.
            slots: of kprobes.
            breakpoints: prepares slots and actions.
            techniques: hear of breakpoints that come and go.
        """
        self.points = points
        self.slots_of: dict[int, ProbePoint] = {}
        self.counters = ReferenceCounters(target.memory, target.notify)
        self._shared_units = target.arch.probes.steps is not None
        self._target = target
        self._admission = admission
        self._slots = slots
        self._breakpoints = breakpoints
        self._techniques = techniques

    # -- points and their probes ----------------------------------------------------------

    def refresh(self, point: ProbePoint) -> None:
        """The point's probes have changed.

        Raises:
            ProbeRejectedError: no slot is left.
        """
        if not point.enabled() or point.covered:
            if point.armed:
                self.disarm([point])
            return
        if point.armed:
            self._techniques.reconsider(point)
        if point.armed and point.slot is not None and point.boosted == point.wants_post():
            # A post-handler came or went: the slot's end changes.
            self.disarm([point])
        if not point.armed:
            if point.slot is None and not self._breakpoints.prepare(point):
                raise ProbeRejectedError(point.address, "no slot is left", "ENOMEM")
            self.arm([point])
        else:
            self._breakpoints.plant(point)

    def remove(self, probes: Iterable[Kprobe]) -> tuple[list[Kprobe], list[Kprobe]]:
        """Take probes out; those that were there, and those that were not."""
        empty: list[ProbePoint] = []
        gone: list[Kprobe] = []
        unknown: list[Kprobe] = []
        for probe in probes:
            point = self.points.get(probe.addr or 0)
            if point is None or probe not in point.probes:
                unknown.append(probe)
                continue
            point.drop(probe)
            gone.append(probe)
            if point.probes:
                self.refresh(point)
            else:
                empty.append(point)
                del self.points[point.address]
        self.disarm([point for point in empty if point.armed])
        return gone, unknown

    def replant(self, address: int) -> None:
        """Install the actions of a point anew: what is to happen there has changed."""
        point = self.points.get(address)
        if point is not None and point.armed:
            self._breakpoints.plant(point)

    def reconsider(self, address: int) -> None:
        """The same; whatever has taken its breakpoint's place is given up."""
        point = self.points.get(address)
        if point is not None and point.armed:
            self._techniques.reconsider(point)
            self._breakpoints.plant(point)

    def always(self, point: ProbePoint) -> None:
        """Let a point trap whatever the predicate is that its probes depend on."""
        plan = self._admission.unconditional(point.plan)
        if plan is point.plan:
            return
        point.guard = point.plan.predicate
        if point.armed:
            self.disarm([point])
        self.replace(point, plan)

    def replace(self, point: ProbePoint, plan: InsnPlan) -> None:
        """Give a disarmed point another plan, and arm it again.

        Raises:
            ProbeRejectedError: no slot is left.
        """
        if point.slot is not None:
            self.slots_of.pop(point.slot, None)
        self._breakpoints.give_back(point)
        point.plan, point.copy = plan, NO_COPY
        if not self._breakpoints.prepare(point):
            raise ProbeRejectedError(point.address, "no slot is left", "ENOMEM")
        if point.enabled() and not point.covered:
            self.arm([point])

    # -- breakpoints ----------------------------------------------------------------------

    def arm(self, points: Sequence[ProbePoint], plain: Mapping[int, PlainInsn] = _NONE) -> None:
        """Plant the breakpoints of points whose slots are prepared.

        Args:
            points: the points.
            plain: by address, instructions of uprobes that are known to be so; their points
                were never armed, and have no plan yet.
        """
        many = len(points) > _MANY
        fresh: list[ProbePoint] = []
        patches, masks = {}, {}
        self._techniques.arming(points)
        if self._shared_units:
            self._unboost(points)
        for point in points:
            known = plain.get(point.address) if plain else None
            if known is not None:
                patches[point.address] = (self._target.arch.probes.uprobe, known.raw)
                point.state = point.state.arm()
                fresh.append(point)
                continue
            copy, plan = point.copy, point.plan
            if copy.slot is not None:
                self._target.memory.patch(copy.slot, copy.code, forget=not many)
                self.slots_of[copy.slot] = point
            value = self.planted(point)
            if plan.bits is not None:
                value, masks[point.address] = plan.bits
            patches[point.address] = (value, plan.raw)
            self._breakpoints.plant(point)
            point.state = point.state.arm()
        if fresh:
            self._breakpoints.area.open()
            self._breakpoints.expect([point.address for point in fresh])
        self._target.overlay.plant(patches, masks)
        for point in points:
            if point.address not in plain:
                self.counters.armed(point)
        self._techniques.armed(points)
        if len(self.points) > _PLANS:
            for point in points:
                if point.planned:
                    point.forget_plan()

    def arm_dormant(self, insns: Mapping[int, bytes]) -> None:
        """Plant the breakpoints of uprobes that have no points.

        Args:
            insns: by address, bytes of instructions of `PlainRun`; no technique takes the place
                of a breakpoint before it is hit.
        """
        for address in insns:
            self._techniques.give_way(address)
        self._breakpoints.area.open()
        self._breakpoints.expect(insns)
        value = self._target.arch.probes.uprobe
        self._target.overlay.plant({address: (value, raw) for address, raw in insns.items()})

    def planted(self, point: ProbePoint) -> bytes:
        """The breakpoint that stands at a point."""
        kprobe = any(probe.rules is Rules.KPROBE for probe in point.probes)
        probes = self._target.arch.probes
        return probes.kprobe if kprobe else probes.uprobe

    def disarm(self, points: Sequence[ProbePoint]) -> None:
        """Lift the breakpoints of armed points; their slots go back."""
        for point in points:
            self._techniques.fall_back(point)
        self._target.overlay.lift([point.address for point in points])
        for point in points:
            self._put_down(point)
        if self._shared_units:
            self._boost_again(points)
        for point in points:
            slot = point.slot
            if slot is not None and not self._in_slot(slot):
                del self.slots_of[slot]
                self._breakpoints.give_back(point)
        for slots in self._slots:
            slots.collect(self._in_slot)
        self._techniques.room_made([point.address for point in points])

    def lost(self, point: ProbePoint) -> None:
        """The code under a point is gone, or is other code now: nothing stands there."""
        self._techniques.fall_back(point, gone=True)
        self._put_down(point)

    def drop(self, point: ProbePoint) -> None:
        """Forget a point whose code is gone."""
        del self.points[point.address]
        self._breakpoints.give_back(point)

    def _put_down(self, point: ProbePoint) -> None:
        point.state = point.state.disarm()
        self._breakpoints.remove(point)
        self.counters.disarmed(point)

    def _in_slot(self, slot: int) -> bool:
        """True if the guest is in the middle of the step in a slot."""
        pc = self._target.regs.ip
        return slot <= pc < slot + self._target.arch.probes.kprobe_slot

    # -- boosted copies that run past the next instruction --------------------------------
    # On IA-64 the rest of a bundle runs with its copy. While another of its slots behind is
    # probed, a copy is stepped instead. Linux's prepare_booster sees to the same, but boosts none
    # of them again.

    def _unboost(self, arming: Sequence[ProbePoint]) -> None:
        """Before points are armed: copies that would run past any of them are stepped."""
        fresh = {point.address for point in arming}
        for point in arming:
            if point.boosted and crowded(self.points, point, fresh):
                point.copy = replace(point.copy, boosted=False)
            for other in self._in_front(point):
                if other.boosted and other.plan.boosted_next:
                    other.copy = replace(other.copy, boosted=False)
                    if other.armed and other.address not in fresh:
                        self._breakpoints.plant(other)

    def _boost_again(self, disarmed: Sequence[ProbePoint]) -> None:
        """After points are disarmed: copies that may run on now do so."""
        for point in disarmed:
            for other in self._in_front(point):
                if other.armed and other.slot is not None:
                    self._breakpoints.fill(other, other.slot)
                    self._breakpoints.plant(other)

    def _in_front(self, point: ProbePoint) -> list[ProbePoint]:
        """The points in front of one in the same unit of code."""
        found = (self.points.get(address) for address in range(point.plan.base, point.address))
        return [other for other in found if other is not None]

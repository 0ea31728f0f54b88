"""The breakpoint technique's fast executor: what happens at a hit inside the emulator.

For each armed point it builds the action of its breakpoint (and of the trap behind the copy,
where the slot is not boosted). What the actions do is what the plan says; `breakpoint_machine`
does the same one visible step at a time, and tests hold the two against each other.
"""

from collections.abc import Callable
from typing import Final

from engine.arch.base import Arch
from engine.arch.plan import Fixup, Rules
from engine.cpu.base import LEAVE, Cpu, SingleSteps, StepAction, TrapAction
from engine.errors import EngineError, GuestFaultError
from engine.probes.kprobe import Kprobe
from engine.probes.point import ProbePoint
from engine.probes.return_catcher import own
from engine.probes.singlestep_fixup import settler
from engine.probes.slots import InsnSlots, XolArea
from engine.probes.stepping import GuestStep, StepStopError, failure

NAME: Final = "breakpoint"


def _leave() -> int:
    return LEAVE


def _leave_step(came: int) -> int:
    return LEAVE


def _counted(action: TrapAction, hits: int, point: ProbePoint) -> TrapAction:
    """The action of a point that is to be looked at: at its last hit the engine has to see it."""
    left = hits

    def counted() -> int:
        nonlocal left
        left -= 1
        if left > 0:
            return action()
        point.due = True
        return LEAVE

    return counted


class Breakpoints:
    """Prepares slots and actions.

    Attributes:
        entry: gives a point with return probes its action.
        waits: hits of a point after which it comes to the engine once; 0 = never.
        crowded: whether another probe stands where a point's boosted copy would run past it.
        fault: what an operation met inside the callback; the manager passes it on.
        first_fit: slots of the XOL area are taken as Linux takes them.
    """

    def __init__(
        self,
        arch: Arch,
        cpu: Cpu,
        step: GuestStep,
        slots: tuple[InsnSlots, ...],
        area: XolArea,
        thread: Callable[[], int],
        *,
        first_fit: bool,
    ) -> None:
        self._arch = arch
        self._cpu = cpu
        self._step = step
        self._slots = slots
        self._area = area
        self._thread = thread
        self.first_fit = first_fit
        self.fault: StepStopError | None = None
        self.entry: Callable[[ProbePoint, TrapAction], TrapAction] = lambda point, go: _leave
        self.waits: Callable[[ProbePoint], int] = lambda point: 0
        self.crowded: Callable[[ProbePoint], bool] = lambda point: False
        self._steps: SingleSteps | None = None
        if not arch.probes.after:
            if not isinstance(cpu, SingleSteps):
                raise EngineError("nothing ends the step of a copy on this processor")
            self._steps = cpu
        self._ends: dict[int, ProbePoint] = {}  # steps in the area, and whose end is planted

    # -- slots ----------------------------------------------------------------------------

    def prepare(self, point: ProbePoint) -> bool:
        """Find a slot and what stands in it; False if there is no slot left.

        The bytes are not written: the manager does that for many points at once.
        """
        plan = point.plan
        if plan.operation is not None:
            return True
        if plan.copy and self._steps_in_area(point):
            point.scratch = bool(plan.scratch_copy)
            copy = plan.scratch_copy or plan.copy
            point.code = copy + self._arch.probes.after
            self._area.open()
            return True
        reach = self._arch.probes.reach
        for near in (True, False):
            for slots in self._slots:
                if slots.reaches(point.address, reach) is not near:
                    continue
                slot = slots.get()
                if slot is not None:
                    point.slot = slot
                    self.fill(point, post=point.wants_post())
                    return True
        return False

    def _steps_in_area(self, point: ProbePoint) -> bool:
        return all(probe.rules is Rules.UPROBE for probe in point.probes)

    def fill(self, point: ProbePoint, *, post: bool) -> None:
        """Decide the bytes of a kprobe's slot."""
        plan, probes, slot = point.plan, self._arch.probes, point.slot
        assert slot is not None
        copy = rebased(plan.copy, plan.displacement, plan.address - slot)
        point.scratch = copy is None
        if copy is None:
            copy = plan.scratch_copy
        jump, room = None, probes.kprobe_slot - len(copy)
        if plan.boostable and not point.scratch:
            jump = probes.jump(slot + len(copy), plan.boosted_next or plan.next)
        able = jump is not None and len(jump) <= room
        point.boosted = able and not post and not self.crowded(point)
        if self._steps is not None:  # the jump may stand there whether it is reached or not
            point.code = copy + (jump if able and jump is not None else b"")
        else:
            point.code = copy + (jump if point.boosted and jump is not None else probes.after)

    def give_back(self, point: ProbePoint) -> None:
        """The point has no use for its slot any more."""
        if point.slot is None:
            return
        for slots in self._slots:
            if slots.window.start <= point.slot < slots.window.end:
                self._lift_end(point, point.slot)
                slots.free(point.slot, dirty=point.boosted)
        point.slot = None

    # -- actions --------------------------------------------------------------------------

    def plant(self, point: ProbePoint) -> None:
        """Install the point's actions as its probes want them now."""
        self._ends = {at: other for at, other in self._ends.items() if other is not point}
        action, hits = self._action(point), self.waits(point)
        traps = self._cpu.traps
        traps.plant(point.address, _counted(action, hits, point) if hits else action, point.follow)
        if point.detour is not None and point.detour.trap is not None:
            traps.plant(point.detour.trap, action, point.detour.window)
        if point.slot is not None and not point.boosted:
            self._plant_end(point, point.slot)
        elif point.slot is not None:
            self._lift_end(point, point.slot)

    def _plant_end(self, point: ProbePoint, slot: int) -> None:
        """What ends the step in a slot: the trap behind the copy, or the processor's own."""
        if self._steps is not None:
            settle = _leave_step if point.wants_engine() else self._settle(point, slot)
            self._steps.step_at(slot + point.plan.entry, settle)
            return
        end = _leave
        if not point.wants_engine():
            end = self._end(point) if point.slot is not None else self._area_end(point, slot)
        self._cpu.traps.plant(slot + point.copy_size, end, point.plan.next)

    def _lift_end(self, point: ProbePoint, slot: int) -> None:
        if self._steps is not None:
            self._steps.step_at(slot + point.plan.entry, None)
        else:
            self._cpu.traps.remove(slot + point.copy_size)

    def remove(self, point: ProbePoint) -> None:
        """Take the point's breakpoint out of service."""
        self._cpu.traps.remove(point.address)

    def _action(self, point: ProbePoint) -> TrapAction:
        if point.wants_engine():
            return _leave
        go, enabled = self._go(point), point.enabled()
        serve = self._serving(point, enabled, go)
        if not point.guard:
            return serve
        pass_over = self._serving(point, [probe for probe in enabled if own(probe)], go)
        holds = self._cpu.traps.reader((point.guard,))
        return lambda: serve() if holds()[0] else pass_over()

    def _serving(self, point: ProbePoint, enabled: list[Kprobe], go: TrapAction) -> TrapAction:
        if point.wants_return():
            return self.entry(point, go)
        if len(enabled) == 1 and enabled[0].record is not None:
            return self._single(enabled[0], enabled[0].record, go, point)
        thread = self._thread

        def action() -> int:
            for probe in enabled:
                probe.hits += 1
                if probe.record is not None:
                    probe.record(thread())
            return go()

        return action

    def _single(
        self, probe: Kprobe, record: Callable[[int], None], go: TrapAction, point: ProbePoint
    ) -> TrapAction:
        """The usual case, with nothing that it does not need."""
        thread = self._thread
        if point.slot is not None and not point.scratch and point.detour is None:
            slot = point.slot + point.plan.entry

            def straight() -> int:
                probe.hits += 1
                record(thread())
                return slot

            return straight

        def action() -> int:
            probe.hits += 1
            record(thread())
            return go()

        return action

    def _go(self, point: ProbePoint) -> TrapAction:
        """What carries the instruction out; returns where the guest goes on."""
        plan = point.plan
        if point.detour is not None:
            displaced = point.detour.displaced[0][0]
            return lambda: displaced
        if plan.operation is not None:
            run, step = plan.operation.run, self._step

            def operate() -> int:
                try:
                    return run(step)
                except (GuestFaultError, StepStopError) as error:
                    self.fault = failure(error, plan.address)
                    return LEAVE

            return operate
        return lambda: self.enter(point)

    def enter(self, point: ProbePoint) -> int:
        """Make the step ready; where it begins, LEAVE while there is no slot."""
        plan, slot = point.plan, point.slot
        if slot is None:
            slot = self._area.take(point.code, first_fit=self.first_fit)
            if slot is None:
                return LEAVE
            start = slot + plan.entry
            if self._ends.get(start) is not point:
                self._ends[start] = point
                self._plant_end(point, slot)
            self._area.owners[slot] = point
        if point.scratch:
            assert plan.scratch is not None
            point.saved = self._cpu.read_register(plan.scratch)
            self._cpu.write_register(plan.scratch, plan.next)
        return slot + plan.entry

    @property
    def stepping(self) -> dict[int, ProbePoint]:
        """Slots of the XOL area in use, and whose step it is."""
        return self._area.owners

    def _end(self, point: ProbePoint) -> TrapAction:
        """The step in a kprobe's slot is over."""
        follow = point.plan.next
        if not point.scratch:
            return lambda: follow

        def end() -> int:
            self.undo_scratch(point)
            return follow

        return end

    def _settle(self, point: ProbePoint, slot: int) -> StepAction:
        """The step of an instruction is over that the processor has single-stepped."""
        settle, area = settler(point.plan, slot, self._cpu), self._area
        if point.slot is not None:
            return settle

        def settle_in_area(came: int) -> int:
            if area.owners.pop(slot, None) is not None:
                area.release(slot)
            return settle(came)

        return settle_in_area

    def _area_end(self, point: ProbePoint, slot: int) -> TrapAction:
        follow, area = point.plan.next, self._area
        if point.scratch or point.plan.fixups != (Fixup.IP,):

            def end() -> int:
                self.finish(point, slot)
                return follow

            return end

        def plain_end() -> int:
            if area.owners.pop(slot, None) is not None:
                area.release(slot)
            return follow

        return plain_end

    def finish(self, point: ProbePoint, slot: int) -> None:
        """The copy has run in its slot: what the plan's fix-ups say, but for pc."""
        if Fixup.TRACE_FLAG in point.plan.fixups:
            place = self._step.read_register(self._arch.roles.sp) + 1
            self._step.store(place, bytes([self._step.load(place, 1)[0] | 1]))
        self.leave(point, slot)

    def leave(self, point: ProbePoint, slot: int) -> None:
        """A step is over or given up: its registers and its slot of the area go back."""
        self.undo_scratch(point)
        if point.slot is None and self.stepping.pop(slot, None) is not None:
            self._area.release(slot)

    def undo_scratch(self, point: ProbePoint) -> None:
        """The scratch register gets its own value back (Fixup.SCRATCH)."""
        if point.scratch and point.plan.scratch is not None:
            self._cpu.write_register(point.plan.scratch, point.saved)


def rebased(copy: bytes, displacement: int | None, distance: int) -> bytes | None:
    """The copy with its displacement moved by a distance; None where it does not reach."""
    if displacement is None:
        return copy
    place = slice(displacement, displacement + 4)
    value = int.from_bytes(copy[place], "little", signed=True) + distance
    if not -(1 << 31) <= value < 1 << 31:
        return None
    return copy[:displacement] + value.to_bytes(4, "little", signed=True) + copy[place.stop :]

"""Actions of breakpoints: they carry a hit out inside the emulator.

For each armed point it builds the action of its breakpoint (and of the trap behind the copy,
where the slot is not boosted). What the actions do is what the plan says; `breakpoint_machine`
does the same one visible step at a time, and tests hold the two against each other.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Fixup, Mode, Rules
from engine.cpu.base import LEAVE, SingleSteps, StepAction, TrapAction
from engine.errors import EngineError, GuestFaultError
from engine.probes.arbitration import Arbitration
from engine.probes.current_hit import CurrentHit, Status
from engine.probes.handler_reach import self_contained
from engine.probes.kprobe import Kprobe, PreHandler, RowOfAny, Uprobe
from engine.probes.plain_insns import copy_in_area
from engine.probes.point import FIRST_HITS, ProbePoint
from engine.probes.point_state import DISARMED, InsnCopy
from engine.probes.recorded_breakpoints import RecordedBreakpoints
from engine.probes.singlestep_fixup import settler
from engine.probes.slots import InsnSlots, XolArea
from engine.probes.stepping import StepStopError, failure
from engine.probes.target import ProbeTarget

if TYPE_CHECKING:
    from engine.probes.step_faults import StepFaults


def _leave() -> int:
    return LEAVE


def _leave_step(came: int) -> int:
    return LEAVE


class _CountedAction:
    """The action of a point that is to be looked at: at its last hit the engine has to see it.

    Of a hundred thousand points most are hit less often: an object takes a third of a closure.
    """

    __slots__ = ("_action", "_left", "_point", "_ripe")

    def __init__(
        self, action: TrapAction, hits: int, ripe: Callable[[ProbePoint], None], point: ProbePoint
    ) -> None:
        self._action = action
        self._left = hits
        self._ripe = ripe
        self._point = point

    def __call__(self) -> int:
        self._left -= 1
        if self._left > 0:
            return self._action()
        self._ripe(self._point)
        return LEAVE


class _FirstHit:
    """The action of first hits of points that need none of their own; one for all points."""

    __slots__ = ("_go", "_head", "_high", "_lean", "_probe", "_record", "_thread")

    def __init__(self, thread: Callable[[], int]) -> None:
        self._thread = thread
        self._lean: ProbePoint | None = None

    def set(self, probe: Kprobe, row: RowOfAny, go: TrapAction | int) -> None:
        """Take note that a probe's hit is about to be called for.

        Args:
            probe: the probe that is hit.
            row: records it.
            go: carries the instruction out, or is where that stands.
        """
        self._probe, self._go = probe, go
        self._record, self._high, self._head = row

    def lean(self, point: ProbePoint | None) -> None:
        """Let a point's plan be forgotten again when another one is hit."""
        if self._lean is not None:
            self._lean.forget_plan()
        self._lean = point

    def __call__(self) -> int:
        probe, go = self._probe, self._go
        probe.hits += 1
        self._record(self._thread() + self._high, self._head, probe.addr or 0)
        return go if isinstance(go, int) else go()


class Handled(Struct, frozen=True):
    """A hit whose pre-handlers have run inside the callback, and which goes on outside of it.

    Attributes:
        point: that was hit.
        ip: the program counter as they have left it.
        moved: one of them has set it; nothing is stepped.
        error: what one of them has raised.
    """

    point: ProbePoint
    ip: int
    moved: bool = False
    error: BaseException | None = None


class Breakpoints:
    """Prepares slots, and plants the actions of breakpoints.

    Attributes:
        techniques: who may take the place of breakpoints.
        recorded: gives points code that records their hits in the guest, where it can.
        handled: a hit that begins outside of the callback behind its pre-handlers.
        fault: what an operation met inside the callback; the manager passes it on.
        area: the XOL area.
        first_fit: its slots are taken as Linux takes them.
    """

    def __init__(
        self,
        target: ProbeTarget,
        points: Mapping[int, ProbePoint],
        slots: tuple[InsnSlots, ...],
        area: XolArea,
        current: CurrentHit,
        entry: Callable[[ProbePoint, TrapAction], TrapAction],
        *,
        at_once: bool,
    ) -> None:
        """No slot is taken.

        Args:
            target: the guest.
            points: all probed addresses.
            slots: of kprobes.
            area: slots of uprobes.
            current: the hit whose handlers run.
            entry: gives a point with return probes its action.
            at_once: see `Arbitration`.
        """
        arch, cpu = target.arch, target.cpu
        self._arch = arch
        self._cpu, self._traps = cpu, target.memory.traps
        self._traps.ask(self._make_at)
        self._step = target.step
        self._points = points
        self._made: set[ProbePoint] = set()  # whose actions are planted
        self._hits: dict[ProbePoint, int] = {}  # of those that were hit, and have none
        self._first = _FirstHit(target.thread)
        self._slots = slots
        self.area = area
        self._target = target
        self._thread = target.thread
        self.first_fit = target.mode is Mode.KERNEL
        self.fault: StepStopError | None = None
        self.handled: Handled | None = None
        self._inside: set[ProbePoint] = set()  # whose handlers run in the callback
        self._contained: dict[int, tuple[PreHandler, bool]] = {}  # by id: some have no hash
        self._regs = target.regs
        self._current, self._entry = current, entry
        self.techniques = Arbitration(target, points, self.plant, at_once=at_once)
        self.recorded: RecordedBreakpoints | None = None
        self._ripens = self._ripen  # one object for all points
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
        copy = copy_in_area(self._arch, plan) if self._steps_in_area(point) else None
        if copy is not None:
            point.copy = copy
            self.area.open()
            return True
        reach = self._arch.probes.reach
        for near in (True, False):
            for slots in self._slots:
                if slots.reaches(point.address, reach) is not near:
                    continue
                slot = slots.get()
                if slot is not None:
                    self.fill(point, slot)
                    return True
        return False

    def _steps_in_area(self, point: ProbePoint) -> bool:
        return all(probe.rules is Rules.UPROBE for probe in point.probes)

    def fill(self, point: ProbePoint, slot: int) -> None:
        """Decide the bytes of a kprobe's slot."""
        plan, probes = point.plan, self._arch.probes
        copy = rebased(plan.copy, plan.displacement, plan.address - slot)
        scratch = copy is None
        if copy is None:
            copy = plan.scratch_copy
        jump, room = None, probes.kprobe_slot - len(copy)
        if plan.boostable and not scratch:
            jump = probes.jump(slot + len(copy), plan.boosted_next or plan.next)
        able = jump is not None and len(jump) <= room
        boosted = able and not point.wants_post() and not crowded(self._points, point)
        behind = b"" if self._steps is not None else probes.after
        if jump is not None and (boosted or (able and self._steps is not None)):
            behind = jump  # where the processor ends the step it may stand there in any case
        simple = boosted and not (scratch or plan.boosted_next or plan.entry)
        passes = plan.next - plan.address if simple else 0
        point.copy = InsnCopy(slot, copy + behind, boosted, scratch, passes)

    def give_back(self, point: ProbePoint) -> None:
        """The point has no use for its slot any more."""
        copy = point.copy
        if copy.slot is None:
            return
        for slots in self._slots:
            if slots.window.start <= copy.slot < slots.window.end:
                self._lift_end(point, copy.slot)
                slots.free(copy.slot, dirty=copy.boosted)
        point.copy = replace(copy, slot=None)

    # -- actions --------------------------------------------------------------------------

    def plant(self, point: ProbePoint) -> None:
        """Have the point's actions be as its probes want them now.

        They are made when it is hit, where it is the program's own address that traps: most of
        a million never are.
        """
        if self._ends:
            self._ends = {at: other for at, other in self._ends.items() if other is not point}
        self._inside.discard(point)
        if self.recorded is not None:
            self.recorded.close(point)
        replacement = point.state.replacement
        if self._steps is None and (replacement is None or replacement.trap is None):
            self._made.discard(point)
            self._hits.pop(point, None)
            self._traps.expect(point.address)
        else:
            self._make(point)

    def expect(self, addresses: Iterable[int]) -> None:
        """The same as `plant` for points that had nothing planted so far, by their addresses."""
        self._traps.expect_each(addresses)

    def _ripen(self, point: ProbePoint) -> None:
        if self.recorded is not None:
            self.recorded.ripen(point)

    def ensure(self, point: ProbePoint) -> None:
        """Make the actions of an armed point if nobody has so far."""
        if point not in self._made:
            self._make(point)

    def _make_at(self, address: int) -> tuple[TrapAction, int] | None:
        """A breakpoint without an action has been hit."""
        point = self._points.get(address)
        if point is None or not point.armed:
            return None
        hits = self._hits.get(point, 0)
        follow = self._begins(point) if hits < FIRST_HITS else 0
        if follow:
            self._hits[point] = hits + 1
            return self._first, follow
        self._make(point)
        return None

    def _begins(self, point: ProbePoint) -> int:
        """Make ready for one of the first hits of a point that needs nothing of its own for it.

        Most are hit never or a few times, and what is made for one takes as long as so many.

        Returns:
            What follows its instruction; 0 where the point needs its action.
        """
        copy, probes = point.copy, point.probes
        slot, probe = copy.slot, probes[0]
        prepare = probe.prepare
        if prepare is None or len(probes) > 1 or point.guard or self._steps is not None:
            return 0
        usual = type(probe) in (Kprobe, Uprobe) and probe.plain and probe.enabled
        if not usual or point.state.replacement is not None or self.techniques.eager(point):
            return 0
        row = prepare.once(probe) if slot is None or copy.passes else None
        if row is None:
            return 0
        if slot is not None:
            self._first.set(probe, row, slot)
            return point.address + copy.passes
        self._first.lean(None if point.planned else point)
        self._first.set(probe, row, self._go(point))
        return point.follow

    def _make(self, point: ProbePoint) -> None:
        """Install the point's actions."""
        counted = self._hits.pop(point, 0)
        self._made.add(point)
        if point.wants_engine() and self._handles(point):
            self._inside.add(point)
        action, hits, recorded = self._action(point), self.techniques.waits(point), self.recorded
        traps = self._traps
        counts: Callable[[ProbePoint], None] = ProbePoint.count
        if not hits and recorded is not None:
            hits, counts = recorded.waits(point), self._ripens
        hits = max(hits - counted, 1) if hits else 0
        first = _CountedAction(action, hits, counts, point) if hits else action
        traps.plant(point.address, first, point.follow)
        replacement, slot = point.state.replacement, point.copy.slot
        if replacement is not None and replacement.trap is not None:
            traps.plant(replacement.trap, action, replacement.window)
        if slot is not None and not point.copy.boosted:
            self._plant_end(point, slot)
        elif slot is not None:
            self._lift_end(point, slot)

    def leaves(self, point: ProbePoint) -> bool:
        """True if its handlers run outside of the callback."""
        return point.wants_engine() and point not in self._inside

    def _handles(self, point: ProbePoint) -> bool:
        """True if all handlers of a point's probes can run in the callback."""
        return self._steps is None and all(
            type(probe) in (Kprobe, Uprobe)  # those of the machinery's own lead to the engine
            and probe.post_handler is None
            and getattr(probe, "handler", None) is None
            and not probe.stops
            and (probe.pre_handler is None or self._is_contained(probe.pre_handler))
            for probe in point.enabled()
        )

    def _is_contained(self, handler: PreHandler) -> bool:
        """`handler_reach.self_contained`, asked once."""
        if id(handler) not in self._contained:
            self._contained[id(handler)] = handler, self_contained(handler)
        return self._contained[id(handler)][1]

    def _plant_end(self, point: ProbePoint, slot: int) -> None:
        """Plant what ends a step: a trap behind the copy in its slot, or the processor's own."""
        if self._steps is not None:
            settle = _leave_step if self.leaves(point) else self._settle(point, slot)
            self._steps.step_at(slot + point.plan.entry, settle)
            return
        end = _leave
        if not self.leaves(point) and not point.plan.wrong:
            end = self._end(point) if point.copy.slot is not None else self._area_end(point, slot)
        self._traps.plant(slot + point.copy_size, end, point.plan.next)

    def _lift_end(self, point: ProbePoint, slot: int) -> None:
        if self._steps is not None:
            self._steps.step_at(slot + point.plan.entry, None)
        else:
            self._traps.remove(slot + point.copy_size)

    def due(self, point: ProbePoint) -> None:
        """A point has come to the engine: its hits are recorded in the guest if it is time."""
        recorded = self.recorded
        if recorded is None or not recorded.due(point) or not point.armed:
            return
        start = recorded.open(point)
        if start is None or point.replacement is not None:  # a call's trampoline leads there
            self._traps.plant(point.address, self._action(point), point.follow)
        else:
            self._traps.lead(point.address, start, point.plan.next, recorded.saves)

    def remove(self, point: ProbePoint) -> None:
        """Take the point's breakpoint out of service."""
        self._traps.remove(point.address)
        self._inside.discard(point)
        self._made.discard(point)
        self._hits.pop(point, None)
        if self.recorded is not None:
            self.recorded.forget(point)

    def _action(self, point: ProbePoint) -> TrapAction:
        if self.leaves(point):
            return _leave
        go, enabled = self._go(point), point.enabled()
        serve = self._serving(point, enabled, go)
        if not point.guard:
            return serve
        pass_over = self._serving(point, [probe for probe in enabled if probe.machinery], go)
        holds = self._cpu.traps.reader((point.guard,))
        return lambda: serve() if holds()[0] else pass_over()

    def _serving(self, point: ProbePoint, enabled: list[Kprobe], go: TrapAction) -> TrapAction:
        if point.wants_return():
            return self._entry(point, go)
        if point in self._inside:
            return self._handling(point, enabled, go)
        probes = [(probe, probe.record) for probe in enabled]
        if len(probes) == 1 and probes[0][1] is not None:
            return self._single(probes[0][0], probes[0][1], go, point)
        thread = self._thread

        def action() -> int:
            for probe, record in probes:
                probe.hits += 1
                if record is not None:
                    record(thread())
            return go()

        return action

    def _handling(self, point: ProbePoint, enabled: list[Kprobe], go: TrapAction) -> TrapAction:
        """The pre-handlers run here; what they do to the course of things is seen to outside."""
        regs, thread, address = self._regs, self._thread, point.address
        current, hit = self._current, self.techniques.hit
        pc, traps = self._arch.roles.pc, self._cpu.traps
        where, go_to = traps.reader((pc,)), traps.writer(pc)

        def action() -> int:
            if current.status is not Status.IDLE:
                return LEAVE  # a handler runs the guest: the hit is missed
            hit(point)
            came, moved = where()[0], False
            go_to(address)
            try:
                for probe in enabled:
                    probe.hits += 1
                    if probe.record is not None:
                        probe.record(thread())
                    handler = probe.pre_handler
                    if handler is not None and handler(probe, regs):
                        moved = True
                        break
            except BaseException as error:
                self.handled = Handled(point, address, error=error)
                go_to(came)
                return LEAVE
            ip = where()[0]
            if moved or ip != address or point.state is DISARMED:
                self.handled = Handled(point, ip, moved=True)
                go_to(came)
                return LEAVE
            target = go()
            if target == LEAVE:
                self.handled = Handled(point, address)
                go_to(came)
            return target

        return action

    def _single(
        self, probe: Kprobe, record: Callable[[int], None], go: TrapAction, point: ProbePoint
    ) -> TrapAction:
        """The usual case, with nothing that it does not need."""
        thread = self._thread
        copy = point.copy
        if copy.slot is not None and not copy.scratch and point.state.replacement is None:
            slot = copy.slot + point.plan.entry

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
        """The action that carries the instruction out; it returns where the guest goes on."""
        plan, replacement = point.plan, point.state.replacement
        bypass = replacement.bypass if replacement is not None else None
        if bypass is not None:
            return lambda: bypass
        if plan.operation is not None:
            operation, perform = plan.operation, self._step.perform

            def operate() -> int:
                try:
                    return perform(operation)
                except (GuestFaultError, StepStopError) as error:
                    self.fault = failure(error, plan.address)
                    return LEAVE

            return operate
        return lambda: self.enter(point)

    def enter(self, point: ProbePoint) -> int:
        """Make the step ready; where it begins, LEAVE while there is no slot."""
        plan, copy = point.plan, point.copy
        slot = copy.slot
        if slot is None:
            slot = self.area.take(copy.code, first_fit=self.first_fit)
            if slot is None:
                return LEAVE
            start = slot + plan.entry
            if self._ends.get(start) is not point:
                self._ends[start] = point
                self._plant_end(point, slot)
            self.area.owners[slot] = point
        if copy.scratch:
            assert plan.scratch is not None
            point.saved = self._cpu.read_register(plan.scratch)
            self._cpu.write_register(plan.scratch, plan.next)
        return slot + plan.entry

    @property
    def stepping(self) -> dict[int, ProbePoint]:
        """Slots of the XOL area in use, and whose step it is."""
        return self.area.owners

    def _end(self, point: ProbePoint) -> TrapAction:
        """The step in a kprobe's slot is over."""
        follow = point.plan.next
        if not point.copy.scratch:
            return lambda: follow

        def end() -> int:
            self.undo_scratch(point)
            return follow

        return end

    def _settle(self, point: ProbePoint, slot: int) -> StepAction:
        """The step of an instruction is over that the processor has single-stepped."""
        settle, area = settler(point.plan, slot, self._cpu), self.area
        if point.copy.slot is not None:
            return settle

        def settle_in_area(came: int) -> int:
            if area.owners.pop(slot, None) is not None:
                area.release(slot)
            return settle(came)

        return settle_in_area

    def _area_end(self, point: ProbePoint, slot: int) -> TrapAction:
        follow, area = point.plan.next, self.area
        if point.copy.scratch or point.plan.fixups != (Fixup.IP,):

            def end() -> int:
                self.finish(point, slot)
                return follow

            return end

        def plain_end() -> int:
            if area.owners.pop(slot, None) is not None:
                area.release(slot)
            return follow

        return plain_end

    def finish(self, point: ProbePoint, slot: int) -> int:
        """The copy has run in its slot: what the plan's fix-ups say, but for pc.

        Returns:
            Where the guest goes on.
        """
        plan = point.plan
        follow = self.faults.settle(plan, slot) if plan.wrong else plan.next
        self.leave(point, slot)
        return follow

    @cached_property
    def faults(self) -> "StepFaults":
        """Leaves what Linux leaves behind a step."""
        from engine.probes.step_faults import StepFaults  # for few instructions of kernel mode

        return StepFaults(self._target, self.area)

    def leave(self, point: ProbePoint, slot: int) -> None:
        """A step is over or given up: its registers and its slot of the area go back."""
        self.undo_scratch(point)
        if point.copy.slot is None and self.stepping.pop(slot, None) is not None:
            self.area.release(slot)

    def undo_scratch(self, point: ProbePoint) -> None:
        """The scratch register gets its own value back (Fixup.SCRATCH)."""
        if point.copy.scratch and point.plan.scratch is not None:
            self._cpu.write_register(point.plan.scratch, point.saved)


def crowded(
    points: Mapping[int, ProbePoint], point: ProbePoint, others: Collection[int] = ()
) -> bool:
    """Tell whether a point's boosted copy would run past another one.

    Args:
        points: all of them.
        point: the one in question.
        others: addresses that count as armed, too.
    """
    for address in range(point.plan.next, point.plan.boosted_next):
        other = points.get(address)
        if address in others or (other is not None and other.armed):
            return True
    return False


def rebased(copy: bytes, displacement: int | None, distance: int) -> bytes | None:
    """The copy with its displacement moved by a distance; None where it does not reach."""
    if displacement is None:
        return copy
    place = slice(displacement, displacement + 4)
    value = int.from_bytes(copy[place], "little", signed=True) + distance
    if not -(1 << 31) <= value < 1 << 31:
        return None
    return copy[:displacement] + value.to_bytes(4, "little", signed=True) + copy[place.stop :]

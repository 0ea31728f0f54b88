"""Hits that reach the engine: those of probes with handlers, and stops in the machinery.

A hit whose probes only record never comes here: `breakpoint_actions` serves it inside the
emulator.
"""

from collections.abc import Callable, Mapping, Sequence

from engine.arch.base import TrapKind
from engine.arch.plan import Mode, Rules
from engine.cpu.base import Stop, StopKind
from engine.errors import EngineError, GuestFaultError
from engine.probes.arbitration import Arbitration
from engine.probes.breakpoint_actions import Breakpoints, Handled
from engine.probes.current_hit import CurrentHit, Status
from engine.probes.detourwork import in_parts
from engine.probes.engine_code import EngineCode
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.pending_calls import ReturnSite
from engine.probes.point import ProbePoint, missed, needs_engine
from engine.probes.point_state import DISARMED, Look
from engine.probes.return_catcher import ReturnCatcher
from engine.probes.singlestep_fixup import settler
from engine.probes.stepping import StepStopError, failure
from engine.probes.target import ProbeTarget


class HitDispatcher:
    """The state machine of hits.

    Attributes:
        target: the guest.
        points: all probed addresses.
        breakpoints: carries displaced instructions out.
        returns: the catcher of returns.
        code: the engine's own code in the guest.
        current: the hit that is being served.
    """

    def __init__(
        self,
        target: ProbeTarget,
        points: Mapping[int, ProbePoint],
        breakpoints: Breakpoints,
        techniques: Arbitration,
        returns: ReturnCatcher,
        code: EngineCode,
        current: CurrentHit,
        unregister: Callable[[Kprobe], None],
    ) -> None:
        """No probe is being hit.

        Args:
            target: the guest.
            points: all probed addresses.
            breakpoints: carries displaced instructions out.
            techniques: with code of their own.
            returns: the catcher of returns.
            code: the engine's own code in the guest.
            current: the hit that is being served: none.
            unregister: takes a probe out.
        """
        self.target = target
        self.points = points
        self.breakpoints = breakpoints
        self.returns = returns
        self.code = code
        self.current = current
        self._techniques = techniques
        self._unregister = unregister
        self._cpu = target.cpu
        self._regs = target.regs
        self._pc = target.arch.roles.pc
        self._back = len(target.arch.breakpoint) if target.arch.trap_advances_pc else 0
        self._steps_itself = not target.arch.probes.after

    # -- hits -----------------------------------------------------------------------------

    def withdraw(self) -> bool:
        """Give up a step between two turns of a string instruction, for a signal.

        A signal interrupts the instruction there, probed or not. It goes on when the handler
        returns, and is hit once more.

        Returns:
            Whether the guest stood at such a place; it stands at the probe now.
        """
        pc = self._cpu.read_register(self._pc)
        point = self.code.step_of(pc)
        if point is None or not point.plan.repeats:
            return False
        slot = self.code.slot_around(pc)
        if pc != slot + point.plan.entry:
            return False
        self.breakpoints.leave(point, slot)
        self._regs.ip = point.plan.address
        self.current.end()
        return True

    def traps(self, point: ProbePoint) -> bool:
        """True if the breakpoint of a point would trap with the registers as they are."""
        name = point.plan.predicate
        return point.armed and (not name or self._cpu.read_register(name) != 0)

    def handle(self, stop: Stop) -> Stop | None:
        """See to a stop of the CPU; what is left of it for the guest's kernel."""
        pc = self._cpu.read_register(self._pc)
        if stop.kind is StopKind.TRAP and stop.trap is TrapKind.BREAKPOINT:
            at = pc - self._back
            point = self.points.get(at)
            if point is not None and point.state is not DISARMED:
                if point.candidacy.look is Look.DUE:
                    self._regs.ip = point.address
                    self._techniques.due(point)
                else:
                    self.breakpoints.due(point)
                return self._hit(point)
            if point is not None and point.covered:
                self._hit_covered(point, pc)
                return stop
            seen = self._techniques.trapped(at)
            if isinstance(seen, Stop):
                return seen
            if seen:
                return None if seen is True else self._hit(seen)
            point = self.code.step_of(at)
            if point is not None:
                return self._step_done(point, self.code.slot_around(at))
            if self._goes_on_inside(at):
                self._regs.ip = at
                return None
            return stop
        if stop.trap is TrapKind.SINGLE_STEP and self._steps_itself:
            point = self.code.step_of(stop.address)
            if point is None:
                return stop
            self._settled(point, pc, self.code.slot_around(stop.address))
            return None
        if stop.kind in (StopKind.QUANTUM, StopKind.HALTED):
            return stop
        holder = self._techniques.holder(pc)
        if holder is not None:
            return holder.stopped(stop, pc)
        point = self.code.step_of(pc)
        if point is not None:
            return self._interrupted(point, stop, pc)
        return self.code.as_original(stop)

    def _goes_on_inside(self, address: int) -> bool:
        """True if kernel mode lets the program go on at a breakpoint's last byte.

        As Linux does where a uprobe is in the program, and no breakpoint of one byte stands there
        (handle_swbp: it takes that for a uprobe that has gone meanwhile).
        """
        long = self.target.arch.probes.long_breakpoint
        if not long or self.target.overlay.original(address, 1) != long[-1:]:
            return False
        return any(
            probe.rules is Rules.UPROBE and (probe.mode or self.target.mode) is Mode.KERNEL
            for point in self.points.values()  # dormant uprobes are not of kernel mode
            for probe in point.probes
        )

    def _hit_covered(self, point: ProbePoint, pc: int) -> None:
        """A debugger's breakpoint stands in front of a probe's instruction."""
        if not point.enabled() or self.current.status is not Status.IDLE:
            return
        self._regs.ip = point.address
        self.current.begin(point)
        try:
            if not self.run_pre(point):
                self._regs.ip = pc
        finally:
            self.current.end()

    def _hit(self, point: ProbePoint) -> Stop | None:
        fault, self.breakpoints.fault = self.breakpoints.fault, None
        handled, self.breakpoints.handled = self.breakpoints.handled, None
        self._regs.ip = point.address
        if fault is not None:  # the instruction's own
            return self._stopped(point, fault)
        if handled is not None:
            return self._go_on(handled)
        if self.current.status is not Status.IDLE:
            self.enter_again(point)
            return self._begin_step(point)
        self.current.begin(point)
        try:
            moved = self.run_pre(point)
        except BaseException:
            self.current.end()
            raise
        if moved or point.state is DISARMED:
            self.current.end()
            return None
        self.current.status = Status.HIT_SS
        return self._begin_step(point)

    def _go_on(self, handled: Handled) -> Stop | None:
        """The pre-handlers of a hit have run."""
        if handled.error is not None:
            raise handled.error
        if handled.moved:
            self._regs.ip = handled.ip
            return None
        self.current.begin(handled.point, Status.HIT_SS)
        return self._begin_step(handled.point)

    def served(self, point: ProbePoint) -> list[Kprobe]:
        """The probes that a hit is for: only the machinery's where a predicate is false."""
        enabled = point.enabled()
        if not point.guard or self._cpu.read_register(point.guard):
            return enabled
        return [probe for probe in enabled if probe.machinery or probe.always]

    @property
    def told(self) -> str:
        """In words, beside its handlers: things that the machinery has seen at the last hit."""
        return "; ".join(filter(None, (self.returns.told, *self._techniques.told)))

    def enter_again(self, point: ProbePoint) -> None:
        """A hit while another probe's handlers run: counted, stepped, not served."""
        if self.current.status is Status.REENTER:
            raise EngineError(f"probe {point.address:#x} was hit in a hit in a hit")
        missed(self.served(point))
        for probe in point.probes:
            if isinstance(probe, ReturnSite):
                self.returns.missed(probe)
        self.current.enter_again(point)

    def run_pre(self, point: ProbePoint) -> bool:
        """Run what a point's probes do before its instruction; True if pc was set meanwhile."""
        self.returns.told = ""
        self._techniques.hit(point)
        entered = False
        served: Sequence[Kprobe] = self.served(point)
        if not any(needs_engine(probe) for probe in served if not probe.stops):
            served = in_parts(served)  # as inside of the emulator and in code
        for probe in served:
            if isinstance(probe, Kretprobe):
                if not entered:  # all of them at once
                    entered = True
                    self.returns.enter(point)
                continue
            probe.hits += 1
            if probe.record is not None:
                probe.record(self.target.thread())
            if isinstance(probe, Uprobe):
                if probe.handler is not None and probe.handler(probe, self._regs) == Uprobe.REMOVE:
                    self._unregister(probe)
            elif probe.pre_handler is not None and probe.pre_handler(probe, self._regs):
                return True
        return self._regs.ip != point.address

    def _begin_step(self, point: ProbePoint) -> Stop | None:
        plan, replacement = point.plan, point.state.replacement
        if replacement is not None and replacement.bypass is not None:
            # The int3 bypass: a breakpoint that has become a jump.
            self._regs.ip = replacement.bypass
            self._cpu.expect(replacement.window)
            self.current.end()
            return None
        if plan.operation is not None:
            try:
                self._regs.ip = self.target.step.perform(plan.operation)
            except (GuestFaultError, StepStopError) as error:
                return self._stopped(point, failure(error, point.address))
            self._cpu.expect(plan.next)
            self.run_post(point)
            return None
        self.breakpoints.ensure(point)
        slot = self.breakpoints.enter(point)
        if slot < 0:
            raise EngineError("all slots of the XOL area are taken")
        self._regs.ip = slot
        self._cpu.expect(point.follow)
        if point.copy.boosted or not self.breakpoints.leaves(point):  # its end is not seen here
            self.current.end()
        return None

    def _stopped(self, point: ProbePoint, step: StepStopError) -> Stop:
        """The step was not all: with pc still at the probe, both run again later."""
        self._regs.ip = step.pc
        if step.pc != point.address:  # it was carried out all the same: a system call
            self._cpu.expect(point.plan.next)
        if self.current.point is point:
            if step.pc != point.address:
                self.run_post(point)
            else:
                self.current.end()
        return self.returns.as_seen(point, step.stop)

    def _step_done(self, point: ProbePoint, slot: int) -> Stop | None:
        """The trap behind the copy was reached."""
        self._regs.ip = follow = self.breakpoints.finish(point, slot)
        self._cpu.expect(follow)
        self.run_post(point)
        return None

    def _settled(self, point: ProbePoint, came: int, slot: int) -> None:
        """The processor's own trap behind the copy was taken."""
        self._regs.ip = settler(point.plan, slot, self._cpu)(came)
        self.breakpoints.leave(point, slot)
        self._cpu.expect(point.plan.next)
        self.run_post(point)

    def run_post(self, point: ProbePoint) -> None:
        """Run the post-handlers; the probe is done."""
        current = self.current
        if current.status is Status.HIT_SS and current.point is point:
            current.status = Status.HIT_SSDONE
            for probe in point.enabled():
                if probe.post_handler is not None:
                    probe.post_handler(probe, self._regs, 0)
        self.current.end()

    def _interrupted(self, point: ProbePoint, stop: Stop, pc: int) -> Stop | None:
        """The displaced instruction raised something of its own while in its slot."""
        slot, plan = self.code.slot_around(pc), point.plan
        if pc == slot + plan.entry or (stop.kind is StopKind.FAULT and not plan.boosted_next):
            self.breakpoints.leave(point, slot)
            self._regs.ip = plan.address
            self.current.end()
        elif point.copy.boosted and plan.boosted_next:  # behind it, in what it runs on in
            self._regs.ip = self.code.original_pc(pc)
        else:
            # It was carried out all the same: a system call, or the guest's own trap flag.
            self._regs.ip = follow = self.breakpoints.finish(point, slot)
            self._cpu.expect(follow)
            self.run_post(point)
        return self.code.as_original(stop)

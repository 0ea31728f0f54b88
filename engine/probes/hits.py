"""What happens when the guest reaches a probe that has handlers, or stops in the machinery.

A hit whose probes only record never comes here: `breakpoint` serves it inside the emulator.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto

from engine.arch.base import Arch, TrapKind
from engine.cpu.base import Cpu, Stop, StopKind
from engine.errors import EngineError, GuestFaultError
from engine.probes.breakpoint import Breakpoints
from engine.probes.detourwork import in_parts
from engine.probes.jump import Jumps
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.point import ProbePoint, missed, needs_engine
from engine.probes.regs import PtRegs
from engine.probes.return_catcher import Returns, ReturnSite, own
from engine.probes.return_sites import ReturnSites
from engine.probes.singlestep_fixup import settler
from engine.probes.slots import InsnSlots, XolArea
from engine.probes.stepping import GuestStep, StepStopError, failure
from engine.probes.trampoline import NAME, LinuxTrampoline


class Status(Enum):
    """What the current probe is doing (KPROBE_HIT_* of asm/kprobes.h)."""

    IDLE = auto()
    HIT_ACTIVE = auto()
    HIT_SS = auto()
    HIT_SSDONE = auto()
    REENTER = auto()


class Hits:
    """The state machine of hits; `ProbeManager` is what registers the probes.

    Attributes:
        points: by guest address.
        status: of the probe whose handlers run or that is being stepped.
        current: its point.
    """

    arch: Arch
    cpu: Cpu
    regs: PtRegs
    step: GuestStep
    slots: tuple[InsnSlots, ...]
    area: XolArea
    breakpoints: Breakpoints
    returns: Returns
    jumps: Jumps | None
    points: dict[int, ProbePoint]
    status: Status
    current: ProbePoint | None
    thread: Callable[[], int]
    _saved: tuple[Status, ProbePoint | None]
    _slots_of: dict[int, ProbePoint]
    _back: int

    def unregister(self, probe: Kprobe) -> None:
        """Take one probe out."""
        raise NotImplementedError

    # -- hits -----------------------------------------------------------------------------

    def traps(self, point: ProbePoint) -> bool:
        """Whether the breakpoint of a point would trap with the registers as they are."""
        name = point.plan.predicate
        return point.armed and (not name or self.cpu.read_register(name) != 0)

    def handle(self, stop: Stop) -> Stop | None:
        """See to a stop of the CPU; what is left of it for the guest's kernel."""
        pc = self.cpu.read_register(self.arch.roles.pc)
        if stop.kind is StopKind.TRAP and stop.trap is TrapKind.BREAKPOINT:
            at = pc - self._back
            point = self.points.get(at)
            if point is not None and point.armed:
                if self.jumps is not None and point.due:
                    point.due = False
                    self.regs.ip = point.address
                    self.jumps.due(point)
                return self._hit(point)
            live = self.jumps.running.trapped(at) if self.jumps is not None else None
            if live is not None:
                return self._hit(live.point) if not live.zombie else None
            if self.jumps is not None and self.jumps.running.late(at):
                return None
            point = self._step_of(at)
            if point is not None:
                return self._step_done(point, self._slot_around(at))
            return stop
        if stop.trap is TrapKind.SINGLE_STEP and not self.arch.probes.after:
            point = self._step_of(stop.address)
            if point is None:
                return stop
            self._settled(point, pc, self._slot_around(stop.address))
            return None
        if stop.kind in (StopKind.QUANTUM, StopKind.HALTED):
            return stop
        if self.jumps is not None and self.jumps.running.holds(pc):
            return self.jumps.running.stopped(stop, pc)
        point = self._step_of(pc)
        if point is not None:
            return self._interrupted(point, stop, pc)
        if stop.kind is StopKind.TRAP and self.inside(stop.address):  # a boosted slot is left
            return replace(stop, address=self.original_pc(stop.address))
        return stop

    def _hit(self, point: ProbePoint) -> Stop | None:
        fault, self.breakpoints.fault = self.breakpoints.fault, None
        self.regs.ip = point.address
        if fault is not None:  # the instruction's own
            return self._stopped(point, fault)
        if self.status is not Status.IDLE:
            self.enter_again(point)
            return self._begin_step(point)
        self.current, self.status = point, Status.HIT_ACTIVE
        try:
            moved = self.run_pre(point)
        except BaseException:
            self.idle()
            raise
        if moved or not point.armed:
            self.idle()
            return None
        self.status = Status.HIT_SS
        return self._begin_step(point)

    def served(self, point: ProbePoint) -> list[Kprobe]:
        """The probes that a hit is for: only the machinery's where a predicate is false."""
        enabled = point.enabled()
        if not point.guard or self.cpu.read_register(point.guard):
            return enabled
        return [probe for probe in enabled if own(probe) or probe.always]

    @property
    def told(self) -> str:
        """What the machinery has seen at the last hit, beside its handlers, in words."""
        passed = self.jumps.checks.told if self.jumps is not None else ""
        return "; ".join(filter(None, (self.returns.told, passed)))

    def enter_again(self, point: ProbePoint) -> None:
        """A hit while another probe's handlers run: counted, stepped, not served."""
        if self.status is Status.REENTER:
            raise EngineError(f"probe {point.address:#x} was hit in a hit in a hit")
        missed(self.served(point))
        for probe in point.probes:
            if isinstance(probe, ReturnSite) and isinstance(self.returns, ReturnSites):
                self.returns.missed(probe)
        self._saved = (self.status, self.current)
        self.status, self.current = Status.REENTER, point

    def run_pre(self, point: ProbePoint) -> bool:
        """Whether a handler has set pc itself."""
        self.returns.told = ""
        if self.jumps is not None:
            self.jumps.hit(point)
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
                probe.record(self.thread())
            if isinstance(probe, Uprobe):
                if probe.handler is not None and probe.handler(probe, self.regs) == Uprobe.REMOVE:
                    self.unregister(probe)
            elif probe.pre_handler is not None and probe.pre_handler(probe, self.regs):
                return True
        return self.regs.ip != point.address

    def _begin_step(self, point: ProbePoint) -> Stop | None:
        plan = point.plan
        if point.detour is not None:  # the int3 bypass: a breakpoint that has become a jump
            self.regs.ip = point.detour.displaced[0][0]
            self.cpu.expect(point.detour.window)
            self.idle()
            return None
        if plan.operation is not None:
            try:
                self.regs.ip = plan.operation.run(self.step)
            except (GuestFaultError, StepStopError) as error:
                return self._stopped(point, failure(error, point.address))
            self.cpu.expect(plan.next)
            self.run_post(point)
            return None
        slot = self.breakpoints.enter(point)
        if slot < 0:
            raise EngineError("all slots of the XOL area are taken")
        self.regs.ip = slot
        self.cpu.expect(point.follow)
        if point.boosted or not point.wants_engine():  # its end is not seen here
            self.idle()
        return None

    def _stopped(self, point: ProbePoint, step: StepStopError) -> Stop:
        """The step was not all: with pc still at the probe, both run again later."""
        self.regs.ip = step.pc
        if step.pc != point.address:  # it was carried out all the same: a system call
            self.cpu.expect(point.plan.next)
        if self.current is point:
            if step.pc != point.address:
                self.run_post(point)
            else:
                self.idle()
        return self._as_seen(point, step.stop)

    def _as_seen(self, point: ProbePoint, stop: Stop) -> Stop:
        """A return to the trampoline that nobody made is an illegal instruction."""
        if isinstance(self.returns, LinuxTrampoline) and point is self.returns.point:
            return Stop(StopKind.TRAP, TrapKind.ILLEGAL)
        return stop

    def _step_done(self, point: ProbePoint, slot: int) -> Stop | None:
        """The trap behind the copy was reached."""
        self.breakpoints.finish(point, slot)
        self.regs.ip = point.plan.next
        self.cpu.expect(point.plan.next)
        self.run_post(point)
        return None

    def _settled(self, point: ProbePoint, came: int, slot: int) -> None:
        """The processor's own trap behind the copy was taken."""
        self.regs.ip = settler(point.plan, slot, self.cpu)(came)
        self.breakpoints.leave(point, slot)
        self.cpu.expect(point.plan.next)
        self.run_post(point)

    def run_post(self, point: ProbePoint) -> None:
        """Run the post-handlers; the probe is done."""
        if self.status is Status.HIT_SS and self.current is point:
            self.status = Status.HIT_SSDONE
            for probe in point.enabled():
                if probe.post_handler is not None:
                    probe.post_handler(probe, self.regs, 0)
        self.idle()

    def idle(self) -> None:
        """The current probe is done; one that it interrupted goes on."""
        if self.status is Status.REENTER:
            self.status, self.current = self._saved
        else:
            self.status, self.current = Status.IDLE, None

    # -- in the middle of the machinery ---------------------------------------------------

    def _slot_around(self, address: int) -> int:
        """The slot that an address lies in."""
        size = self.arch.probes.kprobe_slot
        if self.area.contains(address):
            size = self.area.slot_size
        return address - (address - self.area.page) % size

    def _step_of(self, address: int) -> ProbePoint | None:
        """The point whose slot an address lies in."""
        if not self.inside(address):
            return None
        slot = self._slot_around(address)
        return self.breakpoints.stepping.get(slot) or self._slots_of.get(slot)

    def inside(self, address: int) -> bool:
        """Whether an address lies in the pages of the slots, or where detours are."""
        if self.area.contains(address) or any(
            slots.window.start <= address < slots.window.end for slots in self.slots
        ):
            return True
        return self.jumps is not None and self.jumps.running.holds(address)

    def _interrupted(self, point: ProbePoint, stop: Stop, pc: int) -> Stop | None:
        """The displaced instruction raised something of its own while in its slot."""
        slot, plan = self._slot_around(pc), point.plan
        if pc == slot + plan.entry or (stop.kind is StopKind.FAULT and not plan.boosted_next):
            self.breakpoints.leave(point, slot)
            self.regs.ip = plan.address
            self.idle()
        elif point.boosted and plan.boosted_next:  # behind its instruction, in what it runs on in
            self.regs.ip = self.original_pc(pc)
        else:
            # It was carried out all the same: a system call, or the guest's own trap flag.
            self.breakpoints.finish(point, slot)
            self.regs.ip = plan.next
            self.cpu.expect(plan.next)
            self.run_post(point)
        return self._at_original(stop)

    def _at_original(self, stop: Stop) -> Stop:
        """A stop that names a place in the machinery names the program's own."""
        if stop.kind is StopKind.TRAP and stop.address and self.inside(stop.address):
            return replace(stop, address=self.original_pc(stop.address))
        return stop

    def original_pc(self, address: int) -> int:
        """The program's own address for a place in a slot or detour; others stay as they are."""
        found = self.jumps.detours.at(address) if self.jumps is not None else None
        if found is not None:
            return found.detour.original_pc(address)
        point = self._step_of(address)
        if point is None:
            return self.returns.original_pc(address)
        offset = address - self._slot_around(address)
        if point.plan.bits is not None and offset < len(point.plan.copy):
            return point.plan.base + offset
        return point.address if not offset else point.follow

    def name(self, address: int) -> str:
        """A place in a slot as a symbol: whose slot, how far in; "" elsewhere."""
        start, end = self.returns.trampoline or (0, 0)
        if start <= address < end:
            offset = address - start
            return NAME + (f"+{offset:#x}" if offset else "")
        if not self.inside(address):
            return ""
        if self.jumps is not None and self.jumps.running.holds(address):
            return self.jumps.running.name(address)
        slot = self._slot_around(address)
        kind = "xol_slot" if self.area.contains(address) else "kprobe_insn_slot"
        point = self._step_of(address)
        whose = f"{point.address:#x}" if point is not None else "free"
        return f"{kind}[{whose}]+{address - slot:#x}"

    def busy(self) -> bool:
        """Whether the guest stands in the machinery: signals wait until it has left."""
        if self.jumps is not None:
            self.jumps.running.resume()
        pc = self.cpu.read_register(self.arch.roles.pc)
        return self.inside(pc) or self.returns.holds(pc)

    def resolve_return(self, address: int, slot: int) -> int | None:
        """Where a frame really returns to; None if it is what was read.

        Args:
            address: the return address as read.
            slot: the stack pointer at the entry of the function that returns.
        """
        return self.returns.resolve(address, slot)

    def trampoline(self) -> tuple[int, int] | None:
        """(start, end) of the return trampoline; None while nothing returns to one.

        At its pc the frame is gone: the canonical frame address is the stack pointer, and the
        return address is what `original_pc` says.
        """
        return self.returns.trampoline

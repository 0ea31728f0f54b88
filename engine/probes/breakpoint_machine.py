"""The breakpoint technique one visible phase at a time: the second executor of a plan.

What `breakpoint` does in one go inside the emulator is carried out here in the steps that a
kernel goes through: the trap, the handlers, one single step of the copy in its slot (or the
emulation), the fix-ups, the handlers afterwards. A copy that leaves its slot by itself (a
return, an indirect call or jump), for which the fast executor uses software, really runs in
a slot here, and the fix-ups put right what it leaves, as Linux's default_post_xol_op does. The
planted breakpoint itself is never executed, so no action of the fast executor fires.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from engine.arch.plan import Fixup, Verdict
from engine.cpu.base import SingleSteps, Stop, StopKind
from engine.errors import EngineError, GuestFaultError
from engine.message_text import counted
from engine.probes.breakpoint_actions import rebased
from engine.probes.current_hit import Status
from engine.probes.hit_machine import WORD, HitBuffer, Phase, stop_name
from engine.probes.hits import HitDispatcher
from engine.probes.kretprobe import KretprobeInstance
from engine.probes.stepping import StepStopError, failure

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


class BreakpointMachine:
    """Carries one hit of a breakpoint out; satisfies `HitMachine`."""

    def __init__(self, hits: HitDispatcher, *, trapped: bool = False) -> None:
        """Take up the hit where the guest stands.

        Args:
            hits: of the guest.
            trapped: the breakpoint was executed already; pc is where its trap left it.

        Raises:
            EngineError: the guest does not stand at an armed point.
        """
        target = hits.target
        arch, pc = target.arch, target.regs.ip
        back = len(arch.breakpoint) if arch.trap_advances_pc else 0
        point = hits.points.get(pc - back if trapped else pc)
        if point is None or not point.armed:
            raise EngineError(f"no armed probe at {pc:#x}")
        self.point = point
        self.next: Phase | None = Phase.PRE if trapped else Phase.ARMED
        self.stop: Stop | None = None
        self.calls: Sequence[KretprobeInstance] = hits.returns.arriving(point)
        self.buffer: HitBuffer | None = None
        self._hits = hits
        self.target = target
        self._arch, self._cpu, self._regs = arch, target.cpu, target.regs
        self._advance_by = back
        self._slot: int | None = None
        self._size = 0
        self._scratch: tuple[str, int] | None = None
        self._arrived = False
        self.phases: Mapping[Phase, Callable[[], str]] = {
            Phase.ARMED: self._armed,
            Phase.TRAP: self._trap,
            Phase.PRE: self._pre,
            Phase.SLOT: self._step_slot,
            Phase.EMULATED: self._emulate,
            Phase.FIXUP: self._fix,
            Phase.POST: self._post,
            Phase.RESUME: self._resume,
        }

    @property
    def slot(self) -> int | None:
        """The slot of this hit; None while it has none, and for an emulated instruction."""
        return self._slot if self._slot is not None else self.point.slot

    @property
    def began(self) -> int | None:
        """The place of the breakpoint, or where the calls return to that have led there."""
        return self.calls[0].ret_addr if self.calls else self.point.address

    @property
    def ahead(self) -> tuple[Phase, ...]:
        """The phases from the next one on, if nothing goes wrong."""
        emulated = self.point.plan.verdict is Verdict.EMULATED
        middle = (Phase.EMULATED,) if emulated else (Phase.SLOT, Phase.FIXUP)
        route = (Phase.ARMED, Phase.TRAP, Phase.PRE, *middle, Phase.POST, Phase.RESUME)
        return route[route.index(self.next) :] if self.next is not None else ()

    @property
    def own(self) -> dict[str, int]:
        """Registers that hold something of the machinery's, and what the program would see."""
        plan, slot, pc = self.point.plan, self._slot, self._arch.roles.pc
        if self.next is Phase.PRE:
            return {pc: self.point.address}
        if self.next is not Phase.FIXUP or slot is None:
            return {}
        names = {
            pc if fixup in (Fixup.IP, Fixup.NOT_TAKEN) else plan.link for fixup in plan.fixups
        }
        found = {name: self._cpu.read_register(name) for name in names if name}
        return {
            name: value + plan.base - slot & _MASK
            for name, value in found.items()
            if slot <= value <= slot + len(plan.copy) or (name == pc and Fixup.IP in plan.fixups)
        }

    def places(self) -> list[tuple[int, int]]:
        """(address, size) of site and slot."""
        places = [(self.point.plan.base, max(len(self.point.plan.raw), 4))]
        if self._slot is not None:
            places.append((self._slot, self._size + len(self._arch.probes.after)))
        return places

    def about(self, phase: Phase) -> int | None:
        """Address of the slot for its step, of the site for the phases before it."""
        if phase is Phase.SLOT:
            return self._slot
        return self.point.plan.base if phase in (Phase.ARMED, Phase.TRAP) else None

    # -- the phases -----------------------------------------------------------------------

    def _armed(self) -> str:
        self.next = Phase.TRAP
        point = self.point
        size = len(point.plan.raw) if point.plan.bits else len(self._arch.breakpoint)
        planted = self.target.memory.read(point.plan.base, size)
        if point.address == self._trampoline:
            return f"armed: the return trampoline, {planted.hex(' ')} at {point.address:#x}"
        raw = point.plan.raw.hex(" ")
        return f"armed: {planted.hex(' ')} stands at {point.address:#x} in front of {raw}"

    def _trap(self) -> str:
        self.next = Phase.PRE
        self._regs.ip = self.point.address + self._advance_by
        if self._advance_by:
            return f"the breakpoint traps; pc is {self._advance_by} behind the probe"
        return "the breakpoint traps; pc stays at the probe"

    def _pre(self) -> str:
        hits, point = self._hits, self.point
        self._regs.ip = point.address
        follow = Phase.EMULATED if point.plan.verdict is Verdict.EMULATED else Phase.SLOT
        self.next = follow
        if hits.current.status is not Status.IDLE:
            hits.enter_again(point)
            return "another probe's handlers are running: counted as missed, stepped silently"
        hits.current.begin(point)
        try:
            moved = hits.run_pre(point)
        except BaseException:
            hits.current.end()
            self.next = None
            raise
        if moved or not point.armed:
            hits.current.end()
            self.next = Phase.RESUME
            if moved:
                return f"a handler set pc to {self._regs.ip:#x}: the instruction is skipped"
            why = hits.told or "a handler took the last probe out"
            return f"{why}: the instruction runs in place"
        hits.current.status = Status.HIT_SS
        told = hits.told
        count = sum(not probe.stops for probe in point.enabled())
        ran = f"handlers of {counted(count, 'probe')} ran" if count else "a stop has no handlers"
        return ran + (told and f"; {told}")

    def _step_slot(self) -> str:
        self._enter()
        point, slot, cpu = self.point, self._slot, self._cpu
        assert slot is not None
        regs = self._regs
        start = regs.ip = slot + point.plan.entry
        text = f"the copy runs in slot {slot:#x}"
        ticks = cpu.blocks()
        cpu.expect(point.follow)
        step: Callable[[], Stop | None] = cpu.step
        if isinstance(cpu, SingleSteps):
            text, step = f"one instruction of the copy in slot {slot:#x} runs", cpu.single_step
        if self._scratch is not None:
            text += f"; {self._scratch[0]} stands in for {self._arch.roles.pc}"
        while True:
            stop = self.target.step.once(step)
            if stop is not None and stop.kind in (StopKind.HALTED, StopKind.QUANTUM):
                continue  # before it
            if stop is not None or regs.ip != start or not point.plan.repeats:
                break
        self._arrived = cpu.blocks() != ticks
        if stop is None or (stop.access == "execute" and regs.ip != start):
            # A branch to where nothing can be executed was carried out: the fault is its target's.
            self.next = Phase.FIXUP
            return text
        if stop.kind is StopKind.FAULT or regs.ip == start:
            self._leave()
            return self._fail(stop, text)
        # It was carried out all the same: a system call, or the guest's own trap flag.
        self.stop = self._at_original(stop)
        self.next = Phase.FIXUP
        return f"{text}; it raised {stop_name(stop)}"

    def _emulate(self) -> str:
        operation = self.point.plan.operation
        assert operation is not None
        try:
            target = self.target.step.perform(operation)
        except (GuestFaultError, StepStopError) as error:
            step = failure(error, self.point.address)
            if step.pc == self.point.address:
                return self._fail(step.stop, operation.text)
            self.stop = step.stop  # carried out all the same: a system call
            target = step.pc
        self._regs.ip = target
        self.next = Phase.POST
        told = self._hits.returns.told if self.point.address == self._trampoline else ""
        return operation.text + (told and f": {told}; pc becomes {target:#x}")

    @property
    def _trampoline(self) -> int | None:
        found = self._hits.returns.trampoline
        return found[0] if found is not None else None

    def _fail(self, stop: Stop, text: str) -> str:
        """The instruction faulted: as if it had never been tried."""
        address = self.point.address
        self._regs.ip = address
        self._hits.current.end()
        self.stop = self._at_original(stop)
        self.next = None
        return f"{text}; it raised {stop_name(stop)}: pc goes back to {address:#x}"

    def _at_original(self, stop: Stop) -> Stop:
        """The stop as if the original had raised it."""
        if stop.kind is StopKind.TRAP and self._hits.code.inside(stop.address):
            return replace(stop, address=self.point.address)
        return stop

    def _fix(self) -> str:
        plan, regs, slot = self.point.plan, self._regs, self._slot
        assert slot is not None
        done = []
        for fixup in plan.fixups:
            left = slot <= regs.ip <= slot + len(plan.copy)
            if fixup is Fixup.IP or (fixup is Fixup.NOT_TAKEN and left):
                regs.ip = regs.ip + plan.base - slot & _MASK
                done.append(f"pc moves from the slot to {regs.ip:#x}")
            elif plan.link and fixup in (Fixup.CALL, Fixup.VALUE):
                done.append(self._moved(plan.link, slot))
            elif fixup is Fixup.CALL:
                self._return_address(plan.next)
                done.append(f"the return address becomes {plan.next:#x}")
            elif fixup is Fixup.SCRATCH and self._scratch is not None:
                done.append(f"{self._scratch[0]} gets its own value back")
            elif fixup is Fixup.FLAGS:
                done.append("TF stays as the instruction left it")
            elif fixup is Fixup.TRACE_FLAG:
                self._hits.breakpoints.faults.show_flag()
                done.append("the pushed flags show TF of the single step")
            elif fixup is Fixup.STEP_FLAG:
                self._hits.breakpoints.faults.keep_flag()
                done.append("TF of the single step stays set")
            elif fixup is Fixup.STRANDED:
                regs.ip = self._hits.breakpoints.faults.strand(plan, slot)
                done.append(f"pc stays in the slot, at {regs.ip:#x}")
        self._leave()
        self.next = Phase.POST
        return "; ".join(done) or "nothing to put right: the copy left the slot by itself"

    def _moved(self, register: str, slot: int) -> str:
        """A register that was given an address in the slot gets the original's."""
        plan, value = self.point.plan, self._cpu.read_register(register)
        if value not in (slot, slot + len(plan.copy)):
            return f"{register} holds no address in the slot"
        self._cpu.write_register(register, value + plan.base - slot & _MASK)
        return f"{register} becomes {self._cpu.read_register(register):#x}"

    def _return_address(self, value: int) -> None:
        """The copy has pushed (or linked) an address in its slot."""
        link = self._arch.roles.link
        if link is not None:
            self._cpu.write_register(link, value)
        else:
            self.target.step.store(self._regs.sp, value.to_bytes(WORD, "little"))

    def _post(self) -> str:
        served = self._hits.current.status is Status.HIT_SS
        self._hits.run_post(self.point)
        self.next = Phase.RESUME
        if not served:
            return "a hit in a hit: no handlers"
        return "post-handlers ran" if self.point.wants_post() else "no post-handlers"

    def _resume(self) -> str:
        self.next = None
        # A copy that has jumped is where it jumped to, and that the clock has seen.
        self._cpu.expect(self._regs.ip if self._arrived else self.point.plan.next)
        return f"the guest goes on at {self._regs.ip:#x}"

    # -- the slot -------------------------------------------------------------------------

    def _enter(self) -> None:
        """Find a slot, write the copy if need be, put the scratch register in place."""
        point, plan, breakpoints = self.point, self.point.plan, self._hits.breakpoints
        if point.slot is not None:
            self._slot = point.slot
            copy = rebased(plan.copy, plan.displacement, plan.address - point.slot)
            scratch = copy is None
        else:
            scratch = bool(plan.scratch_copy)
            copy = plan.scratch_copy or plan.copy
            area = breakpoints.area
            code = copy + self._arch.probes.after
            self._slot = area.take(code, first_fit=breakpoints.first_fit)
            if self._slot is None:
                raise EngineError("all slots of the XOL area are taken")
            area.owners[self._slot] = point
        self._size = len(plan.copy)
        self.target.memory.sync()
        if scratch and plan.scratch is not None:
            self._scratch = plan.scratch, self._cpu.read_register(plan.scratch)
            self._cpu.write_register(plan.scratch, plan.next)

    def _leave(self) -> None:
        """The step is over or given up: the register and the slot go back."""
        if self._scratch is not None:
            self._cpu.write_register(*self._scratch)
            self._scratch = None
        slot = self._slot
        area = self._hits.breakpoints.area
        if slot is not None and area.owners.pop(slot, None) is not None:
            area.release(slot)

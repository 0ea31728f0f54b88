"""A hit of a call in place of a no-operation, one visible phase at a time.

The program itself is stepped through the call and the trampoline. The system call is carried out
as Linux does it: the handlers find the registers as they were in front of the call, and the way
back through the trampoline gives the program what they have left in them.
"""

import struct
from collections.abc import Callable, Mapping, Sequence

from engine.arch.nop_call import WORD
from engine.cpu.base import Stop, StopKind
from engine.errors import EngineError
from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.hit_machine import BufferPart, HitBuffer, HitMachine, Phase, stop_name
from engine.probes.hits import HitDispatcher
from engine.probes.kretprobe import KretprobeInstance
from engine.probes.point_state import Stage
from engine.probes.uprobe_call import UprobeCall
from engine.probes.uprobe_trampoline import TrampolineFrame, frame_in, undo

_ROUTE = (
    *(Phase.ARMED, Phase.CALL, Phase.SAVE, Phase.SYSCALL),
    *(Phase.RESTORE, Phase.RETURN),
)


def nop_call_machine(hits: HitDispatcher) -> HitMachine:
    """Take up the hit where the guest stands: the first one is a breakpoint's.

    Raises:
        EngineError: the guest stands at no point with a call.
    """
    point = hits.points.get(hits.target.regs.ip)
    if point is not None and point.state.stage is Stage.CHECK:
        return BreakpointMachine(hits)
    return NopCallMachine(hits)


class NopCallMachine:
    """Carries one hit of a call out; satisfies `HitMachine`."""

    def __init__(self, hits: HitDispatcher) -> None:
        """Take up the hit where the guest stands.

        Raises:
            EngineError: the guest stands at no point with a call.
        """
        target = hits.target
        pc = target.regs.ip
        point = hits.points.get(pc)
        call = point.replacement if point is not None else None
        if point is None or not isinstance(call, UprobeCall):
            raise EngineError(f"no call of a uprobe at {pc:#x}")
        self.point = point
        self.next: Phase | None = Phase.ARMED
        self.stop: Stop | None = None
        self.calls: Sequence[KretprobeInstance] = ()
        self._called = call
        self._hits, self.target = hits, target
        self._cpu, self._regs = target.cpu, target.regs
        self._sp = target.regs.sp
        calls, start = call.calls, call.start
        restored = start + calls.pops[-1][0]
        self._ends = {
            Phase.SAVE: start + calls.syscall,
            Phase.RESTORE: restored,
            Phase.RETURN: call.window,
        }
        parts = (
            BufferPart(Phase.SAVE, start, start + calls.syscall),
            BufferPart(Phase.SYSCALL, start + calls.syscall, start + calls.behind),
            BufferPart(Phase.RESTORE, start + calls.behind, restored),
            BufferPart(Phase.RETURN, restored, restored + 1),
        )
        self.buffer: HitBuffer | None = HitBuffer("called", call, parts)
        self.phases: Mapping[Phase, Callable[[], str]] = {
            Phase.ARMED: self._armed,
            Phase.CALL: self._call,
            Phase.SAVE: self._save,
            Phase.SYSCALL: self._syscall,
            Phase.RESTORE: self._restore,
            Phase.RETURN: self._return,
        }

    @property
    def slot(self) -> int | None:
        """None: a call needs no slot."""
        return None

    @property
    def own(self) -> dict[str, int]:
        """In the trampoline the stack pointer and the program counter are the machinery's."""
        inside = self._called.start <= self._regs.ip < self._called.end
        frame = self._frame() if inside else None
        if frame is None:
            return {}
        roles = self.target.arch.roles
        return {roles.pc: frame.probe, roles.sp: frame.sp, **dict(frame.saved)}

    @property
    def began(self) -> int | None:
        """The program is at the probe all the while."""
        return self.point.address

    @property
    def ahead(self) -> tuple[Phase, ...]:
        """The phases from the next one on, if nothing goes wrong."""
        return _ROUTE[_ROUTE.index(self.next) :] if self.next is not None else ()

    def places(self) -> list[tuple[int, int]]:
        """(address, size) of the call, and of the words that a hit overwrites."""
        below = range(self._sp - self._called.calls.overwritten, self._sp, WORD)
        return [
            (self.point.address, len(self._called.original)),
            *((address, WORD) for address in below),
        ]

    def about(self, phase: Phase) -> int | None:
        """Address of the site, for the phase in front of the call."""
        return self.point.address if phase is Phase.ARMED else None

    def _frame(self) -> TrampolineFrame | None:
        return frame_in(self.target, self._called.calls, self._regs.ip - self._called.start)

    # -- the phases -----------------------------------------------------------------------

    def _armed(self) -> str:
        self.next = Phase.CALL
        call, point = self._called, self.point
        there = self.target.memory.read(point.address, len(call.original)).hex(" ")
        if point.state.held:
            return f"armed: {there} at {point.address:#x}: a breakpoint in front of the call"
        was = call.original.hex(" ")
        return f"armed: {there} at {point.address:#x} is a call, in place of {was}"

    def _call(self) -> str:
        call = self._called
        if self.point.replacement is not call:
            self.next = None
            return "the call was taken out: the guest goes on here"
        if self.point.state.held:
            place = self._sp - WORD
            self.target.step.store(place, call.window.to_bytes(WORD, "little"))
            self._cpu.write_register(self.target.arch.roles.sp, place)
            self._regs.ip = call.start
            for probe in self.point.enabled():
                probe.hits += probe.stops
            how = ", as the call would that the breakpoint stands for"
        elif self._step_to(call.start):
            return self._left()
        else:
            how = ""
        self._cpu.expect(call.window)
        self.next = Phase.SAVE
        return (
            f"control goes to the trampoline at {call.start:#x}{how}; "
            f"{call.window:#x} is kept {WORD} bytes below the stack pointer"
        )

    def _save(self) -> str:
        if self._step_to(self._ends[Phase.SAVE]):
            return self._left()
        self.next = Phase.SYSCALL
        calls = self._called.calls
        names = ", ".join(name for _, name in calls.pushes)
        return (
            f"{names} are kept behind it: {calls.overwritten} bytes below the program's "
            f"stack pointer are overwritten"
        )

    def _syscall(self) -> str:
        hits, point, call, regs = self._hits, self.point, self._called, self._regs
        frame = self._frame()
        if frame is None:
            raise EngineError(f"the stack of the call at {call.address:#x} is gone")
        undo(self.target, frame)
        hits.current.begin(point)
        try:
            moved = hits.run_pre(point)
        finally:
            hits.current.end()
        told = hits.told and f"; {hits.told}"
        if moved or regs.sp != frame.sp:
            regs.ip = regs.ip if moved else call.window
            self._cpu.expect(call.window)
            self.next = None
            return f"a handler has the guest go on at {regs.ip:#x}, past the trampoline{told}"
        self._go_back(frame)
        self.next = Phase.RESTORE
        return (
            f"the system call `uprobe`: handlers ran with the registers as they are at "
            f"{point.address:#x}{told}"
        )

    def _go_back(self, frame: TrampolineFrame) -> None:
        """Keep the handlers' registers on the stack; registers have the kernel's values."""
        cpu, target, calls = self._cpu, self.target, self._called.calls
        values = [cpu.read_register(name) for name, _ in frame.saved]
        data = struct.pack(f"<{len(values) + 1}Q", *values, frame.behind)
        target.step.store(frame.sp - len(data), data)
        cpu.write_register(target.arch.roles.sp, frame.sp - len(data))
        self._regs.ip = behind = self._called.start + calls.behind
        flags, place = calls.leaves
        cpu.write_register(calls.result, 0)
        cpu.write_register(flags, cpu.read_register(calls.flags))
        cpu.write_register(place, behind)
        cpu.expect(self._called.window)

    def _restore(self) -> str:
        if self._step_to(self._ends[Phase.RESTORE]):
            return self._left()
        self.next = Phase.RETURN
        names = ", ".join(name for _, name in self._called.calls.pops)
        return f"{names} have the program's own values again"

    def _return(self) -> str:
        if self._step_to(self._called.window):
            return self._left()
        self.next = None
        return f"the guest goes on at {self._regs.ip:#x}, behind the call"

    # -- stepping -------------------------------------------------------------------------

    def _step_to(self, end: int) -> bool:
        """Execute up to an address; True if something else has come of it."""
        while self._regs.ip != end:
            self.target.memory.sync()
            before = self._regs.ip
            stop = self.target.step.once(self._cpu.step)
            if stop is None or stop.kind in (StopKind.HALTED, StopKind.QUANTUM):
                if self._regs.ip == before and stop is None:
                    raise EngineError(f"the trampoline stands still at {before:#x}")
                continue
            self.stop, self.next = self._hits.handle(stop), None
            return True
        return False

    def _left(self) -> str:
        if self.stop is None:
            return "the engine has seen to a stop on the way"
        return f"it raised {stop_name(self.stop)}: pc is {self._regs.ip:#x}"

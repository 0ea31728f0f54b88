"""A jump probe's hit one visible phase at a time: the program itself is stepped in the detour.

Nothing is imitated: each phase executes the instructions of one part of the detour buffer, as a
debugger would that steps through it, and ends where the next part begins.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.cpu.base import Stop, StopKind
from engine.errors import EngineError
from engine.probes.detours import Detour
from engine.probes.detourwork import serving
from engine.probes.hit_machine import BufferPart, HitBuffer, Phase, stop_name
from engine.probes.hits import HitDispatcher
from engine.probes.kretprobe import Kretprobe, KretprobeInstance
from engine.probes.pending_calls import ReturnSite
from engine.probes.point_state import Stage

_TO_THE_START: Final = (Phase.ARMED, Phase.JUMP)
_PAST_IT: Final = (Phase.ARMED, Phase.TRAP, Phase.PRE)
"""The int3 bypass: while a breakpoint stands there, its trap leads to the displaced part."""


def parts(detour: Detour) -> tuple[BufferPart, ...]:
    """The parts of a detour buffer, in the order in which they stand; empty ones left out."""
    first = detour.displaced[0][0]
    ends = [start for start, _ in detour.displaced[1:]] + [detour.back]
    found = (
        BufferPart(Phase.SAVE, detour.start, detour.again),
        BufferPart(Phase.RECORD, detour.again, detour.finish),
        BufferPart(Phase.RESTORE, detour.finish, first),
        *(
            BufferPart(Phase.DISPLACED, start, end, original)
            for (start, original), end in zip(detour.displaced, ends, strict=True)
        ),
        BufferPart(Phase.BACK, detour.back, detour.end),
    )
    return tuple(part for part in found if part.start < part.end)


class JumpMachine:
    """Carries one hit of a jump out; satisfies `HitMachine`."""

    def __init__(self, hits: HitDispatcher) -> None:
        """Take up the hit where the guest stands.

        Raises:
            EngineError: the guest stands at no point with a detour.
        """
        target = hits.target
        pc = target.regs.ip
        point = hits.points.get(pc)
        detour = point.replacement if point is not None else None
        if point is None or not isinstance(detour, Detour):
            raise EngineError(f"no jump probe at {pc:#x}")
        self.point = point
        self.next: Phase | None = Phase.ARMED
        self.stop: Stop | None = None
        self.calls: Sequence[KretprobeInstance] = ()
        self._hits, self.target = hits, target
        self._arch, self._cpu = target.arch, target.cpu
        self._memory, self._regs = target.memory, target.regs
        self._detour = detour
        self._parts = parts(detour)
        self.buffer: HitBuffer | None = HitBuffer("detour", detour, self._parts)
        self._entry = _PAST_IT if point.state.stage is Stage.CHECK else _TO_THE_START
        served = serving(point)
        self._enters = any(isinstance(probe, Kretprobe) for probe in served)
        self._returns = any(isinstance(probe, ReturnSite) for probe in served)
        self._slow = {detour.start + part.slow for part in detour.recorder.parts if part.slow >= 0}
        self.phases: Mapping[Phase, Callable[[], str]] = {
            Phase.ARMED: self._armed,
            Phase.TRAP: self._trap,
            Phase.PRE: self._pre,
            Phase.JUMP: self._jump,
            Phase.SAVE: self._save,
            Phase.RECORD: self._record,
            Phase.RESTORE: self._restore,
            Phase.DISPLACED: self._displaced,
            Phase.BACK: self._back,
        }

    @property
    def slot(self) -> int | None:
        """None: a jump needs no slot."""
        return None

    @property
    def own(self) -> dict[str, int]:
        """No register holds anything of the machinery's between phases."""
        return {}

    @property
    def began(self) -> int | None:
        """None: the program's own instructions are stepped."""
        return None

    @property
    def ahead(self) -> tuple[Phase, ...]:
        """The phases from the next one on, if nothing goes wrong."""
        if self.next is None:
            return ()
        if self.next in self._entry:
            rest = self._parts
            if self._entry is _PAST_IT:
                rest = tuple(part for part in rest if part.start >= self._detour.bypass)
            entry = self._entry[self._entry.index(self.next) :]
            return (*entry, *(part.phase for part in rest))
        at = self._part(self._regs.ip)
        return tuple(part.phase for part in self._parts if at is None or part.start >= at.start)

    def places(self) -> list[tuple[int, int]]:
        """(address, size) of the window."""
        return [(self.point.address, len(self._detour.original))]

    def about(self, phase: Phase) -> int | None:
        """Address of the site, for the phases in front of the detour."""
        return self.point.plan.base if phase in (Phase.ARMED, Phase.TRAP) else None

    def _part(self, pc: int) -> BufferPart | None:
        """The part that a place is in; the traps of hits that the engine records are recording."""
        for part in self._parts:
            if part.phase is Phase.RECORD if pc in self._slow else part.start <= pc < part.end:
                return part
        return None

    # -- the phases -----------------------------------------------------------------------

    def _armed(self) -> str:
        self.next = self._entry[1]
        detour, point = self._detour, self.point
        there = self._memory.read(point.address, len(detour.original)).hex(" ")
        was = detour.original.hex(" ")
        if point.state.held:
            return f"armed: {there} at {point.address:#x}: a breakpoint in front of the jump"
        return f"armed: {there} at {point.address:#x} is a jump, in place of {was}"

    def _trap(self) -> str:
        self.next = Phase.PRE
        behind = len(self._arch.breakpoint) if self._arch.trap_advances_pc else 0
        self._regs.ip = self.point.address + behind
        return "the breakpoint traps: the jump is not written yet"

    def _pre(self) -> str:
        hits, point = self._hits, self.point
        self._regs.ip = point.address
        hits.current.begin(point)
        try:
            moved = hits.run_pre(point)
        finally:
            hits.current.end()
        if moved or not point.armed:
            self.next = None
            return f"a handler has the guest go on at {self._regs.ip:#x}"
        self._regs.ip = self._detour.bypass
        self._cpu.expect(self._detour.window)
        self._go_on()
        told = hits.told and f"; {hits.told}"
        return f"handlers ran, and control is diverted to the stub's displaced part{told}"

    def _jump(self) -> str:
        if self.point.replacement is not self._detour:
            self.next = None
            return "the jump was taken out: the guest goes on here"
        if self.point.state.held:
            self._regs.ip = self._detour.start
            for probe in self.point.enabled():
                probe.hits += probe.stops
            how = "as the jump would that the breakpoint stands for"
        else:
            self._memory.sync()
            stop = self._cpu.step()
            while stop is not None and stop.kind is StopKind.HALTED:
                stop = self._cpu.step()  # the halt came before it
            how = "without a trap"
        if self._regs.ip != self._detour.start:
            raise EngineError(f"the jump at {self.point.address:#x} led to {self._regs.ip:#x}")
        self._cpu.expect(self._detour.window)
        self._go_on()
        return f"control goes to the detour at {self._detour.start:#x}, {how}"

    def _save(self) -> str:
        seen = self._through()
        if self._detour.trap is not None:
            return "a trap in the detour: the engine serves the hit's probes"
        kept = ", ".join(self._detour.recorder.saved) or "no register"
        text = f"{kept} kept in the save area"
        if self._returns:
            return text if seen else f"{text}; the newest call is the one that has returned"
        if self._enters:
            return text
        text = f"{text}; the hit is counted"
        if self.next is not Phase.RECORD:
            return f"{text}; the filter rejects it"
        return text

    def _record(self) -> str:
        pc = self._regs.ip
        slow = self._through()
        if slow:
            what = "hit"
            if self._enters or self._returns:
                what = "return" if self._returns else "call"
            return f"the engine has recorded the {what}: {slow}"
        if self._returns:
            return "the row is written to the ring; the call's record goes"
        if self._enters:
            return "a record of the call is put on those that are pending; rows go to the ring"
        ring = "the ring" if self._regs.ip != pc else "nothing"
        return f"the row is written to {ring}"

    def _restore(self) -> str:
        self._through()
        left = ", ".join(self._arch.jumps.scratch if self._arch.jumps else ())
        text = "the registers have the program's own values again"
        return f"{text}, but for {left}, which any call may change" if left else text

    def _displaced(self) -> str:
        part = self._part(self._regs.ip)
        assert part is not None
        assert part.original is not None
        text = f"the instruction of {part.original:#x} is carried out at {part.start:#x}"
        self._through()
        if self.stop is not None:
            where = self._regs.ip
            return f"{text}; it raised {stop_name(self.stop)}: pc is {where:#x}, its own place"
        if self.next is None:
            return f"{text}; it leaves the detour to {self._regs.ip:#x}"
        return text

    def _back(self) -> str:
        self._through()
        return f"the guest goes on at {self._regs.ip:#x}, behind the window"

    # -- stepping -------------------------------------------------------------------------

    def _through(self) -> str:
        """Execute the part at hand to its end; what the engine had to do meanwhile, in words."""
        part = self._part(self._regs.ip)
        seen = ""
        while part is not None and self._part(self._regs.ip) is part:
            if self._regs.ip in self._slow:
                seen = "the detour cannot by itself"
            self._memory.sync()
            stop = self._hits.target.step.once(self._cpu.step)
            if stop is None or stop.kind in (StopKind.HALTED, StopKind.QUANTUM):
                continue
            left = self._hits.handle(stop)
            if left is not None:
                self.stop, self.next = left, None
                return seen
            seen = seen or stop_name(stop)
        self._go_on()
        return seen

    def _go_on(self) -> None:
        part = self._part(self._regs.ip)
        self.next = part.phase if part is not None else None

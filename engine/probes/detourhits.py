"""The guest in a detour: rows that do not fit, faults, a debugger's steps."""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from engine.arch.base import TrapKind
from engine.arch.recording import CURSOR, Recording
from engine.cpu.base import LEAVE, Stop, StopKind, TrapAction
from engine.cpu.ram import PAGE
from engine.probes.detourmap import DetourMap, LiveDetour
from engine.probes.detourmemory import DetourMemory
from engine.probes.detours import Detour
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.pending_calls import ReturnSite
from engine.probes.return_catcher import ReturnCatcher
from engine.probes.target import ProbeTarget

_STRING: Final = 4096 + 8


class DetourHits:
    """Sees to the guest in its detours.

    Attributes:
        comm: the running thread's name.
    """

    def __init__(
        self,
        target: ProbeTarget,
        returns: ReturnCatcher,
        memory: DetourMemory,
        detours: DetourMap,
    ) -> None:
        """No thread is in a detour.

        Args:
            target: the guest.
            returns: the catcher of returns.
            memory: what detours share.
            detours: those that there are.
        """
        self._target = target
        self._returns = returns
        self._memory = memory
        self._detours = detours
        self._rounds = 0  # times that the ring was full
        self.comm: Callable[[], bytes] = lambda: b""

    def open(self, live: LiveDetour) -> None:
        """A detour's code has been written; its traps are seen to from now on.

        The one at which all probes are served is planted with the point's breakpoint.
        """
        detour, plant = live.detour, self._target.memory.traps.plant
        for number, part in enumerate(detour.recorder.parts):
            if part.slow >= 0:
                place, probe = detour.start + part.slow, live.probe(number)
                action = (
                    self._entering(live, place, probe)
                    if isinstance(probe, Kretprobe)
                    else partial(self._slow, detour, place)
                )
                plant(place, action, detour.window)

    def _entering(self, live: LiveDetour, place: int, probe: Kretprobe) -> TrapAction:
        """The entry of a return probe that code leaves to the engine."""
        entries, detour = self._returns.in_guest, live.detour
        assert entries is not None, "no code deals with calls elsewhere"
        behind = detour.start + detour.recorder.parts[detour.part(place)].behind
        action = entries.single(live.point, probe, lambda: behind, detoured=True)

        def enter() -> int:
            if live.zombie:
                return LEAVE
            self._give_up(detour, place, probe)
            return action()

        return enter

    def late(self, address: int) -> bool:
        """The engine is to see to an entry at a detour's trap; False if there is no such one."""
        live = self._detours.at(address)
        if live is None:
            return False
        number = live.detour.part(address)
        slow = live.detour.recorder.parts[number].slow
        if live.detour.start + slow != address or not isinstance(live.probe(number), Kretprobe):
            return False
        self._target.cpu.write_register(self._target.arch.roles.pc, self._enter(live, address))
        return True

    def _enter(self, live: LiveDetour, pc: int) -> int:
        """See to the entry of a return probe; where the detour goes on."""
        number = live.detour.part(pc)
        self._give_up(live.detour, pc, live.probe(number))
        if not live.zombie:
            self._returns.enter(live.point)
        return live.detour.start + live.detour.recorder.parts[number].behind

    def reap(self) -> None:
        """Free the detours that nobody uses any more, once the guest is not in them."""
        shared, traps = self._memory.shared, self._target.memory.traps
        if not self._detours.zombies or shared is None:
            return
        pc = self._target.cpu.read_register(self._target.arch.roles.pc)

        def used(live: LiveDetour) -> bool:
            return bool(live.unchecked) or live.detour.start <= pc < live.detour.end

        for detour in self._detours.reap(used):
            for part in detour.recorder.parts:
                if part.slow >= 0:
                    traps.remove(detour.start + part.slow)
            if detour.trap is not None:
                traps.remove(detour.trap)
            shared.space.free(detour.start, detour.end - detour.start)

    def holds(self, address: int) -> bool:
        """True if an address lies where detours are."""
        return self._memory.holds(address)

    def trapped(self, address: int) -> LiveDetour | None:
        """The detour with a serving trap at an address; a zombie is left at once."""
        live = self._detours.at(address)
        if live is None or live.detour.trap != address:
            return None
        if live.zombie:
            cpu = self._target.cpu
            cpu.write_register(self._target.arch.roles.pc, live.detour.bypass)
            cpu.expect(live.detour.window)
        return live

    def displaces(self) -> bool:
        """True if the guest may come to the middle of a window, or stands in a detour's rest."""
        return self._detours.covers

    def show_thread(self) -> None:
        """Whoever runs now is told to code that records."""
        self._memory.show_thread(self._target.thread(), self.comm())

    def resume(self) -> None:
        """The guest is about to go on; in the middle of a window it goes on in the detour.

        A signal handler returns there, or a debugger has put it there.
        """
        self.show_thread()
        cpu, name = self._target.cpu, self._target.arch.roles.pc
        cpu.coarse_at = self._is_full
        if not self._detours.covers:
            return
        pc = cpu.read_register(name)
        live = self._detours.inner(pc)
        if live is not None:
            target = live.detour.moved_pc(pc)
            assert target is not None, "the window's instructions are in its detour"
            cpu.write_register(name, target)
            cpu.expect(live.detour.window)
        self.reap()

    def _is_full(self, page: int, pc: int) -> bool:
        """True for an access behind the ring's end by code that records."""
        shared, live = self._memory.shared, self._detours.at(pc)
        if shared is None or page != shared.guard or live is None:
            return False
        return live.detour.recording(pc)

    def stopped(self, stop: Stop, pc: int) -> Stop | None:
        """See to a stop inside a detour; what is left of it for the guest's kernel."""
        live, shared, sink = self._detours.at(pc), self._memory.shared, self._memory.sink
        if live is None or shared is None:
            return stop
        detour, cpu = live.detour, self._target.cpu
        name = self._target.arch.roles.pc
        if stop.kind is StopKind.FAULT and detour.recording(pc):
            if stop.address & -PAGE == shared.guard and sink is not None:
                self._own_registers(detour, pc)
                sink.drain()
                sink.wipe()
                self._rounds += 1
                if not self._rounds & self._rounds - 1:
                    # The emulator's TLB is full of the rows' pages; flushed, it grows.
                    cpu.flush_tlb()
                again = detour.recorder.parts[detour.part(pc)].again
                cpu.write_register(name, detour.start + again)
            else:
                cpu.write_register(name, self._slow(detour, pc))
            return None
        original = detour.original_pc(pc)
        if stop.trap is TrapKind.SINGLE_STEP and (pc <= detour.bypass or not detour.between(pc)):
            return None  # a program that steps itself sees its own instructions only
        cpu.write_register(name, original)
        if stop.kind is StopKind.TRAP and stop.address and stop.trap is not TrapKind.BREAKPOINT:
            return replace(stop, address=original)
        return stop

    def _own_registers(self, detour: Detour, pc: int) -> None:
        """The program's own values in the registers that a recorder has changed so far."""
        cpu, shared, sink = self._target.cpu, self._memory.shared, self._memory.sink
        assert shared is not None
        assert sink is not None
        for register, offset in detour.recorder.saved.items():
            cpu.write_register(register, shared.save[offset // 8])
        part = detour.recorder.parts[detour.part(pc)]
        if not 0 <= part.lends <= pc - detour.start:
            return
        row = sink.start + shared.save[CURSOR // 8]
        for register, offset in part.lent.items():
            word = sink.buffer[row + offset : row + offset + 8]
            cpu.write_register(register, int.from_bytes(word, "little"))

    def _slow(self, detour: Detour, pc: int) -> int:
        """Record a hit for the probe whose code is left; where the detour goes on."""
        live, number = self._detours.at(detour.start), detour.part(pc)
        assert live is not None
        probe = live.probe(number)
        if isinstance(probe, Kretprobe):
            return self._enter(live, pc)
        self._give_up(detour, pc, probe)
        if probe.record is not None:
            probe.record(self._target.thread())
        return detour.start + detour.recorder.parts[number].behind

    def _give_up(self, detour: Detour, pc: int, probe: Kprobe) -> None:
        """Registers and the ring are as if the row had not been begun."""
        sink, row = self._memory.sink, _row(probe)
        assert sink is not None
        self._own_registers(detour, pc)
        if row is not None:
            layout = row.layout
            words = sum(one.words for one in layout.fields) if layout.strings else 0
            sink.wipe(layout.words * 8 + _STRING * words)

    def name(self, address: int) -> str:
        """A place in a detour as a symbol."""
        live = self._detours.at(address)
        if live is None:
            return "detour[free]"
        return f"detour[{live.point.address:#x}]+{address - live.detour.start:#x}"


def _row(probe: Kprobe) -> Recording | None:
    """The row that code records for a probe."""
    if isinstance(probe, ReturnSite):
        probe = probe.last or probe
        call = probe.call if isinstance(probe, Kretprobe) else None
        return call.end.row if call is not None else None
    if isinstance(probe, Kretprobe):
        return probe.call.row if probe.call is not None else None
    return probe.recording

"""Trampolines that calls in place of no-operations lead to, and the system call that they make.

A page near the program has the code that Linux maps there ("[uprobes-trampoline]"): it keeps three
registers on the program's stack and calls `uprobe`, which runs the probe's handlers with the
registers as they are at the probe, and the code takes them off the stack again. As on Linux the
page stays once it is there.

In place of the system call a jump leads to code of the engine's own further on in the page. Where
code in the guest records what is wanted, that goes to it (`trampoline_table`). Else it takes the
registers off the stack and traps: the hit is served as that of the breakpoint that the call has
replaced. Whatever its handlers leave, the program goes on behind the call with it: that
needs no way back through the trampoline, as in Linux where a handler has moved the stack pointer.
"""

import struct
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from engine.arch.base import TrapKind
from engine.arch.nop_call import WORD, NopCalls
from engine.cpu.base import LEAVE, Stop, StopKind, TrapAction
from engine.cpu.ram import PAGE
from engine.errors import GuestFaultError
from engine.probes.detourroom import RowMemory
from engine.probes.engine_window import EngineWindow
from engine.probes.frame_reader import FrameReader
from engine.probes.point import ProbePoint
from engine.probes.target import ProbeTarget
from engine.probes.trampoline_table import TrampolineTable


class Behind:
    """The program's own address behind the call that is served.

    Attributes:
        address: where the program goes on behind the call.
    """

    __slots__ = ("address",)

    def __init__(self) -> None:
        """None is."""
        self.address = 0

    def __index__(self) -> int:
        return self.address


class TrampolineFrame(Struct, frozen=True):
    """A call in a trampoline.

    Attributes:
        probe: address of the call.
        behind: the address that it returns to.
        sp: the program's stack pointer.
        saved: registers on the stack and the program's values in them.
    """

    probe: int
    behind: int
    sp: int
    saved: tuple[tuple[str, int], ...]


def frame_in(target: ProbeTarget, calls: NopCalls, offset: int) -> TrampolineFrame | None:
    """The call that a guest is in which stands at an offset in a trampoline.

    None where its stack cannot be read.
    """
    pushed, sp = calls.pushed(offset), target.regs.sp
    if pushed < 0:  # what it has gone over stands there yet
        pushed, sp = 0, sp - WORD
    size = (pushed + 1) * WORD
    try:
        *saved, returns = struct.unpack(f"<{pushed + 1}Q", target.memory.read(sp, size))
    except GuestFaultError:
        return None
    names = reversed([name for _, name in calls.pushes[:pushed]])
    pairs = tuple(zip(names, saved, strict=True))
    return TrampolineFrame(returns - calls.size, returns, sp + size, pairs)


def undo(target: ProbeTarget, frame: TrampolineFrame) -> None:
    """The guest is at the probe again, as if it had not called."""
    cpu, roles = target.cpu, target.arch.roles
    for name, value in frame.saved:
        cpu.write_register(name, value)
    cpu.write_register(roles.sp, frame.sp)
    cpu.write_register(roles.pc, frame.probe)


class UprobeTrampolines:
    """The trampolines of one guest; a `engine.probes.technique.RecordingCode`.

    Attributes:
        records: none of them writes rows of a trace.
        pages: where they begin.
        tables: where the hits of their calls go, by that.
    """

    records = False

    def __init__(
        self,
        target: ProbeTarget,
        calls: NopCalls,
        windows: Sequence[tuple[int, int]],
        points: Mapping[int, ProbePoint],
    ) -> None:
        """There is none.

        Args:
            target: the guest.
            calls: what the architecture gives.
            windows: (start, size) of engine windows in whose last pages they may stand.
            points: those whose calls lead to one, by address.
        """
        self._target, self._calls, self._points = target, calls, points
        self._windows = [
            EngineWindow(target.memory, at + size - PAGE, PAGE) for at, size in windows
        ]
        self.pages: tuple[int, ...] = ()
        self.tables: dict[int, TrampolineTable] = {}
        self._broken: set[int] = set()
        self._frames = FrameReader(target)

    def near(self, address: int) -> bool:
        """True if a trampoline stands, or could, where a call at an address reaches it."""
        return self._window(address) is not None

    def at(self, address: int) -> int | None:
        """The trampoline for a call at an address, made if there is none; None without room."""
        window = self._window(address)
        if window is None or window.start in self.pages:
            return None if window is None else window.start
        start = window.page()
        if start is None:
            self._broken.add(window.start)
            return self.at(address)
        calls, target = self._calls, self._target
        target.memory.patch(start, calls.code)
        self.pages = (*self.pages, start)
        target.memory.patch(start + calls.aside, calls.detour)
        self.tables[start] = TrampolineTable(target.memory, calls, start)
        original = calls.code[calls.syscall : calls.behind]
        target.overlay.plant({start + calls.syscall: (calls.jump, original)})
        behind = Behind()
        target.memory.traps.plant(start + calls.trap, self._action(behind), behind)
        return start

    def _window(self, address: int) -> EngineWindow | None:
        for window in self._windows:
            if window.start not in self._broken and self._calls.call(address, window.start):
                return window
        return None

    # -- the system call ------------------------------------------------------------------

    def _action(self, behind: Behind) -> TrapAction:
        """Serve a hit inside the emulator; what the engine has to serve is left at the probe."""
        target, points, size = self._target, self._points, self._calls.size
        write, hit, frame = target.cpu.write_register, target.memory.traps.hit, self._frames.frame
        sp_name, pc = target.arch.roles.sp, target.arch.roles.pc
        back = len(target.arch.breakpoint) if target.arch.trap_advances_pc else 0

        def action() -> int:
            try:
                sp, returns = frame()
            except GuestFaultError:
                return LEAVE
            behind.address = returns
            probe = returns - size
            write(sp_name, sp + WORD)
            if probe not in points:
                return returns  # the system call does nothing for anybody else
            write(pc, probe + back)
            return hit(probe)

        return action

    def trapped(self, address: int) -> ProbePoint | Stop | bool:
        """See to the breakpoint in a trampoline that has not been seen to inside the emulator."""
        start = self.start_of(address)
        if start is None or address != start + self._calls.trap:
            return False
        frame = self.frame(address)
        if frame is None:
            return Stop(StopKind.TRAP, TrapKind.ILLEGAL, address=address)
        undo(self._target, frame)
        point = self._points.get(frame.probe)
        if point is None:
            self._target.regs.ip = frame.behind
            self._target.cpu.expect(frame.behind)
            return True
        return point

    # -- the guest in one -----------------------------------------------------------------

    def frame(self, pc: int) -> TrampolineFrame | None:
        """The call that the guest is in, at an address in a trampoline; None where none is."""
        start = self.start_of(pc)
        return None if start is None else frame_in(self._target, self._calls, pc - start)

    def start_of(self, address: int) -> int | None:
        """The beginning of the trampoline that an address lies in."""
        found = address & -PAGE
        return found if found in self.pages else None

    def holds(self, address: int) -> bool:
        """True if an address lies in one."""
        return address & -PAGE in self.pages

    def stopped(self, stop: Stop, pc: int) -> Stop | None:
        """The stack has no room for a register: the program is stopped at its probe."""
        frame = self.frame(pc)
        if stop.trap is TrapKind.SINGLE_STEP:
            return None  # a program that steps itself sees its own instructions only
        if frame is not None and frame.probe in self._points:
            undo(self._target, frame)
        elif frame is None and stop.kind is StopKind.FAULT:
            return Stop(StopKind.TRAP, TrapKind.ILLEGAL, address=pc)
        return stop

    def displaces(self) -> bool:
        """Say no: an instruction of one piece stands there, or none."""
        return False

    def resume(self) -> None:
        """Nothing."""

    def enter(self) -> None:
        """Nothing."""

    def show_thread(self) -> None:
        """Nothing."""

    def original_pc(self, address: int) -> int | None:
        """The program's own address for the place that the guest is at; None elsewhere."""
        start, frame = self.start_of(address), self.frame(address)
        if start is None or frame is None:
            return None
        served = self._calls.behind <= address - start < self._calls.aside
        return frame.behind if served else frame.probe

    def name(self, address: int) -> str:
        """A place in one as a symbol."""
        return f"uprobe_trampoline+{address % PAGE:#x}"

    def attach(self, sink: RowMemory, comm: Callable[[], bytes]) -> None:
        """Nothing."""

    def collect(self) -> None:
        """Nothing."""

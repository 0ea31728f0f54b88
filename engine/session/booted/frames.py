"""Backtraces of a booted kernel that stands: the frames of its stack by name and line."""

from collections.abc import Mapping

from engine.escaping import escaped
from engine.session.booted.stacks import BootStacks
from engine.session.inspect.backtrace import Backtrace
from engine.session.kernel.opened import OpenedKernel
from engine.session.machine.debugging import DebuggedMachine
from engine.session.protocol.frames import GuestFrame
from engine.unwind.unwinder import LIMIT, Frame


class BootFrames:
    """Takes the backtraces of one machine; the frames are the kernel's alone."""

    def __init__(self, machine: DebuggedMachine, stacks: BootStacks, opened: OpenedKernel) -> None:
        """Take a machine.

        Args:
            machine: which stands whenever it is asked for.
            stacks: walk its stack.
            opened: the kernel in it.
        """
        self._machine, self._stacks, self._opened = machine, stacks, opened

    def take(self, limit: int = LIMIT, registers: Mapping[str, int] | None = None) -> Backtrace:
        """The backtrace of what runs now.

        Args:
            limit: of frames.
            registers: of a task that does not run; None for what runs.
        """
        machine = self._machine
        machine.addresses.forget()
        if machine.modules is not None:
            machine.modules.look()
        walk = self._stacks.walk(limit, registers)
        frames = tuple(self._frame(number, frame) for number, frame in enumerate(walk.frames))
        return Backtrace(frames, walk.end.reason, walk.end.text)

    def _frame(self, number: int, frame: Frame) -> GuestFrame:
        opened, modules, place = self._opened, self._machine.modules, frame.place
        bounds = opened.names.bounds(place)
        module = ""
        found = modules.at(place) if modules is not None else None
        if bounds is None and found is not None:
            module, bounds = f"[{escaped(found[0].name)}]", (found[1].name, found[1].start, 0)
        name, start, _ = bounds or ("", frame.pc, 0)
        file, line = "", 0
        if bounds is not None and not module:
            file, line = opened.lines.line_at(frame.lookup) or (file, line)
        return GuestFrame(
            frame.pc,
            name,
            frame.pc - start,
            module,
            file,
            line,
            number,
            frame.cfa,
            "" if frame.source == "orc" else frame.source,
            frame.trampoline,
            registers=frame.registers,
        )

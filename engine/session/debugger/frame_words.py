"""`info frame`: where a frame lies, who has called it, and where it has saved registers."""

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger
from engine.session.inspect.saved_registers import saved_registers

_LANGUAGES = {
    **dict.fromkeys((0x01, 0x02, 0x0C, 0x1D, 0x2C), "c"),
    **dict.fromkeys((0x04, 0x1A, 0x21, 0x2B), "c++"),
    0x1C: "rust",
    0x16: "go",
    0x13: "d",
    0x8001: "asm",
}
"""DW_LANG_* as gdb names them."""


class FrameWords:
    """Describes frames."""

    def __init__(self, debugger: Debugger) -> None:
        """Describe those of a debugger's guest."""
        self._debugger = debugger

    def info_frame(self, rest: str) -> None:
        """The frame's place in memory, who has called it, and where registers are saved."""
        debugger, frames = self._debugger, self._debugger.frames
        if rest and not rest.isdigit():
            debugger.value(rest)  # complains of names that mean nothing
        if not debugger.started or not frames.all:
            raise CommandError("No stack.")
        number, frame = frames.selected, frames.frame
        session, put = debugger.control.session, debugger.put
        roles = session.arch.roles
        scope, outer = frames.scope(), frames.caller(number)
        callers = frames.all[number + 1 :]
        put(f"Stack level {number}, frame at {frame.cfa or 0:#x}:")
        name = f" in {frame.function}" if frame.function else ""
        file = debugger.files.written(frame.file)
        where = f" ({file}:{frame.line})" if file else ""
        after = callers[0] if callers else outer
        saved = f"; saved {roles.pc} = {after.pc:#x}" if after is not None else ""
        put(f" {roles.pc} = {frame.pc:#x}{name}{where}{saved}")
        if frame.inlined and callers:
            put(f" inlined into frame {number + 1}")
        around = [f"called by frame at {callers[0].cfa or 0:#x}"] if callers else []
        around += [f"caller of frame at {frames.all[number - 1].cfa or 0:#x}"] if number else []
        if len(around) == 2:
            put(f" {around[0]}, {around[1]}")
        elif around:
            put(f" {around[0]}")
        if scope.scope is not None:
            language = _LANGUAGES.get(scope.scope.language, "")
            if language:
                put(f" source language {language}.")
        base = self._base()
        at = "unknown address." if base is None else f"{base:#x},"
        put(f" Arglist at {at} args: {frames.arguments(frames.scope(number))}")
        put(f" Locals at {at} Previous frame's sp is {frame.cfa or 0:#x}")
        rows = saved_registers(session, frame, exact=frames.exact(number))
        if rows:
            put(" Saved registers:")
            put("  " + ", ".join(f"{name} at {place:#x}" for name, place in rows))

    def _base(self) -> int | None:
        """Gdb's base of locals: the frame pointer of a function that sets it, or beside sp."""
        frame = self._debugger.frames.frame
        arch = self._debugger.control.session.arch
        if frame.cfa is None:
            return None
        word = arch.bits // 8
        below = frame.cfa - 2 * word
        registers = frame.registers
        if registers.get(arch.roles.fp) == below or arch.roles.link:
            return below
        return registers.get(arch.roles.sp, frame.cfa - word) - word

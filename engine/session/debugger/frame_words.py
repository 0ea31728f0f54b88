"""`info frame`: where a frame lies, who has called it, and where it has saved registers."""

from engine.errors import CommandError
from engine.language.languages import LANGUAGE_NAMES
from engine.message_text import bare_name
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.frames import shown_function
from engine.session.inspect.saved_registers import saved_registers
from engine.session.inspect.tail_calls import TAIL
from engine.session.protocol.frames import CALLED, GuestFrame


class FrameWords:
    """Describes frames."""

    def __init__(self, debugger: Debugger) -> None:
        """Describe those of a debugger's guest."""
        self._debugger = debugger

    def number(self, rest: str) -> int:
        """The number of the frame that words name: N, level N, function NAME, address A.

        Raises:
            CommandError: there is none.
        """
        debugger = self._debugger
        word, _, behind = rest.partition(" ")
        behind = behind.strip()
        names = ("level", "function", "address") if len(word) > 2 and behind else ()
        kind = next((one for one in names if one.startswith(word)), "")
        if not debugger.started or not debugger.frames.all:
            raise CommandError("No registers.")
        if kind == "function":
            return self._of_function(behind)
        if kind == "address":
            return self._at(behind)
        return debugger.value(behind if kind else rest).number

    def _of_function(self, name: str) -> int:
        debugger = self._debugger
        for number, frame in enumerate(debugger.frames.all):
            if name in (frame.function, bare_name(frame.function)):
                return number
        debugger.places.entry(name)  # an error where there is no such function
        raise CommandError(f'No frame for function "{name}".')

    def _at(self, text: str) -> int:
        debugger = self._debugger
        address = debugger.value(text).as_address
        for number, frame in enumerate(debugger.frames.all):
            if frame.cfa == address:
                return number
        raise CommandError(f"No frame at address {text}.")

    def info_frame(self, rest: str) -> None:
        """Tell where a frame lies: info frame [N|level N|function NAME|address A]."""
        debugger, frames = self._debugger, self._debugger.frames
        if not debugger.started or not frames.all:
            if rest:
                debugger.value(rest)  # complains of names that mean nothing
            raise CommandError("No stack.")
        if not rest:
            self._describe(f"Stack level {frames.selected}, frame")
            return
        before = frames.selected
        frames.select(self.number(rest))
        try:
            self._describe("Stack frame")
        finally:
            frames.selected = before

    def _describe(self, title: str) -> None:
        """Tell of the frame that is looked at: who has called it, and where it saves registers."""
        debugger, frames = self._debugger, self._debugger.frames
        number, frame = frames.selected, frames.frame
        session, put = debugger.control.session, debugger.put
        roles = session.arch.roles
        scope = frames.scope()
        callers = frames.all[number + 1 :]
        put(f"{title} at {frame.cfa or 0:#x}:")
        name = f" in {shown_function(frame.function)}" if frame.function else ""
        file = debugger.files.written(frame.file)
        where = f" ({file}:{frame.line})" if file else ""
        after = self._after(number)
        saved = f"; saved {roles.pc} = {after.pc:#x}" if after is not None else ""
        put(f" {roles.pc} = {frame.pc:#x}{name}{where}{saved}")
        if frame.inlined and callers:
            put(f" inlined into frame {number + 1}")
        around = [f"called by frame at {callers[0].cfa or 0:#x}"] if callers else []
        around = ["tail call frame"] if frame.source == TAIL else around
        around += [f"caller of frame at {frames.all[number - 1].cfa or 0:#x}"] if number else []
        if len(around) == 2:
            put(f" {around[0]}, {around[1]}")
        elif around:
            put(f" {around[0]}")
        if frame.source == CALLED:
            put(" Arglist at unknown address.")
            sp = (after.registers.get(roles.sp, 0) if after is not None else 0) or 0
            before = sp + session.arch.bits // 8
            put(f" Locals at unknown address, Previous frame's sp is {before:#x}")
            return
        if scope.scope is not None:
            language = LANGUAGE_NAMES.get(scope.scope.language, "")
            if language:
                put(f" source language {language}.")
        if frame.source == TAIL:
            put(" Arglist at unknown address.")
            put(f" Locals at unknown address, Previous frame's sp is {frame.cfa or 0:#x}")
            return
        base = self._base()
        at = "unknown address." if base is None else f"{base:#x},"
        put(f" Arglist at {at} args: {frames.arguments(frames.scope(number))}")
        rows = saved_registers(session, frame, exact=frames.exact(number))
        before = frame.cfa or 0
        if callers and callers[0].source == TAIL:
            # The return address is that of a jump: it is in no memory (gdb: frame-tailcall.c).
            rows = [row for row in rows if row[0] != roles.pc]
            before -= session.arch.bits // 8
        put(f" Locals at {at} Previous frame's sp is {before:#x}")
        if rows:
            put(" Saved registers:")
            put("  " + ", ".join(f"{name} at {place:#x}" for name, place in rows))

    def _after(self, number: int) -> GuestFrame | None:
        """The frame that a frame goes on to; of one that has jumped away its caller's caller."""
        frames = self._debugger.frames
        is_tail = frames.all[number].source == TAIL
        while number < len(frames.all) and frames.all[number].source == TAIL:
            number += 1
        if number + 1 < len(frames.all):
            return frames.all[number + 1]
        return frames.caller(number) if not is_tail or number < len(frames.all) else None

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

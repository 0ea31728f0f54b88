"""The word for instructions: disassemble (gdb/cli/cli-cmds.c, gdb/disasm.c)."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.places import CodePlace
from engine.session.debugger.word_arguments import split_arguments, split_format

_MOST: Final = 1 << 20
"""Bytes that are disassembled at once."""

_RAW: Final = 19
"""Columns of an instruction's bytes: seven of them, as objdump has them."""


class _DumpedInsn(Struct, frozen=True):
    """An instruction with its place."""

    place: CodePlace
    raw: bytes
    text: str


class Assembly:
    """Lists the guest's instructions."""

    def __init__(self, debugger: Debugger) -> None:
        """List those of a debugger's guest."""
        self._debugger = debugger

    def disassemble(self, rest: str) -> None:
        """Instructions of a function or a range: disassemble[/rsm] [ADDRESS[,END|,+LENGTH]]."""
        form, text = split_format(rest)
        if set(form) - set("rsmb"):
            raise CommandError("Invalid disassembly modifier.")
        if "m" in form and "s" in form:
            raise CommandError("Cannot specify both /m and /s.")
        start, end, name = self._range(text)
        if end - start > _MOST:
            raise CommandError(f"These are {end - start} bytes; at most {_MOST} are disassembled.")
        put = self._debugger.put
        if name:
            put(f"Dump of assembler code for function {name}:")
        else:
            put(f"Dump of assembler code from {start:#x} to {end:#x}:")
        lines = list(self._instructions(start, end))
        wide = _RAW if set(form) & set("rb") else 0
        if "s" in form:
            self._in_order(lines, wide, named=bool(name))
        elif "m" in form:
            self._by_line(lines, wide, named=bool(name))
        else:
            for line in lines:
                self._put(line, wide, named=bool(name))
        put("End of assembler dump.")

    def next_line(self, number: int) -> None:
        """Show the instructions of a frame's line if `disassemble-next-line` says so."""
        debugger = self._debugger
        wanted, frame = debugger.settings["disassemble-next-line"], debugger.frames.all[number]
        if wanted == "off" or (wanted == "auto" and frame.line):
            return
        start, end = frame.pc, frame.pc + 1
        if frame.line:
            start, end = debugger.places.span(frame.pc if not number else frame.pc - 1)
        for line in self._instructions(start, min(end, start + _MOST)):
            self._put(line, _RAW, named=False)

    def _range(self, text: str) -> tuple[int, int, str]:
        """First address, end, and the function's name where it is a whole one."""
        debugger = self._debugger
        parts = split_arguments(text) or [""]
        if len(parts) == 1:
            at = self._address(parts[0]) if parts[0] else self._here()
            module = debugger.frames.seen.modules.at(at)
            symbol = module.symbol_at(at) if module is not None else None
            if module is None or symbol is None:
                raise CommandError("No function contains specified address.")
            start = symbol.address + module.bias
            size = symbol.size or self._to_next(start)
            return start, start + size, debugger.places.at(start).function
        start = self._address(parts[0])
        behind = parts[1]
        if behind.startswith("+"):
            return start, start + debugger.value(behind[1:]).number, ""
        return start, self._address(behind), ""

    def _to_next(self, start: int) -> int:
        """Bytes up to the next function, for one whose size is not known."""
        module = self._debugger.frames.seen.modules.at(start)
        behind = [
            symbol.address + module.bias
            for symbol in (module.symbols.functions() if module is not None else ())
            if module is not None and symbol.address + module.bias > start
        ]
        return min(behind, default=start + 64) - start

    def _here(self) -> int:
        frame = self._debugger.frame
        if frame is None:
            raise CommandError("No frame selected.")
        return frame.pc

    def _address(self, text: str) -> int:
        return self._debugger.value(text).as_address

    def _instructions(self, start: int, end: int) -> Iterator[_DumpedInsn]:
        at = start
        while at < end:
            raw, text = self._debugger.instruction(at)
            yield _DumpedInsn(self._debugger.places.at(at), raw, text)
            at += len(raw)

    def _put(self, line: _DumpedInsn, wide: int, *, named: bool) -> None:
        debugger, place = self._debugger, line.place
        frame = debugger.frame
        mark = "=> " if frame is not None and frame.pc == place.address else "   "
        digits = debugger.control.session.arch.bits // 4
        name = place.symbol if place.symbol != place.function else f"{place.function}+0"
        if named:
            name = name[len(place.function) :]
        label = f" <{name}>" if place.function else ""
        raw = ""
        if wide:
            raw = f"{line.raw.hex(' '):<{wide}}\t"
        debugger.put(f"{mark}0x{place.address:0{digits}x}{label}:\t{raw}{line.text}")

    def _in_order(self, lines: list[_DumpedInsn], wide: int, *, named: bool) -> None:
        """/s: source lines in front of their instructions, in the order of addresses."""
        debugger = self._debugger
        sources = debugger.frames.sources
        file, last = "", 0
        seen: set[int] = set()
        for line in lines:
            place = line.place
            if place.file != file:
                if file:
                    debugger.put("")
                file, last, seen = place.file, 0, set()
                if file:
                    debugger.put(f"{place.written}:")
            elif place.line != last:
                debugger.put("")
            if place.line and place.line != last:
                first = place.line
                while last and first - 1 > last and first - 1 not in seen:
                    first -= 1  # lines without code are shown with the one behind them
                for number in range(first, place.line + 1):
                    debugger.put(sources.line(file, number))
                    seen.add(number)
                last = place.line
            self._put(line, wide, named=named)

    def _by_line(self, lines: list[_DumpedInsn], wide: int, *, named: bool) -> None:
        """/m: by source lines, in their order."""
        debugger = self._debugger
        by_line: dict[tuple[str, int], list[_DumpedInsn]] = {}
        for line in lines:
            by_line.setdefault((line.place.file, line.place.line), []).append(line)
        for (file, number), group in sorted(by_line.items()):
            if file:
                debugger.put(debugger.frames.sources.line(file, number))
            for line in group:
                self._put(line, wide, named=named)
            debugger.put("")

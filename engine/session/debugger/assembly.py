"""The word for instructions: disassemble (gdb/cli/cli-cmds.c, gdb/disasm.c)."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, GuestFaultError
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.places import CodePlace
from engine.session.debugger.word_arguments import split_arguments, split_format
from engine.session.inspect.stored_program import StoredProgram

_MOST: Final = 1 << 20
"""Bytes that are disassembled at once."""

_RAW: Final = 19
"""Columns of an instruction's bytes: seven of them, as objdump has them."""

_DISTANCE: Final = re.compile(r"[+-]\d+$")


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
        pieces, name = self._range(text)
        size = sum(len(piece) for piece in pieces)
        if size > _MOST:
            raise CommandError(f"These are {size} bytes; at most {_MOST} are disassembled.")
        put, begin = self._debugger.put, pieces[0].start
        if name:
            put(f"Dump of assembler code for function {name}:")
        else:
            put(f"Dump of assembler code from {begin:#x} to {pieces[0].stop:#x}:")
        wide = _RAW if set(form) & set("rb") else 0
        base = begin if name else None
        for piece in pieces:
            if len(pieces) > 1:  # a part that is seldom needed may stand elsewhere
                put(f"Address range {piece.start:#x} to {piece.stop:#x}:")
            lines = list(self._instructions(piece.start, piece.stop))
            if "s" in form:
                self._in_order(lines, wide, base)
            elif "m" in form:
                self._by_line(lines, wide, base)
            else:
                for line in lines:
                    self._put(line, wide, base)
        put("End of assembler dump.")

    def instruction(self, at: int) -> tuple[bytes, str]:
        """The bytes of an instruction, and its text with the symbol of where it leads.

        Raises:
            GuestFaultError: there is no memory.
        """
        session = self._debugger.control.session
        seen = self._debugger.frames.seen
        if isinstance(seen, StoredProgram):
            code = seen.code_at(at, session.arch.insn_max)
        else:
            code = session.code_at(at, seen)
        if not code:
            raise GuestFaultError(at, "read")
        insns = session.disassembler.decode(at, code)
        if not insns:
            return code[: session.arch.code_unit], "(bad)"
        text, refers = insns[0].text, None
        if session.arch.spelling is not None:
            flavor = str(self._debugger.settings["disassembly-flavor"])
            spelled = session.arch.spelling()(insns[0], flavor)
            text, refers = spelled.text, spelled.refers
        target = session.arch.probes.target(code, at)
        if target is not None:
            text += self._label(target)
        if refers is not None:
            text += f"        # {refers:#x}{self._label(refers)}"
        return code[: insns[0].size], text

    def _label(self, address: int) -> str:
        """Return the name of an address as it stands behind it: " <main+4>"; "" for none."""
        name = self._debugger.code_label(address)
        return f" <{name}>" if name else ""

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
            self._put(line, _RAW)

    def _range(self, text: str) -> tuple[list[range], str]:
        """The addresses, and the function's name where it is a whole one."""
        debugger = self._debugger
        parts = split_arguments(text) or [""]
        if len(parts) == 1:
            at = self._address(parts[0]) if parts[0] else self._here()
            module = debugger.frames.seen.modules.at(at)
            symbol = module.symbol_at(at) if module is not None else None
            if module is None or symbol is None:
                raise CommandError("No function contains specified address.")
            pieces, name = debugger.places.code_of(at)
            if pieces:
                label = self._debugger.code_label(pieces[0].start)
                return pieces, label if label and not _DISTANCE.search(label) else name
            start = symbol.address + module.bias
            size = symbol.size or self._to_next(start)
            return [range(start, start + size)], debugger.places.at(start).function
        start = self._address(parts[0])
        behind = parts[1]
        if behind.startswith("+"):
            return [range(start, start + debugger.value(behind[1:]).number)], ""
        return [range(start, self._address(behind))], ""

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
            raw, text = self.instruction(at)
            yield _DumpedInsn(self._debugger.places.at(at), raw, text)
            at += len(raw)

    def _put(self, line: _DumpedInsn, wide: int, base: int | None = None) -> None:
        """Show an instruction, with its distance from the function's begin in place of a name."""
        debugger, place = self._debugger, line.place
        frame = debugger.frame
        mark = "=> " if frame is not None and frame.pc == place.address else "   "
        digits = debugger.control.session.arch.bits // 4
        name = self._debugger.code_label(place.address)
        name = name if _DISTANCE.search(name) else f"{name}+0"
        if base is not None:
            name = f"{place.address - base:+}"
        label = f" <{name}>" if place.function else ""
        raw = ""
        if wide:
            raw = f"{line.raw.hex(' '):<{wide}}\t"
        debugger.put(f"{mark}0x{place.address:0{digits}x}{label}:\t{raw}{line.text}")

    def _in_order(self, lines: list[_DumpedInsn], wide: int, base: int | None) -> None:
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
            self._put(line, wide, base)

    def _by_line(self, lines: list[_DumpedInsn], wide: int, base: int | None) -> None:
        """/m: by source lines, in their order."""
        debugger = self._debugger
        by_line: dict[tuple[str, int], list[_DumpedInsn]] = {}
        for line in lines:
            by_line.setdefault((line.place.file, line.place.line), []).append(line)
        for (file, number), group in sorted(by_line.items()):
            if file:
                debugger.put(debugger.frames.sources.line(file, number))
            for line in group:
                self._put(line, wide, base)
            debugger.put("")

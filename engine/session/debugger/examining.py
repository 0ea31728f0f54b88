"""Memory as `x` shows it, and the letters of formats that it shares with `print`."""

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError
from engine.language import value_types as ct
from engine.language.format_letters import FORMATS, lines_of
from engine.language.register_types import number_of
from engine.language.values import TypedValue, made
from engine.session.debugger.assembly import Assembly
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.word_arguments import split_format

SIZES: Final = {"b": 1, "h": 2, "w": 4, "g": 8}
"""Bytes by the letters of sizes."""


class FormatLetters(Struct):
    """The letters of the formats that were used last (gdb/printcmd.c, last_format).

    Attributes:
        letter: of `x` without one.
        last: of `x` or `print`, "" before the first.
    """

    letter: str = "x"
    last: str = ""

    def of_value(self, form: str) -> str:
        """The letter of a value's format, which `x` and `print /r` have from then on.

        Raises:
            CommandError: it has none for a value.
        """
        letter = print_letter(form)
        if letter == "r" and self.last not in ("", "s"):  # those of raw values, too
            if self.last == "i":
                raise CommandError('Format letter "i" is meaningless in "print" command.')
            return self.last
        if letter and letter != "r":
            self.letter = self.last = letter
        return letter


def print_letter(form: str) -> str:
    """The one format letter of `print`."""
    if not form:
        return ""
    letters = form.lstrip("0123456789")
    if form != letters:
        raise CommandError('Item count other than 1 is meaningless in "print" command.')
    for each in letters:
        if each in SIZES and each != "b":
            raise CommandError('Size letters are meaningless in "print" command.')
        if each == "i":
            raise CommandError('Format letter "i" is meaningless in "print" command.')
        if each not in FORMATS:
            raise CommandError(f'Undefined output format "{each}".')
    return letters[-1]


class MemoryExamining:
    """Carries `x` out, which goes on where it has ended."""

    def __init__(self, debugger: Debugger, assembly: Assembly, letters: FormatLetters) -> None:
        """Examine a debugger's guest.

        Args:
            debugger: the debugger.
            assembly: writes instructions.
            letters: of the formats that were used last.
        """
        self._debugger, self._assembly, self._letters = debugger, assembly, letters
        self._next: int | None = None
        self._unit, self._count_before = 4, 0

    def begin_at(self, address: int) -> None:
        """Have the next `x` begin at an address that has been told."""
        self._next = address

    def examine(self, rest: str) -> None:
        """Examine memory: x/NFU ADDRESS."""
        last = self.show(rest)
        if last is not None:
            self._keep_last(*last)

    def show(self, rest: str) -> tuple[int, str, int] | None:
        """Examine memory; the last address, its letter and the size there, None for nothing."""
        form, text = split_format(rest)
        again = not form and not text
        count, letter, unit = self._units(form)
        debugger = self._debugger
        if again and self._count_before:
            count = self._count_before
        self._count_before = abs(count)
        if text:
            self._next = debugger.value(text).as_address
        elif self._next is None:
            raise CommandError("Argument required (starting display address).")
        begin = begun = self._next
        if count < 0:
            if letter in "is":
                raise CommandError(f"x/{letter} goes forward only here; give an address.")
            begin = self._next = self._next + count * unit
            count = -count
        printer = debugger.frames.printer(debugger.scope)
        printer = replace(printer, options=replace(printer.options, address=True))
        if letter == "i":
            return self._instructions(count)
        lines = lines_of(printer, self._next, count, letter, unit)
        try:
            for line, end in lines:
                debugger.put(line)
                begun, self._next = self._next, end
        except GuestFaultError:
            debugger.write(f"{printer.linked_address(self._next)}:\t")  # as gdb, which has begun
            raise
        if form.startswith("-"):
            self._next = begin
        return begun if letter == "s" else self._next - unit, letter, unit

    def _keep_last(self, address: int, letter: str, unit: int) -> None:
        """Have `$_` and `$__` be the last address and what is there."""
        debugger = self._debugger
        if letter == "f" and unit in (4, 8):
            kind = ct.FLOAT if unit == 4 else ct.DOUBLE
        else:
            kind = number_of(8 if letter in "is" else 8 * unit)
        pointer = ct.pointer_to(kind, debugger.control.session.arch.bits // 8)
        debugger.kept.set("_", made(pointer, address, debugger.scope.order))
        if letter not in "is":
            raw = debugger.scope.read(address, unit)
            there = TypedValue(kind, lambda: raw, order=debugger.scope.order)
            debugger.kept.set("__", there)
        else:
            debugger.kept.forget("__")

    def _units(self, form: str) -> tuple[int, str, int]:
        match = re.fullmatch(r"(-?\d*)([a-z]*)", form)
        if match is None:
            raise CommandError(f'Undefined output command "{form}".')
        letter, unit = self._letters.letter, self._unit
        for each in match[2]:
            if each in SIZES:
                unit = SIZES[each]
            elif each in FORMATS or each == "i":
                letter = each
            else:
                raise CommandError(f'Undefined output format "{each}".')
        sizes = [each for each in match[2] if each in SIZES]
        if letter == "a":
            unit = 8
        elif letter == "c" and not sizes:
            unit = 1
        elif letter == "f" and unit not in (4, 8):
            unit = 8
        if letter == "s":
            unit = unit if sizes else 1
            self._unit = 1  # of the next `x` without a size, as in gdb
        elif letter != "i":
            self._unit = unit
        self._letters.letter = self._letters.last = letter
        return int(match[1] or 1), letter, unit

    def _instructions(self, count: int) -> tuple[int, str, int] | None:
        debugger, last = self._debugger, None
        pc = debugger.frame.pc if debugger.frame is not None else None
        at = self._next or 0
        for _ in range(count):
            raw, text = self._assembly.instruction(at)
            name = self._debugger.code_label(at)
            mark = "=> " if at == pc else "   "
            place = f"{at:#x} <{name}>" if name else f"{at:#x}"
            debugger.put(f"{mark}{place}:\t{text}")
            last = at, "i", 1
            self._next = at = at + len(raw)
        return last

"""Strings of a row as AArch64 code: copied out of the program's memory behind the row's words."""

from typing import Final

from engine.arch.aarch64.emit import (
    ADD,
    AND,
    ASR,
    BASE,
    BIC,
    CBNZ,
    LSL,
    LSR,
    ORN,
    ORR,
    SUB,
    TBNZ63,
    VALUE,
    B,
    Code,
)
from engine.arch.aarch64.fetches import ROW, Fetches
from engine.arch.program import Kind, RecordField, Source
from engine.arch.recording import COMM, COMM_BYTES, STRING_TOTAL, NotCompilableError, Recording

USED: Final = (14, 13, 12, 11)
"""Registers that are used where no others are to be had."""
_ONES: Final = 0xB200C3E0
"""`mov` of 1 in each byte, as a logical immediate; the register is to be filled in."""
_HIGHS: Final = 0x9201C000
"""`and` with 0x80 in each byte."""
_CONSTANT: Final = 64


class RowTexts:
    """Emits the strings of one row.

    A copy takes sixteen bytes at a time and looks for a NUL in all of them at once. Two copies of
    the loop take turns: the clock would take a block that follows itself for a repeated
    instruction. Strings that are too long for a row are the engine's business.

    Attributes:
        slow: offset of a trap that asks it to record the hit, -1 without any need.
        end: register of where the next byte goes; the others are two pieces of a string and
            marks of NULs.
    """

    def __init__(
        self, fetches: Fetches, one: Recording, name: str, registers: tuple[int, ...] = USED
    ) -> None:
        """For one recording; `name` begins the labels, and `registers` may be changed."""
        self._fetches = fetches
        self._code: Code = fetches.code
        self._one = one
        self._name = name
        self._count = 0
        self._before = -1  # place of the word of the string in front
        self.slow = -1
        self._low, self._high, self._marks, self.end = registers

    def add(self, fields: list[RecordField]) -> None:
        """Copy all of them; `end` comes to stand behind the last one's NUL."""
        code, words = self._code, self._one.layout.words * 8
        self._fetches.changed |= {self._low, self._high, self._marks, self.end}
        code.move(self.end, ROW)
        code.plus(self.end, words)
        for field in fields:
            for index in range(max(field.arg.type.count, 1)):
                self._string(field, index)
                self._count += 1

    def _string(self, field: RecordField, index: int) -> None:
        code, arg = self._code, field.arg
        if arg.type.kind is Kind.SYMSTR:
            raise NotCompilableError(f"{arg.text}: a symbol's name")
        if arg.base.source is Source.COMM:
            self._comm()
        elif arg.base.source is Source.TEXT:
            self._immediate(arg.base.text[:4095] + b"\0")
        elif arg.type.count:
            offset = self._fetches.address(arg, self._one)
            code.load(VALUE, VALUE, offset + 8 * index)
            self._copy()
        else:
            self._fetches.at_address(arg, self._one)
            self._copy()
        self._began(self._marks)
        code.three(SUB, BASE, self.end, ROW)
        code.three(SUB, BASE, BASE, self._marks)
        code.three(ORR, self._marks, self._marks, BASE, LSL | 32 << 10)
        self._before = (field.word + index) * 8
        code.store(self._marks, ROW, self._before)

    def _began(self, register: int) -> None:
        """Where the string begins, from the row: behind the words, or the string in front."""
        code = self._code
        if self._before < 0:
            code.constant(register, self._one.layout.words * 8)
            return
        code.load(register, ROW, self._before)
        code.add(0xD3407C00 | register << 5 | BASE)  # its low half, where that one begins
        code.three(ADD, register, BASE, register, LSR | 32 << 10)

    def _comm(self) -> None:
        """Sixteen bytes, of which those behind the NUL stay zero."""
        code = self._code
        self._fetches.save_area()
        for offset in range(0, COMM_BYTES, 8):
            code.load(VALUE, BASE, COMM + offset)
            code.store(VALUE, self.end, offset)
        code.load(VALUE, BASE, COMM + COMM_BYTES)
        code.three(ADD, self.end, self.end, VALUE)

    def _immediate(self, text: bytes) -> None:
        if len(text) > _CONSTANT:
            raise NotCompilableError("a long immediate string")
        for offset in range(0, len(text), 8):
            self._code.constant(VALUE, int.from_bytes(text[offset : offset + 8], "little"))
            self._code.store(VALUE, self.end, offset)
        self._code.plus(self.end, len(text))

    def _copy(self) -> None:
        """The string at x17."""
        code = self._code
        first, second, found = (f"{self._name}{part}{self._count}" for part in "abc")
        for label in (first, second):
            code.label(label)
            code.add(0xA8C10000 | self._high << 10 | VALUE << 5 | self._low)  # ldp, x17 += 16
            code.add(_ONES | self._marks)
            code.three(SUB, BASE, self._high, self._marks)
            code.three(BIC, BASE, BASE, self._high)
            code.three(SUB, self._marks, self._low, self._marks)
            code.three(BIC, self._marks, self._marks, self._low)
            code.three(ORR, self._marks, self._marks, BASE)
            code.add(_HIGHS | self._marks << 5 | self._marks)
            code.branch(CBNZ | self._marks, found)
            code.add(0xA8810000 | self._high << 10 | self.end << 5 | self._low)  # stp, end += 16
        code.three(SUB, self._marks, self.end, ROW)
        code.constant(BASE, self._one.layout.words * 8 + STRING_TOTAL)
        code.three(SUB, self._marks, self._marks, BASE)
        code.branch(TBNZ63 | self._marks, first)
        if self.slow < 0:
            self.slow = code.label(self._name + "slow")
            code.add(0xD42000C0)  # brk #6
        else:
            code.branch(B, self._name + "slow")
        code.label(found)
        self._last()

    def _last(self) -> None:
        """Store two pieces up to the first NUL in them, and zeros behind it.

        Behind the subtraction of 1, all bits below the lowest mark are set and it is not; all
        are where there is no mark.
        """
        code = self._code
        code.add(_ONES | self._marks)
        code.three(SUB, BASE, self._high, self._marks)
        code.three(BIC, BASE, BASE, self._high)
        code.add(_HIGHS | BASE << 5 | BASE)
        code.three(SUB, self._marks, self._low, self._marks)
        code.three(BIC, self._marks, self._marks, self._low)
        code.add(_HIGHS | self._marks << 5 | self._marks)
        self._below(self._marks)
        code.three(AND, self._low, self._low, VALUE, ASR | 7 << 10)
        # A NUL in the first piece: the second one counts as all NULs.
        code.three(ORN, BASE, BASE, VALUE, ASR | 63 << 10)
        self._below(BASE)
        code.three(AND, self._high, self._high, VALUE, ASR | 7 << 10)
        code.store_pair(self._low, self._high, self.end, 0)
        for marks in (self._marks, BASE):
            code.add(0xDAC00C00 | marks << 5 | marks)  # rev
            code.add(0xDAC01000 | marks << 5 | marks)  # clz
            code.add(0xD343FC00 | marks << 5 | marks)  # lsr 3: bytes in front of the NUL
            code.three(ADD, self.end, self.end, marks)
        code.plus(self.end, 1)

    def _below(self, marks: int) -> None:
        """The bits below the lowest mark in x17."""
        self._code.add(0xD1000400 | marks << 5 | VALUE)  # sub 1
        self._code.three(BIC, VALUE, VALUE, marks)

"""Strings of a row as x86-64 code: copied out of the program's memory behind the row's words."""

from typing import Final

from engine.arch.program import Kind, RecordField, Source
from engine.arch.recording import COMM_BYTES, STRING_TOTAL, NotCompilableError, Recording
from engine.arch.x86_64.emit import (
    JA,
    JNE,
    LEA,
    LOAD,
    RAX,
    RCX,
    RDI,
    RDX,
    RSI,
    STORE,
    Code,
)
from engine.arch.x86_64.fetches import Fetches

_ONES: Final = 0x0101010101010101
_HIGHS: Final = 0x8080808080808080
_CONSTANT: Final = 64
"""Most bytes of an immediate string: each eight of them are code."""
_PAIR: Final = 16


class RowTexts:
    """Emits the strings of one row; rcx is where the next one goes.

    A copy takes sixteen bytes at a time and looks for a NUL in all of them at once. Two copies of
    the loop take turns: the clock would take a block that follows itself for a repeated
    instruction. Strings that are too long for a row are the engine's business.

    Attributes:
        slow: offset of a trap that asks it to record the hit, -1 without any need.
    """

    def __init__(self, fetches: Fetches, one: Recording, name: str) -> None:
        """For one recording; `name` begins the labels."""
        self._fetches = fetches
        self._code: Code = fetches.code
        self._one = one
        self._name = name
        self._count = 0
        self.slow = -1

    def add(self, fields: list[RecordField]) -> None:
        """Copy all of them; rcx ends up behind the last one's NUL, rdx is the row."""
        words = self._one.layout.words * 8
        for field in fields:
            for index in range(max(field.arg.type.count, 1)):
                self._string(field, index, words if not self._count else None)
                self._count += 1

    def _string(self, field: RecordField, index: int, start: int | None) -> None:
        """One string; `start` is its distance from the row, None where that varies."""
        place = (field.word + index) * 8
        code, arg = self._code, field.arg
        if arg.type.kind is Kind.SYMSTR:
            raise NotCompilableError(f"{arg.text}: a symbol's name")
        if start is None:
            self._fetches.changed |= {RDX, RSI}
            self._fetches.start_of_row(RDX)
            code.two(0x89, RCX, RSI)
            code.two(0x29, RDX, RSI)
            code.memory(STORE, RSI, RDX, place)
        if arg.base.source is Source.COMM:
            self._comm()
        elif arg.base.source is Source.TEXT:
            self._immediate(arg.base.text[:4095] + b"\0")
        else:
            offset = self._fetches.address(arg, self._one)
            if arg.type.count:
                code.memory(LOAD, RAX, RAX, offset + 8 * index)
                offset = 0
            code.memory(LEA, RDX, RAX, offset)
            self._copy()
        self._fetches.changed |= {RDX, RSI}
        self._fetches.start_of_row(RDX)
        code.two(0x89, RCX, RAX)
        code.two(0x29, RDX, RAX)  # sub rax, rdx: where the string ends
        if start is None:
            code.memory(LOAD, RSI, RDX, place)
            code.two(0x29, RSI, RAX)
            code.shift(4, RAX, 32)
            code.two(0x09, RSI, RAX)
        else:
            self._fetches.add(RAX, -start)
            code.shift(4, RAX, 32)
            self._fetches.add(RAX, start)
        code.memory(STORE, RAX, RDX, place)

    def _comm(self) -> None:
        """Sixteen bytes, of which those behind the NUL stay zero."""
        code, places = self._code, self._fetches.places
        for offset in range(0, COMM_BYTES, 8):
            code.absolute(places.comm + offset)
            code.memory(STORE, RAX, RCX, offset)
        code.absolute(places.comm + COMM_BYTES)
        code.sum(RCX, RCX, RAX)

    def _immediate(self, text: bytes) -> None:
        if len(text) > _CONSTANT:
            raise NotCompilableError("a long immediate string")
        for offset in range(0, len(text), 8):
            self._code.constant(RAX, int.from_bytes(text[offset : offset + 8], "little"))
            self._code.memory(STORE, RAX, RCX, offset)
        self._fetches.add(RCX, len(text))

    def _copy(self) -> None:
        """The string at rdx."""
        code = self._code
        labels = [f"{self._name}{part}{self._count}" for part in ("first", "second", "found")]
        self._fetches.changed |= {RDX, RSI, RDI}
        for label in labels[:2]:
            code.label(label)
            code.memory(LOAD, RAX, RDX, 0)
            code.memory(LOAD, RSI, RDX, 8)
            code.memory(STORE, RAX, RCX, 0)  # written again below if there is a NUL
            code.constant(RDI, -_ONES)
            self._zeros(RAX, RDI, RDI)
            code.constant(RAX, -_ONES)
            self._zeros(RSI, RAX, RAX)
            code.two(0x09, RAX, RDI)  # or rdi, rax
            code.constant(RAX, _HIGHS)
            code.two(0x85, RAX, RDI)  # test rdi, rax
            code.jump(labels[2], JNE)
            code.memory(STORE, RSI, RCX, 8)
            self._fetches.add(RDX, _PAIR)
            self._fetches.add(RCX, _PAIR)
        self._fetches.start_of_row(RSI)
        code.two(0x29, RCX, RSI)
        code.compare(RSI, -self._one.layout.words * 8 - STRING_TOTAL, 8)
        code.jump(labels[0], JA)  # as unsigned numbers: minus so many bytes
        if self.slow < 0:
            self.slow = code.label(self._name + "slow")
            code.raw("cc")
        else:
            code.jump(self._name + "slow")
        code.label(labels[2])
        code.memory(LOAD, RAX, RCX, 0)
        self._marked(RAX)
        code.memory(LEA, RDX, RCX, 8)
        code.raw("480f44ca")  # cmovz rcx, rdx
        code.raw("480f44c6")  # cmovz rax, rsi
        self._marked(RAX)
        code.two(0x89, RDI, RDX)
        code.raw("48f7da")  # neg rdx
        code.two(0x21, RDI, RDX)  # and rdx, rdi: the lowest of the marks
        code.raw("480fbcff")  # bsf rdi, rdi
        code.shift(5, RDI, 3)
        code.shift(5, RDX, 7)
        code.raw("48ffca")  # dec rdx
        code.two(0x21, RDX, RAX)
        code.memory(STORE, RAX, RCX, 0)
        code.sum(RCX, RCX, RDI, 1)

    def _zeros(self, piece: int, target: int, minus: int) -> None:
        """`target` = (piece - ones) & ~piece, `minus` being minus ones."""
        code = self._code
        code.sum(target, piece, minus)
        self._invert(piece)
        code.two(0x21, piece, target)
        self._invert(piece)

    def _marked(self, piece: int) -> None:
        """The highest bit of each NUL of `piece` in rdi, but for those above the first one."""
        code = self._code
        code.constant(RDX, -_ONES)
        self._zeros(piece, RDI, RDX)
        code.constant(RDX, _HIGHS)
        code.two(0x21, RDX, RDI)

    def _invert(self, register: int) -> None:
        self._code.raw(f"{0x48 | register >> 3:02x}f7{0xD0 | register & 7:02x}")

"""Strings of a row as code: copied out of the program's memory behind the row's words."""

from typing import Final

from engine.arch.program import RecordField, Source, ValueKind
from engine.arch.recorder.encoder import Combination, Shift, Way
from engine.arch.recorder.fetches import Fetches
from engine.arch.recording import COMM_BYTES, STRING_TOTAL, NotCompilableError, Recording

USED: Final = 4
"""Registers that strings need, and one more where none is temporary."""
_ONES: Final = 0x0101010101010101
_HIGHS: Final = 0x8080808080808080
_CONSTANT: Final = 64
"""Most bytes of an immediate string: each eight of them are code."""
_PAIR: Final = 16


class RowTexts:
    """Emits the strings of one row.

    A copy takes sixteen bytes at a time and looks for a NUL in all of them at once. Two copies of
    the loop take turns: the clock would take a block that follows itself for a repeated
    instruction. Strings that are too long for a row are the engine's business.

    Attributes:
        slow: offset of a trap that asks it to record the hit, -1 without any need.
        end: register of where the next byte goes.
        free: a register for anything, once all strings are there.
    """

    def __init__(
        self, fetches: Fetches, one: Recording, name: str, registers: tuple[int, ...]
    ) -> None:
        """For one recording.

        Args:
            fetches: emits what they are, and knows the registers.
            one: the recording.
            name: what labels begin with.
            registers: those that may be changed.
        """
        self._fetches = fetches
        self._encoder = fetches.encoder
        self._one = one
        self._name = name
        self._used = registers
        self._count = 0
        self._before = -1  # place of the word of the string in front
        self.slow = -1
        # Two pieces of a string, and marks of NULs in them.
        self._low, self._high, self._marks, self.end = registers[:USED]
        temporary = self._encoder.registers.temporary
        self._spare = registers[USED] if temporary is None else temporary
        self._value, self._row = self._encoder.registers.value, self._encoder.registers.row
        self.free = self._low

    def add(self, fields: list[RecordField]) -> None:
        """Copy all of them; `end` comes to stand behind the last one's NUL."""
        for field in fields:
            for index in range(max(field.arg.type.count, 1)):
                self._string(field, index)
                self._count += 1

    def _begin(self) -> None:
        """The first string's address has been fetched: registers may change."""
        if not self._count:
            self._fetches.changed.update(self._used)
            self._encoder.add(self.end, self._row, self._one.layout.words * 8)

    def _string(self, field: RecordField, index: int) -> None:
        encoder, arg, value = self._encoder, field.arg, self._value
        if arg.type.kind is ValueKind.SYMSTR:
            raise NotCompilableError(f"{arg.text}: a symbol's name")
        if arg.base.source is Source.COMM:
            self._begin()
            self._comm()
        elif arg.base.source is Source.TEXT:
            self._begin()
            self._immediate(arg.base.text[:4095] + b"\0")
        else:
            offset = self._fetches.address(arg, self._one)
            if arg.type.count:
                encoder.load(value, value, offset + 8 * index)
            else:
                encoder.add(value, value, offset)
            self._begin()
            self._copy()
        self._began(self._marks)
        encoder.combine(Combination.SUB, self._low, self.end, self._row)
        encoder.combine(Combination.SUB, self._low, self._low, self._marks)
        encoder.combine(Combination.OR, self._marks, self._marks, self._low, Shift(Way.LEFT, 32))
        self._before = (field.word + index) * 8
        encoder.store(self._marks, self._row, self._before)

    def _began(self, register: int) -> None:
        """Load the string's place in the row: behind the words, or behind the string in front."""
        encoder = self._encoder
        if self._before < 0:
            encoder.constant(register, self._one.layout.words * 8)
            return
        encoder.load(register, self._row, self._before)
        encoder.extract(self._low, register, 0, 32)  # where that one begins
        encoder.combine(Combination.ADD, register, self._low, register, Shift(Way.RIGHT, 32))

    def _comm(self) -> None:
        """Sixteen bytes, of which those behind the NUL stay zero."""
        encoder, comm = self._encoder, self._fetches.places.comm
        for offset in range(0, COMM_BYTES, 8):
            encoder.read(self._value, comm + offset)
            encoder.store(self._value, self.end, offset)
        encoder.read(self._value, comm + COMM_BYTES)
        encoder.combine(Combination.ADD, self.end, self.end, self._value)

    def _immediate(self, text: bytes) -> None:
        if len(text) > _CONSTANT:
            raise NotCompilableError("a long immediate string")
        for offset in range(0, len(text), 8):
            piece = int.from_bytes(text[offset : offset + 8], "little")
            self._encoder.constant(self._value, piece)
            self._encoder.store(self._value, self.end, offset)
        self._encoder.add(self.end, self.end, len(text))

    def _copy(self) -> None:
        """The string whose address is the value."""
        encoder, value, marks = self._encoder, self._value, self._marks
        first, second, found = (f"{self._name}{part}{self._count}" for part in "abc")
        for label in (first, second):
            encoder.label(label)
            encoder.load_pair(self._low, self._high, value)
            encoder.add(value, value, _PAIR)
            encoder.constant(marks, _ONES)
            self._zeros(self._spare, self._high)
            self._zeros(marks, self._low)
            encoder.combine(Combination.OR, marks, marks, self._spare)
            encoder.combine_constant(Combination.AND, marks, _HIGHS, self._spare)
            encoder.jump_if_zero(marks, found, zero=False)
            encoder.store_pair(self._low, self._high, self.end)
            encoder.add(self.end, self.end, _PAIR)
        encoder.combine(Combination.SUB, marks, self.end, self._row)
        encoder.add(marks, marks, -self._one.layout.words * 8 - STRING_TOTAL)
        encoder.extract(marks, marks, 63, 1)
        encoder.jump_if_zero(marks, first, zero=False)
        if self.slow < 0:
            self.slow = encoder.label(self._name + "slow")
            encoder.trap()
        else:
            encoder.jump(self._name + "slow")
        encoder.label(found)
        self._last()

    def _zeros(self, target: int, piece: int) -> None:
        """Mark NULs of a piece, and perhaps bytes above the first one; `marks` has ones."""
        self._encoder.combine(Combination.SUB, target, piece, self._marks)
        self._encoder.combine(Combination.AND_NOT, target, target, piece)

    def _last(self) -> None:
        """Store two pieces up to the first NUL in them, and zeros behind it.

        Behind the subtraction of 1, all bits below the lowest mark are set and it is not; all
        are where there is no mark.
        """
        encoder, value, spare, marks = self._encoder, self._value, self._spare, self._marks
        encoder.constant(marks, _ONES)
        self._zeros(spare, self._high)
        encoder.combine_constant(Combination.AND, spare, _HIGHS, value)
        self._zeros(marks, self._low)
        encoder.combine_constant(Combination.AND, marks, _HIGHS, value)
        self._below(marks)
        encoder.combine(Combination.AND, self._low, self._low, value, Shift(Way.ARITHMETIC, 7))
        # A NUL in the first piece: the second one counts as all NULs.
        encoder.combine(Combination.OR_NOT, spare, spare, value, Shift(Way.ARITHMETIC, 63))
        self._below(spare)
        encoder.combine(Combination.AND, self._high, self._high, value, Shift(Way.ARITHMETIC, 7))
        encoder.store_pair(self._low, self._high, self.end)
        for register in (marks, spare):
            encoder.count_bytes(register)
            encoder.combine(Combination.ADD, self.end, self.end, register)
        encoder.add(self.end, self.end, 1)

    def _below(self, marks: int) -> None:
        """The bits below the lowest mark as the value."""
        self._encoder.add(self._value, marks, -1)
        self._encoder.combine(Combination.AND_NOT, self._value, self._value, marks)

"""Calls recorded and ended by code in the guest: what return probes do in a detour.

What has to hold is reduced to one number that is 0 if it does: each branch would be a block of
its own to the emulator.
"""

from typing import Final

from engine.arch.machine import OUTSIDE
from engine.arch.recorder.encoder import Combination, Shift, Way
from engine.arch.recorder.fetches import Fetches
from engine.arch.recorder.rows import RowCode
from engine.arch.recording import (
    CHAINED,
    SITE_SHIFT,
    SITES,
    CallEntry,
    CallReturn,
    CallWord,
    NotCompilableError,
)

ENTRY_USES: Final = 2
"""Registers that the entry of a call needs beside `value` and `row`."""
RETURN_USES: Final = 1
"""The same for its end."""

_RECORD: Final = CallWord.SIZE * 8
_CHAINED_BIT: Final = CHAINED.bit_length() - 1
_SITE_BITS: Final = SITES.bit_length() - 1


class CallCode:
    """Emits what is done about calls."""

    def __init__(self, fetches: Fetches, rows: RowCode) -> None:
        """With what arguments are fetched and rows are made by."""
        self._fetches = fetches
        self._rows = rows
        self._encoder = fetches.encoder
        self._places = fetches.places
        self._registers = registers = fetches.encoder.registers
        self._value, self._row = registers.value, registers.row
        self._other, self._third = registers.others[:ENTRY_USES]

    def enter(self, work: CallEntry) -> tuple[int, int]:
        """Make the record of a call that begins.

        Returns:
            Offsets of where that begins, and of a trap that leaves it to the engine.

        Raises:
            NotCompilableError: more is captured than a record holds, or what code cannot read.
        """
        if len(work.kept) > CallWord.SIZE - CallWord.KEPT:
            raise NotCompilableError("too many values from the entry")
        encoder, places, value = self._encoder, self._places, self._value
        self._fetches.changed |= {self._row, self._other, self._third}
        start = encoder.label("enter")
        self._may_enter()
        encoder.jump_if_zero(self._third, "entered")
        self._is_tail_call()
        encoder.jump_if_zero(self._third, "entered")
        slow = encoder.label("refused")
        encoder.trap()
        encoder.label("entered")
        self._fetches.call = self._other, _RECORD
        self._new_record(work)
        if work.row is not None:
            self._entry_row(work)
        encoder.add(value, self._other, _RECORD)
        encoder.write(places.calls)
        encoder.constant(value, 0)
        encoder.write(places.left)
        encoder.write(places.left + 8)
        encoder.increment(work.counter)
        return start, slow

    def _may_enter(self) -> None:
        """`third` is 0 if a call may be recorded; `other` is the newest call's record.

        The return must be caught where it leads to, and the frame lie between the lowest one
        allowed and that of the newest call.
        """
        encoder, value, sp = self._encoder, self._value, self._registers.sp
        row, other, wrong = self._row, self._other, self._third
        link = encoder.return_address(row)
        encoder.extract(wrong, link, SITE_SHIFT, _SITE_BITS)
        encoder.constant(value, self._places.sites)
        encoder.combine(Combination.ADD, wrong, value, wrong, Shift(Way.LEFT, 3))
        encoder.load(wrong, wrong, 0)
        encoder.combine(Combination.XOR, wrong, wrong, link)
        encoder.read(value, self._places.lowest)
        encoder.combine(Combination.SUB, value, sp, value)  # below 0 if the frame is lower
        encoder.read(other, self._places.calls)
        encoder.load(row, other, CallWord.FRAME * 8)
        encoder.combine(Combination.SUB, row, sp, row)  # below 0 if below the newest frame
        encoder.combine(Combination.OR_NOT, value, value, row)
        encoder.combine(Combination.OR, wrong, wrong, value, Shift(Way.RIGHT, 63))

    def _is_tail_call(self) -> None:
        """`third` is 0 if the newest call has made this one in its own frame.

        That is so where both return to the same place, unless the call in front of that place
        has just been executed, or the kernel has just entered a handler (see
        `engine.probes.return_sites`).
        """
        encoder, value, wrong = self._encoder, self._value, self._third
        link = encoder.return_address(self._row)
        encoder.load(wrong, self._other, CallWord.FRAME * 8)
        encoder.combine(Combination.SUB, wrong, self._registers.sp, wrong)
        encoder.load(value, self._other, CallWord.RETURN * 8)
        encoder.combine(Combination.XOR, value, value, link)
        encoder.combine(Combination.OR, wrong, wrong, value)
        for offset, outside in ((0, False), (8, False), (8, True)):
            encoder.read(value, self._places.left + offset)
            if outside:
                encoder.combine_constant(Combination.XOR, value, OUTSIDE, self._row)
            else:
                encoder.combine(Combination.XOR, value, value, link)
            encoder.add(value, value, -1)  # below 0 if they were the same
            encoder.combine(Combination.OR, wrong, wrong, value, Shift(Way.RIGHT, 63))

    def _new_record(self, work: CallEntry) -> None:
        """The record behind the one that `other` points to."""
        encoder, value, record, third = self._encoder, self._value, self._other, self._third
        at = {word: _RECORD + word * 8 for word in range(CallWord.SIZE)}
        encoder.store(encoder.return_address(value), record, at[CallWord.RETURN])
        encoder.move(value, self._registers.sp)
        encoder.store(value, record, at[CallWord.FRAME])
        encoder.load(third, record, CallWord.FRAME * 8)
        encoder.combine(Combination.XOR, value, value, third)
        encoder.add(value, value, -1)
        encoder.extract(value, value, 63, 1)  # 1 if it is the same frame
        encoder.constant(third, work.number << 32 | work.kind)
        encoder.combine(Combination.OR, value, third, value, Shift(Way.LEFT, _CHAINED_BIT))
        encoder.store(value, record, at[CallWord.KIND])
        encoder.load(value, record, CallWord.DEPTH * 8)
        encoder.add(value, value, int(work.deeper))
        encoder.store(value, record, at[CallWord.DEPTH])
        encoder.constant(value, work.function)
        encoder.store(value, record, at[CallWord.FUNCTION])
        encoder.clock(self._places.time, third)
        encoder.store(value, record, at[CallWord.TIME])
        for index, arg in enumerate(work.kept):
            if arg is None:
                encoder.load(value, record, at[CallWord.TIME])
            else:
                self._fetches.value(arg, work)
            encoder.store(value, record, at[CallWord.KEPT] + 8 * index)

    def _entry_row(self, work: CallEntry) -> None:
        encoder, value, row, one = self._encoder, self._value, self._row, work.row
        assert one is not None
        self._fetches.start_of_row()
        for field in one.layout.fields:
            self._fetches.value(field.arg, one)
            encoder.store(value, row, field.word * 8)
        encoder.load(value, self._other, _RECORD + CallWord.TIME * 8)
        encoder.store(value, row, 8)
        encoder.constant(value, one.address)
        encoder.store(value, row, 16)
        self._rows.head(one)
        self._fetches.end_of_row(row, one.layout.words * 8)

    def check_return(self, work: CallReturn, last: str, chained: str) -> int:
        """Find out whether the newest call has returned.

        It has if the return instruction that was executed last is one of those known, and frame,
        place and kind are the call's.

        Args:
            work: what is done about it.
            last: label to go to if it is the last one of its frame.
            chained: the same if others of its frame lie below it.

        Returns:
            Offset of the trap that leaves all else to the engine.
        """
        encoder, places, value = self._encoder, self._places, self._value
        row, other = self._row, self._other
        encoder.read(row, places.left)
        for register, address in ((value, work.known), (other, work.known + 8)):
            encoder.read(register, address)
            encoder.combine(Combination.XOR, register, register, row)
            encoder.add(register, register, -1)  # below 0 if it is that one
        encoder.combine(Combination.OR, value, value, other)
        encoder.extract(value, value, 63, 1)
        encoder.add(value, value, -1)
        encoder.read(row, places.calls)
        encoder.load(other, row, CallWord.FRAME * 8)
        encoder.add(other, other, self._registers.popped)
        encoder.combine(Combination.SUB, other, self._registers.sp, other)
        encoder.combine(Combination.OR, value, value, other)
        encoder.differ(other, row, CallWord.RETURN * 8, 8, work.site)
        encoder.combine(Combination.OR, value, value, other)
        encoder.differ(other, row, CallWord.KIND * 8, 4, work.kind)
        # CHAINED becomes a bit that no address has.
        encoder.combine(Combination.OR, value, value, other, Shift(Way.LEFT, 32))
        encoder.jump_if_zero(value, last)
        encoder.combine_constant(Combination.XOR, value, 1 << 63, other)
        encoder.jump_if_zero(value, chained)
        slow = encoder.label("slow")
        encoder.trap()
        return slow

    def forget(self) -> None:
        """The newest call's record goes."""
        encoder, value = self._encoder, self._value
        encoder.read(value, self._places.calls)
        encoder.add(value, value, -_RECORD)
        encoder.write(self._places.calls)

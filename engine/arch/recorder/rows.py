"""The row of an event as code: its numbers, the time, the head, strings, the ring's cursor."""

from typing import Final

from engine.arch.program import EVENT_LOW, RecordField, Source
from engine.arch.recorder.encoder import Combination, Shift, Way
from engine.arch.recorder.fetches import Fetches
from engine.arch.recorder.texts import USED, RowTexts
from engine.arch.recording import CallReturn, CallWord, NotCompilableError, Recording

_ELEMENTS: Final = 128
"""Most elements of the arrays of one recording: beyond, the code would be long."""
_STRINGS: Final = 8


class RowCode:
    """Emits the rows of a recorder.

    Attributes:
        used: registers that rows need, but for free ones and those that are lent.
        computes: whether rows may change flags.
        lends: offset from which on lent registers are changed, -1 while none is.
    """

    def __init__(
        self, fetches: Fetches, recordings: tuple[Recording, ...], *, alone: bool
    ) -> None:
        """Find out what rows need.

        Args:
            fetches: emits what arguments fetch; gets to know which registers are lent.
            recordings: what is recorded.
            alone: nothing but rows is made.

        Raises:
            NotCompilableError: there are too many strings or elements, or events.
        """
        if any(one.event > EVENT_LOW for one in recordings):
            raise NotCompilableError("the event's number is too high")
        most, elements, self.computes = 0, 0, False
        for one in recordings:
            types = [field.arg.type for field in one.layout.fields]
            strings = sum(max(t.count, 1) for t in types if t.is_string)
            most, elements = max(most, strings), max(elements, sum(t.count for t in types))
            self.computes |= strings > 0 or any(t.width for t in types)
        if most > _STRINGS or elements > _ELEMENTS:
            raise NotCompilableError("too many strings or elements of arrays")
        self.lends = -1
        self._fetches = fetches
        self._encoder = fetches.encoder
        self._registers = registers = fetches.encoder.registers
        spare = registers.temporary
        self._spare = registers.others[0] if spare is None else spare
        self._texts: tuple[int, ...] = ()
        self.used: set[int] = set()
        if spare is None and (elements or not all(map(self._borrowed, recordings))):
            self.used.add(self._spare)
        if most:
            if alone and len(recordings) == 1:
                fetches.lent = self._lendable(recordings[0])
            others = [each for each in registers.others if each not in fetches.lent]
            self._texts = (*fetches.lent, *others)[: USED + (spare is None)]
            self.used |= set(self._texts) - fetches.lent.keys()

    def _plain(self, field: RecordField) -> int | None:
        """The register that a field records as it is, but for the row's own."""
        arg = field.arg
        if arg.type.is_string or arg.type.count:
            return None
        found = self._fetches.direct(arg)
        return None if found == self._registers.row else found

    def _borrowed(self, one: Recording) -> tuple[int, int] | None:
        """A register that the row has, and where: it may change meanwhile.

        Nothing faults until it is given back: what is stored lies below that word.
        """
        for field in one.layout.fields:
            register = self._plain(field)
            if register is not None:
                return register, field.word * 8
        return None

    def _lendable(self, one: Recording) -> dict[int, int]:
        """Registers whose values the only row has, to where: they need not be saved."""
        found: dict[int, int] = {}
        most = USED + (self._registers.temporary is None)
        for field in one.layout.fields:
            register = self._plain(field)
            if register is not None and register not in self.used and len(found) < most:
                found.setdefault(register, field.word * 8)
        return found

    def add(self, one: Recording, name: str, ends: CallReturn | None = None) -> int:
        """The row of one recording.

        Args:
            one: the recording.
            name: what labels begin with.
            ends: the call that it is about.

        Returns:
            Offset of a trap at which the engine is asked to record it, -1 for nowhere.
        """
        encoder, places, fetches = self._encoder, self._fetches.places, self._fetches
        value, row = self._registers.value, self._registers.row
        fetches.start_of_row()
        for field in sorted(one.layout.fields, key=self._late):
            if not field.arg.type.is_string:
                self._number(field, one)
        self._time(one)
        if ends is not None and ends.of_call:
            encoder.read(value, places.calls)
            encoder.load(value, value, CallWord.FUNCTION * 8)
        else:
            encoder.constant(value, one.address)
        encoder.store(value, row, 16)
        if ends is not None:
            encoder.constant(value, ends.site)
            encoder.store(value, row, 24)
        texts = _texts(one)
        if texts:
            return self._strings(one, name, texts)
        self.head(one)
        fetches.end_of_row(row, one.layout.words * 8)
        return -1

    def head(self, one: Recording) -> None:
        """The first word of a row without strings."""
        encoder, value = self._encoder, self._registers.value
        encoder.read(value, self._fetches.places.thread)
        encoder.add(value, value, one.event | one.layout.words << 16)
        encoder.store(value, self._registers.row, 0)

    def _time(self, one: Recording) -> None:
        """The time, computed with a register that is lent for it where none is to be had."""
        encoder, fetches = self._encoder, self._fetches
        spare, kept = self._spare, 0
        if spare != self._registers.temporary:
            spare, kept = self._borrowed(one) or (spare, 0)
        encoder.clock(fetches.places.time, spare)
        encoder.store(self._registers.value, self._registers.row, 8)
        if kept and spare not in fetches.lent:
            encoder.load(spare, self._registers.row, kept)
            return
        fetches.changed.add(spare)
        if kept:
            self.lends = encoder.label("lends")

    def _late(self, field: RecordField) -> bool:
        """Registers come first, while they still have their own values."""
        return self._fetches.direct(field.arg) is None

    def _number(self, field: RecordField, one: Recording) -> None:
        arg, encoder, fetches = field.arg, self._encoder, self._fetches
        value, row = self._registers.value, self._registers.row
        if arg.type.count:
            offset = encoder.reach(value, fetches.address(arg, one))
            fetches.changed.add(self._spare)
            for index in range(arg.type.count):
                encoder.load(self._spare, value, offset + index * arg.type.size, arg.type.size)
                fetches.bits(arg, self._spare)
                encoder.store(self._spare, row, (field.word + index) * 8)
            return
        register = fetches.direct(arg)
        if register is None:
            fetches.value(arg, one)
            register = value
        encoder.store(register, row, field.word * 8)

    def _strings(self, one: Recording, name: str, fields: list[RecordField]) -> int:
        encoder, fetches, row = self._encoder, self._fetches, self._registers.row
        value = self._registers.value
        if fetches.lent and self.lends < 0:
            self.lends = encoder.label("lends")
        texts = RowTexts(fetches, one, name, self._texts)
        texts.add(fields)
        end, size = texts.end, texts.free
        encoder.combine(Combination.SUB, size, end, row)
        encoder.add(size, size, 7)
        encoder.combine_constant(Combination.AND, size, -8, value)
        encoder.combine(Combination.ADD, end, row, size)
        encoder.read(value, fetches.places.thread)
        encoder.add(value, value, one.event)
        encoder.combine(Combination.OR, value, value, size, Shift(Way.LEFT, 13))
        encoder.store(value, row, 0)
        fetches.end_of_row(end, 0)
        for register, offset in fetches.lent.items():
            encoder.load(register, row, offset)
        return texts.slow


def _texts(one: Recording) -> list[RecordField]:
    """Fields whose bytes stand behind the row's words."""
    sources = (Source.COMM, Source.TEXT)
    return [f for f in one.layout.fields if f.arg.type.is_string or f.arg.base.source in sources]

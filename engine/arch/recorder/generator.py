"""A whole recorder: what is saved, the parts in their order, and the end."""

from collections.abc import Callable
from typing import NamedTuple

from engine.arch.recorder.calls import ENTRY_USES, RETURN_USES, CallCode
from engine.arch.recorder.encoder import Encoder
from engine.arch.recorder.fetches import Fetches
from engine.arch.recorder.filter import RowFilter
from engine.arch.recorder.rows import RowCode
from engine.arch.recording import (
    CallEntry,
    CallReturn,
    DetourPlaces,
    Part,
    Recorder,
    Recording,
    Work,
    recorded_by,
)


def record(
    encoder: Callable[[int], Encoder], work: Work, places: DetourPlaces, window: bytes = b""
) -> Recorder:
    """The recorder for a place.

    Args:
        encoder: (address of the save area) to a new encoder of the architecture.
        work: what is done; of recordings the newest probe's first.
        places: what stands where in the guest.
        window: the instructions that are displaced.

    Raises:
        NotCompilableError: no code in the guest can do it.
    """
    return _Generator(encoder(places.save), work, places, window).make()


class _Emitted(NamedTuple):
    """A part that has been emitted: offsets as `engine.arch.recording.Part` has them."""

    start: int
    again: int
    slow: int


class _Generator:
    """Emits the parts of one recorder."""

    def __init__(self, encoder: Encoder, work: Work, places: DetourPlaces, window: bytes) -> None:
        """Find out what has to be saved."""
        self._encoder = encoder
        self._recordings = recorded_by(work)
        self._enters = work if isinstance(work, CallEntry) else None
        self._ends = work if isinstance(work, CallReturn) else None
        self._fetches = Fetches(encoder, places)
        registers = encoder.registers
        used = {registers.value, registers.row}
        if self._ends is not None:
            used |= set(registers.others[:RETURN_USES])
            self._fetches.changed |= set(registers.others[:RETURN_USES])
        if self._enters is not None:
            used |= set(registers.others[:ENTRY_USES])
        alone = isinstance(work, tuple)
        self._rows = RowCode(self._fetches, self._recordings, alone=alone)
        self._calls = CallCode(self._fetches, self._rows)
        used |= self._rows.used
        kept = used - registers.free - registers.entered.keys()
        self._saved = {each: at for each, at in self._fetches.slots.items() if each in kept}
        filtered = any(one.filter for one in self._recordings)
        computes = self._rows.computes or filtered or not alone
        self._flags = computes and not encoder.flags_free(window)

    def make(self) -> Recorder:
        """The recorder."""
        encoder, fetches, flags = self._encoder, self._fetches, self._flags
        light = self._light()
        encoder.begin()
        if light is not None:
            encoder.increment(light.one.counter)
        if flags:
            encoder.hold_flags()
        if light is not None:
            light.emit("passed", "rejected")
            encoder.label("passed")
        encoder.keep(self._saved, flags=flags)
        fetches.changed.add(encoder.registers.row)
        found = self._parts(filtered=light is not None)
        finish = encoder.label("finish")
        encoder.give_back(self._saved, flags=flags)
        encoder.label("rejected")
        encoder.end(flags=flags)
        names = {number: name for name, number in encoder.registers.names.items()}
        lent = {names[register]: offset for register, offset in fetches.lent.items()}
        behinds = [*(one.start for one in found[1:]), finish]
        if self._ends is not None:  # the code of a return has one end, and goes on there
            behinds = [finish] * len(found)
        parts = tuple(
            Part(one.start, one.again, behind, one.slow, lent, self._rows.lends)
            for one, behind in zip(found, behinds, strict=True)
        )
        saved = {**encoder.registers.entered, **self._saved}
        saved_names = {names[register]: offset for register, offset in saved.items()}
        return Recorder(encoder.finished(), saved_names, parts, finish)

    def _light(self) -> RowFilter | None:
        """The one filter, if it gets along with registers that are in place."""
        if len(self._recordings) != 1 or self._ends is not None or self._enters is not None:
            return None
        found = RowFilter(self._fetches, self._recordings[0], "")
        return found if found.one.filter and found.light else None

    def _parts(self, *, filtered: bool) -> list[_Emitted]:
        """All parts; `filtered`: the first row's hit is counted and has passed its filter."""
        if self._ends is not None:
            return self._return(self._ends)
        found = [
            self._event(str(number), one, filtered=filtered)
            for number, one in enumerate(self._recordings)
        ]
        if self._enters is not None:
            start, slow = self._calls.enter(self._enters)
            found.append(_Emitted(start, start, slow))
        return found

    def _event(self, name: str, one: Recording, *, filtered: bool) -> _Emitted:
        start = self._encoder.label(f"{name}start")
        if not filtered:
            self._encoder.increment(one.counter)
        again, slow = self._tested_row(name, one, filtered=filtered)
        return _Emitted(0 if filtered else start, again, slow)

    def _tested_row(self, name: str, one: Recording, *, filtered: bool) -> tuple[int, int]:
        """Emit the test and the row; return the labels to begin anew and to take the slow way."""
        if one.filter and not filtered:
            RowFilter(self._fetches, one, name).emit(f"{name}again", f"{name}end")
        again = self._encoder.label(f"{name}again")
        slow = self._rows.add(one, name, self._ends)
        self._encoder.label(f"{name}end")
        return again, slow

    def _return(self, ends: CallReturn) -> list[_Emitted]:
        """For the last call of a frame, and for one that is chained: then it begins anew."""
        start = self._encoder.label("start")
        slow = self._calls.check_return(ends, "last", "chained")
        chained = self._end("chained", ends)
        self._encoder.jump("start")
        last = self._end("last", ends)
        return [_Emitted(start, last.again, slow), chained, last]

    def _end(self, name: str, ends: CallReturn) -> _Emitted:
        start = self._encoder.label(name)
        again, slow = self._tested_row(name, ends.row, filtered=False)
        self._calls.forget()
        return _Emitted(start, again, slow)

"""The recorder of an AArch64 detour: code that writes a hit's rows where the engine finds them.

x16 and x17 are free where a detour may be (`relocate.needs`), so that nothing is put on the stack;
what else is used is kept in the save area, or in the row where that holds it all the same. Flags
are left alone. A filter that looks at registers only saves nothing before it has passed: under
the emulator what costs is each access to memory. There are no checks for the end of the ring:
behind it nothing is mapped.
"""

from typing import Final

from engine.arch.aarch64.callcode import (
    ENTRY_USES,
    OTHER,
    TRAP,
    check_return,
    enter,
    forget_call,
    is_chained,
)
from engine.arch.aarch64.emit import ADD, BASE, CBZ, LSL, ORR, SUB, VALUE, B, Code
from engine.arch.aarch64.fetches import ROW, SAVED, Fetches
from engine.arch.aarch64.rowfilter import RowFilter
from engine.arch.aarch64.rowtexts import USED, RowTexts
from engine.arch.program import RecordField, Source
from engine.arch.recorderparts import Emitted, RecorderParts
from engine.arch.recording import (
    CALLS,
    CURSOR,
    CallEntry,
    CallReturn,
    CallWord,
    DetourPlaces,
    NotCompilableError,
    Recorder,
    Recording,
    Work,
)

_ELEMENTS: Final = 128
"""Most elements of the arrays of one recording: beyond, the code would be long."""
_STRINGS: Final = 8


def record(work: Work, places: DetourPlaces, window: bytes = b"") -> Recorder:
    """The recorder for a place; raises `NotCompilableError`."""
    del window
    return _Maker(work, places).make()


class _Maker(RecorderParts):
    def __init__(self, work: Work, places: DetourPlaces) -> None:
        super().__init__(work)
        alone, recordings = self.alone, self.recordings
        self._places = places
        types = [[field.arg.type for field in one.layout.fields] for one in recordings]
        strings = [sum(max(t.count, 1) for t in kinds if t.is_string) for kinds in types]
        if (
            max(strings, default=0) > _STRINGS
            or max((sum(t.count for t in kinds) for kinds in types), default=0) > _ELEMENTS
        ):
            raise NotCompilableError("too many strings or elements of arrays")
        self._code = Code()
        self._fetches = Fetches(self._code, places)
        self._lends = -1
        used: tuple[int, ...] = (OTHER,) if self.ends is not None else ()
        if self.enters is not None:
            used = ENTRY_USES
        if any(strings):
            if alone:
                self._fetches.lent = self._lendable()
            others = [register for register in USED if register not in self._fetches.lent]
            used = (*self._fetches.lent, *others)[: len(USED)]
        self._used = used
        kept = tuple(each for each in (ROW, *used) if each not in self._fetches.lent)
        self._saved = {register: SAVED[register] for register in kept}

    def _lendable(self) -> dict[int, int]:
        """Registers whose values the only row has, to where: they need not be saved."""
        (one, *others) = self.recordings
        found: dict[int, int] = {}
        for field in one.layout.fields if not others else ():
            register = self._fetches.direct(field.arg)
            plain = not field.arg.type.is_string and not field.arg.type.count
            if plain and register is not None and register != ROW and len(found) < len(USED):
                found.setdefault(register, field.word * 8)
        return found

    def make(self) -> Recorder:
        code, fetches = self._code, self._fetches
        light = self._light()
        if light is not None:
            self.count(light.one)
            light.emit("passed", "rejected")
            code.label("passed")
        fetches.save_area()
        self._keep(0xA9000000, 0xF9000000)
        fetches.changed.add(ROW)
        if self.ends is not None:
            fetches.changed.add(OTHER)
        found = self.emit(filtered=light is not None)
        finish = code.label("finish")
        fetches.save_area()
        self._keep(0xA9400000, 0xF9400000)
        code.constant(VALUE, 0)  # not the cursor: how much is in the ring hangs on the host's time
        code.label("rejected")
        lent = {f"x{register}": offset for register, offset in fetches.lent.items()}
        parts = self.parts(found, finish, lent, self._lends)
        saved = {f"x{register}": offset for register, offset in self._saved.items()}
        return Recorder(code.finished(), saved, parts, finish)

    def _light(self) -> RowFilter | None:
        """The one filter, if it only looks at registers that are in place."""
        if len(self.recordings) != 1 or self.ends is not None or self.enters is not None:
            return None
        found = RowFilter(self._fetches, self.recordings[0], "")
        return found if found.one.filter and found.light else None

    def _keep(self, pair: int, single: int) -> None:
        """Save or restore what is used; in pairs, as they lie side by side."""
        rest = sorted(self._saved.items(), key=lambda item: item[1])
        for (first, offset), (second, _) in zip(rest[::2], rest[1::2], strict=False):
            self._code.add(pair | offset // 8 << 15 | second << 10 | BASE << 5 | first)
        if len(rest) % 2:
            register, offset = rest[-1]
            self._code.add(single | offset // 8 << 10 | BASE << 5 | register)

    # -- parts ----------------------------------------------------------------------------

    def label(self, name: str) -> int:
        """What follows has this name; its offset."""
        return self._code.label(name)

    def go(self, name: str) -> None:
        """Go on at a label."""
        self._code.branch(B, name)

    def test(self, one: Recording, name: str, passed: str, failed: str) -> None:
        """The filter."""
        RowFilter(self._fetches, one, name).emit(passed, failed)

    def enter(self, work: CallEntry) -> Emitted:
        """The record of a call that begins."""
        return Emitted(*enter(self._fetches, work))

    def check(self, ends: CallReturn, last: str, chained: str) -> int:
        """Whether the newest call has returned: to one of two labels, or the trap given back."""
        code = self._code
        check_return(self._fetches, ends)
        code.branch(CBZ | VALUE, last)
        is_chained(code)
        code.branch(CBZ | VALUE, chained)
        slow = code.label("slow")
        code.add(TRAP)
        return slow

    def forget(self) -> None:
        """The newest call's record goes."""
        forget_call(self._fetches)

    def count(self, one: Recording) -> None:
        """A hit is counted."""
        code, distance = self._code, one.counter - self._places.save
        offset = distance if 0 <= distance < 4096 * 8 else 0
        code.constant(BASE, one.counter - offset)
        code.load(VALUE, BASE, offset)
        code.plus(VALUE, 1)
        code.store(VALUE, BASE, offset)

    # -- a row ----------------------------------------------------------------------------

    def row(self, one: Recording, name: str) -> int:
        """The row; where the engine is asked to record it, -1 for nowhere."""
        code, places, fetches = self._code, self._places, self._fetches
        fetches.start_of_row()
        for field in one.layout.fields:
            if not field.arg.type.is_string:
                self._number(field, one)
        code.constant(BASE, places.time)
        code.load(VALUE, BASE, 0)
        code.load(BASE, BASE, 8)
        code.three(SUB, VALUE, VALUE, BASE)
        if self.ends is not None and self.ends.of_call:
            code.store(VALUE, ROW, 8)
            fetches.save_area()
            code.load(VALUE, BASE, CALLS)
            code.load(BASE, VALUE, CallWord.FUNCTION * 8)
            code.store(BASE, ROW, 16)
        else:
            code.constant(BASE, one.address)
            code.store_pair(VALUE, BASE, ROW, 8)
        if self.ends is not None:
            code.constant(BASE, self.ends.site)
            code.store(BASE, ROW, 24)
        texts = _texts(one)
        size = one.layout.words * 8
        end, slow = ROW, -1
        if texts:
            if fetches.lent:
                self._lends = code.label("lends")
            copies = RowTexts(fetches, one, name, self._used)
            copies.add(texts)
            slow, end = copies.slow, copies.end
            code.three(SUB, end, end, ROW)
            code.plus(end, 7)
            code.add(0x927DF000 | end << 5 | end)  # and ~7
        code.constant(BASE, places.thread)
        code.load(VALUE, BASE, 0)
        code.constant(BASE, one.event if texts else one.event | one.layout.words << 16)
        code.three(ORR, VALUE, VALUE, BASE)
        if texts:
            code.three(ORR, VALUE, VALUE, end, LSL | 13 << 10)
            code.three(ADD, end, end, ROW)
        code.store(VALUE, ROW, 0)
        code.constant(VALUE, -places.ring if texts else size - places.ring)
        code.three(ADD, VALUE, end, VALUE)
        fetches.save_area()
        code.store(VALUE, BASE, CURSOR)
        for register, offset in fetches.lent.items():
            code.load(register, ROW, offset)
        return slow

    def _number(self, field: RecordField, one: Recording) -> None:
        arg, code, fetches = field.arg, self._code, self._fetches
        if arg.type.count:
            fetches.at_address(arg, one)
            for index in range(arg.type.count):
                code.load(BASE, VALUE, index * arg.type.size, arg.type.size)
                fetches.bits(arg, BASE)
                code.store(BASE, ROW, (field.word + index) * 8)
            return
        register = fetches.direct(arg)
        if register is None:
            fetches.value(arg, one)
            register = VALUE
        code.store(register, ROW, field.word * 8)


def _texts(one: Recording) -> list[RecordField]:
    """Fields whose bytes stand behind the row's words."""
    sources = (Source.COMM, Source.TEXT)
    return [f for f in one.layout.fields if f.arg.type.is_string or f.arg.base.source in sources]

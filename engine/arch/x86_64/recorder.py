"""The recorder of an x86-64 detour: code that writes a hit's rows where the engine finds them.

It touches neither the stack nor what is below it: rax is saved at an absolute address, and what
else is used beside it. Flags are saved (by lahf and seto, which costs less than pushf and needs no
stack) only where a filter, a bitfield or a string has to compute with them and the displaced
instructions do not overwrite them all the same; all else is done by `mov`, `lea` and `not`. A
filter that compares registers with constants keeps the flags in rax, and saves nothing else before
it has passed: under the emulator what costs is each access to memory.
There are no checks for the end of the ring: behind it nothing is mapped.

A store to the row or a load that faults is the engine's business: it finds the program's registers
in the save area, or in the row where that holds them all the same, and goes on at `Part.again` or
`Part.behind`.
"""

from typing import Final

from engine.arch.program import Kind, RecordField, Source
from engine.arch.recorderparts import Emitted, RecorderParts
from engine.arch.recording import (
    CallEntry,
    CallReturn,
    CallWord,
    DetourPlaces,
    NotCompilableError,
    Recorder,
    Recording,
    Work,
)
from engine.arch.x86_64.callcode import (
    ENTRY_USES,
    FLAGS,
    check_return,
    enter,
    forget_call,
    is_chained,
)
from engine.arch.x86_64.emit import JE, LEA, LOAD, RAX, RCX, RDI, RDX, RSI, STORE, Code
from engine.arch.x86_64.fetches import SAVED, Fetches
from engine.arch.x86_64.liveness import overwrites_flags
from engine.arch.x86_64.operations import NAMES
from engine.arch.x86_64.rowfilter import RowFilter
from engine.arch.x86_64.rowtexts import RowTexts

_ELEMENTS: Final = 128
"""Most elements of the arrays of one recording: beyond, the code would be long."""
_STRINGS: Final = 8


def record(work: Work, places: DetourPlaces, window: bytes = b"") -> Recorder:
    """The recorder for a place, `window` being what is displaced; raises `NotCompilableError`."""
    return _Maker(work, places, window).make()


class _Maker(RecorderParts):
    def __init__(self, work: Work, places: DetourPlaces, window: bytes) -> None:
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
        bits = any(t.kind is Kind.BITFIELD for kinds in types for t in kinds)
        computes = any(strings) or bits or any(one.filter for one in recordings) or not alone
        self._flags = computes and not overwrites_flags(window)
        self._code = Code()
        self._fetches = Fetches(self._code, places)
        self._fetches.changed.add(RCX)
        arrays = any(t.count for kinds in types for t in kinds)
        used = {RAX, RCX}
        if self.ends is not None:
            used.add(RDX)
            self._fetches.changed.add(RDX)
        if self.enters is not None:
            used |= set(ENTRY_USES)
        if any(strings):
            if alone:
                self._fetches.lent = self._lendable()
            used |= {RDX, RSI, RDI} - self._fetches.lent.keys()
        elif arrays or not all(self._spare(one)[1] for one in recordings):
            used.add(RDX)
        self._saved = {register: SAVED[register] for register in sorted(used)}
        self._fetches.changed.discard(RCX)
        self._lends = -1

    def _lendable(self) -> dict[int, int]:
        """Registers whose values the only row has, to where: they need not be saved."""
        (one, *others) = self.recordings
        found: dict[int, int] = {}
        for field in one.layout.fields if not others else ():
            register = self._fetches.direct(field.arg)
            plain = not field.arg.type.is_string and not field.arg.type.count
            if plain and register in (RDX, RSI, RDI):
                found.setdefault(register, field.word * 8)
        return found

    def make(self) -> Recorder:
        code, save = self._code, self._places.save
        light = self._light()
        code.absolute(save, store=True)
        if light is not None:
            self.count(light.one)
        if self._flags:
            code.raw("9f 0f90c0")  # lahf; seto al
        if light is not None:
            light.emit("passed", "rejected")
            code.label("passed")
        if self._flags:
            code.absolute(save + FLAGS, store=True)
        code.constant(RAX, save)
        for register, offset in self._saved.items():
            if register != RAX:
                code.memory(STORE, register, RAX, offset)
        self._fetches.changed.add(RCX)
        found = self.emit(filtered=light is not None)
        finish = code.label("finish")
        code.constant(RAX, save)
        for register, offset in self._saved.items():
            if register != RAX:
                code.memory(LOAD, register, RAX, offset)
        if self._flags:
            code.absolute(save + FLAGS)
        code.label("rejected")
        if self._flags:
            code.raw("047f 9e")  # add al, 127: sets OF if it was set; sahf
        code.absolute(save)
        lent = {NAMES[register]: offset for register, offset in self._fetches.lent.items()}
        parts = self.parts(found, finish, lent, self._lends)
        saved = {NAMES[register]: offset for register, offset in self._saved.items()}
        return Recorder(code.finished(), saved, parts, finish)

    def _light(self) -> RowFilter | None:
        """The one filter, if it gets along with rax left alone."""
        if len(self.recordings) != 1 or self.ends is not None or self.enters is not None:
            return None
        found = RowFilter(self._fetches, self.recordings[0], "")
        return found if found.one.filter and found.light else None

    # -- parts ----------------------------------------------------------------------------

    def label(self, name: str) -> int:
        """What follows has this name; its offset."""
        return self._code.label(name)

    def go(self, name: str) -> None:
        """Go on at a label."""
        self._code.jump(name)

    def test(self, one: Recording, name: str, passed: str, failed: str) -> None:
        """The filter."""
        RowFilter(self._fetches, one, name).emit(passed, failed)

    def enter(self, work: CallEntry) -> Emitted:
        """The record of a call that begins."""
        return Emitted(*enter(self._fetches, work))

    def check(self, ends: CallReturn, last: str, chained: str) -> int:
        """Whether the newest call has returned: to one of two labels, or the trap given back."""
        code = self._code
        check_return(code, self._places, ends)
        code.jump(last, JE)
        is_chained(code)
        code.jump(chained, JE)
        slow = code.label("slow")
        code.raw("cc")
        return slow

    def forget(self) -> None:
        """The newest call's record goes."""
        forget_call(self._code, self._places)

    def count(self, one: Recording) -> None:
        """A hit is counted."""
        code = self._code
        code.absolute(one.counter)
        code.memory(LEA, RAX, RAX, 1)
        code.absolute(one.counter, store=True)

    # -- a row ----------------------------------------------------------------------------

    def row(self, one: Recording, name: str) -> int:
        """The row; where the engine is asked to record it, -1 for nowhere."""
        code, places, fetches = self._code, self._places, self._fetches
        fetches.start_of_row(RCX)
        fields = sorted(one.layout.fields, key=self._late)
        for field in fields:
            if not field.arg.type.is_string:
                self._number(field, one)
        spare, kept = self._spare(one)
        code.constant(spare, places.time)
        code.memory(LOAD, RAX, spare, 8)
        code.raw("48f7d0")  # not rax
        code.memory(LOAD, spare, spare, 0)
        code.sum(RAX, RAX, spare, 1)
        code.memory(STORE, RAX, RCX, 8)
        texts = _texts(one)
        # Strings change it anyway: it is given back behind them, if the first is not found by it.
        if spare in fetches.lent and texts[0].arg.base.register != NAMES[spare]:
            fetches.changed.add(spare)
            self._lends = code.label("lends")
        elif kept:
            code.memory(LOAD, spare, RCX, kept)
        else:
            fetches.changed.add(spare)
        if self.ends is not None:
            code.constant(RAX, self.ends.site)
            code.memory(STORE, RAX, RCX, 24)
        if self.ends is not None and self.ends.of_call:
            code.absolute(places.calls)
            code.memory(LOAD, RAX, RAX, CallWord.FUNCTION * 8)
        else:
            code.constant(RAX, one.address)
        code.memory(STORE, RAX, RCX, 16)
        size = one.layout.words * 8
        if not texts:
            code.absolute(places.thread)
            fetches.add(RAX, one.event | one.layout.words << 16)
            code.memory(STORE, RAX, RCX, 0)
            fetches.add(RCX, size)
            fetches.move_cursor()
            return -1
        fetches.add(RCX, size)
        if fetches.lent and self._lends < 0:
            self._lends = code.label("lends")
        copies = RowTexts(fetches, one, name)
        copies.add(texts)
        code.raw("488d4907 4883e1f8")  # lea rcx, [rcx+7]; and rcx, -8
        code.two(0x89, RCX, RAX)
        code.two(0x29, RDX, RAX)  # sub rax, rdx
        code.shift(4, RAX, 13)
        code.constant(RSI, places.thread)
        code.memory(LOAD, RSI, RSI, 0)
        code.two(0x09, RSI, RAX)  # or rax, rsi
        fetches.add(RAX, one.event)
        code.memory(STORE, RAX, RDX, 0)
        for register, offset in sorted(fetches.lent.items(), key=lambda item: item[0] == RDX):
            code.memory(LOAD, register, RDX, offset)
        fetches.move_cursor()
        return copies.slow

    def _spare(self, one: Recording) -> tuple[int, int]:
        """A register to compute the time with, and where the row has its value (0: it is saved).

        Nothing faults until it is given back: what is stored meanwhile lies below that word.
        """
        for field in one.layout.fields:
            register = self._fetches.direct(field.arg)
            if register is not None and not field.arg.type.count:
                return register, field.word * 8
        return RDX, 0

    def _late(self, field: RecordField) -> bool:
        """Registers come first, while they still have their own values."""
        return self._fetches.direct(field.arg) is None

    def _number(self, field: RecordField, one: Recording) -> None:
        arg, code, fetches = field.arg, self._code, self._fetches
        if arg.type.count:
            offset = fetches.address(arg, one)
            fetches.changed.add(RDX)
            for index in range(arg.type.count):
                code.load(RDX, RAX, offset + index * arg.type.size, arg.type.size)
                fetches.bits(arg, RDX)
                code.memory(STORE, RDX, RCX, (field.word + index) * 8)
            return
        register = fetches.direct(arg)
        if register is None:
            fetches.value(arg, one)
            register = RAX
        code.memory(STORE, register, RCX, field.word * 8)


def _texts(one: Recording) -> list[RecordField]:
    """Fields whose bytes stand behind the row's words."""
    sources = (Source.COMM, Source.TEXT)
    return [f for f in one.layout.fields if f.arg.type.is_string or f.arg.base.source in sources]

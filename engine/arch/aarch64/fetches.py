"""Fetch arguments as AArch64 code: values and addresses in x17; x16 changes at any time.

Flags are left alone. An argument that is in a register which the recorder has changed by then is
read from where it was saved.
"""

from typing import Final

from engine.arch.aarch64.emit import ADD, BASE, SP, SUB, VALUE, Code
from engine.arch.program import FetchArg, Kind, Source
from engine.arch.recording import (
    CALLS,
    CURSOR,
    CallEntry,
    DetourPlaces,
    NotCompilableError,
    Recording,
)

ROW: Final = 15
"""Where the row stands, once it is begun."""
SAVED: Final = {ROW: 8, 14: 16, 13: 24, 12: 32, 11: 40}
"""Where each is kept in the save area."""


class Fetches:
    """Emits what arguments fetch.

    Attributes:
        code: what it is added to.
        places: what stands where.
        changed: registers that no longer have the program's own values.
        lent: those of them that are not saved, to where the row has their values.
        call: (register, offset from it) of the record that `Source.CALL` reads; None for the
            newest call's.
    """

    def __init__(self, code: Code, places: DetourPlaces) -> None:
        self.code = code
        self.places = places
        self.changed = {BASE, VALUE}
        self.lent: dict[int, int] = {}
        self.call: tuple[int, int] | None = None

    def save_area(self) -> None:
        """Its address in x16."""
        self.code.constant(BASE, self.places.save)

    def direct(self, arg: FetchArg) -> int | None:
        """A register that holds the value as it is, but for bytes above its size."""
        if arg.derefs or arg.type.kind is Kind.BITFIELD:
            return None
        number = _register(arg)
        return None if number is None or number in self.changed or number == SP else number

    def value(self, arg: FetchArg, one: Recording | CallEntry) -> None:
        """The value of a number in x17."""
        if arg.derefs or arg.base.source in (Source.ADDRESS, Source.IMAGE):
            self.code.load(VALUE, VALUE, self.address(arg, one), arg.type.size)
        else:
            self._base(arg, one)
        self.bits(arg, VALUE)

    def bits(self, arg: FetchArg, register: int) -> None:
        """The bits of a bitfield out of its word."""
        if arg.type.kind is not Kind.BITFIELD:
            return
        low, width = arg.type.offset, arg.type.width
        if low + width > 64:
            raise NotCompilableError("a bitfield of more than 64 bits")
        self.code.add(0xD3400000 | low << 16 | low + width - 1 << 10 | register << 5 | register)

    def address(self, arg: FetchArg, one: Recording | CallEntry) -> int:
        """Where the element stands is x17 plus what this returns."""
        derefs = arg.derefs
        if arg.base.source in (Source.ADDRESS, Source.IMAGE):
            derefs = (0, *derefs)
        if not derefs:
            raise NotCompilableError(f"{arg.text}: nothing in memory")
        self._base(arg, one)
        for offset in derefs[:-1]:
            self.code.load(VALUE, VALUE, offset)
        return derefs[-1]

    def at_address(self, arg: FetchArg, one: Recording | CallEntry) -> None:
        """Where the element stands, in x17."""
        offset = self.address(arg, one)
        if 0 <= offset < 4096:
            self.code.plus(VALUE, offset)
        else:
            self.code.constant(BASE, offset)
            self.code.three(ADD, VALUE, VALUE, BASE)

    def _base(self, arg: FetchArg, one: Recording | CallEntry) -> None:
        base, code = arg.base, self.code
        number = _register(arg)
        if number in self.lent and number in self.changed:
            code.load(VALUE, ROW, self.lent[number])
        elif number in SAVED and number in self.changed:
            self.save_area()
            code.load(VALUE, BASE, SAVED[number])
        elif number is not None and (number == SP or number not in self.changed):
            code.move(VALUE, number)
        elif base.source in (Source.IMMEDIATE, Source.ADDRESS):
            code.constant(VALUE, base.value)
        elif base.source is Source.IMAGE:
            code.constant(VALUE, base.value + one.image_base)
        elif base.source is Source.CALL:
            self._of_call(base.value)
        elif base.source is Source.DURATION:
            self._of_call(base.value)
            code.constant(BASE, self.places.time)
            code.load(BASE, BASE, 8)
            code.three(ADD, VALUE, VALUE, BASE)
            code.constant(BASE, self.places.time)
            code.load(BASE, BASE, 0)
            code.three(SUB, VALUE, BASE, VALUE)  # what is now, without what was then
        elif base.source is Source.STACK:
            code.load(VALUE, SP, base.value * 8)
        elif base.source is Source.REGISTER and base.register == "pc":
            code.constant(VALUE, one.pc)
        elif base.source is Source.REGISTER:
            raise NotCompilableError(f"{arg.text}: register {base.register}")
        else:
            raise NotCompilableError(f"{arg.text}: {base.source.value}")

    def _of_call(self, word: int) -> None:
        """A word of a pending call's record."""
        register, offset = self.call or (VALUE, 0)
        if self.call is None:
            self.save_area()
            self.code.load(VALUE, BASE, CALLS)
        self.code.load(VALUE, register, offset + word * 8)

    def start_of_row(self) -> None:
        """The row's address in x15."""
        self.save_area()
        self.code.load(ROW, BASE, CURSOR)
        self.code.constant(VALUE, self.places.ring)
        self.code.three(ADD, ROW, ROW, VALUE)


def _register(arg: FetchArg) -> int | None:
    source, name = arg.base.source, arg.base.register
    if source is Source.RETVAL:
        return 0
    if source is Source.STACK_POINTER or (source is Source.REGISTER and name == "sp"):
        return SP
    if source is not Source.REGISTER or not name.startswith("x"):
        return None
    return int(name[1:])

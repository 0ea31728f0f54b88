"""Fetch arguments as x86-64 code: values and addresses in rax.

rax and rcx are the recorder's at any time; an argument that is one of them, or another register
that the recorder has changed by then, is read from where it was saved.
"""

from typing import Final

from engine.arch.program import FetchArg, Kind, Source
from engine.arch.recording import CallEntry, DetourPlaces, NotCompilableError, Recording
from engine.arch.x86_64.emit import LEA, LOAD, RAX, RCX, RDI, RDX, RSI, RSP, Code
from engine.arch.x86_64.operations import NAMES

SAVED: Final = {RAX: 0, RCX: 8, RDX: 16, RSI: 24, RDI: 32}
"""Where each is kept in the save area."""


class Fetches:
    """Emits what arguments fetch.

    Attributes:
        code: what it is added to.
        places: what stands where.
        changed: registers that no longer have the program's own values.
        lent: those of them that are not saved, to where the row has their values; it is in rdx
            whenever they have been changed.
        call: (register, offset from it) of the record that `Source.CALL` reads; None for the
            newest call's.
    """

    def __init__(self, code: Code, places: DetourPlaces) -> None:
        self.code = code
        self.places = places
        self.changed = {RAX}
        self.lent: dict[int, int] = {}
        self.call: tuple[int, int] | None = None

    def direct(self, arg: FetchArg) -> int | None:
        """A register that holds the value as it is, but for bytes above its size."""
        if arg.derefs or arg.type.kind is Kind.BITFIELD:
            return None
        number = _register(arg)
        return None if number is None or number in self.changed or number == RSP else number

    def value(self, arg: FetchArg, one: Recording | CallEntry) -> None:
        """The value of a number."""
        if arg.derefs or arg.base.source in (Source.ADDRESS, Source.IMAGE):
            self.code.load(RAX, RAX, self.address(arg, one), arg.type.size)
        else:
            self._base(arg, one)
        self.bits(arg, RAX)

    def bits(self, arg: FetchArg, register: int) -> None:
        """The bits of a bitfield out of its word; flags change."""
        if arg.type.kind is not Kind.BITFIELD:
            return
        left = 64 - arg.type.offset - arg.type.width
        if left < 0:
            raise NotCompilableError("a bitfield of more than 64 bits")
        self.code.shift(4, register, left)
        self.code.shift(5, register, 64 - arg.type.width)

    def address(self, arg: FetchArg, one: Recording | CallEntry) -> int:
        """Where the element stands is rax plus what this returns."""
        derefs = arg.derefs
        if arg.base.source in (Source.ADDRESS, Source.IMAGE):
            derefs = (0, *derefs)
        if not derefs:
            raise NotCompilableError(f"{arg.text}: nothing in memory")
        self._base(arg, one)
        for offset in derefs[:-1]:
            self.code.memory(LOAD, RAX, RAX, offset)
        return derefs[-1]

    def _base(self, arg: FetchArg, one: Recording | CallEntry) -> None:
        base, code = arg.base, self.code
        number = _register(arg)
        if number is not None:
            if number in self.lent and number in self.changed:
                code.memory(LOAD, RAX, RDX, self.lent[number])
            elif number in self.changed:
                code.absolute(self.places.save + SAVED[number])
            elif number != RAX:
                code.two(0x89, number, RAX)
        elif base.source in (Source.IMMEDIATE, Source.ADDRESS):
            code.constant(RAX, base.value)
        elif base.source is Source.IMAGE:
            code.constant(RAX, base.value + one.image_base)
        elif base.source is Source.CALL:
            self._of_call(base.value)
        elif base.source is Source.DURATION:
            self._of_call(base.value)
            code.two(0x89, RAX, RDX)
            code.absolute(self.places.time + 8)
            code.two(0x01, RAX, RDX)
            code.absolute(self.places.time)
            code.two(0x29, RDX, RAX)  # sub rax, rdx: what is now, without what was then
        elif base.source is Source.STACK:
            code.memory(LOAD, RAX, RSP, base.value * 8)
        elif base.source is Source.REGISTER and base.register == "rip":
            code.constant(RAX, one.pc)
        elif base.source is Source.REGISTER:
            raise NotCompilableError(f"{arg.text}: register {base.register}")
        else:
            raise NotCompilableError(f"{arg.text}: {base.source.value}")

    def _of_call(self, word: int) -> None:
        """A word of a pending call's record."""
        if self.call is None:
            self.code.absolute(self.places.calls)
            self.code.memory(LOAD, RAX, RAX, word * 8)
        else:
            register, offset = self.call
            self.code.memory(LOAD, RAX, register, offset + word * 8)

    def start_of_row(self, register: int) -> None:
        """The row's address in a register; rax changes."""
        code = self.code
        code.absolute(self.places.cursor)
        code.constant(register, self.places.ring)
        code.sum(register, register, RAX)

    def move_cursor(self) -> None:
        """The row ends in front of rcx; all of it stands there."""
        code = self.code
        code.constant(RAX, -self.places.ring)
        code.sum(RAX, RAX, RCX)
        code.absolute(self.places.cursor, store=True)

    def add(self, register: int, value: int) -> None:
        """Add to a register, without flags."""
        if value:
            self.code.memory(LEA, register, register, value)


def _register(arg: FetchArg) -> int | None:
    source = arg.base.source
    if source is Source.RETVAL:
        return RAX
    if source is Source.STACK_POINTER:
        return RSP
    if source is not Source.REGISTER or arg.base.register not in NAMES:
        return None
    return NAMES.index(arg.base.register)

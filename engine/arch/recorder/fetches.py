"""Fetch arguments as code: values and addresses in the register for values."""

from engine.arch.program import FetchArg, Source, ValueKind
from engine.arch.recorder.encoder import Combination, Encoder
from engine.arch.recording import CallEntry, DetourPlaces, NotCompilableError, Recording


class Fetches:
    """Emits what arguments fetch.

    An argument in a register that the recorder has changed by then is read from where that was
    saved, or from the row.

    Attributes:
        encoder: what it is added to.
        places: what stands where.
        slots: registers to where they are saved in the save area, if they are used.
        changed: registers that no longer have the program's own values.
        lent: those of them that are not saved, to where the row has their values.
        call: (register, offset from it) of the record that `Source.CALL` reads; None for the
            newest call's.
    """

    def __init__(self, encoder: Encoder, places: DetourPlaces) -> None:
        """Nothing is changed but `value` and what any operation may change."""
        self.encoder = encoder
        self.places = places
        self._registers = registers = encoder.registers
        used = (registers.value, registers.row, *registers.others)
        self.slots = {register: 8 * at for at, register in enumerate(used)}
        self.slots |= registers.entered
        self.changed = {registers.value}
        if registers.temporary is not None:
            self.changed.add(registers.temporary)
        self.lent: dict[int, int] = {}
        self.call: tuple[int, int] | None = None

    def direct(self, arg: FetchArg) -> int | None:
        """The register that holds the value as it is, but for bytes above its size."""
        if arg.derefs or arg.type.width:
            return None
        number = self._register(arg)
        if number in self.changed or number == self._registers.sp:
            return None
        return number

    def value(self, arg: FetchArg, one: Recording | CallEntry) -> None:
        """The value of a number."""
        value = self._registers.value
        if arg.derefs or arg.base.source in (Source.ADDRESS, Source.IMAGE):
            self.encoder.load(value, value, self.address(arg, one), arg.type.size)
        else:
            self._base(arg, one)
        self.bits(arg, value)

    def bits(self, arg: FetchArg, register: int) -> None:
        """The bits of a bitfield out of its word."""
        if not arg.type.width:
            return
        if arg.type.offset + arg.type.width > 64:
            raise NotCompilableError("a bitfield of more than 64 bits")
        signed = arg.type.kind is ValueKind.SIGNED
        self.encoder.extract(register, register, arg.type.offset, arg.type.width, signed=signed)

    def address(self, arg: FetchArg, one: Recording | CallEntry) -> int:
        """The element's address, but for an offset that is returned."""
        value, derefs = self._registers.value, arg.derefs
        if arg.base.source in (Source.ADDRESS, Source.IMAGE):
            derefs = (0, *derefs)
        if not derefs:
            raise NotCompilableError(f"{arg.text}: nothing in memory")
        self._base(arg, one)
        for offset in derefs[:-1]:
            self.encoder.load(value, value, offset)
        return derefs[-1]

    def start_of_row(self) -> None:
        """The row's address in its register; `value` changes."""
        encoder, row, value = self.encoder, self._registers.row, self._registers.value
        encoder.read(value, self.places.cursor)
        encoder.constant(row, self.places.ring)
        encoder.combine(Combination.ADD, row, row, value)

    def end_of_row(self, end: int, size: int) -> None:
        """Move the ring's cursor to a register plus `size`; `value` changes."""
        encoder, value = self.encoder, self._registers.value
        encoder.constant(value, size - self.places.ring)
        encoder.combine(Combination.ADD, value, value, end)
        encoder.write(self.places.cursor)

    def _base(self, arg: FetchArg, one: Recording | CallEntry) -> None:
        base, encoder, registers = arg.base, self.encoder, self._registers
        number, value = self._register(arg), registers.value
        if number is not None and number not in self.changed:
            encoder.move(value, number)
        elif number in self.lent:
            encoder.load(value, registers.row, self.lent[number])
        elif number in self.slots and number not in registers.free:
            encoder.read(value, self.places.save + self.slots[number])
        elif base.source in (Source.IMMEDIATE, Source.ADDRESS):
            encoder.constant(value, base.value)
        elif base.source is Source.IMAGE:
            encoder.constant(value, base.value + one.image_base)
        elif base.source is Source.CALL:
            self._of_call(base.value)
        elif base.source is Source.DURATION:
            self._of_call(base.value)
            self._elapsed()
        elif base.source is Source.VECTOR and base.register in registers.vectors:
            encoder.move_vector(value, registers.vectors[base.register])
        elif base.source is Source.STACK:
            encoder.load(value, registers.sp, base.value * 8)
        elif base.source is Source.REGISTER and base.register == registers.pc:
            encoder.constant(value, one.pc)
        elif base.source is Source.REGISTER:
            raise NotCompilableError(f"{arg.text}: register {base.register}")
        else:
            raise NotCompilableError(f"{arg.text}: {base.source.value}")

    def _of_call(self, word: int) -> None:
        """A word of a pending call's record."""
        register, offset = self.call or (self._registers.value, 0)
        if self.call is None:
            self.encoder.read(register, self.places.calls)
        self.encoder.load(self._registers.value, register, offset + word * 8)

    def _elapsed(self) -> None:
        """The time without that in `value`; a register changes that is saved for returns."""
        encoder, value, other = self.encoder, self._registers.value, self._registers.others[0]
        encoder.read(other, self.places.time + 8)
        encoder.combine(Combination.ADD, value, value, other)
        encoder.read(other, self.places.time)
        encoder.combine(Combination.SUB, value, other, value)

    def _register(self, arg: FetchArg) -> int | None:
        source, registers = arg.base.source, self._registers
        if source is Source.RETVAL:
            return registers.result
        if source is Source.STACK_POINTER:
            return registers.sp
        return registers.names.get(arg.base.register) if source is Source.REGISTER else None

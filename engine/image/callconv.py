"""Places of a function's parameters at its first instruction, by the calling convention.

Optimised code describes it in its location lists. Unoptimised code describes where parameters
will be once the prologue has stored them: at the entry only the convention knows
(`engine.arch.abi.CallConvention`).
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.arch.abi import CallConvention
from engine.arch.abivalues import Bank, RegisterPart, Scalar, ValueShape
from engine.image.datatypes import DataType, TypeKind
from engine.image.expressions import Term, VariableLocation, Where, nowhere
from engine.image.rust_passing import RUST, rust_parts
from engine.image.valueshapes import LARGEST, UnknownShapeError, shape_of

_VECTOR: Final = nowhere("is passed in a vector register, which probes do not record")
_HALF: Final = nowhere("is passed in the upper half of a register")
_UNKNOWN: Final = nowhere("is passed in a way that is not known here")
_PADDING: Final = VariableLocation(Where.VALUE)
_NOTHING: Final = VariableLocation(Where.VALUE)
_WORD: Final = 8
_LONGEST_SCALAR: Final = 16


def entry_locations(
    convention: CallConvention,
    parameters: Sequence[DataType],
    returns: DataType,
    language: int,
    *,
    vectors: bool = False,
) -> list[VariableLocation]:
    """The place of each parameter; one that cannot be told, and all that follow, are nowhere.

    Args:
        convention: the calling convention.
        parameters: types in their order.
        returns: type of the result.
        language: DW_LANG_* of the function.
        vectors: tell of vector registers, which probes of the kernel's language do not record.
    """
    state = _TakenSlots(convention, tells_vectors=vectors)
    if convention.hidden_result and _is_in_memory(convention, returns, language):
        state.general += 1
    found: list[VariableLocation] = []
    for kind in parameters:
        where = state.place(kind, language)
        found.append(where)
        if where is _UNKNOWN:
            found += [_UNKNOWN] * (len(parameters) - len(found))
            break
    return found


def _is_in_memory(convention: CallConvention, returns: DataType, language: int) -> bool:
    """True for a result that the caller gives room for."""
    try:
        if not returns.size:
            return False
        if language == RUST and returns.kind is TypeKind.RECORD:
            return rust_parts(returns, is_result=True) is None
        return convention.divide(shape_of(returns)) is None
    except UnknownShapeError:
        return False


class _TakenSlots(Struct):
    """Registers and stack that are taken so far."""

    convention: CallConvention
    tells_vectors: bool = False
    general: int = 0
    vectors: int = 0
    stack: int = 0

    def place(self, kind: DataType, language: int) -> VariableLocation:
        """The next parameter's place."""
        if kind.kind in (TypeKind.VOID, TypeKind.OTHER, TypeKind.FUNCTION):
            return _UNKNOWN
        if kind.kind is TypeKind.ARRAY and not kind.is_vector:
            return _UNKNOWN
        try:
            if language == RUST and kind.kind is TypeKind.RECORD:
                return self._rust(kind)
            return self._value(kind, shape_of(kind))
        except UnknownShapeError:
            return _UNKNOWN

    def _rust(self, kind: DataType) -> VariableLocation:
        """A structure of Rust, by what its compiler does; none has promised that."""
        if kind.size == 0:
            return _NOTHING
        parts = rust_parts(kind)
        if parts is None:
            return self._pointer()
        found = []
        for part in parts:
            if part.bank is Bank.FLOAT:
                found.append(self._float(part.size))
            else:
                found.append(self._words(1, part.size))
        return _together(parts, found, kind.size or 0)

    def _value(self, kind: DataType, shape: ValueShape) -> VariableLocation:
        convention = self.convention
        if shape.by_reference:
            return self._pointer()
        if not shape.size or (not shape.scalars and shape.size <= LARGEST):
            return self._empty(shape.size)
        parts = convention.divide(shape)
        if convention.slots and parts is not None:
            return self._in_slots(parts, shape.size, is_wide=any(map(_is_wide, shape.scalars)))
        if parts is None and convention.by_reference:
            return self._pointer()
        wide = any(_is_wide(one) for one in shape.scalars)
        if kind.kind is TypeKind.RECORD:
            wide = wide or any(one.alignment >= _LONGEST_SCALAR for one in kind.members)
        if parts is None or any(part.bank is Bank.X87 for part in parts):
            return self._on_stack(shape.size, is_wide=wide)
        return self._divided(parts, shape.size, is_wide=wide)

    def _empty(self, size: int) -> VariableLocation:
        """A structure with nothing in it: in C++ it has a byte, which some conventions pass."""
        if not size or not self.convention.by_reference:
            return _NOTHING
        return self._words(1, size)

    def _float(self, size: int) -> VariableLocation:
        if self.vectors < len(self.convention.vectors):
            return self._vector()
        return self._words(1, size) if self.convention.overflows else self._on_stack(size)

    def _vector(self) -> VariableLocation:
        """The next vector register."""
        number = self.convention.vectors[self.vectors]
        self.vectors += 1
        if not self.tells_vectors:
            return _VECTOR
        return VariableLocation(Where.REGISTER, register=number)

    def _words(self, count: int, size: int, *, is_wide: bool = False) -> VariableLocation:
        """So many registers, or all of it on the stack, or half of it."""
        registers = self.convention.general
        if is_wide and count > 1 and self.convention.evens:
            self.general += self.general % 2
        if self.general + count > len(registers):
            if self.convention.straddles and self.general < len(registers):
                last = VariableLocation(Where.REGISTER, register=registers[-1])
                self.general = len(registers)
                rest = self._on_stack(size - _WORD)
                return VariableLocation(Where.PIECES, pieces=((_WORD, last), (_WORD, rest)))
            if self.convention.skips:
                self.general = len(registers)  # AAPCS64, C.13: none is used afterwards
            return self._on_stack(size, is_wide=is_wide)
        taken = registers[self.general : self.general + count]
        self.general += count
        if count == 1:
            return VariableLocation(Where.REGISTER, register=taken[0])
        parts = tuple(
            (_WORD, VariableLocation(Where.REGISTER, register=number)) for number in taken
        )
        return VariableLocation(Where.PIECES, pieces=parts)

    def _in_slots(
        self, parts: Sequence[RegisterPart], size: int, *, is_wide: bool
    ) -> VariableLocation:
        """A value in the row of words; each floating-point number has a register besides."""
        self.general += self.general % 2 if is_wide else 0
        first = self.general
        self.general += -(-size // _WORD)
        found = [self._in_slot(part, first * _WORD + part.offset) for part in parts]
        if all(where.where is Where.MEMORY for where in found):
            return found[0]
        return _together(parts, found, size)

    def _in_slot(self, part: RegisterPart, at: int) -> VariableLocation:
        """A part of a value, so many bytes into the row."""
        general = self.convention.general
        slot, half = divmod(at, _WORD)
        if slot >= len(general):
            register, first = self.convention.stack
            return VariableLocation(
                Where.MEMORY, Term(register, offset=first + at - len(general) * _WORD)
            )
        if part.bank is Bank.FLOAT and self.vectors < len(self.convention.vectors):
            return self._vector()
        return _HALF if half else VariableLocation(Where.REGISTER, register=general[slot])

    def _on_stack(self, size: int, *, is_wide: bool = False) -> VariableLocation:
        register, first = self.convention.stack
        if is_wide:
            self.stack = -(-self.stack // _LONGEST_SCALAR) * _LONGEST_SCALAR
        where = VariableLocation(Where.MEMORY, Term(register, offset=first + self.stack))
        self.stack += -(-max(size, 1) // _WORD) * _WORD
        return where

    def _divided(
        self, parts: Sequence[RegisterPart], size: int, *, is_wide: bool
    ) -> VariableLocation:
        """Each part in a register of its bank, if there are enough of all."""
        convention = self.convention
        vectors = sum(part.bank is Bank.FLOAT for part in parts)
        general = len(parts) - vectors
        if not vectors:
            return self._words(general, size, is_wide=is_wide)
        free = len(convention.general) - self.general
        if general > free or self.vectors + vectors > len(convention.vectors):
            if convention.overflows:
                return self._words(-(-size // _WORD), size)
            if convention.skips:
                self.vectors = len(convention.vectors)
            return self._on_stack(size, is_wide=is_wide)
        found = [
            self._vector() if part.bank is Bank.FLOAT else self._words(1, part.size)
            for part in parts
        ]
        return _together(parts, found, size)

    def _pointer(self) -> VariableLocation:
        pointer = self._words(1, _WORD)
        if pointer.where is Where.REGISTER:
            return VariableLocation(Where.MEMORY, Term(pointer.register))
        return VariableLocation(Where.MEMORY, pointer.term.loaded())


def _is_wide(scalar: Scalar) -> bool:
    """True for a scalar that wants an address of 16 bytes."""
    return scalar.size >= _LONGEST_SCALAR and not scalar.is_bitfield


def _together(
    parts: Sequence[RegisterPart], places: Sequence[VariableLocation], size: int
) -> VariableLocation:
    """The place of a value from those of its parts."""
    ends = [*(part.offset for part in parts[1:]), size]
    pieces = [(parts[0].offset, _PADDING)] if parts[0].offset else []
    for part, where, end in zip(parts, places, ends, strict=True):
        pieces.append((end - part.offset, where))
    if len(pieces) == 1:
        return pieces[0][1]
    return VariableLocation(Where.PIECES, pieces=tuple(pieces))

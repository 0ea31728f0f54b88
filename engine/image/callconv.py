"""Places of a function's parameters at its first instruction, by the calling convention.

Optimised code describes it in its location lists. Unoptimised code describes where parameters
will be once the prologue has stored them: at the entry only the convention knows
(`engine.arch.abi.CallConvention`).
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.arch.abi import CallConvention
from engine.arch.abivalues import Bank, RegisterPart
from engine.image.datatypes import DataType, TypeKind
from engine.image.expressions import Term, VariableLocation, Where, nowhere
from engine.image.valueshapes import LARGEST, UnknownShapeError, shape_of

_RUST: Final = 0x1C
_VECTOR: Final = nowhere("is passed in a vector register, which probes do not record")
_UNKNOWN: Final = nowhere("is passed in a way that is not known here")
_PADDING: Final = nowhere("is padding")
_WORD: Final = 8


def entry_locations(
    convention: CallConvention, parameters: Sequence[DataType], returns: DataType, language: int
) -> list[VariableLocation]:
    """The place of each parameter; one that cannot be told, and all that follow, are nowhere."""
    state = _TakenSlots(convention)
    if convention.hidden_result and _is_in_memory(convention, returns):
        state.general += 1
    found: list[VariableLocation] = []
    for kind in parameters:
        where = state.place(kind, language)
        found.append(where)
        if where is _UNKNOWN:
            found += [_UNKNOWN] * (len(parameters) - len(found))
            break
    return found


def _is_in_memory(convention: CallConvention, returns: DataType) -> bool:
    """True for a result that the caller gives room for."""
    try:
        return bool(returns.size) and convention.divide(shape_of(returns)) is None
    except UnknownShapeError:
        return False


class _TakenSlots(Struct):
    """Registers and stack that are taken so far."""

    convention: CallConvention
    general: int = 0
    vectors: int = 0
    stack: int = 0

    def place(self, kind: DataType, language: int) -> VariableLocation:
        """The next parameter's place."""
        match kind.kind:
            case TypeKind.RECORD | TypeKind.COMPLEX:
                return self._record(kind, language)
            case TypeKind.FLOAT:
                return self._float(kind.size or 0)
            case TypeKind.VOID | TypeKind.OTHER | TypeKind.FUNCTION | TypeKind.ARRAY:
                return _UNKNOWN
            case _:
                size = kind.size
                if size is None or size > _WORD:
                    return _UNKNOWN  # __int128: pairs of registers, aligned
                return self._words(1, size)

    def _float(self, size: int) -> VariableLocation:
        if size not in (4, 8):
            return _UNKNOWN
        if self.vectors < self.convention.vectors:
            self.vectors += 1
            return _VECTOR
        return self._words(1, size) if self.convention.overflows else self._on_stack(size)

    def _words(self, count: int, size: int) -> VariableLocation:
        """So many registers, or all of it on the stack, or half of it."""
        registers = self.convention.general
        if self.general + count > len(registers):
            if self.convention.straddles and self.general < len(registers):
                last = VariableLocation(Where.REGISTER, register=registers[-1])
                self.general = len(registers)
                rest = self._on_stack(size - _WORD)
                return VariableLocation(Where.PIECES, pieces=((_WORD, last), (_WORD, rest)))
            if self.convention.skips:
                self.general = len(registers)  # AAPCS64, C.13: none is used afterwards
            return self._on_stack(size)
        taken = registers[self.general : self.general + count]
        self.general += count
        if count == 1:
            return VariableLocation(Where.REGISTER, register=taken[0])
        parts = tuple(
            (_WORD, VariableLocation(Where.REGISTER, register=number)) for number in taken
        )
        return VariableLocation(Where.PIECES, pieces=parts)

    def _on_stack(self, size: int) -> VariableLocation:
        register, first = self.convention.stack
        where = VariableLocation(Where.MEMORY, Term(register, offset=first + self.stack))
        self.stack += -(-max(size, 1) // _WORD) * _WORD
        return where

    def _record(self, kind: DataType, language: int) -> VariableLocation:
        try:
            shape = shape_of(kind)
        except UnknownShapeError:
            return _UNKNOWN
        if shape.by_reference:
            return self._pointer()
        if not shape.size or (not shape.scalars and shape.size <= LARGEST):
            return _UNKNOWN
        if language == _RUST and [one.size for one in shape.scalars] != [_WORD, _WORD]:
            return _UNKNOWN  # Rust's own convention is not fixed; slices are two words
        parts = self.convention.divide(shape)
        if parts is None and self.convention.by_reference:
            return self._pointer()
        wide = any(one.size > _WORD and not one.is_bitfield for one in shape.scalars)
        if parts is None or any(part.bank is Bank.X87 for part in parts):
            return _UNKNOWN if wide else self._on_stack(shape.size)
        banks = [part.bank for part in parts]
        if wide and Bank.GENERAL in banks:
            return _UNKNOWN  # pairs of registers, aligned
        return self._divided(parts, shape.size)

    def _divided(self, parts: Sequence[RegisterPart], size: int) -> VariableLocation:
        """Each part in a register of its bank, if there are enough of all."""
        convention = self.convention
        vectors = sum(part.bank is Bank.FLOAT for part in parts)
        general = len(parts) - vectors
        if not vectors:
            return self._words(general, size)
        free = len(convention.general) - self.general
        if general > free or self.vectors + vectors > convention.vectors:
            if convention.overflows:
                return self._words(-(-size // _WORD), size)
            if convention.skips:
                self.vectors = convention.vectors
            return self._on_stack(size)
        ends = [*(part.offset for part in parts[1:]), size]
        pieces = [(parts[0].offset, _PADDING)] if parts[0].offset else []
        for part, end in zip(parts, ends, strict=True):
            if part.bank is Bank.FLOAT:
                self.vectors += 1
                where = _VECTOR
            else:
                where = self._words(1, part.size)
            pieces.append((end - part.offset, where))
        if len(pieces) == 1:
            return pieces[0][1]
        return VariableLocation(Where.PIECES, pieces=tuple(pieces))

    def _pointer(self) -> VariableLocation:
        pointer = self._words(1, _WORD)
        if pointer.where is Where.REGISTER:
            return VariableLocation(Where.MEMORY, Term(pointer.register))
        return VariableLocation(Where.MEMORY, pointer.term.loaded())

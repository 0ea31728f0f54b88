"""Places of a function's parameters at its first instruction, by the calling convention.

Optimised code describes it in its location lists. Unoptimised code describes where parameters
will be once the prologue has stored them: at the entry only the convention knows
(`engine.arch.abi.CallConvention`).
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.arch.abi import CallConvention, SmallRecords
from engine.image.datatypes import DataType, TypeKind
from engine.image.expressions import Term, VariableLocation, Where, nowhere

_RUST: Final = 0x1C
_VECTOR: Final = nowhere("is passed in a vector register, which probes do not record")
_UNKNOWN: Final = nowhere("is passed in a way that is not known here")
_WORD: Final = 8
_MAX_LEAVES: Final = 16
_MAX_PARTS: Final = 1024
"""Parts of a structure that are looked at; a damaged one may contain itself."""


def entry_locations(
    convention: CallConvention, parameters: Sequence[DataType], returns: DataType, language: int
) -> list[VariableLocation]:
    """The place of each parameter; one that cannot be told, and all that follow, are nowhere."""
    state = _TakenSlots(convention)
    if convention.hidden_result and _is_big(returns):
        state.general += 1
    found: list[VariableLocation] = []
    for kind in parameters:
        where = state.place(kind, language)
        found.append(where)
        if where is _UNKNOWN:
            found += [_UNKNOWN] * (len(parameters) - len(found))
            break
    return found


def _is_big(kind: DataType) -> bool:
    if kind.kind is not TypeKind.RECORD:
        return False
    return kind.is_passed_by_reference or (kind.size or 0) > 2 * _WORD


class _TakenSlots(Struct):
    """Registers and stack that are taken so far."""

    convention: CallConvention
    general: int = 0
    vectors: int = 0
    stack: int = 0

    def place(self, kind: DataType, language: int) -> VariableLocation:
        """The next parameter's place."""
        match kind.kind:
            case TypeKind.RECORD:
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
            if self.convention.records is not SmallRecords.BY_WORD:
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
        if kind.is_passed_by_reference:
            return self._pointer()
        size = kind.size
        leaves = _leaves(kind)
        if not size or not leaves:
            return _UNKNOWN
        if language == _RUST and [leaf.size for _, leaf in leaves] != [_WORD, _WORD]:
            return _UNKNOWN  # Rust's own convention is not fixed; slices are two words
        floats = [leaf.kind is TypeKind.FLOAT for _, leaf in leaves]
        if size > 2 * _WORD:
            if self.convention.by_reference:
                whole = self.convention.records is SmallRecords.WHOLE
                if whole and all(floats) and len(floats) <= 4:
                    return self._vectors(len(floats), size)
                return self._pointer()
            return self._on_stack(size)
        match self.convention.records:
            case SmallRecords.BY_WORD:
                return self._split(leaves, size)
            case SmallRecords.BY_FIELD if any(floats) and len(leaves) <= 2:
                return self._by_field(leaves, size)
            case SmallRecords.WHOLE if all(floats):
                return self._vectors(len(floats), size)
        return self._words(-(-size // _WORD), size)

    def _pointer(self) -> VariableLocation:
        pointer = self._words(1, _WORD)
        if pointer.where is Where.REGISTER:
            return VariableLocation(Where.MEMORY, Term(pointer.register))
        return VariableLocation(Where.MEMORY, pointer.term.loaded())

    def _vectors(self, count: int, size: int) -> VariableLocation:
        if self.vectors + count > self.convention.vectors:
            self.vectors = self.convention.vectors
            return self._on_stack(size)
        self.vectors += count
        return _VECTOR

    def _split(self, leaves: list[tuple[int, DataType]], size: int) -> VariableLocation:
        """Each word in a register of the kind of what is in it."""
        words = -(-size // _WORD)
        floating = [
            all(leaf.kind is TypeKind.FLOAT for at, leaf in leaves if at // _WORD == word)
            for word in range(words)
        ]
        general, vectors = floating.count(False), floating.count(True)
        free = len(self.convention.general) - self.general
        if general > free or self.vectors + vectors > self.convention.vectors:
            return self._on_stack(size)
        parts = []
        for is_float in floating:
            if is_float:
                self.vectors += 1
                parts.append((_WORD, _VECTOR))
            else:
                parts.append((_WORD, self._words(1, _WORD)))
        return (
            parts[0][1] if len(parts) == 1 else VariableLocation(Where.PIECES, pieces=tuple(parts))
        )

    def _by_field(self, leaves: list[tuple[int, DataType]], size: int) -> VariableLocation:
        """Each of up to two fields in a register of its kind, if there are both."""
        floats = [leaf.kind is TypeKind.FLOAT for _, leaf in leaves]
        free = len(self.convention.general) - self.general
        if (
            self.vectors + floats.count(True) > self.convention.vectors
            or floats.count(False) > free
        ):
            return self._words(-(-size // _WORD), size)
        ends = [*(at for at, _ in leaves[1:]), size]
        parts = []
        for (at, leaf), end, is_float in zip(leaves, ends, floats, strict=True):
            if is_float:
                self.vectors += 1
            where = _VECTOR if is_float else self._words(1, leaf.size or _WORD)
            parts.append((end - at, where))
        return (
            parts[0][1] if len(parts) == 1 else VariableLocation(Where.PIECES, pieces=tuple(parts))
        )


def _leaves(kind: DataType) -> list[tuple[int, DataType]]:
    """(offset, type) of the scalars of a structure; as many as matter."""
    found: list[tuple[int, DataType]] = []
    todo = [(0, kind)]
    for _ in range(_MAX_PARTS):
        if not todo or len(found) > _MAX_LEAVES:
            break
        at, part = todo.pop()
        if part.kind is TypeKind.ARRAY:
            element = part.element
            step, count = element.size or 0, min(part.count or 0, _MAX_LEAVES + 1)
            todo += [(at + index * step, element) for index in reversed(range(count))]
        elif part.kind is TypeKind.RECORD:
            members = part.members[: _MAX_LEAVES + 1]
            todo += [(at + member.offset, member.type) for member in reversed(members)]
        else:
            found.append((at, part))
    return found

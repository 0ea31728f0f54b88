"""From a variable to a part of it: members, elements, what pointers lead to."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import FieldType, ValueKind
from engine.fetch.variables import VariableError
from engine.image.datatypes import DataType, TypeKind
from engine.image.expressions import Term, VariableLocation, Where

_SHOWN: Final = 12


class Value(Struct, frozen=True):
    """A part of a variable, on the way to the one that is asked for.

    Attributes:
        type: of it.
        location: where it is.
        bit: its lowest bit, in its register or, of a bitfield, from its address.
        bits: of a bitfield, 0 for none.
    """

    type: DataType
    location: VariableLocation
    bit: int = 0
    bits: int = 0


class ValueParts:
    """Steps from a value to a part of it.

    Each is told where in the text the step stands, and raises `VariableError` with that column
    if there is no such part.
    """

    def __init__(self, fail: Callable[[str, int, str], VariableError]) -> None:
        """`fail` makes an error about the variable at hand, of a code, a column and a reason."""
        self._fail = fail

    def pointed(self, value: Value, at: int) -> Value:
        """The value a pointer points at; of an array its first element."""
        kind = value.type
        if kind.kind is TypeKind.ARRAY and value.location.where is Where.MEMORY:
            return Value(kind.element, value.location)
        if kind.kind is not TypeKind.POINTER or value.bits:
            raise self._fail("NO_PTR_STRCT", at, f"{kind.text} is no pointer")
        return Value(kind.target, VariableLocation(Where.MEMORY, self.term(value, at)))

    def term(self, value: Value, at: int) -> Term:
        """The value itself as a term."""
        where = self.part(value, at)
        match where.where:
            case Where.MEMORY:
                return where.term.loaded()
            case Where.VALUE:
                return where.term
            case Where.REGISTER if not value.bit:
                return Term(where.register)
            case _:
                raise self._fail("NO_BTFARG", at, where.why or "a part of a register")

    def part(self, value: Value, at: int) -> VariableLocation:
        """A location that is no list of pieces: the one that holds the value."""
        where = value.location
        if where.where is Where.NOWHERE:
            raise self._fail("NO_BTFARG", 0, where.why)
        return where

    def member(self, value: Value, name: str, at: int) -> Value:
        """A member of a structure."""
        kind = value.type
        if kind.kind is not TypeKind.RECORD:
            raise VariableError("NO_PTR_STRCT", at, f"{kind.text} has no members")
        found = kind.member(name)
        if found is None:
            if kind.is_declared_only:
                raise VariableError("BAD_BTF_TID", at, f"{kind.text} is declared, not defined")
            known = ", ".join(kind.member_names()[:_SHOWN])
            raise VariableError("NO_BTF_FIELD", at, f"{kind.text} has {known or 'no members'}")
        where = value.location
        if where.where is Where.MEMORY:
            if not found.bit_size:
                moved = replace(where, term=where.term.plus(found.offset))
                return Value(found.type, moved)
            return Value(found.type, where, found.bit_offset, found.bit_size)
        bit = value.bit + (found.bit_offset if found.bit_size else 8 * found.offset)
        if where.where is Where.PIECES:
            where, bit = piece(where, bit)
        return Value(found.type, where, bit, found.bit_size)

    def indexed(self, value: Value, index: int, at: int) -> Value:
        """An element of an array, or of what a pointer points at."""
        kind = value.type
        if kind.kind is TypeKind.ARRAY:
            element, where = kind.element, value.location
            if where.where is not Where.MEMORY:
                raise self._fail("NO_BTFARG", at, where.why or "an array in a register")
            term = where.term
        elif kind.kind is TypeKind.POINTER:
            element, term = kind.target, self.term(value, at)
        else:
            raise VariableError("NO_PTR_STRCT", at, f"{kind.text} is no array or pointer")
        if element.size is None:
            raise VariableError("NO_PTR_STRCT", at, f"the size of {element.text} is not known")
        return Value(element, VariableLocation(Where.MEMORY, term.plus(index * element.size)))


def piece(where: VariableLocation, bit: int) -> tuple[VariableLocation, int]:
    """The piece that a bit lies in, and the bit in it."""
    start = 0
    for size, part in where.pieces:
        if start <= bit < start + 8 * size:
            if part.where is Where.MEMORY:
                skip = (bit - start) // 8
                return replace(part, term=part.term.plus(skip)), (bit - start) % 8
            return part, bit - start
        start += 8 * size
    raise VariableError("NO_BTFARG", 0, "it lies outside its variable")


def register_part(value: Value) -> FieldType:
    """The type of bits in a register that are not its lowest ones, or not whole bytes."""
    width = value.bits or 8 * (value.type.size or 0)
    if value.type.kind is TypeKind.FLOAT and width == 32 and value.bit == 32:
        return FieldType(ValueKind.FLOAT, 4, width=width, offset=value.bit)
    if not value.bits and (value.type.is_signed or width not in (8, 16, 32, 64)):
        raise VariableError("NOSUP_DAT_ARG", 0, "it is a signed part of a register")
    if value.bit + width > 64:
        raise VariableError("NOSUP_DAT_ARG", 0, "it lies in two registers")
    kind = ValueKind.SIGNED if value.type.is_signed else ValueKind.BITFIELD
    return FieldType(kind, 8, width=width, offset=value.bit)

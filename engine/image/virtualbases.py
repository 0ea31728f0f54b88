"""Places of virtual base classes, which only a running object tells (Itanium C++ ABI, 2.5.2)."""

from typing import Final

from engine.image.reader import DamagedError, Reader

_DUP, _DEREF, _MINUS, _PLUS = 0x12, 0x06, 0x1C, 0x22
_CONST1U, _CONSTU, _LITERAL, _LAST_LITERAL = 0x08, 0x10, 0x30, 0x4F
_LONGEST: Final = 16


def offset_place(expression: bytes, order: str) -> int:
    """Bytes from the offset of a virtual base to the object's table of functions.

    Compilers write: the object's address, the address of its table, a number less, the word
    there, added to the object's address.

    Args:
        expression: the base's DW_AT_data_member_location.
        order: of bytes, as struct spells it.

    Raises:
        DamagedError: it says something else.
    """
    reader = Reader(expression, 0, len(expression), order)
    if len(expression) <= _LONGEST and [reader.u8(), reader.u8()] == [_DUP, _DEREF]:
        number = _pushed(reader)
        if number and [reader.u8() for _ in range(3)] == [_MINUS, _DEREF, _PLUS]:
            return number
    raise DamagedError("the place of a member is computed")


def _pushed(reader: Reader) -> int:
    """The constant that the next operation pushes; 0 for another operation."""
    op = reader.u8()
    if _LITERAL <= op <= _LAST_LITERAL:
        return op - _LITERAL
    if op == _CONST1U:
        return reader.u8()
    return reader.uleb() if op == _CONSTU else 0

"""The System V ABI's classes of values on x86-64 (AMD64 supplement, 3.2.3)."""

from enum import Enum, auto
from typing import Final

from engine.arch.abivalues import (
    EIGHTBYTE,
    Bank,
    RegisterPart,
    ResultPlaces,
    Scalar,
    ScalarKind,
    ValueShape,
)

_LONGEST: Final = 64
"""Bytes of the longest vector."""


class _Class(Enum):
    """The class of an eightbyte."""

    NONE = auto()
    INTEGER = auto()
    SSE = auto()
    SSEUP = auto()
    X87 = auto()
    X87UP = auto()
    MEMORY = auto()


_ALONE: Final = frozenset((_Class.X87, _Class.X87UP))


def divide(shape: ValueShape) -> tuple[RegisterPart, ...] | None:
    """The eightbytes of a value, those of one register together; None for class MEMORY."""
    if shape.by_reference or shape.size > _LONGEST or any(map(_is_unaligned, shape.scalars)):
        return None
    extended = [one for one in shape.scalars if one.kind is ScalarKind.EXTENDED]
    if not shape.is_record and extended:  # X87, or COMPLEX_X87: real part first
        return tuple(RegisterPart(Bank.X87, one.offset, one.size) for one in extended)
    classes = _classes(shape)
    if _Class.MEMORY in classes:
        return None
    one_vector = classes[:1] == [_Class.SSE] and set(classes[1:]) <= {_Class.SSEUP}
    if len(classes) > 2 and not one_vector:
        return None
    return tuple(_parts(classes, shape.size))


def _is_unaligned(scalar: Scalar) -> bool:
    return not scalar.is_bitfield and scalar.offset % scalar.size != 0


def _classes(shape: ValueShape) -> list[_Class]:
    """The classes of all eightbytes, merged and cleaned up (steps 4 and 5)."""
    found = [_Class.NONE] * -(-shape.size // EIGHTBYTE)
    for scalar in shape.scalars:
        first, last = scalar.offset // EIGHTBYTE, (scalar.offset + scalar.size - 1) // EIGHTBYTE
        for word in range(first, min(last + 1, len(found))):
            found[word] = _merged(found[word], _class_of(scalar.kind, first=word == first))
    for word, one in enumerate(found):
        before = found[word - 1] if word else _Class.NONE
        if one is _Class.X87UP and before is not _Class.X87:
            return [_Class.MEMORY]
        if one is _Class.SSEUP and before not in (_Class.SSE, _Class.SSEUP):
            found[word] = _Class.SSE
    return found


def _class_of(kind: ScalarKind, *, first: bool) -> _Class:
    match kind:
        case ScalarKind.INTEGER:
            return _Class.INTEGER
        case ScalarKind.EXTENDED:
            return _Class.X87 if first else _Class.X87UP
    return _Class.SSE if first else _Class.SSEUP


def _merged(old: _Class, new: _Class) -> _Class:
    if old is new or old is _Class.NONE:
        return new
    if _Class.MEMORY in (old, new):
        return _Class.MEMORY
    if _Class.INTEGER in (old, new):
        return _Class.INTEGER
    return _Class.MEMORY if {old, new} & _ALONE else _Class.SSE


def _parts(classes: list[_Class], size: int) -> list[RegisterPart]:
    found: list[RegisterPart] = []
    for word, one in enumerate(classes):
        at = word * EIGHTBYTE
        here = min(EIGHTBYTE, size - at)
        match one:
            case _Class.INTEGER:
                found.append(RegisterPart(Bank.GENERAL, at, here))
            case _Class.SSE:
                found.append(RegisterPart(Bank.FLOAT, at, here))
            case _Class.X87:
                found.append(RegisterPart(Bank.X87, at, here))
            case _Class.SSEUP | _Class.X87UP:
                before = found.pop()
                found.append(RegisterPart(before.bank, before.offset, before.size + here))
    return found


RESULTS: Final = ResultPlaces(
    banks={
        Bank.GENERAL: ("rax", "rdx"),
        Bank.FLOAT: ("xmm0", "xmm1"),
        Bank.X87: ("st0", "st1"),
    },
    entry="rdi",
    exit="rax",
    upper={"xmm0": "ymm0h"},
)

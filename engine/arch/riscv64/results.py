"""RISC-V's rules for values in registers (RISC-V ELF psABI, 2.1 and 2.2, LP64D)."""

from typing import Final

from engine.arch.abivalues import (
    EIGHTBYTE,
    Bank,
    RegisterPart,
    ResultPlaces,
    Scalar,
    ScalarKind,
    ValueShape,
    in_words,
)


def divide(shape: ValueShape) -> tuple[RegisterPart, ...] | None:
    """Up to two fields in registers of their kinds, or up to two words in general ones."""
    if shape.by_reference:
        return None
    banks = [_bank(scalar) for scalar in shape.scalars]
    if not shape.has_union and Bank.FLOAT in banks and len(banks) <= 2 and None not in banks:
        fields = zip(banks, shape.scalars, strict=True)
        return tuple(
            RegisterPart(bank, one.offset, one.size) for bank, one in fields if bank is not None
        )
    return in_words(shape.size) if shape.size <= 2 * EIGHTBYTE else None


def _bank(scalar: Scalar) -> Bank | None:
    """The registers that a field takes alone; None if it is no field of a register's size."""
    if scalar.size > EIGHTBYTE:
        return None
    match scalar.kind:
        case ScalarKind.FLOAT:
            return Bank.FLOAT
        case ScalarKind.INTEGER:
            return Bank.GENERAL
    return None


RESULTS: Final = ResultPlaces(
    banks={Bank.GENERAL: ("a0", "a1"), Bank.FLOAT: ("fa0", "fa1")},
    entry="a0",
    exit="a0",  # no promise of the psABI; GCC keeps it
)

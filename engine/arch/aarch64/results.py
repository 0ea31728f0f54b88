"""AArch64's rules for values in registers (AAPCS64, 6.8 and 6.9)."""

from typing import Final

from engine.arch.abivalues import (
    Bank,
    RegisterPart,
    ResultPlaces,
    ScalarKind,
    ValueShape,
    homogeneous,
    in_words,
)

_ELEMENTS: Final = {ScalarKind.FLOAT: (2, 4, 8, 16), ScalarKind.VECTOR: (8, 16)}
_MOST: Final = 16
"""Bytes of a composite value in general registers."""


def divide(shape: ValueShape) -> tuple[RegisterPart, ...] | None:
    """Up to four equal elements in vector registers, else up to two words in general ones."""
    if shape.by_reference:
        return None
    elements = homogeneous(shape, 4, _ELEMENTS)
    if elements is not None:
        return elements
    return in_words(shape.size) if shape.size <= _MOST else None


RESULTS: Final = ResultPlaces(
    banks={Bank.GENERAL: ("x0", "x1"), Bank.FLOAT: ("v0", "v1", "v2", "v3")},
    entry="x8",
    exit="",  # a function need not keep it
)

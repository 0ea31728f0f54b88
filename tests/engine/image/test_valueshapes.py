"""Shapes of types, those of damaged debug information among them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.arch.abivalues import Scalar, ScalarKind
from engine.image.datatypes import Member, TypeKind
from engine.image.reader import DamagedError
from engine.image.valueshapes import LARGEST, UnknownShapeError, shape_of


@dataclass
class Described:
    """A type as debug information may describe it."""

    kind: TypeKind
    size: int | None
    parts: "list[Member]" = field(default_factory=list)
    element: Any = None
    keyword: str = "struct"
    is_declared_only: bool = False
    is_passed_by_reference: bool = False
    is_vector: bool = False
    is_quad: bool = False
    damaged: str = ""
    text: str = "struct s"

    @property
    def members(self) -> list[Member]:
        if self.damaged:
            raise DamagedError(self.damaged)
        return self.parts


INT: Any = Described(TypeKind.SIGNED, 4)


def _looped() -> Any:
    record: Any = Described(TypeKind.RECORD, 8)
    record.parts = [Member("a", record, 0), Member("b", record, 0)]
    return record


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Described(TypeKind.RECORD, None), "size is not known"),
        (Described(TypeKind.RECORD, 4, is_declared_only=True), "size is not known"),
        (Described(TypeKind.RECORD, 4, [Member("a", INT, 1)]), "do not fit"),
        (Described(TypeKind.RECORD, 4, [Member("a", INT, -4)]), "do not fit"),
        (Described(TypeKind.RECORD, 4, [Member("a", INT, 0, 30, 9)]), "do not fit"),
        (Described(TypeKind.OTHER, 4), "how it is passed is not known"),
        (Described(TypeKind.RECORD, 4, damaged="no end"), "damaged: no end"),
        (_looped(), "do not fit"),
    ],
)
def test_what_is_not_known_is_said(kind: Described, why: str) -> None:
    with pytest.raises(UnknownShapeError, match=why):
        shape_of(kind)


def test_bitfields_and_arrays() -> None:
    pair: Any = Described(TypeKind.ARRAY, 8, element=INT)
    kind = Described(TypeKind.RECORD, 12, [Member("a", pair, 0), Member("b", INT, 8, 70, 12)])
    whole = ScalarKind.INTEGER
    bits = Scalar(whole, 8, 3, is_bitfield=True)
    assert shape_of(kind).scalars == (Scalar(whole, 0, 4), Scalar(whole, 4, 4), bits)


def test_of_what_no_register_holds_nothing_is_looked_at() -> None:
    assert shape_of(Described(TypeKind.RECORD, LARGEST + 1, damaged="never read")).scalars == ()

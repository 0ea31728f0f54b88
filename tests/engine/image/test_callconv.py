"""Conventions as data: each place that they can give to a parameter."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from engine.arch.abi import CallConvention, SmallRecords
from engine.image.callconv import entry_locations
from engine.image.datatypes import DataType, TypeKind
from engine.image.expressions import VariableLocation, Where

_C = 0x0C


@dataclass
class Kind:
    """A type as far as conventions ask."""

    kind: TypeKind
    size: int
    members: "tuple[Field, ...]" = ()
    is_passed_by_reference: bool = False


@dataclass
class Field:
    offset: int
    type: Kind


LONG, INT, CHAR = (Kind(TypeKind.SIGNED, size) for size in (8, 4, 1))
DOUBLE, FLOAT = Kind(TypeKind.FLOAT, 8), Kind(TypeKind.FLOAT, 4)
VOID = Kind(TypeKind.VOID, 0)


def record(*kinds: Kind) -> Kind:
    """A structure of these, each aligned to its size."""
    at, members = 0, []
    for kind in kinds:
        at = -(-at // kind.size) * kind.size
        members.append(Field(at, kind))
        at += kind.size
    widest = max(kind.size for kind in kinds)
    return Kind(TypeKind.RECORD, -(-at // widest) * widest, tuple(members))


@dataclass
class Convention:
    """A convention with registers 10, 11, ... and a stack from 2 on."""

    records: SmallRecords
    general: int = 8
    vectors: int = 8
    more: dict[str, bool] = field(default_factory=dict)

    def places(self, *parameters: Kind, returns: Kind = VOID) -> list[str]:
        convention = CallConvention(
            general=tuple(range(10, 10 + self.general)),
            vectors=self.vectors,
            stack=(2, 0),
            records=self.records,
            **{"hidden_result": True, "by_reference": True, **self.more},
        )
        kinds = [cast(DataType, kind) for kind in parameters]
        found = entry_locations(convention, kinds, cast(DataType, returns), _C)
        return [short(where) for where in found]


def short(where: VariableLocation) -> str:
    """`r10`, `v`, `stack+8`, `*r10`; pieces with their sizes."""
    match where.where:
        case Where.REGISTER:
            return f"r{where.register}"
        case Where.NOWHERE:
            return "v" if "vector" in where.why else "?"
        case Where.MEMORY:
            term = where.term
            if term.register != 2:
                return f"*r{term.register}"
            return f"{'*' * len(term.derefs)}stack+{(*term.derefs, term.offset)[0]}"
        case _:
            return " ".join(f"{size}:{short(part)}" for size, part in where.pieces)


RISCV = {"straddles": True, "overflows": True}


@pytest.mark.parametrize(
    ("convention", "parameters", "places"),
    [
        # RISC-V ELF psABI, 2.2: fields of floating point beside one another or an integer.
        (Convention(SmallRecords.BY_FIELD), [record(DOUBLE)], ["v"]),
        (Convention(SmallRecords.BY_FIELD), [record(FLOAT, INT), INT], ["4:v 4:r10", "r11"]),
        (Convention(SmallRecords.BY_FIELD), [record(CHAR, DOUBLE)], ["8:r10 8:v"]),
        (Convention(SmallRecords.BY_FIELD), [record(DOUBLE, DOUBLE)], ["8:v 8:v"]),
        (
            Convention(SmallRecords.BY_FIELD),
            [record(FLOAT, FLOAT, FLOAT), LONG],
            ["8:r10 8:r11", "r12"],
        ),
        (Convention(SmallRecords.BY_FIELD, vectors=1), [record(DOUBLE, DOUBLE)], ["8:r10 8:r11"]),
        (Convention(SmallRecords.BY_FIELD, general=0), [record(FLOAT, INT)], ["stack+0"]),
        (Convention(SmallRecords.BY_FIELD), [record(LONG, LONG, LONG), INT], ["*r10", "r11"]),
        (
            Convention(SmallRecords.BY_FIELD),
            [record(DOUBLE, DOUBLE, DOUBLE), DOUBLE],
            ["*r10", "v"],
        ),
        # Numbers of floating point without a register of theirs, and what is half in one.
        (
            Convention(SmallRecords.BY_FIELD, 8, 1, RISCV),
            [DOUBLE, DOUBLE, INT],
            ["v", "r10", "r11"],
        ),
        (Convention(SmallRecords.WHOLE, 8, 1), [DOUBLE, DOUBLE, INT], ["v", "stack+0", "r10"]),
        (
            Convention(SmallRecords.BY_FIELD, 2, 8, RISCV),
            [LONG, record(LONG, LONG), LONG],
            ["r10", "8:r11 8:stack+0", "stack+8"],
        ),
        (
            Convention(SmallRecords.WHOLE, 2),
            [LONG, record(LONG, LONG), LONG],
            ["r10", "stack+0", "stack+16"],
        ),
        (
            Convention(SmallRecords.BY_WORD, 2),
            [LONG, record(LONG, LONG), LONG],
            ["r10", "stack+0", "r11"],
        ),
        # AAPCS64, 6.8.2: up to four of floating point; System V: word by word.
        (Convention(SmallRecords.WHOLE), [record(FLOAT, FLOAT, FLOAT)], ["v"]),
        (Convention(SmallRecords.WHOLE), [record(DOUBLE, LONG)], ["8:r10 8:r11"]),
        (Convention(SmallRecords.WHOLE), [record(DOUBLE, DOUBLE, DOUBLE)], ["v"]),
        (Convention(SmallRecords.BY_WORD), [record(FLOAT, FLOAT, FLOAT)], ["8:v 8:v"]),
        (Convention(SmallRecords.BY_WORD), [record(FLOAT, INT, DOUBLE)], ["8:r10 8:v"]),
    ],
)
def test_places(convention: Convention, parameters: list[Kind], places: list[str]) -> None:
    assert convention.places(*parameters) == places


@pytest.mark.parametrize("hidden", [False, True])
def test_a_big_result_takes_a_register(hidden: bool) -> None:
    convention = Convention(SmallRecords.WHOLE, more={"hidden_result": hidden})
    big = record(LONG, LONG, LONG)
    assert convention.places(LONG, returns=big) == ["r11" if hidden else "r10"]


def test_a_big_record_by_value() -> None:
    convention = Convention(SmallRecords.BY_WORD, more={"by_reference": False})
    assert convention.places(record(LONG, LONG, LONG), LONG) == ["stack+0", "r10"]

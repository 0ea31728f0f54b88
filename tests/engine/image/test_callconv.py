"""Conventions as data: each place that they can give to a parameter."""

from dataclasses import dataclass, field
from typing import cast

import pytest
from msgspec.structs import replace

from engine.arch import by_name
from engine.arch.abi import CallConvention
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
    is_declared_only: bool = False
    is_quad: bool = False
    keyword: str = "struct"
    is_vector: bool = False
    text: str = "a type"


@dataclass
class Field:
    offset: int
    type: Kind
    bit_size: int = 0
    alignment: int = 0


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
    """An architecture's convention with registers 10, 11, ... and a stack from 2 on."""

    arch: str
    general: int = 8
    vectors: int = 8
    more: dict[str, bool] = field(default_factory=dict)

    def places(self, *parameters: Kind, returns: Kind = VOID) -> list[str]:
        known = by_name(self.arch).abi.calls
        assert known is not None
        convention = CallConvention(
            general=tuple(range(10, 10 + self.general)),
            vectors=tuple(range(100, 100 + self.vectors)),
            stack=(2, 0),
            divide=known.divide,
            skips=known.skips,
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
        (Convention("riscv64"), [record(DOUBLE)], ["v"]),
        (Convention("riscv64"), [record(FLOAT, INT), INT], ["4:v 4:r10", "r11"]),
        (Convention("riscv64"), [record(CHAR, DOUBLE)], ["8:r10 8:v"]),
        (Convention("riscv64"), [record(DOUBLE, DOUBLE)], ["8:v 8:v"]),
        (
            Convention("riscv64"),
            [record(FLOAT, FLOAT, FLOAT), LONG],
            ["8:r10 8:r11", "r12"],
        ),
        (Convention("riscv64", 8, 1, RISCV), [record(DOUBLE, DOUBLE)], ["8:r10 8:r11"]),
        (Convention("riscv64", general=0), [record(FLOAT, INT)], ["stack+0"]),
        (Convention("riscv64"), [record(LONG, LONG, LONG), INT], ["*r10", "r11"]),
        (
            Convention("riscv64"),
            [record(DOUBLE, DOUBLE, DOUBLE), DOUBLE],
            ["*r10", "v"],
        ),
        # Numbers of floating point without a register of theirs, and what is half in one.
        (
            Convention("riscv64", 8, 1, RISCV),
            [DOUBLE, DOUBLE, INT],
            ["v", "r10", "r11"],
        ),
        (Convention("aarch64", 8, 1), [DOUBLE, DOUBLE, INT], ["v", "stack+0", "r10"]),
        (
            Convention("riscv64", 2, 8, RISCV),
            [LONG, record(LONG, LONG), LONG],
            ["r10", "8:r11 8:stack+0", "stack+8"],
        ),
        (
            Convention("aarch64", 2),
            [LONG, record(LONG, LONG), LONG],
            ["r10", "stack+0", "stack+16"],
        ),
        (
            Convention("x86_64", 2),
            [LONG, record(LONG, LONG), LONG],
            ["r10", "stack+0", "r11"],
        ),
        # AAPCS64, 6.8.2: up to four of floating point; System V: word by word.
        (Convention("aarch64"), [record(FLOAT, FLOAT, FLOAT)], ["4:v 4:v 4:v"]),
        (Convention("aarch64"), [record(DOUBLE, LONG)], ["8:r10 8:r11"]),
        (Convention("aarch64"), [record(DOUBLE, DOUBLE, DOUBLE)], ["8:v 8:v 8:v"]),
        (Convention("x86_64"), [record(FLOAT, FLOAT, FLOAT)], ["8:v 4:v"]),
        (Convention("x86_64"), [record(FLOAT, INT, DOUBLE)], ["8:r10 8:v"]),
    ],
)
def test_places(convention: Convention, parameters: list[Kind], places: list[str]) -> None:
    assert convention.places(*parameters) == places


@pytest.mark.parametrize("hidden", [False, True])
def test_a_big_result_takes_a_register(hidden: bool) -> None:
    convention = Convention("aarch64", more={"hidden_result": hidden})
    big = record(LONG, LONG, LONG)
    assert convention.places(LONG, returns=big) == ["r11" if hidden else "r10"]


def test_a_big_record_by_value() -> None:
    convention = Convention("x86_64", more={"by_reference": False})
    assert convention.places(record(LONG, LONG, LONG), LONG) == ["stack+0", "r10"]


@pytest.mark.parametrize(
    ("parameters", "places"),
    [
        # Itanium Software Conventions, 8.5: one row of words, eight of them in r32 to r39.
        ([LONG] * 9 + [INT], [f"r{32 + n}" for n in range(8)] + ["stack+0", "stack+8"]),
        ([INT, DOUBLE, FLOAT, CHAR], ["r32", "r136", "r137", "r35"]),
        ([DOUBLE] * 9, [f"r{136 + n}" for n in range(8)] + ["stack+0"]),
        ([record(DOUBLE, DOUBLE), DOUBLE, INT], ["8:r136 8:r137", "r138", "r35"]),
        ([record(FLOAT, FLOAT, FLOAT), INT], ["4:r136 4:r137 4:r138", "r34"]),
        ([record(DOUBLE, LONG), CHAR], ["8:r32 8:r33", "r34"]),
        ([*[LONG] * 7, record(LONG, LONG), INT], [*(f"r{32 + n}" for n in range(7)),
            "8:r39 8:stack+0", "stack+8"]),
        ([*[LONG] * 7, record(DOUBLE, DOUBLE)], [*(f"r{32 + n}" for n in range(7)),
            "8:r136 8:stack+0"]),
        ([INT, Kind(TypeKind.FLOAT, 16), INT], ["r32", "r136", "r36"]),
        ([INT, Kind(TypeKind.SIGNED, 16), INT], ["r32", "8:r34 8:r35", "r36"]),
    ],
)  # fmt: skip
def test_ia64_passes_words_in_a_row(parameters: list[Kind], places: list[str]) -> None:
    convention = by_name("ia64").abi.calls
    assert convention is not None
    row = replace(convention, stack=(2, 0))
    kinds = [cast(DataType, kind) for kind in parameters]
    found = entry_locations(row, kinds, cast(DataType, VOID), _C, vectors=True)
    assert [short(where) for where in found] == places

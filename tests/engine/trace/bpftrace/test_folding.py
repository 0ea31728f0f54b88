"""Expressions of literals, as bpftrace works them out (its tests/fold_literals.cpp has more)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace.bpftrace.folding import (
    Constant,
    FoldingError,
    KnownRecord,
    fold_binary,
    fold_unary,
    literal_type,
)
from engine.trace.bpftrace.type_rules import type_name

MOST = (1 << 64) - 1
NUMBER = st.integers(-(1 << 63), MOST)


def test_numbers() -> None:
    for left, operator, right, value in (
        (7, "/", 2, 3),
        (-7, "/", 2, -3),
        (-7, "%", 3, -1),
        (7, "%", -3, 1),
        (1, "-", 2, -1),
        (1, "<<", 63, 1 << 63),
        (3, "<<", 63, 1 << 63),
        (-1, "<<", 1, -2),
        (-8, ">>", 1, -4),
        (MOST, ">>", 63, 1),
        (-1, "&", 0xFF, 0xFF),
        (-2, "|", 1, -1),
        (6, "^", 3, 5),
        (MOST, "-", 1, MOST - 1),
        (-3, "*", -4, 12),
        (-1, "<", 1, True),
        (2, "&&", 0, False),
    ):
        assert fold_binary(operator, left, right) == value, (left, operator, right)


def test_what_does_not_fit_is_an_error() -> None:
    for left, operator, right in (
        (MOST, "+", 1),
        (MOST, "+", -1),
        (0, "-", (1 << 63) + 1),
        (1 << 32, "*", 1 << 32),
        (-(1 << 63), "-", 1),
        (1, "/", 0),
        (1, "%", 0),
        (1, "<<", 64),
        (1, ">>", -1),
        (1, "<<", 1 << 200),
        (True, "/", False),
        (b"a", "*", b"b"),
    ):
        with pytest.raises(FoldingError):
            fold_binary(operator, left, right)
    with pytest.raises(FoldingError, match=r"negative value will underflow"):
        fold_unary("-", (1 << 63) + 1)


def test_strings_truths_and_more() -> None:
    cases: tuple[tuple[Constant, str, Constant, Constant], ...] = (
        (b"a", "+", b"b", b"ab"),
        (b"abc", "+", 1, b"bc"),
        (1, "+", b"abc", b"bc"),
        (b"abc", "+", 9, b""),
        (b"a", "==", b"a", True),
        (b"a", "<", b"b", True),
        (b"", "||", True, True),
        (True, "^", True, False),
        (True, "+", False, True),
        (False, "||", 3, True),
        ((1, b"a"), "==", (1, b"a"), True),
        ((1, b"a"), "!=", (1, True), True),
        (KnownRecord({"a": 1, "b": 2}), "==", KnownRecord({"b": 2, "a": 1}), True),
    )
    for left, operator, right, value in cases:
        assert fold_binary(operator, left, right) == value, (left, operator, right)
    later: tuple[tuple[Constant, str, Constant], ...] = (
        (b"a", "-", 1),
        (1, "+", True),
        ((1,), "+", (1,)),
    )
    for left, operator, right in later:
        assert fold_binary(operator, left, right) is None


def test_signs_before_literals() -> None:
    values: list[tuple[str, Constant, Constant | None]] = [
        ("-", 5, -5),
        ("-", -5, 5),
        ("-", 1 << 63, -(1 << 63)),
        ("~", 0, MOST),
        ("~", -1, 0),
        ("!", 3, False),
        ("!", True, False),
        ("-", True, None),
        ("!", b"a", None),
    ]
    for operator, value, result in values:
        assert fold_unary(operator, value) == result, (operator, value)


def test_types_of_literals() -> None:
    record = KnownRecord({"a": (1, b"x"), "b": True})
    assert type_name(literal_type(record)) == "record { .a = (int8,string[2]), .b = bool }"


@given(left=NUMBER, right=NUMBER, operator=st.sampled_from("+-*/%&|^"))
def test_a_value_fits_64_bits_or_is_an_error(left: int, right: int, operator: str) -> None:
    try:
        value = fold_binary(operator, left, right)
    except FoldingError:
        return
    assert isinstance(value, int)
    assert -(1 << 63) <= value <= MOST

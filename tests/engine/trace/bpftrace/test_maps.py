"""Maps of scripts: entries, limits, aggregates, moments, and the order they are printed in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.maps import SCALAR, ScriptMap, aggregate_number, copies
from engine.trace.bpftrace.sorting import rows_of
from engine.trace.bpftrace.types import (
    AGGREGATES,
    INT64,
    UINT64,
    Aggregate,
    Integer,
    TextType,
    Tuple,
)
from engine.trace.bpftrace.values import StackValue


def keys_of(of: ScriptMap, top: int = 0) -> list[Any]:
    return [key for key, _ in rows_of(of, top)]


def filled(of: ScriptMap, **entries: Any) -> ScriptMap:
    for key, value in entries.items():
        of.add(key.encode(), value)
    return of


def test_what_is_not_there_is_zero() -> None:
    tuples = ScriptMap(
        "x", INT64, Tuple((INT64, TextType(8), kinds.Array(Tuple((kinds.BOOL,)), 2)))
    )
    assert tuples.get(1) == (0, b"", ((False,), (False,)))
    assert not tuples.has(1)
    assert ScriptMap("x", None, kinds.StackType("user")).get(SCALAR) == StackValue()
    assert ScriptMap("x", INT64, Aggregate("avg")).get(5) == 0


def test_a_full_map_loses_what_is_new_and_counts_it() -> None:
    one = ScriptMap("x", INT64, INT64, most=2)
    assert [one.add(key, 10) for key in (1, 2, 3, 1)] == [True, True, False, True]
    assert (one.entries, one.lost) == ({1: 10, 2: 10}, 1)
    assert one.delete(1)
    assert not one.delete(1)
    assert one.add(3, 5)
    counted = ScriptMap("y", INT64, Aggregate("count"), most=1)
    for key in (7, 7, 8):
        try:  # as generated code does it
            counted.entries[key] += 1
        except KeyError:
            counted.add(key, 1)
    assert (counted.entries, counted.lost) == ({7: 2}, 1)
    series = ScriptMap("z", INT64, Aggregate("tseries", True, (10, 5, 5)), most=1)
    assert series.series(1, 5, 100)
    assert not series.series(2, 5, 100)
    averages = ScriptMap("z", INT64, Aggregate("avg"), most=1)
    assert [averages.average(key, 3) for key in (1, 1, 2)] == [True, True, False]


def test_each_bucket_takes_an_entry() -> None:
    one = ScriptMap("x", INT64, Aggregate("hist", True, (0,)), most=2)
    for value in (1, 2, 1024):
        one.histogram(3, value)
    assert (len(one), one.lost) == (2, 1)
    assert one.delete(3)
    assert len(one) == 0


def test_the_least_used_entry_makes_room() -> None:
    one = ScriptMap("x", INT64, INT64, most=2, kind="lruhash")
    assert not one.is_plain
    one.add(1, 1)
    one.add(2, 2)
    assert one.get(1) == 1
    one.add(3, 3)
    assert (set(one.entries), one.lost) == ({1, 3}, 0)


@given(st.lists(st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1), min_size=1))
def test_aggregates_of_signed_numbers(values: list[int]) -> None:
    def number(kind: Any) -> int:
        one = ScriptMap("x", None, Aggregate(kind))
        for value in values:
            {
                "count": lambda key, value: one.count(key),
                "sum": one.sum,
                "min": one.minimum,
                "max": one.maximum,
                "avg": one.average,
            }[kind](SCALAR, value)
        return int(one.get(SCALAR))

    total = (sum(values) + (1 << 63)) % (1 << 64) - (1 << 63)
    assert number("count") == len(values)
    assert number("sum") == total
    assert (number("min"), number("max")) == (min(values), max(values))
    assert number("avg") == int(abs(total) // len(values) * (1 if total >= 0 else -1))


def test_unsigned_sums_wrap_and_have_no_sign() -> None:
    unsigned = Aggregate("sum", signed=False)
    assert aggregate_number(unsigned, (1 << 64) + 5) == 5
    assert aggregate_number(unsigned, -1) == (1 << 64) - 1
    assert aggregate_number(Aggregate("sum"), (1 << 64) - 1) == -1
    assert aggregate_number(Aggregate("avg", signed=False), [2, -2]) == ((1 << 64) - 2) // 2


def test_zeroed_entries_stay_and_begin_anew() -> None:
    least = filled(ScriptMap("x", TextType(8), Aggregate("min")), a=7)
    least.zero()
    assert least.get(b"a") == 0
    least.minimum(b"a", 9)
    assert least.get(b"a") == 9
    averages = ScriptMap("x", INT64, Aggregate("stats"))
    averages.average(1, 5)
    averages.zero()
    averages.average(1, 3)
    assert averages.entries == {1: [1, 3]}
    plain = filled(ScriptMap("x", TextType(8), TextType(8)), a=b"text")
    plain.zero()
    assert plain.entries == {b"a": b""}
    plain.clear()
    assert len(plain) == 0


def test_a_moment_does_not_change() -> None:
    averages = ScriptMap("x", INT64, Aggregate("avg"))
    averages.average(1, 5)
    (then,) = copies([averages])
    averages.average(1, 7)
    averages.average(2, 7)
    assert then.entries == {1: [1, 5]}
    held = averages.entries
    averages.restore(then)
    assert averages.entries is held
    assert held == {1: [1, 5]}
    averages.average(1, 1)
    assert then.entries == {1: [1, 5]}


def test_numbers_are_printed_in_order_and_equal_ones_by_key() -> None:
    numbers = filled(ScriptMap("x", TextType(8), INT64), c=1, b=-5, d=1, a=1)
    assert keys_of(numbers) == [b"b", b"a", b"c", b"d"]
    assert keys_of(numbers, top=2) == [b"c", b"d"]
    assert keys_of(numbers, top=9) == [b"b", b"a", b"c", b"d"]


@pytest.mark.parametrize(
    ("kind", "cells", "order"),
    [
        (Aggregate("sum"), {"a": 5, "b": -1}, "ba"),
        (Aggregate("sum", signed=False), {"a": 5, "b": -1}, "ab"),
        (Aggregate("max"), {"a": 5, "b": -1, "c": None}, "cab"),  # as unsigned ones
        (Aggregate("avg"), {"a": [2, 4], "b": [1, -9], "c": [9, 0]}, "bca"),
        (Aggregate("stats"), {"a": [100, 100], "b": [1, 9]}, "ab"),
        (TextType(8), {"b": b"x", "a": b"y"}, "ab"),
        (Tuple((INT64,)), {"b": (1,), "a": (2,)}, "ab"),
    ],
)
def test_what_values_are_sorted_by(kind: kinds.Type, cells: dict[str, Any], order: str) -> None:
    of = filled(ScriptMap("x", TextType(8), kind), **cells)
    assert b"".join(keys_of(of)).decode() == order


def test_histograms_are_sorted_by_their_totals() -> None:
    of = ScriptMap("x", INT64, Aggregate("hist", True, (0,)))
    for key, values in ((1, (1, 2, 3)), (2, (9,)), (3, (0,))):
        for value in values:
            of.histogram(key, value)
    assert keys_of(of) == [2, 3, 1]
    assert keys_of(of, top=1) == [1]


def test_keys_are_sorted_part_by_part_and_numbers_as_signed_ones() -> None:
    of = ScriptMap("x", Tuple((INT64, TextType(8))), TextType(8))
    for key in ((1, b"b"), (1, b"a"), (-1, b"z"), (1, b"aa")):
        of.add(key, b"")
    assert keys_of(of) == [(-1, b"z"), (1, b"a"), (1, b"aa"), (1, b"b")]
    unsigned = ScriptMap("x", UINT64, TextType(8))
    for number in (1, 1 << 63, (1 << 64) - 1):
        unsigned.add(number, b"")
    assert keys_of(unsigned) == [1 << 63, (1 << 64) - 1, 1]
    small = ScriptMap("x", Integer(8, signed=False), TextType(8))
    for number in (1, 200):
        small.add(number, b"")
    assert keys_of(small) == [200, 1]


def test_stacks_and_moments_are_keys() -> None:
    of = ScriptMap("x", kinds.StackType("user"), Aggregate("count"))
    for frames in ((2, 1), (1, 2), (2, 1)):
        of.count(StackValue(frames, process=7))
    assert [key.frames for key in keys_of(of)] == [(1, 2), (2, 1)]


def test_time_series_keep_the_newest_epochs() -> None:
    functions = ("hist", "sum", "min", "max", "avg")  # "hist" is none of the functions
    found = {}
    for function in functions:
        place = AGGREGATES.index(function)
        of = ScriptMap("x", None, Aggregate("tseries", True, (10, 2, place)))
        for now, value in ((10, 1), (20, 5), (25, -3), (30, 8), (39, 2)):
            of.series(SCALAR, value, now)
        found[function] = sorted(cell[:2] for cell in of.entries.values())
    assert found == {
        "hist": [[2, -3], [3, 2]],
        "sum": [[2, 2], [3, 10]],
        "min": [[2, -3], [3, 2]],
        "max": [[2, 5], [3, 8]],
        "avg": [[2, 2], [3, 10]],
    }

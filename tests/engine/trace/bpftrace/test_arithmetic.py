"""BPF's arithmetic against numbers of C, which ctypes cuts."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from engine.trace.bpftrace import arithmetic
from engine.trace.bpftrace.types import INT64, UINT64, Integer

NUMBERS = st.integers(min_value=-(1 << 70), max_value=1 << 70)
TYPES = st.builds(Integer, st.sampled_from((8, 16, 32, 64)), st.booleans())


def as_c(value: int, kind: Integer) -> int:
    name = f"c_{'' if kind.signed else 'u'}int{kind.bits}"
    return int(getattr(ctypes, name)(value).value)


@given(NUMBERS, TYPES)
def test_a_cast_is_that_of_c(value: int, kind: Integer) -> None:
    assert arithmetic.wrap(value, kind) == as_c(value, kind)
    assert arithmetic.signed64(value) == as_c(value, INT64)


@given(NUMBERS, NUMBERS, TYPES)
def test_division_is_unsigned(left: int, right: int, kind: Integer) -> None:
    unsigned = Integer(kind.bits, signed=False)
    dividend, divisor = as_c(left, unsigned), as_c(right, unsigned)
    quotient, rest = divmod(dividend, divisor) if divisor else (1, 1)
    assert arithmetic.divide(left, right, kind) == as_c(quotient, kind)
    assert arithmetic.modulo(left, right, kind) == as_c(rest, kind)


def test_negative_numbers_are_divided_as_large_ones() -> None:
    # What bpftrace prints for -7 / 2, -7 % 3 and 7 / -1.
    assert arithmetic.divide(-7, 2, INT64) == 9223372036854775804
    assert arithmetic.modulo(-7, 3, INT64) == 0
    assert arithmetic.divide(7, -1, INT64) == 0
    assert arithmetic.divide(5, 0, INT64) == arithmetic.modulo(5, 0, UINT64) == 1


@given(NUMBERS, st.integers(min_value=0, max_value=63))
def test_shifts_are_those_of_unsigned_numbers(value: int, count: int) -> None:
    wanted = as_c(value, UINT64) >> count
    assert arithmetic.shift_right(value, count, UINT64) == wanted
    assert arithmetic.shift_right(value, count + 64, INT64) == as_c(wanted, INT64)


def test_a_shift_of_a_small_number_takes_its_sign_with_it_only_as_a_bit() -> None:
    assert arithmetic.shift_right(-8, 1, Integer(8, signed=True)) == 124


@given(NUMBERS, st.integers(min_value=1, max_value=1 << 40))
def test_averages_are_rounded_towards_zero(value: int, count: int) -> None:
    quotient = arithmetic.truncated_quotient(value, count)
    assert abs(quotient) == abs(value) // count
    assert quotient == 0 or (quotient < 0) == (value < 0)


@given(NUMBERS, TYPES)
def test_bytes_are_swapped(value: int, kind: Integer) -> None:
    swapped = arithmetic.swapped_bytes(value, kind)
    assert as_c(swapped, kind) == swapped
    assert arithmetic.swapped_bytes(swapped, kind) == as_c(value, kind)


def test_bytes_of_a_number_are_swapped() -> None:
    assert arithmetic.swapped_bytes(0x12345678, Integer(32, signed=False)) == 0x78563412
    assert arithmetic.swapped_bytes(0xFF, INT64) == -(1 << 56)

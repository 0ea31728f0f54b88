"""Arithmetic of 82 bits against the host's doubles and against exact fractions."""

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arch.ia64.floatformats import (
    NAN_EXPONENT,
    Float,
    from_double,
    from_extended,
    from_single,
    pack,
    to_double,
    to_extended,
    to_single,
    unpack,
)
from engine.cpu.ia64.floatops import approximate, approximate_root, from_integer, order
from engine.cpu.ia64.floatpairs import FloatPairs
from engine.cpu.ia64.floats import (
    DOUBLE,
    DYNAMIC,
    INVALID,
    SINGLE,
    scale,
)
from engine.cpu.ia64.state import FPSR, NATVAL, ONE, ZERO
from engine.cpu.ia64.stops import FloatFault

_LINUX = 0x9804C0270033F
doubles = st.integers(0, (1 << 64) - 1)
normals = st.tuples(
    st.integers(0, 1),
    st.integers(0xFFFF - 1000, 0xFFFF + 1000),
    st.integers(1 << 63, (1 << 64) - 1),
)
finite = st.floats(allow_nan=False, allow_infinity=False)


def unit(fpsr: int = _LINUX) -> FloatPairs:
    """The operations with a status register of their own."""
    registers = [0] * 128
    registers[FPSR] = fpsr
    return FloatPairs(registers)


def of(value: float) -> Float:
    """A register with a double in it."""
    return from_double(struct.unpack("<Q", struct.pack("<d", value))[0])


def exact(x: Float) -> Fraction:
    """The value of a finite number."""
    power = scale(x)
    size = Fraction(x[2] << power) if power >= 0 else Fraction(x[2], 1 << -power)
    return -size if x[0] else size


def bits(value: float) -> int:
    """A double's pattern."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


@given(doubles)
def test_doubles_go_in_and_out(pattern: int) -> None:
    assert to_double(from_double(pattern)) == pattern
    assert unpack(pack(from_double(pattern))) == from_double(pattern)


@given(st.integers(0, (1 << 32) - 1))
def test_singles_go_in_and_out(pattern: int) -> None:
    assert to_single(from_single(pattern)) == pattern


@given(st.integers(0, (1 << 63) - 1), st.integers(0, 0xFFFF))
def test_extended_numbers_go_in_and_out(fraction: int, high: int) -> None:
    significand = fraction | (1 << 63 if high & 0x7FFF else 0)
    assert to_extended(from_extended(significand, high)) == (significand, high)


@given(finite, finite)
def test_products_and_sums_are_those_of_the_host(x: float, y: float) -> None:
    numbers = unit()
    product = numbers.fma(of(x), of(y), ZERO, 0, DOUBLE, 0, True)
    assert to_double(product) == bits(x * y)
    total = numbers.fma(of(x), ONE, of(y), 0, DOUBLE, 0, False)
    assert to_double(total) == bits(x + y)
    difference = numbers.fma(of(x), ONE, of(y), 0, DOUBLE, 2, False)
    assert to_double(difference) == bits(x - y)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), finite, finite)
def test_a_fused_result_is_the_exact_one_rounded_once(x: float, y: float, z: float) -> None:
    result = unit().fma(of(x), of(y), of(z), 0, DOUBLE, 0, False)
    value = Fraction(x) * Fraction(y) + Fraction(z)
    if value:
        try:
            expected = value.numerator / value.denominator
        except OverflowError:
            expected = math.inf if value > 0 else -math.inf
        assert to_double(result) == bits(expected)


@given(
    normals,
    normals,
    st.sampled_from((SINGLE, DOUBLE, DYNAMIC)),
    st.integers(0, 3),
)
def test_directed_roundings_enclose_the_exact_product(
    x: Float, y: Float, form: str, rounding: int
) -> None:
    controls = 2 | 3 << 2 | rounding << 4  # the widest range, so that nothing overflows
    numbers = unit(0x3F | controls << 6)
    result = numbers.fma(x, y, ZERO, 0, form, 0, True)
    value, got = exact(x) * exact(y), exact(result)
    digits = {SINGLE: 24, DOUBLE: 53, DYNAMIC: 64}[form]
    assert result[2] & (1 << 64 - digits) - 1 == 0
    assert abs(got - value) < Fraction(2) ** (scale(result) + 64 - digits)
    down = rounding == 1 or (rounding == 3 and value > 0)
    up = rounding == 2 or (rounding == 3 and value < 0)
    assert not (down and got > value)
    assert not (up and got < value)


@given(st.integers(1 << 63, (1 << 64) - 1), st.integers(1 << 63, (1 << 64) - 1))
def test_an_exponent_of_0_means_that_of_the_least_extended_number(x: int, y: int) -> None:
    small, large = (0, 0, x), (0, 0xFFFF + 100, y)
    numbers = unit(0x3F | 0xE << 6)
    for result in (
        numbers.fma(small, large, ZERO, 0, DYNAMIC, 0, True),
        numbers.fma(large, small, ZERO, 0, DYNAMIC, 0, True),
        numbers.fma(ONE, ZERO, small, 0, DYNAMIC, 0, False),
    ):
        assert result[1] >= 0xFFFF - 16382
    value = exact(small) * exact(large)
    product = exact(numbers.fma(small, large, ZERO, 0, DYNAMIC, 0, True))
    assert abs(product - value) <= value / (1 << 64)


@given(finite, finite)
def test_order_is_that_of_the_host(x: float, y: float) -> None:
    assert order(of(x), of(y)) == (x > y) - (x < y)


@given(finite, st.booleans())
def test_integers_are_those_of_the_host(x: float, truncate: bool) -> None:
    numbers = unit()
    found = numbers.to_integer(of(x), 0, False, truncate)[2]
    value = math.trunc(x) if truncate else round(x)
    fits = -(1 << 63) <= value < 1 << 63
    assert found == (value & (1 << 64) - 1 if fits else 1 << 63)
    assert bool(numbers.a[FPSR] >> 13 & INVALID) == (not fits)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_integers_become_exact_numbers(value: int) -> None:
    assert exact(from_integer((0, 0x1003E, value & (1 << 64) - 1))) == value


@given(finite.filter(lambda x: 1e-300 < abs(x) < 1e300))
def test_approximations_are_good_to_the_bits_promised(x: float) -> None:
    assert abs(exact(approximate(of(x))) * Fraction(x) - 1) < Fraction(1, 1 << 8)
    root = exact(approximate_root(of(abs(x))))
    assert abs(root * root * Fraction(abs(x)) - 1) < Fraction(1, 1 << 7)


def test_a_natval_passes_through_everything_without_a_flag() -> None:
    numbers = unit(0)
    assert numbers.fma(NATVAL, ONE, ONE, 0, DOUBLE, 0, False) == NATVAL
    assert numbers.frcpa(ONE, NATVAL, 0) == (NATVAL, 0)
    assert numbers.fcmp(NATVAL, ONE, 0, "lt") is None
    assert numbers.a[FPSR] == 0


def test_unmasked_faults_come_before_the_operation() -> None:
    numbers = unit(0)
    infinity = (0, NAN_EXPONENT, 1 << 63)
    with pytest.raises(FloatFault):
        numbers.fma(infinity, ZERO, ZERO, 0, DOUBLE, 0, True)
    assert numbers.a[FPSR] == 0


def test_unmasked_traps_come_behind_it() -> None:
    numbers = unit(0x1F)  # inexact results trap
    third = numbers.fma(of(0.1), of(0.1), ZERO, 0, DOUBLE, 0, True)
    assert to_double(third) == bits(0.1 * 0.1)
    assert numbers.pending == [32]

"""Arithmetic of x87's registers against Python's own doubles and exact fractions."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.x86_64 import extended
from engine.arch.x86_64.extended import (
    DENORMAL,
    INDEFINITE,
    INEXACT,
    INFINITY,
    INVALID,
    NEAREST,
    ONE,
    OVERFLOW,
    SIGN,
    UNDERFLOW,
    UP,
    ZERO_DIVIDE,
    ControlWord,
    NumberKind,
)

MASKED = 0x3F
LONG, DOUBLE = ControlWord(MASKED, 64, NEAREST), ControlWord(MASKED, 53, NEAREST)
# Far from where a double is tiny or too large, so that only the precision counts.
MIDDLE = st.floats(min_value=1e-60, max_value=1e60) | st.floats(min_value=-1e60, max_value=-1e-60)
BITS = st.integers(min_value=0, max_value=(1 << 80) - 1)


def register(number: float) -> int:
    return extended.from_double(struct.unpack("<Q", struct.pack("<d", number))[0])


def double(value: int) -> float:
    bits = extended.narrowed(value, 8, LONG).value
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def exact(value: int) -> Fraction:
    number = extended.real(value)
    magnitude = number.significand * Fraction(2) ** number.exponent
    return -magnitude if number.sign else magnitude


@pytest.mark.parametrize(
    ("operation", "python"),
    [
        (extended.add, lambda one, other: one + other),
        (extended.subtract, lambda one, other: one - other),
        (extended.multiply, lambda one, other: one * other),
        (extended.divide, lambda one, other: one / other),
    ],
    ids=["add", "subtract", "multiply", "divide"],
)
@given(one=MIDDLE, other=MIDDLE)
@settings(max_examples=100)
def test_with_53_bits_it_is_what_doubles_give(
    operation: extended.Operation,
    python: Callable[[float, float], float],
    one: float,
    other: float,
) -> None:
    found = operation(register(one), register(other), DOUBLE)
    assert double(found.value) == python(one, other)


@given(number=st.floats(min_value=1e-60, max_value=1e60))
@settings(max_examples=100)
def test_root(number: float) -> None:
    assert double(extended.root(register(number), DOUBLE).value) == math.sqrt(number)


@given(one=BITS, other=BITS, rounding=st.integers(min_value=0, max_value=3))
@settings(max_examples=200)
def test_products_are_rounded_as_asked(one: int, other: int, rounding: int) -> None:
    finite = (NumberKind.NORMAL, NumberKind.TINY)
    one, other = (value & ~(0x6000 << 64) | 0x2000 << 64 | 1 << 63 for value in (one, other))
    assert extended.kind_of(one) in finite
    found = extended.multiply(one, other, ControlWord(MASKED, 64, rounding))
    true, near = exact(one) * exact(other), exact(found.value)
    if found.flags & OVERFLOW or found.flags & UNDERFLOW:
        return
    assert (true != near) == bool(found.flags & INEXACT)
    assert found.up == (abs(near) > abs(true))
    ulp = Fraction(2) ** (extended.real(found.value).exponent)
    error = near - true
    if rounding == extended.NEAREST:
        assert abs(error) <= ulp / 2
    elif rounding == extended.TRUNCATE:
        assert abs(near) <= abs(true)
        assert abs(error) < ulp
    else:
        assert (0 <= error < ulp) if rounding == UP else (0 <= -error < ulp)


@given(one=MIDDLE, other=MIDDLE)
@settings(max_examples=100)
def test_remainders(one: float, other: float) -> None:
    for nearest, python in ((False, math.fmod), (True, math.remainder)):
        value, divisor = register(one), register(other)
        for _ in range(20):
            found = extended.remainder(value, divisor, LONG, nearest=nearest)
            value = found.result.value
            if not found.partial:
                break
        assert double(value) == python(one, other)
        assert not found.partial


@given(number=MIDDLE, power=st.integers(min_value=-300, max_value=300))
@settings(max_examples=50)
def test_scaled(number: float, power: int) -> None:
    found = extended.scale(register(number), extended.from_integer(power), LONG)
    assert double(found.value) == math.ldexp(number, power)


@given(number=MIDDLE)
@settings(max_examples=50)
def test_parts(number: float) -> None:
    parts = extended.extract(register(number))
    significand, exponent = math.frexp(number)
    assert (double(parts.significand), double(parts.exponent)) == (2 * significand, exponent - 1)


@given(value=st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1))
def test_integers_come_back(value: int) -> None:
    found = extended.to_integer(extended.from_integer(value), 8, NEAREST)
    assert (found.value, found.flags) == (value & (1 << 64) - 1, 0)


@given(digits=st.integers(min_value=0, max_value=10**18 - 1), negative=st.booleans())
def test_decimals_come_back(digits: int, negative: bool) -> None:
    bits = int(str(digits), 16) | (SIGN if negative else 0)
    found = extended.to_decimal(extended.from_decimal(bits), NEAREST)
    assert (found.value, found.flags) == (bits, 0)


@given(bits=st.integers(min_value=0, max_value=(1 << 64) - 1))
def test_doubles_come_back(bits: int) -> None:
    value = extended.from_double(bits)
    found = extended.narrowed(value, 8, LONG)
    signalling = extended.kind_of(value) is NumberKind.SIGNALLING
    assert found.value == (bits | 1 << 51 if signalling else bits)
    assert found.flags == (INVALID if signalling else 0)


SNAN, QNAN = 0x7FFF << 64 | 5 << 61, 0x7FFF << 64 | 3 << 62 | 5
TINY = 1
UNNORMAL = 0x3FFF << 64 | 1


@pytest.mark.parametrize(
    ("operation", "one", "other", "value", "flags"),
    [
        (extended.add, INFINITY, INFINITY | SIGN, INDEFINITE, INVALID),
        (extended.add, SNAN, QNAN, QNAN, INVALID),
        (extended.add, QNAN, TINY, QNAN, 0),
        (extended.add, TINY, INFINITY, INFINITY, DENORMAL),
        (extended.add, UNNORMAL, ONE, INDEFINITE, INVALID),
        (extended.subtract, ONE, ONE, 0, 0),
        (extended.multiply, 0, INFINITY, INDEFINITE, INVALID),
        (extended.multiply, SIGN, ONE, SIGN, 0),
        (extended.divide, ONE, SIGN, INFINITY | SIGN, ZERO_DIVIDE),
        (extended.divide, 0, 0, INDEFINITE, INVALID),
        (extended.divide, TINY, QNAN, QNAN, 0),
    ],
)
def test_special_cases(
    operation: extended.Operation, one: int, other: int, value: int, flags: int
) -> None:
    found = operation(one, other, LONG)
    assert (found.value, found.flags) == (value, flags)


def test_overflow_and_underflow() -> None:
    largest, smallest = 0x7FFE << 64 | (1 << 64) - 1, 1 << 64 | 1 << 63
    two = 0x4000 << 64 | 1 << 63
    half = 0x3FFE << 64 | 1 << 63
    over = extended.multiply(largest, two, LONG)
    assert (over.value, over.flags, over.up) == (INFINITY, OVERFLOW | INEXACT, True)
    towards_zero = extended.multiply(largest, two, ControlWord(MASKED, 64, extended.TRUNCATE))
    assert (towards_zero.value, towards_zero.up) == (largest, False)
    halved = extended.multiply(smallest, half, LONG)
    assert (halved.value, halved.flags) == (1 << 62, 0)  # nothing is lost
    unmasked = ControlWord(MASKED & ~UNDERFLOW, 64, NEAREST)
    trapped = extended.multiply(smallest, half, unmasked)
    assert (trapped.value, trapped.flags) == ((24576 << 64) | 1 << 63, UNDERFLOW)
    trapped = extended.multiply(largest, two, ControlWord(MASKED & ~OVERFLOW, 64, NEAREST))
    assert trapped.value >> 64 == 0x7FFF - 24576
    assert trapped.flags == OVERFLOW


def test_comparisons() -> None:
    pairs = {
        (ONE, ONE): extended.EQUAL,
        (0, SIGN): extended.EQUAL,
        (SIGN | ONE, ONE): extended.LESS,
        (INFINITY, ONE): extended.GREATER,
        (1 << 63, 1 << 64 | 1 << 63): extended.EQUAL,
        (QNAN, ONE): extended.UNORDERED,
    }
    for (one, other), order in pairs.items():
        assert extended.compare(one, other, quietly=True)[0] == order
    assert extended.compare(QNAN, ONE, quietly=True)[1] == 0
    assert extended.compare(QNAN, ONE, quietly=False)[1] == INVALID
    assert extended.compare(SNAN, ONE, quietly=True)[1] == INVALID

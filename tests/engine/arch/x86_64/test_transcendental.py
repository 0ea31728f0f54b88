"""The transcendental instructions of x87: known digits, Python's functions, special cases."""

import math
import struct
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.arch.x86_64 import extended, transcendental
from engine.arch.x86_64.extended import (
    INDEFINITE,
    INEXACT,
    INFINITY,
    INVALID,
    ONE,
    SIGN,
    ZERO_DIVIDE,
    ControlWord,
    Operation,
    Result,
)

NEAREST = ControlWord(0x3F, 64, extended.NEAREST)
TINY = 0x100 << 64 | 1 << 63
NUMBERS = st.floats(min_value=1e-3, max_value=1e3) | st.floats(min_value=-1e3, max_value=-1e-3)

Function = Callable[[int, ControlWord], Result]


def register(number: float) -> int:
    return extended.from_double(struct.unpack("<Q", struct.pack("<d", number))[0])


def double(value: int) -> float:
    bits = extended.narrowed(value, 8, NEAREST).value
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def near(found: Result, expected: float, off: float = 1e-300) -> bool:
    return math.isclose(double(found.value), expected, rel_tol=1e-14, abs_tol=off)


@example(number=-895.35397214604)
@given(number=NUMBERS)
@settings(max_examples=100)
def test_angles(number: float) -> None:
    value = register(number)
    off = abs(number) * 2.0**-66  # the processor's pi has 66 bits (SDM volume 1, 8.3.8)
    steep = 1 + math.tan(number) ** 2
    assert near(transcendental.sine(value, NEAREST), math.sin(number), off + 1e-300)
    assert near(transcendental.cosine(value, NEAREST), math.cos(number), off + 1e-300)
    assert near(transcendental.tangent(value, NEAREST), math.tan(number), off * steep + 1e-300)


@given(one=NUMBERS, other=NUMBERS)
@settings(max_examples=100)
def test_angles_of_points(one: float, other: float) -> None:
    found = transcendental.angle(register(one), register(other), NEAREST)
    assert near(found, math.atan2(one, other))


@given(number=st.floats(min_value=1e-300, max_value=1e300), factor=NUMBERS)
@settings(max_examples=100)
def test_logarithms(number: float, factor: float) -> None:
    found = transcendental.times_log(register(number), register(factor), NEAREST)
    assert near(found, factor * math.log2(number))


@given(number=st.floats(min_value=-0.29, max_value=0.4))
@settings(max_examples=100)
def test_logarithms_and_powers_near_one(number: float) -> None:
    found = transcendental.times_log_of_next(register(number), ONE, NEAREST)
    assert near(found, math.log1p(number) / math.log(2))
    found = transcendental.power_less_one(register(number), NEAREST)
    assert near(found, math.expm1(number * math.log(2)))


def test_known_digits() -> None:
    """To the last bit: 1 / e and the like as tables have them."""
    assert transcendental.pi(64) >> 2 == 0xC90FDAA22168C234
    assert transcendental.log_of_two(64) == 0xB17217F7D1CF79AB
    assert transcendental.sine(ONE, NEAREST).value == 0x3FFE_D76AA47848677021
    assert transcendental.cosine(ONE, NEAREST).value == 0x3FFE_8A51407DA8345C92
    assert transcendental.angle(ONE, ONE, NEAREST).value == 0x3FFE_C90FDAA22168C235
    half = 0x3FFE << 64 | 1 << 63
    assert transcendental.power_less_one(half, NEAREST).value == 0x3FFD_D413CCCFE7799211


def test_rounding_goes_where_it_is_told() -> None:
    down, up = (
        transcendental.sine(ONE, ControlWord(0x3F, 64, rounding)).value
        for rounding in (extended.DOWN, extended.UP)
    )
    assert up == down + 1


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (transcendental.sine, 0xFF << 64 | (1 << 64) - 1),
        (transcendental.tangent, TINY),
    ],
)
def test_of_the_least_numbers_what_rounding_says(function: Function, value: int) -> None:
    found = function(TINY, ControlWord(0x3F, 64, extended.TRUNCATE))
    assert (found.value, found.flags) == (value, INEXACT)
    assert function(TINY, NEAREST).value == TINY


@pytest.mark.parametrize(
    ("function", "one", "other", "value", "flags"),
    [
        (transcendental.times_log, SIGN | ONE, ONE, INDEFINITE, INVALID),
        (transcendental.times_log, 0, ONE, SIGN | INFINITY, ZERO_DIVIDE),
        (transcendental.times_log, 0, 0, INDEFINITE, INVALID),
        (transcendental.times_log, ONE, INFINITY, INDEFINITE, INVALID),
        (transcendental.times_log, ONE, SIGN | ONE, SIGN, 0),
        (transcendental.times_log, INFINITY, SIGN | ONE, SIGN | INFINITY, 0),
        (transcendental.times_log, INFINITY, 0, INDEFINITE, INVALID),
        (transcendental.times_log, 0x4002 << 64 | 1 << 63, ONE, 0x4000 << 64 | 3 << 62, 0),
        (transcendental.times_log_of_next, ONE, ONE, ONE, 0),
        (transcendental.times_log_of_next, 0, INFINITY, INDEFINITE, INVALID),
        (transcendental.times_log_of_next, SIGN, ONE, SIGN, 0),
        (transcendental.angle, 0, ONE, 0, 0),
        (transcendental.angle, 0, SIGN, 0x4000_C90FDAA22168C235, INEXACT),
        (transcendental.angle, SIGN, SIGN | ONE, SIGN | 0x4000_C90FDAA22168C235, INEXACT),
        (transcendental.angle, ONE, 0, 0x3FFF_C90FDAA22168C235, INEXACT),
        (transcendental.angle, INFINITY, SIGN | INFINITY, 0x4000_96CBE3F9990E91A8, INEXACT),
        (transcendental.angle, ONE, INFINITY, 0, 0),
    ],
)
def test_special_cases(function: Operation, one: int, other: int, value: int, flags: int) -> None:
    found = function(one, other, NEAREST)
    assert (hex(found.value), found.flags) == (hex(value), flags)


def test_what_is_out_of_range() -> None:
    assert transcendental.out_of_range((0x3FFF + 63) << 64 | 1 << 63)
    assert not transcendental.out_of_range((0x3FFF + 62) << 64 | 1 << 63)
    assert not transcendental.out_of_range(INFINITY)
    assert transcendental.sine(INFINITY, NEAREST).flags == INVALID


def test_an_angle_is_reduced_by_66_bits_of_pi() -> None:
    """As processors do: the sine of the nearest to pi is what those bits leave."""
    found = transcendental.sine(0x4000_C90FDAA22168C235, NEAREST)
    assert found.value == SIGN | 0x3FBF << 64 | 1 << 63

"""The transcendental instructions of x87, correctly rounded (SDM volume 2 has their tables).

Functions are found in whole numbers that stand for fractions, with an error that is known, and
with more bits until all that is within the error rounds alike. No result is exact: the cases
that are come first.
"""

from collections.abc import Callable
from functools import cache
from math import isqrt
from typing import Final

from engine.arch.x86_64.extended import (
    INDEFINITE,
    INEXACT,
    INFINITY,
    INVALID,
    ONE,
    SIGN,
    ZERO_DIVIDE,
    ControlWord,
    NumberKind,
    Real,
    Result,
    denormals,
    from_integer,
    infinite,
    kind_of,
    multiply,
    quotient,
    real,
    refused,
    rounded,
)

_FIRST: Final = 160
"""Bits of the first try."""
_SLIGHT: Final = -100
"""Below this power of two a sine is its angle less something that no bit shows."""
_PI_BITS: Final = 66
"""Bits of the number that processors take for pi where they reduce an angle."""
TOO_LARGE: Final = 63
"""Powers of two from which on an angle is not reduced."""

Approximation = Callable[[int], Real]
"""Bits wanted to a number of about so many, wrong by less than 2 ** 20 of its last."""


def _settled(find: Approximation, control: ControlWord, flags: int) -> Result:
    """Round what is approximated: the same for all that it may be."""
    bits = _FIRST
    while True:
        number = find(bits)
        wrong = 1 << 20
        low, high = (
            rounded(
                Real(number.sign, (number.significand + by) << 1 | 1, number.exponent - 1),
                control.long,
                flags,
            )
            for by in (-wrong, wrong)
        )
        if low == high:
            return low
        bits *= 2


# -- constants and series -------------------------------------------------------------------


@cache
def pi(bits: int) -> int:
    """Pi times two to `bits`, by Machin's formula."""
    more = bits + 32
    return (16 * _arctangent_of_inverse(5, more) - 4 * _arctangent_of_inverse(239, more)) >> 32


def _arctangent_of_inverse(number: int, bits: int) -> int:
    power = total = (1 << bits) // number
    square, term, sign = number * number, 3, -1
    while power:
        power //= square
        total += sign * (power // term)
        term, sign = term + 2, -sign
    return total


@cache
def log_of_two(bits: int) -> int:
    """The natural logarithm of two times two to `bits`: 2 artanh(1/3)."""
    more = bits + 32
    return _artanh((1 << more) // 3, more) * 2 >> 32


def _artanh(value: int, bits: int) -> int:
    """Of a fraction with `bits` bits."""
    square = value * value >> bits
    total, power, term = value, value, 3
    while power:
        power = power * square >> bits
        total += power // term
        term += 2
    return total


def _arctangent(value: int, bits: int) -> int:
    """Of a fraction from 0 to 1."""
    halvings = 4
    one = 1 << bits
    for _ in range(halvings):
        value = (value << bits) // (one + isqrt((one << bits) + value * value))
    square = value * value >> bits
    total, power, term, sign = value, value, 3, -1
    while power:
        power = power * square >> bits
        total += sign * (power // term)
        term, sign = term + 2, -sign
    return total << halvings


def _sine_and_cosine(angle: int, bits: int) -> tuple[int, int]:
    """Of an angle from 0 to pi / 4."""
    square = angle * angle >> bits
    sine = power = angle
    term = 1
    while power:
        power = -((power * square >> bits) // ((term + 1) * (term + 2)))
        if power in (0, -1):
            break
        sine += power
        term += 2
    cosine = power = 1 << bits
    term = 0
    while power:
        power = -((power * square >> bits) // ((term + 1) * (term + 2)))
        if power in (0, -1):
            break
        cosine += power
        term += 2
    return sine, cosine


def _fraction(number: Real, bits: int) -> int:
    """The magnitude of a number with `bits` bits behind the point, cut off."""
    shift = number.exponent + bits
    return number.significand << shift if shift >= 0 else number.significand >> -shift


# -- powers and logarithms ------------------------------------------------------------------


def power_less_one(value: int, control: ControlWord) -> Result:
    """F2xm1: two to a number from -1 to 1, less one. Others are left as they are."""
    found = refused(value)
    if found is not None:
        return found
    if infinite(value):
        return Result(SIGN | ONE) if value & SIGN else Result(value)
    number = real(value)
    flags = denormals(value)
    if not number.significand:
        return Result(value)
    if value & ~SIGN >= ONE:
        if value & ~SIGN == ONE:
            return Result(value if not value & SIGN else SIGN | ONE - (1 << 64))
        return Result(value, flags | INEXACT)

    def find(bits: int) -> Real:
        if number.magnitude < -bits:  # of the series one term counts
            product = number.significand * log_of_two(bits)
            return Real(number.sign, product, number.exponent - bits)
        wide = bits + max(0, -number.magnitude)
        angle = _fraction(number, wide) * log_of_two(wide) >> wide
        if number.sign:
            angle = -angle
        total, power, term = angle, angle, 2
        while power not in (0, -1):
            power = (power * angle >> wide) // term
            total += power
            term += 1
        return Real(int(total < 0), abs(total), -wide)

    return _settled(find, control, flags)


def _log(number: Real, bits: int) -> int:
    """The logarithm to base two of a positive number, `bits` bits behind the point."""
    significand = number.significand
    power = number.magnitude
    size = significand.bit_length()
    if 3 * significand > 2 << size:  # above 4/3: the next power is nearer
        power += 1
    wide = bits + 16
    shift = power - number.exponent  # the number is significand / 2 ** shift times 2 ** power
    one = 1 << shift if shift >= 0 else 1
    part = significand if shift >= 0 else significand << -shift
    ratio = (abs(part - one) << wide) // (part + one)
    natural = 2 * _artanh(ratio, wide)
    found = (natural << wide) // log_of_two(wide)
    return ((found if part >= one else -found) >> 16) + (power << bits)


def times_log(value: int, factor: int, control: ControlWord) -> Result:
    """Fyl2x: `factor` times the logarithm to base two of `value`."""
    found = refused(factor, value)
    if found is not None:
        return found
    flags = denormals(value, factor)
    sign = factor & SIGN
    if value & SIGN and value != SIGN:
        return Result(INDEFINITE, INVALID)
    if not value & ~SIGN:
        if not factor & ~SIGN:
            return Result(INDEFINITE, INVALID)
        if infinite(factor):
            return Result(factor ^ SIGN, flags)
        return Result(SIGN ^ sign | INFINITY, flags | ZERO_DIVIDE)
    if infinite(value):
        if not factor & ~SIGN:
            return Result(INDEFINITE, INVALID)
        return Result(sign | INFINITY, flags)
    one = value == ONE
    below = value < ONE
    if infinite(factor):
        if one:
            return Result(INDEFINITE, INVALID)
        return Result(factor ^ SIGN if below else factor, flags)
    if not factor & ~SIGN or one:
        return Result(sign ^ (SIGN if below else 0), flags)
    number, times = real(value), real(factor)
    if not number.significand & number.significand - 1:  # a power of two
        exact = multiply(from_integer(number.magnitude), factor, control.long)
        return Result(exact.value, exact.flags | flags, exact.up)

    def find(bits: int) -> Real:
        # The nearest to 1 is 2 ** -64 away from it.
        logarithm = _log(number, bits + 72)
        negative = times.sign ^ int(logarithm < 0)
        return Real(
            negative, abs(logarithm) * times.significand >> 64, times.exponent + 64 - bits - 72
        )

    return _settled(find, control, flags)


def times_log_of_next(value: int, factor: int, control: ControlWord) -> Result:
    """Fyl2xp1: `factor` times the logarithm to base two of `value` + 1."""
    found = refused(factor, value)
    if found is not None:
        return found
    flags = denormals(value, factor)
    sign = (value ^ factor) & SIGN
    if infinite(value):
        if value & SIGN or not factor & ~SIGN:
            return Result(INDEFINITE, INVALID)
        return Result(factor & SIGN | INFINITY, flags)
    if infinite(factor):
        if not value & ~SIGN:
            return Result(INDEFINITE, INVALID)
        return Result(sign | INFINITY, flags)
    if not value & ~SIGN or not factor & ~SIGN:
        return Result(sign, flags)
    number, times = real(value), real(factor)
    if value & SIGN and value & ~SIGN >= ONE:  # outside of what is defined
        return Result(value, flags | INEXACT)

    following = _following(number)
    if following is not None and not following.significand & following.significand - 1:
        exact = multiply(from_integer(following.magnitude), factor, control.long)
        return Result(exact.value, exact.flags | flags, exact.up)

    def find(bits: int) -> Real:
        if number.magnitude < -bits:
            product = number.significand * times.significand << bits + 64
            exponent = number.exponent + times.exponent - 64
            return Real(sign >> 79, product // log_of_two(bits), exponent)
        wide = bits + max(0, -number.magnitude) + 8
        if following is not None and number.magnitude > 4:
            logarithm = _log(following, wide)
        else:
            part = _fraction(number, wide) * (-1 if number.sign else 1)
            ratio = (abs(part) << wide) // ((2 << wide) + part)
            logarithm = (2 * _artanh(ratio, wide) << wide) // log_of_two(wide)
        return Real(sign >> 79, logarithm * times.significand >> 60, times.exponent + 60 - wide)

    return _settled(find, control, flags)


def _following(number: Real) -> Real | None:
    """The number and one; None for a small one, to which that has too many bits."""
    if number.magnitude < -70:
        return None
    exponent = min(number.exponent, 0)
    significand = number.significand << (number.exponent - exponent)
    one = 1 << -exponent
    return Real(0, one - significand if number.sign else one + significand, exponent)


# -- angles ---------------------------------------------------------------------------------


def _reduced(number: Real, bits: int) -> tuple[int, int, int]:
    """Quarter turns nearest to an angle, the rest (signed) and the bits behind its point."""
    wide = bits + max(0, -number.magnitude) + 80
    quarter = pi(_PI_BITS - 2) << (wide - _PI_BITS + 1)
    angle = _fraction(number, wide)
    count = (2 * angle + quarter) // (2 * quarter)
    return count, angle - count * quarter, wide


def _circular(value: int, bits: int) -> tuple[tuple[int, int], tuple[int, int], int]:
    """(sign, magnitude) of sine and cosine, and the bits behind their point."""
    number = real(value)
    count, rest, wide = _reduced(number, bits)
    sine, cosine = _sine_and_cosine(abs(rest), wide)
    if rest < 0:
        sine = -sine
    for _ in range(count & 3):
        sine, cosine = cosine, -sine
    if number.sign:
        sine = -sine
    return (int(sine < 0), abs(sine)), (int(cosine < 0), abs(cosine)), wide


def out_of_range(value: int) -> bool:
    """True for an angle that the instructions do not reduce."""
    return kind_of(value) is NumberKind.NORMAL and real(value).magnitude >= TOO_LARGE


def _beside(number: Real, by: int, control: ControlWord, flags: int) -> Result:
    """Round what is a little more, or less, in magnitude than a number."""
    significand = (number.significand << 80) + by
    return rounded(Real(number.sign, significand, number.exponent - 80), control.long, flags)


def _angle(value: int) -> Result | None:
    found = refused(value)
    if found is not None:
        return found
    return Result(INDEFINITE, INVALID) if infinite(value) else None


def sine(value: int, control: ControlWord) -> Result:
    """Fsin, of an angle that is not out of range."""
    found = _angle(value)
    if found is not None or not value & ~SIGN:
        return found or Result(value)

    if real(value).magnitude < _SLIGHT:
        return _beside(real(value), -1, control, denormals(value))

    def find(bits: int) -> Real:
        (sign, magnitude), _, wide = _circular(value, bits)
        return Real(sign, magnitude, -wide)

    return _settled(find, control, denormals(value))


def cosine(value: int, control: ControlWord) -> Result:
    """Fcos likewise."""
    found = _angle(value)
    if found is not None or not value & ~SIGN:
        return found or Result(ONE)

    if real(value).magnitude < _SLIGHT:
        return _beside(real(ONE), -1, control, denormals(value))

    def find(bits: int) -> Real:
        _, (sign, magnitude), wide = _circular(value, bits)
        return Real(sign, magnitude, -wide)

    return _settled(find, control, denormals(value))


def tangent(value: int, control: ControlWord) -> Result:
    """Fptan likewise."""
    found = _angle(value)
    if found is not None or not value & ~SIGN:
        return found or Result(value)

    if real(value).magnitude < _SLIGHT:
        return _beside(real(value), 1, control, denormals(value))

    def find(bits: int) -> Real:
        (sign, upper), (other, lower), wide = _circular(value, bits)
        return Real(sign ^ other, (upper << wide) // lower, -wide)

    return _settled(find, control, denormals(value))


def angle(height: int, width: int, control: ControlWord) -> Result:
    """Fpatan: the angle of a point from the axis, from -pi to pi."""
    found = refused(height, width)
    if found is not None:
        return found
    flags = denormals(height, width)
    sign, left = height >> 79, width >> 79
    # In eighths of a turn where it is known beforehand.
    if infinite(height):
        eighths = 2 if not infinite(width) else 3 if left else 1
    elif infinite(width) or not height & ~SIGN:
        eighths = 4 if left else 0
    elif not width & ~SIGN:
        eighths = 2
    else:
        ratio = quotient(real(height), real(width))
        if ratio.magnitude < _SLIGHT and not left:
            return _beside(ratio, -1, control, flags)
        return _settled(lambda bits: _angle_of(real(height), real(width), bits), control, flags)
    if not eighths:
        return Result(height & SIGN, flags)
    return _settled(lambda bits: Real(sign, eighths * pi(bits), -bits - 2), control, flags)


def _angle_of(height: Real, width: Real, bits: int) -> Real:
    steep = _above(height, width)
    upper, lower = (width, height) if steep else (height, width)
    if not steep and not width.sign:
        wide = bits + max(0, lower.magnitude - upper.magnitude) + 8
        return Real(height.sign, _arctangent(_ratio(upper, lower, wide), wide), -wide)
    wide = bits + 8
    part = _arctangent(_ratio(upper, lower, wide), wide)
    if not steep:
        return Real(height.sign, pi(wide) - part, -wide)
    return Real(height.sign, (pi(wide) >> 1) + (part if width.sign else -part), -wide)


def _ratio(upper: Real, lower: Real, bits: int) -> int:
    shift = upper.exponent - lower.exponent + bits
    if shift >= 0:
        return (upper.significand << shift) // lower.significand
    return upper.significand // (lower.significand << -shift)


def _above(height: Real, width: Real) -> bool:
    """True if the one is greater than the other, signs aside."""
    if height.magnitude != width.magnitude:
        return height.magnitude > width.magnitude
    shift = height.exponent - width.exponent
    if shift >= 0:
        return height.significand << shift > width.significand
    return height.significand > width.significand << -shift

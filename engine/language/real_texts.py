"""Floating-point numbers as texts, with as many digits as gdb gives them."""

from fractions import Fraction
from typing import Final

from engine.language.values import Order, as_float, extended, quad

DIGITS: Final = {2: 5, 4: 9, 8: 17}
"""Significant digits that tell a number of so many bytes from all others."""
_X87_DIGITS, _QUAD_DIGITS = 21, 36


def real(raw: bytes, order: Order, *, is_quad: bool = False) -> str:
    """A floating-point number with as many digits as tell it from all others."""
    number = as_float(raw, order, is_quad=is_quad)
    if number != number:
        return _nan(raw, order)
    if number in (float("inf"), float("-inf")):
        return "inf" if number > 0 else "-inf"
    digits = DIGITS.get(len(raw))
    if digits is not None:
        return f"{number:.{digits}g}"
    exact = quad(raw, order) if is_quad else extended(raw)
    digits = _QUAD_DIGITS if is_quad else _X87_DIGITS
    return exact_text(exact, digits) if isinstance(exact, Fraction) else str(exact)


def brain_float(raw: bytes, order: Order) -> str:
    """A number of two bytes that are the upper half of a `float`, likewise."""
    whole = b"\0\0" + raw if order == "little" else raw + b"\0\0"
    number = as_float(whole, order)
    if number == number:
        return f"{number:.4g}"
    bits = int.from_bytes(raw, order)
    return f"{'-' if bits >> 15 else ''}nan({bits & 0x7F:#x})"


def _nan(raw: bytes, order: Order) -> str:
    size = len(raw)
    if size > 8:
        top = int.from_bytes(raw[8:10], "little") >> 15
        return f"{'-' if top else ''}nan({int.from_bytes(raw[:8], 'little'):#x})"
    bits = {2: 10, 4: 23, 8: 52}.get(size, 52)
    whole = int.from_bytes(raw, order)
    return f"{'-' if whole >> 8 * size - 1 else ''}nan({whole & (1 << bits) - 1:#x})"


def exact_text(number: Fraction, digits: int) -> str:
    """A number with so many significant digits, as %Lg gives them."""
    if not number:
        return "0"
    sign, number = ("-", -number) if number < 0 else ("", number)
    bits = number.numerator.bit_length() - number.denominator.bit_length()
    power = bits * 30103 // 100_000  # about log10; a long number must not be made text
    while number >= Fraction(10) ** (power + 1):
        power += 1
    while number < Fraction(10) ** power:
        power -= 1
    scaled = number / Fraction(10) ** (power - digits + 1)
    whole = round(scaled)
    if whole >= 10**digits:
        whole, power = whole // 10, power + 1
    text = str(whole)
    if -5 < power + 1 <= digits:
        if power >= 0:
            left, right = text[: power + 1], text[power + 1 :].rstrip("0")
            return f"{sign}{left}.{right}" if right else sign + left
        return sign + "0." + "0" * (-power - 1) + text.rstrip("0")
    right = text[1:].rstrip("0")
    return f"{sign}{text[0]}{'.' + right if right else ''}e{power:+03d}"

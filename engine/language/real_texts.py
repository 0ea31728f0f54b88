"""Floating-point numbers as texts, with as many digits as gdb gives them."""

from fractions import Fraction
from typing import Final

from engine.language.values import Order, as_float, extended

DIGITS: Final = {4: 9, 8: 17}
"""Significant digits that tell a number of so many bytes from all others."""


def real(raw: bytes, order: Order) -> str:
    """A floating-point number with as many digits as tell it from all others."""
    number = as_float(raw, order)
    if number != number:
        return _nan(raw, order)
    if number in (float("inf"), float("-inf")):
        return "inf" if number > 0 else "-inf"
    digits = DIGITS.get(len(raw))
    if digits is not None:
        return f"{number:.{digits}g}"
    exact = extended(raw)
    return exact_text(exact, 21) if isinstance(exact, Fraction) else str(exact)


def _nan(raw: bytes, order: Order) -> str:
    size = len(raw)
    if size > 8:
        top = int.from_bytes(raw[8:10], "little") >> 15
        return f"{'-' if top else ''}nan({int.from_bytes(raw[:8], 'little'):#x})"
    bits = {4: 23, 8: 52}.get(size, 52)
    whole = int.from_bytes(raw, order)
    return f"{'-' if whole >> 8 * size - 1 else ''}nan({whole & (1 << bits) - 1:#x})"


def exact_text(number: Fraction, digits: int) -> str:
    """A number with so many significant digits, as %Lg gives them."""
    if not number:
        return "0"
    sign, number = ("-", -number) if number < 0 else ("", number)
    power = len(str(int(number))) - 1 if number >= 1 else -len(str(int(1 / number)))
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

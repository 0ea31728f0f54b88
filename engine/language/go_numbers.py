"""Arithmetic of Go's numbers (Go specification, "Arithmetic operators")."""

import re
from typing import Final

from engine.errors import CommandError

_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.*))")
_LETTERS: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def letter_code(text: str) -> int:
    """The code of the character between quotes.

    Args:
        text: the character or its escape.
    """
    match = _ESCAPE.fullmatch(text)
    if match is None:
        return ord(text[0])
    digits = match[1] or match[2] or match[3]
    if digits:
        return int(digits, 16)
    if match[4].isdigit():
        return int(match[4], 8)
    return _LETTERS.get(match[4], ord(match[4][0]))


def letter_of(letter: str) -> int:
    """The code of a character of a text; that of U+FFFD for a byte that is no part of UTF-8."""
    code = ord(letter)
    return 0xFFFD if 0xDC80 <= code <= 0xDCFF else code


def is_ordered(word: str, left: float | bytes, right: float | bytes) -> bool:
    """Compare two numbers or two texts by an operator.

    Raises:
        CommandError: the operator does not compare.
    """
    if isinstance(left, bytes) or isinstance(right, bytes):
        assert isinstance(left, bytes), "both are texts"
        assert isinstance(right, bytes), "both are texts"
        less, more = left < right, left > right
    else:
        less, more = left < right, left > right
    found = {"<": less, ">": more, "<=": not more, ">=": not less}.get(word)
    if found is None:
        raise CommandError(f"operator {word} can not be applied to texts")
    return found


def computed_complex(word: str, left: complex, right: complex) -> complex:
    """A number computed from two complex ones.

    Raises:
        CommandError: the operator is none of complex numbers, or the result is not defined.
    """
    match word:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            if not right:
                raise CommandError("division by zero")
            return left / right
    raise CommandError(f"operator {word} can not be applied to complex128")


def computed(word: str, left: float, right: float) -> float:
    """A number computed from two; integers are divided towards zero.

    Raises:
        CommandError: the operator is none of numbers, or the result is not defined.
    """
    if word in ("/", "%") and not right:
        raise CommandError("division by zero")
    if word in ("<<", ">>") and not 0 <= right < 1 << 12:
        raise CommandError("shift count is negative or too large")
    match word:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if isinstance(left, float) or isinstance(right, float):
        if word == "/":
            return left / right
        raise CommandError(f"operator {word} can not be applied to float64")
    same = (left < 0) == (right < 0)
    match word:
        case "/":
            quotient = abs(left) // abs(right)
            return quotient if same else -quotient
        case "%":
            rest = abs(left) % abs(right)
            return -rest if left < 0 else rest
        case "<<":
            return left << right
        case ">>":
            return left >> right
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right
        case "&^":
            return left & ~right
    raise CommandError(f"operator {word} can not be applied to numbers")

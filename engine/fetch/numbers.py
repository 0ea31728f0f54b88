"""Numbers as the kernel reads them (lib/kstrtox.c): base by prefix, no rest, no overflow."""

import re

_ANY_BASE = re.compile(r"(?P<hex>0[xX][0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*)")
_DECIMAL = re.compile(r"[0-9]+")
_BASES = {"hex": 16, "octal": 8, "decimal": 10}


def _digits(text: str) -> int | None:
    match = _ANY_BASE.fullmatch(text)
    return None if match is None else int(match[0], _BASES[str(match.lastgroup)])


def unsigned(text: str, bits: int) -> int | None:
    """A number of that width, decimal, 0x or 0-octal, perhaps after a '+'; None if it is none."""
    value = _digits(text.removeprefix("+"))
    return value if value is not None and value < 1 << bits else None


def signed(text: str, bits: int) -> int | None:
    """As `unsigned`, in two's complement and perhaps after a '-'."""
    limit = 1 << bits - 1
    if text.startswith("-"):
        value = _digits(text[1:])
        return -value if value is not None and value <= limit else None
    value = _digits(text.removeprefix("+"))
    return value if value is not None and value < limit else None


def wrong_number(text: str, bits: int, *, is_signed: bool) -> str:
    """The kernel's error for a text that `unsigned` or `signed` did not take.

    Digits that do not fit are ERANGE, whatever follows them; all else that is wrong is EINVAL.
    """
    negative = is_signed and text.startswith("-")
    value, rest = leading(text[1:] if negative else text.removeprefix("+"))
    if value >= 1 << bits:
        return "ERANGE"
    if rest or not is_signed:
        return "EINVAL"
    return "ERANGE" if value >= (1 << bits - 1) + negative else "EINVAL"


def decimal(text: str, bits: int) -> int | None:
    """A decimal number, perhaps after a '+'; None if it is none."""
    text = text.removeprefix("+")
    if _DECIMAL.fullmatch(text) is None:
        return None
    value = int(text)
    return value if value < 1 << bits else None


def leading_decimal(text: str) -> tuple[int, str]:
    """The decimal number at the front of a text, 0 for none, and what follows."""
    match = _DECIMAL.match(text)
    return (int(match[0]), text[match.end() :]) if match else (0, text)


def leading(text: str) -> tuple[int, str]:
    """The number at the front of a text and what follows; (0, the text) where there is none."""
    match = _ANY_BASE.match(text)
    if match is None:
        return 0, text
    return int(match[0], _BASES[str(match.lastgroup)]), text[match.end() :]

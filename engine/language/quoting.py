"""Characters and texts in quotes, as gdb writes them (gdb/valprint.c)."""

import sys
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final

from engine.language.print_options import DEFAULT
from engine.language.values import Order

_ESCAPES: Final = {
    7: "\\a",
    8: "\\b",
    9: "\\t",
    10: "\\n",
    11: "\\v",
    12: "\\f",
    13: "\\r",
    27: "\\033",
    92: "\\\\",
}


def character(code: int) -> str:
    r"""A character in quotes: 'a', '\\n', '\\310'."""
    return "'" + _escaped(code & 0xFF, "'") + "'"


def _escaped(code: int, quote: str) -> str:
    if code in _ESCAPES:
        return _ESCAPES[code]
    if chr(code) == quote:
        return "\\" + quote
    return chr(code) if 32 <= code < 127 else f"\\{code:03o}"


def quoted(data: bytes, repeats: int = DEFAULT.repeats) -> str:
    r"""A string in quotes; what repeats stands once: "abc", '\\000' <repeats 12 times>."""
    return _with_repeats(data, lambda code, quote: _escaped(code & 0xFF, quote), "", repeats)


def quoted_wide(
    data: bytes, size: int, order: Order, mark: str, repeats: int = DEFAULT.repeats
) -> str:
    r"""A text of wider characters: L"abc", U'\\000' <repeats 12 times>.

    Args:
        data: its bytes.
        size: bytes of a character.
        order: of them.
        mark: in front of the quotes.
        repeats: more than so many equal characters stand once.
    """
    codes = [int.from_bytes(data[at : at + size], order) for at in range(0, len(data), size)]
    return _with_repeats(codes, lambda code, quote: _wide(code, quote, size, order), mark, repeats)


def _with_repeats(
    codes: Iterable[int], shown: Callable[[int, str], str], mark: str, repeats: int
) -> str:
    """Texts in quotes, and characters that repeat with their number, behind one mark."""
    parts: list[str] = []
    plain = ""
    for code, run in groupby(codes):
        length = sum(1 for _ in run)
        if length <= repeats:
            plain += shown(code, '"') * length
            continue
        if plain:
            parts.append(f'"{plain}"')
            plain = ""
        parts.append(f"'{shown(code, chr(39))}' <repeats {length} times>")
    if plain or not parts:
        parts.append(f'"{plain}"')
    return mark + ", ".join(parts)


def wide_character(code: int, size: int, order: Order, mark: str) -> str:
    """A wider character in quotes: L'w'."""
    return f"{mark}'{_wide(code, chr(39), size, order)}'"


def _wide(code: int, quote: str, size: int, order: Order) -> str:
    if code < 128:
        return _escaped(code, quote)
    if code <= sys.maxunicode and chr(code).isprintable():
        return chr(code)
    if code > sys.maxunicode:
        return f"\\x{code:x}"
    return "".join(f"\\{byte:03o}" for byte in code.to_bytes(size, order))

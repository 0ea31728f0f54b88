"""The parts of a cast in a kernel's definition: `(STRUCT[,MEMBER])ARG->MEMBER`.

As handle_typecast of kernel/trace/trace_probe.c in Linux 7.3, with the places of its errors.
"""

from typing import Final

from msgspec import Struct

from engine.fetch.bases import ArgCursor

CURRENT: Final = "$current"
READS: Final = "this_cpu_read("
PER_CPU: Final = ("this_cpu_ptr(", READS)
NESTING: Final = frozenset("+-(")
"""First characters of bodies with another one inside."""
_ARROW: Final = "->"
_DIGITS: Final = frozenset("0123456789")


class CastParts(Struct, frozen=True):
    """The places of a cast's parts in its text.

    Attributes:
        close: of the bracket behind the structure.
        inner_at: begin of the argument that is cast, without brackets of its own.
        inner_end: behind it.
        member_at: begin of the member's name.
    """

    close: int
    inner_at: int
    inner_end: int
    member_at: int


def cast_parts(at: ArgCursor, text: str) -> CastParts:
    """The parts of a text that begins with a bracket.

    Args:
        at: where the text begins.
        text: the text, from its bracket on.

    Raises:
        ProbeSyntaxError: it is no cast.
    """
    close = text.find(")")
    if close < 0:
        raise at.fail("DEREF_OPEN_BRACE", len(text))
    begin = close + 1
    if text.startswith("(", begin):
        end = _matching(text, begin)
        if end is None:
            raise at.fail("DEREF_OPEN_BRACE", begin)
        if not text.startswith(_ARROW, end + 1):
            raise at.fail("TYPECAST_REQ_FIELD", end + 1)
        return CastParts(close, begin + 1, end, end + 1 + len(_ARROW))
    if text.startswith(("+", "-", *PER_CPU), begin):
        bracket = text.find("(", begin + 1)
        if bracket < 0:
            raise at.fail("DEREF_NEED_BRACE", begin)
        end = _matching(text, bracket)
        if end is None:
            raise at.fail("DEREF_OPEN_BRACE", len(text))
        arrow = end + 1
        if not text.startswith(_ARROW, arrow):
            raise at.fail("TYPECAST_REQ_FIELD", arrow)
        return CastParts(close, begin, arrow, arrow + len(_ARROW))
    if text.startswith("@", begin):
        sign = next((n for n in range(begin, len(text)) if text[n] in "+-"), None)
        if sign is not None and text[sign + 1 : sign + 2] in _DIGITS:
            raise at.fail("TYPECAST_SYM_OFFSET", begin)
    arrow = text.find("-", begin)
    if arrow < 0 or not text.startswith(_ARROW, arrow):
        raise at.fail("TYPECAST_REQ_FIELD", len(text))
    return CastParts(close, begin, arrow, arrow + len(_ARROW))


def first_member(text: str) -> int:
    """Column at which the first member's name behind a variable begins; 0 without any."""
    arrow = text.find(_ARROW)
    return arrow + len(_ARROW) if arrow >= 0 else 0


def member_columns(text: str, at: int) -> list[int]:
    """Columns at which the kernel stands once it has read the members up to each arrow.

    That is at the next name, and at the last one in the end.

    Args:
        text: ends with the members.
        at: where the first of them begins.
    """
    found: list[int] = []
    arrow = text.find(_ARROW, at)
    while arrow >= 0:
        found.append(arrow + len(_ARROW))
        arrow = text.find(_ARROW, arrow + len(_ARROW))
    last = found[-1] if found else at
    return [*found, max(last, text.rfind(".", last) + 1)]


def _matching(text: str, bracket: int) -> int | None:
    """Column of the bracket that closes one; None without."""
    depth = 0
    for number in range(bracket, len(text)):
        depth += (text[number] == "(") - (text[number] == ")")
        if not depth:
            return number
    return None

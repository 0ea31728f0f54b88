"""Drawing for all panes: marks, text made harmless, numbers as people read them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from textual.app import App

from engine.escaping import escaped


class Mark(NamedTuple):
    """A sign, and what stands for it on a terminal without Unicode."""

    sign: str
    plain: str


MARKS: Final[dict[str, Mark]] = {
    "armed": Mark("\N{BLACK CIRCLE}", "*"),
    "off": Mark("\N{DOTTED CIRCLE}", "-"),
    "return": Mark("\N{WHITE CIRCLE}", "o"),
    "pending": Mark("?", "?"),
    "gone": Mark("\N{BALLOT X}", "x"),
    "swallowed": Mark("\N{BOX DRAWINGS LIGHT QUADRUPLE DASH VERTICAL}", ":"),
    "trampoline": Mark("T", "T"),
    "stop": Mark("\N{BLACK SQUARE}", "#"),
    "cursor": Mark("\N{BLACK RIGHT-POINTING POINTER}", ">"),
    "shown": Mark("\N{RIGHTWARDS ARROW}", ">"),
    "selected": Mark("\N{BOX DRAWINGS HEAVY VERTICAL}", "|"),
    "enter": Mark("\N{BLACK RIGHT-POINTING TRIANGLE}", ">"),
    "leave": Mark("\N{BLACK LEFT-POINTING TRIANGLE}", "<"),
    "folded": Mark("\N{BLACK RIGHT-POINTING SMALL TRIANGLE}", "+"),
    "open": Mark("\N{BLACK DOWN-POINTING SMALL TRIANGLE}", "-"),
    "yes": Mark("\N{CHECK MARK}", "+"),
    "no": Mark("\N{BALLOT X}", "x"),
    "times": Mark("\N{MULTIPLICATION SIGN}", "x"),
    "more": Mark("\N{HORIZONTAL ELLIPSIS}", "~"),
    "kept": Mark("\N{BOX DRAWINGS LIGHT VERTICAL AND HORIZONTAL}", "+"),
    "rule": Mark("\N{BOX DRAWINGS LIGHT HORIZONTAL}", "-"),
    "arrow": Mark("\N{RIGHTWARDS ARROW}", "->"),
    "branch": Mark("\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}", "~>"),
}
"""All signs that carry a meaning. Each means the same in every pane, and none needs a colour."""

_SPARKS: Final = ("".join(map(chr, range(0x2581, 0x2589))), "_.:-=+*#")
"""The eighths of a block, and what stands for them."""


def is_ascii(app: App[object]) -> bool:
    """True if the user asked for plain ASCII (`--ascii`): the app's own flag `ascii`."""
    return bool(getattr(app, "ascii", False))


def mark(name: str, ascii_only: bool = False) -> str:
    """The sign of a name in `MARKS`."""
    return MARKS[name][ascii_only]


def harmless(text: str | bytes, ascii_only: bool = False) -> str:
    """Text of a guest as it may go to a terminal: see `engine.escaping`."""
    text = escaped(text)
    if ascii_only and not text.isascii():
        text = text.encode("ascii", errors="backslashreplace").decode()
    return text


def cut(text: str, most: int, ascii_only: bool = False) -> str:
    """A text of at most so many characters; a mark says that there were more."""
    return text if len(text) <= most else text[: most - 1] + mark("more", ascii_only)


def grouped(number: int) -> str:
    """A number with its digits in threes: "12 408"."""
    return f"{number:,}".replace(",", " ")


_FIRST: Final = 1000
"""The id of a guest's first thread, which is drawn without a colour of its own."""
_THREADS: Final = ("accent", "good", "warn", "bad", "note")


def thread_look(tid: int) -> str:
    """The name of the look of a thread, by its id; "" for the first one's."""
    return _THREADS[(tid - _FIRST - 1) % len(_THREADS)] if tid > _FIRST else ""


def sparkline(values: Sequence[float], ascii_only: bool = False) -> str:
    """A small column for each value, the largest one being full height."""
    most = max(values, default=0)
    signs = _SPARKS[ascii_only]
    top = len(signs) - 1
    return "".join(signs[round(value / most * top) if most else 0] for value in values)

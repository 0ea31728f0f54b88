"""Help for a line that is being typed: a search in those before, choices in columns."""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final

from textual import events
from textual.widgets import Input

_ROWS: Final = 8
"""Lines of the history that are shown at a time."""
_WIDEST: Final = 60


class LineSought:
    """A search in the lines that were typed before, the newest first.

    Attributes:
        before: the line as it was when the search began.
    """

    def __init__(self, history: Sequence[str], wanted: str, before: str) -> None:
        """Find the lines that hold a text.

        Args:
            history: the lines, the oldest first.
            wanted: the text; letters without a capital fit in any case.
            before: the line as it was when the search began.
        """
        fold = wanted == wanted.lower()
        newest = dict.fromkeys(reversed(history))
        self._found = [one for one in newest if wanted in (one.lower() if fold else one)]
        self._at = 0
        self.before = before

    @property
    def line(self) -> str:
        """The line that is chosen, "" for none."""
        return self._found[self._at] if self._found else ""

    def older(self) -> None:
        """Choose the next older line; the oldest one stays."""
        self._at = min(self._at + 1, max(len(self._found) - 1, 0))

    @property
    def rows(self) -> list[str]:
        """The lines around the one that is chosen, the newest at the bottom."""
        if not self._found:
            return ["nothing typed before has this"]
        first = max(self._at - _ROWS + 1, 0)
        shown = enumerate(self._found[first : first + _ROWS], first)
        return [f"{'> ' if at == self._at else '  '}{line}" for at, line in shown][::-1]


class LineInput(Input):
    """A line of text; several lines that are pasted at once are handed on as such."""

    def __init__(self, pasted: Callable[[list[str], bool], None]) -> None:
        """`pasted` takes the lines, and whether the last one has no newline behind it."""
        super().__init__(compact=True, select_on_focus=False)
        self._several = pasted

    def _on_paste(self, event: events.Paste) -> None:
        lines = event.text.splitlines()
        if len(lines) > 1:
            event.prevent_default()
            event.stop()
            self._several(lines, not event.text.endswith(("\n", "\r")))
        else:
            super()._on_paste(event)


def common_front(lines: Sequence[str]) -> int:
    """The length of what all lines share, up to the word in which they differ."""
    return beginning(lines).rfind(" ") + 1


def beginning(lines: Sequence[str]) -> str:
    """The text that all lines begin with."""
    least, most = min(lines), max(lines)  # all others are between them
    same = takewhile(lambda pair: pair[0] == pair[1], zip(least, most, strict=False))
    return "".join(letter for letter, _ in same)


def columns(words: Sequence[str], chosen: int | None, width: int, rows: int) -> list[str]:
    """Words in columns, read down and then across, the chosen one in brackets.

    Args:
        words: what is shown.
        chosen: the number of the one that stands in the line, None for none.
        width: columns of the screen.
        rows: at most; of more words the number of those left out is told.
    """
    cell = min(max(map(len, words)), _WIDEST) + 4
    across = max(width // cell, 1)
    most = across * rows
    first = 0
    if len(words) > most:
        most = across * (rows - 1)
        first = 0 if chosen is None else chosen // most * most
    shown = list(enumerate(words))[first : first + most]
    height = -(-len(shown) // across)
    cells = [
        (f"[{word}]" if at == chosen else f" {word} ")[: cell - 1].ljust(cell)
        for at, word in shown
    ]
    lines = ["".join(cells[row::height]).rstrip() for row in range(height)]
    left = len(words) - len(shown)
    if left:
        lines.append(f"... {left} more; Tab goes through them")
    return lines

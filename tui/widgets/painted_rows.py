"""The rows of a widget as they were painted last."""

from collections.abc import Callable
from itertools import pairwise
from typing import Final

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.screens.compositor import is_displayed

_MOST: Final = 0.6
"""The part of the rows from which on all are painted: to tell them apart is worth no more."""


class PaintedRows:
    """Has those rows of a widget painted that look different now.

    A widget that is painted as a whole is dear: each of its rows is cut, filtered, put together
    with others and sent to the terminal. A step changes some of them.
    """

    def __init__(
        self,
        widget: Widget,
        row: Callable[[int], Strip],
        begin: Callable[[], object],
        spoil: Callable[[], object],
    ) -> None:
        """Nothing is painted yet.

        Args:
            widget: whose rows they are.
            row: makes a row, or gives it as it was made before.
            begin: called before rows are asked for that are compared.
            spoil: forgets what was painted of a widget that is out of sight.
        """
        self._widget = widget
        self._row = row
        self._begin = begin
        self._spoil = spoil
        self._rows: dict[int, Strip] = {}
        self._is_owed = False

    def paint(self, y: int) -> Strip:
        """The row that Textual asks for."""
        strip = self._rows[y] = self._row(y)
        return strip

    def changed(self) -> None:
        """Rows may look different: have those that do painted.

        They are looked at when all has changed that changes now.
        """
        widget = self._widget
        if not widget.is_attached:
            widget.refresh()
        elif not is_displayed(widget):
            self._spoil()  # all of it is painted when it comes into sight
        elif not self._rows:
            widget.refresh()
        elif not self._is_owed:
            self._is_owed = True
            widget.call_next(self.settle)

    def settle(self) -> None:
        """Look at the rows now, for whoever is about to paint some of them."""
        if self._is_owed:
            self._is_owed = False
            self._begin()
            self._compare()

    def _compare(self) -> None:
        height = self._widget.size.height
        changed = [y for y in range(height) if self._differs(y)]
        if len(changed) > _MOST * height:
            self._widget.refresh()
        elif changed:
            width = self._widget.size.width
            cuts = [(x + 1, y) for x, y in pairwise(changed) if y > x + 1]
            starts = [changed[0], *(start for _, start in cuts)]
            ends = [*(end for end, _ in cuts), changed[-1] + 1]
            runs = zip(starts, ends, strict=True)
            self._widget.refresh(*(Region(0, top, width, end - top) for top, end in runs))

    def _differs(self, y: int) -> bool:
        before = self._rows.get(y)
        now = self._row(y)
        return before is None or (now is not before and now != before)

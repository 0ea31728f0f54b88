"""Panes that are seen: designed for wide and for narrow terminals, and for one pane alone.

Wide: code and machinery at the left, registers and one of memory or backtrace at the right,
events and one of probes or output at the bottom. Narrow: one pane of the upper group, one of
the lower group, with their names in a line above. Very small: the focused pane alone.
"""

from dataclasses import dataclass
from typing import Final

from tui.panes.registry import PANES, by_id

WIDE: Final = 100
"""Columns from which on the wide layout is used."""
TALL: Final = 30
"""Rows from which on the machinery has a place of its own in the wide layout."""
SMALL: Final = (40, 12)
"""Columns and rows below which one pane is all there is room for."""


@dataclass(slots=True)
class Layout:
    """The user's choice of panes.

    Attributes:
        focused: id of the pane that has, or last had, the focus.
        upper: id of the pane of the upper group that is seen in a narrow terminal.
        lower: the same of the lower group.
        zoomed: whether the focused pane is alone.
        turns: by corner, which of the panes that share it is seen.
    """

    focused: str = "code"
    upper: str = "code"
    lower: str = "events"
    zoomed: bool = False
    turns: tuple[str, str] = ("memory", "output")

    def focus(self, pane: str) -> None:
        """A pane gets the focus: it has to be seen."""
        spec = by_id(pane)
        self.focused = pane
        if spec.lower:
            self.lower = pane
        else:
            self.upper = pane
        if spec.shares:
            right, aside = self.turns
            self.turns = (pane, aside) if spec.corner == "right" else (right, pane)

    def seen(self, columns: int, rows: int) -> list[str]:
        """Ids of the panes to be seen on a terminal of this size."""
        if self.zoomed or columns < SMALL[0] or rows < SMALL[1]:
            return [self.focused]
        if columns < WIDE:
            return [self.upper, self.lower]
        return [
            spec.id
            for spec in PANES
            if (not spec.shares or spec.id in self.turns)
            and (spec.id != "machinery" or rows >= TALL or self.focused == "machinery")
        ]

    def neighbour(self, step: int) -> str:
        """The next pane (or the one before) of the focused pane's group."""
        lower = by_id(self.focused).lower
        group = [spec.id for spec in PANES if spec.lower is lower]
        return group[(group.index(self.focused) + step) % len(group)]

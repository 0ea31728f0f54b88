"""Which panes are seen: designed for wide and for narrow terminals, and for one pane alone.

Wide: code and machinery at the left, registers and one of memory or backtrace at the right,
events and one of probes or output at the bottom. Narrow: one pane of the upper group, one of
the lower group, with their names in a line above. Very small: the focused pane alone.
"""

from dataclasses import dataclass
from typing import Final

WIDE: Final = 100
"""Columns from which on the wide layout is used."""
TALL: Final = 30
"""Rows from which on the machinery has a place of its own in the wide layout."""
SMALL: Final = (40, 12)
"""Columns and rows below which one pane is all there is room for."""


@dataclass(frozen=True, slots=True)
class PaneSpec:
    """A pane's place in the layouts.

    Attributes:
        id: of the widget.
        number: its key.
        name: for tabs.
        lower: whether it belongs to the lower group.
        corner: in the wide layout: "left", "right", "bottom" or "aside".
        shares: in the wide layout it takes turns with the others of its corner that share.
    """

    id: str
    number: int
    name: str
    lower: bool
    corner: str
    shares: bool = False


PANES: Final[tuple[PaneSpec, ...]] = (
    PaneSpec("code", 1, "Code", lower=False, corner="left"),
    PaneSpec("registers", 2, "Regs", lower=False, corner="right"),
    PaneSpec("backtrace", 3, "Back", lower=False, corner="right", shares=True),
    PaneSpec("machinery", 4, "Mach", lower=False, corner="left"),
    PaneSpec("memory", 5, "Mem", lower=False, corner="right", shares=True),
    PaneSpec("events", 6, "Events", lower=True, corner="bottom"),
    PaneSpec("output", 7, "Output", lower=True, corner="aside", shares=True),
    PaneSpec("probes", 8, "Probes", lower=True, corner="aside", shares=True),
    PaneSpec("graph", 9, "Graph", lower=True, corner="aside", shares=True),
    PaneSpec("histogram", 0, "Hist", lower=True, corner="aside", shares=True),
)
"""All panes: a new one is a line here and a widget in the app."""


@dataclass(slots=True)
class Layout:
    """What the user has chosen to see.

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


def by_id(pane: str) -> PaneSpec:
    """A pane's place."""
    return next(spec for spec in PANES if spec.id == pane)


def by_number(number: int) -> PaneSpec | None:
    """The pane with a key."""
    return next((spec for spec in PANES if spec.number == number), None)

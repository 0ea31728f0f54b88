"""Places of the panes on terminals of all sizes, and what the user has chosen to see.

A layout is a tree: cells, in each of which panes take turns, and splits of a place in two. There
is one for narrow terminals (two groups of tabs above each other), one for wide ones (code and
events at the left, the state of the program at the right), and one for very wide ones, which has
room for more panes side by side. Where there is next to no room, one pane is seen.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field
from textual.geometry import Region

from tui.panes.registry import PANES, by_id

WIDE: Final = 100
"""Columns from which on panes stand side by side."""
VERY_WIDE: Final = 180
"""Columns from which on three stand side by side."""
TALL: Final = 28
"""Rows of the panes from which on more of them stand above each other."""
SMALL: Final = (40, 9)
"""Columns and rows of the panes below which one pane is all there is room for."""
BARS: Final = 3
"""Rows of the status, the messages and the hints around the panes."""
MACHINERY_ROWS: Final = 11
"""Rows of the machinery during a hit, its title included."""
LINES: Final = ("timeline", "state", "route")
"""Lines of one row above the panes, where there are such: the history of the run, the most
important registers, the phases of the hit."""

_ROOM: Final = 16
"""Rows of the panes from which on the history has a line of its own."""
_LEAST: Final = (16, 3)
"""Columns and rows that a place keeps when the bar beside it is moved."""
_UPPER: Final = tuple(spec.id for spec in PANES if not spec.lower)
_LOWER: Final = tuple(spec.id for spec in PANES if spec.lower)
_ASIDE: Final = tuple(pane for pane in _LOWER if pane != "events")


class Cell(Struct, frozen=True):
    """A place in which panes take turns."""

    panes: tuple[str, ...]


class Split(Struct, frozen=True):
    """Two places, and the bar between them, which the user can move.

    Attributes:
        bar: its name. Bars of the same name move together.
        across: whether the places are side by side, not above each other.
        first: the left or upper place.
        second: the other one.
        share: part of the first place in hundredths, where the user has not moved the bar.
        rows: of the second place, where that is not a matter of shares.
    """

    bar: str
    across: bool
    first: "Node"
    second: "Node"
    share: int = 50
    rows: int = 0


Node: TypeAlias = Cell | Split


class Place(Struct, frozen=True):
    """A cell on the screen.

    Attributes:
        panes: the panes that take turns there.
        shown: the one that is seen.
        region: the cells it has.
    """

    panes: tuple[str, ...]
    shown: str
    region: Region


class Bar(Struct, frozen=True):
    """A bar between two places: the left edge or the title of the second one.

    Attributes:
        name: of it.
        across: whether it moves to the left and right.
        region: the cells it is on.
        room: what it divides.
    """

    name: str
    across: bool
    region: Region
    room: Region

    def share_at(self, x: int, y: int) -> int:
        """The share of the first place if the bar were moved to a cell."""
        at, size = (x - self.room.x, self.room.width), (y - self.room.y, self.room.height)
        offset, whole = at if self.across else size
        return round(100 * offset / max(whole, 1))


class Plan(Struct, frozen=True):
    """Everything that is seen, and its place."""

    lines: tuple[str, ...]
    places: tuple[Place, ...]
    bars: tuple[Bar, ...]

    @property
    def shown(self) -> list[str]:
        """Ids of the panes that are seen."""
        return [place.shown for place in self.places]

    def place_of(self, pane: str) -> Place | None:
        """The place that a pane has, seen or not; None for none."""
        return next((place for place in self.places if pane in place.panes), None)

    def bar_at(self, x: int, y: int) -> Bar | None:
        """The bar at a cell."""
        return next((bar for bar in self.bars if bar.region.contains(x, y)), None)

    def bar_beside(self, pane: str, *, across: bool) -> Bar | None:
        """The nearest bar that makes a pane wider (or higher)."""
        place = self.place_of(pane)
        if place is None:
            return None
        around = [
            bar
            for bar in self.bars
            if bar.across is across and bar.room.contains_region(place.region)
        ]
        return min(around, key=lambda bar: bar.room.area, default=None)


class Layout(Struct):
    """The user's choice of panes.

    Attributes:
        recent: ids of panes, the one that had the focus last in front: of panes that take turns
            the most recent one is seen.
        zoomed: whether the focused pane is alone.
        shares: bars that were moved, and how much they give to the first of their places.
        hit: whether the program stands in the middle of a probe's hit.
        verdict: rows that the machinery needs for the probe at the cursor, 0 without one.
        threads: whether there is more than one thread.
        history: whether there is something in the history of the run.
    """

    recent: list[str] = field(default_factory=list)
    zoomed: bool = False
    shares: dict[str, int] = field(default_factory=dict)
    hit: bool = False
    verdict: int = 0
    threads: bool = False
    history: bool = False

    @property
    def focused(self) -> str:
        """Id of the pane that has, or last had, the focus."""
        return self.recent[0] if self.recent else "code"

    def focus(self, pane: str) -> None:
        """A pane gets the focus: it has to be seen."""
        by_id(pane)
        self.recent = [pane, *(other for other in self.recent if other != pane)]

    def restore(self, recent: tuple[str, ...], shares: Mapping[str, int]) -> None:
        """Take over what was seen the last time, as far as it is known."""
        known = {spec.id for spec in PANES}
        self.recent = [pane for pane in recent if pane in known]
        self.shares = {name: max(min(share, 95), 5) for name, share in shares.items()}

    def neighbour(self, step: int) -> str:
        """The next pane (or the one before) of the focused pane's half."""
        lower = by_id(self.focused).lower
        group = _LOWER if lower else _UPPER
        return group[(group.index(self.focused) + step) % len(group)]

    # -- what is seen -----------------------------------------------------------------------

    def plan(self, columns: int, rows: int) -> Plan:
        """Everything that is seen in so many columns and rows (those of `BARS` left out)."""
        room = Region(0, 0, columns, rows)
        if self.zoomed or columns < SMALL[0] or rows < SMALL[1]:
            half = _LOWER if by_id(self.focused).lower else _UPPER
            return Plan((), (Place(half, self.focused, room),), ())
        tree = self._tree(columns, rows)
        seen = {self._shown(cell) for cell in _cells(tree)}
        wanted = {"timeline": self.history and rows >= _ROOM}
        if columns < WIDE:  # what has no pane there has a line
            wanted["state"] = "registers" not in seen
            wanted["route"] = self.hit and "machinery" not in seen
        lines = tuple(line for line in LINES if wanted.get(line))
        places: list[Place] = []
        bars: list[Bar] = []
        self._lay_out(tree, room.split_horizontal(len(lines))[1], places, bars)
        return Plan(lines, tuple(places), tuple(bars))

    def _shown(self, cell: Cell) -> str:
        """The pane that is seen in a cell."""
        return next((pane for pane in self.recent if pane in cell.panes), cell.panes[0])

    def _tree(self, columns: int, rows: int) -> Node:
        tall = rows >= TALL
        if columns < WIDE:
            return self._narrow(tall)
        code: Node = Cell(("code",))
        wanted = MACHINERY_ROWS if self.hit or self.focused == "machinery" else self.verdict
        if wanted and rows >= 16:
            wanted = min(wanted, MACHINERY_ROWS, rows // 3)
            code = Split("machinery", False, code, Cell(("machinery",)), rows=wanted)
        elif wanted:
            code = Cell(("code", "machinery"))
        events = Cell(("events",))
        if columns >= VERY_WIDE and tall:
            return self._very_wide(code, events)
        right: Node = Split(
            "registers", False, Cell(("registers",)), Cell(("backtrace", "memory")), 52
        )
        if tall:
            frames = Split("stack", False, Cell(("backtrace",)), Cell(("memory",)), 50)
            right = Split("registers", False, Cell(("registers",)), frames, 42)
        upper = Split("columns", True, code, right, 60)
        return Split("rows", False, upper, Split("columns", True, events, Cell(_ASIDE), 60), 68)

    def _narrow(self, tall: bool) -> Node:
        if not tall:
            return Split("rows", False, Cell(_UPPER), Cell(_LOWER), 60)
        beside = tuple(pane for pane in _UPPER if pane != "code")
        below = Split("state", False, Cell(beside), Cell(_LOWER), 55)
        return Split("rows", False, Cell(("code",)), below, 45)

    def _very_wide(self, code: Node, events: Node) -> Node:
        backtrace: Node = Cell(("backtrace",))
        aside = _ASIDE
        if self.threads:
            aside = tuple(pane for pane in _ASIDE if pane != "threads")
            backtrace = Split("threads", False, backtrace, Cell(("threads",)), 65)
        state = Split("state", False, Cell(("registers",)), Cell(("memory",)), 60)
        upper = Split("middle", True, state, backtrace, 50)
        output = Cell(("output",))
        rest = Cell(tuple(pane for pane in aside if pane != "output"))
        lower = Split("middle", True, output, rest, 50)
        return Split(
            "rows",
            False,
            Split("columns", True, code, upper, 44),
            Split("columns", True, events, lower, 44),
            66,
        )

    def _lay_out(self, node: Node, room: Region, places: list[Place], bars: list[Bar]) -> None:
        """Give a part of the tree its room."""
        if isinstance(node, Cell):
            places.append(Place(node.panes, self._shown(node), room))
            return
        whole = room.width if node.across else room.height
        least = _LEAST[0 if node.across else 1]
        share = self.shares.get(node.bar)
        if share is None and node.rows:
            cut = whole - node.rows
        else:
            cut = round(whole * (node.share if share is None else share) / 100)
        cut = max(min(cut, whole - least), least)
        if node.across:
            first, second = room.split_vertical(cut)
            bar = Region(second.x, second.y, 1, second.height)
        else:
            first, second = room.split_horizontal(cut)
            bar = Region(second.x, second.y, second.width, 1)
        bars.append(Bar(node.bar, node.across, bar, room))
        self._lay_out(node.first, first, places, bars)
        self._lay_out(node.second, second, places, bars)


def _cells(node: Node) -> Iterator[Cell]:
    """The cells of a tree, in its order."""
    if isinstance(node, Cell):
        yield node
    else:
        yield from _cells(node.first)
        yield from _cells(node.second)

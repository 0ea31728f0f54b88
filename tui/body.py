"""The panes on the screen: boxes around them, tabs in place of borders, and who is seen."""

from collections.abc import Iterator
from typing import Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from tui.layout import TALL, WIDE, Layout
from tui.panes.code_view import CodeView
from tui.panes.registry import PANES, Panes, PaneSpec, by_key
from tui.widgets.bars import Tab, TabStrip
from tui.widgets.pane import Pane
from tui.widgets.virtual_lines import VirtualLines

_BOXES: Final = {
    "left": ("left",),
    "right": ("right",),
    "aside": ("aside",),
    "upper": ("left", "right"),
    "lower": ("bottom", "aside"),
}
"""Box to the corners of the panes in it: it is seen where one of those is."""


class Body(Vertical):
    """Holds the panes, and shows those that belong on a terminal of this size.

    Attributes:
        panes: all of them.
        choice: what the user has chosen to see.
    """

    def __init__(self, panes: Panes) -> None:
        super().__init__(id="body")
        self.panes = panes
        self.choice = Layout()
        self._tabs = {False: TabStrip(id="upper-tabs"), True: TabStrip(id="lower-tabs")}
        self._has_histograms = self._has_threads = False

    def compose(self) -> ComposeResult:
        """Tabs, boxes, panes."""
        self._classify(update=False)  # before there is anything that has a style
        yield self._tabs[False]
        with Horizontal(id="upper"):
            with Vertical(id="left"):
                yield from self._of("left")
            with Vertical(id="right"):
                yield from self._of("right")
        yield self._tabs[True]
        with Horizontal(id="lower"):
            yield from self._of("bottom")
            with Vertical(id="aside"):
                yield from self._of("aside")

    def _of(self, corner: str) -> Iterator[Pane]:
        return (self.panes[spec.id] for spec in PANES if spec.corner == corner)

    # -- who is seen ------------------------------------------------------------------------

    def _classify(self, *, update: bool = True) -> tuple[list[str], bool]:
        """Set the classes of this size at once: each update works every widget's style out.

        Returns:
            The ids of the panes to be seen, and whether the layout is the wide one.
        """
        columns, rows = self.app.size
        seen = self.choice.seen(columns, rows)
        wide = columns >= WIDE and len(seen) > 2
        classes = {"-wide": wide, "-narrow": not wide, "-tall": rows >= TALL}
        self.update_classes(classes, update=update)
        return seen, wide

    def fit(self) -> None:
        """Show the panes that belong on a terminal of this size."""
        seen, wide = self._classify()
        for spec in PANES:
            self.panes[spec.id].display = spec.id in seen
        corners = {spec.corner for spec in PANES if spec.id in seen}
        for box, inside in _BOXES.items():
            self.query_one(f"#{box}").display = not corners.isdisjoint(inside)
        tabs = not wide and self.app.size.height >= 10
        for lower, name in ((False, "upper"), (True, "lower")):
            self._tabs[lower].display = tabs and self.query_one(f"#{name}").display
            self._show_tabs(lower)

    def show_pane(self, pane: str) -> None:
        """Give a pane the focus, wherever it is."""
        self.choice.focus(pane)
        self.fit()
        self.panes[pane].focus_inside()

    def show_key(self, key: str) -> None:
        """Give the pane of a key the focus."""
        spec = by_key(key)
        if spec is not None:
            self.show_pane(spec.id)

    def show_neighbour(self, step: int) -> None:
        """Give the next pane of the group the focus, or the one before."""
        self.show_pane(self.choice.neighbour(step))

    def zoom(self) -> None:
        """The focused pane alone, or all."""
        self.choice.zoomed = not self.choice.zoomed
        self.fit()

    def focus_pane(self) -> None:
        """The keys belong to the pane again that had them last."""
        self.panes[self.choice.focused].focus_inside()

    @property
    def focused(self) -> Pane | None:
        """The pane that has the focus."""
        focused = self.screen.focused
        if focused is None:
            return None
        return next((node for node in focused.ancestors if isinstance(node, Pane)), None)

    def on_descendant_focus(self) -> None:
        """The focus has moved, by mouse or Tab."""
        if not self.app.screen_stack:
            return  # the end has begun
        pane = self.focused
        if pane is not None and pane.id and pane.id != self.choice.focused:
            self.choice.focus(pane.id)
            self.fit()

    # -- tabs -------------------------------------------------------------------------------

    def expect_histograms(self, some: bool) -> None:
        """There are histograms, or none: a narrow terminal has little room for their tab."""
        if some is not self._has_histograms:
            self._has_histograms = some
            self._show_tabs(lower=True)

    def expect_threads(self, some: bool) -> None:
        """There are several threads or processes, or not: the same of the tab of these."""
        if some is not self._has_threads:
            self._has_threads = some
            self._show_tabs(lower=False)

    def _show_tabs(self, lower: bool) -> None:
        """The names of a group, where they are seen."""
        strip = self._tabs[lower]
        if strip.display and strip.is_attached:  # else the end has begun
            active = self.choice.lower if lower else self.choice.upper
            tabs = [
                Tab(spec.id, spec.key, spec.tab)
                for spec in PANES
                if spec.lower is lower and self._has_tab(spec, active)
            ]
            strip.show(tabs, active, self.panes[active].noted)

    def _has_tab(self, spec: PaneSpec, active: str) -> bool:
        needed = {"histogram": self._has_histograms, "threads": self._has_threads}
        return needed.get(spec.id, True) or active == spec.id

    def on_pane_retitled(self, message: Pane.Retitled) -> None:
        """A pane says something else of itself: without borders its tab shows it."""
        if message.pane.id in (self.choice.upper, self.choice.lower):
            self._show_tabs(message.pane.id == self.choice.lower)

    def on_tab_strip_picked(self, message: TabStrip.Picked) -> None:
        """A pane's name was clicked."""
        self.show_pane(message.pane)

    # -- text -------------------------------------------------------------------------------

    def copy_row(self) -> None:
        """Copy what the focused pane has at its cursor; the code's row where it has none."""
        for widget in (self.screen.focused, self.panes.code.code):
            if isinstance(widget, CodeView | VirtualLines):
                widget.action_copy_rows()
                return

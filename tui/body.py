"""The panes on the screen: each in its place, and the bars between them that can be moved."""

from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import NULL_OFFSET, NULL_SPACING, Size
from textual.layout import ArrangeResult, WidgetPlacement
from textual.layout import Layout as Arrangement
from textual.widget import Widget

from engine.session.protocol.views import GuestView, RunState
from tui.layout import BARS, LINES, Bar, Layout, Plan
from tui.panes.code_view import CodeView
from tui.panes.machinery import MachineryPane
from tui.panes.registry import PANES, Panes, by_id, by_key
from tui.widgets.pane import Pane
from tui.widgets.state_lines import StateLine, registers_line, route_line
from tui.widgets.timeline import Timeline
from tui.widgets.titles import Tab
from tui.widgets.virtual_lines import VirtualLines

_SOMETIMES: Final = ("histogram", "threads", "console", "functions")
_ALWAYS: Final = tuple(spec.id for spec in PANES if spec.id not in _SOMETIMES)
"""Panes that are named even while there is nothing in them."""


class _Tiles(Arrangement):
    """Puts each pane where the plan has it."""

    name = "tiles"

    def __init__(self, choice: Layout) -> None:
        self._choice = choice

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        """The placements of all that is seen."""
        plan = self._choice.plan(*size)
        regions = {place.shown: place.region for place in plan.places}
        for row, line in enumerate(plan.lines):
            regions[line] = size.region.split_horizontal(row)[1].split_horizontal(1)[0]
        return [
            WidgetPlacement(regions[child.id], NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if child.id in regions
        ]


class Body(Container):
    """Holds the panes, and shows those that belong on a terminal of this size.

    Attributes:
        panes: all of them.
        choice: what the user has chosen to see.
    """

    def __init__(self, panes: Panes, pc: str, sp: str) -> None:
        """Nothing is seen yet.

        Args:
            panes: all of them.
            pc: name of the program counter, for the line of registers.
            sp: name of the stack pointer.
        """
        super().__init__(id="body")
        self.panes = panes
        self.choice = Layout()
        self._tiles = _Tiles(self.choice)
        self.timeline = Timeline(panes.events.store.density, id="timeline")
        self._lines: dict[str, Timeline | StateLine] = {
            "timeline": self.timeline,
            "state": StateLine(registers_line(pc, sp), id="state"),
            "route": StateLine(route_line, id="route"),
        }
        self._plan: Plan | None = None
        self._left = 0
        self._pressed: Bar | None = None
        self._moved: Bar | None = None
        self._end: tuple[list[str], list[str]] | None = None

    @property
    def layout(self) -> Arrangement:
        """Puts the panes where they belong."""
        return self._tiles

    def compose(self) -> ComposeResult:
        """Lines and panes; `fit` says which are seen."""
        for name in LINES:
            if name in self._lines:
                yield self._lines[name]
        # Textual sets all rules of a pane anew for a class that comes later.
        self._show(self._wanted(), update=False)
        yield from self.panes

    # -- who is seen ------------------------------------------------------------------------

    def fit(self) -> None:
        """Show the panes that belong on a terminal of this size."""
        plan = self._wanted()
        if plan == self._plan or not self.is_attached:
            return
        self._plan = plan
        self._show(plan)
        # A widget keeps its arrangement until one of its children asks for another.
        self.panes.code.refresh(layout=True)
        self._name_all()

    def _wanted(self) -> Plan:
        """The plan for a terminal of this size."""
        columns, rows = self.app.size
        return self.choice.plan(columns, max(rows - BARS - self._left, 1))

    def _show(self, plan: Plan, *, update: bool = True) -> None:
        """Show what a plan has, and nothing else; its rules are set anew with `update`."""
        shown = {place.shown: place for place in plan.places}
        for spec in PANES:
            pane, place = self.panes[spec.id], shown.get(spec.id)
            pane.display = place is not None
            if place is not None:
                pane.set_class(place.region.x > 0, "-aside", update=update)
        for name, line in self._lines.items():
            line.display = name in plan.lines

    def leave_rows(self, rows: int) -> None:
        """Leave rows of the screen to what stands above the panes."""
        self._left = rows
        self.fit()

    def _name_all(self) -> None:
        """Let each pane that is seen name those that take turns with it."""
        for place in self._plan.places if self._plan is not None else ():
            named = [pane for pane in place.panes if self._has_tab(pane, place.shown)]
            self.panes[place.shown].among([self._tab(pane, place.shown) for pane in named])

    def _has_tab(self, pane: str, shown: str) -> bool:
        """True if there is something in a pane, or it is one that everybody needs."""
        return pane in (shown, *_ALWAYS) or bool(self.panes[pane].count)

    def _tab(self, name: str, shown: str) -> Tab:
        pane, spec = self.panes[name], by_id(name)
        return Tab(name, spec.key, pane.TITLE if name == shown else spec.tab, pane.count)

    def on_pane_counted(self, message: Pane.Counted) -> None:
        """There is more in a pane: the one that is seen in its place tells it."""
        message.stop()
        place = self._plan.place_of(message.pane.id or "") if self._plan is not None else None
        if place is not None and len(place.panes) > 1:
            self._name_all()

    def show_pane(self, pane: str) -> None:
        """Give a pane the focus, wherever it is."""
        self.choice.focus(pane)
        self.fit()
        self.panes[pane].focus_inside()

    def filter_events(self) -> None:
        """Go to the log of events, and ask for its filter."""
        self.show_pane("events")
        self.panes.events.action_filter()

    def reveal(self, pane: str) -> None:
        """Let a pane be seen; the focus stays where it is."""
        focused = self.choice.focused
        if pane != focused:
            self.choice.focus(pane)
            self.choice.focus(focused)
            self.fit()

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

    def on_pane_picked(self, message: Pane.Picked) -> None:
        """A pane's name was clicked."""
        message.stop()
        self.show_pane(message.pane)

    # -- what the guest does ----------------------------------------------------------------

    def show(self, view: GuestView) -> None:
        """Show a new view: panes that had no room may have some now."""
        for line in self._lines.values():
            line.show(view)
        choice = self.choice
        if view.state is RunState.RUNNING:
            return  # the places stay as they are
        at = view.hit
        # A hit that is over is shown until the guest moves, if its phases were looked at.
        hit = at is not None and bool(at.next or (at.done and view.reason == at.done[-1].name))
        history = view.history is not None and view.history.end > 0
        wanted = hit, len(view.pids) > 1, history
        if wanted != (choice.hit, choice.threads, choice.history):
            choice.hit, choice.threads, choice.history = wanted
            self.fit()

    def show_end(self, view: GuestView) -> None:
        """Show what tells of the program's end where nothing was recorded that tells of it.

        That is the list of threads for a deadlock, and what was written for all else.
        """
        choice, events = self.choice, self.panes.events
        wanted = "output"
        if view.reason.startswith("stopped in a deadlock"):
            choice.threads, wanted = True, "threads"
        elif self.panes.output.display or not events.display or choice.focused == "events":
            return
        if not len(events.store) or wanted == "threads":
            before = list(choice.recent)
            self.reveal(wanted)
            self._end = before, list(choice.recent)

    def end_is_over(self) -> None:
        """Something else happens than an end: panes are again as they were before it."""
        if self._end is not None:
            before, shown = self._end
            self._end = None
            if self.choice.recent == shown:  # else the user has looked at something since
                self.choice.recent = before
                self.fit()

    def on_machinery_pane_verdict(self, message: MachineryPane.Verdict) -> None:
        """There is a probe at the cursor, or not: what is to be said of it has room."""
        message.stop()
        self.choice.verdict = message.rows + 1 if message.rows else 0
        self.fit()

    # -- bars -------------------------------------------------------------------------------

    def move_bar(self, columns: int, rows: int) -> None:
        """Move the bar next to the focused pane by so many cells."""
        across = bool(columns)
        bar = self._plan.bar_beside(self.choice.focused, across=across) if self._plan else None
        if bar is not None:
            self._put_bar(bar, bar.region.x + columns, bar.region.y + rows)

    def _put_bar(self, bar: Bar, x: int, y: int) -> None:
        share = max(min(bar.share_at(x, y), 95), 5)
        now = bar.share_at(bar.region.x, bar.region.y)
        if share == now and (x, y) != (bar.region.x, bar.region.y):
            at, was = (x, bar.region.x) if bar.across else (y, bar.region.y)
            share += 1 if at > was else -1  # a cell may be less than a hundredth
        self.choice.shares[bar.name] = share
        self.fit()

    def reset_bars(self) -> None:
        """All bars where they were at first."""
        self.choice.shares.clear()
        self.fit()

    def _bar_under(self, event: events.MouseEvent) -> Bar | None:
        offset = event.screen_offset - self.region.offset
        return self._plan.bar_at(*offset) if self._plan is not None else None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A bar is perhaps to be moved."""
        self._pressed = self._bar_under(event) if event.button == 1 else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """A bar that was pressed goes with the mouse."""
        if self._pressed is not None and event.button == 1:
            self._moved, self._pressed = self._pressed, None
            self.capture_mouse()
        if self._moved is not None:
            event.stop()
            offset = event.screen_offset - self.region.offset
            self._put_bar(self._moved, offset.x, offset.y)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Leave the bar where it is."""
        self._pressed = None
        if self._moved is not None:
            self._moved = None
            self.release_mouse()
            event.stop()

    # -- text -------------------------------------------------------------------------------

    def copy_row(self) -> None:
        """Copy what the focused pane has at its cursor; the code's row where it has none."""
        for widget in (self.screen.focused, self.panes.code.code):
            if isinstance(widget, CodeView | VirtualLines):
                widget.action_copy_rows()
                return

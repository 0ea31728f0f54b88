"""A list of any length of which only the visible lines are ever made.

Measured: a list of 10 million lines costs the same to show, scroll and leave as one of ten.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import ClassVar, Final, Generic, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.css.styles import RenderStyles
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from tui.messages import Copied
from tui.widgets.chords import Choices, Chords, PrefixKeys
from tui.widgets.line_painter import LinePainter
from tui.widgets.line_search import LineSearch
from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.painted_rows import PaintedRows
from tui.widgets.parts import NONE, Parts
from tui.widgets.strips import partial_look

COPY_MAX: Final = 100_000
"""Lines that one copy takes at the most: a clipboard is no file."""
_SIDEWAYS: Final = 8
"""Cells that one step sideways moves."""
_CALM: Final = 0.1
"""Seconds between two paints while more lines come than anybody can read."""
_TO_THE_TOP: Final[Mapping[str, Choices]] = {"g": {"g": "top"}}
"""The chords of a list."""

Source = TypeVar("Source", bound=LineSource)


class VirtualLines(ScrollView, Generic[Source], can_focus=True):
    """Shows a source's lines: cursor, selection, search, and the view of a list that grows.

    Where lines are dropped at the front as new ones come, cursor and view stay with the lines
    they were on; where the view follows the end, it does so until somebody goes up.

    Attributes:
        source: the lines.
        looks: styles by name, `lines--NAME` of the component classes without the background.
        chords: the keys of two strokes.
        follow: whether the view stays at the end as lines come.
    """

    ALLOW_SELECT = True
    ALLOW_MAXIMIZE = True

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "lines--cursor",
        "lines--cursor-blurred",
        "lines--selected",
        "lines--match",
        "lines--dim",
        "lines--accent",
        "lines--good",
        "lines--warn",
        "lines--bad",
        "lines--name",
        "lines--note",
    }

    DEFAULT_CSS = """
    VirtualLines {
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        width: 1fr;
        height: 1fr;
        & > .lines--cursor { background: $primary-muted; text-style: bold; }
        & > .lines--cursor-blurred { text-style: bold; }
        & > .lines--selected { background: $secondary-muted; }
        & > .lines--match { text-style: reverse bold; }
        & > .lines--dim { text-style: dim; }
        & > .lines--accent { color: $text-accent; }
        & > .lines--good { color: $text-success; }
        & > .lines--warn { color: $text-warning; }
        & > .lines--bad { color: $text-error; text-style: bold; }
        & > .lines--name { color: $text-primary; }
        & > .lines--note { text-style: italic dim; }
        &:ansi > .lines--cursor { background: ansi_default; text-style: bold reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("left,h", "sideways(-1)", "Left", show=False, id="list.left"),
        Binding("right,l", "sideways(1)", "Right", show=False, id="list.right"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="list.page-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page-up"),
        Binding("ctrl+d", "page(0.5)", "Half page down", show=False, id="list.half-down"),
        Binding("ctrl+u", "page(-0.5)", "Half page up", show=False, id="list.half-up"),
        Binding("home", "top", "First line", show=False, id="list.top"),
        Binding("end,G", "bottom", "Last line", show=False, id="list.bottom"),
        Binding("shift+down,J", "extend(1)", "Select down", show=False, id="list.select-down"),
        Binding("shift+up,K", "extend(-1)", "Select up", show=False, id="list.select-up"),
        Binding("Y", "copy_rows", "Copy", show=False, id="list.copy"),
        Binding("enter", "choose", "Show", show=False, id="list.choose"),
        Binding("escape", "calm", "Clear", show=False, id="list.clear"),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another line."""

        index: int

    @dataclass
    class Chosen(Message):
        """Enter, even where there are no lines, or a double click on a line."""

        index: int

    @dataclass
    class Searched(Message):
        """The state of a search.

        Attributes:
            index: of the match, None for none (yet).
            wrapped: whether it went around the end.
            done: whether it is over.
        """

        pattern: str
        index: int | None
        wrapped: bool
        done: bool

    @dataclass
    class FollowChanged(Message):
        """The view follows the end from now on, or no longer."""

        follow: bool

    def __init__(
        self,
        source: Source,
        *,
        chords: Mapping[str, Choices] = _TO_THE_TOP,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Show a source's lines.

        Args:
            source: the lines.
            chords: what two keys after each other do; an action is one of this widget.
            id: of the widget.
            classes: of the widget.
        """
        super().__init__(id=id, classes=classes)
        self.source = source
        self._parts = Parts(self)
        self.looks = Looks(self, "lines", partial_look)
        alone = {"g": "app.go_to"} if "g" in chords else {}
        self.chords = Chords(self, PrefixKeys(chords, alone=alone))
        self.follow = source.follows
        self._painted_rows = PaintedRows(self, self._row, self._begin_rows, self._set_dirty)
        self._pass: tuple[int, int, int, Selection | None] = 0, 0, 1, None
        self._painter = LinePainter(self, source, self.looks, self._widened)
        self._search = LineSearch(self, source, self.looks, self._found, self._going)
        self._cursor = 0
        self._anchor: int | None = None
        self._fitted = Size()
        self._origin = 0
        self._shown = 0
        self._driven = False
        self._painted = 0.0
        self._owed: Timer | None = None

    # -- lines come and go ----------------------------------------------------------------

    @property
    def line_count(self) -> int:
        """Lines there are now."""
        return self.source.count

    def changed(self) -> None:
        """All lines may look different now."""
        self._painter.changed()
        self._painted_rows.changed()

    def renew(self) -> None:
        """There are other lines now, which need not look like those before."""
        self.changed()
        self.refresh_size()

    def restart(self) -> None:
        """All lines are others now: back to the beginning, or to the end where it follows."""
        self._search.stop()
        self._origin = self.source.origin
        self._cursor = self._shown = self._painter.widest = 0
        self._anchor = None
        self.set_follow(self.source.follows)
        self.changed()
        self.refresh_size()

    def refresh_size(self) -> None:
        """Lines came or went: called after each batch, at the most 30 times a second."""
        count, origin = self.source.count, self.source.origin
        added = count + origin - self._shown - self._origin
        if self.follow and added > self.size.height > 0 and not self._may_paint():
            return
        gone = origin - self._origin
        self._origin = origin
        top = self.scroll_offset.y
        overtaken = False
        if gone:
            self._cursor = max(self._cursor - gone, 0)
            self._anchor = None if self._anchor is None else max(self._anchor - gone, 0)
            overtaken = gone > top
        fewer = count < self._shown
        partly = top + self.size.height >= self._shown
        self._shown = count
        self._cursor = max(min(self._cursor, count - 1), 0)
        self._resize(Size(self._painter.widest, count))
        if self.follow:
            self._set_cursor(count - 1)
            self._scroll(y=count)
        elif gone:
            self._slide(max(top - gone, 0))
        if self.follow or fewer or partly or (overtaken and self._may_paint()):
            self._painted_rows.changed()

    def _may_paint(self) -> bool:
        """True if a flood may be painted again; if not, it will be in a while."""
        now = monotonic()
        if now - self._painted >= _CALM:
            self._painted = now
            return True
        if self._owed is None:
            self._owed = self.set_timer(_CALM, self._paint_owed)
        return False

    def _paint_owed(self) -> None:
        self._owed = None
        self._painted = 0.0
        self.refresh_size()
        self.refresh()

    def _slide(self, top: int) -> None:
        """The same lines are shown, which have other indices now: nothing is painted anew."""
        self.set_scroll(None, top)
        self.set_reactive(Widget.scroll_target_y, top)
        self.vertical_scrollbar.position = top

    def _widened(self) -> None:
        """A longer line than all before: there is more to scroll sideways."""
        self._resize(Size(self._painter.widest, self._shown))

    # -- cursor and view ------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """The line the cursor is on."""
        return self._cursor

    @property
    def selection_range(self) -> range:
        """The lines that are selected; the cursor's if none are."""
        if not self.source.count:
            return range(0)
        anchor = self._cursor if self._anchor is None else self._anchor
        return range(min(anchor, self._cursor), max(anchor, self._cursor) + 1)

    @property
    def view_width(self) -> int:
        """Cells of a row that are seen: all but the scroll bar's."""
        return max(self.size.width - self.scrollbar_size_vertical, 1)

    def move_to(self, index: int, *, middle: bool = False) -> None:
        """Put the cursor on a line and show it.

        Args:
            index: the line; the nearest one if there is none.
            middle: show it in the middle of the view if it is not in sight.
        """
        count = self.source.count
        index = max(min(index, count - 1), 0)
        if self._shown != count:
            self._shown = count
            self._resize(Size(self._painter.widest, count))
        self._set_cursor(index)
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if index < top or index >= top + height:
            if middle:
                target = index - height // 2
            else:
                target = index if index < top else index - height + 1
            self._scroll(y=max(target, 0))
        if self.follow and index < count - 1:
            self.set_follow(False)

    def set_follow(self, follow: bool) -> None:
        """Stay at the end as lines come, or no longer."""
        if follow != self.follow:
            self.follow = follow
            self.post_message(self.FollowChanged(follow))

    def _set_cursor(self, index: int) -> None:
        old, self._cursor = self._cursor, max(index, 0)
        if old != self._cursor:
            self.cursor_moved(old)
            if self._anchor is not None:
                self.refresh()  # other lines are selected now

    def _deselect(self) -> None:
        """The cursor's line alone is selected."""
        if self._anchor is not None:
            self._anchor = None
            self.refresh()

    def cursor_moved(self, old: int) -> None:
        """Two lines look different now; tell of it."""
        self._redraw(old)
        self._redraw(self._cursor)
        self.post_message(self.Moved(self._cursor))

    def _go(self, index: int) -> None:
        if index < self._cursor:
            self.set_follow(False)
        self.move_to(index)

    def _keep_in_sight(self) -> None:
        """The cursor stays within the view as that moves."""
        top = self.scroll_offset.y
        last = min(top + max(self.size.height, 1), self.source.count) - 1
        self._set_cursor(max(min(self._cursor, last), top))

    def _resize(self, size: Size) -> None:
        """Set the virtual size without a new layout of the screen, which it never changes."""
        before = self.virtual_size
        if size == before:
            return
        self.set_reactive(Widget.virtual_size, size)
        bar = self.vertical_scrollbar
        cells = bar.size.height
        if (
            0 < cells == bar.window_size
            and cells < min(size.height, before.height)
            and _thumb(cells, before.height, bar) == _thumb(cells, size.height, bar)
        ):  # A line more or less of thousands leaves the bar as it is: it is dear to paint.
            bar.set_reactive(ScrollBar.window_virtual_size, size.height)
            self.scroll_y = self.validate_scroll_y(self.scroll_y)
        else:
            self._scroll_update(size)

    def _scroll(self, x: int | None = None, y: int | None = None) -> None:
        self._driven = True
        try:
            self.scroll_to(x, y, animate=False, force=True)
        finally:
            self._driven = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Let go of the end when somebody scrolls up with wheel or bar."""
        super().watch_scroll_y(old_value, new_value)
        # At the very end it was not a user but the list or the view that changed its size.
        if new_value < old_value and not self._driven and new_value < self.max_scroll_y:
            self.set_follow(False)

    def on_resize(self) -> None:
        """Keep the end in view while following; else what was seen, with the cursor if it was."""
        top, height = self.scroll_offset.y, self._fitted.height
        at_end = self.source.follows and top + height >= self.source.count
        unseen, self._fitted = not height, self.size
        aside = not unseen and not top <= self._cursor < top + height
        first, whole = self.source.whole(top), self.source.whole(self._cursor)
        anchor = None if self._anchor is None else self.source.whole(self._anchor)
        if self.source.arrange(self.size):
            # What was moved to before the list was in sight has another index in its width.
            self._cursor = self.source.piece(whole)
            self._anchor = None if anchor is None else self.source.piece(anchor)
            self.renew()
        self._painter.keep(max(self.size.height * 4, 64))
        if self.follow:
            self._scroll(y=self.source.count)
        elif aside:  # the wheel has gone where the cursor is not
            self._scroll(y=self.source.piece(first))
        else:
            if at_end or (unseen and self.source.follows):
                self._scroll(y=max(min(self._cursor, self.source.count - self.size.height), 0))
            self.move_to(self._cursor)
        self.refresh()

    # -- text -----------------------------------------------------------------------------

    def plain(self, index: int) -> str:
        """A line as text."""
        return self.source.plain(index, self.looks)

    def copy_text(self, lines: range | None = None) -> str:
        """Lines as text, `COPY_MAX` of them at the most; the selected ones by default."""
        lines = self.selection_range if lines is None else lines
        return "\n".join(self.plain(index) for index in lines[:COPY_MAX])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that was selected with the mouse, as it is seen."""
        count = self.source.count
        start = 0 if selection.start is None else selection.start.y
        end = count - 1 if selection.end is None else selection.end.y
        width, left = self.view_width, self.scroll_offset.x
        lines: list[str] = []
        for index in range(start, min(end, start + COPY_MAX, count - 1) + 1):
            span = selection.get_span(index)
            if span is not None:
                text = self._painter.seen(index, left, width)
                lines.append(text[span[0] : None if span[1] < 0 else span[1]].rstrip())
        return "\n".join(lines), "\n"

    # -- search ---------------------------------------------------------------------------

    @property
    def pattern(self) -> str:
        """The text that is searched for, and shown in each line; "" for none."""
        return self._painter.pattern

    def start_search(self, pattern: str, backwards: bool = False, here: bool = True) -> None:
        """Search in slices, around the end; `Searched` tells how it stands.

        Args:
            pattern: text; without capitals in it, capitals do not matter.
            backwards: towards the first line.
            here: whether the cursor's own line counts as well.
        """
        self._search.stop()
        if self._painter.pattern != pattern:
            self._painter.pattern = pattern
            self.changed()
        if not pattern or not self.source.count:
            self.post_message(self.Searched(pattern, None, False, True))
            return
        self._search.start(pattern, self._cursor, backwards, here)

    def _going(self) -> None:
        self.post_message(self.Searched(self.pattern, None, self._search.wrapped, False))

    def _found(self, index: int | None) -> None:
        if index is not None:
            self._deselect()
            self.set_follow(False)
            self.move_to(index, middle=True)
        self.post_message(self.Searched(self.pattern, index, self._search.wrapped, True))

    # -- keys and mouse -------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """Chords come before bindings."""
        self.chords.take(event)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape belongs to the list only while there is something to clear."""
        if action == "calm":
            return bool(self.pattern or self._anchor is not None or self._search)
        return super().check_action(action, parameters)

    def action_move(self, lines: int) -> None:
        """Move the cursor by lines."""
        self._deselect()
        self._keep_in_sight()
        self._go(self._cursor + lines)

    def action_extend(self, lines: int) -> None:
        """Move the cursor and select what it passes."""
        if self._anchor is None:
            self._anchor = self._cursor
        self._go(self._cursor + lines)
        self.refresh()

    def action_page(self, pages: float) -> None:
        """Move cursor and view by (half) a page."""
        self._deselect()
        lines = int(max(self.size.height - 1, 1) * pages) or (1 if pages > 0 else -1)
        top = self.scroll_offset.y
        self._go(self._cursor + lines)
        self._scroll(y=max(top + lines, 0))
        self._keep_in_sight()

    def action_top(self) -> None:
        """Go to the first line."""
        self._go(0)

    def action_bottom(self) -> None:
        """Go to the last line, and follow from there if the list does such."""
        self._go(self.source.count - 1)
        if self.source.follows:
            self.set_follow(True)

    def action_sideways(self, steps: int) -> None:
        """Scroll sideways."""
        self._scroll(x=max(self.scroll_offset.x + steps * _SIDEWAYS, 0))

    def action_copy_rows(self) -> None:
        """Copy the selected lines as text."""
        lines = self.selection_range
        if lines:
            self.post_message(Copied(self.copy_text(lines)))

    def action_choose(self) -> None:
        """Tell that the line was chosen."""
        self.post_message(self.Chosen(self._cursor))

    def action_calm(self) -> None:
        """Forget search and selection."""
        self._search.stop()
        self._anchor = None
        self._painter.pattern = ""
        self.changed()
        self.post_message(self.Searched("", None, False, True))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there; a second click chooses."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = offset.y + self.scroll_offset.y
        if 0 <= index < self.source.count:
            self._deselect()
            self._go(index)
            if event.chain > 1:
                self.action_choose()

    def on_mouse_scroll_up(self) -> None:
        """The wheel lets go of the end even where there is nothing above."""
        self.set_follow(False)

    # -- painting -------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of a part of the view.

        Textual tells a size to nobody if the map of the screen was looked at, as a scroll has it,
        between the change of who is seen and the layout: so it is noticed here.
        """
        if self.size != self._fitted:
            self.call_next(self.on_resize)
        self._begin_rows()
        self._painted_rows.settle()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One row of the view."""
        return self._painted_rows.paint(y)

    def _row(self, y: int) -> Strip:
        left, top, width, selection = self._pass
        index = top + y
        return self._painter.row(index, left, width, self._marked(index), selection)

    def _begin_rows(self) -> None:
        """Look once at what is the same for all rows."""
        self._painter.look()
        self._pass = *self.scroll_offset, self.view_width, self.text_selection

    def _marked(self, index: int) -> str:
        """The mark of a line: that of the cursor, of the selection, or none."""
        if index == self._cursor:
            return "cursor" if self.has_focus else "cursor-blurred"
        if self._anchor is not None and index in self.selection_range:
            return "selected"
        return ""

    def _redraw(self, index: int) -> None:
        if 0 <= index - self.scroll_offset.y < self.size.height:
            self.refresh_line(index)

    def on_focus(self) -> None:
        """The cursor looks different with the focus."""
        self._redraw(self._cursor)

    def on_blur(self) -> None:
        """The cursor looks different without the focus."""
        self.chords.drop()
        self._redraw(self._cursor)

    def get_component_styles(self, *names: str) -> RenderStyles:
        """The styles of a component class."""
        (name,) = names
        return self._parts.styles(name)

    def _get_component_classes(  # type: ignore[override]  # the class is asked there
        self,
    ) -> frozenset[str]:
        """Have Textual work out no rules of component classes, now that the widget has its."""
        self._parts.renew()
        return NONE

    def notify_style_update(self) -> None:
        """The theme may have changed."""
        super().notify_style_update()
        self.looks.doubt()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """No rule of a list asks whether it has the focus: those that do are of its pane."""

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what the mouse selects."""
        self.refresh()


def _thumb(cells: int, lines: int, bar: ScrollBar) -> tuple[int, int]:
    """Return the begin of a bar's thumb and its length, in eighths of a cell (`ScrollBarRender`).

    Args:
        cells: of the bar, which is as high as the window that it is of.
        lines: there are; more than cells.
        bar: has the position of the window.
    """
    length = max(1, cells / (lines / cells))
    start = (cells - length) * (bar.position / (lines - cells))
    return int(start * 8), ceil(length * 8)

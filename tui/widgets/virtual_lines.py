"""A list of any length of which only the visible lines are ever made.

Measured: a list of 10 million lines costs the same to show, scroll and leave as one of ten.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from tui.messages import Copied
from tui.render import is_ascii, mark
from tui.widgets.prefix import PATIENCE, Choices, PrefixKeys
from tui.widgets.strips import highlight, to_strip

GUTTER = 2
"""Cells at the left for the marks of cursor and selection."""
COPY_MAX = 100_000
"""Lines that one copy takes at the most: a clipboard is no file."""
_SLICE = 0.008
"""Seconds of search between two looks at the keyboard."""
_CALM = 0.1
"""Seconds between two paints while more lines come than anybody can read."""
_SIDEWAYS = 8
"""Cells that one step sideways moves."""


class VirtualLines(ScrollView, can_focus=True):
    """The list; subclasses say what its lines are.

    A subclass gives `line_count` and `line`. Where lines are dropped at the front as new ones
    come, it also gives `origin`, so that cursor and view stay with the lines they were on.

    Attributes:
        follow: whether the view stays at the end as lines come; any upward motion ends that.
        pattern: what is searched for, "" for nothing.
    """

    ALLOW_SELECT = True
    ALLOW_MAXIMIZE = True
    FOLLOWS: ClassVar[bool] = False
    """Whether it follows from the beginning, and again after a motion to the end."""
    CHORDS: ClassVar[dict[str, Choices]] = {"g": {"g": "top"}}
    """Chords of two keys. An app may add to its own copy in `prefix.chords`."""

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

    EMPTY: ClassVar[str] = ""
    """What is said where there are no lines."""

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
        Binding("slash", "ask('search')", "Find", key_display="/", show=False, id="list.search"),
        Binding("n", "again(False)", "Next match", show=False, id="list.next"),
        Binding("N", "again(True)", "Previous match", show=False, id="list.previous"),
        Binding("Y", "copy_rows", "Copy", show=False, id="list.copy"),
        Binding("enter", "choose", "Show", show=False, id="list.choose"),
        Binding("escape", "calm", "Clear", show=False, id="list.clear"),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another line."""

        lines: "VirtualLines"
        index: int

        @property
        def control(self) -> Widget:
            """The list."""
            return self.lines

    @dataclass
    class Chosen(Message):
        """Enter or a double click on a line."""

        lines: "VirtualLines"
        index: int

        @property
        def control(self) -> Widget:
            """The list."""
            return self.lines

    @dataclass
    class Asked(Message):
        """The user wants to type something about the list, e.g. a pattern for "search"."""

        lines: "VirtualLines"
        what: str

    @dataclass
    class Searched(Message):
        """How a search stands.

        Attributes:
            index: of the match, None for none (yet).
            wrapped: whether it went around the end.
            done: whether it is over.
        """

        lines: "VirtualLines"
        pattern: str
        index: int | None
        wrapped: bool
        done: bool

    @dataclass
    class ChordChanged(Message):
        """A chord has begun (or ended: no choices): a hint may be shown."""

        prefix: str
        choices: Choices

    @dataclass
    class FollowChanged(Message):
        """The view follows the end from now on, or no longer."""

        follow: bool

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.follow = self.FOLLOWS
        self.pattern = ""
        alone = {"g": "app.go_to"} if "g" in self.CHORDS else {}
        self.prefix = PrefixKeys(dict(self.CHORDS), alone=alone)
        self._revision = 0
        self._cursor = 0
        self._anchor: int | None = None
        self._origin = 0
        self._shown = 0
        self._widest = 0
        self._driven = False
        self._painted = 0.0
        self._owed: Timer | None = None
        self._row_style: Style | None = None
        self._strips: LRUCache[Hashable, Strip] = LRUCache(400)
        self._looks: dict[str, Style] = {}
        self._search: Iterator[int | None] | None = None
        self._search_timer: Timer | None = None
        self._wrapped = False

    # -- what subclasses say --------------------------------------------------------------

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        raise NotImplementedError

    @property
    def origin(self) -> int:
        """How many lines were ever dropped in front of the first one."""
        return 0

    def line(self, index: int, width: int) -> Strip | Text:
        """A line for so many cells; it may be longer, what does not fit is scrolled to."""
        raise NotImplementedError

    def plain(self, index: int) -> str:
        """A line as text, for copies and for the search."""
        line = self.line(index, 10_000)
        return (line.text if isinstance(line, Strip) else line.plain).rstrip()

    def searchable(self, index: int) -> str:
        """What the search looks at in a line."""
        return self.plain(index)

    def line_key(self, index: int) -> Hashable:
        """What a line's appearance depends on besides width, theme and `changed`."""
        return self.origin + index

    def find(self, pattern: str, start: int, stop: int, backwards: bool) -> Iterator[int | None]:
        """Look through the lines from `start` to before `stop`, a few at a time.

        Yields:
            None after each bit of work, then the line that matches; nothing more without one.
        """
        first, last = start + self.origin, stop + self.origin
        folded = pattern.islower()
        for done, number in enumerate(range(first, last, -1 if backwards else 1)):
            index = number - self.origin
            if 0 <= index < self.line_count:
                text = self.searchable(index)
                if pattern in (text.lower() if folded else text):
                    yield index
                    return
            if done % 32 == 31:
                yield None

    # -- what owners call -----------------------------------------------------------------

    def refresh_size(self) -> None:
        """Lines came or went: called after each batch, at the most 30 times a second."""
        count, origin = self.line_count, self.origin
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
        self._resize(Size(self._widest, count))
        if self.follow:
            self._set_cursor(count - 1)
            self._scroll(y=count)
        elif gone:
            self._slide(max(top - gone, 0))
        if self.follow or fewer or partly or (overtaken and self._may_paint()):
            self.refresh()

    def _may_paint(self) -> bool:
        """Whether a flood may be painted again; if not, it will be in a while."""
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

    def changed(self) -> None:
        """All lines may look different now."""
        self._revision += 1
        self._strips.clear()
        self.refresh()

    def restart(self) -> None:
        """All lines are others now: back to the beginning, or to the end where it follows."""
        self.stop_search()
        self._origin = self.origin
        self._cursor = self._shown = self._widest = 0
        self._anchor = None
        self._set_follow(self.FOLLOWS)
        self.changed()
        self.refresh_size()

    @property
    def cursor(self) -> int:
        """The line the cursor is on."""
        return self._cursor

    @property
    def view_width(self) -> int:
        """Cells of a row that are seen: all but the scroll bar's."""
        return max(self.size.width - self.scrollbar_size_vertical, 1)

    @property
    def selection_range(self) -> range:
        """The lines that are selected; the cursor's if none are."""
        if not self.line_count:
            return range(0)
        anchor = self._cursor if self._anchor is None else self._anchor
        return range(min(anchor, self._cursor), max(anchor, self._cursor) + 1)

    def move_to(self, index: int, *, middle: bool = False) -> None:
        """Put the cursor on a line and show it.

        Args:
            index: the line; the nearest one if there is none.
            middle: show it in the middle of the view if it is not in sight.
        """
        count = self.line_count
        index = max(min(index, count - 1), 0)
        if self._shown != count:
            self._shown = count
            self._resize(Size(self._widest, count))
        self._set_cursor(index)
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if index < top or index >= top + height:
            if middle:
                target = index - height // 2
            else:
                target = index if index < top else index - height + 1
            self._scroll(y=max(target, 0))
        if self.follow and index < count - 1:
            self._set_follow(False)

    def copy_text(self, lines: range | None = None) -> str:
        """Lines as text, `COPY_MAX` of them at the most; the selected ones by default."""
        lines = self.selection_range if lines is None else lines
        return "\n".join(self.plain(index) for index in lines[:COPY_MAX])

    def look(self, name: str) -> Style:
        """The style of a component class `lines--NAME`, without the background."""
        style = self._looks.get(name)
        if style is None:
            style = self.get_component_rich_style(f"lines--{name}", partial=True)
            self._looks[name] = style
        return style

    @property
    def ascii_only(self) -> bool:
        """Whether only ASCII may be drawn."""
        return is_ascii(self.app)

    # -- search ---------------------------------------------------------------------------

    def search(self, pattern: str, start: int, backwards: bool = False) -> int | None:
        """Look for a pattern from a line on, without wrapping, all at once."""
        stop = -1 if backwards else self.line_count
        for found in self.find(pattern, start, stop, backwards):
            if found is not None:
                return found
        return None

    def start_search(self, pattern: str, backwards: bool = False, here: bool = True) -> None:
        """Search in slices, around the end; `Searched` tells how it stands.

        Args:
            pattern: text; without capitals in it, capitals do not matter.
            backwards: towards the first line.
            here: whether the cursor's own line counts as well.
        """
        self.stop_search()
        if self.pattern != pattern:
            self.pattern = pattern
            self.changed()
        if not pattern or not self.line_count:
            self.post_message(self.Searched(self, pattern, None, False, True))
            return
        self._search = self._around(pattern, backwards, here)
        self._wrapped = False
        self._search_timer = self.set_interval(0.001, self._search_on)
        self._search_on()

    def stop_search(self) -> None:
        """Give up a search that still runs."""
        self._search = None
        if self._search_timer is not None:
            self._search_timer.stop()
            self._search_timer = None

    def _around(self, pattern: str, backwards: bool, here: bool) -> Iterator[int | None]:
        step = -1 if backwards else 1
        number = self._cursor + self.origin
        start = self._cursor if here else self._cursor + step
        yield from self.find(pattern, start, -1 if backwards else self.line_count, backwards)
        self._wrapped = True
        at = number - self.origin
        if backwards:
            yield from self.find(pattern, self.line_count - 1, max(at - 1, -1), True)
        else:
            yield from self.find(pattern, 0, at + 1, False)

    def _search_on(self) -> None:
        if self._search is None:
            return
        end = perf_counter() + _SLICE
        while perf_counter() < end:
            try:
                found = next(self._search)
            except StopIteration:
                self._found(None)
                return
            if found is not None:
                self._found(found)
                return
        self.post_message(self.Searched(self, self.pattern, None, self._wrapped, False))

    def _found(self, index: int | None) -> None:
        self.stop_search()
        if index is not None:
            self._anchor = None
            self._set_follow(False)
            self.move_to(index, middle=True)
        self.post_message(self.Searched(self, self.pattern, index, self._wrapped, True))

    # -- keys and mouse -------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """Chords come before bindings."""
        before = self.prefix.pending
        key = event.character if event.is_printable else event.key
        action = self.prefix.feed(key or "")
        if action is None:
            return
        event.stop()
        event.prevent_default()
        if action:
            self.call_later(self.run_action, action)
        if self.prefix.pending:
            self.set_timer(PATIENCE, self._expire)
        if before != self.prefix.pending:
            self.post_message(self.ChordChanged(self.prefix.pending, self.prefix.choices))

    def _expire(self) -> None:
        if action := self.prefix.expire():
            self.post_message(self.ChordChanged("", {}))
            self.call_later(self.run_action, action)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape belongs to the list only while there is something to clear."""
        if action == "calm":
            return bool(self.pattern or self._anchor is not None or self._search)
        return super().check_action(action, parameters)

    def action_move(self, lines: int) -> None:
        """Move the cursor by lines."""
        self._anchor = None
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
        self._anchor = None
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
        self._go(self.line_count - 1)
        if self.FOLLOWS:
            self._set_follow(True)

    def action_sideways(self, steps: int) -> None:
        """Scroll sideways."""
        self._scroll(x=max(self.scroll_offset.x + steps * _SIDEWAYS, 0))

    def action_ask(self, what: str) -> None:
        """Let the pane ask for text."""
        self.post_message(self.Asked(self, what))

    def action_again(self, backwards: bool) -> None:
        """Go to the next match, or the one before."""
        if self.pattern:
            self.start_search(self.pattern, backwards, here=False)
        else:
            self.action_ask("search")

    def action_copy_rows(self) -> None:
        """Copy the selected lines as text."""
        lines = self.selection_range
        if not lines:
            return
        self.post_message(Copied(self.copy_text(lines)))

    def action_choose(self) -> None:
        """Tell that the line was chosen."""
        if self.line_count:
            self.post_message(self.Chosen(self, self._cursor))

    def action_calm(self) -> None:
        """Forget search and selection."""
        self.stop_search()
        self._anchor = None
        self.pattern = ""
        self.changed()
        self.post_message(self.Searched(self, "", None, False, True))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there; a second click chooses."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = offset.y + self.scroll_offset.y
        if 0 <= index < self.line_count:
            self._anchor = None
            self._go(index)
            if event.chain > 1:
                self.action_choose()

    def on_mouse_scroll_up(self) -> None:
        """The wheel lets go of the end even where there is nothing above."""
        self._set_follow(False)

    # -- state ----------------------------------------------------------------------------

    def _go(self, index: int) -> None:
        if index < self._cursor:
            self._set_follow(False)
        self.move_to(index)

    def _set_follow(self, follow: bool) -> None:
        if follow != self.follow:
            self.follow = follow
            self.post_message(self.FollowChanged(follow))

    def _set_cursor(self, index: int) -> None:
        index = max(index, 0)
        if index != self._cursor:
            self._redraw(self._cursor)
            self._cursor = index
            self._redraw(index)
            self.post_message(self.Moved(self, index))

    def _redraw(self, index: int) -> None:
        if 0 <= index - self.scroll_offset.y < self.size.height:
            self.refresh_line(index)

    def _keep_in_sight(self) -> None:
        """The cursor stays within the view as that moves."""
        top = self.scroll_offset.y
        last = min(top + max(self.size.height, 1), self.line_count) - 1
        self._set_cursor(max(min(self._cursor, last), top))

    def _resize(self, size: Size) -> None:
        """Set the virtual size without a new layout of the screen, which it never changes."""
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
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
            self._set_follow(False)

    def on_resize(self) -> None:
        """Keep the end in view while following, the cursor else."""
        self._strips.grow(max(self.size.height * 4, 64))
        if self.follow:
            self._scroll(y=self.line_count)
        else:
            self.move_to(self._cursor)
        self.refresh()

    def on_focus(self) -> None:
        """The cursor looks different with the focus."""
        self._redraw(self._cursor)

    def on_blur(self) -> None:
        """A chord does not outlive the focus."""
        if self.prefix.pending:
            self.prefix.pending = ""
            self.post_message(self.ChordChanged("", {}))
        self._redraw(self._cursor)

    def notify_style_update(self) -> None:
        """The theme has changed."""
        super().notify_style_update()
        self._strips.clear()
        self._looks.clear()
        self._row_style = None

    # -- painting -------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """One row of the view."""
        width = self.view_width
        base = self._row_style
        if base is None:
            base = self._row_style = self.rich_style
        left, top = self.scroll_offset
        index = top + y
        if index >= self.line_count:
            if not index and self.EMPTY:
                empty = Text(" " * GUTTER + self.EMPTY, self.look("note"))
                said = to_strip(empty, self.app.console).adjust_cell_length(width)
                return said.apply_style(base)
            return Strip.blank(width, base)
        state = self._state(index)
        key = (self.line_key(index), width, left, state, self._revision)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._paint(index, left, width, state, base)
            self._strips[key] = strip
        selection = self.text_selection
        if selection is not None:
            strip = self._select(strip, selection, index)
        return strip.apply_offsets(0, index)

    def _state(self, index: int) -> str:
        if index == self._cursor:
            return "cursor" if self.has_focus else "cursor-blurred"
        if self._anchor is not None and index in self.selection_range:
            return "selected"
        return ""

    def _paint(self, index: int, left: int, width: int, state: str, base: Style) -> Strip:
        room = max(width - GUTTER, 1)
        content = to_strip(self.line(index, room), self.app.console)
        if content.cell_length > self._widest - GUTTER:
            self._widest = content.cell_length + GUTTER
            self.call_later(self._wider)
        if self.pattern:
            content = highlight(content, self.pattern, self.look("match"))
        sign = " "
        if state:
            sign = mark("selected" if state == "selected" else "cursor", self.ascii_only)
        if left or content.cell_length > room:
            content = content.crop(left, left + room)
        # A strip is dear (it comes with eight caches), so one is made of all segments at once.
        pad = " " * max(width - GUTTER - content.cell_length, 0)
        segments = [Segment(sign.ljust(GUTTER)), *content, Segment(pad)]
        style = base + self._state_style(state) if state else base
        strip = Strip(
            Segment.apply_style(segments, style), GUTTER + content.cell_length + len(pad)
        )
        return strip if strip.cell_length == width else strip.crop(0, width)

    def _state_style(self, state: str) -> Style:
        style = self._looks.get(state)
        if style is None:
            style = self.get_component_rich_style(f"lines--{state}", partial=True)
            self._looks[state] = style
        return style

    def _wider(self) -> None:
        self._resize(Size(self._widest, self._shown))

    def _select(self, strip: Strip, selection: Selection, index: int) -> Strip:
        span = selection.get_span(index)
        if span is None:
            return strip
        start, end = span
        end = strip.cell_length if end < 0 else min(end, strip.cell_length)
        start = min(start, end)
        style = self.screen.get_component_rich_style("screen--selection")
        before, inside = strip.crop(0, start), strip.crop(start, end)
        return Strip.join([before, inside.apply_style(style), strip.crop(end)])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that was selected with the mouse, as it is seen."""
        start = 0 if selection.start is None else selection.start.y
        end = self.line_count - 1 if selection.end is None else selection.end.y
        width, left = self.view_width, self.scroll_offset.x
        lines: list[str] = []
        for index in range(start, min(end, start + COPY_MAX, self.line_count - 1) + 1):
            span = selection.get_span(index)
            if span is not None:
                strip = self._paint(index, left, width, "", self.rich_style)
                text = strip.text
                lines.append(text[span[0] : None if span[1] < 0 else span[1]].rstrip())
        return "\n".join(lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what the mouse selects."""
        self.refresh()

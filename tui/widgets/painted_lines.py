"""Lines painted one by one, as they come into view, and what the mouse selects of them."""

from collections.abc import Hashable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.cache import LRUCache
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from tui.render import is_ascii, mark
from tui.widgets.strips import highlight, to_strip

GUTTER = 2
"""Cells at the left for the marks of cursor and selection."""
COPY_MAX = 100_000
"""Lines that one copy takes at the most: a clipboard is no file."""


class PaintedLines(ScrollView):
    """The painting of a list: which lines there are and how each is marked, subclasses say.

    Attributes:
        pattern: what is searched for, and shown in each line; "" for nothing.
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

    EMPTY: ClassVar[str] = ""
    """What is said where there are no lines."""

    DEFAULT_CSS = """
    PaintedLines {
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

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.pattern = ""
        self._widest = 0
        self._revision = 0
        self._row_style: Style | None = None
        self._strips: LRUCache[Hashable, Strip] = LRUCache(400)
        self._looks: dict[str, Style] = {}

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

    def line_key(self, index: int) -> Hashable:
        """What a line's appearance depends on besides width, theme and `changed`."""
        return self.origin + index

    def marked(self, index: int) -> str:
        """How a line is marked: "cursor", "cursor-blurred", "selected", or "" for not at all."""
        raise NotImplementedError

    def widened(self) -> None:
        """A line was painted that is longer than all before: `_widest` says how long."""
        raise NotImplementedError

    # -- looks ----------------------------------------------------------------------------

    @property
    def view_width(self) -> int:
        """Cells of a row that are seen: all but the scroll bar's."""
        return max(self.size.width - self.scrollbar_size_vertical, 1)

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

    def changed(self) -> None:
        """All lines may look different now."""
        self._revision += 1
        self._strips.clear()
        self.refresh()

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
        state = self.marked(index)
        key = (self.line_key(index), width, left, state, self._revision)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._paint(index, left, width, state, base)
            self._strips[key] = strip
        selection = self.text_selection
        if selection is not None:
            return self._select(strip, selection, index).apply_offsets(0, index)
        placed = self._strips.get((index, key))
        if placed is None:  # where it is, for the mouse: another strip
            placed = self._strips[index, key] = strip.apply_offsets(0, index)
        return placed

    def _paint(self, index: int, left: int, width: int, state: str, base: Style) -> Strip:
        room = max(width - GUTTER, 1)
        content = to_strip(self.line(index, room), self.app.console)
        if content.cell_length > self._widest - GUTTER:
            self._widest = content.cell_length + GUTTER
            self.call_later(self.widened)
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

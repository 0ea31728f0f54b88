"""Lines as a list paints them: each once, for as long as it looks the same."""

from collections.abc import Callable, Hashable
from typing import Final

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.cache import LRUCache
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui.render import mark
from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.strips import fitted, highlight, to_strip

GUTTER: Final = 2
"""Cells at the left for the marks of cursor and selection."""
_KEPT: Final = 400
"""Strips that are kept at first."""


class LinePainter:
    """Makes the strips of a source's lines and keeps them.

    Attributes:
        pattern: text that is marked in each line; "" for none.
        widest: cells of the longest line painted so far, with the gutter.
    """

    def __init__(
        self,
        widget: Widget,
        source: LineSource,
        looks: Looks,
        widened: Callable[[], object],
    ) -> None:
        """Nothing is painted yet.

        Args:
            widget: gives console and background.
            source: of the lines.
            looks: of the widget.
            widened: called, later, when a line was longer than all before.
        """
        self._widget = widget
        self._source = source
        self._looks = looks
        self._widened = widened
        self._revision = 0
        self._base: Style | None = None
        self._strips: LRUCache[Hashable, Strip] = LRUCache(_KEPT)
        self._made: LRUCache[Hashable, tuple[Strip | Text, Strip]] = LRUCache(_KEPT)
        # An `LRUCache` keeps the first value of a key: here the last one is wanted.
        self._placed: dict[int, tuple[Strip, Strip]] = {}
        self._shown: dict[int, tuple[object, Strip]] = {}
        self._most = _KEPT
        self.pattern = ""
        self.widest = 0

    # -- what is kept ---------------------------------------------------------------------

    def changed(self) -> None:
        """All lines may look different now."""
        self._revision += 1
        self._strips.clear()

    def look(self) -> None:
        """Forget what is kept if styles have changed since the last look."""
        if self._looks.outdated():
            self._strips.clear()
            self._made.clear()
            self._shown.clear()
            self._base = None
            self._source.restyled()

    def keep(self, strips: int) -> None:
        """Keep so many strips at the least."""
        self._strips.grow(strips)
        self._made.grow(strips)
        self._most = max(self._most, strips)

    # -- painting -------------------------------------------------------------------------

    def row(
        self, index: int, left: int, width: int, state: str, selection: Selection | None
    ) -> Strip:
        """A row of the view.

        Args:
            index: of the line; there may be none.
            left: cells scrolled sideways.
            width: cells of the view.
            state: how the line is marked: "cursor", "cursor-blurred", "selected", "".
            selection: of the mouse.
        """
        base = self._base
        if base is None:
            base = self._base = self._widget.rich_style
        source = self._source
        if index >= source.count:
            return self._blank(index, width, base)
        content = source.content(index) if selection is None else None
        if content is not None:
            shown = content, width, left, state, self.pattern
            last = self._shown.get(index)
            if last is None or last[0] != shown:
                made = self._strip(index, left, width, state, base)
                if len(self._shown) > self._most:
                    self._shown.clear()
                last = self._shown[index] = shown, self._in_place(index, made)
            return last[1]
        key = (source.key(index), width, left, state, self._revision)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._strip(index, left, width, state, base)
        if selection is not None:
            return self._select(strip, selection, index).apply_offsets(0, index)
        placed = self._strips.get((index, key))
        if placed is None:  # where it is, for the mouse: another strip
            placed = self._strips[index, key] = self._in_place(index, strip)
        return placed

    def _strip(self, index: int, left: int, width: int, state: str, base: Style) -> Strip:
        """Paint a line; one that says what it said before is as it was painted then."""
        line = self._source.line(index, max(width - GUTTER, 1), self._looks)
        text = line.plain if isinstance(line, Text) else line.text
        key = text, left, width, state, self.pattern
        known = self._made.get(key)
        if known is not None and _is_same(line, known[0]):
            return known[1]
        strip = self._paint(line, left, width, state, base)
        self._made[key] = line, strip
        return strip

    def _in_place(self, index: int, strip: Strip) -> Strip:
        known = self._placed.get(index)
        if known is None or known[0] is not strip:
            if len(self._placed) > self._most:
                self._placed.clear()
            known = self._placed[index] = strip, strip.apply_offsets(0, index)
        return known[1]

    def seen(self, index: int, left: int, width: int) -> str:
        """A line as it is seen, without marks."""
        line = self._source.line(index, max(width - GUTTER, 1), self._looks)
        return self._paint(line, left, width, "", self._widget.rich_style, cuts=False).text

    def _blank(self, index: int, width: int, base: Style) -> Strip:
        if index or not self._source.empty:
            return Strip.blank(width, base)
        text = Text(" " * GUTTER + self._source.empty, self._looks("note"))
        said = to_strip(text, self._widget.app.console).adjust_cell_length(width)
        return said.apply_style(base)

    def _paint(
        self,
        line: Strip | Text,
        left: int,
        width: int,
        state: str,
        base: Style,
        *,
        cuts: bool = True,
    ) -> Strip:
        room = max(width - GUTTER, 1)
        looks = self._looks
        content = to_strip(line, self._widget.app.console)
        if content.cell_length > self.widest - GUTTER:
            self.widest = content.cell_length + GUTTER
            self._widget.call_later(self._widened)
        if self.pattern:
            content = highlight(content, self.pattern, looks("match"))
        sign = " "
        if state:
            sign = mark("selected" if state == "selected" else "cursor", looks.ascii_only)
        more = mark("more", looks.ascii_only) if cuts else ""
        content = fitted(content, room, more, left)
        # A strip is dear (it comes with eight caches), so one is made of all segments at once.
        pad = " " * max(width - GUTTER - content.cell_length, 0)
        segments = [Segment(sign.ljust(GUTTER)), *content, Segment(pad)]
        style = base + looks(state) if state else base
        strip = Strip(
            Segment.apply_style(segments, style), GUTTER + content.cell_length + len(pad)
        )
        return strip if strip.cell_length == width else strip.crop(0, width)

    def _select(self, strip: Strip, selection: Selection, index: int) -> Strip:
        span = selection.get_span(index)
        if span is None:
            return strip
        start, end = span
        end = strip.cell_length if end < 0 else min(end, strip.cell_length)
        start = min(start, end)
        style = self._widget.screen.get_component_rich_style("screen--selection")
        before, inside = strip.crop(0, start), strip.crop(start, end)
        return Strip.join([before, inside.apply_style(style), strip.crop(end)])


def _is_same(one: Strip | Text, other: Strip | Text) -> bool:
    """True if two lines look the same."""
    if isinstance(one, Text) and isinstance(other, Text):
        return one == other and one.style == other.style  # the first compares no style
    return one == other

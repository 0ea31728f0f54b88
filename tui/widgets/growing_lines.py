"""A list that grows at its end and may lose lines at its front, and a view that stays with it."""

from time import monotonic
from typing import ClassVar, Final

from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

from tui.widgets.painted_lines import PaintedLines

_CALM: Final = 0.1
"""Seconds between two paints while more lines come than anybody can read."""


class GrowingLines(PaintedLines):
    """Where the view of a list is as lines come and go: at its end, or with the same lines.

    Attributes:
        follow: whether the view stays at the end as lines come; any upward motion ends that.
    """

    FOLLOWS: ClassVar[bool] = False
    """Whether it follows from the beginning, and again after a motion to the end."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.follow = self.FOLLOWS
        self._cursor = 0
        self._anchor: int | None = None
        self._origin = 0
        self._shown = 0
        self._driven = False
        self._painted = 0.0
        self._owed: Timer | None = None

    # -- what subclasses say --------------------------------------------------------------

    def cursor_moved(self, old: int) -> None:
        """The cursor is on another line than `old`."""
        raise NotImplementedError

    def follow_changed(self) -> None:
        """The view follows the end from now on, or no longer."""
        raise NotImplementedError

    # -- lines come and go ----------------------------------------------------------------

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

    def widened(self) -> None:
        """A longer line than all before: there is more to scroll sideways."""
        self._resize(Size(self._widest, self._shown))

    def _set_follow(self, follow: bool) -> None:
        if follow != self.follow:
            self.follow = follow
            self.follow_changed()

    def _set_cursor(self, index: int) -> None:
        old, self._cursor = self._cursor, max(index, 0)
        if old != self._cursor:
            self.cursor_moved(old)

    # -- the view -------------------------------------------------------------------------

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

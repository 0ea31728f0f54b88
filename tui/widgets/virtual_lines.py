"""A list of any length of which only the visible lines are ever made.

Measured: a list of 10 million lines costs the same to show, scroll and leave as one of ten.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.messages import Copied
from tui.widgets.chords import Chords
from tui.widgets.growing_lines import GrowingLines
from tui.widgets.painted_lines import COPY_MAX
from tui.widgets.prefix import Choices, PrefixKeys
from tui.widgets.slices import Slices

_SIDEWAYS = 8
"""Cells that one step sideways moves."""


class VirtualLines(GrowingLines, Chords, can_focus=True):
    """The list; subclasses say what its lines are.

    A subclass gives `line_count` and `line`. Where lines are dropped at the front as new ones
    come, it also gives `origin`, so that cursor and view stay with the lines they were on.
    """

    CHORDS: ClassVar[dict[str, Choices]] = {"g": {"g": "top"}}
    """Chords of two keys. An app may add to its own copy in `prefix.chords`."""

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
    class FollowChanged(Message):
        """The view follows the end from now on, or no longer."""

        follow: bool

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        alone = {"g": "app.go_to"} if "g" in self.CHORDS else {}
        self.prefix = PrefixKeys(dict(self.CHORDS), alone=alone)
        self._searching = Slices(self, self._found, self._going)
        self._wrapped = False

    # -- what subclasses say --------------------------------------------------------------

    def plain(self, index: int) -> str:
        """A line as text, for copies and for the search."""
        line = self.line(index, 10_000)
        return (line.text if isinstance(line, Strip) else line.plain).rstrip()

    def searchable(self, index: int) -> str:
        """What the search looks at in a line."""
        return self.plain(index)

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
        self._wrapped = False
        self._searching.start(self._around(pattern, backwards, here))

    def stop_search(self) -> None:
        """Give up a search that still runs."""
        self._searching.stop()

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

    def _going(self) -> None:
        self.post_message(self.Searched(self, self.pattern, None, self._wrapped, False))

    def _found(self, index: int | None) -> None:
        if index is not None:
            self._anchor = None
            self._set_follow(False)
            self.move_to(index, middle=True)
        self.post_message(self.Searched(self, self.pattern, index, self._wrapped, True))

    # -- keys and mouse -------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape belongs to the list only while there is something to clear."""
        if action == "calm":
            return bool(self.pattern or self._anchor is not None or self._searching)
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

    def marked(self, index: int) -> str:
        """How a line is marked."""
        if index == self._cursor:
            return "cursor" if self.has_focus else "cursor-blurred"
        if self._anchor is not None and index in self.selection_range:
            return "selected"
        return ""

    def follow_changed(self) -> None:
        """Tell whether the view follows."""
        self.post_message(self.FollowChanged(self.follow))

    def cursor_moved(self, old: int) -> None:
        """Two lines look different now; tell of it."""
        self._redraw(old)
        self._redraw(self._cursor)
        self.post_message(self.Moved(self, self._cursor))

    def _redraw(self, index: int) -> None:
        if 0 <= index - self.scroll_offset.y < self.size.height:
            self.refresh_line(index)

    def _keep_in_sight(self) -> None:
        """The cursor stays within the view as that moves."""
        top = self.scroll_offset.y
        last = min(top + max(self.size.height, 1), self.line_count) - 1
        self._set_cursor(max(min(self._cursor, last), top))

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
        """The cursor looks different without the focus."""
        self._redraw(self._cursor)

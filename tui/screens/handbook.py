"""The handbook in the interface: the chapters that `kprobe-tui help` shows."""

import re
from collections.abc import Callable
from textwrap import wrap
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input, Static

from engine.chapters import NAMES, PARTS, load_chapter
from engine.chapters.layout import Line, TextLook, lay_out, plain_text
from tui.render import harmless, is_ascii
from tui.screens.dialog import Dialog
from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_LOOKS: Final = {
    TextLook.HEADING: "name",
    TextLook.BOLD: "good",
    TextLook.CODE: "accent",
    TextLook.LINK: "warn",
}
"""Looks of a list for the looks of a chapter."""
_LINK: Final = re.compile(r"\[help (\w+)\]")
"""A link as it is shown."""
_MARGIN: Final = 3
"""Columns of a list that lines do not have: the cursor's and the scroll bar's."""
_NARROWEST: Final = 20


class HandbookLines(LineSource):
    """The lines of a chapter, or of the list of topics, filled to the width of their list.

    Attributes:
        topic: name of the chapter; "" is the list of topics.
    """

    def __init__(self, topic: str) -> None:
        """Show a chapter; see `topic`."""
        self.topic = topic
        self._width = 80
        self._lines = self._fitted()

    def turn_to(self, topic: str) -> None:
        """Show another chapter; see `topic`."""
        self.topic = topic
        self._lines = self._fitted()

    def topics_at(self, index: int) -> list[str]:
        """Names of the chapters that a line names."""
        if not 0 <= index < self.count:
            return []
        if not self.topic:
            name = plain_text(self._lines[index]).partition(" ")[0]
            return [name] if name in NAMES else []
        # The words of a link may be broken between two lines.
        text = " ".join(map(plain_text, self._lines[index : index + 2]))
        first = len(plain_text(self._lines[index]))
        return [found[1] for found in _LINK.finditer(text) if found.start() <= first]

    @property
    def count(self) -> int:
        """Number of lines."""
        return len(self._lines)

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """A line with its looks."""
        text = Text(no_wrap=True)
        for piece, look in self._lines[index]:
            shown = harmless(piece, looks.ascii_only)
            text.append(shown, looks(_LOOKS[look]) if look in _LOOKS else None)
        return text

    def arrange(self, size: Size) -> bool:
        """Fill the lines anew where the width has changed."""
        width = max(size.width - _MARGIN, _NARROWEST)
        if width == self._width:
            return False
        self._width = width
        self._lines = self._fitted()
        return True

    def _fitted(self) -> list[Line]:
        if self.topic:
            return list(lay_out(load_chapter(self.topic).text, self._width))
        lines: list[Line] = []
        wide = max(map(len, NAMES)) + 2
        for part, names in PARTS.items():
            lines += [[], [(part, TextLook.HEADING)]]
            for name in names:
                first, *rest = wrap(load_chapter(name).about, max(self._width - wide, _NARROWEST))
                lines.append([(f"{name:<{wide}}", TextLook.LINK), (first, TextLook.PLAIN)])
                lines += [[(" " * wide + text, TextLook.PLAIN)] for text in rest]
        return lines[1:]


class HandbookScreen(Dialog[None]):
    """A page with a chapter; keys are those of less and vim, `?` goes on to the list of keys."""

    DEFAULT_CSS = """
    HandbookScreen { align: center middle; }
    HandbookScreen > Vertical {
        width: 96%;
        max-width: 108;
        height: 94%;
        border: solid $border;
        background: $surface;
        padding: 0 1;
        &.-ascii { border: ascii $border; }
    }
    HandbookScreen #hint { height: 1; color: $text-muted; }
    HandbookScreen Input {
        height: 1; border: none; padding: 0; background: $boost; display: none;
    }
    HandbookScreen Input:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Back"),
        Binding("question_mark,f1", "keys", "Keys"),
        Binding("slash", "find", show=False),
        Binding("n", "again(False)", show=False),
        Binding("N", "again(True)", show=False),
        Binding("space,f,ctrl+f", "page(1.0)", show=False),
        Binding("b,ctrl+b", "page(-1.0)", show=False),
        Binding("d", "page(0.5)", show=False),
        Binding("u", "page(-0.5)", show=False),
        Binding("g,less_than_sign", "top", show=False),
        Binding("greater_than_sign", "bottom", show=False),
        Binding("t", "topics", "Topics"),
        Binding("right_square_bracket", "turn(1)", "Next chapter"),
        Binding("left_square_bracket", "turn(-1)", "Chapter before"),
    ]

    def __init__(self, topic: str, keys: Callable[[], Screen[None]]) -> None:
        """Show a chapter.

        Args:
            topic: name of the chapter.
            keys: makes the screen with the keys.
        """
        super().__init__()
        self._source = HandbookLines(topic)
        self._lines = VirtualLines(self._source, chords={})
        self._keys = keys
        self._line = Input(placeholder="/ text", compact=True)
        self._hint = Static(id="hint", markup=False)

    def compose(self) -> ComposeResult:
        """The chapter, the line for a search, the keys."""
        with Vertical() as box:
            box.set_class(is_ascii(self.app), "-ascii")
            yield self._lines
            yield self._line
            yield self._hint

    def on_mount(self) -> None:
        """Begin at the top."""
        self._retitle()
        self._lines.focus()

    def _retitle(self, said: str = "") -> None:
        topic = self._source.topic
        box = self.query_one(Vertical)
        box.border_title = f"Help: {topic}" if topic else "Help: topics"
        keys = "? keys  t topics  [ ] chapters  / find  Enter link  q back"
        self._hint.update(said or keys)

    def show(self, topic: str) -> None:
        """Turn to a chapter; "" is the list of topics."""
        before = self._source.topic
        self._source.turn_to(topic)
        self._lines.restart()
        if not topic and before:
            rows = range(self._source.count)
            self._lines.move_to(next(at for at in rows if before in self._source.topics_at(at)))
        self._retitle()

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Follow the link in the line."""
        event.stop()
        topics = self._source.topics_at(event.index)
        if topics:
            self.show(topics[0])

    def on_virtual_lines_searched(self, event: VirtualLines.Searched) -> None:
        """Say how the search stands."""
        event.stop()
        if not event.pattern or not event.done:
            self._retitle()
        elif event.index is None:
            self._retitle(f"/{event.pattern}: not found")
        else:
            around = ", around the end" if event.wrapped else ""
            self._retitle(f"/{event.pattern}: n next, N previous{around}, Esc clears")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Look for the text."""
        event.stop()
        self._leave_line()
        self._lines.start_search(event.value)

    def _leave_line(self) -> None:
        self._line.display = False
        self._lines.focus()

    def action_find(self) -> None:
        """Ask for a text."""
        self._line.value = ""
        self._line.display = True
        self._line.focus()

    async def action_dismiss(self, result: None = None) -> None:
        """Leave the line of the search, or the page."""
        if self._line.has_focus:
            self._leave_line()
        else:
            self.dismiss(result)

    def action_again(self, backwards: bool) -> None:
        """Go to the next match, or the one before."""
        if self._lines.pattern:
            self._lines.start_search(self._lines.pattern, backwards, here=False)

    def action_page(self, pages: float) -> None:
        """Scroll by pages."""
        self._lines.action_page(pages)

    def action_top(self) -> None:
        """Go to the first line."""
        self._lines.action_top()

    def action_bottom(self) -> None:
        """Go to the last line."""
        self._lines.action_bottom()

    def action_topics(self) -> None:
        """Show the list of topics."""
        self.show("")

    def action_turn(self, chapters: int) -> None:
        """Turn to the next chapter, or to the one before."""
        topic = self._source.topic
        at = NAMES.index(topic) + chapters if topic else 0
        self.show(NAMES[at % len(NAMES)])

    def action_keys(self) -> None:
        """Show the keys in place of the chapter."""
        self.app.switch_screen(self._keys())

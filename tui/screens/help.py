"""The keys of the focused pane, and those that work everywhere by what they are for."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from tui.keymap import ACTIONS, Action, Situation
from tui.render import MARKS, is_ascii
from tui.screens.dialog import Dialog

_KEYS: Final = 12
"""Columns of the keys."""
_BESIDE: Final = 120
"""Columns from which on the pane's keys stand beside those of all."""
_LOOK: Final = "bold $text-accent"
_HEADING: Final = "bold $text-primary"
_CODE: Final = re.compile(r"`([^`]*)`")

_NOTES: Final = """
# Panes and mouse
`1` to `9`, `0` and `T` go to the panes, Tab and Shift+Tab through them; a click in the margin of
the code sets a breakpoint, a name in a title shows its pane, bars between panes can be dragged.
Copying uses the terminal's clipboard (OSC 52): within tmux it needs `set -g set-clipboard on`.
Keys are changed in the file that `kprobe-tui config init` writes.
"""


class HelpScreen(Dialog[None]):
    """A page with the keys of a pane, and all others by what people want to do.

    In a wide terminal both stand side by side. `/` leaves only the lines that hold a text.
    """

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical {
        width: 96%;
        max-width: 160;
        height: 94%;
        border: solid $border;
        background: $surface;
        padding: 0 1;
        &.-ascii { border: ascii $border; }
    }
    HelpScreen VerticalScroll { height: 1fr; background: $surface; scrollbar-size-vertical: 1; }
    HelpScreen Horizontal { height: auto; }
    HelpScreen.-narrow Horizontal { layout: vertical; }
    HelpScreen .page { width: 1fr; height: auto; padding: 0 2 1 0; }
    HelpScreen #hint { height: 1; color: $text-muted; }
    HelpScreen Input { height: 1; border: none; padding: 0; background: $boost; display: none; }
    HelpScreen Input:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("q,question_mark,f1", "dismiss(None)", "Back"),
        Binding("slash", "find", show=False),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
        Binding("space,pagedown,ctrl+d", "page(1)", show=False),
        Binding("pageup,ctrl+u", "page(-1)", show=False),
        Binding("home", "page(-1000)", show=False),
        Binding("end", "page(1000)", show=False),
    ]

    def __init__(
        self,
        text: str,
        key_text: Callable[[Action], str] = lambda action: action.key_text,
        now: Situation | None = None,
    ) -> None:
        """Show the keys of a widget.

        Args:
            text: its `HELP`: headings, tables of two columns, paragraphs.
            key_text: the keys of an action as the user has set them.
            now: decides which actions work; None for that before the start.
        """
        super().__init__()
        self._help = text
        self._key_text = key_text
        self._now = Situation() if now is None else now
        self._line = Input(placeholder="/ a word or a key", compact=True)

    def compose(self) -> ComposeResult:
        """The pane's keys, those of all panes, the line for a search."""
        self.set_class(self.app.size.width < _BESIDE, "-narrow")
        with Vertical() as box:
            box.set_class(is_ascii(self.app), "-ascii")
            box.border_title = "Help"
            with VerticalScroll(), Horizontal():
                yield Static(markup=False, classes="page", id="here")
                yield Static(markup=False, classes="page", id="everywhere")
            yield self._line
            yield Static("/ find   j k space scroll   Esc back   ctrl+p any action", id="hint")

    def on_mount(self) -> None:
        """Show all of it."""
        self._fill("")
        self.query_one(VerticalScroll).focus()

    def on_resize(self) -> None:
        """Side by side, or below each other."""
        self.set_class(self.app.size.width < _BESIDE, "-narrow")
        self._fill(self._line.value)

    def _fill(self, wanted: str) -> None:
        """Show the lines that hold a text, with their headings."""
        plain = is_ascii(self.app)
        for name, parts in (
            ("here", help_parts(self._help, plain)),
            ("everywhere", self._everywhere(bool(wanted))),
        ):
            lines = _found(_lines(parts), wanted.lower(), self._room)
            self.query_one(f"#{name}", Static).update(Content("\n").join(lines))

    @property
    def _room(self) -> int:
        """Cells of a line."""
        columns = self.app.size.width
        whole = min(columns * 96 // 100, 160) - 5  # edges, padding, the scroll bar
        return max((whole // 2 if columns >= _BESIDE else whole) - 2, 2 * _KEYS)

    def _everywhere(self, others: bool) -> Iterator[tuple[str, str]]:
        """The actions that work now by what people want to do, what others wait for, notes.

        Args:
            others: show what those do, too, that do not work now.
        """
        waiting: dict[str, list[Action]] = {}
        works: list[Action] = []
        for action in ACTIONS:
            lack = action.lacks(self._now)
            (waiting.setdefault(lack, []) if lack else works).append(action)
        for task, actions in groupby(works, key=lambda action: action.task):
            yield f"{task}\n", _HEADING
            yield from self._keys(actions)
        if waiting and not others:
            yield "Not now\n", _HEADING
        for lack, those in waiting.items():
            if others:
                yield f"Not now, but {lack.replace('`', '')}\n", _HEADING
                yield from self._keys(those)
            else:
                yield f"{' '.join(self._key_text(action) for action in those)}  ", _LOOK
                yield from _spelled(f"{lack}\n", is_ascii(self.app))
        yield "\n", ""
        yield from help_parts(_NOTES, is_ascii(self.app))

    def _keys(self, actions: Iterable[Action]) -> Iterator[tuple[str, str]]:
        for action in actions:
            yield f"{self._key_text(action):<{_KEYS - 1}} ", _LOOK
            yield f"{action.help}\n", ""
        yield "\n", ""

    def action_find(self) -> None:
        """Ask for a text."""
        self._line.display = True
        self._line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what holds the text so far."""
        event.stop()
        self._fill(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back to the page, of which only that is left."""
        event.stop()
        self.query_one(VerticalScroll).focus()

    def action_back(self) -> None:
        """All of the page again, or away from it."""
        if self._line.display:
            self._line.display = False
            self._line.value = ""
            self.query_one(VerticalScroll).focus()
        else:
            self.dismiss(None)

    def action_scroll(self, lines: int) -> None:
        """Scroll."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        area = self.query_one(VerticalScroll)
        area.scroll_relative(y=pages * max(area.size.height - 1, 1), animate=False)


def _lines(parts: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Pieces of text and their looks, line by line; a blank line is one empty piece."""
    line: list[tuple[str, str]] = []
    for text, look in parts:
        for number, piece in enumerate(text.split("\n")):
            if number:
                yield line or [("", "")]
                line = []
            if piece:
                line.append((piece, look))
    if line:
        yield line


def _hanging(line: list[tuple[str, str]], width: int) -> Content:
    """A line; where it is too long, the rest of what keys do stands below its beginning."""
    content = Content.assemble(*line)
    if content.cell_length <= width or line[0][1] != _LOOK or len(line[0][0]) > _KEYS:
        return content
    rest = Content.assemble(*line[1:]).wrap(width - _KEYS)
    return Content(line[0][0]).stylize(_LOOK) + Content("\n" + " " * _KEYS).join(rest)


def _found(lines: Iterator[list[tuple[str, str]]], wanted: str, width: int) -> list[Content]:
    """The lines that hold a text in lower case, and the headings above them."""
    found: list[Content] = []
    heading: Content | None = None
    for line in lines:
        content = _hanging(line, width)
        if line[0][1] == _HEADING:
            heading = content
        if not wanted:
            found.append(content)
        elif wanted in content.plain.lower():
            if heading is not None and heading is not content:
                found.append(heading)
                heading = None
            found.append(content)
    return found


def help_parts(text: str, ascii_only: bool = False) -> Iterator[tuple[str, str]]:
    """A widget's `HELP` as pieces of text and their looks."""
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        if paragraph and (not stripped or stripped[0] in "#|"):
            yield from _spelled(" ".join(paragraph), ascii_only)
            yield "\n", ""
            paragraph = []
        if stripped.startswith("#"):
            yield stripped.lstrip("# ") + "\n", _HEADING
        elif stripped.startswith("|"):
            keys, _, does = stripped.strip("| ").partition(" | ")
            if keys.strip("-| ") and does.strip() != "does":
                keys = keys.replace("`", "").strip()
                if ascii_only:  # a sign and what stands for it are the same then
                    keys = " ".join(dict.fromkeys(_plain(keys).split()))
                # Keys that need more room than there is stand on a line of their own.
                gap = "\n" + " " * _KEYS if len(keys) >= _KEYS else " " * (_KEYS - len(keys))
                yield keys + gap, _LOOK
                yield from _spelled(does, ascii_only)
                yield "\n", ""
        elif stripped:
            paragraph.append(stripped)


def _spelled(text: str, ascii_only: bool) -> Iterator[tuple[str, str]]:
    """Text with what stands in backticks in bold."""
    if ascii_only:
        text = _plain(text)
    for number, piece in enumerate(_CODE.split(text)):
        yield piece, "bold" if number % 2 else ""


def _plain(text: str) -> str:
    """Text with the signs that a terminal without Unicode shows."""
    for sign, plain in MARKS.values():
        text = text.replace(sign, plain)
    return text.encode("ascii", "replace").decode()

"""The help panel: the keys of the focused pane, then those that work everywhere."""

import re
from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.keymap import ACTIONS, Action
from tui.render import MARKS, is_ascii

_KEYS: Final = 18
"""Columns of the keys."""
_CODE: Final = re.compile(r"`([^`]*)`")

_NOTES: Final = """
`1` to `8` go to the panes, Tab and Shift+Tab through them; a click in the margin of the code sets
a breakpoint. Copying uses the terminal's clipboard (OSC 52): within tmux it needs
`set -g set-clipboard on`. Keys are changed in the file that `kprobe-tui config init` writes.
"""


class HelpScreen(ModalScreen[None]):
    """Shows what a widget's `HELP` says, and all actions."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical {
        width: 92%;
        max-width: 96;
        height: auto;
        max-height: 92%;
        border: solid $border;
        background: $surface;
        padding: 0 1;
        &.-ascii { border: ascii $border; }
    }
    HelpScreen VerticalScroll {
        height: auto;
        max-height: 100%;
        background: $surface;
        scrollbar-size-vertical: 1;
    }
    HelpScreen #hint { height: 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "dismiss(None)", "Back"),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
        Binding("space,pagedown,ctrl+d", "page(1)", show=False),
        Binding("pageup,ctrl+u", "page(-1)", show=False),
    ]

    def __init__(
        self, text: str, key_text: Callable[[Action], str] = lambda action: action.key_text
    ) -> None:
        """Show the keys of a widget.

        Args:
            text: its `HELP`: headings, tables of two columns, paragraphs.
            key_text: the keys of an action as the user has set them.
        """
        super().__init__()
        self._help = text
        self._key_text = key_text

    def compose(self) -> ComposeResult:
        """The pane's keys, the keys of all panes."""
        with Vertical() as box:
            box.set_class(is_ascii(self.app), "-ascii")
            box.border_title = "Help"
            with VerticalScroll():
                yield Static(Content.assemble(*self._parts()), markup=False)
            yield Static("j k space scroll   Esc back   ctrl+p finds any action", id="hint")

    def _parts(self) -> Iterator[tuple[str, str]]:
        yield from help_parts(self._help, is_ascii(self.app))
        yield "\nEverywhere\n", "bold $text-primary"
        for action in ACTIONS:
            yield f"{self._key_text(action):<{_KEYS}}", "bold $text-accent"
            yield f"{action.help}\n", ""
        yield "\n", ""
        yield from help_parts(_NOTES, is_ascii(self.app))

    def action_scroll(self, lines: int) -> None:
        """Scroll."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        area = self.query_one(VerticalScroll)
        area.scroll_relative(y=pages * max(area.size.height - 1, 1), animate=False)


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
            yield stripped.lstrip("# ") + "\n", "bold $text-primary"
        elif stripped.startswith("|"):
            keys, _, does = stripped.strip("| ").partition(" | ")
            if keys.strip("-| ") and does.strip() != "does":
                keys = keys.replace("`", "").strip()
                if ascii_only:  # a sign and what stands for it are the same then
                    keys = " ".join(dict.fromkeys(_plain(keys).split()))
                # Keys that need more room than there is stand on a line of their own.
                gap = "\n" + " " * _KEYS if len(keys) >= _KEYS else " " * (_KEYS - len(keys))
                yield keys + gap, "bold $text-accent"
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

"""The origin of a value: its links, one a moment, from now backwards."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.message_text import counted
from engine.session.protocol.views import OriginLink
from tui.render import harmless, is_ascii
from tui.screens.dialog import Dialog

_STYLES: Final = {"": "", "longer": "$text-warning"}


class OriginScreen(Dialog[int | None]):
    """Returns the number of the link whose moment to go to, None to stay."""

    DEFAULT_CSS = """
    OriginScreen { align: center middle; }
    OriginScreen > Vertical {
        width: 96%;
        max-width: 120;
        height: auto;
        max-height: 90%;
        border: solid $border;
        background: $surface;
        padding: 0 1;
        &.-ascii { border: ascii $border; }
    }
    OriginScreen OptionList {
        height: auto;
        max-height: 100%;
        border: none;
        padding: 0;
        background: $surface;
        scrollbar-size-vertical: 1;
        &:focus { border: none; }
    }
    OriginScreen #hint { dock: bottom; height: 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Back"),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
        Binding("g", "edge(False)", show=False),
        Binding("G", "edge(True)", show=False),
    ]

    def __init__(
        self, text: str, links: tuple[OriginLink, ...], *, cut: bool, first: int = 0
    ) -> None:
        """Show the links of a value.

        Args:
            text: the value, as it was asked for.
            links: the links, the value itself first.
            cut: the search was ended.
            first: where the cursor stands.
        """
        super().__init__()
        self._text = text
        self._links = links
        self._cut = cut
        self._first = first

    def compose(self) -> ComposeResult:
        """The links, and the keys."""
        with Vertical() as box:
            box.set_class(is_ascii(self.app), "-ascii")
            count = counted(len(self._links), "link")
            title = f"Where {self._text} came from: {count}{', cut off' if self._cut else ''}"
            box.border_title = Content(harmless(title))
            yield OptionList(*(Option(self._row(link)) for link in self._links))
            yield Static("Enter goes to the moment   Esc back", id="hint", markup=False)

    def on_mount(self) -> None:
        """Put the cursor where it is to be."""
        options = self.query_one(OptionList)
        options.highlighted = min(self._first, len(self._links) - 1)
        options.focus()

    def _row(self, link: OriginLink) -> Content:
        plain = is_ascii(self.app)
        where = link.symbol or f"{link.pc:#x}"
        at = f" {link.line.rpartition('/')[2]}" if link.line else ""
        stood = f"tick {link.clock} thread {link.thread} {where}{at}"
        end = f" [{link.end}]" if link.end and link.end != "longer" else ""
        parts = [
            (harmless(f"{link.where} = {link.value}", plain), "bold"),
            (harmless(f"  {link.what}", plain), _STYLES.get(link.end, "$text-success")),
            (end, "bold"),
            (f"\n  {harmless(stood, plain) if link.insn else 'the start'}", "$text-muted"),
            (harmless(f"  {link.insn}", plain), ""),
        ]
        return Content.assemble(*parts)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go there."""
        event.stop()
        self.dismiss(event.option_index)

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        options = self.query_one(OptionList)
        (options.action_cursor_down if by > 0 else options.action_cursor_up)()

    def action_edge(self, last: bool) -> None:
        """Move the cursor to the first or the last link."""
        options = self.query_one(OptionList)
        (options.action_last if last else options.action_first)()

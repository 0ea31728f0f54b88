"""The palette (ctrl+p): everything by its name."""

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from tui.palette import Everything, Found
from tui.render import is_ascii
from tui.screens.dialog import Dialog
from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines


class FoundRows(LineSource):
    """The entries that were found, the letters that were looked for underlined.

    Attributes:
        found: the entries.
    """

    empty: ClassVar[str] = "nothing is called that"

    def __init__(self) -> None:
        """Nothing is found yet."""
        self.found: Sequence[Found] = ()

    @property
    def count(self) -> int:
        """Number of entries."""
        return len(self.found)

    def key(self, index: int) -> Hashable:
        """The text of an entry, and what of it is underlined."""
        found = self.found[index]
        return found.text, tuple(found.stretches)

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """An entry."""
        found = self.found[index]
        text = Text(found.text, no_wrap=True)
        for start, end in found.stretches:
            text.stylize("bold underline", start, end)
        return text


class PaletteScreen(Dialog[Callable[[], object] | None]):
    """Returns what does the entry that was chosen, None for none."""

    DEFAULT_CSS = """
    PaletteScreen { align-horizontal: center; }
    PaletteScreen > Vertical {
        width: 96%;
        max-width: 110;
        height: 80%;
        margin-top: 2;
        border: solid $border;
        background: $surface;
        padding: 0 1;
        &.-ascii { border: ascii $border; }
    }
    PaletteScreen Input { height: 1; border: none; padding: 0; background: $boost; }
    PaletteScreen Input:focus { border: none; }
    PaletteScreen VirtualLines {
        & > .lines--cursor-blurred { background: $primary-muted; text-style: bold; }
        &:ansi > .lines--cursor-blurred { background: ansi_default; text-style: bold reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back"),
        Binding("down,ctrl+n", "choose(1)", show=False),
        Binding("up", "choose(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]

    def __init__(self, everything: Everything) -> None:
        """Show what there is before anything is typed.

        Args:
            everything: finds entries.
        """
        super().__init__()
        self._everything = everything
        self._sought = ""
        self._names_are_read = False
        self._list = VirtualLines(FoundRows(), chords={})
        self._list.can_focus = False

    def compose(self) -> ComposeResult:
        """The line and what fits it."""
        with Vertical() as box:
            box.set_class(is_ascii(self.app), "-ascii")
            box.border_title = "Everything by its name"
            yield Input(placeholder="a word of it, or some of its letters", compact=True)
            yield self._list

    def on_mount(self) -> None:
        """The line has the keys; names of functions are read meanwhile."""
        self.query_one(Input).focus()
        self._seek("")
        self._read_names()

    @work(thread=True, group="names")
    def _read_names(self) -> None:
        """Read the names of functions; in a thread, as the first look reads all symbols."""
        self._everything.read_names()
        self.app.call_from_thread(self._names_read)

    def _names_read(self) -> None:
        """Look again for what is typed by now, the only text that matters."""
        if self.is_attached and not self._names_are_read:
            self._names_are_read = True
            if self._sought:
                self._seek(self._sought)

    def _seek(self, typed: str) -> None:
        """Show what fits."""
        self._sought = typed
        find = self._everything.find
        found = find(typed, functions=self._names_are_read) if typed else None
        self._list.source.found = self._everything.at_first() if found is None else found
        self._list.refresh_size()
        self._list.move_to(0)
        self._list.refresh()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look again, for another text."""
        event.stop()
        if event.value.strip() != self._sought:
            self._seek(event.value.strip())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what is chosen; a name that was typed faster than names are read is looked up."""
        event.stop()
        if not self._names_are_read and self._sought:
            self._names_read()
        self._choose()

    def on_click(self, event: events.Click) -> None:
        """A click on an entry does it; one beside the palette closes it."""
        if event.widget is self._list:
            self._choose()
        elif event.widget is self:
            self.dismiss(None)

    def _choose(self) -> None:
        """Do what the cursor is on."""
        found = self._list.source.found
        if found:
            self.dismiss(found[self._list.cursor].do)

    def action_choose(self, step: int) -> None:
        """Go through what was found, around its ends."""
        count = self._list.source.count
        if count:
            self._list.move_to((self._list.cursor + step) % count)

    def action_page(self, pages: int) -> None:
        """Go through what was found by pages."""
        self._list.action_page(pages)

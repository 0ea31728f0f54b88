"""The histograms that hist triggers keep, as the kernel's `hist` files show them."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.strip import Strip

from engine.session.protocol import commands
from tui.messages import Ask
from tui.render import grouped, harmless
from tui.widgets.list_pane import ListPane
from tui.widgets.virtual_lines import VirtualLines

_EVENT = "# event: "
_TRIGGER = "# trigger info: "


class HistogramLines(VirtualLines):
    """The tables, one below the other."""

    EMPTY = "no histograms yet: :hist EVENT FIELD counts an event's hits by a field"
    HELP = """\
# Histograms

What `hist` triggers have counted, as the kernel prints it and in its order; while the program
runs it is half a second old at the most. Hits that a filter keeps out are counted, too.

| command | does |
|---|---|
| `:hist EVENT FIELD` | count hits by a field's value |
| `:hist EVENT keys=F.hex,G:vals=H:sort=H.descending if F > 3` | all of the kernel's language |
| `:trigger EVENT hist:keys=F:pause` | pause it, or `continue`, or `clear` |

| key | does |
|---|---|
| `x` | delete the histogram at the cursor; `U` makes it again, empty |
| `/` `n` `N` | find text, next, previous |
| `Y` | copy the line, or what `J` `K` select |
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "ask('delete')", "delete", id="histogram.delete"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[str] = []

    @property
    def line_count(self) -> int:
        """Lines of all tables, and one between two."""
        return len(self._lines)

    def line_key(self, index: int) -> Hashable:
        """A line is its text."""
        return self._lines[index]

    def show(self, texts: Sequence[str]) -> None:
        """Show these tables; the cursor stays where it is."""
        self._lines = "\n\n".join(texts).split("\n") if texts else []
        self.refresh_size()
        self.refresh()

    def line(self, index: int, width: int) -> Strip:
        """A line as it is, with the remarks dimmed."""
        text = self._lines[index]
        name = "name" if text.startswith(_EVENT) else "dim"
        style = self.look(name) if text.startswith("#") else None
        return Strip([Segment(harmless(text, self.ascii_only), style)])

    def plain(self, index: int) -> str:
        """The line alone."""
        return self._lines[index]

    def trigger(self) -> tuple[str, str] | None:
        """Event and trigger of the table at the cursor."""
        heads = [n for n, text in enumerate(self._lines) if text.startswith(_EVENT)]
        start = max((n for n in heads if n <= self.cursor), default=None)
        if start is None:
            return None
        event = self._lines[start].removeprefix(_EVENT)
        info = next(text for text in self._lines[start:] if text.startswith(_TRIGGER))
        return event, info.removeprefix(_TRIGGER).rpartition(" [")[0]


class HistogramPane(ListPane[HistogramLines]):
    """The pane of the histograms: `show` takes a view's; a deletion comes out as `Ask`."""

    TITLE = "Hist"
    NUMBER = 0

    def __init__(self, *, number: int | None = None, id: str | None = None) -> None:
        super().__init__(HistogramLines(), number=number, id=id)
        self._texts: Sequence[str] = ()

    def show(self, texts: Sequence[str]) -> None:
        """Show the histograms of a view."""
        if texts is not self._texts:
            self._texts = texts
            self.lines.show(texts)
            self.retitle(grouped(len(texts)) if texts else "")

    def ask(self, what: str) -> None:
        """Delete a histogram, or what every list can be asked."""
        if what != "delete":
            super().ask(what)
        elif (found := self.lines.trigger()) is not None:
            event, trigger = found
            self.post_message(Ask(commands.ChangeTrigger(event, f"!{trigger}")))

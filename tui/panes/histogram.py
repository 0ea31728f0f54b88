"""The histograms that hist triggers keep, and the maps of a script of bpftrace."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.strip import Strip

from engine.session.protocol import commands
from engine.session.protocol.views import GuestView
from tui.messages import Ask
from tui.render import grouped, harmless
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_EVENT = "# event: "
_TRIGGER = "# trigger info: "


class HistogramRows(LineSource):
    """The tables, one below the other."""

    empty = "no histograms yet: :hist EVENT FIELD counts an event's hits by a field"

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def count(self) -> int:
        """Lines of all tables, and one between two."""
        return len(self._lines)

    def key(self, index: int) -> Hashable:
        """A line is its text."""
        return self._lines[index]

    def fill(self, texts: Sequence[str]) -> None:
        """Take these tables."""
        self._lines = "\n\n".join(texts).expandtabs().split("\n") if texts else []

    def line(self, index: int, width: int, looks: Looks) -> Strip:
        """A line as it is, with the remarks dimmed."""
        text = self._lines[index]
        name = "name" if text.startswith(_EVENT) else "dim"
        style = looks(name) if text.startswith("#") else None
        return Strip([Segment(harmless(text, looks.ascii_only), style)])

    def plain(self, index: int, looks: Looks) -> str:
        """The line alone."""
        return self._lines[index]

    def trigger(self, index: int) -> tuple[str, str] | None:
        """Event and trigger of the table that a line belongs to."""
        heads = [n for n, text in enumerate(self._lines) if text.startswith(_EVENT)]
        start = max((n for n in heads if n <= index), default=None)
        if start is None:
            return None
        event = self._lines[start].removeprefix(_EVENT)
        info = next(text for text in self._lines[start:] if text.startswith(_TRIGGER))
        return event, info.removeprefix(_TRIGGER).rpartition(" [")[0]


class HistogramPane(ListPane[HistogramRows]):
    """The pane of the histograms: a deletion comes out as `Ask`."""

    TITLE = "Hist"
    HELP = """\
# Histograms

What `hist` triggers have counted, as the kernel prints it and in its order; while the program
runs it is half a second old at the most. Hits that a filter keeps out are counted, too.

| command | does |
|---|---|
| `:hist EVENT FIELD` | count hits by a field's value |
| `:hist EVENT keys=F.hex,G:vals=H:sort=H.descending if F > 3` | all of the kernel's language |
| `:bpftrace FILE` | the maps of a script, at the moment that is looked at; `!` takes it out |
| `:trigger EVENT hist:keys=F:pause` | pause it, or `continue`, or `clear` |
| `:s:NAME TYPE FIELD; ...` | define a synthetic event, which `onmatch`, `onmax`, `onchange` make |
| `:e:NAME GROUP.EVENT ARG...` | define an event of the fields of another one |

| key | does |
|---|---|
| `x` | delete the histogram at the cursor; `U` makes it again, empty |
| `/` `n` `N` | find text, next, previous |
| `Y` | copy the line, or what `J` `K` select |
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "delete", "delete", id="histogram.delete"),
    ]

    def __init__(self) -> None:
        super().__init__(VirtualLines(HistogramRows()))
        self._texts: Sequence[str] = ()

    def show(self, view: GuestView) -> None:
        """Show the histograms of a view; the cursor stays where it is."""
        texts = view.histograms
        if texts is not self._texts:
            self._texts = texts
            self.source.fill(texts)
            self.lines.refresh_size()
            self.lines.refresh()
            self.retitle(count=grouped(len(texts)) if texts else "")

    def action_delete(self) -> None:
        """Delete the histogram at the cursor."""
        if (found := self.source.trigger(self.lines.cursor)) is not None:
            event, trigger = found
            self.post_message(Ask(commands.ChangeTrigger(event, f"!{trigger}")))

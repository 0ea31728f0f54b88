"""The graph pane: calls and returns of recorded events, as ftrace's function_graph shows them."""

from collections.abc import Callable, Hashable
from typing import ClassVar, Final

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from engine.session.protocol.probes import ProbeView
from engine.session.protocol.rows import Names
from engine.session.protocol.views import GuestView
from tui.calltree import CLOSE, LEAF, LEFT, OPEN, POINT, CallTree, GraphLine, Total
from tui.messages import Located, Moment
from tui.render import grouped, harmless, mark
from tui.store import EventStore
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_SLICE: Final = 0.006
"""Seconds of work between two looks at the keyboard."""
_TICKS: Final = 10
"""Cells of the column of durations."""
_INDENT_MAX: Final = 60
_LOOKS: Final = {OPEN: "name", LEAF: "name", CLOSE: "dim", LEFT: "warn", POINT: "note"}
_ALIKE: Final = 500
"""Functions that the totals show."""


class Order(Struct, frozen=True):
    """An order of the totals, and what their first column is in it.

    Attributes:
        name: of what is sorted by.
        first: title of the first column.
        weight: what is sorted by, most first.
        shown: the number in the first column.
    """

    name: str
    first: str
    weight: Callable[[Total], float]
    shown: Callable[[Total], int]


ORDERS: Final = (
    Order("time", "with callees", lambda one: one.ticks, lambda one: one.ticks),
    Order("alone", "with callees", lambda one: one.own, lambda one: one.ticks),
    Order("calls", "with callees", lambda one: one.calls, lambda one: one.ticks),
    Order(
        "average",
        "average",
        lambda one: one.every / max(one.calls, 1),
        lambda one: one.every // max(one.calls, 1),
    ),
    Order("longest", "longest", lambda one: one.longest, lambda one: one.longest),
)
"""In the order of the key that goes from one to the next."""


class GraphRows(LineSource):
    """Lines of calls, or totals of functions.

    Attributes:
        calls: the lines.
        totals: programs and functions with what their calls come to, in `order`; None: the
            lines.
        order: of the totals.
    """

    follows = True
    empty = "no calls yet: t traces functions, or place probes on entry and return"

    def __init__(self, calls: CallTree, names: Names) -> None:
        self.calls = calls
        self.totals: list[tuple[int, int]] | None = None
        self.order = ORDERS[0]
        self._names = names
        self._known: dict[tuple[int, int], str] = {}

    @property
    def count(self) -> int:
        """Lines of the tree, or functions."""
        return len(self.calls) if self.totals is None else len(self.totals)

    def key(self, index: int) -> Hashable:
        """The line itself, or the total."""
        if self.totals is not None:
            total = self.calls.totals[self.totals[index]]
            return self.totals[index], total.calls, total.ticks, self.order.name
        return self.calls[index]

    def line(self, index: int, width: int, looks: Looks) -> Strip:
        """Duration, indentation, what is called."""
        if self.totals is not None:
            return Strip([Segment(self._total(self.totals[index], looks))])
        line = self.calls[index]
        ticks = grouped(line.ticks) if line.kind != OPEN and line.ticks >= 0 else ""
        style = looks(_LOOKS[line.kind])
        text = "  " * min(line.depth, _INDENT_MAX) + self._text(line, looks)
        pieces: list[tuple[str, Style | None]] = [
            (ticks.rjust(_TICKS) + " ", looks("dim")),
            (text, style),
        ]
        if line.count > 1:
            times = mark("times", looks.ascii_only)
            pieces.append((f" {times}{grouped(line.count)}", looks("warn")))
            if line.kind == OPEN:
                pieces.append((f" {grouped(line.ticks)}", looks("dim")))
        return Strip([Segment(piece, look) for piece, look in pieces])

    def plain(self, index: int, looks: Looks) -> str:
        """As the screen shows it."""
        return "".join(segment.text for segment in self.line(index, 0, looks)).rstrip()

    def _text(self, line: GraphLine, looks: Looks) -> str:
        name = self._name_of((line.program, line.function), looks)
        end = "}" if line.ticks >= 0 else f"}} /* {name} */"
        given = result = ""
        if line.count == 1:  # else each call had others
            given = ", ".join(f"{key}={text}" for key, text in self._typed(line.number, looks))
            result = "".join(f" = {text}" for _, text in self._typed(line.ended, looks))
        texts = {
            OPEN: f"{name}({given}) {{",
            LEAF: f"{name}({given}){result};",
            CLOSE: f"{end}{result}",
            LEFT: f"}} /* {name} left */",
            POINT: f"/* {name} */",
        }
        return texts[line.kind]

    def _typed(self, number: int, looks: Looks) -> list[tuple[str, str]]:
        """Names and texts of the values of a call's or return's event."""
        store = self.calls.store
        if number < store.first or number >= store.end:
            return []
        return [
            (harmless(key, looks.ascii_only), harmless(text, looks.ascii_only))
            for key, text in store.typed(number)
        ]

    def _total(self, function: tuple[int, int], looks: Looks) -> str:
        total = self.calls.totals[function]
        first = grouped(self.order.shown(total))
        numbers = f"{first:>{_TICKS}} {grouped(total.own):>{_TICKS}}"
        return f"{numbers} {grouped(total.calls):>9}  {self._name_of(function, looks)}"

    def _name_of(self, function: tuple[int, int], looks: Looks) -> str:
        """The name of a function, given its program and address."""
        name = self._known.get(function)
        if name is None:
            self.calls.store.programs.shown = function[0]
            text, plus, rest = self._names.symbol(function[1]).rpartition("+0x")
            text = text if plus else rest
            name = self._known[function] = harmless(text, looks.ascii_only)
        return name

    def forget(self) -> None:
        """A new run: other programs have the same numbers."""
        self._known.clear()

    def place(self, index: int) -> tuple[int, int]:
        """(program, address) of a line."""
        if self.totals is not None:
            return self.totals[index]
        line = self.calls[index]
        return line.program, line.function

    def event(self, index: int) -> int | None:
        """The number of the event of a line, None for a total."""
        return None if self.totals is not None else self.calls[index].number


class GraphPane(ListPane[GraphRows]):
    """The pane of the graph; the owner calls `drained` when the store has got rows."""

    TITLE = "Graph"
    HELP = """\
# Graph

Calls and returns as ftrace's `function_graph` shows them; the first column counts the guest's
own blocks of code from a call to its return.

| key | does |
|---|---|
| `t` | trace functions, or no longer (in any pane) |
| `<` `>` | trace less deep, deeper |
| `space` | fold calls that repeat, or show each |
| `a` | totals of each function, or the calls again |
| `o` | totals by time with callees, alone, by calls, average or longest call |
| `Enter` | go to the event and its place |
| `@` | go to its moment, if the run is recorded |
| `/` `n` `N` | find text, next, previous |
| `G` | go to the end and follow it; any motion up stops following |

`area(c=BLUE, k=1.5) = 29`: arguments and result as the source names them, where it is known.
`f(); x1000`: so many calls one after the other, their blocks summed up. `} left`: the call ended
without a return, as by longjmp or an exception.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "fold", "fold", id="graph.fold"),
        Binding("a", "totals", "totals", id="graph.totals"),
        Binding("o", "order", "order", show=False, id="graph.order"),
        Binding("less_than_sign", "deepen(-1)", "less deep", key_display="<", id="graph.less"),
        Binding("greater_than_sign", "deepen(1)", "deeper", key_display=">", id="graph.more"),
    ]

    class Deeper(Message):
        """Trace so much deeper."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class EventChosen(Message):
        """Show an event in the log, by its number from 0."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, store: EventStore, names: Names) -> None:
        self.calls = CallTree(store)
        super().__init__(VirtualLines(GraphRows(self.calls, names)))
        self._timer: Timer | None = None
        self._generation = 0
        self._probes: tuple[ProbeView, ...] = ()
        self._returns: dict[int, frozenset[int]] = {}
        self.depth = 0

    def on_mount(self) -> None:
        """Work is done in slices, and only while somebody looks."""
        super().on_mount()
        self._timer = self.set_interval(0.012, self._work, pause=True)
        self.drained()

    def on_show(self) -> None:
        """Catch up with the calls that came while the pane was hidden."""
        self.drained()

    def drained(self) -> None:
        """Rows have come."""
        if self._timer is not None and self.display and self.calls.pending:
            self._timer.resume()

    def restarted(self) -> None:
        """A new run: forget everything."""
        self.source.forget()
        self._returns.clear()
        self._anew()
        self.lines.action_bottom()

    def rearranged(self) -> None:
        """The rows of the store are others."""
        self.source.forget()
        self._anew()

    def show(self, view: GuestView) -> None:
        """Learn of which functions returns are events."""
        probes = view.probes
        if probes is self._probes:
            return
        self._probes = probes
        self._returns = {  # other programs have them elsewhere
            probe.row.id: self._returns.get(probe.row.id, frozenset()) | set(probe.addresses)
            for probe in probes
            if probe.kind == "r"
        }
        found = frozenset().union(*self._returns.values())
        if found != self.calls.returning:
            self.calls.returning = found
            self._anew()

    def _anew(self) -> None:
        self.calls.restart()
        self.lines.restart()
        self.drained()
        self._show()

    def _work(self) -> None:
        if not self.calls.step(_SLICE) and self._timer is not None:
            self._timer.pause()
        self._show()

    def refresh_title(self) -> None:
        """Show the depth in the title."""
        self._show()

    def _show(self) -> None:
        lines = self.lines
        if self.source.totals is not None:
            self._sort()
        if self.calls.generation != self._generation:
            self._generation = self.calls.generation
            lines.changed()
        lines.refresh_size()
        count = sum(total.calls for total in self.calls.totals.values())
        self.retitle(
            self._columns() if self.source.totals is not None else "",
            "" if self.calls.fold else "not folded",
            f"{self.depth} deep" if self.depth else "",
            f"{grouped(self.calls.pending)} to come" if self.calls.pending else "",
            "follow" if lines.follow and self.source.totals is None else "",
            count=grouped(count) if count else "",
        )

    def _sort(self) -> None:
        totals = self.calls.totals
        weight = self.source.order.weight
        order = sorted(totals, key=lambda function: (-weight(totals[function]), function))
        self.source.totals = order[:_ALIKE]

    def _columns(self) -> str:
        """The columns of the totals, and their order."""
        order = self.source.order
        sums = "totals" if order is ORDERS[0] else f"by {order.name}"
        return f"{sums}: {order.first}, alone, calls"

    def action_fold(self) -> None:
        """Fold calls that repeat, or show each."""
        self.calls.fold = not self.calls.fold
        self._anew()

    def action_totals(self) -> None:
        """Totals of each function, or the calls again."""
        if self.source.totals is None:
            self._sort()
        else:
            self.source.totals = None
        self.lines.restart()
        self._show()

    def action_order(self) -> None:
        """Totals in the next order; the calls become totals in the order that was last."""
        source = self.source
        if source.totals is None:
            self.action_totals()
            return
        source.order = ORDERS[(ORDERS.index(source.order) + 1) % len(ORDERS)]
        self._sort()
        self.lines.restart()
        self._show()

    def action_deepen(self, by: int) -> None:
        """Trace deeper, or less deep."""
        self.post_message(self.Deeper(by))

    def on_virtual_lines_moved(self, event: VirtualLines.Moved) -> None:
        """The place is shown in the other panes, unless the cursor only follows."""
        event.stop()
        if not self.lines.follow:
            self._locate(event.index, focus=False)

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Go to the event, and to its place."""
        event.stop()
        if 0 <= event.index < self.lines.line_count:
            number = self.source.event(event.index)
            if number is not None:
                self.post_message(self.EventChosen(number))
            self._locate(event.index, focus=True)

    def on_virtual_lines_follow_changed(self, event: VirtualLines.FollowChanged) -> None:
        """The title says so."""
        event.stop()
        self._show()

    @property
    def moment(self) -> Moment | None:
        """The moment of the call or return at the cursor."""
        at = self.lines.cursor
        number = self.source.event(at) if at < self.lines.line_count else None
        return None if number is None else self.calls.store.moment(number)

    def _locate(self, index: int, focus: bool) -> None:
        if 0 <= index < self.lines.line_count:
            program, address = self.source.place(index)
            self.post_message(Located(address, focus=focus, program=program))

"""The event log: what was recorded, as it comes or as it is looked for."""

from collections.abc import Hashable, Iterator
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.timer import Timer

from tui.call_pairs import entry_nearby, partner
from tui.filters import EventFilter, FilterError, compile_filter
from tui.lineindex import Fold
from tui.messages import Copied, Located, Say
from tui.render import grouped, harmless, mark, sparkline
from tui.store import EventStore
from tui.widgets.list_pane import ListPane
from tui.widgets.painted_lines import COPY_MAX
from tui.widgets.slices import Slices
from tui.widgets.virtual_lines import VirtualLines

_SLICE = 0.006
"""Seconds of filtering between two looks at the keyboard."""
_WIDE = 56
"""Cells from which on the task is shown."""
_MEDIUM = 36
"""Cells from which on the time is shown."""
_ARGUMENTS = 2000
"""Bytes of arguments that are drawn: a string may be a whole page. A copy has all."""
_FOLDS = (Fold.NONE, Fold.EVENT, Fold.VALUES)


class EventLog(VirtualLines):
    """The list of events.

    Attributes:
        store: where they are.
        wanted: number of the event the cursor goes to as soon as its line is known.
    """

    FOLLOWS = True

    EMPTY = "no events yet: p places a probe, c runs the program"
    HELP = """\
# Event log

Each line is a hit of a probe: time, thread, `NAME(ARGUMENTS)` and the place.

| key | does |
|---|---|
| `/` `n` `N` | find text, next, previous (no capitals: any case) |
| `&` | show only some events: `n<4`, `mall*`, `fd==1 && path~"*.so"`; empty shows all |
| `space` | fold repeats of an event; again: only equal ones; again: off |
| `#` | go to an event by its number |
| `%` | between the entry and the return of one call |
| `G` | go to the end and follow it; any motion up stops following |
| `Enter` | show its place in the other panes |
| `Y` | copy the line, or what `J` `K` select, as ftrace prints it |

A return names the event of its entry (`of #N`) where that is not far. Time counts the guest's own
blocks of code; it is not nanoseconds.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ampersand", "ask('filter')", "filter", key_display="&", id="events.filter"),
        Binding("space", "ask('fold')", "fold", id="events.fold"),
        Binding(
            "number_sign", "ask('goto')", "Go to", key_display="#", show=False, id="events.goto"
        ),
        Binding(
            "percent_sign", "ask('match')", "Match", key_display="%", show=False, id="events.match"
        ),
        Binding("ctrl+o", "copy_all", "Copy all", show=False, id="events.copy-all"),
    ]

    def __init__(self, store: EventStore, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.store = store
        self.wanted: int | None = None
        self._time_width = 8
        self._task_width = 8

    @property
    def line_count(self) -> int:
        """Lines of the store."""
        return self.store.line_count

    @property
    def origin(self) -> int:
        """Lines of the store that are gone."""
        return self.store.origin

    def line_key(self, index: int) -> Hashable:
        """A row never changes; a line of folded ones grows."""
        return self.store.number(index), self.store.folded(index)

    def line(self, index: int, width: int) -> Strip:
        """Time, task, mark, name with arguments, place."""
        ascii_only = self.ascii_only
        parts = self.store.parts(self.store.number(index))
        dim = self.look("dim")
        pieces: list[tuple[str, Style | None]] = []
        if width >= _MEDIUM:
            time = str(parts.time)
            self._time_width = max(self._time_width, len(time))
            pieces.append((time.rjust(self._time_width) + " ", dim))
        if width >= _WIDE:
            task = harmless(parts.task, ascii_only)
            self._task_width = min(max(self._task_width, len(task)), 24)
            pieces.append((task.ljust(self._task_width) + " ", None))
        sign = mark("leave" if parts.returns else "enter", ascii_only)
        pieces.append((sign + " ", self.look("accent" if parts.returns else "good")))
        pieces.append((harmless(parts.name, ascii_only), self.look("name")))
        folded = self.store.folded(index)
        if folded > 1 and self.store.fold is Fold.EVENT:
            pieces.append(("()", None))
        else:
            arguments = harmless(parts.arguments[:_ARGUMENTS], ascii_only)
            if len(parts.arguments) > _ARGUMENTS:
                arguments += mark("more", ascii_only)
            pieces.append((f"({arguments})", None))
        if folded > 1:
            times = mark("times", ascii_only)
            pieces.append((f" {times}{grouped(folded)} folded", self.look("warn")))
        pieces.append(("  " + harmless(parts.place, ascii_only), dim))
        if parts.returns and width >= _WIDE and folded == 1:
            entry = entry_nearby(self.store, self.store.number(index))
            pieces.append((f"  of #{entry + 1}" if entry is not None else "", dim))
        return Strip([Segment(text, style) for text, style in pieces])

    def plain(self, index: int) -> str:
        """As ftrace prints it."""
        text = self.store.text(self.store.number(index))
        folded = self.store.folded(index)
        return f"{text} (x{folded} folded)" if folded > 1 else text

    def find(self, pattern: str, start: int, stop: int, backwards: bool) -> Iterator[int | None]:
        """Let the store search its bytes."""
        return self.store.find(pattern, start, stop, backwards)

    def action_copy_all(self) -> None:
        """Copy all lines shown, as ftrace prints them."""
        self.post_message(Copied(self.copy_text(range(self.line_count))))
        if self.line_count > COPY_MAX:
            self.post_message(
                Say(f"only the first {grouped(COPY_MAX)} lines were copied", severity="warning")
            )

    def rebuilt(self, number: int | None) -> None:
        """The lines are others now; stay at an event, or at the end where it follows.

        Args:
            number: of the event to stay at, None for none.
        """
        follow = self.follow
        self.restart()
        if not follow:
            self._set_follow(False)
        self.wanted = None if follow else number
        self.settle()

    def settle(self) -> None:
        """Bring the cursor to the wanted event if its line is known by now."""
        if self.wanted is None:
            return
        line = self.store.line_of(self.wanted)
        if line < self.line_count or not self.store.pending:
            self.wanted = None
            self.move_to(line, middle=True)


class EventLogPane(ListPane[EventLog]):
    """The pane of the event log.

    The owner gives rows to `store.append` and calls `drained` after each batch, at the most 30
    times a second.
    """

    TITLE = "Events"
    NUMBER = 6

    def __init__(
        self,
        store: EventStore | None = None,
        *,
        number: int | None = None,
        id: str | None = None,
    ) -> None:
        self.store = EventStore() if store is None else store
        super().__init__(EventLog(self.store), number=number, id=id)
        self._timer: Timer | None = None
        self._titling: Timer | None = None
        self._matching = Slices(self, self._matched)

    def on_mount(self) -> None:
        """Work that was put off is done in slices."""
        super().on_mount()
        self._timer = self.set_interval(0.012, self._work, pause=True)
        self.drained()
        self._title()

    def drained(self) -> None:
        """Rows have come: show them."""
        if self.store.step(_SLICE) and self._timer is not None:
            self._timer.resume()
        self._show()

    def restarted(self) -> None:
        """A new run: forget all events."""
        self._matching.stop()
        self.store.clear()
        self.lines.rebuilt(None)
        self.lines.action_bottom()
        self._show()

    def set_filter(self, text: str) -> None:
        """Show only events that match, all for "".

        Raises:
            FilterError: the text means nothing.
        """
        filter_: EventFilter | None = None
        if text.strip():
            filter_ = compile_filter(text, self.store.events)
        here = self._here()
        self.store.filter = filter_
        self.lines.rebuilt(here)
        self.drained()

    def set_fold(self, fold: Fold) -> None:
        """Fold repeats, or no longer."""
        here = self._here()
        self.store.fold = fold
        self.lines.rebuilt(here)
        self.drained()

    def _here(self) -> int | None:
        return self.store.number(self.lines.cursor) if self.store.line_count else None

    def goto(self, number: int) -> None:
        """Put the cursor on an event.

        Args:
            number: counted from 1 since the run began; the nearest one if it is not shown.
        """
        self.lines.wanted = max(number - 1, self.store.first)
        self.lines._set_follow(False)
        self.lines.settle()

    def match(self) -> None:
        """Go to the return of the entry at the cursor, or to the entry of the return."""
        here = self._here()
        if here is not None:
            self._matching.start(self._partner(here))

    def _partner(self, number: int) -> Iterator[int | None]:
        try:
            yield from partner(self.store, number)
        except IndexError:
            return  # overwritten meanwhile

    def _matched(self, number: int | None) -> None:
        if number is None:
            self._unmatched("no other row of this call is kept")
            return
        store = self.store
        line = store.line_of(number)
        if not 0 <= line < store.line_count or store.number(line) != number:
            self._unmatched(f"event {number + 1} belongs to it; the lines shown leave it out")
            return
        self.goto(number + 1)
        self.note("% goes back to the other row of this call")

    def _unmatched(self, text: str) -> None:
        self.note("")
        self.post_message(Say(text, severity="warning"))

    def _work(self) -> None:
        if not self.store.step(_SLICE) and self._timer is not None:
            self._timer.pause()
        self._show()

    def _show(self) -> None:
        self.lines.refresh_size()
        self.lines.settle()
        if self._titling is None:
            # The title counts, so each batch changes it: ten times a second will do.
            self._titling = self.set_timer(0.1, self._title)

    def _title(self) -> None:
        self._titling = None
        store = self.store
        shown, kept = store.line_count, len(store)
        text = grouped(kept)
        if store.filter is not None or store.fold is not Fold.NONE:
            text = f"{grouped(shown)} of {grouped(kept)}"
            if store.pending:
                text += f" ({(kept - store.pending) * 100 // max(kept, 1)}%)"
        gone = store.first
        rates = store.rates(12)
        self.retitle(
            store.filter.text if store.filter is not None else "",
            "" if store.fold is Fold.NONE else f"folding {store.fold.value}",
            text,
            f"{grouped(gone)} older dropped" if gone else "",
            f"{grouped(store.skipped)} not looked at" if store.skipped else "",
            "follow" if self.lines.follow else "",
            sparkline(rates, self.lines.ascii_only) if any(rates) else "",
        )

    def ask(self, what: str) -> None:
        """Also for a filter and a number."""
        if what == "filter":
            text = "" if self.store.filter is None else self.store.filter.text
            self.prompt.ask(what, "& filter, e.g. n<4 or mall*", text)
        elif what == "goto":
            self.prompt.ask(what, "# number of an event")
        elif what == "match":
            self.match()
        elif what == "fold":
            self.set_fold(_FOLDS[(_FOLDS.index(self.store.fold) + 1) % len(_FOLDS)])
        else:
            super().ask(what)

    def answer(self, what: str, text: str) -> None:
        """Also a filter and a number."""
        if what == "filter":
            try:
                self.set_filter(text)
            except FilterError as error:
                self.prompt.wrong(str(error), error.column)
            else:
                self.prompt.close()
        elif what == "goto":
            digits = text.replace(" ", "").lstrip("#")
            if digits.isdecimal():
                self.goto(int(digits))
                self.prompt.close()
            elif digits:
                self.prompt.wrong("expected a number", 0)
            else:
                self.prompt.close()
        else:
            super().answer(what, text)

    def on_virtual_lines_moved(self, event: VirtualLines.Moved) -> None:
        """The cursor's place is shown in the other panes, unless it only follows."""
        event.stop()
        if not self.lines.follow:
            self._locate(event.index, focus=False)

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Go to the place."""
        event.stop()
        self._locate(event.index, focus=True)

    def on_virtual_lines_follow_changed(self, event: VirtualLines.FollowChanged) -> None:
        """The title says so."""
        event.stop()
        self._title()

    def _locate(self, line: int, focus: bool) -> None:
        if 0 <= line < self.store.line_count:
            address = self.store.parts(self.store.number(line)).address
            self.post_message(Located(address, focus=focus))

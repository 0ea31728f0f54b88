"""The event log: what was recorded, as it comes or as it is looked for."""

from collections.abc import Callable, Hashable, Iterator
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.timer import Timer

from tui.call_pairs import entry_nearby, partner
from tui.filters import EventFilter, FilterError, compile_filter
from tui.lineindex import Fold
from tui.messages import Copied, Located, Moment, Say
from tui.render import grouped, harmless, mark, sparkline, thread_look
from tui.store import EventStore
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.slices import Slices
from tui.widgets.virtual_lines import COPY_MAX, VirtualLines

_SLICE = 0.006
"""Seconds of filtering between two looks at the keyboard."""
_WIDE = 56
"""Cells from which on the task is shown."""
_MEDIUM = 36
"""Cells from which on the time is shown."""
_ARGUMENTS = 2000
"""Bytes of arguments that are drawn: a string may be a whole page. A copy has all."""
_FOLDS = (Fold.NONE, Fold.EVENT, Fold.VALUES)


class EventRows(LineSource):
    """The events of a store, a line each or folded."""

    follows = True
    empty = "no events yet: p places a probe, c continues, r starts afresh"

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._time_width = 8
        self._task_width = 8

    @property
    def count(self) -> int:
        """Lines of the store."""
        return self._store.line_count

    @property
    def origin(self) -> int:
        """Lines of the store that are gone."""
        return self._store.origin

    def key(self, index: int) -> Hashable:
        """A row never changes; a line of folded ones grows."""
        return self._store.number(index), self._store.folded(index)

    def line(self, index: int, width: int, looks: Looks) -> Strip:
        """Time, task, mark, name with arguments, place."""
        ascii_only = looks.ascii_only
        parts = self._store.parts(self._store.number(index))
        dim = looks("dim")
        pieces: list[tuple[str, Style | None]] = []
        if width >= _MEDIUM:
            time = str(parts.time)
            self._time_width = max(self._time_width, len(time))
            pieces.append((time.rjust(self._time_width) + " ", dim))
        if width >= _WIDE:
            task = harmless(parts.task, ascii_only)
            self._task_width = min(max(self._task_width, len(task)), 24)
            look = thread_look(parts.thread)
            pieces.append((task.ljust(self._task_width) + " ", looks(look) if look else None))
        sign = mark("leave" if parts.returns else "enter", ascii_only)
        pieces.append((sign + " ", looks("accent" if parts.returns else "good")))
        pieces.append((harmless(parts.name, ascii_only), looks("name")))
        folded = self._store.folded(index)
        if folded > 1 and self._store.fold is Fold.EVENT:
            pieces.append(("()", None))
        else:
            arguments = harmless(parts.arguments[:_ARGUMENTS], ascii_only)
            if len(parts.arguments) > _ARGUMENTS:
                arguments += mark("more", ascii_only)
            pieces.append((f"({arguments})", None))
        if folded > 1:
            times = mark("times", ascii_only)
            pieces.append((f" {times}{grouped(folded)} folded", looks("warn")))
        pieces.append(("  " + harmless(parts.place, ascii_only), dim))
        if parts.returns and width >= _WIDE and folded == 1:
            entry = entry_nearby(self._store, self._store.number(index))
            pieces.append((f"  of #{entry + 1}" if entry is not None else "", dim))
        return Strip([Segment(text, style) for text, style in pieces])

    def plain(self, index: int, looks: Looks) -> str:
        """As ftrace prints it."""
        text = self._store.text(self._store.number(index))
        folded = self._store.folded(index)
        return f"{text} (x{folded} folded)" if folded > 1 else text

    def find(
        self, pattern: str, start: int, stop: int, backwards: bool, looks: Looks
    ) -> Iterator[int | None]:
        """Let the store search its bytes."""
        return self._store.find(pattern, start, stop, backwards)


class EventLogPane(ListPane[EventRows]):
    """The pane of the event log.

    The owner gives rows to `store.append` and calls `drained` after each batch, at the most 30
    times a second.

    Attributes:
        store: where the events are.
    """

    TITLE = "Events"
    HELP = """\
# Event log

Each line is a hit of a probe: time, thread, `NAME(ARGUMENTS)` and the place.

| key | does |
|---|---|
| `/` `n` `N` | find text, next, previous (no capitals: any case) |
| `&` | show only some events: `n<4`, `mall*`, `fd==1 && path~"*.so"`, `comm==sh`; empty: all |
| `space` | fold repeats of an event; again: only equal ones; again: off |
| `#` | go to an event by its number |
| `%` | between the entry and the return of one call |
| `G` | go to the end and follow it; any motion up stops following |
| `Enter` | show its place in the other panes |
| `@` | go to its moment, if the run is recorded; `{` `}`: of the event before, after |
| `Y` | copy the line, or what `J` `K` select, as ftrace prints it |

A return names the event of its entry (`of #N`) where that is not far. Time counts the guest's own
blocks of code; it is not nanoseconds.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ampersand", "filter", "filter", key_display="&", id="events.filter"),
        Binding("space", "fold", "fold", id="events.fold"),
        Binding(
            "number_sign", "ask_number", "Go to", key_display="#", show=False, id="events.goto"
        ),
        Binding("percent_sign", "match", "Match", key_display="%", show=False, id="events.match"),
        Binding("ctrl+o", "copy_all", "Copy all", show=False, id="events.copy-all"),
    ]

    def __init__(self, store: EventStore | None = None) -> None:
        self.store = EventStore() if store is None else store
        super().__init__(VirtualLines(EventRows(self.store)))
        self._wanted: int | None = None  # event that the cursor goes to once its line is known
        self._timer: Timer | None = None
        self._titling: Timer | None = None
        self._filling: int | None = None
        self._stays: int | None = None  # the time at which the cursor was before a refill
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
        self._rebuilt(None)
        self.lines.action_bottom()
        self._show()

    def refilling(self, share: int | None) -> None:
        """The log is made anew.

        Args:
            share: percentage of the run that is done; None: that is over.
        """
        self._filling = share
        self._title()

    def rearranged(self, change: Callable[[], object]) -> None:
        """Have the rows become others; the cursor stays at its time."""
        here = self._here()
        time = None if here is None else self.store.event(here).time
        if self._stays is None and not self.lines.follow:
            self._stays = time
        self._matching.stop()
        change()
        self._rebuilt(None)
        self._show()

    def rests(self) -> None:
        """All rows are there: the cursor goes to the time where it was."""
        time, self._stays = self._stays, None
        if time is not None and len(self.store):
            self.goto(min(self.store.at(time), self.store.end - 1) + 1)

    def set_filter(self, text: str) -> None:
        """Show only events that match, all for "".

        Raises:
            FilterError: the text means nothing.
        """
        filter_: EventFilter | None = None
        if text.strip():
            filter_ = compile_filter(text, self.store.events, self.store.names)
        here = self._here()
        self.store.filter = filter_
        self._rebuilt(here)
        self.drained()

    def set_fold(self, fold: Fold) -> None:
        """Fold repeats, or no longer."""
        here = self._here()
        self.store.fold = fold
        self._rebuilt(here)
        self.drained()

    def _here(self) -> int | None:
        return self.store.number(self.lines.cursor) if self.store.line_count else None

    def goto(self, number: int) -> None:
        """Put the cursor on an event.

        Args:
            number: counted from 1 since the run began; the nearest one if it is not shown.
        """
        self._wanted = max(number - 1, self.store.first)
        self.lines.set_follow(False)
        self._settle()

    def _rebuilt(self, number: int | None) -> None:
        """The lines are others now; stay at an event, or at the end where it follows.

        Args:
            number: of the event to stay at, None for none.
        """
        follow = self.lines.follow
        self.lines.restart()
        if not follow:
            self.lines.set_follow(False)
        self._wanted = None if follow else number
        self._settle()

    def _settle(self) -> None:
        """Bring the cursor to the wanted event if its line is known by now."""
        if self._wanted is None:
            return
        line = self.store.line_of(self._wanted)
        if line < self.store.line_count or not self.store.pending:
            self._wanted = None
            self.lines.move_to(line, middle=True)

    def action_match(self) -> None:
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
        self._settle()
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
        filling = self._filling
        self.retitle(
            store.filter.text if store.filter is not None else "",
            "" if store.fold is Fold.NONE else f"folding {store.fold.value}",
            f"{grouped(gone)} older dropped" if gone else "",
            f"{grouped(store.skipped)} not looked at" if store.skipped else "",
            "follow" if self.lines.follow else "",
            sparkline(rates, self.lines.looks.ascii_only) if any(rates) else "",
            "" if filling is None else f"filling {filling}%",
            count=text if kept or gone else "",
        )

    @property
    def moment(self) -> Moment | None:
        """The moment of the event at the cursor."""
        here = self._here()
        return None if here is None else self.store.moment(here)

    # -- keys -------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Ask for a filter."""
        text = "" if self.store.filter is None else self.store.filter.text
        self.prompt.ask("filter", "& filter, e.g. n<4 or mall*", self._filter, text)

    def _filter(self, text: str) -> None:
        try:
            self.set_filter(text)
        except FilterError as error:
            self.prompt.wrong(str(error), error.column)
        else:
            self.prompt.close()

    def action_ask_number(self) -> None:
        """Ask for the number of an event to go to."""
        self.prompt.ask("goto", "# number of an event", self._goto)

    def _goto(self, text: str) -> None:
        digits = text.replace(" ", "").lstrip("#")
        if digits.isdecimal():
            self.goto(int(digits))
            self.prompt.close()
        elif digits:
            self.prompt.wrong("expected a number", 0)
        else:
            self.prompt.close()

    def action_fold(self) -> None:
        """Fold repeats, then only equal rows, then none."""
        self.set_fold(_FOLDS[(_FOLDS.index(self.store.fold) + 1) % len(_FOLDS)])

    def action_copy_all(self) -> None:
        """Copy all lines shown, as ftrace prints them."""
        count = self.store.line_count
        self.post_message(Copied(self.lines.copy_text(range(count))))
        if count > COPY_MAX:
            self.post_message(
                Say(f"only the first {grouped(COPY_MAX)} lines were copied", severity="warning")
            )

    # -- what the list says -------------------------------------------------------------------

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
            number = self.store.number(line)
            address, program = self.store.parts(number).address, self.store.program(number)
            self.post_message(Located(address, focus=focus, program=program))

"""The recorded run as a row: events, threads, output, checkpoints, bookmarks, and the moment."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from textual import events
from textual.content import Content
from textual.message import Message

from engine.session.protocol.views import GuestView, HistoryView
from tui.render import grouped, is_ascii, mark, sparkline, thread_look
from tui.widgets.state_lines import TextRow

_COLOURS: Final = {
    "accent": "$text-accent",
    "good": "$text-success",
    "warn": "$text-warning",
    "bad": "$text-error",
    "note": "$text-secondary",
}
"""Looks of threads."""

_NAME: Final = 12
"""Characters of a branch's name that are shown."""

Density = Callable[[int, int], Sequence[int]]
"""Numbers of events in so many equal stretches of the time up to a tick: (tick, stretches)."""


class Timeline(TextRow):
    """A bar from the begin of the run to its present; what is clicked is gone to.

    A column stands for how many events there are in a stretch, in the colour of the thread that
    runs there; where there are none, a checkpoint is marked. What is underlined has written
    output, a bookmark is the first letter of its name, and the moment is the stretch in reverse.
    """

    DEFAULT_CSS = """
    Timeline { height: 1; width: 1fr; text-wrap: nowrap; background: $boost; }
    """

    class Picked(Message):
        """A tick was clicked."""

        def __init__(self, clock: int) -> None:
            super().__init__()
            self.clock = clock

    def __init__(self, density: Density, *, id: str | None = None) -> None:
        """Nothing is shown yet.

        Args:
            density: tells of events.
            id: of the widget.
        """
        super().__init__(id=id)
        self._density = density
        self._history: HistoryView | None = None
        self._bar = 0, 0

    def show(self, view: GuestView) -> None:
        """Show a new view."""
        self._history = view.history
        self._renew()

    def renew(self) -> None:
        """Other events are in the log."""
        self._renew()

    def on_resize(self) -> None:
        """Draw the row again for another width."""
        self._renew()

    def _renew(self) -> None:
        history = self._history
        if history is None or not self.display or not self.is_attached:
            return
        self.draw(self._content(history, self.size.width, is_ascii(self.app)))

    def _content(self, history: HistoryView, width: int, ascii_only: bool) -> Content:
        now, end = history.now, max(history.end, 1)
        at = f"{grouped(now)} of {grouped(end)}" if history.past else grouped(end)
        share = min(round(100 * now / end), 99) if now < end else 100
        branch = f" {history.branch[:_NAME]}:" if history.branch else ""
        front = f"{branch} {'past' if history.past else 'now'} {share:>3}% "
        cells = width - len(front) - len(at) - 2
        if cells < 8:
            self._bar = len(front), 0
            return Content.assemble(front, at)
        self._bar = len(front), cells
        counts = self._density(end, cells)
        sparks = sparkline(counts, ascii_only)
        marks = {min(one.time * cells // end, cells - 1): one.name for one in history.marks}
        here = min(now * cells // end, cells - 1)
        parts: list[str | tuple[str, str]] = [
            (front, "bold $text-warning" if history.past else "")
        ]
        told = [spark if count else "" for spark, count in zip(sparks, counts, strict=True)]
        drawn = self._drawn(history, cells, here, marks, told, ascii_only)
        for look, stretch in groupby(drawn, key=itemgetter(1)):
            parts.append(("".join(sign for sign, _ in stretch), look))
        parts.append(f" {at} ")
        return Content.assemble(*parts)

    @staticmethod
    def _drawn(
        history: HistoryView,
        cells: int,
        here: int,
        marks: dict[int, str],
        sparks: Sequence[str],
        ascii_only: bool,
    ) -> Iterator[tuple[str, str]]:
        """The sign and the look of each cell."""
        threads = history.threads
        looks = {tid: _COLOURS.get(thread_look(tid), "") for tid in set(threads)}
        kept, rule = mark("kept", ascii_only), mark("rule", ascii_only)
        checkpoints, written = _cells(history.checkpoints, cells), _cells(history.written, cells)
        for cell, spark in enumerate(sparks):
            sign, look = spark, ""
            if threads:
                tid = threads[min((2 * cell + 1) * len(threads) // (2 * cells), len(threads) - 1)]
                look = looks[tid]
            if not spark:
                sign = kept if cell in checkpoints else rule
                look = look or "dim"
            if cell in marks:
                sign, look = marks[cell][0], "bold $text-accent"
            if cell in written:
                look += " underline"
            if cell == here:
                look += " reverse"
            yield sign, look.strip()

    def on_click(self, event: events.Click) -> None:
        """Go there."""
        first, cells = self._bar
        history = self._history
        if history is not None and cells and first <= event.x < first + cells:
            cell = event.x - first
            last = cell == cells - 1
            self.post_message(self.Picked(history.end if last else history.end * cell // cells))


def _cells(flags: bytes, cells: int) -> set[int]:
    """The cells that stand for one or more flags that are set."""
    if not any(flags):
        return set()
    count = len(flags)
    ends = [(cell * count // cells, (cell + 1) * count // cells) for cell in range(cells)]
    return {cell for cell, (low, high) in enumerate(ends) if any(flags[low : max(high, low + 1)])}

"""Keeps the log of a recorded run true to what is recorded now."""

import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import KprobeTuiError
from engine.history.moment import Moment
from engine.session.control.past.epochs import SHORT, EpochError, PastEpochs, is_in_pieces
from engine.session.control.past.log import LogContent, PastLog, RecordedSources
from engine.session.control.past.travel import Travel
from engine.session.control.runs import ToldEvents
from engine.session.guest.past import PastSession
from engine.session.protocol import events as ev
from engine.session.tracing.tracing import Tracing
from engine.trace.graph import is_entry, is_exit
from engine.trace.rows import EventInfo

_LAST: Final = 1 << 62
"""A tick behind all others."""
_TELL: Final = 0.1
"""Seconds between two words about how far it is."""


class LogRefill:
    """Makes the log of one run anew when something else is recorded than before."""

    def __init__(
        self,
        travel: Travel,
        tracing: Tracing,
        recorded: RecordedSources,
        mode: Mode,
        tell: Callable[[ev.SessionEvent], object],
        rows: ToldEvents,
    ) -> None:
        """The log is as it should be: nothing has happened yet.

        Args:
            travel: the way to the run's past.
            tracing: of the run.
            recorded: what says what is recorded.
            mode: strictness of placement.
            tell: takes what is to be known.
            rows: tells the rows.
        """
        self._travel = travel
        self._tracing = tracing
        self._recorded = recorded
        self._probes = recorded.probes
        self._mode = mode
        self._tell = tell
        self._rows = rows
        self._known = LogContent()
        self._events: dict[int, str] = {}
        self._seen: object = None
        self._whole = True
        self.accept()

    def accept(self) -> None:
        """The log is what is wanted, or as far as it is."""
        known, self._known = self._known, LogContent.of(self._recorded)
        if known.rows != self._known.rows:
            self._events = {
                entry.row.id: entry.event
                for entry in self._probes.entries
                if entry.defined is not None
            }

    def forget(self) -> None:
        """The whole log is to be made anew."""
        self._known, self._seen = LogContent(depth=-1), None

    @property
    def is_due(self) -> bool:
        """True if something else is recorded than the log shows."""
        graph, kernel = self._recorded.graph, self._recorded.kernel
        seen = (
            [entry.row for entry in self._probes.entries],
            (graph.globs, graph.depth),
            [switch.globs for switch in kernel.values()],
        )
        if seen == self._seen:
            return False
        due = LogContent.of(self._recorded) != self._known
        if not due:
            self._seen = seen
        return due

    @property
    def counts(self) -> bool:
        """True if the hits that are counted are those of the whole run."""
        return self._whole and not self.is_due

    def renew(self, goes_on: Callable[[], bool]) -> bool:
        """Make the log what it should be.

        Args:
            goes_on: asked now and then: False ends it.

        Returns:
            True if all of it is told anew.
        """
        gone = self._gone()
        if gone is not None:
            self.accept()
            self._tell(
                ev.Erased(
                    frozenset(
                        number for number, info in self._tracing.table.items() if str(info) in gone
                    )
                )
            )
            return False
        wanted = LogContent.of(self._recorded)
        travel = self._travel
        end, told = travel.present(), time.monotonic()

        def may_go_on(clock: int) -> bool:
            nonlocal told
            if time.monotonic() - told >= _TELL:
                told = time.monotonic()
                self._tell(ev.Refilling(max(clock, 1), end.clock))
            return goes_on() and LogContent.of(self._recorded) == wanted

        if not travel.has_ended:
            self._tracing.drain()
        if end.clock >= SHORT and is_in_pieces(
            wanted, self._probes, travel.machine, self._mode, self._tracing.programs
        ):
            done = self._in_pieces(wanted, end, may_go_on)
            if done is not None:
                return done
        return self._from_the_start(wanted, end, may_go_on)

    def _in_pieces(
        self, wanted: LogContent, end: Moment, goes_on: Callable[[int], bool]
    ) -> bool | None:
        """Make the log stretch by stretch; None if that cannot be done."""
        travel = self._travel
        try:
            epochs = PastEpochs(travel, wanted, self._mode, self._known_number, self._rows)
            if not epochs.is_ahead:
                return None
            self._tell(ev.Refilling(0, end.clock))
            before = epochs.run(end, over=travel.is_over, goes_on=goes_on)
        except KprobeTuiError:
            return None  # what is wrong with the past is said by the one way through it
        self.accept()
        for text in epochs.refused:
            self._tell(ev.Notice(f"not in the past: {text}"))
        if travel.recorder.full:
            before = (*before, (end.clock, _LAST))  # what came later is not recorded
        elif not before:
            self._count_on(epochs.hits)
        self._tell(ev.Refilled(before))
        self._whole = not before
        return not before

    def _from_the_start(
        self, wanted: LogContent, end: Moment, goes_on: Callable[[int], bool]
    ) -> bool:
        """Make the log from the run's start on."""
        travel = self._travel
        past: PastSession | None = None
        log: PastLog | None = None
        upto: int | None = 0
        try:
            past = travel.fresh()
            past.kernel.reached = end.clock
            log = PastLog(past, wanted, self._mode, self._number_of, self._rows.rows)
            for text in log.refused:
                self._tell(ev.Notice(f"not in the past: {text}"))
            self.accept()
            self._tell(ev.Refilling(0, end.clock))
            upto = log.run(end, over=travel.is_over, goes_on=goes_on)
            if upto is None and not travel.recorder.full:
                self._count_on(log.hits())
                self._tracing.controls.take_tables(log.tracing.controls)
        except KprobeTuiError as error:
            upto = 0 if past is None else max(past.cpu.coming() - 1, 0)
            self._tell(ev.Notice(f"the log of the past ends at tick {upto}: {error}"))
        finally:
            self.accept()
            if upto is None and travel.recorder.full:
                upto = end.clock  # what came later is not recorded
            self._whole = upto is None
            self._tell(ev.Refilled(() if upto is None else ((upto, _LAST),)))
            if log is not None:
                log.close()
            elif past is not None:
                past.close()
        return upto is None

    def _gone(self) -> set[str] | None:
        """The events that are no longer recorded, if that is all that has changed."""
        now, known = LogContent.of(self._recorded), self._known
        left = set(now.rows)
        if replace(now, rows=()) != replace(known, rows=()) or not left < set(known.rows):
            return None
        going = set(known.rows) - left
        if any(row.rules.triggers for row in going):
            return None  # they have written rows of their own, or kept others from being written
        gone = {self._events[row.id] for row in going}
        return None if gone & {self._events[row.id] for row in left} else gone

    def _number_of(self, info: EventInfo) -> int:
        """The id that an event of the past has in the run itself."""
        number = self._number(info)
        if number is None:
            return self._tracing.add_event(lambda number: replace(info, id=number)).id
        return number

    def _number(self, info: EventInfo) -> int | None:
        table = self._tracing.table
        named = [
            number for number in sorted(table, reverse=True) if str(table[number]) == str(info)
        ]
        for number in named:
            if replace(table[number], id=info.id) == info:
                return number
        if is_entry(info) or is_exit(info):
            return None  # each signature of functions has an event of that name
        return named[0] if named else None

    def _known_number(self, info: EventInfo) -> int:
        """The same of one that is there.

        Raises:
            EpochError: it is not.
        """
        number = self._number(info)
        if number is None:
            raise EpochError(f"{info} is not in the run")
        return number

    def _count_on(self, there: dict[int, int]) -> None:
        """Hits are those since the run began, by the rows of the list."""
        self._travel.collect()
        for entry in self._probes.entries:
            if entry.row.id in there and entry.defined is not None:
                hits = there[entry.row.id]
                entry.earlier = hits - sum(probe.hits for probe in entry.probes)

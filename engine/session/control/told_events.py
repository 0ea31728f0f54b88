"""Tells the events of a run."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import CommandError
from engine.session.control.running import Abandoned, Running
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState
from engine.session.tracing.tracing import Tracing
from engine.trace.rows import count_rows

if TYPE_CHECKING:
    from engine.session.control.refill import LogRefill


class ToldEvents:
    """Tells one run's events: their kinds, their rows, and what becomes of its log later.

    Attributes:
        refill: makes the log of a recorded run anew; None for any other run.
        count: rows told since the start of the run, or since all of the log was told anew.
    """

    def __init__(self, tell: Callable[[ev.SessionEvent], object]) -> None:
        """Nothing was told yet."""
        self.refill: LogRefill | None = None
        self.count = 0
        self._tell = tell
        self._declared = 0
        self._of: dict[int, int] = {}

    def rows(self, data: bytes, stretch: int | None = None) -> None:
        """Tell rows.

        Args:
            data: the rows, packed.
            stretch: number of the stretch of the past that they are of; None for the run's own.
        """
        count = count_rows(data)
        self.count += count
        if stretch is not None:
            self._of[stretch] = self._of.get(stretch, 0) + count
        self._tell(ev.Rows(data, count, stretch))

    def begin(self, stretch: int) -> None:
        """Tell that the rows of a stretch of the past come from its begin on."""
        self.count -= self._of.pop(stretch, 0)
        self._tell(ev.StretchBegun(stretch))

    def declare(self, tracing: Tracing) -> None:
        """Tell of the events of a trace that are new."""
        infos = tracing.table
        if len(infos) > self._declared:
            fresh = tuple(info for number, info in infos.items() if number > self._declared)
            self._declared = len(infos)
            self._tell(ev.Declared(fresh))

    def keep(self, running: Running, goes_on: Callable[[], bool]) -> None:
        """Make the log what it would be if all that is recorded had been so from the start.

        Args:
            running: the run itself; where it stands in a hit, the log waits for the next stop.
            goes_on: asked now and then: False ends it.
        """
        refill = self.refill
        if refill is None:
            return
        if running.state is RunState.READY:
            refill.accept()
        try:
            while goes_on() and refill.is_due:
                if running.state is RunState.RUNNING or running.machine is not None:
                    return
                before, self.count = self.count, 0
                self._of.clear()
                if not refill.renew(goes_on):
                    self.count = before
        except Abandoned:
            pass

    def forget(self) -> None:
        """Have all of the log made anew when it is kept next.

        Raises:
            CommandError: the run is not recorded.
        """
        if self.refill is None:
            raise CommandError("the run is not recorded: its past cannot be filled in")
        self.refill.forget()

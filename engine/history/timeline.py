"""Goes to any moment of a run of the past."""

import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from engine.cpu.ram import Ram
from engine.errors import KprobeTuiError
from engine.history.checkpoint import Checkpoints
from engine.history.livecheckpoints import LiveCheckpoints
from engine.history.moment import Moment as Moment
from engine.history.replaying import ReplayKernel

_SLICE: Final = 100_000
"""Ticks between two looks at whether a checkpoint is due."""
_SECONDS: Final = 0.05
"""Processor time of the host's between two checkpoints, at least."""
_MOST: Final = 0.25
"""And at the most, whatever a checkpoint has taken."""
_SHARE: Final = 10
"""So many times the time that the last checkpoint has taken goes by before the next."""
_NEAR: Final = (20_000, 1_000)
"""So many ticks in front of a moment that is gone to a checkpoint is made: a millisecond, or less
on ways that begin there, as they do when it is stepped back."""
_FAR: Final = 2
"""So many times as many ticks has a way that is long enough for that."""
_CLOSE: Final = 12
"""Checkpoints that were made so and are kept."""
_STOPS: Final = 64
"""Stops on the way to an instruction of a tick, at the most: somebody wants to be heard."""


class HistoryError(KprobeTuiError):
    """A moment is not in the history."""


class Timeline:
    """The moments of one guest of the past, which stands at one of them.

    Attributes:
        checkpoints: those taken so far: where the guest has been once, and close to the moments
            that were looked at last.
    """

    def __init__(
        self, kernel: ReplayKernel, ram: Ram, live: LiveCheckpoints | None = None
    ) -> None:
        """The guest stands in front of its first instruction.

        Args:
            kernel: the kernel of the guest of the past.
            ram: its memory.
            live: takes checkpoints of the run itself, if anything does.
        """
        self._kernel = kernel
        self._machine = kernel.machine
        self._cpu = kernel.machine.cpu
        self._pc = kernel.machine.arch.roles.pc
        self.checkpoints = Checkpoints(kernel, ram, live=live)
        self._live = live
        self._due = self._look = 0.0
        self._keeps = True
        self._close: list[Moment] = []
        self._way: tuple[int, int] | None = None
        self._take()

    @property
    def how_far(self) -> float | None:
        """The part of the way that a seek has gone; None while there is none. From any thread."""
        way = self._way
        if way is None or way[1] <= way[0]:
            return None
        begin, end = way
        return min(max((self._cpu.blocks() - begin) / (end - begin), 0.0), 1.0)

    @property
    def ended(self) -> bool:
        """True if the guest stands at the end of its run."""
        return self._machine.exit is not None

    def now(self) -> Moment:
        """The moment at which the guest stands."""
        pc = self._machine.current.hooks.original_pc(self._cpu.read_register(self._pc))
        return Moment(self._kernel.at, self._cpu.coming(), pc)

    def marks(self) -> list[Moment]:
        """The moments of all checkpoints, in order."""
        return self.checkpoints.marks.copy()

    def start(self) -> None:
        """Go to the first instruction."""
        self.checkpoints.restore(0)

    def end(self) -> None:
        """Go to the end of what is recorded."""
        self._nearest(len(self._kernel.journal), self._kernel.journal.end + 1)
        self._way = self._cpu.blocks(), self._kernel.journal.end
        try:
            while not self.ended and self._kernel.next is not None:
                self._go(None)
        finally:
            self._way = None

    def catch_up(self) -> None:
        """Take over what the run itself has kept; the guest stands at the last checkpoint then."""
        if self._live is not None and self._live.pending:
            self.checkpoints.adopt(self._live)
            self.checkpoints.restore(len(self.checkpoints.taken) - 1)

    def seek(self, moment: Moment) -> None:
        """Go to a moment; no probe may be armed.

        Raises:
            HistoryError: the run has no such moment.
            DivergenceError: it is not lived through as it was recorded.
        """
        if moment == self.now() and not self.ended:
            return
        marks = self.checkpoints.marks
        index = bisect_left(marks, moment)
        if marks[index : index + 1] == [moment]:
            self.checkpoints.restore(index)
            return
        self._nearest(moment.at, moment.clock)
        self._to(moment.at, moment.clock)
        self._cpu_to(moment)
        if self.now() != moment:
            raise HistoryError(f"the run was never at {moment.pc:#x} in tick {moment.clock}")

    def seek_clock(self, clock: int) -> None:
        """Go to the first instruction of a tick, or to the end."""
        at = bisect_left(self._kernel.journal.clocks, clock)
        self._nearest(at, clock)
        self._to(at, clock)

    def approach(self, at: int, clock: int, until: Callable[[], bool]) -> None:
        """Go up to an entry's end and the begin of a tick, or to the end; no probe may be armed.

        Args:
            at: entries of the journal that are done there.
            clock: the tick.
            until: asked between two stretches: True ends it.
        """
        self._nearest(at, clock)
        self._to(at, clock, until)

    def _nearest(self, at: int, clock: int) -> None:
        """Go back to the checkpoint from which a moment is reached soonest."""
        spoilt = self._adopt(at, clock)
        index = self.checkpoints.before(clock, at)
        taken = self.checkpoints.taken[index]
        now = self.now()
        ahead = (now.at, now.clock) < (at, clock) and not self.ended
        if spoilt or not ahead or (taken.at, taken.clock) > (now.at, now.clock):
            self.checkpoints.restore(index)

    def _adopt(self, at: int, clock: int) -> bool:
        """Take over what the run itself has kept by then; True if the guest stands nowhere now."""
        live = self._live
        if live is None or not live.pending:
            return False
        first = live.pending[0].mark
        if (first.at, first.clock) > (at, clock):
            return False
        self.checkpoints.adopt(live)
        return True

    def _to(self, at: int, clock: int, until: Callable[[], bool] = lambda: False) -> None:
        """Go on up to an entry's end and the begin of a tick."""
        kernel, cpu = self._kernel, self._cpu
        self._way = cpu.blocks(), clock
        try:
            way = clock - cpu.coming()
            close = next((ticks for ticks in _NEAR if way > _FAR * ticks), 0)
            if self._keeps and close:
                near = clock - close
                while cpu.coming() < near and kernel.at <= at and not self.ended and not until():
                    self._go(near - 1)
                if cpu.coming() == near and kernel.at <= at and not self.ended:
                    self._look_around()
            while kernel.at < at and not self.ended and not until():
                self._go(None)
            while cpu.coming() < clock and not self.ended and kernel.at == at and not until():
                self._go(clock - 1)
        finally:
            kernel.limit = self._way = None

    def _look_around(self) -> None:
        """Make a checkpoint for the ways to moments close by; the oldest such one is given up."""
        mark = self.checkpoints.take(brief=True)
        if mark in self._close:
            self._close.remove(mark)
        self._close.append(mark)
        if len(self._close) > _CLOSE and self.checkpoints.drop(self._close[0]):
            del self._close[0]

    def run_to_tick(self, at: int, clock: int, until: Callable[[], bool]) -> None:
        """Go on up to an entry's end and the begin of a tick; probes may be armed.

        Args:
            at: entries of the journal that are done there.
            clock: the tick.
            until: asked between two stretches: True ends it.
        """
        self._keeps = False  # nothing of the machinery's is to be in a checkpoint
        try:
            self._to(at, clock, until)
        finally:
            self._keeps = True

    def _go(self, limit: int | None) -> None:
        """One stretch towards a tick's end; a checkpoint where one is due."""
        kernel, cpu = self._kernel, self._cpu
        slice_end = cpu.blocks() + _SLICE
        kernel.limit = slice_end if limit is None else min(limit, slice_end)
        kernel.resume()
        if self._keeps and not self.ended and self._is_ahead() and self._is_due():
            self._take()

    def _is_ahead(self) -> bool:
        last, clock = self.checkpoints.taken[-1], self._cpu.blocks()
        ahead = (self._kernel.at, clock) > (last.at, last.clock)
        return ahead and clock - last.clock >= self.checkpoints.apart

    def _is_due(self) -> bool:
        """True if enough of the processor's time has gone by; the clock on the wall is cheaper."""
        return time.monotonic() >= self._look and time.thread_time() >= self._due

    def _take(self) -> None:
        began = time.thread_time()
        self.checkpoints.take()
        now = time.thread_time()
        wait = min(max(_SECONDS, _SHARE * (now - began)), _MOST)
        self._due, self._look = now + wait, time.monotonic() + wait

    def _cpu_to(self, moment: Moment) -> None:
        """Go straight ahead to an address in the tick."""
        if self.ended:
            return
        self._machine.current.memory.sync()
        for _ in range(_STOPS):
            stop = self._cpu.run_to(moment.pc)
            if stop is None:
                return
            self._kernel.handle(stop)
            if self.ended or self._kernel.at != moment.at:
                return

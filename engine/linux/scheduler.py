"""Whose turn it is on the guest's processor: a function of the seed and the guest alone."""

from collections import deque
from collections.abc import Callable

from engine.linux.schedule import Choice, Why
from engine.linux.thread import Thread
from engine.linux.turns import Turns


class Scheduler:
    """Threads that can run and threads that wait.

    A turn ends after a number of ticks, or where the thread waits, yields or ends; what no tick
    passes in, as the machinery of probes, can move neither.

    Attributes:
        turns: decides how long turns are and whose they are.
        ready: those that can run, but for the one that does, in the order of their turns.
        blocked: those that wait, in the order in which they began to.
        polled: those of them whose waits are tried again whenever something may have changed.
        timed: those whose waits may end by time alone.
        held: threads of processes that are stopped; they are in none of the others.
        switches: changes from one thread to another so far.
        digest: of all of them, as (tick, thread id): equal for equal schedules.
        turn_end: tick at which the present turn ends; None while nobody else can run.
        preferred: gets each turn that it can take, whatever turns would have it: a user's wish.
        chosen: told of each choice that makes the schedule, before it takes effect.
    """

    def __init__(self, turns: Turns) -> None:
        """No thread is there."""
        self.turns = turns
        self.ready: deque[Thread] = deque()
        self.blocked: dict[Thread, None] = {}
        self.polled: dict[Thread, None] = {}
        self.timed: dict[Thread, None] = {}
        self.held: dict[Thread, None] = {}
        self.switches = self.digest = 0
        self.turn_end: int | None = None
        self.preferred: Thread | None = None
        self.chosen: Callable[[Choice], object] | None = None

    def block(self, thread: Thread) -> None:
        """A thread waits."""
        wait = thread.wait
        assert wait is not None
        self.blocked[thread] = None
        if not wait.woken_by_calls:
            self.polled[thread] = None
        if wait.deadline is not None or wait.due is not None:
            self.timed[thread] = None

    def _forget(self, thread: Thread) -> None:
        for group in (self.blocked, self.polled, self.timed):
            group.pop(thread, None)

    def unblock(self, thread: Thread, current: Thread, now: int) -> None:
        """A thread can run again, beside the current one; `now` is the present tick."""
        self._forget(thread)
        self.add(thread, current, now)

    def add(self, thread: Thread, current: Thread, now: int) -> None:
        """Add a thread that can run beside the current one; `now` is the present tick."""
        self.ready.append(thread)
        self.turn_end = self.turns.end(current, now, self.ready, self.turn_end)

    def hold(self, thread: Thread) -> None:
        """A thread's process is stopped."""
        self.drop(thread)
        self.held[thread] = None

    def switched(self, thread: Thread, now: int) -> None:
        """A thread has got the processor from another one."""
        self.switches += 1
        self.digest = hash((self.digest, now, thread.tid))

    def drop(self, thread: Thread) -> None:
        """A thread is gone."""
        self._forget(thread)
        self.held.pop(thread, None)
        if thread in self.ready:
            self.ready.remove(thread)

    def next(self, before: Thread, why: Why, now: int) -> Thread | None:
        """Take the thread whose turn begins; None if nobody can run.

        Args:
            before: the one whose turn is over; among `ready` if it can go on.
            why: it is.
            now: the present tick.

        Raises:
            ScheduleError: a schedule is followed that does not fit.
        """
        ready = self.ready
        if not ready:
            self.turn_end = None
            return None
        several = len(ready) > 1
        if self.preferred is not None and self.preferred in ready:
            thread = self.preferred
            ready.remove(thread)
        else:
            thread = self.turns.take(ready, before, why, now)
        if self.chosen is not None and (several or thread is not before):
            self.chosen(Choice(now, thread.tid, why))
        self.turn_end = self.turns.end(thread, now, ready, None)
        return thread

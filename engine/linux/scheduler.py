"""Whose turn it is on the guest's processor: a function of the seed and the guest alone."""

import random
from collections import deque
from typing import Final

from engine.linux.thread import Thread

_SHORTEST: Final = 10_000
_LONGEST: Final = 30_000
"""Ticks of a turn: between these, drawn anew for each."""


class Scheduler:
    """Threads that can run and threads that wait.

    A turn ends after a number of ticks, or where the thread waits, yields or ends; what no tick
    passes in, as the machinery of probes, can move neither.

    Attributes:
        ready: those that can run, but for the one that does, in the order of their turns.
        blocked: those that wait, in the order in which they began to.
        polled: those of them whose waits are tried again whenever something may have changed.
        timed: those whose waits have a deadline.
        held: threads of processes that are stopped; they are in none of the others.
        switches: changes from one thread to another so far.
        digest: of all of them, as (tick, thread id): equal for equal schedules.
        turn_end: tick at which the present turn ends; None while nobody else can run.
    """

    def __init__(self, seed: int) -> None:
        """Nobody is there."""
        self.ready: deque[Thread] = deque()
        self.blocked: dict[Thread, None] = {}
        self.polled: dict[Thread, None] = {}
        self.timed: dict[Thread, None] = {}
        self.held: dict[Thread, None] = {}
        self.switches = self.digest = 0
        self.turn_end: int | None = None
        self._random = random.Random(f"schedule {seed}")

    def block(self, thread: Thread) -> None:
        """A thread waits."""
        wait = thread.wait
        assert wait is not None
        self.blocked[thread] = None
        if not wait.woken_by_calls:
            self.polled[thread] = None
        if wait.deadline is not None:
            self.timed[thread] = None

    def _forget(self, thread: Thread) -> None:
        for group in (self.blocked, self.polled, self.timed):
            group.pop(thread, None)

    def unblock(self, thread: Thread, now: int) -> None:
        """A thread can run again; `now` is the present tick."""
        self._forget(thread)
        self.add(thread, now)

    def add(self, thread: Thread, now: int) -> None:
        """Another thread can run; `now` is the present tick."""
        self.ready.append(thread)
        if self.turn_end is None:
            self._begin(now)

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

    def next(self, now: int) -> Thread | None:
        """Take the thread whose turn begins; None if nobody can run."""
        if not self.ready:
            self.turn_end = None
            return None
        thread = self.ready.popleft()
        if self.ready:
            self._begin(now)
        else:
            self.turn_end = None
        return thread

    def _begin(self, now: int) -> None:
        self.turn_end = now + self._random.randint(_SHORTEST, _LONGEST)

"""Timers of the process: interval timers, POSIX timers, and the limit of processor time."""

import heapq
import itertools
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.linux.clock import FOREVER, GuestClock
from engine.linux.signals import SIGALRM, SIGKILL, SIGPROF, SIGVTALRM, SIGXCPU

_SIGNALS: Final = (SIGALRM, SIGVTALRM, SIGPROF)
_PROFILING: Final = 2
_SECOND: Final = 1_000_000_000
_INFINITY: Final = (1 << 64) - 1
_LEAST: Final = 10_000
"""Nanoseconds: else the time that returning from a handler takes could be a period by itself."""


class PosixTimer(Struct, eq=False):
    """A timer of timer_create.

    Attributes:
        number: its id.
        clock: its clock.
        signal: what it sends.
        value: what the signal carries.
        expiry: when it runs out, by CLOCK_MONOTONIC; 0 when disarmed.
        interval: how often after that.
        overrun: expirations without a signal of their own, as of the last signal.
        silent: sends nothing.
        thread: id of the thread that it signals; 0: the process.
    """

    number: int
    clock: int
    signal: int
    value: int
    expiry: int = 0
    interval: int = 0
    overrun: int = 0
    silent: bool = False
    thread: int = 0


class Timers:
    """Three interval timers and any number of POSIX timers by the guest's monotonic clock.

    Virtual time is what passes while the process runs its own code, profiling time its processor
    time, system calls included.

    Attributes:
        posix: POSIX timers by their id.
        next_id: the id of the next one that is made.
        limit: RLIMIT_CPU: seconds of processor time behind which SIGXCPU comes each second, and
            SIGKILL.
        changed: called when the need to count executed blocks may have changed.
    """

    def __init__(
        self,
        clock: GuestClock,
        own: Callable[[], int] = lambda: 0,
        spent: Callable[[], int] = lambda: 0,
        running: Callable[[], bool] = lambda: True,
    ) -> None:
        """Nothing is armed.

        Args:
            clock: the guest's time.
            own: gives the time that the process has run its own code.
            spent: gives its processor time.
            running: tells whether that passes now.
        """
        self._clock = clock
        self._times, self._running = (clock.peek, own, spent), running
        self.changed: Callable[[], None] = lambda: None
        self._expiry = [0, 0, 0]
        self._interval = [0, 0, 0]
        self.posix: dict[int, PosixTimer] = {}
        self.next_id = 0
        self.limit = (_INFINITY, _INFINITY)
        # (expiry, serial number, timer) of armed POSIX timers, and of some that no longer are.
        self._due: list[tuple[int, int, PosixTimer]] = []
        self._serial = itertools.count()

    def arm(self, which: int, value: int, interval: int) -> None:
        """Expire `value` nanoseconds from now, then each `interval`; 0 disarms."""
        self._expiry[which] = min(self._now(which) + value, FOREVER) if value else 0
        self._interval[which] = interval
        self.changed()

    def _now(self, which: int) -> int:
        return self._times[which]()

    @property
    def armed(self) -> bool:
        """True if any will expire."""
        limited = self.limit[0] != _INFINITY
        return limited or any(self._expiry) or self._next_posix() is not None

    def set_limit(self, soft: int, hard: int) -> None:
        """Limit the processor time to so many seconds; a hard limit counts with a soft one."""
        self.limit = (soft, hard)
        self.changed()

    def over_limit(self) -> int:
        """The signal that the limit has brought, 0 for none (check_process_timers)."""
        soft, hard = self.limit
        if soft == _INFINITY:
            return 0
        spent = self._now(_PROFILING)
        if hard != _INFINITY and spent >= hard * _SECOND:
            return SIGKILL
        if spent < soft * _SECOND:
            return 0
        self.limit = (soft + 1, hard)
        return SIGXCPU

    def rest(self, which: int) -> tuple[int, int]:
        """(nanoseconds until it expires, interval); 0 when disarmed."""
        expiry = self._expiry[which]
        if not expiry:
            return 0, self._interval[which]
        return max(expiry - self._now(which), 1), self._interval[which]

    def arm_posix(self, timer: PosixTimer, value: int, interval: int) -> None:
        """Expire `value` nanoseconds from now, then each `interval`; 0 disarms."""
        timer.expiry = min(self._clock.peek() + value, FOREVER) if value else 0
        self._enter(timer)
        timer.interval, timer.overrun = interval if value else 0, 0
        self.changed()

    def _enter(self, timer: PosixTimer) -> None:
        due = self._due
        if timer.expiry:
            heapq.heappush(due, (timer.expiry, next(self._serial), timer))
        if len(due) > 2 * len(self.posix) + 64:  # settings that were changed again and again
            due[:] = [item for item in due if item[0] == item[2].expiry]
            heapq.heapify(due)

    def rest_posix(self, timer: PosixTimer) -> tuple[int, int]:
        """(nanoseconds until it expires, interval); 0 when disarmed."""
        rest = max(timer.expiry - self._clock.peek(), 0 if timer.silent else 1)
        return rest if timer.expiry else 0, timer.interval

    def expired_posix(self) -> list[tuple[PosixTimer, int]]:
        """(timer, expirations) of POSIX timers that have run out; periodic ones go on."""
        due = self._due
        if not due:
            return []
        now = self._clock.peek()
        late: dict[int, PosixTimer] = {}
        while due and due[0][0] <= now:
            expiry, _, timer = heapq.heappop(due)
            if timer.expiry == expiry:
                late[timer.number] = timer
        found = []
        for timer in (late[number] for number in sorted(late)):
            times = 1
            if timer.interval:
                times += (now - timer.expiry) // timer.interval
                timer.expiry += times * timer.interval
            if timer.interval and timer.expiry <= FOREVER:
                self._enter(timer)
            else:
                timer.expiry = 0
                self.changed()
            if not timer.silent:
                found.append((timer, times))
        return found

    def drop(self) -> None:
        """The process ends: nothing expires any more."""
        self._expiry[:] = self._interval[:] = [0, 0, 0]
        self.limit = (_INFINITY, _INFINITY)
        self.drop_posix()

    def drop_posix(self) -> None:
        """Drop the POSIX timers: another program begins."""
        self.posix.clear()
        self._due.clear()
        self.changed()

    def next(self) -> int | None:
        """When the next one expires, as far as that is known; None if time alone expires none."""
        posix = self._next_posix()
        moments = [] if posix is None else [posix]
        for which, expiry in enumerate(self._expiry):
            if expiry and not which:
                moments.append(expiry)
            elif expiry and self._running():
                moments.append(self._clock.peek() + max(expiry - self._now(which), 0))
        if self.limit[0] != _INFINITY and self._running():
            rest = min(self.limit) * _SECOND - self._now(_PROFILING)
            moments.append(self._clock.peek() + max(rest, 0))
        return min(moments, default=None)

    def _next_posix(self) -> int | None:
        due = self._due
        while due and due[0][0] != due[0][2].expiry:
            heapq.heappop(due)
        return due[0][0] if due else None

    def expired(self) -> list[int]:
        """Signals of timers that have run out; periodic ones are armed again."""
        found = []
        for which, expiry in enumerate(self._expiry):
            now = self._now(which) if expiry else 0
            if not expiry or expiry > now:
                continue
            found.append(_SIGNALS[which])
            interval = self._interval[which]
            if interval:
                self._expiry[which] = expiry + interval * (1 + (now - expiry) // interval)
                if which == _PROFILING:
                    self._expiry[which] = max(self._expiry[which], now + _LEAST)
            if not interval or self._expiry[which] > FOREVER:
                self._expiry[which] = 0
                self.changed()
        return found

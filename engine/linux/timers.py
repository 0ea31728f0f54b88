"""Timers of the process: ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF, and POSIX timers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.linux.clock import GuestClock
from engine.linux.signals import SIGALRM, SIGPROF, SIGVTALRM

_SIGNALS: Final = (SIGALRM, SIGVTALRM, SIGPROF)


@dataclass(eq=False, slots=True)
class PosixTimer:
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
    """

    number: int
    clock: int
    signal: int
    value: int
    expiry: int = 0
    interval: int = 0
    overrun: int = 0
    silent: bool = False


class Timers:
    """Three interval timers and any number of POSIX timers by the guest's monotonic clock.

    Virtual and profiling time pass with the guest's clock too: the emulated processor is
    never shared with anybody.

    Attributes:
        posix: POSIX timers by their id.
        next_id: the id of the next one that is made.
        changed: called when the need to count executed blocks may have changed.
    """

    def __init__(self, clock: GuestClock) -> None:
        self._clock = clock
        self.changed: Callable[[], None] = lambda: None
        self._expiry = [0, 0, 0]
        self._interval = [0, 0, 0]
        self.posix: dict[int, PosixTimer] = {}
        self.next_id = 0

    def arm(self, which: int, value: int, interval: int) -> None:
        """Expire `value` nanoseconds from now, then each `interval`; 0 disarms."""
        self._expiry[which] = self._clock.peek() + value if value else 0
        self._interval[which] = interval
        self.changed()

    def rest(self, which: int) -> tuple[int, int]:
        """(nanoseconds until it expires, interval); 0 when disarmed."""
        expiry = self._expiry[which]
        if not expiry:
            return 0, self._interval[which]
        return max(expiry - self._clock.peek(), 1), self._interval[which]

    def arm_posix(self, timer: PosixTimer, value: int, interval: int) -> None:
        """Expire `value` nanoseconds from now, then each `interval`; 0 disarms."""
        timer.expiry = self._clock.peek() + value if value else 0
        timer.interval, timer.overrun = interval if value else 0, 0
        self.changed()

    def rest_posix(self, timer: PosixTimer) -> tuple[int, int]:
        """(nanoseconds until it expires, interval); 0 when disarmed."""
        rest = max(timer.expiry - self._clock.peek(), 0 if timer.silent else 1)
        return rest if timer.expiry else 0, timer.interval

    def expired_posix(self) -> list[tuple[PosixTimer, int]]:
        """(timer, expirations) of POSIX timers that have run out; periodic ones go on."""
        now = self._clock.peek()
        found = []
        for timer in self.posix.values():
            if not timer.expiry or timer.expiry > now:
                continue
            times = 1
            if timer.interval:
                times += (now - timer.expiry) // timer.interval
                timer.expiry += times * timer.interval
            else:
                timer.expiry = 0
                self.changed()
            if not timer.silent:
                found.append((timer, times))
        return found

    def next(self) -> int | None:
        """When the next one expires."""
        armed = [expiry for expiry in self._expiry if expiry]
        armed += [timer.expiry for timer in self.posix.values() if timer.expiry]
        return min(armed) if armed else None

    def expired(self) -> list[int]:
        """Signals of timers that have run out; periodic ones are armed again."""
        now = self._clock.peek()
        found = []
        for which, expiry in enumerate(self._expiry):
            if not expiry or expiry > now:
                continue
            found.append(_SIGNALS[which])
            interval = self._interval[which]
            if interval:
                self._expiry[which] = expiry + interval * (1 + (now - expiry) // interval)
            else:
                self._expiry[which] = 0
                self.changed()
        return found

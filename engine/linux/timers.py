"""Interval timers of the process (ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF)."""

from collections.abc import Callable
from typing import Final

from engine.linux.clock import GuestClock
from engine.linux.signals import SIGALRM, SIGPROF, SIGVTALRM

_SIGNALS: Final = (SIGALRM, SIGVTALRM, SIGPROF)


class Timers:
    """Three timers by the guest's monotonic clock.

    Virtual and profiling time pass with the guest's clock too: the emulated processor is
    never shared with anybody.
    """

    def __init__(self, clock: GuestClock, changed: Callable[[], None]) -> None:
        """`changed` is called when the need to count executed blocks may have changed."""
        self._clock = clock
        self._changed = changed
        self._expiry = [0, 0, 0]
        self._interval = [0, 0, 0]

    def arm(self, which: int, value: int, interval: int) -> None:
        """Expire `value` nanoseconds from now, then each `interval`; 0 disarms."""
        self._expiry[which] = self._clock.peek() + value if value else 0
        self._interval[which] = interval
        self._changed()

    def rest(self, which: int) -> tuple[int, int]:
        """(nanoseconds until it expires, interval); 0 when disarmed."""
        expiry = self._expiry[which]
        if not expiry:
            return 0, self._interval[which]
        return max(expiry - self._clock.peek(), 1), self._interval[which]

    def next(self) -> int | None:
        """When the next one expires."""
        armed = [expiry for expiry in self._expiry if expiry]
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
                self._changed()
        return found

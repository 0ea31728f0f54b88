"""The guest's time.

Deterministic by default: it moves by what the guest does, never by the host's clock. Each
look at the clock takes a microsecond; sleeping jumps; once a timer has been armed, processor time
moves it too: executed blocks, so that a program that spins for an alarm gets it, system calls, and
stops for a tracer. A program that does nothing but look at the clock (a busy wait) sees it run
faster and faster.

The times are those of a machine that is about five times as slow as the one that user-mode Linux
was measured on (2 ns for a block, 0.2 us for a call, 4 us and more for a stop). Their proportion
matters: where calls took no time, a kernel that is a guest did in no time what natively takes it
longer than a tick of its timer, and its scheduler let nobody else run meanwhile.
"""

import time
from collections.abc import Callable
from typing import Final, Protocol

EPOCH: Final = 1_767_225_600 * 10**9
"""CLOCK_REALTIME at the start: 2026-01-01 00:00:00 UTC."""
UPTIME: Final = 1000 * 10**9
"""CLOCK_MONOTONIC at the start."""
FOREVER: Final = (1 << 63) - 1
"""Nanoseconds at which time ends: what is to come later comes then (KTIME_MAX)."""
BLOCK_NS: Final = 10
"""Nanoseconds that an executed block takes."""
CALL_NS: Final = 1000
"""Nanoseconds that a system call takes."""
STOP_NS: Final = 20_000
"""Nanoseconds that a stop for a tracer takes, with the two switches between it and the thread."""
COARSE_TICK: Final = 4_000_000
"""Nanoseconds of a tick at the distributions' CONFIG_HZ=250 (kernel/time/posix-timers.c)."""
_SECOND: Final = 10**9
_HALF_LIFE: Final = 2 * 365 * 86_400 * _SECOND
"""Files so much later than the start are shown half a second before it."""
_LOOK_NS: Final = 1000
_LOOK_MAX: Final = 1_000_000
_PATIENCE: Final = 64


class Clock(Protocol):
    """The guest's time, in nanoseconds; deterministic unless the user asked for the host's."""

    def monotonic(self) -> int:
        """CLOCK_MONOTONIC."""

    def realtime(self) -> int:
        """CLOCK_REALTIME."""

    def file_time(self, host: int) -> int:
        """The time to show for a time of a host's file; nothing lies in the future."""


def past(host: int, start: int) -> int:
    """Map times of the host's files so that none is later than the guest's start.

    Times before the last second stay; all later ones lie within that second, in their order.
    Two of them may become one (those of the first year if they are up to 0.15 s apart, of the
    tenth up to 2.3 s), but never change places.

    Args:
        host: a time of the host, nanoseconds since 1970.
        start: when the guest's clock starts, the same.
    """
    late = host - (start - _SECOND)
    if late <= 0:
        return host
    return start - _SECOND + (_SECOND - 1) * late // (late + _HALF_LIFE)


class GuestClock:
    """Nanoseconds of the guest's clocks.

    Attributes:
        host: the host's clock is followed.
        passing: what the guest executes takes time, since a timer has been armed or a thread
            waits for a moment.
        worked: nanoseconds that executed blocks have moved it by.
    """

    def __init__(
        self,
        *,
        start: int | None = None,
        host: bool = False,
        host_input: Callable[[str, bytes], bytes] = lambda source, data: data,
    ) -> None:
        """Start now.

        Args:
            start: CLOCK_REALTIME at the start; `EPOCH` if None.
            host: follow the host's clock instead.
            host_input: passes on what is read of the host's clock.
        """
        self.host = host
        self.passing = False
        self.worked = 0
        self._host_input = host_input
        self._now = UPTIME
        self._looks = 0
        self._started = time.monotonic_ns()
        self._epoch = time.time_ns() if host else EPOCH if start is None else start

    @property
    def ahead(self) -> int:
        """Nanoseconds that CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, the whole run."""
        return self._epoch - UPTIME

    def peek(self) -> int:
        """CLOCK_MONOTONIC without taking time for the look."""
        if self.host:
            passed = (time.monotonic_ns() - self._started).to_bytes(8, "little")
            return UPTIME + int.from_bytes(self._host_input("clock", passed), "little")
        return self._now

    def monotonic(self) -> int:
        """CLOCK_MONOTONIC."""
        if not self.host:
            self._looks += 1
            step = _LOOK_NS
            if self._looks > _PATIENCE:
                step = min(_LOOK_NS << min((self._looks - _PATIENCE) // 16, 10), _LOOK_MAX)
            self._now += step
        return self.peek()

    def realtime(self) -> int:
        """CLOCK_REALTIME."""
        return self._epoch + self.monotonic() - UPTIME

    def peek_realtime(self) -> int:
        """CLOCK_REALTIME without taking time for the look."""
        return self._epoch + self.peek() - UPTIME

    def file_time(self, host: int) -> int:
        """The time to show for a time of a host's file."""
        return host if self.host else past(host, self._epoch)

    def settle(self) -> None:
        """The guest did something else than look at the clock."""
        self._looks = 0

    def called(self) -> None:
        """A system call that does something else passes time."""
        if self.passing:
            self._now += CALL_NS

    def stopped(self) -> None:
        """A thread's stop for its tracer passes time."""
        if self.passing:
            self._now += STOP_NS

    def add_blocks(self, count: int) -> None:
        """Executed blocks pass time."""
        if self.passing:
            self._now += count * BLOCK_NS
            self.worked += count * BLOCK_NS

    def jump(self, deadline: int) -> None:
        """Sleep until a moment; without waiting, unless the host's clock is followed."""
        if self.host:
            rest = deadline - self.peek()
            if rest > 0:
                time.sleep(rest / 1e9)
        else:
            self._now = max(self._now, min(deadline, FOREVER))


class StillClock:
    """A guest's clock for those whose looks take no time."""

    def __init__(self, clock: GuestClock) -> None:
        """Show the time of `clock`."""
        self._clock = clock

    def monotonic(self) -> int:
        """CLOCK_MONOTONIC."""
        return self._clock.peek()

    def realtime(self) -> int:
        """CLOCK_REALTIME."""
        return self._clock.peek_realtime()

    def file_time(self, host: int) -> int:
        """The time to show for a time of a host's file."""
        return self._clock.file_time(host)

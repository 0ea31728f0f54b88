"""The guest's time.

Deterministic by default: it moves by what the guest does, never by the host's clock. Each
look at the clock takes a microsecond; sleeping jumps; while an interval timer is armed, the
count of executed blocks moves it too, so that a program that spins for an alarm gets it. A
program that does nothing but look at the clock (a busy wait) sees it run faster and faster.
"""

import time
from collections.abc import Callable
from typing import Final, Protocol

EPOCH: Final = 1_767_225_600 * 10**9
"""CLOCK_REALTIME at the start: 2026-01-01 00:00:00 UTC."""
UPTIME: Final = 1000 * 10**9
"""CLOCK_MONOTONIC at the start."""
BLOCK_NS: Final = 10
_LOOK_NS: Final = 1000
_LOOK_MAX: Final = 1_000_000
_PATIENCE: Final = 64


class Clock(Protocol):
    """The guest's time, in nanoseconds; deterministic unless the user asked for the host's."""

    def monotonic(self) -> int:
        """CLOCK_MONOTONIC."""

    def realtime(self) -> int:
        """CLOCK_REALTIME."""


class GuestClock:
    """Nanoseconds of the guest's clocks."""

    def __init__(
        self,
        *,
        host: bool = False,
        host_input: Callable[[str, bytes], bytes] = lambda source, data: data,
    ) -> None:
        """Start now; `host` follows the host's clock instead, read through `host_input`."""
        self.host = host
        self._host_input = host_input
        self._now = UPTIME
        self._looks = 0
        self._started = time.monotonic_ns()
        self._host_epoch = time.time_ns() if host else EPOCH

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
        return self._host_epoch + self.monotonic() - UPTIME

    def settle(self) -> None:
        """The guest did something else than look at the clock."""
        self._looks = 0

    def add_blocks(self, count: int) -> None:
        """Executed blocks pass time (while a timer is armed)."""
        self._now += count * BLOCK_NS

    def jump(self, deadline: int) -> None:
        """Sleep until a moment; without waiting, unless the host's clock is followed."""
        if self.host:
            rest = deadline - self.peek()
            if rest > 0:
                time.sleep(rest / 1e9)
        else:
            self._now = max(self._now, deadline)

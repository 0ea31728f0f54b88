"""The CMOS memory with the real-time clock, a MC146818: the time of power-on, and 128 bytes.

Linux sets its clock from it. The time is a constant of the machine unless another is said, so that
a boot can be repeated.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from engine.machine.clock import MachineClock

PORTS: Final = (0x70, 0x71)
_STATUS: Final = {10: 0x26, 11: 2, 12: 0, 13: 0x80}
"""Registers A to D: no update under way, 24 hours in BCD, no interrupt, battery good."""
_CENTURY: Final = 0x32


class RealTimeClock:
    """CMOS memory and the clock in it."""

    def __init__(self, clock: MachineClock, began: datetime) -> None:
        """Keep the time of power-on, which is UTC."""
        self._clock = clock
        self._began = began.astimezone(UTC)
        self._bytes = bytearray(128)
        self._index = 0

    def read(self, port: int) -> int:
        """Serve an IN of one of `PORTS`."""
        if port == PORTS[0]:
            return self._index
        index = self._index
        if index in _STATUS:
            return _STATUS[index]
        now = self._began + timedelta(microseconds=self._clock.now // 1000)
        fields = {
            0: now.second,
            2: now.minute,
            4: now.hour,
            6: now.isoweekday() % 7 + 1,
            7: now.day,
            8: now.month,
            9: now.year % 100,
            _CENTURY: now.year // 100,
        }
        if index in fields:
            return fields[index] // 10 << 4 | fields[index] % 10
        return self._bytes[index]

    def write(self, port: int, value: int) -> None:
        """Serve an OUT of one of `PORTS`; the clock itself is not set."""
        if port == PORTS[0]:
            self._index = value & 0x7F
        else:
            self._bytes[self._index] = value & 0xFF

    def state(self) -> dict[str, Any]:
        """The state as plain values; the time of power-on is the machine's own."""
        return {"bytes": bytes(self._bytes), "index": self._index}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self._bytes[:] = state["bytes"].ljust(128, b"\0")[:128]
        self._index = int(state["index"]) & 0x7F

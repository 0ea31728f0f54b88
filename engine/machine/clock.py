"""The machine's time: nanoseconds that follow from what the guest has executed.

A block of code takes a fixed time, and so does what asks the hardware; a processor that waits for
an interrupt jumps to it. The host's clock is no part of it: the same boot twice is the same.
"""

from collections.abc import Mapping
from typing import Any, Final

from engine.cpu.unicorn_system import NEVER, MachineRecord

BLOCK: Final = 8
"""Nanoseconds of a block."""
PORT: Final = 500
"""Nanoseconds of an IN or an OUT."""
COUNTER: Final = 50
"""Nanoseconds of an RDTSC."""
NO_EVENT: Final = 1 << 62
"""The time of an event that never comes."""


def time_of(state: Mapping[str, Any]) -> int:
    """The nanoseconds since power-on that a clock's state has."""
    return int(state["blocks"]) * BLOCK + int(state["skew"])


class MachineClock:
    """Time, and when it has to be looked at next.

    Attributes:
        event: time of the next tick of the timer.
        later: time of the next interrupt of another device.
        watched: time at which somebody looks at the machine, who is no part of it.
    """

    def __init__(self, record: MachineRecord) -> None:
        """Begin at 0."""
        self._record = record
        self._skew = 0
        self.event = self.later = self.watched = NO_EVENT

    @property
    def next(self) -> int:
        """The time of whatever comes first."""
        return min(self.event, self.later, self.watched)

    @property
    def now(self) -> int:
        """Nanoseconds since power-on."""
        return int(self._record.blocks) * BLOCK + self._skew

    def spend(self, nanoseconds: int) -> None:
        """Let time pass that no block takes."""
        self._skew += nanoseconds

    def wait(self) -> None:
        """Let the time pass until the next event."""
        self._skew += max(0, self.next - self.now)

    def limit(self) -> int:
        """The number of blocks at which the next event is due."""
        if self.next >= NO_EVENT:
            return NEVER
        return max(0, -(-(self.next - self._skew) // BLOCK))

    def state(self) -> dict[str, Any]:
        """The state as plain values."""
        blocks = int(self._record.blocks)
        return {"blocks": blocks, "skew": self._skew, "event": self.event, "later": self.later}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self._record.blocks = state["blocks"]
        self._skew = int(state["skew"])
        self.event, self.later = int(state["event"]), int(state["later"])

"""The 8254 interval timer and port 0x61, which gates its third counter. Source: Intel's 8254.

Counter 0 interrupts (line 0), counter 2 is what Linux measures the processor with.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.machine.clock import NO_EVENT, MachineClock

HERTZ: Final = 1_193_182
SECOND: Final = 1_000_000_000
PORTS: Final = (0x40, 0x41, 0x42, 0x43)
GATE: Final = 0x61
_WHOLE: Final = 0x10000
_PERIODIC: Final = (2, 3)
_SQUARE: Final = 3
_LOW, _HIGH = 1, 2
_READ_BACK: Final = 3
_REFRESH: Final = 15_000
"""Nanoseconds after which bit 4 of port 0x61 changes."""

_FIELDS: Final = (
    *("mode", "count", "start", "loaded"),
    *("_access", "_latch", "_low", "_high_next"),
)
"""Attributes that are the state of a counter."""


class _Counter:
    """One of the three counters."""

    def __init__(self, clock: MachineClock) -> None:
        self._clock = clock
        self.mode = 0
        self.count = _WHOLE
        self.start = 0
        self.loaded = False
        self._access = _LOW | _HIGH
        self._latch: int | None = None
        self._low: int | None = None
        self._high_next = False

    def state(self) -> dict[str, Any]:
        """The state as plain values."""
        return {name: getattr(self, name) for name in _FIELDS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        for name in _FIELDS:
            setattr(self, name, state[name])

    def _passed(self) -> int:
        return (self._clock.now - self.start) * HERTZ // SECOND

    @property
    def value(self) -> int:
        """The count as it stands now."""
        passed = self._passed()
        if self.mode == _SQUARE:
            return self.count - 2 * passed % self.count
        if self.mode in _PERIODIC:
            return self.count - passed % self.count
        return self.count - passed & 0xFFFF

    @property
    def output(self) -> bool:
        """The level of its output: high once a count that runs once is over."""
        return self.mode in _PERIODIC or self._passed() >= self.count

    def due(self, *, behind: int = -1) -> int:
        """The time of its next interrupt, behind a time."""
        if not self.loaded:
            return NO_EVENT
        if self.mode not in _PERIODIC:
            return self.start - -self.count * SECOND // HERTZ + 1
        behind = max(behind, self.start)
        rounds = (behind - self.start) * HERTZ // SECOND // self.count + 1
        at = self.start - -rounds * self.count * SECOND // HERTZ
        if at <= behind:
            at = self.start - -(rounds + 1) * self.count * SECOND // HERTZ
        return at

    def control(self, value: int) -> None:
        """Take a control word: latch the count, or choose access and mode."""
        access = value >> 4 & 3
        if not access:
            if self._latch is None:
                self._latch = self.value & 0xFFFF
            return
        mode = value >> 1 & 7
        self.mode = mode & 3 if mode > 5 else mode
        self._access, self._latch, self._low = access, None, None
        self._high_next = self.loaded = False

    def write(self, value: int) -> None:
        """Take a byte of the count; the last one starts it."""
        if self._access == _LOW:
            self._load(value)
        elif self._access == _HIGH:
            self._load(value << 8)
        elif self._low is None:
            self._low = value
        else:
            low, self._low = self._low, None
            self._load(low | value << 8)

    def _load(self, count: int) -> None:
        self.count = count or _WHOLE
        self.loaded = True
        self.start = self._clock.now

    def read(self) -> int:
        """Give a byte of the count, the latched one if there is one."""
        value = self._latch if self._latch is not None else self.value
        if self._access == (_LOW | _HIGH) and not self._high_next:
            self._high_next = True
            return value & 0xFF
        high = self._high_next or self._access == _HIGH
        self._high_next, self._latch = False, None
        return (value >> 8 if high else value) & 0xFF


class IntervalTimer:
    """The 8254."""

    def __init__(self, clock: MachineClock, tick: Callable[[], None]) -> None:
        """Begin with counters that stand.

        Args:
            clock: the machine's; its event is set to the next tick.
            tick: called at each interrupt of counter 0.
        """
        self._clock = clock
        self._tick = tick
        self._counters = tuple(_Counter(clock) for _ in range(3))
        self._gate = 0

    def pass_time(self) -> None:
        """Tick if that is due."""
        first, clock = self._counters[0], self._clock
        if clock.now < clock.event:
            return
        self._tick()
        if first.mode not in _PERIODIC:
            first.loaded = False
        clock.event = first.due(behind=clock.now)

    def read(self, port: int) -> int:
        """Serve an IN of one of `PORTS`, or of `GATE`."""
        if port == GATE:
            refresh = self._clock.now // _REFRESH & 1
            return self._gate & 3 | refresh << 4 | self._counters[2].output << 5
        return self._counters[port & 3].read() if port & 3 < 3 else 0

    def write(self, port: int, value: int) -> None:
        """Serve an OUT of one of `PORTS`, or of `GATE`."""
        if port == GATE:
            if value & ~self._gate & 1:
                self._counters[2].start = self._clock.now
            self._gate = value
            return
        value &= 0xFF
        number = port & 3
        if number < 3:
            self._counters[number].write(value)
        elif value >> 6 != _READ_BACK:
            number = value >> 6
            self._counters[number].control(value)
        if not number:
            self._clock.event = self._counters[0].due(behind=self._clock.now)

    def state(self) -> dict[str, Any]:
        """The state as plain values."""
        return {"gate": self._gate, "counters": [each.state() for each in self._counters]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self._gate = int(state["gate"])
        for counter, kept in zip(self._counters, state["counters"], strict=True):
            counter.restore(kept)

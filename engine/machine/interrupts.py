"""Two 8259A interrupt controllers, the second one at line 2 of the first. Source: Intel's 8259A.

Fully nested mode; what Linux uses of them, and nothing of the modes for other processors. A line
is triggered by its edge, or by its level where a bit of the ports 0x4d0 and 0x4d1 says so (EISA).
"""

from collections.abc import Mapping
from typing import Any, Final

_CASCADE: Final = 2
_SPURIOUS: Final = 7
_INIT, _OCW3, _READ_ISR, _READS = 0x10, 0x08, 1, 2
_EOI, _SPECIFIC_EOI = (1, 5), (3, 7)
_WANTS_ICW4: Final = 1
PORTS: Final = (0x20, 0x21, 0xA0, 0xA1)
LEVELS: Final = (0x4D0, 0x4D1)
_ALWAYS_EDGES: Final = (0x07, 0x21)
"""Lines that have no level: timer, keyboard, cascade; clock and coprocessor."""
_FIELDS: Final = (
    *("requests", "service", "mask", "base", "lines", "levels"),
    *("_step", "_wants_4", "_reads_service"),
)
"""Attributes that are the state of a controller."""


class _Controller:
    """One 8259A."""

    def __init__(self) -> None:
        self.requests = self.service = self.mask = self.base = self.lines = self.levels = 0
        self._step = self._wants_4 = 0
        self._reads_service = False

    def state(self) -> dict[str, Any]:
        """The state as plain values."""
        return {name: int(getattr(self, name)) for name in _FIELDS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        for name in _FIELDS:
            setattr(self, name, int(state[name]) & 0xFF)

    def next(self) -> int:
        """The line to be served next; -1 for none."""
        wanted = (self.requests | self.lines & self.levels) & ~self.mask
        for line in range(8):
            if self.service >> line & 1:
                return -1
            if wanted >> line & 1:
                return line
        return -1

    def set_line(self, line: int, level: bool) -> None:
        """Set a line: its edge requests."""
        bit = 1 << line
        if level:
            self.requests |= bit & ~self.lines
            self.lines |= bit
        else:
            self.lines &= ~bit
            self.requests &= ~bit

    def cascade(self, level: bool) -> None:
        """Have the request of the second controller's line follow its level."""
        bit = 1 << _CASCADE
        self.requests = self.requests | bit if level else self.requests & ~bit

    def serve(self, line: int) -> int:
        """Begin to serve a line; its vector."""
        self.requests &= ~(1 << line)
        self.service |= 1 << line
        return self.base + line

    def read(self, port: int) -> int:
        """Read the mask, or one of the two registers."""
        if port & 1:
            return self.mask
        return self.service if self._reads_service else self.requests

    def write(self, port: int, value: int) -> None:
        """Write a command word, or one of the words that follow the first."""
        if not port & 1:
            self._command(value)
        elif self._step == 0:
            self.mask = value
        elif self._step == 1:
            self.base, self._step = value & 0xF8, 2
        elif self._step == 2:
            self._step = 3 if self._wants_4 else 0
        else:
            self._step = 0

    def _command(self, value: int) -> None:
        if value & _INIT:
            self.requests = self.service = self.mask = 0
            self._reads_service = False
            self._step, self._wants_4 = 1, value & _WANTS_ICW4
        elif value & _OCW3:
            if value & _READS:
                self._reads_service = bool(value & _READ_ISR)
        elif value >> 5 in _EOI:
            self.service &= self.service - 1  # the lowest line is the highest in priority
        elif value >> 5 in _SPECIFIC_EOI:
            self.service &= ~(1 << (value & 7))


class InterruptControllers:
    """The pair, with lines 0 to 15."""

    def __init__(self) -> None:
        """Begin with all lines low, as after power-on."""
        self._first, self._second = _Controller(), _Controller()

    @property
    def waits(self) -> bool:
        """True if an interrupt waits for the processor."""
        self._first.cascade(self._second.next() >= 0)
        return self._first.next() >= 0

    def set_line(self, line: int, level: bool) -> None:
        """Set a device's line."""
        (self._first if line < 8 else self._second).set_line(line & 7, level)

    def masks(self, line: int) -> bool:
        """True if the guest does not want the interrupts of a line."""
        return bool((self._first if line < 8 else self._second).mask >> (line & 7) & 1)

    def pulse(self, line: int) -> None:
        """Raise a line and let it go, its request stays: the timer."""
        self.set_line(line, False)
        self.set_line(line, True)

    def acknowledge(self) -> int:
        """Answer the processor with the vector to be served; a spurious one where none waits."""
        line = self._first.next()
        if line < 0:
            return self._first.base + _SPURIOUS
        vector = self._first.serve(line)
        if line != _CASCADE:
            return vector
        line = self._second.next()
        return self._second.serve(line) if line >= 0 else self._second.base + _SPURIOUS

    def trigger_by_level(self, line: int) -> None:
        """Have the level of a line ask, as firmware does for those of PCI."""
        (self._first if line < 8 else self._second).levels |= 1 << (line & 7)

    def read_levels(self, port: int) -> int:
        """Serve an IN of one of `LEVELS`."""
        return (self._second if port & 1 else self._first).levels

    def write_levels(self, port: int, value: int) -> None:
        """Serve an OUT of one of `LEVELS`."""
        controller = self._second if port & 1 else self._first
        controller.levels = value & 0xFF & ~_ALWAYS_EDGES[port & 1]

    def read(self, port: int) -> int:
        """Serve an IN of one of `PORTS`."""
        return (self._first if port < 0xA0 else self._second).read(port)

    def write(self, port: int, value: int) -> None:
        """Serve an OUT of one of `PORTS`."""
        (self._first if port < 0xA0 else self._second).write(port, value & 0xFF)

    def state(self) -> dict[str, Any]:
        """The state as plain values."""
        return {"first": self._first.state(), "second": self._second.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self._first.restore(state["first"])
        self._second.restore(state["second"])

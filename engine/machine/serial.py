"""The serial port of the console: a 16550A at 0x3f8, line 4. Source: National's PC16550D.

What is written goes out at once, and what comes in waits until the guest reads it.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

PORTS: Final = range(0x3F8, 0x400)
LINE: Final = 4
_DATA, _ENABLE, _IDENTIFY, _LCR, _MCR, _LSR, _MSR, _SCRATCH = range(8)
_DIVISOR: Final = 0x80
_LOOP: Final = 0x10
_OUT2: Final = 8
_RECEIVED, _EMPTY, _NO_INTERRUPT = 4, 2, 1
_ENABLE_RECEIVED, _ENABLE_EMPTY = 1, 2
_FIFO, _FIFO_ON, _FIFO_SIZE = 1, 0xC0, 16
_READY, _SENT = 1, 0x60


class SerialPort:
    """A 16550A whose line is never busy."""

    def __init__(self, put: Callable[[bytes], None], line: Callable[[bool], None]) -> None:
        """Begin as after power-on.

        Args:
            put: takes what the guest writes.
            line: sets the interrupt's line.
        """
        self._put = put
        self._line = line
        self._registers = [0] * 8
        self._divisor = [0, 0]
        self._fifo = 0
        self._empty = False
        self._received: deque[int] = deque()

    @property
    def listens(self) -> bool:
        """True if the guest wants to be told of input, and has read what there was."""
        return bool(self._registers[_ENABLE] & _ENABLE_RECEIVED) and not self._received

    def give(self, data: bytes) -> None:
        """Let bytes come in."""
        self._received.extend(data)
        self._update()

    def _update(self) -> None:
        enabled = self._registers[_ENABLE]
        wants = (enabled & _ENABLE_EMPTY and self._empty) or (
            enabled & _ENABLE_RECEIVED and self._received
        )
        self._line(bool(wants and self._registers[_MCR] & _OUT2))

    def read(self, port: int) -> int:
        """Serve an IN of one of `PORTS`."""
        number = port - PORTS.start
        value = self._registers[number]
        if number < 2 and self._registers[_LCR] & _DIVISOR:
            return self._divisor[number]
        if number == _DATA:
            value = self._received.popleft() if self._received else 0
        elif number == _IDENTIFY:
            value = self._identified() | (_FIFO_ON if self._fifo & _FIFO else 0)
        elif number == _LSR:
            value = _SENT | (_READY if self._received else 0)
        elif number == _MSR:
            value = self._modem()
        self._update()
        return value

    def _identified(self) -> int:
        enabled = self._registers[_ENABLE]
        if enabled & _ENABLE_RECEIVED and self._received:
            return _RECEIVED
        if enabled & _ENABLE_EMPTY and self._empty:
            self._empty = False
            return _EMPTY
        return _NO_INTERRUPT

    def _modem(self) -> int:
        """Carrier, ready and clear to send; in loopback the modem's outputs are its inputs."""
        control = self._registers[_MCR]
        if not control & _LOOP:
            return 0xB0
        return (control & 1) << 5 | (control & 2) << 3 | (control & 4) << 4 | (control & 8) << 4

    def write(self, port: int, value: int) -> None:
        """Serve an OUT of one of `PORTS`."""
        number, value = port - PORTS.start, value & 0xFF
        if number < 2 and self._registers[_LCR] & _DIVISOR:
            self._divisor[number] = value
        elif number == _DATA:
            self._send(value)
        elif number == _ENABLE:
            if value & ~self._registers[_ENABLE] & _ENABLE_EMPTY:
                self._empty = True
            self._registers[_ENABLE] = value & 0x0F
        elif number == _IDENTIFY:
            self._fifo = value
        elif number == _MCR:
            self._registers[_MCR] = value & 0x1F
        elif number not in (_LSR, _MSR):
            self._registers[number] = value
        self._update()

    def _send(self, value: int) -> None:
        self._empty = True
        if self._registers[_MCR] & _LOOP:
            if len(self._received) < _FIFO_SIZE:  # what is more is lost, as on the chip
                self._received.append(value)
        else:
            self._put(bytes((value,)))

    def state(self) -> dict[str, Any]:
        """The state as plain values."""
        return {
            "registers": list(self._registers),
            "divisor": list(self._divisor),
            "fifo": self._fifo,
            "empty": self._empty,
            "received": bytes(self._received),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state; the interrupt's line is a part of the controller's."""
        self._registers[:] = (bytes(state["registers"]) + bytes(8))[:8]
        self._divisor[:] = (bytes(state["divisor"]) + bytes(2))[:2]
        self._fifo, self._empty = int(state["fifo"]), bool(state["empty"])
        self._received = deque(state["received"])

"""A log of a machine's console, so that a stretch of a boot can run again.

What was written is passed on once; what was typed comes again when it came.
"""

from collections.abc import Callable
from typing import Final

from engine.machine.clock import MachineClock
from engine.machine.machine import ConsoleInput

_TYPED_MOST: Final = 64 << 20
"""Bytes of input that are kept; a boot that was given more has no past any more."""


class ConsoleLog:
    """The console of a machine that may run again; a `ConsoleInput`.

    Attributes:
        clock: of the machine; set before it runs.
        whole: all that was typed is kept.
    """

    clock: MachineClock

    def __init__(self, given: ConsoleInput, put: Callable[[bytes], None]) -> None:
        """Stand between the machine and its console.

        Args:
            given: what is typed.
            put: takes what the machine writes for the first time.
        """
        self._given, self._put = given, put
        self._typed: list[tuple[int, bytes]] = []
        self._size = 0
        self._next = 0
        self._latest = -1
        self._written = self._passed = 0
        self.whole = True

    @property
    def position(self) -> tuple[int, int]:
        """Bytes that were written, and pieces that were typed, at this moment."""
        return self._written, self._next

    @position.setter
    def position(self, position: tuple[int, int]) -> None:
        self._written, self._next = position

    @property
    def over(self) -> bool:
        """True if nothing comes any more."""
        return self._next == len(self._typed) and self._given.over

    def take(self, nanoseconds: int) -> bytes:
        """Give what came at this moment, or what comes now if it is a new one."""
        now = self.clock.now
        if self._next < len(self._typed):
            at, data = self._typed[self._next]
            if now < at:
                return b""
            self._next += 1
            return data
        if now < self._latest:
            return b""
        data = self._given.take(nanoseconds)
        self._latest = now
        if data:
            self._size += len(data)
            self.whole = self.whole and self._size <= _TYPED_MOST
            if self.whole:
                self._typed.append((now, data))
                self._next += 1
        return data

    def begin_again(self) -> None:
        """Begin another history: forget what came later, and pass on what is written."""
        del self._typed[self._next :]
        self._latest = -1
        self._passed = self._written

    def put(self, data: bytes) -> None:
        """Take what the machine writes."""
        fresh = self._written + len(data) - self._passed
        self._written += len(data)
        if fresh > 0:
            self._passed = self._written
            self._put(data[-fresh:])

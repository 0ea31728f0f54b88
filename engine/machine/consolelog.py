"""A log of a machine's console, so that a boot, or a stretch of it, can run again.

What was written is passed on once; what was typed comes again when it came.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from engine.machine.clock import MachineClock
from engine.machine.machine import ConsoleInput

_TYPED_MOST: Final = 64 << 20
"""Bytes of input that are kept; a boot that was given more has no past any more."""


class ConsoleTyped(Struct, frozen=True):
    """Input that came to a console at once.

    Attributes:
        time: in nanoseconds since power-on.
        waiting: the processor waited for it; else it came while the machine ran.
        data: the bytes; none where nothing comes any more from then on.
        stops: no input: the machine was stopped while it asked for some.
    """

    time: int
    waiting: bool
    data: bytes
    stops: bool = False

    @property
    def is_end(self) -> bool:
        """True if the input ended then."""
        return not self.data and not self.stops


class ConsoleLog:
    """The console of a machine that may run again; a `ConsoleInput`.

    Attributes:
        whole: all that was typed is kept.
        stopping: somebody stops the machine.
    """

    _clock: MachineClock
    _halt: Callable[[], None]

    def __init__(
        self,
        given: ConsoleInput,
        put: Callable[[bytes], None],
        known: Iterable[ConsoleTyped] = (),
        tell: Callable[[ConsoleTyped], object] | None = None,
    ) -> None:
        """Stand between the machine and its console; `attach` says which machine it is.

        Args:
            given: what is typed, behind all that is known.
            put: takes what the machine writes for the first time.
            known: input that came when the same boot ran before, in its order.
            tell: is told of input that comes for the first time; None for nobody.
        """
        self._given, self._put, self._tell = given, put, tell
        self._typed = list(known)
        self._size = 0
        self._next = 0
        self._latest = -1
        self._written = self._passed = 0
        self.whole = True
        self.stopping = False

    def attach(self, clock: MachineClock, halt: Callable[[], None]) -> None:
        """Say which machine it is, before it runs.

        Args:
            clock: of the machine.
            halt: stops the machine.
        """
        self._clock, self._halt = clock, halt

    @property
    def position(self) -> tuple[int, int]:
        """Bytes that were written, and pieces that were typed, at this moment."""
        return self._written, self._next

    @position.setter
    def position(self, position: tuple[int, int]) -> None:
        self._written, self._next = position

    def follow(self, other: "ConsoleLog") -> None:
        """Let the same be typed as in another run of the boot; what that has written is known.

        Args:
            other: of that run, which is over.
        """
        self.type_again(other)
        self._passed = other._passed

    def type_again(self, other: "ConsoleLog") -> None:
        """Let the same be typed at the same times as in another run, which was another boot.

        Args:
            other: of that run, which is over.
        """
        self._typed, self._size, self.whole = list(other._typed), other._size, other.whole

    @property
    def over(self) -> bool:
        """True if nothing comes any more."""
        if self._next and self._typed[self._next - 1].is_end:
            return True
        return self._next == len(self._typed) and self._given.over

    def take(self, nanoseconds: int) -> bytes:
        """Give what came at this moment, or what comes now if it is a new one."""
        now = self._clock.now
        if self._next < len(self._typed):
            came = self._typed[self._next]
            # At one moment the machine may ask twice: while it runs, and when it waits.
            if now < came.time or (now == came.time and came.waiting and not nanoseconds):
                return b""
            self._next += 1
            if came.stops:
                self._halt()
            return came.data
        if now < self._latest or self.over:
            return b""
        data = self._given.take(nanoseconds)
        self._latest = now
        stops = self.stopping and not data
        if data or stops or self._given.over:
            self._came(ConsoleTyped(now, nanoseconds > 0, data, stops))
        if stops:
            self._halt()
        return data

    def _came(self, typed: ConsoleTyped) -> None:
        """Keep input that has come for the first time."""
        if self._tell is not None:
            self._tell(typed)
        self._size += len(typed.data)
        self.whole = self.whole and self._size <= _TYPED_MOST
        if self.whole:
            self._typed.append(typed)
            self._next += 1

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

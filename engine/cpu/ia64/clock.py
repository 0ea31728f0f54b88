"""The guest's clock: ticks whenever control goes elsewhere than to the next slot.

Generated code tells where it ends: a block that is left writes the address behind its last
slot to `expected`; coming to any other address is a tick.
"""

from typing import Final, cast

FOREVER: Final = 1 << 62
_BEGINNING: Final = (0, [0, 0, 0], False, False, -1)
"""The position of a thread that has not run."""


class Ia64Clock:
    """Ticks, quanta, and the windows in which no time passes.

    Attributes:
        running: whether code tells where it ends.
        expected: the address that is no tick to come to, in a list that code writes to.
        ticks: so far.
        end: the tick at which a quantum is used up.
        last_branches: addresses behind the last two slots from which control went elsewhere,
            and where the last of them led to.
    """

    def __init__(self) -> None:
        self.running = False
        self.expected = [0]
        self.ticks = 0
        self.last_branches = memoryview(bytearray(24)).cast("Q")
        self.end = FOREVER
        self._told = self._stopped = False
        self._stepped_to = -1  # where a step has left off: its tick is still to be counted
        self._windows: tuple[tuple[int, int], ...] = ()

    def windows(self, *windows: tuple[int, int]) -> None:
        """(start, size) of windows of the machinery."""
        self._windows = windows

    def inside(self, ip: int) -> bool:
        """True if an address is in one of them."""
        return any(start <= ip < start + size for start, size in self._windows)

    def grant(self, quantum: int | None) -> None:
        """Let so many ticks pass from now on; any number for None."""
        self.end = FOREVER if quantum is None else self.ticks + quantum

    def enter(self, ip: int) -> None:
        """Before a run: going on where the core was is no tick."""
        if not (self._stopped or self._told or ip == self._stepped_to or self.inside(ip)):
            self.expected[0] = ip
        self._told = self._stopped = False
        self._stepped_to = -1

    def stepped(self, ip: int) -> None:
        """A step or a halt came to `ip`; whether that is a tick is decided when it goes on."""
        self._stepped_to = ip

    def coming(self, ip: int) -> int:
        """The tick in which what stands at `ip` executes, where the program stands."""
        jumped = self._stopped or self._told or ip == self._stepped_to
        return self.ticks + (jumped and ip != self.expected[0] and not self.inside(ip))

    def position(self) -> object:
        """The part of its state that is the running thread's."""
        left = self.last_branches.tolist()
        return self.expected[0], left, self._told, self._stopped, self._stepped_to

    def go_on(self, position: object) -> None:
        """Go on with another thread; None for one that begins."""
        state = cast(tuple[int, list[int], bool, bool, int], position or _BEGINNING)
        self.expected[0], left, self._told, self._stopped, self._stepped_to = state
        for index, value in enumerate(left):
            self.last_branches[index] = value

    def expect(self, address: int) -> None:
        """Between two runs: only going on at this address is no tick."""
        self.expected[0] = address
        self._told = True

    def tick(self, ip: int) -> bool:
        """Control came to `ip`; whether the granted ticks are used up before it."""
        expected = self.expected
        if ip == expected[0] or self.inside(ip):
            return False
        if self.ticks >= self.end:
            self._stopped = True
            return True
        self.ticks += 1
        branches = self.last_branches
        branches[1] = branches[0]
        branches[0] = expected[0]
        branches[2] = ip
        expected[0] = ip
        return False

"""System calls that are carried out inside the emulator's callback.

To leave Unicorn and enter it again takes longer than most calls do. What is not to be done to it
from a callback, as forgetting translations, waits until it has been left.
"""

from collections.abc import Callable
from typing import Final

from engine.cpu.unicorn_clock import EXPECTED, UnicornClock

_WORD: Final = (1 << 64) - 1


class ServedCalls:
    """The system calls of one engine.

    Attributes:
        action: carries them out, see `engine.cpu.base.ServesCalls`; None for none.
        known: `know` has been told.
        possible: an action may be used.
        stopping: the engine stops for another reason, and what comes meanwhile is not done.
        inside: one is being carried out.
        moved: the page table has changed since the last one began.
        pending: something is to be seen to where the emulator has been left.
    """

    def __init__(
        self,
        clock: UnicornClock,
        stop: Callable[[], None],
        failed: Callable[[BaseException], bool],
    ) -> None:
        """None is carried out here yet.

        Args:
            clock: of the engine.
            stop: makes it return.
            failed: keeps an exception until it has.
        """
        self._clock, self._ticks = clock, clock.words
        self._stop = stop
        self._failed = failed
        self.action: Callable[[], bool] | None = None
        self._words = memoryview(b"")
        self._pc = 0
        self._sizes: dict[int, int] = {}
        self._asked: tuple[int, int] | None = None
        self._late: list[Callable[[], None]] = []
        self.known = self.possible = False
        self.stopping = self.inside = self.pending = self.moved = False

    def know(self, words: "memoryview[int]", pc: int | None) -> None:
        """Learn where the registers are.

        Args:
            words: the registers in place.
            pc: index of the program counter among them; None if none is to be carried out here.
        """
        self.known, self.possible = True, pc is not None
        self._words, self._pc = words, pc or 0

    def called(self, number: int) -> bool:
        """A system call is next, as this exception: True if the program goes on behind it."""
        action = self.action
        if action is None or self.stopping:
            return False
        words, pc = self._words, self._pc
        size = self._sizes.get(number)
        if size is None:
            self._asked = number, words[pc]
            self.pending = True
            return False
        words[pc] += size
        self.inside, self.moved = True, False
        try:
            done = action()
            if done and not self._clock.told():  # the instruction behind it is no jump away
                self._ticks[EXPECTED] = words[pc]
        except BaseException as error:
            done = self._failed(error)
        finally:
            self.inside = False
            words[pc] = words[pc] - size & _WORD  # Unicorn goes on from here
        if done and self._late:
            self._stop()
        return done

    def later(self, call: Callable[[], None]) -> None:
        """Do something as soon as the emulator has been left."""
        self._late.append(call)
        self.pending = True

    def settle(self) -> None:
        """The emulator has been left.

        Where it was left for a system call pc is behind that: so it is learnt how far in front
        of it the callback is asked.
        """
        self.pending = False
        late, self._late = self._late, []
        for call in late:
            call()
        if self._asked is not None:
            (number, at), self._asked = self._asked, None
            self._sizes[number] = self._words[self._pc] - at

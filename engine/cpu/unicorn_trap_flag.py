"""The trap flag, with which a program has the processor trap behind each of its instructions."""

from functools import partial

from engine.arch.base import TrapKind
from engine.arch.engines import TrapFlag
from engine.cpu.base import Stop, StopKind
from engine.cpu.unicorn_live import LiveRegisters
from engine.cpu.unicorn_state import UnicornState


class UnicornTrapFlag:
    """The trap flag of one engine.

    Attributes:
        words: host memory with the word that holds it, once it has been found.
        at: index of that word.
        bit: the flag there; 0 while it has not been found, or where there is none.
    """

    def __init__(self, state: UnicornState, flag: TrapFlag | None) -> None:
        """The flag is read through the interface until its place has been found.

        Args:
            state: the engine's registers.
            flag: where programs can set it; None where they cannot.
        """
        self._state, self._flag = state, flag
        self.words = memoryview(bytes(8)).cast("Q")
        self.at = self.bit = 0

    def find(self, live: LiveRegisters) -> bool:
        """Look for it close behind registers that are known in place; True if nothing is amiss."""
        flag, state = self._flag, self._state
        if flag is None:
            return True
        write = partial(state.write_register, flag.register)
        place = live.beside(write, state.read_register(flag.register), flag.bit)
        if place is None:
            return False
        self.words, self.at, self.bit = place.words, place.at, flag.bit
        return True

    def put(self, *, on: bool) -> None:
        """Set or clear it in place."""
        word = self.words[self.at]
        self.words[self.at] = word | self.bit if on else word & ~self.bit

    def trap(self) -> Stop | None:
        """The trap behind an instruction, while it is set."""
        flag = self._flag
        if flag is None:
            return None
        value = self.words[self.at] if self.bit else self._state.read_register(flag.register)
        return (
            Stop(StopKind.TRAP, TrapKind.SINGLE_STEP, flag.exception) if value & flag.bit else None
        )

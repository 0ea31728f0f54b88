"""System calls, and reads of the counter, that are carried out inside the emulator's callback.

To leave Unicorn and enter it again takes longer than most calls do. What is not to be done to it
from a callback, as forgetting translations, waits until it has been left.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from engine.arch.base import Arch
from engine.arch.machine import ArchCpu
from engine.cpu.unicorn_clock import EXPECTED, UnicornClock
from engine.cpu.unicorn_live import LivePlace
from engine.cpu.unicorn_trap_flag import UnicornTrapFlag
from engine.errors import GuestFaultError

_WORD: Final = (1 << 64) - 1
_READ: Final = 4
"""Bytes that tell an instruction that reads a counter."""


class ServedCalls:
    """The system calls of one engine.

    Attributes:
        action: carries them out, see `engine.cpu.base.ServesCalls`; None for none.
        counts: reads of the counter are carried out, too.
        known: `know` has been told.
        pc: place of the program counter; None while none is known, or no call is to be carried
            out here.
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
        trap_flag: UnicornTrapFlag,
    ) -> None:
        """None is carried out here yet.

        Args:
            clock: of the engine.
            stop: makes it return.
            failed: keeps an exception until it has.
            trap_flag: of the engine, to be found before `know`.
        """
        self._clock, self._ticks = clock, clock.words
        self._stop = stop
        self._failed = failed
        self._trap_flag = trap_flag
        self.action: Callable[[], bool] | None = None
        self.pc: LivePlace | None = None
        self._sizes: dict[int, int] = {}
        self._asked: tuple[int, int] | None = None
        self._late: list[Callable[[], None]] = []
        self.known = self.counts = False
        self.stopping = self.inside = self.pending = self.moved = False

    def know(self, pc: LivePlace | None) -> None:
        """Learn where the program counter is; None if no call is to be carried out here."""
        self.known, self.pc = True, pc

    def called(self, number: int) -> bool:
        """A system call is next, as this exception: True if the program goes on behind it."""
        action, place, flag = self.action, self.pc, self._trap_flag
        if action is None or place is None or self.stopping:
            return False
        words, pc, _ = place
        if flag.words[flag.at] & flag.bit:
            return False  # the processor traps behind what follows a call, Unicorn in front of it
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
        if flag.words[flag.at] & flag.bit:  # of the frame that a handler has come back from
            flag.put(on=False)
            self.later(partial(flag.put, on=True))
        if done and self._late:
            self._stop()
        return done

    def counted(self, cpu: ArchCpu, arch: Arch, forget: Callable[[], None]) -> bool:
        """An instruction is refused: True if it reads the counter, and the program goes on.

        Args:
            cpu: the engine's registers and memory.
            arch: of the guest.
            forget: makes the emulator forget the exception.
        """
        place, flag = self.pc, self._trap_flag
        if not self.counts or place is None or self.stopping:
            return False
        words, pc, _ = place
        if flag.words[flag.at] & flag.bit:
            return False
        at = words[pc]
        try:
            raw = cpu.read(at, _READ)
            after = arch.emulate_trapped(cpu, raw, at) if arch.reads_counter(raw) else None
        except GuestFaultError:
            return False
        except BaseException as error:
            return self._failed(error)
        if after is None:
            return False
        forget()
        words[pc] = after
        if not self._clock.inside(at):
            self._ticks[EXPECTED] = after
        return True

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
            assert self.pc is not None
            words, pc, _ = self.pc
            self._sizes[number] = words[pc] - at

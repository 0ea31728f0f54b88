"""The stacks of a Go program joined: a thread leaves its goroutine's for the scheduler's and back.

`systemstack`, `mcall`, `morestack` and `asmcgocall` (runtime/asm_*.s) go on upon the stack of the
thread's g0, and leave in `sched` where the goroutine goes on. Frame tables do not describe this:
what they find behind these functions is left over from before. A goroutine's outermost function
returns to `goexit`, behind which is nothing (`topofstack` of runtime/traceback.go).
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from engine.image.elf import ElfImage
from engine.image.gofunctions import ASSEMBLY
from engine.image.symbols import SymbolTable
from engine.linux.space import AddressSpace
from engine.session.guest.session import Session
from engine.session.inspect.goroutines import Goroutines, GoThread
from engine.unwind.unwinder import EndReason, UnwindEnd, Walk

_SWITCHES: Final = ("systemstack", "mcall", "morestack", "asmcgocall")
"""Functions that change to the scheduler's stack."""
_ENDS: Final = ("goexit", "rt0_go")
"""Functions that nobody has called."""

Resume = Callable[[dict[str, int], int], Walk]
"""Walks on from other registers, so many frames at the most."""


class _SwitchFunction(Struct, frozen=True):
    """The code of one of these functions: link addresses, and whether it is of `_ENDS`."""

    low: int
    high: int
    ends: bool


class _SwitchFunctions:
    """The code of all of these functions of a file."""

    def __init__(self, image: ElfImage) -> None:
        symbols = image.once(SymbolTable)
        found = [
            _SwitchFunction(one.address, one.address + max(one.size, 1), name in _ENDS)
            for name in (*_SWITCHES, *_ENDS)
            for suffix in ("", ASSEMBLY)
            for one in symbols.find_all(f"runtime.{name}{suffix}")
        ]
        self._all = sorted(found, key=lambda one: one.low)
        self._lows = [one.low for one in self._all]

    def at(self, link: int) -> _SwitchFunction | None:
        """The function that has an address; None for all others."""
        number = bisect_right(self._lows, link) - 1
        return self._all[number] if number >= 0 and link < self._all[number].high else None


class GoStacks:
    """Joins the stacks of one session's threads."""

    def __init__(self, session: Session) -> None:
        """Nothing is read yet."""
        self._session = session
        self._goroutines = Goroutines(session)
        self._roles = session.arch.roles

    def ends_in(self, space: AddressSpace) -> Callable[[int, Mapping[str, int]], bool] | None:
        """A test whether a stack ends in a frame; None for programs that are not Go's.

        Asked with an address in the frame's function, and the frame's registers.
        """
        program = self._goroutines.program(space)
        if program is None:
            return None
        places, bias = program[0].image.once(_SwitchFunctions), program[0].bias

        def ends(address: int, registers: Mapping[str, int]) -> bool:
            place = places.at(address - bias)
            if place is None:
                return False
            return place.ends or self._left(registers) is not None

        return ends

    def _left(self, registers: Mapping[str, int]) -> GoThread | None:
        """The running thread, if a frame is on its scheduler's stack; None else."""
        known = self._goroutines.thread(self._session.machine.current)
        sp = registers.get(self._roles.sp)
        if known is None or sp is None or not _within(sp, known.scheduler_stack):
            return None
        return known

    def joined(self, walk: Walk, space: AddressSpace, resume: Resume, limit: int) -> Walk:
        """The frames of a walk that has ended in such a frame, and behind them the goroutine's.

        Args:
            walk: from registers of the running thread, or of a goroutine.
            space: the memory in which the walk is.
            resume: walks on from other registers.
            limit: of frames.
        """
        program = self._goroutines.program(space)
        if program is None or not walk.frames or walk.end.reason is not EndReason.OUTERMOST:
            return walk
        last, module = walk.frames[-1], program[0]
        place = module.image.once(_SwitchFunctions).at(last.lookup - module.bias)
        if place is None or place.ends:
            return walk
        left = self._left(last.registers)
        if left is None or not left.running or not _within(left.sp, left.goroutine_stack):
            return walk
        if len(walk.frames) >= limit:
            end = UnwindEnd(EndReason.LIMIT, f"the limit of {limit} frames")
            return Walk(walk.frames, end)
        roles = self._roles
        registers = {roles.pc: left.pc, roles.sp: left.sp, roles.fp: left.fp}
        more = resume(registers, limit - len(walk.frames))
        return Walk((*walk.frames, *more.frames), more.end)


def _within(address: int, ends: tuple[int, int]) -> bool:
    return ends[0] <= address <= ends[1]

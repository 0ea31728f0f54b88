"""The stacks of a Go program joined: a thread leaves its goroutine's for the scheduler's and back.

`systemstack`, `mcall`, `morestack` and `asmcgocall` (runtime/asm_*.s) go on upon the stack of the
thread's g0, and leave in `sched` where the goroutine goes on. Frame tables do not describe this:
what they find behind these functions is left over from before. A goroutine's outermost function
returns to `goexit`, behind which is nothing (`topofstack` of runtime/traceback.go).
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.image.elf import ElfImage
from engine.image.symbols import SymbolTable
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.session.inspect.goroutines import Goroutines, GoThread
from engine.unwind.unwinder import EndReason, Frame, UnwindEnd, Walk

_SWITCHES: Final = ("systemstack", "mcall", "morestack", "asmcgocall")
"""Functions that change to the scheduler's stack."""
_ENDS: Final = ("goexit", "rt0_go")
"""Functions that nobody has called."""

Resume = Callable[[dict[str, int], int], Walk]
"""Walks on from other registers, so many frames at the most."""


class _Place(Struct, frozen=True):
    """The code of one of these functions: link addresses, and whether it is of `_ENDS`."""

    low: int
    high: int
    ends: bool


class _Places:
    """The code of all of these functions of a file."""

    def __init__(self, image: ElfImage) -> None:
        symbols = image.once(SymbolTable)
        found = [
            _Place(one.address, one.address + max(one.size, 1), name in _ENDS)
            for name in (*_SWITCHES, *_ENDS)
            for suffix in ("", ".abi0")
            for one in symbols.find_all(f"runtime.{name}{suffix}")
        ]
        self._all = sorted(found, key=lambda one: one.low)
        self._lows = [one.low for one in self._all]

    def at(self, link: int) -> _Place | None:
        """The function that has an address; None for all others."""
        number = bisect_right(self._lows, link) - 1
        return self._all[number] if number >= 0 and link < self._all[number].high else None


class GoStacks:
    """Joins the stacks of one session's threads."""

    def __init__(self, session: Session) -> None:
        """Nothing is read yet."""
        self._goroutines = Goroutines(session)
        self._roles = session.arch.roles

    def joined(self, walk: Walk, thread: Thread, resume: Resume, limit: int) -> Walk:
        """The frames of a walk as far as they are true, and behind them the goroutine's.

        Args:
            walk: by frame tables, from registers of the thread or of a goroutine.
            thread: the thread in whose memory the walk is.
            resume: walks on from other registers.
            limit: of frames.
        """
        program = self._goroutines.program(thread.space)
        if program is None:
            return walk
        module, places = program[0], program[0].image.once(_Places)
        known: GoThread | None = None
        for number, frame in enumerate(walk.frames):
            place = places.at(frame.place - module.bias)
            if place is None:
                continue
            kept = walk.frames[: number + 1]
            if place.ends:
                return _ended(kept)
            known = known or self._goroutines.thread(thread)
            sp = frame.registers.get(self._roles.sp)
            if known is None or sp is None or not _within(sp, known.scheduler_stack):
                continue
            if not known.running or not _within(known.sp, known.goroutine_stack):
                return _ended(kept)
            registers = {
                self._roles.pc: known.pc,
                self._roles.sp: known.sp,
                self._roles.fp: known.fp,
            }
            if len(kept) >= limit:
                return Walk(kept, UnwindEnd(EndReason.LIMIT, f"the limit of {limit} frames"))
            more = resume(registers, limit - len(kept))
            behind = self.joined(more, thread, resume, limit - len(kept))
            return Walk((*kept, *behind.frames), behind.end)
        return walk


def _ended(frames: tuple[Frame, ...]) -> Walk:
    return Walk(frames, UnwindEnd(EndReason.OUTERMOST, "the outermost frame has no caller"))


def _within(address: int, ends: tuple[int, int]) -> bool:
    return ends[0] <= address <= ends[1]

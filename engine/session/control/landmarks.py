"""Landmarks of a run that people find again: bookmarks, turns of threads, pieces of output."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final

from engine.errors import CommandError
from engine.history.timeline import Moment
from engine.linux.schedule import Why
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.session.protocol.views import HistoryView, MarkView

CELLS: Final = 256
"""Stretches that a view divides a run into."""
_NAME_MAX: Final = 64


class Landmarks:
    """The moments of one run.

    Attributes:
        marks: the user's bookmarks.
    """

    def __init__(self, session: Session, is_full: Callable[[], bool] = lambda: False) -> None:
        """The guest stands in front of its first instruction.

        Args:
            session: the run.
            is_full: says that no more of it is recorded: nobody can go to what comes then.
        """
        self.marks: dict[str, Moment] = {}
        self._session = session
        self._is_full = is_full
        self._turns = array("Q", (0,))
        self._threads = array("Q", (session.machine.tid,))
        self._written = array("Q")
        session.machine.moments.switching.append(self._switching)

    def _switching(self, before: Thread | None, thread: Thread | None, why: Why) -> None:
        if self._is_full():
            return
        now, tid = self._session.cpu.blocks(), 0 if thread is None else thread.tid
        if self._turns[-1] == now:
            self._threads[-1] = tid
        else:
            self._turns.append(now)
            self._threads.append(tid)

    def written(self, size: int) -> None:
        """The guest's thread at hand has written something."""
        clock = self._session.cpu.blocks()
        if not self._written or self._written[-1] != clock:
            self._written.append(clock)

    def call(self) -> tuple[int, int]:
        """Tick and instruction of the system call that is carried out."""
        session = self._session
        linux = session.arch.linux
        pc = session.seen.hooks.original_pc(session.cpu.read_register(session.arch.roles.pc))
        before = linux.syscall_before
        at = pc - linux.syscall_size if before is None else before(pc)
        return session.cpu.blocks(), at

    def mark(self, name: str, moment: Moment) -> str:
        """Give a moment a name; what it is called.

        Args:
            name: it; "" for a number that no mark has.
            moment: the moment that gets a name.

        Raises:
            CommandError: it is no name.
        """
        if not name:
            numbers = range(1, len(self.marks) + 2)
            name = next(each for n in numbers if (each := f"m{n}") not in self.marks)
        if not name.replace("-", "_").replace(".", "_").isidentifier() or len(name) > _NAME_MAX:
            raise CommandError(f"{name}: a bookmark's name begins with a letter")
        if name in ("begin", "start", "end"):
            raise CommandError(f"{name}: every run has that one")
        self.marks[name] = moment
        return name

    def mark_of(self, name: str) -> Moment:
        """The moment of a bookmark.

        Raises:
            CommandError: there is none of that name.
        """
        found = self.marks.get(name)
        if found is None:
            known = ", ".join(self.marks)
            raise CommandError(f"there is no bookmark {name}; there are {known or 'none'}")
        return found

    def unmark(self, name: str) -> None:
        """Forget a bookmark.

        Raises:
            CommandError: there is none of that name.
        """
        self.mark_of(name)
        del self.marks[name]

    def view(self, now: int, end: int, *, past: bool, checkpoints: Iterable[int]) -> HistoryView:
        """The run as a line.

        Args:
            now: the tick at which the guest stands.
            end: that of the present.
            past: whether it stands in the past.
            checkpoints: the ticks of those that there are.
        """
        bounds = [end * cell // CELLS for cell in range(CELLS + 1)]
        threads: tuple[int, ...] = ()
        if len(self._turns) > 1:
            threads = tuple(
                self._threads[max(bisect_right(self._turns, (low + high) // 2) - 1, 0)]
                for low, high in pairwise(bounds)
            )
        return HistoryView(
            now,
            end,
            past,
            tuple(
                MarkView(name, each.clock, each.pc)
                for name, each in sorted(self.marks.items(), key=lambda item: item[1])
            ),
            threads,
            _held(bounds, self._written),
            _held(bounds, array("Q", checkpoints)),
        )


def _held(bounds: list[int], ticks: "array[int]") -> bytes:
    """1 for each stretch in which there is one of some ticks, which are in order."""
    found = bytearray(len(bounds) - 1)
    if not ticks:
        return bytes(found)
    places = [bisect_left(ticks, bound) for bound in bounds[:-1]]
    places.append(bisect_right(ticks, bounds[-1]))
    for cell, (low, high) in enumerate(pairwise(places)):
        found[cell] = high > low
    return bytes(found)

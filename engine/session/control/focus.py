"""The thread that a user looks at and steps, and whether the others run meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine.errors import CommandError
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.linux.turns import Replay
from engine.session.guest.session import Session
from engine.session.inspect.threads import ThreadViews
from engine.session.protocol.views import GoroutinesView, ThreadView

if TYPE_CHECKING:  # few programs are Go's
    from engine.session.inspect.goroutine_views import GoroutineViews
    from engine.session.inspect.goroutines import Goroutine, Goroutines

_NAMED: Final = 8
"""Threads that are named to somebody who asks for one that there is not."""


class Focus:
    """The thread in sight of one run: the one that runs, until another one is chosen.

    Attributes:
        chosen: another thread than the one that runs, None for that one.
        parked: a goroutine that no thread runs, and that is looked at in place of the thread in
            sight; None for that thread.
        alone: the thread in sight gets the processor whenever it can run; the others have it only
            while it waits.
        elsewhere: the address space of the program whose frame is looked at, where that has
            called a kernel which is a guest; None where it is the thread's own.
    """

    def __init__(self, session: Session, *, alone: bool = False) -> None:
        """Look at the thread that runs.

        Args:
            session: the run.
            alone: the thread in sight gets the processor whenever it can run.
        """
        self._session = session
        self._views = ThreadViews(session)
        self._listed: tuple[ThreadView, ...] = ()
        self._listed_goroutines: GoroutinesView | None = None
        self._space = session.space
        self._places: dict[int, tuple[int, str]] = {}
        self.chosen: Thread | None = None
        self.parked: Goroutine | None = None
        self.elsewhere: AddressSpace | None = None
        self.alone = alone

    @cached_property
    def _goroutines(self) -> "Goroutines":
        """Read the goroutines of the program."""
        from engine.session.inspect.goroutines import Goroutines

        return Goroutines(self._session)

    @cached_property
    def _goroutine_views(self) -> "GoroutineViews":
        """Make views of them."""
        from engine.session.inspect.goroutine_views import GoroutineViews

        return GoroutineViews(self._session)

    @property
    def thread(self) -> Thread:
        """The thread in sight."""
        return self.chosen or self._session.machine.current

    @property
    def space(self) -> AddressSpace:
        """The address space in sight: the thread's, or as it was before the guest ran on."""
        return self._space if self._space.users else self._session.seen

    @property
    def seen(self) -> AddressSpace:
        """The address space of the frame that is looked at."""
        return self.elsewhere or self.space

    def choose(self, tid: int) -> str:
        """Look at another thread; in words which.

        Raises:
            CommandError: there is none.
        """
        machine = self._session.machine
        thread = machine.threads.get(tid)
        if thread is None or machine.current.ended:
            if tid in machine.processes:
                raise CommandError(f"process {tid} has ended; nothing of it is left to look at")
            known, more = list(machine.threads)[:_NAMED], len(machine.threads) - _NAMED
            there = " ".join(map(str, known)) or "none"
            rest = f" and {more} more" if more > 0 else ""
            raise CommandError(f"there is no thread {tid}; there are {there}{rest}")
        self.chosen = None if thread is machine.current else thread
        self.parked = None
        comm = thread.comm.decode(errors="replace")
        return f"thread {tid} ({comm}) of process {thread.pid}"

    def choose_goroutine(self, number: int) -> str:
        """Look at a goroutine: at the thread that runs it, if one does; in words which.

        Raises:
            CommandError: there is none.
        """
        if self._session.machine.current.ended:
            raise CommandError("the program has ended; nothing of it is left to look at")
        goroutine = self._goroutines.one(self.thread.space, number)
        if goroutine.runs:
            return f"goroutine {number} ({goroutine.status}), {self.choose(goroutine.thread)}"
        self.parked = goroutine
        return f"goroutine {number} ({goroutine.status})"

    @property
    def is_runner(self) -> bool:
        """True if the processor's registers are those of what is looked at."""
        return self.chosen is None and self.parked is None

    def step_alone(self, *, on: bool) -> str:
        """Let the others run while the thread in sight steps, or not; in words what holds.

        Raises:
            CommandError: a schedule is followed.
        """
        if on and isinstance(self._session.turns, Replay):
            raise CommandError("threads take their turns as in --schedule")
        self.alone = on
        if on:
            return "the thread in sight runs alone; others only while it waits"
        return "all threads run, in their turns"

    @contextmanager
    def visit(self) -> Iterator[Thread]:
        """Have the processor hold the registers of the thread in sight; the guest stands."""
        thread = self.thread
        with self._session.kernel.visit(thread):
            yield thread

    def original_pc(self, pc: int) -> int:
        """The program's own address for a pc of the thread in sight."""
        return self.thread.hooks.original_pc(pc)

    def begin(self) -> Thread:
        """The guest is about to move: the thread that is meant; none is chosen from here on."""
        thread, self.chosen, self.parked = self.thread, None, None
        self._session.kernel.prefer(thread if self.alone else None, at_once=False)
        return thread

    def goroutines(self, *, looks: bool) -> GoroutinesView:
        """The goroutines of the program in sight, which stands.

        Args:
            looks: the guest has moved since, or something else is looked at.
        """
        if looks or self._listed_goroutines is None:
            parked = 0 if self.parked is None else self.parked.id
            found = self._goroutine_views.listed(self.thread.space, self.thread, parked)
            if found != self._listed_goroutines:
                self._listed_goroutines = found
        assert self._listed_goroutines is not None, "it has just been made"
        return self._listed_goroutines

    def threads(self, *, stands: bool, looks: bool) -> tuple[ThreadView, ...]:
        """All threads now.

        Args:
            stands: the guest does: they can be looked at.
            looks: the guest has moved since, and other threads may be looked at.
        """
        machine = self._session.machine
        if stands:
            self._space = self.thread.space
            if looks:
                threads = [] if machine.current.ended else list(machine.threads.values())
                self._places = self._views.places(threads)
        listed = self._views.listed(
            self.thread if stands else None, self._places if stands else {}
        )
        if listed != self._listed:
            self._listed = listed
        return self._listed

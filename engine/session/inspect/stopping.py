"""A run up to the Nth time that a place is reached, for a backtrace there."""

from typing import TYPE_CHECKING

from engine.errors import CommandError
from engine.linux.ending import Exit
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session.inspect.backtrace import Backtrace, Backtraces
from engine.unwind.unwinder import LIMIT

if TYPE_CHECKING:
    from engine.session.guest.session import Session


class StoppedRun:
    """Takes one backtrace in the middle of a run and ends the guest there.

    Attributes:
        backtrace: None until the place was reached often enough.
        hits: times it was reached.
    """

    def __init__(
        self, session: "Session", *, hit: int, unwinder: str, limit: int | None = None
    ) -> None:
        """Nothing is placed yet.

        Args:
            session: loaded, not running.
            hit: the number of the time that counts, from 1.
            unwinder: of `engine.unwind.compare.UNWINDERS`.
            limit: of frames.
        """
        self.backtrace: Backtrace | None = None
        self.hits = 0
        self._session = session
        self._hit = hit
        self._unwinder = unwinder
        self._limit = limit or LIMIT
        self._backtraces = Backtraces(session)

    def at_place(self, text: str) -> None:
        """Stop where a probe at PLACE is hit.

        Raises:
            PlaceError: there is no such place.
            ProbeRejectedError: no probe can stand there.
        """
        probing = self._session.probes()
        places = probing.placing.places.resolve(text)
        probing.place(
            (place, Kprobe(pre_handler=self._reached, rules=place.rules), lambda probe: None)
            for place in places
        )

    def in_syscall(self, name: str) -> None:
        """Stop in a system call.

        Raises:
            CommandError: there is none of that name.
        """
        if name not in self._session.arch.linux.syscalls.values():
            raise CommandError(
                f"--syscall {name}: {self._session.arch.name} has none of that name"
            )

        def entered(number: int, called: str, arguments: tuple[int, ...]) -> None:
            if called == name and self.backtrace is None:
                self._count(called)

        self._session.hooks.syscall_enter = entered

    def _reached(self, probe: Kprobe, regs: PtRegs) -> None:
        if self.backtrace is None:
            self._count("")

    def _count(self, syscall: str) -> None:
        self.hits += 1
        if self.hits == self._hit:
            self.backtrace = self._backtraces.take(
                syscall=syscall, unwinder=self._unwinder, limit=self._limit
            )
            self._session.process.exit = Exit(limit="bt")

"""The threads whose events a trace takes: those of some processes, or those of some names."""

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final, Protocol

from engine.escaping import escaped
from engine.session.protocol.report import Report
from engine.session.protocol.requests import TaskChoice

_SHOWN: Final = 10


class NamedTasks(Protocol):
    """The threads that have run.

    Attributes:
        comms: their names by id.
        pids: their processes by id.
    """

    @property
    def comms(self) -> Mapping[int, bytes]:
        """See the class."""

    @property
    def pids(self) -> Mapping[int, int]:
        """See the class."""


class Tasks:
    """The choice of threads of one run.

    Attributes:
        chosen: tells of a thread, by its id, whether it is one of them, by the name that it has
            now; None where all are.
    """

    def __init__(self, machine: NamedTasks, choice: TaskChoice) -> None:
        """Choose of threads; both options have to hold where both are given.

        Args:
            machine: has the threads, which may come and go.
            choice: a process's id stands for all of its threads, a thread's for itself.
        """
        self._machine = machine
        self._choice = choice
        self._ids = frozenset(choice.pids)
        self._named: dict[bytes, bool] = {}
        self.chosen: Callable[[int], bool] | None = None
        if choice.pids and choice.comms:
            self.chosen = lambda thread: self._by_id(thread) and self._by_name(thread)
        elif choice.pids or choice.comms:
            self.chosen = self._by_id if choice.pids else self._by_name

    def _by_id(self, thread: int) -> bool:
        return thread in self._ids or self._machine.pids.get(thread) in self._ids

    def _by_name(self, thread: int) -> bool:
        comm = self._machine.comms.get(thread, b"")
        found = self._named.get(comm)
        if found is None:
            name = comm.decode(errors="surrogateescape")
            found = any(fnmatchcase(name, glob) for glob in self._choice.comms)
            self._named[comm] = found
        return found

    def remarks(self) -> Iterator[Report]:
        """After the run: what was asked for and was never there, and who was."""
        machine, choice = self._machine, self._choice
        names = {name.decode(errors="surrogateescape") for name in machine.comms.values()}
        names |= {name.decode(errors="surrogateescape") for name in self._named}
        missing = [f"--pid {pid}" for pid in choice.pids if pid not in machine.pids]
        missing += [
            f"--comm {escaped(glob)}"
            for glob in choice.comms
            if not any(fnmatchcase(name, glob) for name in names)
        ]
        if not missing:
            return
        there = [
            f"{thread} {escaped(machine.comms[thread])}"
            + (f" (of process {pid})" if pid != thread else "")
            for thread, pid in machine.pids.items()
        ]
        more = len(there) - _SHOWN
        tail = (f"and {more} more",) if more > 0 else ()
        head = f"{', '.join(missing)}: the guest had no such process or thread; there were"
        yield Report((head, *there[:_SHOWN], *tail))

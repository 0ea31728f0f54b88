"""The branches of a run: several futures of one past, each a run of its own, kept side by side."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.errors import CommandError
from engine.session.control.standpoint import Standpoint
from engine.session.control.switches import RunSwitches
from engine.session.control.told_events import ToldEvents
from engine.session.protocol import events as ev
from engine.session.protocol.views import Origin, RunState

if TYPE_CHECKING:  # few runs are recorded
    from engine.session.control.travel import Travel

FIRST: Final = "main"
"""Name of the branch that a program starts with."""
MOST: Final = 8
"""Branches that there may be."""
BUDGET: Final = 2 << 30
"""Bytes that all of them may take before another one is made."""
_NAME_MAX: Final = 32


class KeptRun(Struct):
    """A run and all that a front end knows of it.

    Attributes:
        place: where the front end stands in it.
        told: tells its events.
        switches: what is traced in it.
        context: what was told of its files, programs and kinds of events.
        calls: made when the front end has last looked.
        origin: who has changed registers last.
        exit_code: of its end; None before.
    """

    place: Standpoint
    told: ToldEvents
    switches: RunSwitches
    context: list[ev.SessionEvent]
    calls: int = 0
    origin: Origin = ""
    exit_code: int | None = None

    @property
    def travel(self) -> "Travel":
        """The way to its past."""
        assert self.place.travel is not None, "only recorded runs have branches"
        return self.place.travel


class _BranchRecord(Struct):
    """A branch.

    Attributes:
        run: it; None for the one at hand.
        parent: name of the one that it has left; "" for the first one.
        clock: the tick at which it did.
        entries: of the journal up to there, which both have.
    """

    run: KeptRun | None = None
    parent: str = ""
    clock: int = 0
    entries: int = 0


class Branches:
    """All branches of one front end's guest.

    Attributes:
        current: name of the one at hand.
    """

    def __init__(self) -> None:
        """There is one."""
        self.current = FIRST
        self._all: dict[str, _BranchRecord] = {FIRST: _BranchRecord()}

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(self._all)

    def name(self, wanted: str) -> str:
        """The name of a new branch.

        Raises:
            CommandError: it is none, or there is one of that name.
        """
        if not wanted:
            numbers = range(1, len(self._all) + 2)
            return next(each for n in numbers if (each := f"b{n}") not in self._all)
        if not wanted.replace("-", "_").replace(".", "_").isidentifier() or (
            len(wanted) > _NAME_MAX
        ):
            raise CommandError(f"{wanted}: a branch's name begins with a letter")
        if wanted in self._all:
            raise CommandError(f"there is a branch {wanted} already; switch {wanted} goes to it")
        return wanted

    def check_room(self, run: KeptRun) -> None:
        """See that there is room for another one.

        Args:
            run: the one at hand.

        Raises:
            CommandError: there is none.
        """
        way = "branch -d NAME gives one up"
        if len(self._all) >= MOST:
            raise CommandError(f"there are {MOST} branches already; {way}")
        taken = sum(self.cost(name, run) for name in self._all)
        if taken + run.place.present.session.ram.used() > BUDGET:
            raise CommandError(f"the branches take {_size(taken)} already; {way}")

    def cost(self, name: str, at_hand: KeptRun) -> int:
        """Bytes that a branch takes: memory of its guest, and of the journal what is its own."""
        branch = self._all[name]
        run = branch.run or at_hand
        recorder = run.travel.recorder
        journal, parent = recorder.journal, self._all.get(branch.parent)
        shared = (parent.run or at_hand).travel.recorder.journal.contents if parent else {}
        own = sum(map(len, journal.raw[branch.entries :]))
        own += sum(len(data) for key, data in journal.contents.items() if key not in shared)
        inputs = recorder.inputs.size if recorder.inputs is not None else 0
        return run.place.present.session.ram.used() + own + inputs

    def add(self, name: str, old: KeptRun, clock: int, entries: int) -> None:
        """A branch has been made, and is at hand.

        Args:
            name: of it.
            old: the run that it has left.
            clock: the tick at which it did.
            entries: of the journal up to there.
        """
        self._all[self.current].run = old
        self._all[name] = _BranchRecord(None, self.current, clock, entries)
        self.current = name

    def switch(self, name: str, old: KeptRun) -> KeptRun:
        """Another branch is at hand; its run.

        Raises:
            CommandError: there is none of that name, or it is at hand.
        """
        found = self._of(name).run
        if found is None:
            raise CommandError(f"branch {name} is at hand")
        self._all[self.current].run = old
        self._all[name].run, self.current = None, name
        return found

    def remove(self, name: str) -> KeptRun:
        """Forget a branch; its run, which is to be closed.

        Raises:
            CommandError: there is none of that name, or it is at hand.
        """
        found = self._of(name).run
        if found is None:
            raise CommandError(f"branch {name} is at hand; switch to another one first")
        del self._all[name]
        return found

    def others(self) -> Iterator[KeptRun]:
        """The runs that are not at hand."""
        return (branch.run for branch in self._all.values() if branch.run is not None)

    def run(self, name: str, at_hand: KeptRun) -> KeptRun:
        """The run of a branch.

        Raises:
            CommandError: there is none of that name.
        """
        return self._of(name).run or at_hand

    def restarted(self) -> None:
        """The run at hand has been started afresh: it has left no other one."""
        self._all[self.current] = _BranchRecord()

    def _of(self, name: str) -> _BranchRecord:
        found = self._all.get(name)
        if found is None:
            raise CommandError(f"there is no branch {name}; there are {', '.join(self._all)}")
        return found

    def lines(self, at_hand: KeptRun) -> list[str]:
        """The branches as a table."""
        rows = [("", "Name", "From", "Ticks", "Memory", "State")]
        for name, branch in self._all.items():
            run = branch.run or at_hand
            running = run.place.present.running
            state = running.reason if running.state is not RunState.READY else "ready"
            if branch.run is None and run.place.in_past:
                state = "looked at in its past"
            origin = f"{branch.parent} at {branch.clock}" if branch.parent else "-"
            ticks = run.travel.present().clock
            mark = "*" if branch.run is None else ""
            rows.append((mark, name, origin, str(ticks), _size(self.cost(name, run)), state))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        found = []
        for row in rows:
            cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
            found.append(" ".join(cells).rstrip())
        return found


def _size(size: int) -> str:
    return f"{size >> 20} MB" if size >= 10 << 20 else f"{-(-size >> 10)} KB"

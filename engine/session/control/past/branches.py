"""The branches of a run: several futures of one past, each a run of its own, kept side by side."""

import time
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.history.inputs import HostInputs
from engine.history.recording import RunRecorder
from engine.linux.fs.vfs import OpenFile
from engine.session.control.guest import DebuggedGuest
from engine.session.control.past.position import RunPosition
from engine.session.control.past.travel import Travel
from engine.session.control.runs import EventTeller, KeptRun
from engine.session.control.sight import RunSight
from engine.session.guest.branch import (
    BranchSession,
    RecordedBranchSession,
    check_branching,
    copied_shares,
)
from engine.session.program.recorded import RecordedGuest
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import HistoryView, RunState, StopCause

FIRST: Final = "main"
"""Name of the branch that a program starts with."""
MOST: Final = 8
"""Branches that there may be."""
BUDGET: Final = 2 << 30
"""Bytes that all of them may take before another one is made."""
_NAME_MAX: Final = 32


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
    """The branches of one front end's guest.

    Attributes:
        current: name of the one at hand.
    """

    def __init__(self) -> None:
        """There is one."""
        self.current = FIRST
        self._all: dict[str, _BranchRecord] = {FIRST: _BranchRecord()}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all branches."""
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
        """Take another branch to hand: the run of it.

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


_ASK: Final = 0.02
"""Seconds between two looks at whether to go on."""


class BranchLeap:
    """The way of a guest from its first instruction to the moment of another one.

    Attributes:
        moment: the moment at which the branch begins.
        script: what came into the other one from its host.
        remarks: what the user has to know of the branch.
    """

    def __init__(self, place: RunPosition) -> None:
        """Go to where a front end stands.

        Raises:
            CommandError: no branch can leave there.
        """
        travel = place.travel
        assert travel is not None, "the run is recorded"
        self._old = place.present.session
        recorder = travel.recorder
        check_branching(self._old, recorder.inputs)
        here = place.here
        if here.running.ended or here.session.machine.exit is not None:
            raise CommandError("the program has ended here; a branch leaves an earlier moment")
        if here.session.kernel.waiting_in:
            raise CommandError(
                f"the program waits in {here.session.kernel.waiting_in}() here; a branch leaves "
                "before that or behind it"
            )
        self.moment = travel.now()
        self._travel = travel
        self._marks = {
            name: moment
            for name, moment in travel.landmarks.marks.items()
            if moment <= self.moment
        }
        assert recorder.inputs is not None, "it was seen to"
        self.script: HostInputs = recorder.inputs
        writable = copied_shares(self._old)
        self.remarks: tuple[str, ...] = ()
        if writable:
            self.remarks = (
                f"what it writes to {', '.join(writable)} stays its own, in memory: the host's "
                "files are as the run before has left them",
            )

    def session(self, streams: tuple[OpenFile | None, ...] | None) -> BranchSession:
        """The guest, in front of its first instruction.

        Args:
            streams: its standard streams; the host's if None.

        Raises:
            ImageError: the program cannot be run any more.
        """
        opened = self._old.opened
        if isinstance(opened, RecordedGuest):
            parent = self._old if isinstance(self._old, RecordedBranchSession) else None
            return RecordedBranchSession(self._old.config, streams, opened, parent)
        return BranchSession(self._old.config, streams, opened)

    def carry_out(self, travel: Travel, guest: DebuggedGuest, goes_on: Callable[[], bool]) -> None:
        """Bring the guest there.

        Args:
            travel: the way to its past.
            guest: it, in front of its first instruction.
            goes_on: asked now and then: False ends it.

        Raises:
            CommandError: that was cut.
            ReenactmentError: it does something else than the other one.
        """
        session, recorder = guest.session, travel.recorder
        assert isinstance(session, BranchSession), "it was made here"
        assert isinstance(recorder, RunRecorder), "it is recorded"
        due = time.monotonic() + _ASK

        def asked() -> bool:
            nonlocal due
            if time.monotonic() < due:
                return True
            due = time.monotonic() + _ASK
            return goes_on()

        if not session.reenact(
            recorder, self._travel.recorder.journal, self.script, self.moment, asked
        ):
            raise CommandError("interrupted: there is no new branch")
        travel.landmarks.marks.update(self._marks)
        guest.running.state = RunState.STOPPED


class BranchedRuns:
    """The runs of one front end's guest, of which one is at hand."""

    def __init__(
        self,
        sight: RunSight,
        telling: EventTeller,
        mode: Mode,
        listens: Callable[[], bool],
        begin: "Callable[[BranchLeap, KeptRun], object]",
    ) -> None:
        """There is one run.

        Args:
            sight: has the run at hand.
            telling: tells what happens in this run.
            mode: strictness of placement.
            listens: hears what has come in while a run is lived through: whether to go on.
            begin: has a run at hand that a leap has brought to a moment of a given run. A
                `KprobeTuiError` says that it cannot be brought there, `Cut` that the user does
                not want it any more; the given run is at hand as before then.
        """
        self._mode = mode
        self._listens = listens
        self._sight, self._begin = sight, begin
        self._telling = telling
        self._branches = Branches()

    def compare(self, command: cmd.CompareBranches) -> str:
        """Compare two branches; the table, in words.

        Raises:
            KprobeTuiError: they cannot be compared.
        """
        run = self._recorded()
        other = command.other or self._branches.current
        return "\n".join(self._compare(command.one, other, run))

    def delete(self, command: cmd.DeleteBranch) -> str:
        """Give a branch up; in words.

        Raises:
            CommandError: there is none of that name, or it is at hand.
        """
        self._recorded()
        self._branches.remove(command.name).place.close()
        return f"branch {command.name} is gone"

    def start(self, command: cmd.StartBranch) -> str:
        """Go on from the moment at hand in a run of its own; in words.

        Raises:
            KprobeTuiError: no branch can leave there.
        """
        return self._leave(lambda run: self._start(command.name, run))

    def switch(self, command: cmd.SwitchBranch) -> str:
        """Go to another branch; in words.

        Raises:
            CommandError: there is none of that name, or it is at hand.
        """
        return self._leave(lambda run: self._switch(command.name, run))

    def _recorded(self) -> KeptRun:
        """The run at hand, which has to be recorded.

        Raises:
            CommandError: it is not.
        """
        run = self._sight.run
        run.place.need_history()
        return run

    def _leave(self, go: Callable[[KeptRun], str]) -> str:
        """Have another run at hand.

        Args:
            go: leads to it from the one at hand; in words.
        """
        run = self._recorded()
        running = run.place.here.running
        if running.machine is not None:
            raise CommandError("in the middle of a hit; let it finish first")
        if running.state is RunState.RUNNING:
            raise CommandError("the program is running; Ctrl-C stops it")
        self._sight.leave()
        said = go(run)
        self._sight.arrive()
        return said

    def _compare(self, one: str, other: str, run: KeptRun) -> list[str]:
        """Two branches side by side, with what is recorded now."""
        from engine.session.control.past.comparison import (
            compared,  # few are compared
            compared_events,
        )
        from engine.session.control.past.log import LogContent, RecordedSources

        runs, wide = (self.run(one), self.run(other)), max(len(one), len(other))
        sides = one.ljust(wide), other.ljust(wide)
        switches, probes = run.switches, run.place.present.probes
        wanted = LogContent.of(RecordedSources(probes, switches.graph, switches.kernel))
        return [
            *compared(sides, runs),
            *compared_events(sides, runs, wanted, self._mode, self._listens),
        ]

    def _start(self, wanted: str, run: KeptRun) -> str:
        """Go on from the moment at hand in a run of its own."""
        branches, telling = self._branches, self._telling
        name, parent = branches.name(wanted), branches.current
        leap = BranchLeap(run.place)
        branches.check_room(run)
        telling.hold()
        try:
            self._begin(leap, run)
        finally:
            held = telling.release()
        run.place.rest()
        branches.add(name, run, leap.moment.clock, leap.moment.at)
        telling.out(ev.Branched(name))
        for event in held:
            telling.out(event)
        there = self._sight.run
        self._retell(there)
        running = there.place.here.running
        running.state, running.cause = RunState.STOPPED, StopCause.ARRIVED
        running.reason = f"branch {name} leaves {parent} at tick {leap.moment.clock}"
        return "\n".join((running.reason, *leap.remarks))

    def _switch(self, name: str, run: KeptRun) -> str:
        """Go to another branch, with what is placed and traced now."""
        telling, rows = self._telling, self._sight.place.present.probes.rows
        other = self._branches.switch(name, run)
        run.place.rest()
        self._sight.take(other)
        telling.out(ev.Branched(name))
        for event in other.context:
            telling.out(event)
        inputs = other.travel.recorder.inputs
        if inputs is not None:
            inputs.come_back()
        for failure in self._sight.place.present.probes.restore(rows):
            telling.tell(ev.Notice(failure))
        for failure in other.switches.follow(run.switches):
            telling.tell(ev.Notice(failure))
        other.told.declare(other.place.present.tracing)
        self._retell(other)
        running = other.place.here.running
        if not running.ended:
            running.reason, running.cause = f"branch {name}", StopCause.ARRIVED
        return f"branch {name} at tick {other.travel.present().clock}"

    def _retell(self, run: KeptRun) -> None:
        """Tell what a run has written; its log is made anew."""
        for clock, pc, data in run.travel.outputs():
            self._telling.out(ev.Output(data.replace(b"\n", b"\r\n"), clock, pc))
        if run.told.refill is not None:
            run.told.refill.forget()

    def run(self, name: str) -> KeptRun:
        """The run of a branch.

        Raises:
            CommandError: there is none of that name.
        """
        return self._branches.run(name, self._sight.run)

    def lines(self) -> list[str]:
        """The branches as a table.

        Raises:
            CommandError: the run is not recorded.
        """
        return self._branches.lines(self._recorded())

    def view(self, history: HistoryView | None) -> HistoryView | None:
        """A run as a line, with the branches that there are."""
        branches = self._branches
        if history is None or len(branches.names) == 1:
            return history
        return replace(history, branch=branches.current, branches=branches.names)

    def restarted(self) -> None:
        """The run at hand has been started afresh."""
        self._branches.restarted()

    def close(self) -> None:
        """End the runs that are not at hand."""
        for run in self._branches.others():
            run.place.close()

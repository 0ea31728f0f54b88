"""Carries out what is about branches: one begins, is gone to, compared, given up."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.session.control.branches import Branches, KeptRun
from engine.session.control.sight import RunSight
from engine.session.control.telling import EventTeller
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import HistoryView, RunState, StopCause

if TYPE_CHECKING:
    from engine.session.control.branching import BranchLeap


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

    def carry_out(self, command: cmd.Command) -> str:
        """Carry a command out; what it came to.

        Raises:
            KprobeTuiError: it cannot be.
        """
        run, branches = self._sight.run, self._branches
        run.place.need_history()
        match command:
            case cmd.CompareBranches(one, other):
                return "\n".join(self._compare(one, other or branches.current, run))
            case cmd.DeleteBranch(name):
                branches.remove(name).place.close()
                return f"branch {name} is gone"
        running = run.place.here.running
        if running.machine is not None:
            raise CommandError("in the middle of a hit; let it finish first")
        if running.state is RunState.RUNNING:
            raise CommandError("the program is running; Ctrl-C stops it")
        self._sight.leave()
        if isinstance(command, cmd.SwitchBranch):
            said = self._switch(command.name, run)
        else:
            assert isinstance(command, cmd.StartBranch)
            said = self._start(command.name, run)
        self._sight.arrive()
        return said

    def _compare(self, one: str, other: str, run: KeptRun) -> list[str]:
        """Two branches side by side, with what is recorded now."""
        from engine.session.control.branch_diff import compared  # few are compared
        from engine.session.control.branch_events import compared_events
        from engine.session.control.past_log import LogContent, RecordedSources

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
        from engine.session.control.branching import BranchLeap  # few runs are branched

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
        run = self._sight.run
        run.place.need_history()
        return self._branches.lines(run)

    def view(self, history: HistoryView | None) -> HistoryView | None:
        """A run as a line, with the branches that there are."""
        branches = self._branches
        if history is None or len(branches.names) == 1:
            return history
        return replace(history, branch=branches.current, branches=branches.names)

    def restarted(self) -> None:
        """The run at hand has been started afresh."""
        self._branches.restarted()
        self._telling.context = []

    def close(self) -> None:
        """End the runs that are not at hand."""
        for run in self._branches.others():
            run.place.close()

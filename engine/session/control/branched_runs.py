"""Carries out what is about branches: one begins, is gone to, compared, given up."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.session.control.branches import Branches, KeptRun
from engine.session.control.probe_list import ProbeList
from engine.session.control.telling import EventTeller
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import HistoryView, RunState, StopCause

if TYPE_CHECKING:
    from engine.session.control.branching import BranchLeap


class RunHolder(Protocol):
    """Who has the run at hand."""

    @property
    def probes(self) -> ProbeList:
        """The probes of that."""

    def at_hand(self) -> KeptRun:
        """It, and all that is known of it."""

    def take(self, run: KeptRun) -> None:
        """Another run is at hand."""

    def begin_branch(self, leap: "BranchLeap", run: KeptRun) -> None:
        """Have a run at hand that was brought to a moment of the one that was.

        Args:
            leap: brings it there.
            run: the one that was.

        Raises:
            KprobeTuiError: it cannot be brought there; the same run is at hand as before.
            Cut: the user does not want it any more; likewise.
        """

    def leaves_run(self) -> None:
        """Another run is about to be at hand."""

    def comes_to_run(self) -> None:
        """Another run is at hand, and what was known of addresses does not hold."""


class BranchedRuns:
    """The runs of one front end's guest, of which one is at hand."""

    def __init__(
        self, holder: RunHolder, telling: EventTeller, mode: Mode, listens: Callable[[], bool]
    ) -> None:
        """There is one.

        Args:
            holder: has it.
            telling: tells what happens in it.
            mode: strictness of placement.
            listens: hears what has come in while a run is lived through: whether to go on.
        """
        self._mode = mode
        self._listens = listens
        self._holder = holder
        self._telling = telling
        self._branches = Branches()

    def carry_out(self, command: cmd.Command) -> str:
        """Carry a command out; what it came to.

        Raises:
            KprobeTuiError: it cannot be.
        """
        run, branches = self._holder.at_hand(), self._branches
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
        self._holder.leaves_run()
        if isinstance(command, cmd.SwitchBranch):
            said = self._switch(command.name, run)
        else:
            assert isinstance(command, cmd.StartBranch)
            said = self._start(command.name, run)
        self._holder.comes_to_run()
        return said

    def _compare(self, one: str, other: str, run: KeptRun) -> list[str]:
        """Two branches side by side, with what is recorded now."""
        from engine.session.control.branch_diff import compared  # few are compared
        from engine.session.control.branch_events import compared_events
        from engine.session.control.past_log import LogContent

        runs, wide = (self.run(one), self.run(other)), max(len(one), len(other))
        sides = one.ljust(wide), other.ljust(wide)
        wanted = LogContent.of(run.place.present.probes, run.switches.graph, run.switches.kernel)
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
            self._holder.begin_branch(leap, run)
        finally:
            held = telling.release()
        run.place.rest()
        branches.add(name, run, leap.moment.clock, leap.moment.at)
        telling.out(ev.Branched(name))
        for event in held:
            telling.out(event)
        there = self._holder.at_hand()
        self._retell(there)
        running = there.place.here.running
        running.state, running.cause = RunState.STOPPED, StopCause.ARRIVED
        running.reason = f"branch {name} leaves {parent} at tick {leap.moment.clock}"
        return "\n".join((running.reason, *leap.remarks))

    def _switch(self, name: str, run: KeptRun) -> str:
        """Go to another branch, with what is placed and traced now."""
        telling, rows = self._telling, self._holder.probes.rows
        other = self._branches.switch(name, run)
        run.place.rest()
        self._holder.take(other)
        telling.out(ev.Branched(name))
        for event in other.context:
            telling.out(event)
        inputs = other.travel.recorder.inputs
        if inputs is not None:
            inputs.come_back()
        for failure in self._holder.probes.restore(rows):
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
        return self._branches.run(name, self._holder.at_hand())

    def lines(self) -> list[str]:
        """The branches as a table.

        Raises:
            CommandError: the run is not recorded.
        """
        run = self._holder.at_hand()
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

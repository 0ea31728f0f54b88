"""A guest under control: runs, stops, steps, and is asked things in between.

`Control` belongs to one thread. It gets its commands from `execute`, and while the guest runs
from a source, which the guest's kernel asks whenever `sight.attention` was called (from any
thread). What happens is told through `tell`. A worker thread, a test or a script may stand behind
both.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError, KprobeTuiError
from engine.escaping import escaped
from engine.linux.space import AddressSpace
from engine.session.control.guest import DebuggedGuest
from engine.session.control.handlers import (
    CommandHandler,
    CommandTable,
    Handlers,
    MotionCommands,
    StandingCommands,
)
from engine.session.control.loop import CommandLoop, CommandQueue, CommandSource, NoCommands
from engine.session.control.past.position import RunPosition
from engine.session.control.probe_list import ProbeList
from engine.session.control.running import StopQuestions
from engine.session.control.runs import EventTeller, KeptRun, RunStarts, ToldEvents
from engine.session.control.script_switch import ScriptSwitch
from engine.session.control.sight import GuestViews, RunSight
from engine.session.control.tracing_choices import (
    GraphSwitch,
    HandlersSwitch,
    KernelSwitch,
    RunSwitches,
)
from engine.session.guest.session import Session
from engine.session.guest.terminal import FrontEndStreams
from engine.session.program.opening import OpenedProgram
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.probes import ProbeRow, ProbeView
from engine.session.protocol.views import (
    GuestView,
    HistoryView,
    RunState,
)
from engine.trace.tracepoints import GROUPS

if TYPE_CHECKING:
    from engine.session.control.past.branches import BranchedRuns, BranchLeap
    from engine.session.guest.calling import CallOutcome
    from engine.session.guest.entering import CallArguments


class Control:
    """One guest, run after run.

    Attributes:
        queue: commands that have come in and wait for their turn.
        loop: carries commands out.
        questions: what a debugger is asked while the guest runs, or its past is searched.
        config: what to run; a change holds from the next start.
        sight: the run at hand, and what is looked at.
    """

    def __init__(
        self,
        config: GuestConfig,
        tell: Callable[[ev.SessionEvent], object],
        *,
        mode: Mode = Mode.STRICT,
        terminal: FrontEndStreams | None = None,
        opened: OpenedProgram | None = None,
        source: CommandSource | None = None,
        learn: Callable[[], object] | None = None,
        before_end: Callable[[], object] | None = None,
        refills: bool = False,
        is_shown: bool = True,
    ) -> None:
        """Load the program.

        Args:
            config: what to run.
            tell: takes what is to be known.
            mode: strictness of placement.
            terminal: the guest's standard streams; the host's own if None.
            opened: the program for the first run, if it is open already.
            source: gives commands while the guest runs; None: there are none.
            learn: called before the first line of gdb's words: sets `sight.words`.
            before_end: called when the guest has ended, before that is told.
            refills: what is told of events is, of a recorded run, at each stop as if all that is
                recorded now had been so from its start on.
            is_shown: False where nobody looks at the registers and frames of views.

        Raises:
            ImageError: the file cannot be run.
            CommandError: an option cannot be carried out.
        """
        self.config = config
        self._telling = EventTeller(tell)
        self._tell = self._telling.tell
        self.sight = sight = RunSight(self._telling, learn)
        self.queue = CommandQueue(NoCommands() if source is None else source)
        self._standing = StandingCommands(sight, self._telling, terminal)
        table = CommandTable(
            sight,
            self._standing.handlers(),
            MotionCommands(sight, self._telling, self._ended).handlers(),
            self._handlers(),
        )
        self.loop = CommandLoop(
            self.queue, sight, table, self._telling, self.refresh, refills=refills
        )
        self._branches: BranchedRuns | None = None
        self._mode = mode
        self._before_end = before_end
        self.questions = StopQuestions()
        self._on_foot = False
        self._views = GuestViews(self._with_branches, is_shown=is_shown)
        self._starts = RunStarts(self._telling, mode, terminal)
        fresh = self._starts.fresh(config, opened)
        self._first, self._damage = fresh.opened, set[str]()
        switches = {group: KernelSwitch(group) for group in GROUPS}
        self._begin(
            fresh,
            (),
            RunSwitches(
                GraphSwitch(), HandlersSwitch(self._handlers_say), ScriptSwitch(), switches
            ),
        )

    def _handlers_say(self, text: str) -> None:
        self._tell(ev.Remark((escaped(text),)))

    def _begin(
        self,
        session: Session,
        rows: Iterable[ProbeRow],
        switches: RunSwitches,
        changed: int = 0,
        leap: "BranchLeap | None" = None,
    ) -> None:
        """A fresh run with these probes.

        Args:
            session: the run, in front of its first instruction.
            rows: the probes.
            switches: what is traced.
            changed: how often the code in sight has changed before.
            leap: brings it to where it is to begin, without any of them.

        Raises:
            KprobeTuiError: it cannot be brought there.
            Cut: the user does not want it any more.
        """
        told = ToldEvents(self._tell)
        travel = self._starts.travel(self.config, session, leap)
        present = DebuggedGuest(
            session,
            self._mode,
            StopQuestions() if leap is not None else self.questions,
            take=told.rows,
            keep=lambda: self._tell(ev.Snapshot()),
            alone=self._standing.alone,
            unwinder=self._standing.unwinder,  # as the run before had it
        )
        place = RunPosition(present, travel, self._past_of, self.questions, changed)
        self.sight.begin(KeptRun(place, told, switches, self._telling.context))
        tracing = present.tracing
        tracing.programs.tell = self._tell
        present.probing.mapped.append(self._mapped)
        present.running.on_foot = self._on_foot
        self.loop.following = None
        tracing.start()
        if leap is not None:
            assert travel is not None, "it is recorded"
            leap.carry_out(travel, present, self.queue.listens)
            present.ask(self.questions)
        session.hooks.attention = self.loop.hear
        switches.prepare(tracing)
        for failure in self.probes.restore(tuple(rows)):
            self._tell(ev.Notice(failure))
        failure = switches.begin(tracing, session)
        if failure:
            self._tell(ev.Notice(failure))
        told.declare(tracing)
        if travel is not None:
            from engine.session.control.past.log import RecordedSources  # few runs are recorded
            from engine.session.control.past.refill import LogRefill

            recorded = RecordedSources(self.probes, switches.graph, switches.kernel)
            refill = LogRefill(travel, tracing, recorded, self._mode, self._tell, told)
            told.refill = refill
            place.begin_history(recorded, self._mode, self.loop.lives_on, lambda: refill.counts)
        self.sight.hear(on=True)

    def _past_of(self, session: Session) -> DebuggedGuest:
        """Make a guest under control of a run that is lived through."""
        past = DebuggedGuest(
            session,
            self._mode,
            StopQuestions(),
            take=lambda data: None,
            unwinder=self._standing.unwinder,
        )
        session.hooks.attention = self.loop.hear
        session.calls = self.sight.place.present.session.calls
        past.running.state = RunState.STOPPED
        return past

    @property
    def session(self) -> Session:
        """The run at hand, or its guest of the past where that is looked at."""
        return self.sight.here.session

    @property
    def of_recording(self) -> bool:
        """True if the run at hand is a recording's, of which nothing can be changed."""
        return self.sight.place.of_recording

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Let the run pass the user's breakpoints, signals and events meanwhile."""
        present = self.sight.place.present
        asked = self.questions
        passed = StopQuestions(accepts=lambda row: False, mapped=asked.mapped, looks=asked.looks)
        present.ask(passed)
        try:
            yield
        finally:
            present.ask(self.questions)

    @property
    def lives_again(self) -> bool:
        """True while the run of a recording goes on: what it writes is written by nobody else."""
        return self.sight.place.of_recording and self.sight.here.running.state is RunState.RUNNING

    @property
    def probes(self) -> ProbeList:
        """The list of the probes that are placed in the run."""
        return self.sight.place.present.probes

    def _mapped(self, space: AddressSpace, start: int, size: int) -> None:
        """Code of a file has come."""
        self.questions.mapped()

    # -- stops of those above ------------------------------------------------------------------

    def notice(self) -> None:
        """Have `questions.looks` asked: something in the guest may be a reason to stop."""
        self.sight.here.running.notice()

    def look_at_each(self, *, on: bool) -> None:
        """Have `questions.looks` asked behind each instruction: nothing runs freely then."""
        self._on_foot = self.sight.here.running.on_foot = on

    # -- commands -----------------------------------------------------------------------------

    def _handlers(self) -> Handlers:
        """The table of commands that begin another run, or lead to one."""
        return {
            cmd.Restart: CommandHandler(lambda _: self._restart()),
            cmd.StartBranch: CommandHandler(lambda given: self.branches.start(given)),
            cmd.SwitchBranch: CommandHandler(lambda given: self.branches.switch(given)),
            cmd.DeleteBranch: CommandHandler(lambda given: self.branches.delete(given)),
            cmd.CompareBranches: CommandHandler(lambda given: self.branches.compare(given)),
        }

    # -- branches ---------------------------------------------------------------------------

    @property
    def branches(self) -> "BranchedRuns":
        """The runs that go on from moments of the past, the run at hand among them."""
        if self._branches is None:
            from engine.session.control.past.branches import BranchedRuns  # few runs are branched

            self._branches = BranchedRuns(
                self.sight, self._telling, self._mode, self.queue.listens, self._begin_branch
            )
        return self._branches

    def _with_branches(self, history: HistoryView | None) -> HistoryView | None:
        """A run as a line, with the branches that there are."""
        return history if self._branches is None else self._branches.view(history)

    def _begin_branch(self, leap: "BranchLeap", run: KeptRun) -> None:
        """Have a run at hand that was brought to a moment of the one that was.

        Args:
            leap: brings it there.
            run: the one that was.

        Raises:
            KprobeTuiError: it cannot be brought there; the same run is at hand as before.
            Cut: the user does not want it any more; likewise.
        """
        rows, changed = self.probes.rows, self.sight.place.changes + 1
        switches = run.switches.again()
        session: Session | None = None
        try:
            session = self._starts.branched(self.config, leap)
            self._begin(session, rows, switches, changed, leap)
        except BaseException:
            failed = self.sight.place
            self.sight.take(run)
            if failed is not run.place:
                failed.close()
            elif session is not None:
                session.close()
            raise

    # -- the past ---------------------------------------------------------------------------

    def history(self) -> tuple[int, int, bool] | None:
        """Ticks at which the guest stands, and the run; whether it stands in the past.

        None without history.
        """
        return self.sight.place.history()

    def call_at_hand(self) -> tuple[int, int] | None:
        """Tick and instruction of the call that is carried out; None where none is recorded."""
        return self.sight.place.call_at_hand()

    @property
    def records_calls(self) -> bool:
        """True if a call that is carried out now has a moment, which `call_at_hand` gives."""
        return self.sight.place.records_calls

    def _restart(self) -> str:
        self.config = replace(self.config, core=None)
        rows = self.probes.rows
        fresh = self._starts.fresh(self.config)  # if it fails, the old run goes on
        self._end_run()
        if self._branches is not None:
            self._branches.restarted()
        self._telling.context = []
        self._tell(ev.Restarted())
        self._begin(fresh, rows, self.sight.run.switches, self.sight.place.changes + 1)
        self.sight.moves_on()
        return "started afresh"

    def _ended(self) -> None:
        """The program is over: everything that was recorded goes out, and what is to be said."""
        end = self.session.machine.exit
        assert end is not None
        if self._before_end is not None:
            self._before_end()
        try:
            self.sight.run.switches.handlers.over()
            self.sight.run.switches.script.over()
        except KprobeTuiError as error:
            self._tell(ev.Notice(str(error)))
        reports = self.session.report(end)
        self.sight.run.exit_code = reports.exit_code
        self.sight.here.running.reason = reports.reason
        self._tell_troubles()
        for remark in (*reports.damage, *self.sight.here.tracing.finish(), *reports.remarks):
            if remark not in reports.troubles:  # these were told when they happened
                self._tell(ev.Remark(remark.lines))

    # -- telling ---------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Hand over what was recorded, and a view of how things are; of a closed guest nothing."""
        if not self.sight.is_open:
            return
        if not self.sight.here.running.ended:
            self.sight.here.tracing.drain()
        for guest in dict.fromkeys((self.sight.place.present, self.sight.place.here)):
            for text in guest.fresh_notices():
                self._tell(ev.Notice(text))
        self._tell_damage()
        self._tell_troubles()
        if self._standing.kept:
            self._standing.tell_changed_memory()
        self._tell(ev.Viewed(self.view()))

    def _tell_troubles(self) -> None:
        """Tell what the guest has asked for in vain since."""
        for line in self.sight.here.troubles.fresh():
            self._tell(ev.Remark((line,)))

    def _tell_damage(self) -> None:
        """Tell damage of the program's files found since, here and by those who show it."""
        for remark in (*self._first.damage(), *self.session.opened.damage()):
            for line in remark.lines[1:]:
                if line not in self._damage:
                    self._damage.add(line)
                    self._tell(ev.Notice(f"{remark.lines[0]} {line}"))

    def view(self) -> GuestView:
        """Make the view of this moment."""
        sight = self.sight
        return self._views.make(
            sight.run,
            sight.words,
            frame=sight.frame,
            moment=sight.moves,
            goroutines=sight.goroutines,
            stack=sight.stack,
        )

    @property
    def thread(self) -> int:
        """Id of the thread in sight."""
        return self.sight.here.focus.thread.tid

    def probe_views(self) -> tuple[ProbeView, ...]:
        """The list of probes, with what words ask of their stops."""
        return self._views.probes(self.sight.run, self.sight.words)

    @property
    def state(self) -> RunState:
        """The guest's state."""
        return self.sight.here.running.state

    def call(
        self, address: int, given: "CallArguments", results: Sequence[str], *, keeps: bool = False
    ) -> "CallOutcome":
        """Call a function of the guest on a copy of its memory; what it has left.

        Raises:
            CommandError: the guest does not stand, or the function cannot be called.
        """
        from engine.session.guest.calling import FunctionCalls  # few call any

        self.check_calls()
        calls = FunctionCalls(self.session, self.sight.here.probing, self.queue.halted)
        machine = self.session.machine
        recorder, machine.recorder = machine.recorder, None  # it leaves no trace
        try:
            return calls.call(address, given, results, keeps=keeps)
        finally:
            machine.recorder = recorder

    def check_calls(self) -> None:
        """See that functions of the guest can be called where it stands.

        Raises:
            CommandError: they cannot.
        """
        if self.sight.place.of_recording or self.sight.place.in_past:
            raise CommandError(
                "Functions are not called in what was recorded; branch continues from here in a"
                " run of its own."
            )
        running = self.sight.here.running
        if running.state not in (RunState.STOPPED, RunState.READY) or running.machine is not None:
            raise CommandError("The program does not stand where a function can be called.")
        if not self.sight.here.focus.is_runner:
            raise CommandError("Functions are called by the thread that runs.")
        from engine.session.guest.entering import check

        check(self.session)

    @contextmanager
    def changed(self) -> Iterator[None]:
        """The guest, which stands, is changed meanwhile: part of its history, not to be undone."""
        place = self.sight.place
        with place.edited(), self.sight.here.focus.visit():
            yield
        place.change()
        self.sight.moves_on()
        self.sight.here.running.origin = ""
        self.refresh()

    def close(self) -> None:
        """End all runs and give everything back; whoever asks for attention asks nobody.

        Whatever is asked of it afterwards is a `CommandError`, a command is told to have failed.
        """
        if not self.sight.is_open:
            return
        self._end_run()
        if self._branches is not None:
            self._branches.close()
        self.sight.close()

    def _end_run(self) -> None:
        """End the run at hand."""
        self.sight.place.leave_past()
        if self.sight.run.exit_code is None:
            self.sight.here.tracing.finish()
        self.sight.hear(on=False)
        self.sight.place.close()

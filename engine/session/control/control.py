"""A guest under control: runs, stops, steps, and is asked things in between.

`Control` belongs to one thread. It gets its commands from `execute`, and while the guest runs
from `waiting`, which the guest's kernel asks whenever `attention` was called (from any thread).
What happens is told through `tell`. A worker thread, a test or a script may stand behind both.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError, KprobeTuiError, ProbeSyntaxError
from engine.escaping import escaped
from engine.linux.space import AddressSpace
from engine.session.control.asking import StopQuestions
from engine.session.control.editing import Editing
from engine.session.control.entries import ProbeRow
from engine.session.control.event_rules import Histograms
from engine.session.control.focus import Focus
from engine.session.control.probe_list import ProbeList
from engine.session.control.running import Abandoned, Running
from engine.session.control.switches import GraphSwitch, HandlersSwitch, KernelSwitch
from engine.session.control.typed_words import TypedWords
from engine.session.guest.calling import CallArguments, FunctionCalls
from engine.session.guest.probing import Probing
from engine.session.guest.session import Session
from engine.session.guest.terminal import ChosenTerminal, FrontEndStreams
from engine.session.inspect.troubles import Troubles
from engine.session.inspect.viewing import Viewing
from engine.session.program.opening import OpenedProgram
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import TraceOptions
from engine.session.protocol.views import (
    GuestView,
    Origin,
    PartsView,
    ProbeView,
    RunState,
    StopCause,
)
from engine.session.tracing.handlers import blamed
from engine.session.tracing.listing import TraceListing
from engine.session.tracing.tracing import Tracing
from engine.trace.rows import count_rows
from engine.trace.tracepoints import GROUPS
from engine.unwind.compare import UNWINDERS
from engine.words import counted

if TYPE_CHECKING:
    from engine.session.control.backwards import StopPlace, WatchPlace
    from engine.session.control.refill import LogRefill
    from engine.session.control.travel import Travel

_SIGNALS: Final = range(1, 65)
_BACK: Final = (
    *(cmd.StepBack, cmd.LineBack, cmd.FinishBack, cmd.ContinueBack),
    *(cmd.LastWrite, cmd.Seek, cmd.SeekMark),
)
_STEPS: Final = (cmd.StepInsn, cmd.StepOver, cmd.StepLine, cmd.StepPhase, cmd.FinishHit)
_JOURNAL: Final = 512 << 20
"""Bytes that the journal of a run may take; its history ends there."""
_AHEAD: Final = 10_000
"""Commands that may be typed ahead of a step."""


class _Stand(Struct):
    """A guest to stand in, and what looks at it and moves it."""

    session: Session
    tracing: Tracing
    probing: Probing
    troubles: Troubles
    focus: Focus
    viewing: Viewing
    running: Running
    editing: Editing


class Control:
    """One guest, run after run.

    Attributes:
        session: the run at hand.
        probes: the list of those placed in it.
        waiting: gives the next command that has come in, None for none; asked while the
            guest runs.
        wait: the same, but waits for one, None to give up; asked while the guest stands
            inside a blocked call.
        before_end: called when the guest has ended, before that is told.
        watch_places: gives the accesses of the past at which the user wants to stop.
        refills: what is told of events is, of a recorded run, at each stop as if all that is
            recorded now had been so from its start on.
        questions: what a debugger is asked while the guest runs.
        config: what to run; a change holds from the next start.
        looks: asked between two instructions of the guest once `notice` was called: why it is to
            stop, "" for no reason.
        words: carries lines of gdb's words out; None before the first of them.
        learn: called before that: may bring in who carries them out.
        moves: counts what the guest has done, threads that were chosen and fresh starts.
        frame: number of the frame that is looked at; the guest's motions make it 0.
    """

    def __init__(
        self,
        config: GuestConfig,
        tell: Callable[[ev.SessionEvent], object],
        *,
        mode: Mode = Mode.STRICT,
        terminal: FrontEndStreams | None = None,
        opened: OpenedProgram | None = None,
    ) -> None:
        """Load the program.

        Args:
            config: what to run.
            tell: takes what is to be known.
            mode: strictness of placement.
            terminal: the guest's standard streams; the host's own if None.
            opened: the program for the first run, if it is open already.

        Raises:
            ImageError: the file cannot be run.
            CommandError: an option cannot be carried out.
        """
        self.config = config
        self._tell = tell
        self._mode = mode
        self._terminal = terminal
        self.waiting: Callable[[], cmd.Command | None] = lambda: None
        self.wait: Callable[[], cmd.Command | None] = lambda: None
        self.before_end: Callable[[], object] = lambda: None
        self.refills = False
        self.watch_places: Callable[[], Sequence[WatchPlace]] = lambda: ()
        self.questions = StopQuestions()
        self.looks: Callable[[], str] = lambda: ""
        self._on_foot = False
        self.words: TypedWords | None = None
        self.learn: Callable[[], object] = lambda: None
        self.moves = self.frame = 0
        self._ahead: deque[cmd.Command] = deque()
        self._stepping = self._cut = False
        self._view = GuestView()
        self._changed = 0
        self._gate = threading.Lock()
        self._hears = False
        self._refill: LogRefill | None = None
        self._graph = GraphSwitch()
        self._handlers = HandlersSwitch(lambda text: tell(ev.Remark((escaped(text),))))
        self._alone = False
        self._kernel_events = {group: KernelSwitch(group) for group in GROUPS}
        self._unwinder = UNWINDERS[0].name
        fresh = self._load(opened)
        self._first, self._damage = fresh.opened, set[str]()
        self._begin(fresh, ())

    def _load(self, opened: OpenedProgram | None = None) -> Session:
        chosen = ChosenTerminal(self.config.tty) if self.config.tty else None
        terminal = chosen or self._terminal
        config = self.config
        if config.recording is not None:
            return _replayed(opened, config)
        if config.history:
            config = replace(config, count_blocks=True)
        try:
            fresh = Session(config, terminal.streams() if terminal else None, opened)
        except KprobeTuiError:
            if chosen is not None:
                chosen.close()
            raise
        if chosen is not None:
            fresh.lent.append(chosen.close)
        return fresh

    def _begin(self, session: Session, rows: Iterable[ProbeRow]) -> None:
        """A fresh run with these probes."""
        self.session = session
        self._travel: Travel | None = None
        if self.config.recording is not None:
            self._travel, damage = _through_again(session, self._replayed_output)
            if damage:
                self._tell(ev.Notice(f"{self.config.recording}: {damage}"))
        elif session.config.history and session.core is None:
            self._travel = _travel(session)
        self._stands_in: tuple[_Stand, _Stand] | None = None
        self._tracing = Tracing(
            session,
            TraceOptions(mode=self._mode),
            consumer=self._rows,
            keep=lambda: self._tell(ev.Snapshot()),
        )
        self._tracing.programs.tell = self._tell
        self._probing = session.probes(self._mode)
        self._probing.mapped.append(self._mapped)
        self.probes = ProbeList(self._probing, self._tracing, self._mode)
        self._histograms = Histograms(self._tracing)
        self._troubles = Troubles(session)
        self._focus = Focus(session, alone=self._alone)
        self._viewing = Viewing(session, self._focus)
        self._viewing.choose(self._unwinder, now=False)  # as the run before had it
        self._running = Running(
            session, self._probing, self.probes, self._viewing, self._focus, self.questions
        )
        self._running.looks = lambda: self.looks()
        self._running.on_foot = self._on_foot
        self._editing = Editing(session, self.probes, self._focus)
        self._events = self._declared = self._calls = 0
        self._told: dict[Probing, int] = {}
        self._origin: Origin = ""
        self._exit_code: int | None = None
        self._next: cmd.Command | None = None
        session.hooks.attention = self._heard
        self._tracing.start()
        for failure in self.probes.restore(tuple(rows)):
            self._tell(ev.Notice(failure))
        self._graph.begin(self._tracing)
        failure = self._handlers.begin(session)
        if failure:
            self._tell(ev.Notice(failure))
        for switch in self._kernel_events.values():
            switch.begin(self._tracing)
        self._declare()
        self._refill = None
        if self._travel is not None:
            self._refill = _refill(
                self._travel,
                self._tracing,
                (self.probes, self._graph, self._kernel_events),
                self._mode,
                self._tell,
                self._rows,
            )
        with self._gate:
            self._hears = True

    def _replayed_output(self, descriptor: int, data: bytes) -> None:
        """The guest of a recording writes."""
        travel = self._travel
        assert travel is not None, "a recording has a past"
        travel.recorder.wrote(len(data))
        self._tell(ev.Output(data.replace(b"\n", b"\r\n"), *travel.landmarks.call()))

    def _mapped(self, space: AddressSpace, start: int, size: int) -> None:
        """Code of a file has come."""
        self.questions.mapped()

    # -- from any thread --------------------------------------------------------------------

    def attention(self) -> None:
        """Make a running guest ask `waiting` soon."""
        with self._gate:
            if self._hears:
                self.session.attend()

    def nudge(self) -> None:
        """Ask again if nobody has heard yet; for a timer."""
        with self._gate:
            if self._hears and self.session.waiting():
                self.session.nudge()

    # -- stops of those above ------------------------------------------------------------------

    def notice(self) -> None:
        """Something has happened in the guest that may be a reason to stop: `looks` is asked."""
        self._running.notice()

    def look_at_each(self, *, on: bool) -> None:
        """Have `looks` asked behind each instruction: nothing runs freely then."""
        self._on_foot = self._running.on_foot = on

    # -- commands -----------------------------------------------------------------------------

    def execute(self, command: cmd.Command) -> None:
        """Carry a command out; the guest stands, and stands again afterwards."""
        self._ahead.append(command)
        self._catch_up()

    def carry_out(self, command: cmd.Command) -> str:
        """The same for one who wants to know whether it can be done; what it came to.

        Raises:
            KprobeTuiError: it cannot.
        """
        self._next = None
        self._stepping = isinstance(command, _STEPS)
        try:
            return self._dispatch(command)
        finally:
            if self._next is not None:
                self._ahead.appendleft(self._next)
            self._catch_up()

    def _catch_up(self) -> None:
        """Carry out what has come in meanwhile, and let everybody see how things are."""
        while self._ahead:
            following: cmd.Command | None = self._ahead.popleft()
            while following is not None:
                self._next = None
                self._stepping = isinstance(following, _STEPS)
                self._attempt(following, self._dispatch)
                following = self._next
            if not self._ahead:
                self._keep_log()
        self.refresh()

    def _attempt(self, command: cmd.Command, call: Callable[[cmd.Command], str]) -> None:
        """Carry a command out and tell how it went."""
        try:
            self._tell(ev.Done(command, call(command)))
        except ProbeSyntaxError as error:
            text = str(error)
            self._tell(ev.Failed(command, text, error.hint, error.command, error.column))
        except KprobeTuiError as error:
            self._tell(ev.Failed(command, str(error), error.hint))

    def _dispatch(self, command: cmd.Command) -> str:
        """Carry out any command; the guest stands."""
        if isinstance(command, cmd.Restart):
            self.config = replace(self.config, core=None)
            return self._restart()
        if isinstance(command, _BACK):
            return self._travelled(command)
        motion = self._running.motion(command)
        if isinstance(command, cmd.TypedLine):
            self._cut = False
            return self._words().carry_out(command.text)
        if motion is None:
            return self._any_time(command)
        running = self._running
        if running.ended:
            raise CommandError("the program has ended; r starts it afresh")
        if self.session.core is not None:
            raise CommandError("a core file does not move; r runs the program from its beginning")
        self._moves_on()
        if self.words is not None:
            self.words.begins_to_move()
        if self._in_past and isinstance(command, cmd.Continue | cmd.ContinueToHit):
            return self._travelled(command)
        try:
            with blamed(self._handlers.path or None):
                motion()
        except Abandoned:
            pass
        if self._in_past:
            self._look_for_present()
        elif running.ended:
            self._ended()
        if self.words is not None:
            self.words.moved()
        return running.reason

    # -- the past ---------------------------------------------------------------------------

    @property
    def _in_past(self) -> bool:
        """True if the guest stands in its past."""
        return self._travel is not None and self._travel.there

    def history(self) -> tuple[int, int, bool] | None:
        """Ticks at which the guest stands, and the run; whether it stands in the past.

        None without history.
        """
        if self._travel is None:
            return None
        return self.session.cpu.coming(), self._travel.present().clock, self._travel.there

    def call_at_hand(self) -> tuple[int, int] | None:
        """Tick and instruction of the call that is carried out; None where none is recorded."""
        travel = self._travel
        if travel is None or travel.recorder.full:
            return None
        return travel.landmarks.call()

    def _travelled(self, command: cmd.Command) -> str:
        """Carry out a motion that begins or ends in the past."""
        travel = self._travel
        if travel is None:
            raise CommandError(
                "the run is not recorded; record, then run it: its past is there from then on"
            )
        if self._running.machine is not None:
            raise CommandError("in the middle of a hit; let it finish first")
        self._moves_on()
        if self.words is not None:
            self.words.begins_to_move()
        if not travel.there:
            travel.leave()
            self._enter_past(travel)
        running = self._running
        running.state, running.origin = RunState.RUNNING, "insn"
        running.want("", StopCause.ARRIVED)
        travel.backwards.cut = lambda: bool(running.wanted)
        try:
            text = travel.carry_out(command, self._stop_places, self.watch_places)
        except CommandError as error:
            text = str(error)
        except Abandoned:
            text = ""
        finally:
            running.state = RunState.STOPPED
        text = running.wanted or text
        arrived = "moved in time" if isinstance(command, cmd.Seek | cmd.SeekMark) else "stepped"
        running.reason, running.cause = text or arrived, StopCause.ARRIVED
        if running.wanted:
            running.cause = StopCause.INTERRUPTED
        elif text:
            hit = text.startswith(("breakpoint", "probe", "watchpoint"))
            running.cause = StopCause.HIT if hit else StopCause.CUT_SHORT
        self._look_for_present()
        if self.words is not None:
            self.words.moved()
        return self._running.reason

    def _mark(self, command: cmd.SetMark | cmd.DeleteMark) -> str:
        """Make the moment at hand a bookmark, or forget one."""
        travel = self._travel
        if travel is None:
            raise CommandError("the run is not recorded: no moment of it can be found again")
        if isinstance(command, cmd.DeleteMark):
            travel.landmarks.unmark(command.name)
            return f"bookmark {command.name} is gone"
        if not self._stands():
            raise CommandError("the program is running; Ctrl-C stops it")
        moment = travel.now()
        return f"bookmark {travel.landmarks.mark(command.name, moment)} at tick {moment.clock}"

    def _keep_log(self) -> None:
        """Make the log what it would be if all that is recorded had been so from the start."""
        refill, travel = self._refill, self._travel
        if refill is None or travel is None or not self.refills:
            return
        live = self._running if self._stands_in is None else self._stands_in[0].running
        if live.state is RunState.READY:
            refill.accept()
        self._cut = False
        try:
            while self._hears_on() and refill.is_due and not self._cut:
                if live.state is RunState.RUNNING or live.machine is not None:
                    return  # at the next stop
                before, self._events = self._events, 0
                if not refill.renew(self._hears_on):
                    self._events = before
        except Abandoned:
            pass

    def _hears_on(self) -> bool:
        """Carry out what has come in meanwhile and moves nothing: whether to go on."""
        done = False
        while (command := self.waiting()) is not None:
            if isinstance(command, cmd.Halt):
                self._cut = True
                self._ahead.clear()
                break
            moves = self._running.motion(command) is not None or isinstance(command, _BACK)
            if moves or isinstance(command, cmd.Restart | cmd.TypedLine):
                self._ahead.append(command)
                if isinstance(command, cmd.Restart):
                    self._cut = True
            else:
                self._attempt(command, self._any_time)
                done = True
        if done:
            self.refresh()
        return not self._cut

    def _stop_places(self) -> "list[StopPlace]":
        """The places at which the user wants to stop."""
        from engine.session.control.backwards import StopPlace

        found = []
        assert self._stands_in is not None
        live = self._stands_in[0]
        for view in self.probes.views(live.focus.space):
            if view.stops and view.enabled:
                kind = "breakpoint" if view.kind == "b" else "probe"
                text = f"{kind} {view.id}: {view.definition}"
                for address in view.addresses:
                    accepts = partial(self.questions.accepts, view.id)
                    found.append(StopPlace(address, accepts, text))
        return found

    def _enter_past(self, travel: "Travel") -> None:
        """Stand in the guest of the past."""
        if self._stands_in is None:
            self._stands_in = self._stand(), self._stand_in_past(travel)
        self._put(self._stands_in[1])

    def _look_for_present(self) -> None:
        """Stand in the run itself again where a motion has come to the present."""
        travel = self._travel
        if travel is not None and travel.there and travel.arrived():
            assert self._stands_in is not None
            reason, cause = self._running.reason, self._running.cause
            travel.there = False
            self._put(self._stands_in[0])
            self._running.origin = "insn"
            if not self._running.ended:
                self._running.reason, self._running.cause = reason, cause

    def _leave_past(self) -> None:
        """Stand in the run itself again."""
        if self._stands_in is not None:
            self._put(self._stands_in[0])
        if self._travel is not None:
            self._travel.there = False

    def _stand(self) -> _Stand:
        return _Stand(
            self.session,
            self._tracing,
            self._probing,
            self._troubles,
            self._focus,
            self._viewing,
            self._running,
            self._editing,
        )

    def _put(self, stand: _Stand) -> None:
        seen = self._code_changes()
        self.session, self._tracing, self._probing = stand.session, stand.tracing, stand.probing
        self._troubles = stand.troubles
        self._focus, self._viewing = stand.focus, stand.viewing
        self._running, self._editing = stand.running, stand.editing
        self._changed = seen + 1 - self._probing.changes

    def _stand_in_past(self, travel: "Travel") -> _Stand:
        past = travel.past
        tracing = Tracing(past, TraceOptions(mode=self._mode), consumer=lambda data: None)
        probing = past.probes(self._mode)
        probes = ProbeList(probing, tracing, self._mode)
        focus = Focus(past)
        viewing = Viewing(past, focus)
        viewing.choose(self._unwinder, now=False)
        running = Running(past, probing, probes, viewing, focus, StopQuestions())
        past.hooks.attention = self._heard
        running.state = RunState.STOPPED
        return _Stand(
            past,
            tracing,
            probing,
            Troubles(past),
            focus,
            viewing,
            running,
            Editing(past, probes, focus),
        )

    def _words(self) -> TypedWords:
        if self.words is None:
            self.learn()
        if self.words is None:
            raise CommandError("nobody knows words here")
        return self.words

    def _moves_on(self) -> None:
        """Another moment, or another thread: nobody looks at a frame of it yet."""
        self.moves += 1
        self.frame = 0

    def _any_time(self, command: cmd.Command) -> str:
        """Carry out a command that does not move the guest."""
        terminal = self._terminal
        match command:
            case cmd.Refresh() | cmd.Halt():
                return ""
            case cmd.Input(data):
                if terminal is not None:
                    terminal.write(data)
                return ""
            case cmd.Resize(columns, rows):
                if terminal is not None:
                    terminal.resize(columns, rows)
                return ""
            case cmd.Signal(number):
                if self.config.recording is not None:
                    raise CommandError("a recording gets the signals that were recorded")
                if number not in _SIGNALS:
                    raise CommandError(f"there is no signal {number}")
                self.session.interrupt(number)
                return f"signal {number} sent"
            case cmd.ReadMemory(address, size, original):
                pieces = self._editing.read(address, size, original)
                self._tell(ev.MemoryRead(command, pieces, self._code_changes()))
                return ""
            case cmd.ReadWords(address, count):
                self._tell(ev.WordsRead(command, self._viewing.words(address, count)))
                return ""
            case cmd.ReadParts(moment, branches):
                if moment == self.moves and self._stands():
                    self._tell(ev.PartsRead(command, self._parts(branches)))
                return ""
            case cmd.SetMark() | cmd.DeleteMark():
                return self._mark(command)
            case cmd.Refill():
                if self._refill is None:
                    raise CommandError("the run is not recorded: its past cannot be filled in")
                self._refill.forget()
                return ""
            case cmd.Restore(probes, stops):
                text = self._restore(probes, stops)
            case cmd.LoadHandlers(path, on):
                text = self._handlers.load(path) if on else self._handlers.unload()
                self._changed += 1
            case cmd.AskWords():
                self._tell(ev.WordsKnown(self._words().words()))
                return ""
            case cmd.ListDefinitions(form):
                lines = tuple(TraceListing(self._present_tracing).lines(form))
                self._tell(ev.Listed(form, lines))
                return ""
            case cmd.SelectFrame(number):
                self.frame = number
                return ""
            case cmd.Unwind(unwinder):
                said = self._viewing.choose(unwinder, now=self._stands())
                self._unwinder = self._viewing.unwinder.name
                return said
            case cmd.ChooseThread(tid):
                return self._choose(tid)
            case cmd.StepAlone(on):
                said = self._focus.step_alone(on=on)
                self._alone = on
                return said
            case cmd.TraceFunctions(globs, on, depth):
                text = self._graph.turn(globs, on=on, depth=depth)
            case cmd.TraceKernel(globs, on, group):
                text = self._kernel_events[group].turn(globs, on=on)
            case _:
                done = self.probes.carry_out(command, self._tell)
                text = self._edit(command) if done is None else done
        self._declare()
        return text

    def _restore(
        self, probes: tuple[cmd.SavedProbe, ...], stops: tuple[cmd.SavedStop, ...]
    ) -> str:
        """Place what an earlier session had; what cannot be placed is told together."""
        failures = self.probes.restore_saved(probes)
        if stops:
            failures += self._words().restore(stops)
        if failures:
            lost = f"{counted(len(failures), 'thing')} of the last time cannot be placed again"
            self._tell(ev.Remark((f"{lost}:", *failures)))
        return f"{counted(len(probes) + len(stops), 'thing')} of the last time"

    def _parts(self, branches: tuple[cmd.Branch, ...]) -> tuple[PartsView | None, ...]:
        """Parts of values."""
        variables, words = self._viewing.variables, self.words
        found: list[PartsView | None] = []
        with self._focus.visit():
            for branch in branches:
                if branch.frame != cmd.DISPLAYS:
                    parts = variables.parts(
                        branch.frame, branch.number, branch.steps, 0, branch.count
                    )
                    found.append(parts)
                else:
                    found.append(words.display_parts(branch) if words is not None else None)
        return tuple(found)

    def _choose(self, tid: int) -> str:
        """Look at another thread."""
        running, machine = self._running, self.session.machine
        if not self._stands():
            raise CommandError("the program is not standing; Ctrl-C stops it")
        if running.machine is not None and tid not in (0, machine.tid):
            raise CommandError("in the middle of a hit; let it finish first")
        said = self._focus.choose(tid or machine.tid)
        self._moves_on()
        self._changed += 1  # the same addresses may have other code now
        running.origin = ""
        return said

    def _edit(self, command: cmd.Command) -> str:
        editing = self._present_editing
        if not editing.is_of_list(command):
            if self._in_past:
                raise CommandError("the past cannot be changed; goto end leads to the present")
            if self._running.state is RunState.RUNNING:
                raise CommandError("the program is running; Ctrl-C stops it")
            if self._running.machine is not None:
                raise CommandError("in the middle of a hit; let it finish first")
        with self._edited(), self._focus.visit():
            text = editing.carry_out(command)
        self._changed += 1
        self._running.origin = ""
        return text

    @property
    def _present_tracing(self) -> Tracing:
        """The trace of the run itself."""
        return self._tracing if self._stands_in is None else self._stands_in[0].tracing

    @property
    def _present_editing(self) -> Editing:
        """The changes of the run itself: the past has none."""
        return self._editing if self._stands_in is None else self._stands_in[0].editing

    @contextmanager
    def _edited(self) -> Iterator[None]:
        """The user changes the guest meanwhile, which is part of its history."""
        if self._travel is None or self.session.machine.exit is not None:
            yield
            return
        with self._travel.recorder.edited():
            yield

    def _restart(self) -> str:
        fresh, rows = self._load(), self.probes.rows  # if it fails, the old run goes on
        self._leave_past()
        if self._exit_code is None:
            self._tracing.finish()
        self._shut()
        self._tell(ev.Restarted())
        changes = self._code_changes()
        self._begin(fresh, rows)
        self._moves_on()
        self._changed = changes + 1
        return "started afresh"

    def _ended(self) -> None:
        """The program is over: everything that was recorded goes out, and what is to be said."""
        end = self.session.machine.exit
        assert end is not None
        self.before_end()
        try:
            self._handlers.over()
        except KprobeTuiError as error:
            self._tell(ev.Notice(str(error)))
        reports = self.session.report(end)
        self._exit_code = reports.exit_code
        self._running.reason = reports.reason
        self._tell_troubles()
        for remark in (*reports.damage, *self._tracing.finish(), *reports.remarks):
            if remark not in reports.troubles:  # these were told when they happened
                self._tell(ev.Remark(remark.lines))

    # -- while the guest runs ------------------------------------------------------------------

    def _heard(self) -> None:
        """The kernel's ear: commands have come in while the guest runs or is blocked."""
        while (command := self.waiting()) is not None:
            self._obey(command)
        self._stand_in_call()
        self.refresh()
        while self._running.state is RunState.STOPPED:  # in the middle of a blocked call
            command = self.wait()
            if command is None:
                raise Abandoned
            self._obey(command)
            self._stand_in_call()
            self.refresh()

    def _stand_in_call(self) -> None:
        """Stop inside a blocked call if the user wants a stop; he may have said so before it."""
        running, blocked_in = self._running, self.session.kernel.waiting_in
        if blocked_in and running.wanted and running.cause is StopCause.INTERRUPTED:
            running.state, running.reason = RunState.STOPPED, f"interrupted in {blocked_in}()"

    def _obey(self, command: cmd.Command) -> None:
        """Carry out a command in the middle of a run."""
        running, blocked_in = self._running, self.session.kernel.waiting_in
        if isinstance(command, cmd.Restart):
            self._next = command
            self._ahead.clear()
            raise Abandoned
        if isinstance(command, cmd.Halt):
            self._cut = True
            running.want("interrupted", StopCause.INTERRUPTED)
            self.session.nudge()  # what has heard it would run on else
            self._next = None
            self._ahead.clear()
        elif isinstance(command, cmd.TypedLine):
            self._type(command)
        elif isinstance(command, _BACK) and self._in_past and len(self._ahead) < _AHEAD:
            if isinstance(command, cmd.Seek | cmd.SeekMark):  # only the last of them counts
                self._ahead = deque(
                    each for each in self._ahead if not isinstance(each, cmd.Seek | cmd.SeekMark)
                )
            self._ahead.append(command)
        elif self._running.motion(command) is None and not isinstance(command, _BACK):
            self._attempt(command, self._any_time)
        elif running.state is RunState.STOPPED:
            # The call has to end before anything else can happen. For a step that is all.
            running.want(f"{blocked_in}() ended", StopCause.CUT_SHORT)
            running.state = RunState.RUNNING
            if not isinstance(command, cmd.StepInsn | cmd.StepOver | cmd.StepPhase):
                self._next = command
        elif self._stepping and len(self._ahead) < _AHEAD:
            self._ahead.append(command)  # typed ahead of a step: its turn comes
        else:
            self._tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))

    def _type(self, command: cmd.TypedLine) -> None:
        """Carry a line of words out in the middle of a run."""
        running = self._running
        if running.state is not RunState.STOPPED:
            self._tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))
        elif self._words().moves(command.text):
            running.want(f"{self.session.kernel.waiting_in}() ended", StopCause.ARRIVED)
            running.state, self._next = RunState.RUNNING, command
        else:
            self._attempt(command, self._dispatch)

    # -- telling ---------------------------------------------------------------------------------

    def _rows(self, data: bytes) -> None:
        count = count_rows(data)
        self._events += count
        self._tell(ev.Rows(data, count))

    def _declare(self) -> None:
        """Tell of events that are new."""
        infos = self._present_tracing.table
        if len(infos) > self._declared:
            fresh = tuple(info for number, info in infos.items() if number > self._declared)
            self._declared = len(infos)
            self._tell(ev.Declared(fresh))

    def refresh(self) -> None:
        """Hand over what was recorded, and a view of how things are."""
        if not self._running.ended:
            self._tracing.drain()
        present = self._probing if self._stands_in is None else self._stands_in[0].probing
        for probing in dict.fromkeys((present, self._probing)):
            for text in probing.notices[self._told.get(probing, 0) :]:
                self._tell(ev.Notice(text))
            self._told[probing] = len(probing.notices)
        self._tell_damage()
        self._tell_troubles()
        self._tell(ev.Viewed(self.view()))

    def _tell_troubles(self) -> None:
        """Tell what the guest has asked for in vain since."""
        for line in self._troubles.fresh():
            self._tell(ev.Remark((line,)))

    def _tell_damage(self) -> None:
        """Tell damage of the program's files found since, here and by those who show it."""
        for remark in (*self._first.damage(), *self.session.opened.damage()):
            for line in remark.lines[1:]:
                if line not in self._damage:
                    self._damage.add(line)
                    self._tell(ev.Notice(f"{remark.lines[0]} {line}"))

    def _code_changes(self) -> int:
        return self._changed + self._probing.changes

    def view(self) -> GuestView:
        """Make the view of this moment."""
        session, viewing, kernel = self.session, self._viewing, self.session.kernel
        running, focus = self._running, self._focus
        stands = self._stands()
        state = running.state
        if state is RunState.RUNNING and kernel.waiting_in:
            state = RunState.WAITING
        looks = stands and self._moved()
        mid_hit = running.machine is not None
        listed = focus.threads(stands=stands, looks=looks and not mid_hit)
        raw, pc = self._view.raw_pc, self._view.pc
        with focus.visit() if stands else nullcontext():
            waiting = kernel.waiting_in
            modules = focus.space.modules
            own = running.own if focus.chosen is None else {}
            if stands:
                raw = session.cpu.read_register(session.arch.roles.pc)
                pc = running.stands_at(raw) if focus.chosen is None else focus.original_pc(raw)
            if looks:
                registers, frames = viewing.registers(self._origin), viewing.frames(waiting, own)
            else:
                registers, frames = viewing.same_registers(), viewing.same_frames()
            thread = session.machine.tid
        hit = None if running.state is RunState.RUNNING or focus.chosen else running.hit
        module = modules.at(pc) if stands else None
        self._view = GuestView(
            state=state,
            reason="" if running.state is RunState.RUNNING else running.reason,
            cause=running.cause,
            arch=session.arch.name,
            program=session.paths.guest,
            build_id=viewing.build_id,
            pc=pc,
            raw_pc=raw,
            location=str(modules.locate(pc)) if stands else self._view.location,
            line=module.line_at(pc) if module is not None else None,
            registers=registers,
            frames=frames[0],
            frames_end=frames[1],
            frame=self.frame,
            moment=self.moves,
            stops=self.words.saved() if self.words is not None else (),
            displays=self.words.displays() if self.words is not None else (),
            unwinder=viewing.unwinder.name,
            hit=hit,
            probes=self.probe_views(),
            planted=viewing.planted(),
            modules=viewing.modules(),
            mappings=viewing.mappings() if stands else self._view.mappings,
            comms={
                thread: name.decode(errors="replace")
                for thread, name in session.machine.comms.items()
            },
            pids=dict(session.machine.pids),
            thread=thread,
            threads=len(session.machine.threads),
            listed=listed,
            alone=focus.alone,
            program_in_sight=self._tracing.programs.number(focus.space),
            time=session.cpu.coming() if self._in_past else session.cpu.blocks(),
            system_calls=session.machine.syscall_count,
            waiting_in=waiting,
            events=self._events,
            exit_code=self._exit_code,
            troubles=self._troubles.summary,
            changed=self._code_changes(),
            undo=self._present_editing.undo_text,
            redo=self._present_editing.redo_text,
            histograms=self._histograms.texts(running=running.state is RunState.RUNNING),
            detours=viewing.detours.counts(),
            history=self._travel.view() if self._travel is not None else None,
        )
        return self._view

    @contextmanager
    def sight(self) -> Iterator[None]:
        """Have the processor hold the thread in sight, to be looked at, while the guest stands."""
        with self._focus.visit() if self._stands() else nullcontext():
            yield

    @property
    def thread(self) -> int:
        """Id of the thread in sight."""
        return self._focus.thread.tid

    def probe_views(self) -> tuple[ProbeView, ...]:
        """The list of probes, with what words ask of their stops."""
        views = self.probes.views(self._focus.space)
        if self.words is None:
            return views
        return tuple(
            replace(view, only=only) if (only := self.words.remark(view.id)) else view
            for view in views
        )

    @property
    def state(self) -> RunState:
        """The guest's state."""
        return self._running.state

    def call(self, address: int, given: CallArguments, results: Sequence[str]) -> dict[str, int]:
        """Call a function of the guest on a copy of its memory; the registers of its result.

        Raises:
            CommandError: the guest does not stand, or the function cannot be called.
        """
        running = self._running
        if running.state not in (RunState.STOPPED, RunState.READY) or running.machine is not None:
            raise CommandError("The program does not stand where a function can be called.")
        if self._focus.chosen is not None:
            raise CommandError("Functions are called by the thread that runs.")
        calls = FunctionCalls(self.session, self._probing, self._halted)
        machine = self.session.machine
        recorder, machine.recorder = machine.recorder, None  # it leaves no trace
        try:
            return calls.call(address, given, results)
        finally:
            machine.recorder = recorder

    def _halted(self) -> bool:
        """True if the user wants a stop; what else has come in is carried out later."""
        while (command := self.waiting()) is not None:
            if isinstance(command, cmd.Halt):
                return True
            self._ahead.append(command)
        return False

    def is_cut_short(self) -> bool:
        """True if the user wants the line of words that is carried out to end, or all to."""
        try:
            return self._cut or self._halted()
        except Abandoned:
            return True

    def _stands(self) -> bool:
        """True if the guest can be looked at."""
        return self._running.state is not RunState.RUNNING or bool(self.session.kernel.waiting_in)

    def _moved(self) -> bool:
        """True if the guest has moved since this was asked last: looks are taken once a stop."""
        running, calls = self._running, self.session.machine.syscall_count
        blocked = running.state is RunState.RUNNING and calls != self._calls
        self._calls = calls
        origin, running.origin = running.origin, None
        if origin is None and not blocked:
            return False
        self._origin = origin or "insn"
        return True

    def close(self) -> None:
        """End the run and give everything back."""
        self._leave_past()
        if self._exit_code is None:
            self._tracing.finish()
        self._shut()

    def _shut(self) -> None:
        """Close the session; whoever asks for attention meanwhile asks nobody."""
        with self._gate:
            self._hears = False
        self._leave_past()
        if self._travel is not None:
            self._travel.close()
        self.session.close()


def _travel(session: Session) -> "Travel":
    """The past of a run that begins."""
    from engine.session.control.travel import Travel  # few runs are recorded
    from engine.session.guest.past import record

    return Travel(session, record(session, _JOURNAL), None)


def _refill(*arguments: Any) -> "LogRefill":
    """The keeper of a recorded run's log."""
    from engine.session.control.refill import LogRefill  # few runs are recorded

    return LogRefill(*arguments)


def _replayed(opened: OpenedProgram | None, config: GuestConfig) -> Session:
    """The run of a recording, before its first instruction."""
    from engine.session.guest.past import replayed
    from engine.session.program.recorded import RecordedGuest, recorded_guest

    return replayed(opened if isinstance(opened, RecordedGuest) else recorded_guest(config))


def _through_again(
    session: Session, output: Callable[[int, bytes], object]
) -> tuple["Travel", str]:
    """The past of a recording's run; why that is not whole, "" if it is."""
    from engine.session.control.travel import FinishedRecorder, Travel
    from engine.session.guest.past import PastSession
    from engine.session.program.recorded import RecordedGuest

    assert isinstance(session, PastSession), "it is lived through again"
    session.kernel.output = output
    opened = session.opened
    assert isinstance(opened, RecordedGuest), "it is in a recording"
    recorder = FinishedRecorder(session.kernel.journal)
    return Travel(session, recorder, session), opened.damage_text

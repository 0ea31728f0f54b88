"""A guest under control: runs, stops, steps, and is asked things in between.

`Control` belongs to one thread. It gets its commands from `execute`, and while the guest runs
from `waiting`, which the guest's kernel asks whenever `attention` was called (from any thread).
What happens is told through `tell`. A worker thread, a test or a script may stand behind both.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Final

from engine.arch.plan import Mode
from engine.errors import CommandError, KprobeTuiError, ProbeSyntaxError
from engine.session.control.editing import Editing
from engine.session.control.entries import ProbeRow
from engine.session.control.event_rules import Histograms
from engine.session.control.focus import Focus
from engine.session.control.probe_list import ProbeList
from engine.session.control.running import Abandoned, Running
from engine.session.control.switches import GraphSwitch, KernelSwitch
from engine.session.guest.session import Session
from engine.session.guest.terminal import GuestTerminal
from engine.session.inspect.viewing import Viewing
from engine.session.program.opening import OpenedProgram
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import TraceOptions
from engine.session.protocol.views import GuestView, Origin, RunState
from engine.session.tracing.tracing import Tracing
from engine.trace.rows import count_rows
from engine.trace.tracepoints import GROUPS
from engine.unwind.compare import UNWINDERS

_SIGNALS: Final = range(1, 65)
_INTERRUPTED: Final = "interrupted"
_STEPS: Final = (cmd.StepInsn, cmd.StepOver, cmd.StepLine, cmd.StepPhase, cmd.FinishHit)
_AHEAD: Final = 10_000
"""Commands that may be typed ahead of a step."""


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
    """

    def __init__(
        self,
        config: GuestConfig,
        tell: Callable[[ev.SessionEvent], object],
        *,
        mode: Mode = Mode.STRICT,
        terminal: GuestTerminal | None = None,
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
        self._config = config
        self._tell = tell
        self._mode = mode
        self._terminal = terminal
        self.waiting: Callable[[], cmd.Command | None] = lambda: None
        self.wait: Callable[[], cmd.Command | None] = lambda: None
        self.before_end: Callable[[], object] = lambda: None
        self._ahead: deque[cmd.Command] = deque()
        self._stepping = False
        self._view = GuestView()
        self._changed = 0
        self._gate = threading.Lock()
        self._hears = False
        self._graph = GraphSwitch()
        self._alone = False
        self._kernel_events = {group: KernelSwitch(group) for group in GROUPS}
        self._unwinder = UNWINDERS[0].name
        fresh = self._load(opened)
        self._first, self._damage = fresh.opened, set[str]()
        self._begin(fresh, ())

    def _load(self, opened: OpenedProgram | None = None) -> Session:
        streams = self._terminal.streams() if self._terminal else None
        return Session(self._config, streams, opened)

    def _begin(self, session: Session, rows: Iterable[ProbeRow]) -> None:
        """A fresh run with these probes."""
        self.session = session
        self._tracing = Tracing(
            session,
            TraceOptions(mode=self._mode),
            consumer=self._rows,
            keep=lambda: self._tell(ev.Snapshot()),
        )
        self._probing = session.probes(self._mode)
        self.probes = ProbeList(self._probing, self._tracing, self._mode)
        self._histograms = Histograms(self._tracing)
        self._focus = Focus(session, alone=self._alone)
        self._viewing = Viewing(session, self._focus)
        self._viewing.choose(self._unwinder, now=False)  # as the run before had it
        self._running = Running(session, self._probing, self.probes, self._viewing, self._focus)
        self._editing = Editing(session, self.probes, self._focus)
        self._events = self._declared = self._told = self._calls = 0
        self._origin: Origin = ""
        self._exit_code: int | None = None
        self._next: cmd.Command | None = None
        session.hooks.attention = self._heard
        self._tracing.start()
        for failure in self.probes.restore(tuple(rows)):
            self._tell(ev.Notice(failure))
        self._graph.begin(self._tracing)
        for switch in self._kernel_events.values():
            switch.begin(self._tracing)
        self._declare()
        with self._gate:
            self._hears = True

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

    # -- commands -----------------------------------------------------------------------------

    def execute(self, command: cmd.Command) -> None:
        """Carry a command out; the guest stands, and stands again afterwards."""
        self._ahead.append(command)
        while self._ahead:
            following: cmd.Command | None = self._ahead.popleft()
            while following is not None:
                self._next = None
                self._stepping = isinstance(following, _STEPS)
                self._attempt(following, self._dispatch)
                following = self._next
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
            return self._restart()
        motion = self._running.motion(command)
        if motion is None:
            return self._any_time(command)
        running = self._running
        if running.ended:
            raise CommandError("the program has ended; r runs it from its start")
        try:
            motion()
        except Abandoned:
            pass
        if running.ended:
            self._ended()
        return running.reason

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
                if number not in _SIGNALS:
                    raise CommandError(f"there is no signal {number}")
                self.session.interrupt(number)
                return f"signal {number} sent"
            case cmd.ReadMemory(address, size, original):
                pieces = self._editing.read(address, size, original)
                self._tell(ev.MemoryRead(command, pieces, self._code_changes()))
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

    def _choose(self, tid: int) -> str:
        """Look at another thread."""
        running, machine = self._running, self.session.machine
        if not self._stands():
            raise CommandError("the program is not standing; Ctrl-C stops it")
        if running.machine is not None and tid not in (0, machine.tid):
            raise CommandError("in the middle of a hit; let it finish first")
        said = self._focus.choose(tid or machine.tid)
        self._changed += 1  # the same addresses may have other code now
        running.origin = ""
        return said

    def _edit(self, command: cmd.Command) -> str:
        if not self._editing.is_of_list(command):
            if self._running.state is RunState.RUNNING:
                raise CommandError("the program is running; Ctrl-C stops it")
            if self._running.machine is not None:
                raise CommandError("in the middle of a hit; let it finish first")
        with self._focus.visit():
            text = self._editing.carry_out(command)
        self._changed += 1
        self._running.origin = ""
        return text

    def _restart(self) -> str:
        fresh, rows = self._load(), self.probes.rows  # if it fails, the old run goes on
        if self._exit_code is None:
            self._tracing.finish()
        self._shut()
        self._tell(ev.Restarted())
        changes = self._code_changes()
        self._begin(fresh, rows)
        self._changed = changes + 1
        return "started afresh"

    def _ended(self) -> None:
        """The program is over: everything that was recorded goes out, and what is to be said."""
        end = self.session.machine.exit
        assert end is not None
        self.before_end()
        reports = self.session.report(end)
        self._exit_code = reports.exit_code
        self._running.reason = reports.reason
        for remark in (*reports.damage, *self._tracing.finish(), *reports.remarks):
            self._tell(ev.Notice("\n".join(remark.lines)))

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
        if blocked_in and running.wanted == _INTERRUPTED:
            running.state, running.reason = RunState.STOPPED, f"interrupted in {blocked_in}()"

    def _obey(self, command: cmd.Command) -> None:
        """Carry out a command in the middle of a run."""
        running, blocked_in = self._running, self.session.kernel.waiting_in
        if isinstance(command, cmd.Restart):
            self._next = command
            self._ahead.clear()
            raise Abandoned
        if isinstance(command, cmd.Halt):
            running.wanted = _INTERRUPTED
            self._next = None
            self._ahead.clear()
        elif self._running.motion(command) is None:
            self._attempt(command, self._any_time)
        elif running.state is RunState.STOPPED:
            # The call has to end before anything else can happen. For a step that is all.
            running.wanted = f"{blocked_in}() ended"
            running.state = RunState.RUNNING
            if not isinstance(command, cmd.StepInsn | cmd.StepOver | cmd.StepPhase):
                self._next = command
        elif self._stepping and len(self._ahead) < _AHEAD:
            self._ahead.append(command)  # typed ahead of a step: its turn comes
        else:
            self._tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))

    # -- telling ---------------------------------------------------------------------------------

    def _rows(self, data: bytes) -> None:
        count = count_rows(data)
        self._events += count
        self._tell(ev.Rows(data, count))

    def _declare(self) -> None:
        """Tell of events that are new."""
        infos = self._tracing.table
        if len(infos) > self._declared:
            fresh = tuple(info for number, info in infos.items() if number > self._declared)
            self._declared = len(infos)
            self._tell(ev.Declared(fresh))

    def refresh(self) -> None:
        """Hand over what was recorded, and a view of how things are."""
        if not self._running.ended:
            self._tracing.drain()
        notices = self._probing.notices
        for text in notices[self._told :]:
            self._tell(ev.Notice(text))
        self._told = len(notices)
        self._tell_damage()
        self._tell(ev.Viewed(self.view()))

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
            unwinder=viewing.unwinder.name,
            hit=hit,
            probes=self.probes.views(),
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
            own_program=viewing.own_program,
            time=session.cpu.blocks(),
            system_calls=session.machine.syscall_count,
            waiting_in=waiting,
            events=self._events,
            exit_code=self._exit_code,
            changed=self._code_changes(),
            undo=self._editing.undo_text,
            redo=self._editing.redo_text,
            histograms=self._histograms.texts(running=running.state is RunState.RUNNING),
            detours=viewing.detours.counts(),
        )
        return self._view

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
        if self._exit_code is None:
            self._tracing.finish()
        self._shut()

    def _shut(self) -> None:
        """Close the session; whoever asks for attention meanwhile asks nobody."""
        with self._gate:
            self._hears = False
        self.session.close()

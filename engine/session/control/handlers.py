"""The table of commands: what carries each out, and what it means where the past is looked at.

`engine.session.protocol.kinds` says of each command when it may come and whether it moves the
guest. A command is added by a line there and a line in one of the tables here.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from engine.errors import CommandError
from engine.message_text import counted
from engine.session.control.guest import DebuggedGuest
from engine.session.control.probe_list import ProbeList
from engine.session.control.running import Abandoned, Running
from engine.session.control.runs import EventTeller
from engine.session.control.sight import RunSight
from engine.session.guest.terminal import FrontEndStreams
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.scripts import ScriptRequest
from engine.session.protocol.views import PartsView, RunState, StopCause
from engine.session.tracing.handlers import blamed
from engine.session.tracing.listing import TraceListing
from engine.unwind.compare import UNWINDERS

_SIGNALS: Final = range(1, 65)
_UNCHANGED: Final = (
    "the past cannot be changed; branch continues from here in a run of its own, "
    "goto end leads to the present"
)
_RECORDED: Final = (
    "a recording cannot be changed, its probes can; branch continues from here in a run of its own"
)
_MID_HIT: Final = "in the middle of a hit; let it finish first"


class CommandHandler(Struct, frozen=True):
    """The meaning of a command.

    Attributes:
        carry_out: carries the command out; what it came to, in words.
        in_past: is asked first where the front end stands in the past; None as its answer, or in
            its place: the command means the same there as in the present.
        declares: the command may add events, of which is told then.
    """

    carry_out: Callable[[Any], str]
    in_past: Callable[[Any], str | None] | None = None
    declares: bool = False


Handlers = Mapping[type[cmd.Command], CommandHandler]


class CommandTable:
    """Finds the handler of a command, and has it carried out.

    Attributes:
        parts: the tables that this one is made of.
    """

    def __init__(self, sight: RunSight, *parts: Handlers) -> None:
        """Join the tables of parts, which have no command in common.

        Args:
            sight: the run at hand.
            parts: the handlers of each part.
        """
        self._sight = sight
        self.parts = parts
        self._handlers = {kind: found for part in parts for kind, found in part.items()}

    def carry_out(self, command: cmd.Command) -> str:
        """Carry a command out; what it came to.

        Raises:
            KprobeTuiError: it cannot be carried out; a guest that is closed carries nothing out.
        """
        handler, run = self._handlers[type(command)], self._sight.run
        if handler.in_past is not None and run.place.in_past:
            done = handler.in_past(command)
            if done is not None:
                return done
        said = handler.carry_out(command)
        if handler.declares:
            run.told.declare(run.place.present.tracing)
        return said


class StandingCommands:
    """Commands that leave the guest where it stands: looks, edits, probes, signals, input.

    Attributes:
        unwinder: name of the one that was chosen last: runs that begin later have it, too.
        alone: the thread in sight steps alone; likewise.
        kept: the last answers to questions for memory that are told again when they change.
    """

    def __init__(
        self, sight: RunSight, telling: EventTeller, terminal: FrontEndStreams | None
    ) -> None:
        """Begin with the usual unwinder, all threads stepping together.

        Args:
            sight: the run at hand, and what is looked at.
            telling: takes what is to be known.
            terminal: the guest's standard streams; None for the host's own.
        """
        self._sight = sight
        self._tell = telling.tell
        self._terminal = terminal
        self.unwinder = UNWINDERS[0].name
        self.alone = False
        self.kept: dict[cmd.ReadMemory, tuple[tuple[int, bytes], ...]] = {}

    def handlers(self) -> Handlers:
        """The table of these commands."""
        made: dict[type[cmd.Command], Callable[[Any], str]] = {
            cmd.Refresh: self._nothing,
            cmd.Halt: self._nothing,
            cmd.Input: self._input,
            cmd.Resize: self._resize,
            cmd.Signal: self._signal,
            cmd.ReadMemory: self._read_memory,
            cmd.ReadWords: self._read_words,
            cmd.ShowStack: self._show_stack,
            cmd.ReadParts: self._read_parts,
            cmd.ReadLayout: self._read_layout,
            cmd.AskWords: self._ask_words,
            cmd.CompleteLine: self._complete_line,
            cmd.ListDefinitions: self._list_definitions,
            cmd.SetMark: lambda mark: self._sight.place.mark(mark),
            cmd.DeleteMark: lambda mark: self._sight.place.unmark(mark),
            cmd.Refill: self._refill,
            cmd.SelectFrame: self._select_frame,
            cmd.Unwind: self._unwind,
            cmd.ChooseThread: self._choose_thread,
            cmd.ChooseGoroutine: self._choose_goroutine,
            cmd.ListGoroutines: self._list_goroutines,
            cmd.StepAlone: self._step_alone,
            cmd.TypedLine: lambda line: self._sight.known_words().carry_out(line.text),
        }
        recorded: dict[type[cmd.Command], Callable[[Any], str]] = {
            cmd.Restore: self._restore,
            cmd.LoadHandlers: self._load_handlers,
            cmd.LoadScript: self._load_script,
            cmd.TraceFunctions: lambda given: self._sight.run.switches.graph.turn(
                given.globs, on=given.on, depth=given.depth
            ),
            cmd.TraceKernel: lambda given: self._sight.run.switches.kernel[given.group].turn(
                given.globs, on=given.on
            ),
            cmd.Define: lambda given: self._probes.define(
                given.line, given.replaces, stops=given.stops
            ),
            cmd.ToggleBreak: lambda given: self._probes.toggle_break(given.place),
            cmd.Delete: lambda given: self._probes.delete(given.ids),
            cmd.Enable: lambda given: self._probes.enable(given.ids, on=given.on),
            cmd.StopOnHit: lambda given: self._probes.stop_on_hit(given.ids, on=given.on),
            cmd.SetFilter: lambda given: self._probes.set_filter(given.event, given.text),
            cmd.ChangeTrigger: lambda given: self._probes.add_trigger(given.event, given.text),
            cmd.Undo: self._undo,
            cmd.Redo: self._redo,
            cmd.WriteRegister: lambda given: self._edit(
                lambda: self._present.editing.write_register(given.name, given.value)
            ),
            cmd.WriteMemory: lambda given: self._edit(
                lambda: self._present.editing.write_memory(given.address, given.data)
            ),
            cmd.Assemble: lambda given: self._edit(
                lambda: self._present.editing.assemble(given.address, given.text)
            ),
        }
        return {
            **{kind: CommandHandler(carry_out) for kind, carry_out in made.items()},
            **{
                kind: CommandHandler(carry_out, declares=True)
                for kind, carry_out in recorded.items()
            },
        }

    @property
    def _present(self) -> DebuggedGuest:
        return self._sight.place.present

    @property
    def _probes(self) -> ProbeList:
        return self._present.probes

    # -- the terminal, signals ------------------------------------------------------------------

    def _nothing(self, command: cmd.Command) -> str:
        return ""

    def _input(self, command: cmd.Input) -> str:
        if self._terminal is not None:
            self._terminal.write(command.data)
        return ""

    def _resize(self, command: cmd.Resize) -> str:
        if self._terminal is not None:
            self._terminal.resize(command.columns, command.rows)
        return ""

    def _signal(self, command: cmd.Signal) -> str:
        if self._sight.place.of_recording:
            raise CommandError("a recording gets the signals that were recorded")
        if self._sight.place.in_past:
            raise CommandError(_UNCHANGED)
        if command.number not in _SIGNALS:
            raise CommandError(f"there is no signal {command.number}")
        self._sight.here.session.interrupt(command.number)
        return f"signal {command.number} sent"

    # -- questions ------------------------------------------------------------------------------

    def _read_memory(self, command: cmd.ReadMemory) -> str:
        pieces = self._sight.here.editing.read(command.address, command.size, command.original)
        if command.kept:
            self.kept.pop(command, None)
            self.kept[command] = pieces
            if len(self.kept) > cmd.KEPT_READS:
                del self.kept[next(iter(self.kept))]
        self._tell(ev.MemoryRead(command, pieces, self._sight.place.changes, command.kept))
        return ""

    def tell_changed_memory(self) -> None:
        """Tell the answers that have changed of questions for memory that are kept."""
        here, changes = self._sight.here, self._sight.place.changes
        for command, before in self.kept.items():  # their order stays: see `MemoryRead.kept`
            pieces = here.editing.read(command.address, command.size, command.original)
            if pieces != before:
                self.kept[command] = pieces
                self._tell(ev.MemoryRead(command, pieces, changes))

    def _read_words(self, command: cmd.ReadWords) -> str:
        words = self._sight.here.viewing.words(command.address, command.count)
        self._tell(ev.WordsRead(command, words))
        return ""

    def _show_stack(self, command: cmd.ShowStack) -> str:
        self._sight.stack = command.count
        return ""

    def _read_parts(self, command: cmd.ReadParts) -> str:
        if command.moment == self._sight.moves and self._sight.here.stands:
            self._tell(ev.PartsRead(command, self._parts(command.branches)))
        return ""

    def _read_layout(self, command: cmd.ReadLayout) -> str:
        self._need_standing()
        words = self._sight.known_words()
        with self._sight.here.focus.visit():
            layout = words.layout(command.text, again=command.again)
        self._tell(ev.LayoutRead(command, layout))
        return ""

    def _parts(self, branches: tuple[cmd.Branch, ...]) -> tuple[PartsView | None, ...]:
        """Parts of values."""
        variables, words = self._sight.here.viewing.variables, self._sight.words
        found: list[PartsView | None] = []
        with self._sight.here.focus.visit():
            for branch in branches:
                if branch.frame != cmd.DISPLAYS:
                    parts = variables.parts(
                        branch.frame, branch.number, branch.steps, 0, branch.count
                    )
                    found.append(parts)
                else:
                    found.append(words.display_parts(branch) if words is not None else None)
        return tuple(found)

    def _ask_words(self, command: cmd.AskWords) -> str:
        self._tell(ev.WordsKnown(self._sight.known_words().words()))
        return ""

    def _complete_line(self, command: cmd.CompleteLine) -> str:
        lines = self._sight.known_words().complete(command.text)
        self._tell(ev.LineCompleted(command.text, tuple(lines)))
        return ""

    def _list_definitions(self, command: cmd.ListDefinitions) -> str:
        lines = tuple(TraceListing(self._present.tracing).lines(command.form))
        self._tell(ev.Listed(command.form, lines))
        return ""

    # -- what is looked at ----------------------------------------------------------------------

    def _refill(self, command: cmd.Refill) -> str:
        self._sight.run.told.forget()
        return ""

    def _select_frame(self, command: cmd.SelectFrame) -> str:
        self._sight.look_at(command.number)
        return ""

    def _unwind(self, command: cmd.Unwind) -> str:
        viewing = self._sight.here.viewing
        said = viewing.choose(command.unwinder, now=self._sight.here.stands)
        self.unwinder = viewing.unwinder.name
        return said

    def _choose_thread(self, command: cmd.ChooseThread) -> str:
        """Look at another thread."""
        running, machine = self._sight.here.running, self._sight.here.session.machine
        self._need_standing()
        if running.machine is not None and command.tid not in (0, machine.tid):
            raise CommandError(_MID_HIT)
        said = self._sight.here.focus.choose(command.tid or machine.tid)
        self._looks_elsewhere()
        return said

    def _choose_goroutine(self, command: cmd.ChooseGoroutine) -> str:
        """Look at a goroutine."""
        self._need_standing()
        if self._sight.here.running.machine is not None:
            raise CommandError(_MID_HIT)
        said = self._sight.here.focus.choose_goroutine(command.id)
        self._looks_elsewhere()
        return said

    def _need_standing(self) -> None:
        if not self._sight.here.stands:
            raise CommandError("the program is not standing; Ctrl-C stops it")

    def _looks_elsewhere(self) -> None:
        self._sight.moves_on()
        self._sight.place.change()  # the same addresses may have other code now
        self._sight.here.running.origin = ""

    def _list_goroutines(self, command: cmd.ListGoroutines) -> str:
        self._sight.goroutines = command.on
        self._sight.here.running.origin = self._sight.here.running.origin or ""
        return ""

    def _step_alone(self, command: cmd.StepAlone) -> str:
        said = self._sight.here.focus.step_alone(on=command.on)
        self.alone = command.on
        return said

    # -- what is placed and traced --------------------------------------------------------------

    def _restore(self, command: cmd.Restore) -> str:
        """Place what an earlier session had; what cannot be placed is told together."""
        failures = self._probes.restore(command.probes)
        if command.stops:
            failures += self._sight.known_words().restore(command.stops)
        if failures:
            lost = f"{counted(len(failures), 'thing')} of the last time cannot be placed again"
            self._tell(ev.Remark((f"{lost}:", *failures)))
        return f"{counted(len(command.probes) + len(command.stops), 'thing')} of the last time"

    def _load_handlers(self, command: cmd.LoadHandlers) -> str:
        handlers = self._sight.run.switches.handlers
        said = handlers.load(command.path) if command.on else handlers.unload()
        self._sight.place.change()
        return said

    def _load_script(self, command: cmd.LoadScript) -> str:
        switch, session = self._sight.run.switches.script, self._present.session
        if command.text:
            mode = self._present.tracing.options.mode
            request = ScriptRequest(
                session.config,
                command.name,
                command.text,
                command.parameters,
                quiet=True,
                mode=mode,
                recorded=session.config.history or session.config.recording is not None,
            )
            said = switch.load(request)
        else:
            said = switch.unload()
        self._sight.place.change()
        return said

    # -- changes of the guest -------------------------------------------------------------------

    def _undo(self, command: cmd.Undo) -> str:
        history = self._present.history
        return self._edit(history.undo, of_list=history.undoes_list)

    def _redo(self, command: cmd.Redo) -> str:
        history = self._present.history
        return self._edit(history.redo, of_list=history.redoes_list)

    def _edit(self, change: Callable[[], str], *, of_list: bool = False) -> str:
        """Change the guest, or the list of probes, which can be changed while the guest runs."""
        place, running = self._sight.place, self._sight.here.running
        if not of_list:
            if place.in_past:
                raise CommandError(_RECORDED if place.of_recording else _UNCHANGED)
            if running.state is RunState.RUNNING:
                raise CommandError("the program is running; Ctrl-C stops it")
            if running.machine is not None:
                raise CommandError(_MID_HIT)
        with place.edited(), self._sight.here.focus.visit():
            said = change()
        place.change()
        running.origin = ""
        return said


Motion = Callable[[Running, Any], object]
"""Moves the guest as a command says."""

_RUNS: Final[dict[type[cmd.Command], Motion]] = {
    cmd.Continue: lambda running, _: running.on(),
    cmd.ContinueToHit: lambda running, _: running.to_hit(),
    cmd.RunTo: lambda running, given: running.to(given.address, alone=given.alone),
    cmd.CallFunction: lambda running, given: running.call(given.text),
}
"""Motions of all threads."""
_STEPS: Final[dict[type[cmd.Command], Motion]] = {
    cmd.StepInsn: lambda running, given: running.steps(given.count, over=False),
    cmd.StepOver: lambda running, given: running.steps(given.count, over=True),
    cmd.StepLine: lambda running, given: running.step_line(
        over=given.over,
        unknown=given.unknown,
        same=given.same,
        inlined=given.inlined,
        out=given.out,
    ),
    cmd.StepPhase: lambda running, _: running.step_phase(),
    cmd.FinishHit: lambda running, _: running.finish_hit(),
    cmd.Finish: lambda running, _: running.out(),
}
"""Motions of the thread in sight."""
_TRAVELS: Final[tuple[type[cmd.Command], ...]] = (
    cmd.StepBack,
    cmd.LineBack,
    cmd.FinishBack,
    cmd.ContinueBack,
    cmd.LastWrite,
    cmd.LastRegisterWrite,
    cmd.FirstTime,
    cmd.LastTime,
    cmd.Seek,
    cmd.SeekMark,
)
"""Motions that begin or end in the past."""


class MotionCommands:
    """Commands that move the guest: in the present, in the past, or from one to the other."""

    def __init__(self, sight: RunSight, telling: EventTeller, ended: Callable[[], object]) -> None:
        """Move the guest of the run at hand.

        Args:
            sight: the run at hand, and what is looked at.
            telling: takes what is to be known.
            ended: called when a motion has ended the program.
        """
        self._sight, self._tell, self._ended = sight, telling.tell, ended

    def handlers(self) -> Handlers:
        """The table of these commands."""
        in_past: dict[type[cmd.Command], Callable[[Any], str | None]] = {
            cmd.Continue: self._continue,
            cmd.ContinueToHit: self._to_hit,
            cmd.StepPhase: self._phase_on,
            cmd.StepInsn: self._finish_hit,
            cmd.StepOver: self._finish_hit,
            cmd.FinishHit: self._finish_hit,
        }
        found = {
            kind: CommandHandler(
                partial(self._move, motion, kind in _RUNS), in_past.get(kind, self._leave_hit)
            )
            for kind, motion in (_RUNS | _STEPS).items()
        }
        found[cmd.Finish] = CommandHandler(self._finish, self._leave_hit)
        found |= {kind: CommandHandler(self._travel) for kind in _TRAVELS}
        found[cmd.PhaseBack] = CommandHandler(self._phase_back)
        found[cmd.Origin] = CommandHandler(self._follow_value)
        return found

    def _begins_to_move(self) -> None:
        if self._sight.words is not None:
            self._sight.words.begins_to_move()

    def _moved(self) -> None:
        if self._sight.words is not None:
            self._sight.words.moved()

    # -- motions of the guest itself ------------------------------------------------------------

    def _move(self, motion: Motion, runs: bool, command: cmd.Command) -> str:
        """Let the guest move: in the present, or in the past that is looked at."""
        run, here = self._sight.run, self._sight.place.here
        running = here.running
        if running.ended:
            standing = here.session.left_standing
            what = f"cannot go on: {running.reason}" if standing else "has ended"
            raise CommandError(f"the program {what}; r starts it afresh")
        if here.session.core is not None:
            raise CommandError("a core file does not move; r runs the program from its beginning")
        self._sight.moves_on()
        self._begins_to_move()
        try:
            with blamed(run.switches.handlers.path or None):
                running.move(partial(motion, running, command), runs=runs)
        except Abandoned:
            pass
        if run.place.in_past:
            run.place.look_for_present()
        elif running.ended:
            self._ended()
        self._moved()
        return running.reason

    def _finish(self, command: cmd.Finish) -> str:
        """Run to the current function's return; what it has returned, where asked for."""
        step = partial(self._move, _STEPS[cmd.Finish], False, command)
        if not command.tells or self._sight.place.here.session.supervisor is not None:
            return step()
        told = self._sight.known_words().returning()
        said = step()
        running = self._sight.place.here.running
        arrived = running.state is RunState.STOPPED and running.cause is StopCause.ARRIVED
        return told() if arrived and said == running.reason else ""

    # -- phases of hits in the past -------------------------------------------------------------

    def _by_phase(self) -> str:
        """A phase of a hit of the past was come to."""
        self._sight.moves_on()
        self._moved()
        return self._sight.place.here.running.reason

    def _phase_back(self, command: cmd.PhaseBack) -> str:
        self._sight.place.need_history()
        self._begins_to_move()
        self._sight.place.phase_back()
        return self._by_phase()

    def _phase_on(self, command: cmd.StepPhase) -> str | None:
        self._begins_to_move()
        if self._sight.place.phase_on():
            return self._by_phase()
        # Behind it a phase is an instruction of the past like any other.
        self._sight.place.leave_hit()
        return None

    def _to_hit(self, command: cmd.ContinueToHit) -> str:
        self._begins_to_move()
        self._sight.place.to_hit()
        return self._by_phase()

    def _finish_hit(self, command: cmd.Command) -> str | None:
        """Carry out what is left of a hit: that is all of a step."""
        self._begins_to_move()
        if self._sight.place.finish_hit():
            return self._by_phase()
        self._sight.place.leave_hit()
        return None

    def _leave_hit(self, command: cmd.Command) -> str | None:
        """Carry out what is left of a hit, and go on without probes."""
        self._begins_to_move()
        self._sight.place.finish_hit()
        self._sight.place.leave_hit()
        return None

    def _continue(self, command: cmd.Continue) -> str | None:
        self._leave_hit(command)
        return self._travel(command) if self._sight.place.in_past else None

    # -- motions that begin or end in the past --------------------------------------------------

    def _travel(self, command: cmd.Command) -> str:
        place = self._sight.place
        place.leave_hit()
        place.check()
        self._sight.moves_on()
        self._begins_to_move()
        place.go(command)
        self._moved()
        return place.here.running.reason

    def _follow_value(self, command: cmd.Origin) -> str:
        """Follow a value back; the guest stands where it stood afterwards, at the same frame."""
        place, frame = self._sight.place, self._sight.frame
        self._travel(command)
        travel, running = place.travel, place.here.running
        assert travel is not None, "it was followed in the past"
        cut = running.cause is StopCause.INTERRUPTED
        self._sight.look_at(frame)
        self._sight.links, travel.links = travel.links, ()
        self._tell(ev.OriginFound(command.text, self._sight.links, cut))
        return running.reason if cut else ""

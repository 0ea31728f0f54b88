"""Carries out what leaves the guest where it stands: looks, edits, probes, signals, input."""

from typing import Final

from engine.errors import CommandError
from engine.session.control.guest import GuestStand
from engine.session.control.probe_list import ProbeList
from engine.session.control.runs import EventTeller, KeptRun
from engine.session.control.sight import RunSight
from engine.session.guest.terminal import FrontEndStreams
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import PartsView, RunState
from engine.session.tracing.listing import TraceListing
from engine.unwind.compare import UNWINDERS
from engine.words import counted

_SIGNALS: Final = range(1, 65)
_UNCHANGED: Final = (
    "the past cannot be changed; branch continues from here in a run of its own, "
    "goto end leads to the present"
)
_RECORDED: Final = (
    "a recording cannot be changed, its probes can; branch continues from here in a run of its own"
)


class StillCommands:
    """Commands that do not move the guest; they may come while it runs.

    Attributes:
        unwinder: name of the one that was chosen last: runs that begin later have it, too.
        alone: the thread in sight steps alone; likewise.
    """

    def __init__(
        self, sight: RunSight, telling: EventTeller, terminal: FrontEndStreams | None
    ) -> None:
        """Nothing was chosen.

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

    @property
    def _run(self) -> KeptRun:
        return self._sight.run

    @property
    def _here(self) -> GuestStand:
        return self._run.place.here

    @property
    def _probes(self) -> ProbeList:
        return self._run.place.present.probes

    def carry_out(self, command: cmd.Command) -> str:
        """Carry a command out; what it came to.

        Raises:
            KprobeTuiError: it cannot be.
        """
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
                if self._run.place.of_recording:
                    raise CommandError("a recording gets the signals that were recorded")
                if self._run.place.in_past:
                    raise CommandError(_UNCHANGED)
                if number not in _SIGNALS:
                    raise CommandError(f"there is no signal {number}")
                self._here.session.interrupt(number)
                return f"signal {number} sent"
            case cmd.ReadMemory(address, size, original):
                pieces = self._here.editing.read(address, size, original)
                self._tell(ev.MemoryRead(command, pieces, self._run.place.changes))
                return ""
            case cmd.ReadWords(address, count):
                self._tell(ev.WordsRead(command, self._here.viewing.words(address, count)))
                return ""
            case cmd.ReadParts(moment, branches):
                if moment == self._sight.moves and self._here.stands:
                    self._tell(ev.PartsRead(command, self._parts(branches)))
                return ""
            case cmd.SetMark() | cmd.DeleteMark():
                return self._run.place.mark(command)
            case cmd.Refill():
                self._run.told.forget()
                return ""
            case cmd.Restore(probes, stops):
                text = self._restore(probes, stops)
            case cmd.LoadHandlers(path, on):
                text = (
                    self._run.switches.handlers.load(path)
                    if on
                    else self._run.switches.handlers.unload()
                )
                self._run.place.change()
            case cmd.AskWords():
                self._tell(ev.WordsKnown(self._sight.known_words().words()))
                return ""
            case cmd.ListDefinitions(form):
                lines = tuple(TraceListing(self._run.place.present.tracing).lines(form))
                self._tell(ev.Listed(form, lines))
                return ""
            case cmd.SelectFrame(number):
                self._sight.look_at(number)
                return ""
            case cmd.Unwind(unwinder):
                said = self._here.viewing.choose(unwinder, now=self._here.stands)
                self.unwinder = self._here.viewing.unwinder.name
                return said
            case cmd.ChooseThread(tid):
                return self._choose(tid)
            case cmd.StepAlone(on):
                said = self._here.focus.step_alone(on=on)
                self.alone = on
                return said
            case cmd.TraceFunctions(globs, on, depth):
                text = self._run.switches.graph.turn(globs, on=on, depth=depth)
            case cmd.TraceKernel(globs, on, group):
                text = self._run.switches.kernel[group].turn(globs, on=on)
            case _:
                done = self._probes.carry_out(command, self._tell)
                text = self._edit(command) if done is None else done
        self._run.told.declare(self._run.place.present.tracing)
        return text

    def _restore(
        self, probes: tuple[cmd.SavedProbe, ...], stops: tuple[cmd.SavedStop, ...]
    ) -> str:
        """Place what an earlier session had; what cannot be placed is told together."""
        failures = self._probes.restore_saved(probes)
        if stops:
            failures += self._sight.known_words().restore(stops)
        if failures:
            lost = f"{counted(len(failures), 'thing')} of the last time cannot be placed again"
            self._tell(ev.Remark((f"{lost}:", *failures)))
        return f"{counted(len(probes) + len(stops), 'thing')} of the last time"

    def _parts(self, branches: tuple[cmd.Branch, ...]) -> tuple[PartsView | None, ...]:
        """Parts of values."""
        variables, words = self._here.viewing.variables, self._sight.words
        found: list[PartsView | None] = []
        with self._here.focus.visit():
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
        running, machine = self._here.running, self._here.session.machine
        if not self._here.stands:
            raise CommandError("the program is not standing; Ctrl-C stops it")
        if running.machine is not None and tid not in (0, machine.tid):
            raise CommandError("in the middle of a hit; let it finish first")
        said = self._here.focus.choose(tid or machine.tid)
        self._sight.moves_on()
        self._run.place.change()  # the same addresses may have other code now
        running.origin = ""
        return said

    def _edit(self, command: cmd.Command) -> str:
        editing = self._run.place.present.editing
        if not editing.is_of_list(command):
            if self._run.place.in_past:
                raise CommandError(_RECORDED if self._run.place.of_recording else _UNCHANGED)
            if self._here.running.state is RunState.RUNNING:
                raise CommandError("the program is running; Ctrl-C stops it")
            if self._here.running.machine is not None:
                raise CommandError("in the middle of a hit; let it finish first")
        with self._run.place.edited(), self._here.focus.visit():
            text = editing.carry_out(command)
        self._run.place.change()
        self._here.running.origin = ""
        return text

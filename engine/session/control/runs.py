"""A run from its start on: how it begins, what is told of it, and what is kept of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError, KprobeTuiError, ProbeSyntaxError
from engine.linux.fs.stdio import HostStream
from engine.session.control.past.position import RunPosition
from engine.session.control.running import Abandoned, Running
from engine.session.control.tracing_choices import RunSwitches
from engine.session.guest.session import Session
from engine.session.guest.terminal import ChosenTerminal, FrontEndStreams
from engine.session.program.opening import OpenedProgram
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.views import Origin, RunState
from engine.session.tracing.tracing import Tracing
from engine.trace.rows import count_rows

if TYPE_CHECKING:
    from engine.session.control.past.branches import BranchLeap
    from engine.session.control.past.refill import LogRefill
    from engine.session.control.past.travel import Travel


class EventTeller:
    """Tells what happens in the run at hand.

    Attributes:
        out: takes what is told.
        context: what was told of the run's files, programs and kinds of events.
    """

    def __init__(self, out: Callable[[ev.SessionEvent], object]) -> None:
        """Tell a front end from now on."""
        self.out = out
        self.context: list[ev.SessionEvent] = []
        self._held: list[ev.SessionEvent] | None = None

    def tell(self, event: ev.SessionEvent) -> None:
        """Tell something; later, while it is held."""
        if isinstance(event, ev.Declared | ev.ProgramBegan | ev.FileMapped | ev.FileRead):
            self.context.append(event)
        if self._held is None:
            self.out(event)
        elif not isinstance(event, ev.Rows | ev.Viewed | ev.Snapshot):
            self._held.append(event)

    def attempt(self, command: cmd.Command, call: Callable[[cmd.Command], str]) -> None:
        """Carry a command out and tell how it went."""
        try:
            self.tell(ev.Done(command, call(command)))
        except ProbeSyntaxError as error:
            text = str(error)
            self.tell(ev.Failed(command, text, error.hint, error.command, error.column))
        except KprobeTuiError as error:
            self.tell(ev.Failed(command, str(error), error.hint))

    def hold(self) -> None:
        """Keep what is told of a run that is not at hand yet."""
        self._held, self.context = [], []

    def release(self) -> list[ev.SessionEvent]:
        """Tell everything at once from now on; what was kept."""
        held, self._held = self._held or [], None
        return held


class ToldEvents:
    """Tells one run's events: their kinds, their rows, and what becomes of its log later.

    Attributes:
        refill: makes the log of a recorded run anew; None for any other run.
        count: rows told since the start of the run, or since all of the log was told anew.
    """

    def __init__(self, tell: Callable[[ev.SessionEvent], object]) -> None:
        """Begin with no row told."""
        self.refill: LogRefill | None = None
        self.count = 0
        self._tell = tell
        self._declared = 0
        self._of: dict[int, int] = {}

    def rows(self, data: bytes, stretch: int | None = None) -> None:
        """Tell rows.

        Args:
            data: the rows, packed.
            stretch: number of the stretch of the past that they are of; None for the run's own.
        """
        count = count_rows(data)
        self.count += count
        if stretch is not None:
            self._of[stretch] = self._of.get(stretch, 0) + count
        self._tell(ev.Rows(data, count, stretch))

    def begin(self, stretch: int) -> None:
        """Tell that the rows of a stretch of the past come from its begin on."""
        self.count -= self._of.pop(stretch, 0)
        self._tell(ev.StretchBegun(stretch))

    def declare(self, tracing: Tracing) -> None:
        """Tell of the events of a trace that are new."""
        infos = tracing.table
        if len(infos) > self._declared:
            fresh = tuple(info for number, info in infos.items() if number > self._declared)
            self._declared = len(infos)
            self._tell(ev.Declared(fresh))

    def keep(self, running: Running, goes_on: Callable[[], bool]) -> None:
        """Make the log what it would be if all that is recorded had been so from the start.

        Args:
            running: the run itself; where it stands in a hit, the log waits for the next stop.
            goes_on: asked now and then: False ends it.
        """
        refill = self.refill
        if refill is None:
            return
        if running.state is RunState.READY:
            refill.accept()
        try:
            while goes_on() and refill.is_due:
                if running.state is RunState.RUNNING or running.machine is not None:
                    return
                before, self.count = self.count, 0
                self._of.clear()
                if not refill.renew(goes_on):
                    self.count = before
        except Abandoned:
            pass

    def forget(self) -> None:
        """Have all of the log made anew when it is kept next.

        Raises:
            CommandError: the run is not recorded.
        """
        if self.refill is None:
            raise CommandError("the run is not recorded: its past cannot be filled in")
        self.refill.forget()


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

    place: RunPosition
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


class RunStarts:
    """Starts the runs of one front end's guest."""

    def __init__(self, telling: EventTeller, mode: Mode, terminal: FrontEndStreams | None) -> None:
        """None has started.

        Args:
            telling: takes what is to be known.
            mode: strictness of placement.
            terminal: the guest's standard streams; the host's own if None.
        """
        self._telling = telling
        self._mode = mode
        self._terminal = terminal

    def fresh(self, config: GuestConfig, opened: OpenedProgram | None = None) -> Session:
        """A run in front of its first instruction.

        Args:
            config: of the guest.
            opened: the program, if it is open already.

        Raises:
            KprobeTuiError: it cannot be run.
        """
        if config.recording is not None:
            return _replayed(opened, config)
        if config.history:
            config = replace(config, count_blocks=True)
        return self._on_terminal(config, lambda streams: Session(config, streams, opened))

    def branched(self, config: GuestConfig, leap: "BranchLeap") -> Session:
        """A run that will be brought to where another one was.

        Raises:
            KprobeTuiError: it cannot be run.
        """
        return self._on_terminal(config, leap.session)

    def _on_terminal(
        self, config: GuestConfig, begin: Callable[[tuple[HostStream, ...] | None], Session]
    ) -> Session:
        chosen = ChosenTerminal(config.tty) if config.tty else None
        terminal = chosen or self._terminal
        try:
            session = begin(terminal.streams() if terminal else None)
        except BaseException:
            if chosen is not None:
                chosen.close()
            raise
        if chosen is not None:
            session.lent.append(chosen.close)
        return session

    def travel(
        self, config: GuestConfig, session: Session, leap: "BranchLeap | None"
    ) -> "Travel | None":
        """The way to the past of a run that begins; None where it is not recorded."""
        recording = config.recording
        if recording is None and (not session.config.history or session.core is not None):
            return None
        from engine.session.control.past import travel

        keeps = self._mode is Mode.STRICT
        if recording is None or leap is not None:
            script = leap.script if leap is not None else None
            return travel.recorded(session, script, keeps=keeps)
        return travel.lived_through(session, recording, self._telling.tell, keeps=keeps)


def _replayed(opened: OpenedProgram | None, config: GuestConfig) -> Session:
    """The run of a recording."""
    from engine.session.guest.past import replayed
    from engine.session.program.recorded import RecordedGuest, recorded_guest

    return replayed(opened if isinstance(opened, RecordedGuest) else recorded_guest(config))

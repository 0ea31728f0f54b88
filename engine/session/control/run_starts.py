"""The starts of runs: sessions on a terminal, and the ways to their pasts."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.linux.fs.stdio import HostStream
from engine.session.control.telling import EventTeller
from engine.session.guest.session import Session
from engine.session.guest.terminal import ChosenTerminal, FrontEndStreams
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import GuestConfig

if TYPE_CHECKING:
    from engine.session.control.branching import BranchLeap
    from engine.session.control.travel import Travel


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
        from engine.session.control import travel  # few runs are recorded

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

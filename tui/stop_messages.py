"""Messages of stops: what is said once the guest stands, and of a frame that is looked at."""

from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import GuestFrame
from engine.session.protocol.kinds import kind_of
from engine.session.protocol.views import GuestView, RunState
from tui.desk import Desk
from tui.source_files import SourceFiles
from tui.stop_words import frame_words, own_frame, stop_words


class StopMessages:
    """Says why the guest stands, unless an answer to words that were typed says so already.

    Where a program was killed or is stuck, the frame of the user's own code is looked at and told.
    """

    def __init__(self, desk: Desk) -> None:
        """Say nothing yet.

        Args:
            desk: shows messages and has the engine carry commands out.
        """
        self._desk = desk
        self._sources = SourceFiles()
        self._answered = self._moved = False
        self._own = -1
        self._returned = ""

    def sent(self, command: cmd.Command) -> None:
        """A command goes to the engine: an answer of before is out of date where it moves."""
        if kind_of(command).changes_view:
            self._answered = False

    def done(self, command: cmd.Command, text: str) -> None:
        """A command was carried out, and told a text."""
        moves = kind_of(command).moves
        self._moved |= moves or isinstance(command, cmd.PhaseBack)
        if moves:  # a line that was typed before has been answered before
            self._answered = False
        if isinstance(command, cmd.Finish):
            self._returned = text

    def answered(self) -> None:
        """Words that were typed have said what there is to say."""
        self._answered = True

    def show(self, view: GuestView, old: GuestView) -> None:
        """Say what a new view has to be told of."""
        ended = old.state is not view.state and view.state is RunState.ENDED
        own = self._look_at_own(view) if ended else None
        if view.frame != old.frame and view.frame < len(view.frames):
            frame = view.frames[view.frame]
            if view.frame == self._own:
                own, self._moved = frame, True  # its arguments are known now
            elif view.moment == old.moment and not self._answered:
                self._desk.say(f"#{frame.number} {frame_words(frame, self._sources)}")
            self._own = -1
        if self._moved or old.state is not view.state or old.reason != view.reason:
            self._moved = False
            self._announce(view, own)

    def _announce(self, view: GuestView, own: GuestFrame | None) -> None:
        if view.state in (RunState.STOPPED, RunState.ENDED) and not self._answered:
            severity = "error" if view.reason.startswith("killed") else "information"
            self._desk.say(stop_words(view, own, self._sources, self._returned), severity)
        self._returned = ""

    def _look_at_own(self, view: GuestView) -> GuestFrame | None:
        """Look at the frame of the user's own code, if any."""
        own = own_frame(view, self._sources) if not view.frame else None
        if own is not None and own.number:
            self._own = own.number
            self._desk.post(cmd.SelectFrame(own.number))
        return own

"""News of the run at hand for a front end, told or held back."""

from collections.abc import Callable

from engine.errors import KprobeTuiError, ProbeSyntaxError
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev


class EventTeller:
    """Tells what happens in the run at hand.

    Attributes:
        out: takes what is told.
        context: what was told of the run's files, programs and kinds of events.
    """

    def __init__(self, out: Callable[[ev.SessionEvent], object]) -> None:
        """Nothing has happened."""
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

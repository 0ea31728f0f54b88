"""The end of the interface, and the question before it."""

from engine.session.protocol.views import RunState
from tui.desk import Desk
from tui.store import EventStore
from tui.widgets.bars import Question


class Quitting:
    """Ends the interface, after a question if that would lose something."""

    def __init__(self, desk: Desk, store: EventStore) -> None:
        """Nothing is in a file yet."""
        self._desk = desk
        self._store = store
        self._exported = store.version, 0

    def exported(self, version: int, end: int) -> None:
        """The events that the store had in a version, up to a number, are in a file."""
        self._exported = version, end

    def ask(self) -> None:
        """Quit; ask first if that would lose something."""
        view, store = self._desk.view, self._store
        version, end = self._exported
        losses = []
        if len(store) and (store.version != version or store.end > end):
            losses.append(f"{store.end} events are in no file (:export FILE)")
        alive = view.state in (RunState.RUNNING, RunState.WAITING, RunState.STOPPED)
        if alive and view.exit_code is None:  # else it is the past of a run that is over
            losses.append("the program is alive")
        if losses:
            self._desk.ask(Question("quit", f"y or n: {', '.join(losses)}", self._answer))
        else:
            self._desk.leave()

    def _answer(self, text: str) -> None:
        if text.strip().lower() in ("y", "yes"):
            self._desk.leave()

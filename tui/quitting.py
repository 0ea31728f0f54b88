"""The end of the interface, and the question before it."""

from engine.session.protocol.views import RunState
from tui.desk import Desk
from tui.widgets.bars import Question


class Quitting:
    """Ends the interface, after a question if that would lose something."""

    def __init__(self, desk: Desk) -> None:
        """Nothing is in a file yet."""
        self._desk = desk
        self._exported = 0

    def exported(self, events: int) -> None:
        """So many events, the first ones, are in a file."""
        self._exported = events

    def ask(self) -> None:
        """Quit; ask first if that would lose something."""
        view = self._desk.view
        losses = []
        if view.events > self._exported:
            losses.append(f"{view.events} events are in no file (:export FILE)")
        if view.state in (RunState.RUNNING, RunState.WAITING, RunState.STOPPED):
            losses.append("the program is alive")
        if losses:
            self._desk.ask(Question("quit", f"y or n: {', '.join(losses)}", self._answer))
        else:
            self._desk.leave()

    def _answer(self, text: str) -> None:
        if text.strip().lower() in ("y", "yes"):
            self._desk.leave()

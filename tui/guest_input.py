"""Who has the keys while the guest reads its terminal: the guest, until the user wants them."""

from time import monotonic
from typing import Final

from textual.timer import Timer
from textual.widgets import Input

from engine.session.protocol.views import GuestView, RunState
from tui.body import Body
from tui.desk import Desk
from tui.panes.output import OutputPane

QUIET: Final = 0.7
"""Seconds without a key after which nobody is taken to be typing any more."""
_READS: Final = ("read", "readv", "poll", "ppoll", "select", "_newselect", "pselect6")


def reads_terminal(view: GuestView) -> bool:
    """True if the guest can do nothing until somebody types."""
    return view.state is RunState.WAITING and any(
        thread.call in _READS and "/dev/pts/" in thread.waits for thread in view.listed
    )


class GuestInput:
    """Gives the keys to the guest's line when the guest reads, and takes them back when it stands.

    Keys that somebody types for the guest must never be commands: the line keeps them while there
    is text in it, and for a moment after the last key.
    """

    def __init__(self, desk: Desk, body: Body) -> None:
        """The keys are commands."""
        self._desk = desk
        self._body = body
        self._output: OutputPane = body.panes.output
        self._reads = False
        self._declined = False
        self._came_from = "output"
        self._typed = 0.0
        self._timer: Timer | None = None

    @property
    def _has_keys(self) -> bool:
        line = self._output.guest_line  # which has its focus until it hears that it has none
        return line.has_focus and self._body.screen.focused is line

    def show(self, view: GuestView) -> None:
        """Take a new view of the guest."""
        before, self._reads = self._reads, reads_terminal(view)
        if view.state is RunState.READY:
            self._declined = False
        if self._reads and not before and not self._declined:
            self._give()
        elif view.state in (RunState.STOPPED, RunState.ENDED) and self._has_keys:
            self._wait()

    def _give(self) -> None:
        focused = self._body.screen.focused
        if self._has_keys or not self._body.screen.is_current or isinstance(focused, Input):
            return  # something is typed, or asked by a dialog
        self._came_from = self._body.choice.focused
        self._body.show_pane("output")
        self._body.screen.set_focus(self._output.guest_line, scroll_visible=False)
        self._desk.say("the program reads: keys go to it; Esc: they are commands again")

    def typed(self) -> None:
        """Something was typed for the guest."""
        self._typed = monotonic()

    def entered(self) -> None:
        """The user has gone into the line."""
        self._declined = False

    def leave(self) -> None:
        """The user wants the keys to be commands, until he goes into the line himself."""
        self._declined = True
        self._back()
        self._desk.say("keys are commands; 7 and Enter type to the program again")

    def _wait(self) -> None:
        """See in a moment whether anybody is still typing."""
        if self._timer is None:
            self._timer = self._desk.every(QUIET, self._look)

    def _look(self) -> None:
        stands = self._desk.view.state in (RunState.STOPPED, RunState.ENDED)
        typing = bool(self._output.guest_line.value) or monotonic() - self._typed < QUIET
        if stands and typing and self._has_keys:
            return
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if stands and self._has_keys:
            self._back()

    def _back(self) -> None:
        """The keys belong to the pane that had them before."""
        if self._came_from == "output":
            self._output.focus_inside()
        else:
            self._body.show_pane(self._came_from)
        self._came_from = "output"

"""The command that the engine is carrying out, once the user has to wait for it."""

import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

from textual.app import App
from textual.timer import Timer

from engine.session.protocol import commands as cmd
from engine.session.protocol.kinds import CommandKind, kind_of
from tui.render import harmless

_PATIENCE: Final = 0.2
"""Seconds after which a wait is told of."""
_AGAIN: Final = 0.5
"""Seconds between two looks at how far it is."""
_TOLD: Final = frozenset(
    (
        *(CommandKind.LINE, CommandKind.STILL, CommandKind.RESTART),
        *(CommandKind.PAST, CommandKind.SEEK, CommandKind.BRANCH),
    )
)
"""Kinds that may take long while the guest stands. A guest that runs is seen to run."""


class WorkInHand:
    """Follows the commands that were sent and are not answered.

    Commands are answered in their order; those behind the first one wait for it. One that is
    left out, as a seek is that another one follows, goes with the next that is answered.
    """

    def __init__(
        self,
        app: App[int],
        show: Callable[[str], None],
        how_far: Callable[[], tuple[float, str] | None] = lambda: None,
    ) -> None:
        """Nothing was sent.

        Args:
            app: counts the time.
            show: shows what is waited for; "" for nothing.
            how_far: gives the part of the work that is done and the file that is read, "" for
                none; None where nobody knows.
        """
        self._app, self._show, self._how_far = app, show, how_far
        self._sent: list[cmd.Command] = []
        self._timer: Timer | None = None
        self._began = 0.0

    @property
    def is_there(self) -> bool:
        """True while a line or another command that may take long is not answered."""
        return bool(self._sent)

    def sent(self, command: cmd.Command) -> None:
        """A command was sent."""
        if kind_of(command) not in _TOLD or isinstance(command, cmd.Refresh):
            return
        self._sent.append(command)
        if len(self._sent) == 1:
            self._begin()

    def answered(self, command: cmd.Command) -> None:
        """A command was answered, and all that were sent before it."""
        at = next((n for n, one in enumerate(self._sent) if one is command), None)
        if at is None:
            return
        del self._sent[: at + 1]
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._show("")
        if self._sent:
            self._begin()

    def _begin(self) -> None:
        self._began = monotonic()
        self._timer = self._app.set_timer(_PATIENCE, self._tell)

    def _tell(self) -> None:
        """Show the command, how long it takes and how many wait behind it."""
        if not self._sent:
            return
        seconds = int(monotonic() - self._began)
        done = _done(self._how_far())
        time = f" {seconds} s" if seconds else ""
        told = f"works{done}{time}, Esc or Ctrl-C ends it"
        behind = len(self._sent) - 1
        more = f", {behind} more typed" if behind else ""
        self._show(f"{told}{more}: {_text(self._sent[0])}")  # a long line is cut at its end
        self._timer = self._app.set_timer(_AGAIN, self._tell)


def _done(reached: tuple[float, str] | None) -> str:
    """Say how far work is, in front of its time."""
    if reached is None:
        return ""
    part, file = reached
    return f" {part:.0%}" + (f" of {harmless(Path(file).name)}" if file else "")


def _text(command: cmd.Command) -> str:
    """A command as a user would call it: the line that was typed, or the words of its name."""
    if isinstance(command, cmd.TypedLine):
        return command.text.partition("\n")[0]
    name = re.sub(r"(?<!^)([A-Z])", r" \1", type(command).__name__).lower()
    values = (getattr(command, field) for field in command.__struct_fields__)
    given = next((one for one in values if isinstance(one, str) and one), "")
    return f"{name} {given}".strip()

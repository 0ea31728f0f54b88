"""The line of gdb's words that the engine is carrying out, once the user has to wait for it."""

from collections.abc import Callable
from time import monotonic
from typing import Final

from textual.app import App
from textual.timer import Timer

_PATIENCE: Final = 0.3
"""Seconds after which a wait is told of."""
_SECOND: Final = 1.0


class LineInHand:
    """Follows the lines that were typed and are not answered.

    Lines are answered in their order; those behind the first one wait for it.
    """

    def __init__(self, app: App[int], show: Callable[[str], None]) -> None:
        """Nothing was typed.

        Args:
            app: counts the time.
            show: shows what is waited for; "" for nothing.
        """
        self._app, self._show = app, show
        self._lines: list[str] = []
        self._timer: Timer | None = None
        self._began = 0.0

    @property
    def is_there(self) -> bool:
        """True while a line is not answered."""
        return bool(self._lines)

    def typed(self, line: str) -> None:
        """A line was typed."""
        self._lines.append(line.partition("\n")[0])
        if len(self._lines) == 1:
            self._begin()

    def answered(self) -> None:
        """The line in hand was answered."""
        del self._lines[:1]
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._show("")
        if self._lines:
            self._begin()

    def _begin(self) -> None:
        self._began = monotonic()
        self._timer = self._app.set_timer(_PATIENCE, self._tell)

    def _tell(self) -> None:
        """Show the line, how long it takes and how many wait behind it."""
        if not self._lines:
            return
        seconds = int(monotonic() - self._began)
        told = f"works{f' {seconds} s' if seconds else ''}, Ctrl-C ends it"
        behind = len(self._lines) - 1
        more = f", {behind} more typed" if behind else ""
        self._show(f"{told}{more}: {self._lines[0]}")  # a long line is cut at its end
        self._timer = self._app.set_timer(_SECOND, self._tell)

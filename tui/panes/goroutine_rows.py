"""The goroutines of a Go program as lines: what each waits for, where the user's code is."""

from typing import Final

from rich.text import Text

from engine.session.protocol.views import GoroutinesView, GoroutineView
from tui.render import harmless, mark
from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks

_STATUS: Final = 24
"""Cells of a status."""
_STATES: Final = {"running": "good", "syscall": "good", "waiting": "note"}


class GoroutineRows(LineSource):
    """One line a goroutine, and one that says what was left out."""

    empty = "there are no goroutines"

    def __init__(self) -> None:
        self.listed = GoroutinesView()
        self._id = self._status = 1

    def fill(self, listed: GoroutinesView) -> bool:
        """Take the goroutines of a view; True if they are others than before."""
        if listed is self.listed:
            return False
        self.listed = listed
        self._id = max((len(str(one.id)) for one in listed.listed), default=1)
        self._status = max((min(len(one.status), _STATUS) for one in listed.listed), default=1)
        return True

    @property
    def count(self) -> int:
        """Goroutines, and the line of what was left out."""
        return len(self.listed.listed) + bool(self.listed.why)

    def at(self, index: int) -> GoroutineView | None:
        """The goroutine of a line; None for that of what was left out."""
        listed = self.listed.listed
        return listed[index] if 0 <= index < len(listed) else None

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """Marks, number, what it waits for, the user's function and line, its thread."""
        one, plain = self.at(index), looks.ascii_only
        text = Text(no_wrap=True)
        if one is None:
            left = self.listed.left_out
            more = f"{left} more not listed: " if left else ""
            text.append(more + harmless(self.listed.why, plain), looks("warn"))
            return text
        text.append(mark("shown", plain) if one.shown else " ", looks("accent"))
        text.append("*" if one.thread else " ", looks("good"))
        text.append(f"{one.id:>{self._id}} ")
        status = harmless(one.status, plain)
        text.append(f"{status:<{self._status}} ", looks(_STATES.get(one.state, "dim")))
        text.append(harmless(one.user or one.function, plain), looks("name"))
        if one.file:
            name = harmless(one.file.rpartition("/")[2], plain)
            text.append(f" {name}:{one.line}", looks("dim"))
        if one.thread:
            text.append(f" on {one.thread}", looks("dim"))
        if one.created:
            text.append(f" by {harmless(one.created, plain)}", looks("dim"))
        return text

    def line_of_shown(self) -> int | None:
        """The line of the goroutine that panes show."""
        return next((n for n, one in enumerate(self.listed.listed) if one.shown), None)

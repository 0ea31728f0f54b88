"""Goroutines of a Go program as threads of an editor, as delve shows them.

A goroutine that a thread runs is told in that thread's name. One that waits has a row of its own,
with a number above those of all threads: an editor asks for its stack and its variables like for
any other's. A row is named by the user's function that waits, and by what it waits for.
"""

from typing import Final

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger
from engine.session.inspect.goroutine_views import GoroutineViews
from engine.session.protocol import commands as cmd
from engine.session.serve.dap.bodies import DapThread

_FIRST: Final = 1 << 32
"""Added to a goroutine's number: threads of Linux have 22 bits, and editors' numbers 53."""
_MOST: Final = 1024
"""Goroutines that an editor is told of, as many as delve tells."""


class GoroutineThreads:
    """The goroutines of a debugger's guest, which stands."""

    def __init__(self, debugger: Debugger) -> None:
        """Nothing is looked at yet."""
        self._debugger = debugger

    @property
    def shown(self) -> int:
        """The editor's number of what is looked at: a thread, or a goroutine that waits."""
        parked = self._debugger.control.sight.here.focus.parked
        return self._debugger.thread if parked is None else _FIRST + parked.id

    def look_at(self, number: int) -> bool:
        """Look at a goroutine; False if the number is that of a thread.

        Raises:
            CommandError: there is no such goroutine.
        """
        if number < _FIRST:
            return False
        self._debugger.execute(cmd.ChooseGoroutine(number - _FIRST))
        return True

    def check_moves(self, number: int) -> None:
        """Refuse to step a goroutine that no thread runs.

        Raises:
            CommandError: it waits.
        """
        if number >= _FIRST:
            raise CommandError(
                f"goroutine {number - _FIRST} waits, and no thread runs it: step another thread, "
                "or set a breakpoint where it goes on"
            )

    def listed(self) -> tuple[dict[int, str], list[DapThread]]:
        """Names of the goroutines that threads run, by thread, and a row of each that waits."""
        control = self._debugger.control
        focus = control.sight.here.focus
        with control.sight.visit():
            views = GoroutineViews(control.session)
            found = views.listed(focus.thread.space, focus.thread, 0).listed[:_MOST]
        running, rows = {}, []
        for one in found:
            name = f"[Go {one.id}] {one.user or one.function}"
            if one.thread:
                running[one.thread] = name
            else:
                rows.append(DapThread(_FIRST + one.id, f"{name} ({one.status})"))
        return running, rows

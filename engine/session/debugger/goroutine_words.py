"""Words for goroutines of a Go program: info goroutines, goroutine N, goroutine N WORD.

They are those of runtime-gdb.py, which Go has for gdb, and say more: what a goroutine waits for
and where the user's code is, as delve does.
"""

from collections.abc import Callable
from typing import Final

from engine.errors import CommandError, KprobeTuiError
from engine.message_text import counted
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.looking import Looking
from engine.session.debugger.output import message
from engine.session.inspect.goroutine_views import GoroutineViews
from engine.session.inspect.goroutines import MOST
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GoroutinesView, GoroutineView

_USAGE: Final = "goroutine NUMBER [WORD], or goroutine all WORD"


class GoroutineWords:
    """Looks at the goroutines of a debugger's guest."""

    def __init__(
        self, debugger: Debugger, looking: Looking, line: Callable[[str], object]
    ) -> None:
        """Look at those of a debugger's guest; `line` carries a word out."""
        self._debugger, self._looking = debugger, looking
        self._line = line

    # -- the list ---------------------------------------------------------------------------

    def info_goroutines(self, rest: str) -> None:
        """Goroutines of a Go program, what each waits for and where it is."""
        listed = self._listed()
        if not listed.listed and listed.why:
            raise CommandError(listed.why)
        put = self._debugger.put
        wide = max((len(str(one.id)) for one in listed.listed), default=1)
        for one in listed.listed:
            put(self._row(one, wide))
        if listed.left_out:
            left = counted(listed.left_out, "goroutine")
            put(f"{left} more not listed: {listed.why}")

    def _listed(self) -> GoroutinesView:
        debugger = self._debugger
        if not debugger.started:
            raise CommandError("The program has no goroutines now.")
        control = debugger.control
        focus = control.sight.here.focus
        with control.sight.visit():
            views = GoroutineViews(control.session)
            parked = 0 if focus.parked is None else focus.parked.id
            return views.listed(focus.thread.space, focus.thread, parked, MOST)

    def _row(self, one: GoroutineView, wide: int) -> str:
        """A line as runtime-gdb.py has it, and what Go's traceback and delve add to it."""
        mark = "*" if one.thread else " "
        text = f"{mark} {one.id:>{wide}} {one.state:<8} {one.function}"
        if one.status != one.state:
            text += f" [{one.status}]"
        if one.user and one.user != one.function:
            text += f" in {one.user}"
        if one.file:
            text += f" at {self._debugger.frames.sources.written(one.file)}:{one.line}"
        if one.thread:
            numbers = self._debugger.threads.numbers()
            number = next((n for n, tid in numbers.items() if tid == one.thread), 0)
            text += f" (thread {number})"
        return text

    # -- one of them ------------------------------------------------------------------------

    def goroutine(self, rest: str) -> None:
        """Look at a goroutine: goroutine NUMBER; goroutine NUMBER...|all WORD for one or all."""
        debugger = self._debugger
        if not debugger.started:
            raise CommandError("The program has no goroutines now.")
        which, _, word = rest.partition(" ")
        word = word.strip()
        if not which:
            self._say_which()
        elif which == "all":
            if not word:
                raise CommandError(_USAGE)
            self._all(word)
        else:
            number = debugger.value(which).number
            if word:
                with GoroutineVisit(debugger, number):
                    self._line(word)
                return
            said = self._choose(number)
            debugger.put(f"[Switching to {said}]")
            self._looking.show_frame()

    def _say_which(self) -> None:
        shown = next((one for one in self._listed().listed if one.shown), None)
        if shown is None:
            self._debugger.put("[No goroutine runs on the current thread]")
        else:
            self._debugger.put(f"[Current goroutine is {shown.id} ({shown.status})]")

    def _all(self, word: str) -> None:
        debugger = self._debugger
        listed = self._listed()
        if not listed.listed and listed.why:
            raise CommandError(listed.why)
        for one in listed.listed:
            debugger.output.breathe()
            debugger.put("")
            debugger.put(f"Goroutine {one.id} ({one.status}):")
            try:
                with GoroutineVisit(debugger, one.id):
                    self._line(word)
            except KprobeTuiError as error:
                debugger.put(message(error))

    def _choose(self, number: int) -> str:
        debugger = self._debugger
        said = debugger.execute(cmd.ChooseGoroutine(number))
        debugger.frames.moved()
        return said


class GoroutineVisit:
    """Selects a goroutine for a while."""

    def __init__(self, debugger: Debugger, number: int) -> None:
        """Select a goroutine of a debugger's guest by its number."""
        focus = debugger.control.sight.here.focus
        self._debugger, self._number = debugger, number
        self._thread, self._selected = debugger.thread, debugger.frames.selected
        self._parked = None if focus.parked is None else focus.parked.id
        self._moves = 0

    def __enter__(self) -> None:
        debugger = self._debugger
        debugger.execute(cmd.ChooseGoroutine(self._number))
        debugger.frames.moved()
        self._moves = debugger.control.sight.moves

    def __exit__(self, *error: object) -> None:
        debugger = self._debugger
        if debugger.control.sight.moves != self._moves:
            return  # the word has let the guest move: what it shows now is what is looked at
        debugger.execute(cmd.ChooseThread(self._thread))
        if self._parked is not None:
            debugger.execute(cmd.ChooseGoroutine(self._parked))
        debugger.frames.moved()
        debugger.frames.selected = self._selected

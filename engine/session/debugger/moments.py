"""Words for the moments of a recorded run: goto, bookmarks, the recording itself."""

from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.moving import Moving
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState

_DIGITS: Final = 20
"""Of a tick, at the most."""


class MomentWords:
    """Goes to moments of a recorded run, and tells of them."""

    def __init__(self, debugger: Debugger, moving: Moving) -> None:
        """Go to moments of a debugger's guest.

        Args:
            debugger: the debugger whose guest goes there.
            moving: tells of the stops that this leads to.
        """
        self._debugger, self._moving = debugger, moving

    def goto(self, rest: str) -> None:
        """Go to a moment of the run: goto begin|end|TICK|PERCENT%|MARK."""
        self._moving.need_past()
        word = rest.removeprefix("record").strip()
        number = word.removesuffix("%").strip()
        if word in ("begin", "start"):
            self._moving.go(cmd.Seek(0))
        elif word == "end":
            if self._live_through(None):
                self._moving.go(cmd.Seek())
        elif not word or not word[0].isalpha():
            if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
                raise CommandError(
                    "goto begin, goto end, goto TICK of the guest's clock, goto 40%, or goto MARK."
                )
            clock = int(number)
            if not self._live_through(clock if number == word else None):
                return
            if number != word:
                end = (self._debugger.control.history() or (0, 0, False))[1]
                clock = end * min(clock, 100) // 100
            self._moving.go(cmd.Seek(clock))
        else:
            self._moving.go(cmd.SeekMark(word))

    def _live_through(self, clock: int | None) -> bool:
        """Live through a recording to its end, if a moment is asked for that was not come to yet.

        Args:
            clock: the moment's tick; None for the end.

        Returns:
            False if the user does not want it any more, which has been told.
        """
        debugger, control = self._debugger, self._debugger.control
        known = control.history()
        if not control.of_recording or known is None or (clock is not None and clock <= known[1]):
            return True
        watches, debugger.watches = debugger.watches, lambda: ""
        try:
            with control.undisturbed():
                if known[2]:
                    debugger.move(cmd.Seek())
                if control.state is not RunState.ENDED:
                    debugger.move(cmd.Continue())
        finally:
            debugger.watches = watches
        if control.state is RunState.ENDED:
            return True
        return self._moving.reports.told(control.thread)

    def mark(self, rest: str) -> None:
        """Make the moment at which the program stands a bookmark: mark [NAME]."""
        self._moving.need_past()
        self._debugger.put(self._debugger.execute(cmd.SetMark(rest)))

    def unmark(self, rest: str) -> None:
        """Forget a bookmark: unmark NAME."""
        self._debugger.put(self._debugger.execute(cmd.DeleteMark(rest)))

    def info_marks(self, rest: str) -> None:
        """List the bookmarks: the tick of each, and where the program stands there."""
        debugger = self._debugger
        view = debugger.control.view().history
        if view is None or not view.marks:
            debugger.put("No bookmarks.")
            return
        debugger.put("Name        Tick             Address")
        for one in view.marks:
            where = debugger.scope.symbol(one.pc)
            shown = f" <{where}>" if where else ""
            debugger.put(f"{one.name:<11} {one.time:<16} {one.pc:#x}{shown}")

    def record(self, rest: str) -> None:
        """Record the program from its next start on, so that one can go back: record [stop]."""
        debugger = self._debugger
        word, _, more = rest.partition(" ")
        if word == "goto":
            self.goto(more)
            return
        if word not in ("", "full", "stop", "s"):
            raise CommandError("record, record stop, or record goto begin|end|TICK.")
        on = word in ("", "full")
        config = debugger.control.config
        if on and config.history:
            raise CommandError(
                'The process is already being recorded.  Use "record stop" to stop.'
            )
        debugger.configure(replace(config, history=on))
        if on and debugger.started:
            debugger.put("The program is recorded from its next start on: run, or start.")

    def info_record(self, rest: str) -> None:
        """Tell of the recording: its end, and where the program stands in it."""
        debugger = self._debugger
        found = debugger.control.history()
        if found is None:
            debugger.put("No recording is currently active.")
            return
        now, end, past = found
        debugger.put("Active record target: record-full")
        debugger.put("Replay mode:" if past else "Record mode:")
        debugger.put("Lowest recorded tick is 0.")
        if past:
            debugger.put(f"Current tick is {now}.")
        debugger.put(f"Highest recorded tick is {end}.")

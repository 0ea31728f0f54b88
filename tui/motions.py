"""Motions of the guest: runs, steps, and the slow motion of a hit's phases."""

from enum import Enum
from typing import Final

from textual.timer import Timer

from engine.session.protocol import commands as cmd
from engine.session.protocol.kinds import CommandKind, kind_of
from engine.session.protocol.views import RunState
from tui.desk import Desk
from tui.navigator import Navigator
from tui.panes.registry import Panes

_SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Phases a second."""
AHEAD: Final = 8
"""Steps that are asked for before the first of them is seen to be done; more are left out."""
_PLAYED: Final = (cmd.StepPhase, cmd.ContinueToHit, cmd.PhaseBack, cmd.Restart)
"""Commands of slow motion, and the one at which they are forgotten."""


class Playing(Enum):
    """The kinds of slow motion, by their words."""

    HITS = "playing"
    EVERYTHING = "playing all"
    BACK = "playing back"


class SlowMotion:
    """Plays the phases of hits, one after the other.

    Attributes:
        playing: whether it does so now.
    """

    def __init__(self, desk: Desk, panes: Panes) -> None:
        """Nothing is played yet."""
        self._desk = desk
        self._panes = panes
        self.playing = False
        self._timer: Timer | None = None
        self._speed = 2
        self._what = Playing.HITS
        self._sent = self._runs = self._carried = False
        self._from_past = False

    def play_hits(self) -> None:
        """Run to the next hit and play its phases, then the next one's; or stop that."""
        self._toggle(Playing.HITS)

    def play_everything(self) -> None:
        """Play phases and the instructions between hits; or stop that."""
        self._toggle(Playing.EVERYTHING)

    def play_back(self) -> None:
        """Play phases of the hits of the past, the last one first; or stop that."""
        self._toggle(Playing.BACK)

    def _toggle(self, what: Playing) -> None:
        if self.playing and what is self._what:
            self.stop()
            return
        self.stop()
        self._what = what
        self._start()
        self._play()

    def stop(self) -> None:
        """No more of it."""
        self._sent = self._runs = self._carried = self._from_past = False
        if self._timer is not None:
            self._timer.stop()
            self._timer, self.playing = None, False
            self._panes.machinery.note("")

    def change_speed(self, step: int) -> None:
        """Play faster, or slower."""
        self._speed = max(0, min(self._speed + step, len(_SPEEDS) - 1))
        if self._timer is not None:
            self._timer.stop()
            self._start()
        self._desk.say(f"{_SPEEDS[self._speed]:g} phases a second")

    def done(self, command: cmd.Command) -> None:
        """A command was carried out; the guest is not yet seen to stand."""
        self._carried = self._carried or isinstance(command, _PLAYED)

    def stands(self) -> None:
        """The guest stands: what was sent is carried out."""
        if self._carried:  # else as it stood before
            self._sent = self._carried = False

    def _start(self) -> None:
        speed = _SPEEDS[self._speed]
        self._timer, self.playing = self._desk.every(1 / speed, self._play), True
        self._panes.machinery.note(f"{self._what.value}, {speed:g} phases/s")

    def _play_back(self) -> None:
        view = self._desk.view
        if self._sent or view.state not in (RunState.STOPPED, RunState.READY, RunState.ENDED):
            return
        self._sent = True
        self._desk.post(cmd.PhaseBack())

    def _play(self) -> None:
        if self._what is Playing.BACK:
            self._play_back()
            return
        view = self._desk.view
        if view.state is RunState.ENDED:
            self.stop()
        elif view.state in (RunState.STOPPED, RunState.READY) and not self._sent:
            past = view.history is not None and view.history.past
            # Something else has stopped it, or it has come to the present.
            if (self._runs and not view.at_hit) or (self._from_past and not past):
                self.stop()
                return
            self._from_past = past
            self._runs = not (self._what is Playing.EVERYTHING or view.at_hit)
            self._sent = True
            self._desk.post(cmd.ContinueToHit() if self._runs else cmd.StepPhase())


class Motions:
    """Moves the guest; slow motion ends with any other motion."""

    def __init__(
        self, desk: Desk, panes: Panes, navigator: Navigator, slow_motion: SlowMotion
    ) -> None:
        """Nothing moves yet."""
        self._desk = desk
        self._post = desk.post
        self._panes = panes
        self._navigator = navigator
        self._slow_motion = slow_motion
        self._ahead = 0

    def run(self, command: cmd.Command) -> None:
        """Have a motion carried out; steps of a key that is held down do not pile up."""
        if self._slow_motion.playing:
            self._slow_motion.stop()
        if kind_of(command) is CommandKind.STEP:
            if self._ahead >= AHEAD:
                return
            self._ahead += 1
        self._post(command)

    def stands(self) -> None:
        """The guest stands, and is seen to: steps that were asked for are carried out."""
        self._ahead = 0
        self._slow_motion.stands()

    def run_to_cursor(self) -> None:
        """Run to the instruction at the cursor."""
        self.run(cmd.RunTo(self._panes.code.code.cursor))

    def phase(self) -> None:
        """The next phase of the hit at hand; without one, to the current instruction first."""
        view, code = self._desk.view, self._panes.code.code
        if view.hit is None and code.cursor != view.pc:
            code.locate(view.pc)
            self._navigator.look_at(view.pc)
            return
        self.run(cmd.StepPhase())

    def interrupt(self) -> None:
        """Copy a selection; without one stop the guest, as Ctrl-C does under gdb."""
        if self._desk.copy_selection():
            return
        self.run(cmd.Halt())  # in any case: the view may be older than the guest
        stands = self._desk.view.state not in (RunState.RUNNING, RunState.WAITING)
        if stands and not self._desk.works:
            self._desk.say("the program is not running; q quits")

    def walk(self, frames: int) -> None:
        """To the caller's frame, or to the called one."""
        self._panes.backtrace.walk(frames)

    def print_value(self) -> None:
        """Have an expression typed that is printed: the variable at the cursor to begin with."""
        self._desk.open_command_line("p", self._panes.backtrace.asked_about)

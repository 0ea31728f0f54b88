"""Motions of the guest: runs, steps, and the slow motion of a hit's phases."""

from typing import Final

from textual.timer import Timer

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState
from tui.desk import Desk
from tui.navigator import Navigator
from tui.panes.registry import Panes

_SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Phases a second."""


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

    def toggle(self) -> None:
        """Play, or stop playing."""
        if self.playing:
            self.stop()
        else:
            self._start()

    def stop(self) -> None:
        """No more of it."""
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

    def _start(self) -> None:
        speed = _SPEEDS[self._speed]
        self._timer, self.playing = self._desk.every(1 / speed, self._play), True
        self._panes.machinery.note(f"playing, {speed:g} phases/s")

    def _play(self) -> None:
        state = self._desk.view.state
        if state in (RunState.STOPPED, RunState.READY):
            self._desk.post(cmd.StepPhase())
        elif state is RunState.ENDED:
            self.stop()


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

    def run(self, command: cmd.Command) -> None:
        """Have a motion carried out."""
        if self._slow_motion.playing:
            self._slow_motion.stop()
        self._post(command)

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
        if self._desk.view.state not in (RunState.RUNNING, RunState.WAITING):
            self._desk.say("the program is not running; q quits")

    def walk(self, frames: int) -> None:
        """To the caller's frame, or to the called one."""
        self._panes.backtrace.walk(frames)

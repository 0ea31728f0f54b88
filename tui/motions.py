"""Actions that move the guest, slow motion included."""

from typing import Final

from textual.timer import Timer
from textual.widgets import Input

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView, RunState
from tui.base import AppBase
from tui.messages import Located

_SIGINT: Final = 2
_SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Phases a second."""


class Motions(AppBase):
    """Part of the app: runs, steps, plays."""

    _playing: Timer | None = None
    _speed = 2

    def _ask(self, command: cmd.Command) -> None:
        """Stop playing, and have a command carried out."""
        self.stop_playing()
        self.bridge.post(command)

    def action_go_on(self) -> None:
        """Continue."""
        self._ask(cmd.Continue())

    def action_step(self) -> None:
        """One instruction."""
        self._ask(cmd.StepInsn())

    def action_step_over(self) -> None:
        """One instruction, calls as a whole."""
        self._ask(cmd.StepOver())

    def action_step_line(self) -> None:
        """One source line."""
        self._ask(cmd.StepLine())

    def action_next_line(self) -> None:
        """One source line, calls as a whole."""
        self._ask(cmd.StepLine(over=True))

    def action_finish(self) -> None:
        """Run until the function has returned."""
        self._ask(cmd.Finish())

    def action_run_to(self) -> None:
        """Run to the cursor."""
        self._ask(cmd.RunTo(self.pane("code").code.cursor))

    def action_restart(self) -> None:
        """Start afresh."""
        self._ask(cmd.Restart())

    def action_interrupt(self) -> None:
        """Copy a selection; without one stop the guest, as Ctrl-C does under gdb."""
        focused = self.focused
        typed = focused.selected_text if isinstance(focused, Input) else ""
        selected = typed or self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            return
        self._ask(cmd.Halt())  # in any case: the view may be older than the guest
        if self.view.state not in (RunState.RUNNING, RunState.WAITING):
            self.say("the program is not running; q quits")

    # -- phases -----------------------------------------------------------------------------

    def action_phase(self) -> None:
        """The next phase of the hit at hand; without one, to the current instruction first."""
        code = self.pane("code").code
        if self.view.hit is None and code.cursor != self.view.pc:
            code.locate(self.view.pc)
            self.post_message(Located(self.view.pc))
            return
        self._ask(cmd.StepPhase())

    @property
    def playing_text(self) -> str:
        """How slow motion stands, for the machinery pane."""
        return f"playing, {_SPEEDS[self._speed]:g} phases/s" if self._playing is not None else ""

    def action_play(self) -> None:
        """Play the phases of hits, or stop playing."""
        if self._playing is not None:
            self.stop_playing()
            return
        self._playing = self.set_interval(1 / _SPEEDS[self._speed], self._play_on)
        self.pane("machinery").note(self.playing_text)

    def stop_playing(self) -> None:
        """No more slow motion."""
        if self._playing is not None:
            self._playing.stop()
            self._playing = None
            self.pane("machinery").note("")

    def _play_on(self) -> None:
        if self.view.state in (RunState.STOPPED, RunState.READY):
            self.bridge.post(cmd.StepPhase())
        elif self.view.state is RunState.ENDED:
            self.stop_playing()

    def _change_speed(self, step: int) -> None:
        self._speed = max(0, min(self._speed + step, len(_SPEEDS) - 1))
        if self._playing is not None:
            self._playing.stop()
            self._playing = self.set_interval(1 / _SPEEDS[self._speed], self._play_on)
        self.say(f"{_SPEEDS[self._speed]:g} phases a second")

    def action_faster(self) -> None:
        """Play faster."""
        self._change_speed(1)

    def action_slower(self) -> None:
        """Play slower."""
        self._change_speed(-1)

    def action_up_frame(self) -> None:
        """To the caller's frame."""
        self.pane("backtrace").lines.walk(1)

    def action_down_frame(self) -> None:
        """To the called frame."""
        self.pane("backtrace").lines.walk(-1)

    def moved(self, old: GuestView, view: GuestView) -> None:
        """A view has come: say why the guest stands, when it has stopped."""
        if old.state is view.state and old.reason == view.reason:
            return
        if view.state in (RunState.STOPPED, RunState.ENDED):
            severity = "error" if view.reason.startswith("killed") else "information"
            self.say(view.reason, severity)

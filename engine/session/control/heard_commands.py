"""Commands that come in while the guest runs, or a line of words or the past takes long."""

from collections import deque
from collections.abc import Callable
from typing import Final

from engine.session.control.guest import GuestStand
from engine.session.control.running import Abandoned
from engine.session.control.runs import EventTeller, KeptRun
from engine.session.control.sight import RunSight
from engine.session.control.still_commands import StillCommands
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.kinds import CommandKind, kind_of
from engine.session.protocol.views import RunState, StopCause

_AHEAD: Final = 10_000
"""Commands that may be typed ahead of a step."""
_AT_ONCE: Final = (CommandKind.QUESTION, CommandKind.TERMINAL, CommandKind.STILL)
"""Kinds of commands that are carried out while the guest runs or its past is lived through."""


class HeardCommands:
    """Commands that have come in: some are carried out at once, others wait for their turn.

    Attributes:
        waiting: gives the next command that has come in, None for none; asked while the
            guest runs.
        wait: the same, but waits for one, None to give up; asked while the guest stands
            inside a blocked call.
        ahead: those that wait for their turn.
        following: what is to be carried out behind the command at hand, in front of them.
        cut: the user wants what takes long to end.
    """

    def __init__(
        self,
        sight: RunSight,
        still: StillCommands,
        telling: EventTeller,
        dispatch: Callable[[cmd.Command], str],
        refresh: Callable[[], object],
    ) -> None:
        """Nothing has come in.

        Args:
            sight: the run at hand.
            still: carries out commands that move nothing.
            telling: takes what is to be known.
            dispatch: carries out any command while the guest stands.
            refresh: tells a view, and the events that were recorded before.
        """
        self.waiting: Callable[[], cmd.Command | None] = lambda: None
        self.wait: Callable[[], cmd.Command | None] = lambda: None
        self.ahead: deque[cmd.Command] = deque()
        self.following: cmd.Command | None = None
        self.cut = False
        self._stepping = False
        self._sight, self._still, self._telling = sight, still, telling
        self._dispatch, self._refresh = dispatch, refresh

    @property
    def _run(self) -> KeptRun:
        return self._sight.run

    @property
    def _here(self) -> GuestStand:
        return self._run.place.here

    def begin(self, command: cmd.Command) -> None:
        """A command is about to be carried out; nothing is to follow it yet."""
        self.following = None
        self._stepping = kind_of(command) is CommandKind.STEP

    # -- while something takes long -----------------------------------------------------------

    def halted(self) -> bool:
        """True if the user wants a stop; what else has come in is carried out later."""
        while (command := self.waiting()) is not None:
            if kind_of(command) is CommandKind.HALT:
                return True
            self.ahead.append(command)
        return False

    def cuts_short(self) -> bool:
        """True if the user wants the line of words that is carried out to end, or all to."""
        try:
            return self.cut or self.halted()
        except Abandoned:
            return True

    def listens(self) -> bool:
        """Hear what has come in while a run is lived through: whether to go on."""
        while (command := self.waiting()) is not None:
            kind = kind_of(command)
            if kind is CommandKind.HALT:
                self.cut = True
                self.ahead.clear()
            elif not isinstance(command, cmd.Refresh):
                self.cut = self.cut or kind is CommandKind.RESTART
                self.ahead.append(command)
        return not self.cut

    def lives_on(self) -> bool:
        """Hear what has come in while the past is lived through: whether to go on."""
        self.hear()
        return not self._here.running.wanted

    def goes_on(self) -> bool:
        """Carry out what has come in meanwhile and moves nothing: whether to go on."""
        changed = False
        while (command := self.waiting()) is not None:
            kind = kind_of(command)
            if kind is CommandKind.HALT:
                self.cut = True
                self.ahead.clear()
                break
            if kind in _AT_ONCE:
                self._telling.attempt(command, self._still.carry_out)
                changed = changed or kind.changes_view
            else:
                self.ahead.append(command)
                self.cut = self.cut or kind is CommandKind.RESTART
        if changed:
            self._refresh()
        return not self.cut

    # -- while the guest runs -----------------------------------------------------------------

    def hear(self) -> None:
        """Carry out the commands that have come in while the guest runs or is blocked.

        The guest's kernel calls this. A view is made only where one of these commands may have
        changed what it shows: the answer to a question is all that a front end has asked for.

        Raises:
            Abandoned: the run is not to go on.
        """
        changed = False
        while (command := self.waiting()) is not None:
            self._obey(command)
            changed = changed or kind_of(command).changes_view
        if self._stand_in_call() or changed:
            self._refresh()
        while self._here.running.state is RunState.STOPPED:  # in the middle of a blocked call
            command = self.wait()
            if command is None:
                raise Abandoned
            self._obey(command)
            if self._stand_in_call() or kind_of(command).changes_view:
                self._refresh()

    def _stand_in_call(self) -> bool:
        """Stop inside a blocked call if the user wants a stop, which may be older than the call.

        Returns:
            True if the guest stands there from now on.
        """
        running, blocked_in = self._here.running, self._here.session.kernel.waiting_in
        if not (blocked_in and running.wanted and running.cause is StopCause.INTERRUPTED):
            return False
        stood = running.state is RunState.STOPPED
        running.state, running.reason = RunState.STOPPED, f"interrupted in {blocked_in}()"
        return not stood

    def _obey(self, command: cmd.Command) -> None:
        """Carry out a command in the middle of a run."""
        here, kind = self._here, kind_of(command)
        running, blocked_in = here.running, here.session.kernel.waiting_in
        room = len(self.ahead) < _AHEAD
        if kind is CommandKind.RESTART:
            self.following = command
            self.ahead.clear()
            raise Abandoned
        if kind is CommandKind.HALT:
            self.cut = True
            running.want("interrupted", StopCause.INTERRUPTED)
            here.session.nudge()  # what has heard it would run on else
            self.following = None
            self.ahead.clear()
        elif isinstance(command, cmd.TypedLine):
            self._type(command)
        elif kind.travels and self._run.place.in_past and room:
            if kind is CommandKind.SEEK:
                self.ahead = deque(each for each in self.ahead if kind_of(each) is not kind)
            self.ahead.append(command)
        elif kind is CommandKind.BRANCH:
            where = f"in {blocked_in}()" if running.state is RunState.STOPPED else "running"
            self._telling.tell(ev.Failed(command, f"the program is {where}", "let that end first"))
        elif kind in _AT_ONCE:
            self._telling.attempt(command, self._still.carry_out)
        elif running.state is RunState.STOPPED:
            # The call has to end before anything else can happen. For a step that is all.
            running.want(f"{blocked_in}() ended", StopCause.CUT_SHORT)
            running.state = RunState.RUNNING
            if not isinstance(command, cmd.StepInsn | cmd.StepOver | cmd.StepPhase):
                self.following = command
        elif self._stepping and room:
            self.ahead.append(command)  # typed ahead of a step: its turn comes
        else:
            self._telling.tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))

    def _type(self, command: cmd.TypedLine) -> None:
        """Carry a line of words out in the middle of a run."""
        running = self._here.running
        if running.state is not RunState.STOPPED:
            self._telling.tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))
        elif self._sight.known_words().moves(command.text):
            running.want(f"{self._here.session.kernel.waiting_in}() ended", StopCause.ARRIVED)
            running.state, self.following = RunState.RUNNING, command
        else:
            self._telling.attempt(command, self._dispatch)

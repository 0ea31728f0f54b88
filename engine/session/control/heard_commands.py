"""Commands that come in while the guest runs, or a line of words or the past takes long."""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from engine.session.control.branches import KeptRun
from engine.session.control.running import Abandoned
from engine.session.control.stand import GuestStand
from engine.session.control.still_commands import StillCommands
from engine.session.control.telling import EventTeller
from engine.session.control.typed_words import TypedWords
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState, StopCause

BACK: Final = (
    *(cmd.StepBack, cmd.LineBack, cmd.FinishBack, cmd.ContinueBack),
    *(cmd.LastWrite, cmd.LastRegisterWrite, cmd.Origin, cmd.FirstTime, cmd.LastTime),
    *(cmd.Seek, cmd.SeekMark, cmd.PhaseBack),
)
"""Commands that begin or end in the past."""
BRANCHING: Final = (*(cmd.StartBranch, cmd.SwitchBranch, cmd.DeleteBranch, cmd.CompareBranches),)
"""Commands about branches."""
_STEPS: Final = (cmd.StepInsn, cmd.StepOver, cmd.StepLine, cmd.StepPhase, cmd.FinishHit)
_AHEAD: Final = 10_000
"""Commands that may be typed ahead of a step."""


class CommandCarrier(Protocol):
    """Who has the run at hand, and carries commands out."""

    def at_hand(self) -> KeptRun:
        """The run at hand, and all that is known of it."""

    def known_words(self) -> TypedWords:
        """Who carries words out.

        Raises:
            CommandError: nobody does.
        """

    def dispatch(self, command: cmd.Command) -> str:
        """Carry out any command; the guest stands.

        Raises:
            KprobeTuiError: it cannot be.
        """

    def attempt(self, command: cmd.Command, call: Callable[[cmd.Command], str]) -> None:
        """Carry a command out and tell how it went."""

    def refresh(self) -> None:
        """Hand over what was recorded, and a view of how things are."""


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
        self, carrier: CommandCarrier, still: StillCommands, telling: EventTeller
    ) -> None:
        """Nothing has come in.

        Args:
            carrier: carries commands out.
            still: those that move nothing.
            telling: takes what is to be known.
        """
        self.waiting: Callable[[], cmd.Command | None] = lambda: None
        self.wait: Callable[[], cmd.Command | None] = lambda: None
        self.ahead: deque[cmd.Command] = deque()
        self.following: cmd.Command | None = None
        self.cut = False
        self._stepping = False
        self._carrier, self._still, self._tell = carrier, still, telling.tell

    @property
    def _run(self) -> KeptRun:
        return self._carrier.at_hand()

    @property
    def _here(self) -> GuestStand:
        return self._run.place.here

    def begin(self, command: cmd.Command) -> None:
        """A command is about to be carried out; nothing is to follow it yet."""
        self.following = None
        self._stepping = isinstance(command, _STEPS)

    # -- while something takes long -----------------------------------------------------------

    def halted(self) -> bool:
        """True if the user wants a stop; what else has come in is carried out later."""
        while (command := self.waiting()) is not None:
            if isinstance(command, cmd.Halt):
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
            if isinstance(command, cmd.Halt):
                self.cut = True
                self.ahead.clear()
            elif isinstance(command, cmd.Restart):
                self.cut = True
                self.ahead.append(command)
            elif not isinstance(command, cmd.Refresh):
                self.ahead.append(command)
        return not self.cut

    def lives_on(self) -> bool:
        """Hear what has come in while the past is lived through: whether to go on."""
        self.hear()
        return not self._here.running.wanted

    def goes_on(self) -> bool:
        """Carry out what has come in meanwhile and moves nothing: whether to go on."""
        done = False
        while (command := self.waiting()) is not None:
            if isinstance(command, cmd.Halt):
                self.cut = True
                self.ahead.clear()
                break
            moves = self._here.running.motion(command) is not None
            moves = moves or isinstance(command, BACK + BRANCHING)
            if moves or isinstance(command, cmd.Restart | cmd.TypedLine):
                self.ahead.append(command)
                if isinstance(command, cmd.Restart):
                    self.cut = True
            else:
                self._carrier.attempt(command, self._still.carry_out)
                done = True
        if done:
            self._carrier.refresh()
        return not self.cut

    # -- while the guest runs -----------------------------------------------------------------

    def hear(self) -> None:
        """The kernel's ear: commands have come in while the guest runs or is blocked.

        Raises:
            Abandoned: the run is not to go on.
        """
        while (command := self.waiting()) is not None:
            self._obey(command)
        self._stand_in_call()
        self._carrier.refresh()
        while self._here.running.state is RunState.STOPPED:  # in the middle of a blocked call
            command = self.wait()
            if command is None:
                raise Abandoned
            self._obey(command)
            self._stand_in_call()
            self._carrier.refresh()

    def _stand_in_call(self) -> None:
        """Stop inside a blocked call if the user wants a stop; he may have said so before it."""
        running, blocked_in = self._here.running, self._here.session.kernel.waiting_in
        if blocked_in and running.wanted and running.cause is StopCause.INTERRUPTED:
            running.state, running.reason = RunState.STOPPED, f"interrupted in {blocked_in}()"

    def _obey(self, command: cmd.Command) -> None:
        """Carry out a command in the middle of a run."""
        here = self._here
        running, blocked_in = here.running, here.session.kernel.waiting_in
        if isinstance(command, cmd.Restart):
            self.following = command
            self.ahead.clear()
            raise Abandoned
        if isinstance(command, cmd.Halt):
            self.cut = True
            running.want("interrupted", StopCause.INTERRUPTED)
            here.session.nudge()  # what has heard it would run on else
            self.following = None
            self.ahead.clear()
        elif isinstance(command, cmd.TypedLine):
            self._type(command)
        elif isinstance(command, BACK) and self._run.place.in_past and len(self.ahead) < _AHEAD:
            if isinstance(command, cmd.Seek | cmd.SeekMark):  # only the last of them counts
                self.ahead = deque(
                    each for each in self.ahead if not isinstance(each, cmd.Seek | cmd.SeekMark)
                )
            self.ahead.append(command)
        elif isinstance(command, BRANCHING):
            where = f"in {blocked_in}()" if running.state is RunState.STOPPED else "running"
            self._tell(ev.Failed(command, f"the program is {where}", "let that end first"))
        elif running.motion(command) is None and not isinstance(command, BACK):
            self._carrier.attempt(command, self._still.carry_out)
        elif running.state is RunState.STOPPED:
            # The call has to end before anything else can happen. For a step that is all.
            running.want(f"{blocked_in}() ended", StopCause.CUT_SHORT)
            running.state = RunState.RUNNING
            if not isinstance(command, cmd.StepInsn | cmd.StepOver | cmd.StepPhase):
                self.following = command
        elif self._stepping and len(self.ahead) < _AHEAD:
            self.ahead.append(command)  # typed ahead of a step: its turn comes
        else:
            self._tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))

    def _type(self, command: cmd.TypedLine) -> None:
        """Carry a line of words out in the middle of a run."""
        running = self._here.running
        if running.state is not RunState.STOPPED:
            self._tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))
        elif self._carrier.known_words().moves(command.text):
            running.want(f"{self._here.session.kernel.waiting_in}() ended", StopCause.ARRIVED)
            running.state, self.following = RunState.RUNNING, command
        else:
            self._carrier.attempt(command, self._carrier.dispatch)

"""The loop of commands: each one that comes in is carried out now, later, or not at all."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from engine.session.control.handlers import CommandTable
from engine.session.control.running import Abandoned
from engine.session.control.runs import EventTeller
from engine.session.control.sight import RunSight
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.kinds import CommandKind, kind_of
from engine.session.protocol.views import RunState, StopCause

_AHEAD: Final = 10_000
"""Commands that may be typed ahead of a step."""
_AT_ONCE: Final = (CommandKind.QUESTION, CommandKind.TERMINAL, CommandKind.STILL)
"""Kinds of commands that are carried out while the guest runs or its past is lived through."""


class CommandSource(Protocol):
    """Gives the commands of a front end: a thread's inbox, an editor, a script."""

    def waiting(self) -> cmd.Command | None:
        """Give the next command that has come in, None for none; asked while the guest runs.

        Raises:
            Abandoned: the run is not to go on.
        """

    def wait(self) -> cmd.Command | None:
        """Wait for a command; None to give up. Asked while the guest stands in a blocked call."""


class NoCommands:
    """The source of a front end that says nothing while the guest runs."""

    def waiting(self) -> cmd.Command | None:
        """Give no command."""
        return None

    def wait(self) -> cmd.Command | None:
        """Give up: there is nobody to wait for."""
        return None


class CommandQueue:
    """The commands that have come in and wait for their turn.

    Attributes:
        source: gives those that come in.
        ahead: those that wait, in order.
        cut: the user wants what takes long to end.
    """

    def __init__(self, source: CommandSource) -> None:
        """Take commands from a source, of which none has come in yet."""
        self.source = source
        self.ahead: deque[cmd.Command] = deque()
        self.cut = False

    def arriving(self) -> Iterator[cmd.Command]:
        """Take what has come in, one after the other: the only place that asks the source."""
        while (command := self.source.waiting()) is not None:
            yield command

    def put_off(self, command: cmd.Command) -> None:
        """Have a command wait, while something takes long: a halt or a fresh start ends that."""
        kind = kind_of(command)
        if kind is CommandKind.HALT:
            self.cut = True
            self.ahead.clear()
        else:
            self.cut = self.cut or kind is CommandKind.RESTART
            self.ahead.append(command)

    def listens(self) -> bool:
        """Hear what has come in while a run is lived through: whether to go on."""
        for command in self.arriving():
            if not isinstance(command, cmd.Refresh):
                self.put_off(command)
        return not self.cut

    def halted(self) -> bool:
        """True if the user wants a stop; what else has come in is carried out later."""
        for command in self.arriving():
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


class CommandLoop:
    """Carries commands out while the guest stands or runs, and while its past is lived through.

    Attributes:
        table: the table of all commands.
        refills: what is told of events is, of a recorded run, at each stop as if all that is
            recorded now had been so from its start on.
        following: what is to be carried out behind the command at hand, in front of the queue.
    """

    def __init__(
        self,
        queue: CommandQueue,
        sight: RunSight,
        table: CommandTable,
        telling: EventTeller,
        refresh: Callable[[], object],
        *,
        refills: bool,
    ) -> None:
        """Begin with no command.

        Args:
            queue: the commands that wait.
            sight: the run at hand.
            table: carries a command out.
            telling: takes what is to be known.
            refresh: tells a view, and the events that were recorded before.
            refills: the log of a recorded run is kept true to what is recorded now.
        """
        self.refills = refills
        self.following: cmd.Command | None = None
        self._stepping = self._in_line = False
        self.table = table
        self._queue, self._sight = queue, sight
        self._telling, self._refresh = telling, refresh

    # -- while the guest stands ---------------------------------------------------------------

    def execute(self, command: cmd.Command) -> None:
        """Carry a command out, and tell how it went; the guest stands, and stands again then."""
        self._queue.ahead.append(command)
        self._catch_up(changed=False)

    def carry_out(self, command: cmd.Command) -> str:
        """Carry a command out for a caller who wants to know whether it can be: what it came to.

        Raises:
            KprobeTuiError: it cannot be carried out.
        """
        self._begin(command)
        try:
            return self.table.carry_out(command)
        finally:
            queue, later = self._queue, deque[cmd.Command]()
            if self._in_line:  # what was typed behind a line of words waits for its end
                queue.ahead, later = later, queue.ahead
            if self.following is not None:
                queue.ahead.appendleft(self.following)
            self._catch_up(changed=kind_of(command).changes_view)
            if not queue.cut:
                queue.ahead.extend(later)
            elif later and kind_of(later[-1]) is CommandKind.RESTART:
                queue.ahead.append(later[-1])  # it has cut the line short

    def _begin(self, command: cmd.Command) -> None:
        """A command is about to be carried out; nothing is to follow it yet."""
        if kind_of(command) in (CommandKind.BRANCH, CommandKind.LINE):
            self._queue.cut = False  # what has ended the last of them does not end this one
        self.following = None
        self._stepping = kind_of(command) is CommandKind.STEP

    def _catch_up(self, *, changed: bool) -> None:
        """Carry out what has come in meanwhile, and tell a view of what came of it.

        Args:
            changed: something was carried out already that a view may show.
        """
        queue = self._queue
        while queue.ahead:
            following: cmd.Command | None = queue.ahead.popleft()
            while following is not None:
                self._begin(following)
                outer, self._in_line = self._in_line, kind_of(following) is CommandKind.LINE
                try:
                    self._telling.attempt(following, self.table.carry_out)
                finally:
                    self._in_line = outer
                changed = changed or kind_of(following).changes_view
                following = self.following
            if not queue.ahead and changed:
                self._keep_log()
        if changed:
            self._refresh()

    def _keep_log(self) -> None:
        """Make the log what it would be if all that is recorded had been so from the start."""
        if self.refills and self._sight.is_open and self._sight.run.told.refill is not None:
            self._queue.cut = False
            self._sight.run.told.keep(self._sight.place.present.running, self.goes_on)

    # -- while something takes long -----------------------------------------------------------

    def goes_on(self) -> bool:
        """Carry out what has come in meanwhile and moves nothing: whether to go on."""
        changed = False
        for command in self._queue.arriving():
            kind = kind_of(command)
            if kind in _AT_ONCE:
                self._telling.attempt(command, self.table.carry_out)
                changed = changed or kind.changes_view
                continue
            self._queue.put_off(command)
            if kind is CommandKind.HALT:
                break
        if changed:
            self._refresh()
        return not self._queue.cut

    def lives_on(self) -> bool:
        """Hear what has come in while the past is lived through: whether to go on."""
        self.hear()
        return not self._sight.here.running.wanted

    # -- while the guest runs -----------------------------------------------------------------

    def hear(self) -> None:
        """Carry out the commands that have come in while the guest runs or is blocked.

        The guest's kernel calls this. A view is made only where one of these commands may have
        changed what it shows: the answer to a question is all that a front end has asked for.

        Raises:
            Abandoned: the run is not to go on.
        """
        changed = False
        for command in self._queue.arriving():
            self._obey(command)
            changed = changed or kind_of(command).changes_view
        if self._stand_in_call() or changed:
            self._refresh()
        # In the middle of a blocked call the next command is waited for.
        while self._sight.here.running.state is RunState.STOPPED:
            waited = self._queue.source.wait()
            if waited is None:
                raise Abandoned
            self._obey(waited)
            if self._stand_in_call() or kind_of(waited).changes_view:
                self._refresh()

    def _stand_in_call(self) -> bool:
        """Stop inside a blocked call if the user wants a stop, which may be older than the call.

        Returns:
            True if the guest stands there from now on.
        """
        running, blocked_in = self._sight.here.running, self._sight.here.session.kernel.waiting_in
        if not (blocked_in and running.wanted and running.cause is StopCause.INTERRUPTED):
            return False
        stood = running.state is RunState.STOPPED
        running.state, running.reason = RunState.STOPPED, f"interrupted in {blocked_in}()"
        return not stood

    def _obey(self, command: cmd.Command) -> None:
        """Carry out a command in the middle of a run."""
        here, kind, queue = self._sight.here, kind_of(command), self._queue
        running, blocked_in = here.running, here.session.kernel.waiting_in
        room = len(queue.ahead) < _AHEAD
        if kind is CommandKind.RESTART:
            self.following = command
            queue.ahead.clear()
            raise Abandoned
        if kind is CommandKind.HALT:
            queue.cut = True
            running.want("interrupted", StopCause.INTERRUPTED)
            here.session.nudge()  # what has heard it would run on else
            self.following = None
            queue.ahead.clear()
        elif isinstance(command, cmd.TypedLine):
            self._type(command)
        elif kind.travels and self._sight.place.in_past and room:
            if kind is CommandKind.SEEK:
                queue.ahead = deque(each for each in queue.ahead if kind_of(each) is not kind)
            queue.ahead.append(command)
        elif kind is CommandKind.BRANCH:
            where = f"in {blocked_in}()" if running.state is RunState.STOPPED else "running"
            self._telling.tell(ev.Failed(command, f"the program is {where}", "let that end first"))
        elif kind in _AT_ONCE:
            self._telling.attempt(command, self.table.carry_out)
        elif running.state is RunState.STOPPED:
            # The call has to end before anything else can happen. For a step that is all.
            running.want(f"{blocked_in}() ended", StopCause.CUT_SHORT)
            running.state = RunState.RUNNING
            if not isinstance(command, cmd.StepInsn | cmd.StepOver | cmd.StepPhase):
                self.following = command
        elif self._stepping and room:
            queue.ahead.append(command)  # typed ahead of a step: its turn comes
        else:
            self._telling.tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))

    def _type(self, command: cmd.TypedLine) -> None:
        """Carry a line of words out in the middle of a run."""
        here = self._sight.here
        running = here.running
        if running.state is not RunState.STOPPED:
            self._telling.tell(ev.Failed(command, "the program is running", "Ctrl-C stops it"))
        elif self._sight.known_words().moves(command.text):
            running.want(f"{here.session.kernel.waiting_in}() ended", StopCause.ARRIVED)
            running.state, self.following = RunState.RUNNING, command
        else:
            self._queue.cut = False
            self._telling.attempt(command, self.table.carry_out)

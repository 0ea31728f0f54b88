"""The table of commands: what each does to the guest, and so when it may come.

One line adds a command. The engine asks this table to decide whether a command waits for its
turn, ends a long search or is carried out while the guest runs; front ends ask it what a key will
do.
"""

from enum import Enum
from typing import Final

from engine.session.protocol import commands as cmd


class CommandKind(Enum):
    """The effect of a command on the guest."""

    QUESTION = "question"
    """Asks for what a view does not hold, and changes nothing; its answer is an event."""
    TERMINAL = "terminal"
    """Feeds or sizes the guest's terminal, of which no view speaks."""
    STILL = "still"
    """Changes what is seen, placed, recorded or stored; the guest stays where it is."""
    STEP = "step"
    """Moves the guest by a step, of which a user may ask for several in a row."""
    MOTION = "motion"
    """Moves the guest until something stops it."""
    PAST = "past"
    """Moves the guest and begins or ends in the past of a recorded run."""
    SEEK = "seek"
    """Goes to a moment of a recorded run; of several that wait only the last counts."""
    BRANCH = "branch"
    """Begins, enters, compares or deletes a branch of a recorded run."""
    LINE = "line"
    """Is a line of gdb's words, which may do any of these."""
    HALT = "halt"
    """Stops the guest, and any search that takes long."""
    RESTART = "restart"
    """Ends the run and begins it afresh."""

    @property
    def moves(self) -> bool:
        """True if the guest itself runs on: in the present, or in the past that is looked at."""
        return self in (CommandKind.STEP, CommandKind.MOTION)

    @property
    def travels(self) -> bool:
        """True if a command begins or ends in the past."""
        return self in (CommandKind.PAST, CommandKind.SEEK)

    @property
    def changes_view(self) -> bool:
        """True if the next view may differ from the last one because of this command."""
        return self not in (CommandKind.QUESTION, CommandKind.TERMINAL)


_OF_KIND: Final[dict[CommandKind, tuple[type[cmd.Command], ...]]] = {
    CommandKind.QUESTION: (
        cmd.ReadMemory,
        cmd.ReadWords,
        cmd.ShowStack,
        cmd.ReadParts,
        cmd.ReadLayout,
        cmd.AskWords,
        cmd.CompleteLine,
        cmd.ListDefinitions,
    ),
    CommandKind.TERMINAL: (cmd.Input, cmd.Resize),
    CommandKind.STILL: (
        cmd.Refresh,
        cmd.Signal,
        cmd.SetMark,
        cmd.DeleteMark,
        cmd.Refill,
        cmd.Define,
        cmd.Restore,
        cmd.ToggleBreak,
        cmd.Delete,
        cmd.Enable,
        cmd.StopOnHit,
        cmd.SetFilter,
        cmd.ChangeTrigger,
        cmd.TraceFunctions,
        cmd.TraceKernel,
        cmd.LoadHandlers,
        cmd.LoadScript,
        cmd.Undo,
        cmd.Redo,
        cmd.WriteRegister,
        cmd.WriteMemory,
        cmd.Assemble,
        cmd.SelectFrame,
        cmd.Unwind,
        cmd.ChooseThread,
        cmd.ChooseGoroutine,
        cmd.ListGoroutines,
        cmd.StepAlone,
    ),
    CommandKind.STEP: (
        cmd.StepInsn,
        cmd.StepOver,
        cmd.StepLine,
        cmd.StepPhase,
        cmd.FinishHit,
    ),
    CommandKind.MOTION: (
        cmd.Continue,
        cmd.ContinueToHit,
        cmd.RunTo,
        cmd.Finish,
        cmd.CallFunction,
    ),
    CommandKind.PAST: (
        cmd.StepBack,
        cmd.LineBack,
        cmd.FinishBack,
        cmd.ContinueBack,
        cmd.PhaseBack,
        cmd.LastWrite,
        cmd.LastRegisterWrite,
        cmd.Origin,
        cmd.FirstTime,
        cmd.LastTime,
    ),
    CommandKind.SEEK: (cmd.Seek, cmd.SeekMark),
    CommandKind.BRANCH: (
        cmd.StartBranch,
        cmd.SwitchBranch,
        cmd.DeleteBranch,
        cmd.CompareBranches,
    ),
    CommandKind.LINE: (cmd.TypedLine,),
    CommandKind.HALT: (cmd.Halt,),
    CommandKind.RESTART: (cmd.Restart,),
}
KINDS: Final[dict[type[cmd.Command], CommandKind]] = {
    command: kind for kind, commands in _OF_KIND.items() for command in commands
}


def kind_of(command: cmd.Command) -> CommandKind:
    """The kind of a command, by its type."""
    return KINDS[type(command)]

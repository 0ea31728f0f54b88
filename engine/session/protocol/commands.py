"""Commands to a guest: plain records, carried out by `control.Control`.

A command that cannot be carried out raises; the engine's thread turns that into a
`events.Failed`. Commands marked "any time" are obeyed while the guest runs, the others when
it stands.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from engine.session.protocol.probes import ProbeRow
from engine.trace.tracepoints import GROUPS as GROUPS
from engine.trace.tracepoints import selection as selection


class Continue(Struct, frozen=True):
    """Run on to the next stop."""


class ContinueToHit(Struct, frozen=True):
    """Run on to the next hit of any probe that is on, or another stop."""


class CallFunction(Struct, frozen=True):
    """Call a function of a kernel image, written as `FUNC(ARGS)`, and run on to the next stop."""

    text: str


class ListDefinitions(Struct, frozen=True):
    """Tell the lines that define the events again with another tool; any time.

    Attributes:
        form: "tracefs", "perf" or "bpftrace".
    """

    form: str


class Halt(Struct, frozen=True):
    """Stop where the guest is; any time."""


class Restart(Struct, frozen=True):
    """Start the program afresh, with the same probes, up to its first instruction; any time."""


class StepInsn(Struct, frozen=True):
    """Execute instructions; a probe at hand is served on the way, all of its phases."""

    count: int = 1


class StepOver(Struct, frozen=True):
    """Execute one instruction, with calls the whole function."""

    count: int = 1


class StepLine(Struct, frozen=True):
    """Run on to another source line.

    Attributes:
        over: not into functions.
        unknown: into functions without line information, too: their first instruction ends it.
        same: to the next begin of a statement, be it of the same line.
        inlined: number of the inlined calls around the frame that is stepped in: it ends in
            others, too; None for no interest in them.
        out: to code that is in no more inlined calls than that, whatever its line is.
    """

    over: bool = False
    unknown: bool = False
    same: bool = False
    inlined: int | None = None
    out: bool = False


class StepPhase(Struct, frozen=True):
    """Carry out the next phase of the hit at hand; without one, an instruction."""


class PhaseBack(Struct, frozen=True):
    """Go back by a phase of a hit; outside of one, to the last phase of the hit before."""


class FinishHit(Struct, frozen=True):
    """Carry out all that is left of the hit at hand."""


class RunTo(Struct, frozen=True):
    """Run on until an address is reached, or another stop.

    Attributes:
        address: the address.
        alone: the thread that runs now is to reach it, and no other one.
    """

    address: int
    alone: bool = False


class Finish(Struct, frozen=True):
    """Run on until the current function has returned.

    Attributes:
        tells: the value that the function has returned is told, as gdb's `finish` tells it.
    """

    tells: bool = False


class StepBack(Struct, frozen=True):
    """Go back by an instruction; `over`: a call that has returned counts as one."""

    over: bool = False


class LineBack(Struct, frozen=True):
    """Go back to the begin of the source line before; `over`: not into functions."""

    over: bool = False


class FinishBack(Struct, frozen=True):
    """Go back to the call of the current function."""


class ContinueBack(Struct, frozen=True):
    """Go back to the last hit of a stop, or to the first instruction."""


class LastWrite(Struct, frozen=True):
    """Go back to the instruction that has last written to memory."""

    address: int
    size: int


class LastRegisterWrite(Struct, frozen=True):
    """Go back to the instruction of a thread that has last written to a register.

    Attributes:
        register: its name.
        thread: id of the thread.
        callee: (pc, CFA) of the call at whose begin the register is meant; None for now.
    """

    register: str
    thread: int
    callee: tuple[int, int] | None = None


class Origin(Struct, frozen=True):
    """Follow a value backwards to where it came from; the guest stays where it stands.

    Attributes:
        text: the value, as the user has written it.
        register: that it is in; "" for memory.
        first: its address; of a register the first byte.
        size: of it.
        thread: whose register.
        callee: (pc, CFA) of the call at whose begin the register is meant; None for now.
    """

    text: str
    register: str
    first: int
    size: int
    thread: int
    callee: tuple[int, int] | None = None


class FirstTime(Struct, frozen=True):
    """Go to the first moment of the recorded run at which an expression is true."""

    text: str


class LastTime(Struct, frozen=True):
    """Go back to the last moment before now at which an expression became true."""

    text: str


class Seek(Struct, frozen=True):
    """Go to a moment of the run.

    Attributes:
        clock: a tick of the guest's clock; None for the present.
        pc: the instruction of it in front of which to stand; None for the first.
    """

    clock: int | None = None
    pc: int | None = None


class SeekMark(Struct, frozen=True):
    """Go to a bookmark."""

    name: str


class SetMark(Struct, frozen=True):
    """Make the moment at which the guest stands a bookmark; "": named by a number."""

    name: str = ""


class DeleteMark(Struct, frozen=True):
    """Forget a bookmark; any time."""

    name: str


class StartBranch(Struct, frozen=True):
    """Go on from the moment at hand in a run of its own, beside the one there is.

    Attributes:
        name: of it; "" for one that is made up.
    """

    name: str = ""


class SwitchBranch(Struct, frozen=True):
    """Go to another branch of the run, as it was left."""

    name: str


class DeleteBranch(Struct, frozen=True):
    """Give another branch up."""

    name: str


class CompareBranches(Struct, frozen=True):
    """Tell in words where two branches part.

    Attributes:
        one: name of a branch.
        other: of another; "" for the one at hand.
    """

    one: str
    other: str = ""


class Refill(Struct, frozen=True):
    """Make the log of the recorded run anew, with what is recorded now; any time."""


class Define(Struct, frozen=True):
    """Carry out a line of `kprobe_events`; any time.

    Attributes:
        line: the definition.
        replaces: id of the probe that it takes the place of.
        stops: stop when it is hit.
    """

    line: str
    replaces: int | None = None
    stops: bool = False


class SavedStop(Struct, frozen=True):
    """A stop of an earlier session, with all that words have asked of it.

    Attributes:
        rows: its rows in the list of probes, by number from 1 on; none if it is not in it.
        word: the line that places one that is not a plain row of the list: "watch -l x".
        temporary: it goes with its first stop.
        on: it is enabled.
        condition: it stops only where this holds, "" for everywhere.
        ignore: hits to pass by.
        commands: lines that are carried out at each stop.
        passing: a command has placed it for its own use: it is not for another session.
    """

    rows: tuple[int, ...] = ()
    word: str = ""
    temporary: bool = False
    on: bool = True
    condition: str = ""
    ignore: int = 0
    commands: tuple[str, ...] = ()
    passing: bool = False


class Restore(Struct, frozen=True):
    """Place the probes and stops of an earlier session; any time. What cannot be is told."""

    probes: tuple[ProbeRow, ...]
    stops: tuple[SavedStop, ...] = ()


class ToggleBreak(Struct, frozen=True):
    """Stop whenever a place is reached (a PLACE of a definition); any time. Again: no more."""

    place: str


class Delete(Struct, frozen=True):
    """Take probes out, by id; any time."""

    ids: tuple[int, ...]


class Enable(Struct, frozen=True):
    """Let probes record again or keep them quiet, by id; any time."""

    ids: tuple[int, ...]
    on: bool = True


class StopOnHit(Struct, frozen=True):
    """Stop, or no longer, when probes are hit, by id; any time."""

    ids: tuple[int, ...]
    on: bool = True


class SetFilter(Struct, frozen=True):
    """Record an event only where a filter holds; any time.

    Attributes:
        event: GROUP/NAME.
        text: the filter in the kernel's language, "" to record everything again.
    """

    event: str
    text: str


class ChangeTrigger(Struct, frozen=True):
    """Do something at an event, or no longer; any time.

    Attributes:
        event: GROUP/NAME.
        text: the trigger in the kernel's language, with `!` in front to take it away.
    """

    event: str
    text: str


class TraceKernel(Struct, frozen=True):
    """Record events that the guest's kernel has without a definition, or no longer; any time.

    Attributes:
        globs: patterns of names as of `syscalls/GLOB`; () with `on` false: of all.
        on: whether they are to be recorded.
        group: one of `engine.trace.tracepoints.GROUPS`.
    """

    globs: tuple[str, ...] = ()
    on: bool = True
    group: str = GROUPS[0]


class TraceFunctions(Struct, frozen=True):
    """Record calls and returns of the functions that match, or no longer; any time.

    Attributes:
        globs: patterns; () with `on` false: of all that are traced.
        on: whether they are to be traced.
        depth: follow calls so deep, 0 for all.
    """

    globs: tuple[str, ...] = ()
    on: bool = True
    depth: int = 0


class Undo(Struct, frozen=True):
    """Take the last change of probes, registers or memory back; any time for probes."""


class Redo(Struct, frozen=True):
    """Do again what `Undo` took back."""


class WriteRegister(Struct, frozen=True):
    """Set a register."""

    name: str
    value: int


class WriteMemory(Struct, frozen=True):
    """Set bytes of the guest's memory, code included."""

    address: int
    data: bytes


class Assemble(Struct, frozen=True):
    """Assemble instructions (";" between them) at an address, the rest filled with nops."""

    address: int
    text: str


class ReadMemory(Struct, frozen=True):
    """Ask for bytes; any time. The answer is an `events.MemoryRead`.

    Attributes:
        original: bytes as the program has them, without what is planted.
        kept: the answer is told again, in front of a view, when it has become another one: of the
            last `KEPT_READS` such questions.
    """

    address: int
    size: int
    original: bool = False
    kept: bool = False


KEPT_READS: Final = 4
"""Questions for memory whose answers are kept up to date."""


class ReadWords(Struct, frozen=True):
    """Ask for words of memory and where they lead; any time. The answer is `events.WordsRead`."""

    address: int
    count: int


class ShowStack(Struct, frozen=True):
    """Have views hold words of the stack and where they lead, from the next view on; any time.

    Attributes:
        count: words from the stack pointer on; 0 for none.
    """

    count: int


class Branch(Struct, frozen=True):
    """A variable of a frame or the value of a display, and which of its parts are wanted.

    Attributes:
        frame: number of the frame; `DISPLAYS` for a display.
        number: of the variable among those of the frame; that of the display.
        steps: number of a part of it, of a part of that, and so on.
        count: parts of this one, at the most.
    """

    frame: int
    number: int
    steps: tuple[int, ...] = ()
    count: int = 0


DISPLAYS: Final = -1
"""In place of a frame's number."""


class ReadParts(Struct, frozen=True):
    """Ask what is in values; any time. The answer is an `events.PartsRead`.

    Attributes:
        moment: `GuestView.moment` that the numbers are of; nothing is answered at another one.
        branches: those to look into.
    """

    moment: int
    branches: tuple[Branch, ...]


class ReadLayout(Struct, frozen=True):
    """Ask for the parts of an object in memory; the answer is an `events.LayoutRead`.

    Attributes:
        text: an expression: the object, or a pointer to it.
        again: the object that the same text meant the last time, whatever it means now.
    """

    text: str
    again: bool = False


class LoadHandlers(Struct, frozen=True):
    """Register the probes of a handlers file in place of those of the last one; any time.

    Attributes:
        path: of the file; "" for the last one again.
        on: False for none any more.
    """

    path: str = ""
    on: bool = True


class LoadScript(Struct, frozen=True):
    """Attach a script of bpftrace in place of the last one; any time.

    Attributes:
        name: of its file; "stdin" for one that was typed.
        text: of the script; "" for none any more.
        parameters: what `$1` and so on stand for.
    """

    name: str = ""
    text: str = ""
    parameters: tuple[str, ...] = ()


class TypedLine(Struct, frozen=True):
    """Carry a line of gdb's words out, or a block of lines; what it prints is `events.Printed`."""

    text: str


class AskWords(Struct, frozen=True):
    """Ask for the words that a line may begin with; the answer is an `events.WordsKnown`."""


class CompleteLine(Struct, frozen=True):
    """Ask what a line of gdb's words may become; the answer is an `events.LineCompleted`."""

    text: str


class SelectFrame(Struct, frozen=True):
    """Look at a frame of the backtrace: names in expressions are its own; any time."""

    number: int


class Signal(Struct, frozen=True):
    """Send the guest a signal, as kill(2) does; any time."""

    number: int


class Input(Struct, frozen=True):
    """Bytes the user typed for the guest's terminal; any time."""

    data: bytes


class Resize(Struct, frozen=True):
    """The size of the guest's terminal, in characters; any time."""

    columns: int
    rows: int


class Unwind(Struct, frozen=True):
    """Show backtraces as another unwinder would print them; any time.

    Attributes:
        unwinder: its name, of `engine.unwind.compare.UNWINDERS`; "" for the next one of them.
    """

    unwinder: str = ""


class ChooseThread(Struct, frozen=True):
    """Look at another thread, until the guest moves; steps are of this one.

    Attributes:
        tid: its id; 0 for the one that runs.
    """

    tid: int


class ChooseGoroutine(Struct, frozen=True):
    """Look at a goroutine of a Go program, until the guest moves: at its thread, if it has one.

    Steps are those of the thread in sight, which stays the same for a goroutine without one.

    Attributes:
        id: its number.
    """

    id: int


class ListGoroutines(Struct, frozen=True):
    """Have views list the goroutines of a Go program, or no longer; any time."""

    on: bool = True


class StepAlone(Struct, frozen=True):
    """Let the others run while the thread in sight does, or only while it waits; any time."""

    on: bool = True


class Refresh(Struct, frozen=True):
    """Hand over what was recorded and make a view; any time."""


Command: TypeAlias = (
    Continue
    | StepBack
    | LineBack
    | FinishBack
    | ContinueBack
    | LastWrite
    | Origin
    | LastRegisterWrite
    | FirstTime
    | LastTime
    | Seek
    | SeekMark
    | SetMark
    | DeleteMark
    | StartBranch
    | SwitchBranch
    | DeleteBranch
    | CompareBranches
    | Refill
    | ContinueToHit
    | Halt
    | Restart
    | StepInsn
    | StepOver
    | StepLine
    | StepPhase
    | PhaseBack
    | FinishHit
    | RunTo
    | Finish
    | CallFunction
    | ListDefinitions
    | Define
    | Restore
    | ToggleBreak
    | Delete
    | Enable
    | StopOnHit
    | SetFilter
    | ChangeTrigger
    | TraceFunctions
    | TraceKernel
    | Undo
    | Redo
    | WriteRegister
    | WriteMemory
    | Assemble
    | ReadMemory
    | ReadWords
    | ShowStack
    | ReadParts
    | ReadLayout
    | LoadHandlers
    | LoadScript
    | TypedLine
    | AskWords
    | CompleteLine
    | SelectFrame
    | Signal
    | Input
    | Resize
    | Unwind
    | ChooseThread
    | ChooseGoroutine
    | ListGoroutines
    | StepAlone
    | Refresh
)

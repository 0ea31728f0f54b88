"""One frame of a backtrace, as every front end gets it: interface, gdb's words, servers, JSON.

The unwinder's own `engine.unwind.unwinder.Frame` knows addresses and registers only. Here a frame
has names and source lines too, and an inlined call is a frame of its own. Front ends with a
format of their own (DAP's StackFrame, gdb's `#0  main () at a.c:5`) translate at their edge.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

CALLED: Final = "called"
"""The source of a frame that stands for a call which a debugger has made in the program."""


class VariableView(Struct, frozen=True):
    """A variable of a frame.

    Attributes:
        name: of it.
        value: as people read it; in <> why it cannot be told.
        type: as the source spells it.
        is_parameter: whether it is one of the function's arguments.
        opens: it has parts that can be asked for, or leads to something.
        leads: of a pointer: the thing that it leads to, in one line.
    """

    name: str
    value: str
    type: str
    is_parameter: bool = False
    opens: bool = False
    leads: str = ""


class GuestFrame(Struct, frozen=True):
    """A frame of a backtrace.

    Attributes:
        pc: guest address of the next instruction of the frame.
        function: name of the function, "" if nothing has a name there.
        offset: bytes from the function's start to pc; from the module's where nothing has a name.
        module: guest path of the file, "" outside of all files.
        file: source file, "" without debug information.
        line: line in the source file, 0 where unknown.
        number: place in the backtrace, 0 for the innermost frame; frames of inlined calls and of
            a system call that is being made count.
        cfa: the canonical frame address, None where it is not known.
        source: what found the frame: "cfi", "prologue", "framepointer", "trampoline", "syscall",
            or CALLED.
        trampoline: a return probe catches the callee's return to here.
        inlined: the function has been inlined into the next frame, whose pc and CFA it shares.
        signal: no function's frame: a signal has put it there, or a call of a debugger's (CALLED).
        registers: register name to value, as far as the unwinder knows them in this frame.
        thread: id of the thread whose memory the addresses are of, 0 for the thread that runs: a
            kernel that is the guest runs the frame's program in a process of its own.
        differs: the whole backtrace has no such frame; another unwinder found this one.
        parked: it is of a goroutine that no thread runs: registers that are not among `registers`
            are known nowhere, and none can be changed.
        variables: what debug information knows there, parameters first. Set in the views of a
            stop for the innermost frames; their parts are asked for by `commands.ReadParts`.
    """

    pc: int
    function: str
    offset: int = 0
    module: str = ""
    file: str = ""
    line: int = 0
    number: int = 0
    cfa: int | None = None
    source: str = ""
    trampoline: bool = False
    inlined: bool = False
    signal: bool = False
    registers: Mapping[str, int] = field(default_factory=dict)
    thread: int = 0
    differs: bool = False
    parked: bool = False
    variables: tuple[VariableView, ...] = ()

    @property
    def title(self) -> str:
        """The function's name, or gdb's words for a frame that is none of a function's."""
        if self.source == CALLED:
            return "<function called from gdb>"
        return "<signal handler called>" if self.signal else self.function

    def as_json(self) -> dict[str, Any]:
        """The form of `bt --json`."""
        return {
            "pc": f"{self.pc:#x}",
            "function": self.function or None,
            "offset": self.offset,
            "module": self.module or None,
            "file": self.file or None,
            "line": self.line or None,
            "cfa": None if self.cfa is None else f"{self.cfa:#x}",
            "source": self.source,
            "trampoline": self.trampoline,
            "inlined": self.inlined,
        }

    def text(self, number: int) -> str:
        """A line like those of gdb's `bt`, numbered as the caller counts frames."""
        if self.source == "syscall":
            return f"#{number:<2} {self.function} () in the kernel"
        if self.signal:
            place = self.title
        else:
            place = f"{self.function}+{self.offset:#x} ()" if self.function else "?? ()"
        words = [f"#{number:<2} {self.pc:#018x} in {place}"]
        if self.file:
            words.append(f"at {self.file}:{self.line}" if self.line else f"at {self.file}")
        elif self.module:
            words.append(f"from {self.module}")
        notes = [self.source] if self.source not in ("cfi", "") else []
        notes += ["inlined"] if self.inlined else []
        notes += ["its call returns through a return probe"] if self.trampoline else []
        return " ".join(words) + (f" [{', '.join(notes)}]" if notes else "")

"""Views of a guest: frozen records, made by the engine's thread and never changed.

A view holds plain values only, so a widget can keep one as long as it likes while the guest
runs on. Parts that have not changed since the view before are the same objects.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field

from engine.arch.drawing import UnitDrawing as UnitDrawing
from engine.arch.drawing import UnitPart as UnitPart
from engine.image.symtab import shown_place
from engine.session.protocol.commands import SavedStop
from engine.session.protocol.frames import GuestFrame, VariableView
from engine.session.protocol.probes import ProbeView

Origin = Literal["", "insn", "machinery"]
"""Who changed a register since the view before: nobody, the guest, or the probe's machinery."""

Region = Literal["", "code", "stack", "heap", "data"]
"""The kind of memory that a pointer points into, "" for a value that is no pointer."""

_EMPTY: Mapping[int, bytes] = MappingProxyType({})


class RunState(Enum):
    """The state of the guest; the value is what people read."""

    READY = "ready"
    """Loaded; nothing has run yet."""
    RUNNING = "running"
    STOPPED = "stopped"
    WAITING = "waiting"
    """Blocked in a system call; the engine listens."""
    ENDED = "ended"


class StopCause(Enum):
    """The kind of thing that has made the guest stand."""

    ARRIVED = "arrived"
    """A step is done, a place that was asked for is reached, or nothing has run yet."""
    HIT = "hit"
    """A breakpoint or a probe of the user's stops it."""
    SIGNAL = "signal"
    """A signal that it gets, and that the user wants to know of first."""
    EVENT = "event"
    """A system call, a fork or an exec that the user wants to know of."""
    CALL = "call"
    """Functions of a kernel that were called have returned, or one of them cannot go on."""
    INTERRUPTED = "interrupted"
    """The user does."""
    CUT_SHORT = "cut short"
    """A system call, a thread or the recorded past ended first."""
    FOUND = "found"
    """A moment of the past that was looked for: the reason says what happened there."""


class PointerHop(Struct, frozen=True):
    """A step from pointer to pointer; the first one is the value itself.

    Attributes:
        value: of the pointer, or the word at the end that is none.
        region: where it points.
        place: that place's name: a symbol, a section, a mapping.
        text: the string that stands there in quotes, or the instruction; "..." where it goes on.
    """

    value: int
    region: Region
    place: str
    text: str = ""


class StackWord(Struct, frozen=True):
    """A word of memory.

    Attributes:
        address: of it.
        value: unsigned.
        hops: where it leads.
    """

    address: int
    value: int
    hops: tuple[PointerHop, ...] = ()


class RegisterView(Struct, frozen=True):
    """One register.

    Attributes:
        name: as gdb spells it.
        value: unsigned.
        bits: width.
        group: "general", "flags", "system", "vector" or "float".
        origin: who changed it since the stop before.
        old: its value then, the same as `value` where nobody did.
        meaning: letters of the flags that are set, "" where it has none.
        hops: where the value leads, none where it is no pointer.
    """

    name: str
    value: int
    bits: int = 64
    group: str = "general"
    origin: Origin = ""
    old: int = 0
    meaning: str = ""
    hops: tuple[PointerHop, ...] = ()


class ModuleView(Struct, frozen=True):
    """An ELF file in the guest's memory; guest addresses are link addresses plus `bias`.

    Attributes:
        main: it is the program itself.
        carried: a program has it that a kernel runs which is the guest: see `events.FileRead`.
    """

    path: str
    start: int
    end: int
    bias: int
    main: bool = False
    carried: bool = False


class MappingView(Struct, frozen=True):
    """A line of the guest's memory map; `perms` as in /proc/PID/maps ("r-xp")."""

    start: int
    end: int
    perms: str
    name: str


class Change(Struct, frozen=True):
    """Bytes of memory that a phase changed or is about (old and new are the same then)."""

    address: int
    old: bytes
    new: bytes
    what: Literal["site", "slot", "stack"] = "stack"


class PhaseView(Struct, frozen=True):
    """One phase of a hit that has been carried out.

    Attributes:
        name: as people read it ("trap", "out of line").
        text: what it did, in words.
        before: pc in front of it.
        after: pc behind it.
        registers: (name, old, new) of those that changed, pc left out.
        changes: of memory.
        by_guest: whether the guest's own instruction did it (else the machinery).
    """

    name: str
    text: str
    before: int
    after: int
    registers: tuple[tuple[str, int, int], ...] = ()
    changes: tuple[Change, ...] = ()
    by_guest: bool = False


class DetourPart(Struct, frozen=True):
    """A part of a detour buffer.

    Attributes:
        name: of the phase that executes it.
        start: guest address.
        size: bytes.
        code: (address, instruction as text) of what stands there.
        original: (address, text) of the program's instruction that it stands for; None for
            the engine's own code.
    """

    name: str
    start: int
    size: int
    code: tuple[tuple[int, str], ...]
    original: tuple[int, str] | None = None


class DetourView(Struct, frozen=True):
    """The detour buffer of a jump probe, or the trampoline that a call leads to.

    Attributes:
        window: bytes of the program that the jump stands over.
        jump: the jump as text.
        held: why a breakpoint stands in front of the jump: "stop", "check"; "" for none.
        parts: of the buffer, in the order in which they stand.
        at: where the guest is in it, None if it is elsewhere.
        what: "detour", or "called" for a trampoline.
    """

    window: bytes
    jump: str
    held: Literal["", "stop", "check"]
    parts: tuple[DetourPart, ...]
    at: int | None = None
    what: Literal["detour", "called"] = "detour"


class HitView(Struct, frozen=True):
    """A hit that is looked at phase by phase.

    Attributes:
        address: of the point.
        place: SYMBOL+OFF.
        probes: names of its probes.
        route: names of the phases this hit goes through, in order.
        done: the phases carried out so far.
        next: name of the one that comes next, "" when the hit is over.
        how: "emulated", "xol", "boosted", or `DetourView.what`; of a hit of a kernel's own kprobe
            "int3", "emulated", "returns", or `DetourView.what`.
        reason: why this way, in words.
        original: the displaced instruction's bytes.
        planted: what stands in their place.
        insn: the instruction as text.
        slot: address of the slot, None without one (not yet, or emulated).
        slot_bytes: what stands there.
        slot_text: the copy as text, one line an instruction.
        fixups: what is put right afterwards, in words.
        returns_to: where calls that have returned here go on; None for another hit.
        detour: the buffer that the hit of a jump goes through; None for other hits.
        units: the units of code at the site and in the slot, where several instructions share one.
    """

    address: int
    place: str
    probes: tuple[str, ...]
    route: tuple[str, ...]
    done: tuple[PhaseView, ...]
    next: str
    how: str
    reason: str
    original: bytes
    planted: bytes
    insn: str
    slot: int | None = None
    slot_bytes: bytes = b""
    slot_text: tuple[str, ...] = ()
    fixups: tuple[str, ...] = ()
    returns_to: int | None = None
    detour: DetourView | None = None
    units: tuple[UnitDrawing, ...] = ()

    @property
    def shown(self) -> str:
        """The place, C++ names as people write them."""
        return shown_place(self.place)


class FieldView(Struct, frozen=True):
    """A part of an object, or a hole between parts.

    Attributes:
        offset: of its first byte in the object.
        size: bytes.
        level: how many parts of the object it is within.
        name: of it; "" for a hole.
        type: as the source spells it; "" for a hole.
        value: as people read it; "" for what has parts of its own below.
        bits: of a bitfield: the number of its lowest bit from the offset on, and how many there
            are.
        is_number: an integer, a pointer or an enumeration, which a number can be written over.
    """

    offset: int
    size: int
    level: int
    name: str
    type: str
    value: str
    bits: tuple[int, int] | None = None
    is_number: bool = False


class LayoutView(Struct, frozen=True):
    """An object in memory.

    Attributes:
        address: of its first byte.
        size: bytes.
        type: as the source spells it.
        fields: its parts in the order of the source; of a scalar the one that it is itself.
        data: its bytes as far as they can be read.
        more: there are other parts behind them.
    """

    address: int
    size: int
    type: str
    fields: tuple[FieldView, ...]
    data: bytes
    more: bool = False


class PartsView(Struct, frozen=True):
    """A variable, and some parts of it or of one of its parts.

    Attributes:
        own: the variable itself.
        parts: those that were asked for.
        more: there are others behind them.
        trouble: why there are none, "" where there are.
    """

    own: VariableView
    parts: tuple[VariableView, ...]
    more: bool = False
    trouble: str = ""


class DisplayView(Struct, frozen=True):
    """An expression that is shown at each stop.

    Attributes:
        number: of it.
        text: the expression as it was typed, with letters of a format in front.
    """

    number: int
    text: str


class ThreadView(Struct, frozen=True):
    """A thread, or a process that has ended.

    Attributes:
        tid: its id.
        pid: that of its process.
        ppid: that of its process's parent.
        depth: in the tree of processes and their threads.
        comm: its name.
        state: as in /proc: "R" can run, "S" waits, "D" waits without being interrupted, "T" is
            stopped, "Z" has ended.
        call: name of the system call that it waits in, "" for none.
        waits: for what, in words.
        holder: id of the thread that has what it waits for, 0 where that is not known.
        pc: its place in the program, 0 where it was not looked up.
        location: the same as SYMBOL+OFF.
        ticks: it has run.
        runs: it has the processor.
        shown: it is the one that panes show.
    """

    tid: int
    pid: int
    ppid: int
    depth: int
    comm: str
    state: str
    call: str = ""
    waits: str = ""
    holder: int = 0
    pc: int = 0
    location: str = ""
    ticks: int = 0
    runs: bool = False
    shown: bool = False


class GoroutineView(Struct, frozen=True):
    """A goroutine of a Go program.

    Attributes:
        id: its number, which Go prints.
        state: as Go's traceback calls it: "running", "runnable", "waiting", "syscall" ...
        status: what that has in brackets: what it waits for, else the state.
        function: where it goes on, or where its thread has taken it up.
        user: the innermost function that is not the runtime's.
        file: source file of `user`, "" where it is not known.
        line: line there.
        thread: id of the thread that runs it; 0 for none.
        created: the function that has started it; "" for main's.
        start: its outermost function.
        shown: it is the one that panes show.
    """

    id: int
    state: str
    status: str
    function: str
    user: str = ""
    file: str = ""
    line: int = 0
    thread: int = 0
    created: str = ""
    start: str = ""
    shown: bool = False


class GoroutinesView(Struct, frozen=True):
    """The goroutines of a moment, without dead ones.

    Attributes:
        listed: them, in the runtime's order.
        dead: number of those that have ended.
        left_out: number of those that the runtime tells of and that are not listed.
        why: why they are left out, or why there are none at all.
    """

    listed: tuple[GoroutineView, ...] = ()
    dead: int = 0
    left_out: int = 0
    why: str = ""


class DetourCounts(Struct, frozen=True):
    """The detour buffers of a guest.

    Attributes:
        standing: those that jumps lead to, or will.
        zombies: those whose probe is gone, but which cannot be freed yet.
        waits: what each of these waits for, in words.
        freed: so far.
    """

    standing: int = 0
    zombies: int = 0
    waits: tuple[str, ...] = ()
    freed: int = 0


class MarkView(Struct, frozen=True):
    """A bookmark: a moment of the run with a name.

    Attributes:
        name: the bookmark's name.
        time: its tick.
        pc: the instruction that is next there.
    """

    name: str
    time: int
    pc: int


class OriginLink(Struct, frozen=True):
    """A moment at which a value that is followed backwards was written.

    Attributes:
        clock: the tick.
        pc: the instruction; of a system call for what that has written.
        thread: that has executed it.
        symbol: function and offset, "" where that is not known.
        line: "file:line", "" where that is not known.
        insn: the instruction.
        where: what it has written: "$rdi", or an address.
        what: what it did, in words.
        value: the value.
        end: what the value ends at: "computation", "constant", "input", "start", "longer" = more
            links than are told; "" where it goes on.
    """

    clock: int
    pc: int
    thread: int
    symbol: str
    line: str
    insn: str
    where: str
    what: str
    value: str
    end: str


class HistoryView(Struct, frozen=True):
    """The recorded run as a line, divided into equal stretches where it is told by these.

    Attributes:
        now: the tick at which the guest stands.
        end: that of the present.
        past: the guest stands in its past.
        marks: bookmarks, in order.
        threads: the thread that has the processor in each stretch, 0 for none; () where there is
            but one.
        written: 1 for each stretch in which the guest has written to its terminal.
        checkpoints: 1 for each stretch in which there is a checkpoint.
        branch: name of the branch at hand, "" while there is but one.
        branches: names of all of them; none while there is but one.
    """

    now: int
    end: int
    past: bool
    marks: tuple[MarkView, ...] = ()
    threads: tuple[int, ...] = ()
    written: bytes = b""
    checkpoints: bytes = b""
    branch: str = ""
    branches: tuple[str, ...] = ()


class GuestView(Struct, frozen=True):
    """Everything about the guest at one moment.

    Attributes:
        state: what it is doing.
        reason: why it stopped, or how it ended, in words.
        cause: the kind of that reason, of a guest that stands.
        arch: its architecture.
        program: guest path of its file.
        build_id: of that file, hex; a hash of the file where it has none.
        pc: of the program itself: never a slot's.
        raw_pc: where the processor really is.
        location: `pc` as SYMBOL+OFF.
        line: (source file, line) of `pc`, if known.
        registers: in the architecture's order; of the last stop while it runs.
        stack: words from the stack pointer on, as many as `ShowStack` has asked for; of the last
            stop while it runs, and none of a booted kernel.
        frames: the backtrace at a stop, innermost first.
        frames_end: why the backtrace ends there.
        frame: number of the frame that is looked at.
        moment: counts motions of the guest: frames of another one have other numbers.
        displays: expressions that are shown at each stop; their values are asked for, too.
        unwinder: the one that found the frames; "full" unless the user compares.
        hit: the hit at hand; None when the guest stands at no probe.
        at_hit: phases of a hit come next: one is at hand, or the guest stands in front of one.
        probes: all of them, in the order they were placed.
        stops: what words have asked of stops, by number of the row in `probes`; those that are in
            no row, too. What the next session is to have.
        planted: guest address to bytes that stand there instead of the original.
        modules: files in memory.
        mappings: the memory map at the last stop.
        comms: thread id to name.
        pids: thread id to that of its process.
        thread: id of the thread in sight: registers, frames, modules and mappings are its own.
        threads: number of threads of all processes.
        listed: all of them, and processes that have ended, as a tree.
        goroutines: of the program in sight; None unless a front end has asked for them.
        is_go: the program in sight is Go's, so that there may be some.
        alone: the others run only while the thread in sight waits.
        program_in_sight: number of the program that the thread in sight runs, as in
            `events.ProgramBegan`.
        time: of the guest's clock.
        system_calls: made so far.
        waiting_in: name of the system call it is blocked in.
        events: recorded since the start.
        exit_code: once it has ended.
        troubles: what it has asked for in vain so far, in a few words.
        changed: counts changes of code bytes: code shown before is stale.
        undo: what `Undo` would take back, "" for nothing.
        redo: what `Redo` would do again.
        histograms: the text of each hist trigger; at the most half a second old while it runs.
        detours: how many detour buffers there are.
        history: the run from its start on, None where it is not recorded.
    """

    state: RunState = RunState.READY
    reason: str = ""
    cause: StopCause = StopCause.ARRIVED
    arch: str = ""
    program: str = ""
    build_id: str = ""
    pc: int = 0
    raw_pc: int = 0
    location: str = ""
    line: tuple[str, int] | None = None
    registers: tuple[RegisterView, ...] = ()
    stack: tuple[StackWord, ...] = ()
    frames: tuple[GuestFrame, ...] = ()
    frames_end: str = ""
    frame: int = 0
    moment: int = 0
    displays: tuple[DisplayView, ...] = ()
    unwinder: str = "full"
    hit: HitView | None = None
    at_hit: bool = False
    probes: tuple[ProbeView, ...] = ()
    stops: tuple[SavedStop, ...] = ()
    planted: Mapping[int, bytes] = field(default_factory=lambda: _EMPTY)
    modules: tuple[ModuleView, ...] = ()
    mappings: tuple[MappingView, ...] = ()
    comms: Mapping[int, str] = field(default_factory=dict)
    pids: Mapping[int, int] = field(default_factory=dict)
    thread: int = 0
    threads: int = 1
    listed: tuple[ThreadView, ...] = ()
    goroutines: GoroutinesView | None = None
    is_go: bool = False
    alone: bool = False
    program_in_sight: int = 0
    time: int = 0
    system_calls: int = 0
    waiting_in: str = ""
    events: int = 0
    exit_code: int | None = None
    troubles: str = ""
    changed: int = 0
    undo: str = ""
    redo: str = ""
    histograms: tuple[str, ...] = ()
    detours: DetourCounts = DetourCounts()
    history: HistoryView | None = None

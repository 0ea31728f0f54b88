"""Requests of the command line: plain, frozen records, each carried out as a whole.

Paths are the host's, patterns are `GLOB` or `LIB:GLOB`, and places are written as in definitions.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Rules as Rules
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.protocol.kernels import KernelChoice

TRACERS: Final = ("function_graph", "function")


class TaskChoice(Struct, frozen=True):
    """The threads that a trace or a stop is about; all of them if nothing is given.

    Attributes:
        pids: ids of processes, for all their threads, or of threads.
        comms: patterns of threads' names.
    """

    pids: tuple[int, ...] = ()
    comms: tuple[str, ...] = ()


ALL_TASKS: Final = TaskChoice()
"""Nothing is chosen."""


class CallChoice(Struct, frozen=True):
    """The calls that a graph shows; all of them if nothing is given.

    Attributes:
        shortest: time that a call takes at least, in ticks (uftrace's `-t`).
        callers_of: patterns: only calls that lead to a call of these functions, and those
            (uftrace's `-C`).
    """

    shortest: int = 0
    callers_of: tuple[str, ...] = ()


ALL_CALLS: Final = CallChoice()
"""Nothing is chosen."""


class TraceOptions(Struct, frozen=True):
    """Options of a trace: how it is kept and shown.

    Attributes:
        format: name of the output format.
        output: file to write to, None for a stream.
        buffer: keep so many events and print them at the end; None = stream all.
        overwrite: keep the last ones rather than the first.
        mode: strictness of placement.
        stack: record the call stack behind each event.
        profile: print hits and misses at the end.
        text: trace options of the text format, as in tracefs.
        tasks: whose events are recorded.
        calls: of a graph, those that are shown.
        prototypes: path of a header of C with functions that no debug information describes.
        printing: how values with types are shown: gdb's `set print` words, "elements=20".
        backed: what is not written yet is kept in a file beside the output, safe from a kill.
    """

    format: str = "ftrace"
    output: str | None = None
    buffer: int | None = None
    overwrite: bool = False
    mode: Mode = Mode.STRICT
    stack: bool = False
    profile: bool = False
    text: tuple[str, ...] = ()
    tasks: TaskChoice = ALL_TASKS
    calls: CallChoice = ALL_CALLS
    prototypes: str | None = None
    printing: tuple[str, ...] = ()
    backed: bool = True


class GraphOptions(Struct, frozen=True):
    """Options of function tracing: what is traced and recorded.

    Attributes:
        tracer: one of `TRACERS`.
        depth_max: deeper calls are not followed, 0 for no limit (max_graph_depth).
        args: record what functions are called with.
        retval: record what they return.
        under: patterns: only calls made in these functions (set_graph_function).
        without: patterns: not these functions, nor, in the graph, what is called in them
            (set_ftrace_notrace, set_graph_notrace).
        typed: record arguments and results as the source has them: texts, structures and numbers
            with a point too.
        auto: record results of those functions alone whose types are known (uftrace's
            `--auto-args`).
        hidden: patterns: not these functions, but what is called in them (uftrace's `-H`).
        size_min: only functions of so many bytes (uftrace's `-Z`).
    """

    tracer: str = TRACERS[0]
    depth_max: int = 0
    args: bool = False
    retval: bool = False
    under: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    typed: bool = False
    auto: bool = False
    hidden: tuple[str, ...] = ()
    size_min: int = 0


class ProbeRequest(Struct, frozen=True):
    """The probes of a run.

    Attributes:
        definitions: lines of `kprobe_events`, or `syscalls/GLOB`, `sched:GLOB`.
        entries: patterns: an event on the entry of each function that matches.
        returns: patterns: an event on the return of each.
        bodies: patterns: an event on every instruction of each.
        watches: expressions: an event for each store to what they name.
        sample: blocks of the guest between two samples of its clock, 0 for no samples.
        perf: definitions of perf probe.
        typed: events of patterns have the arguments and results that the source names.
    """

    definitions: Sequence[str] = ()
    entries: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    watches: tuple[str, ...] = ()
    sample: int = 0
    perf: tuple[str, ...] = ()
    typed: bool = False

    @property
    def is_empty(self) -> bool:
        """True if nothing is probed."""
        return replace(self, typed=False) == ProbeRequest()


class TraceInstance(Struct, frozen=True):
    """A set of events beside that of a run, over the same points (a tracefs instance).

    Attributes:
        name: of it.
        probes: make its events.
        options: how its trace is kept and shown.
        filters: as of `TraceRequest`.
        triggers: likewise.
    """

    name: str
    probes: ProbeRequest
    options: TraceOptions
    filters: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()

    def adapted(self, mode: Mode, *, keeps: bool) -> "TraceInstance":
        """The same with the strictness of the run, and nothing written unless `keeps`."""
        output = self.options.output if keeps else None
        return replace(self, options=replace(self.options, mode=mode, output=output))


class TraceRequest(Struct, frozen=True):
    """A run whose events are recorded.

    Attributes:
        config: the guest.
        probes: make the events.
        options: how the trace is kept and shown.
        filters: `GROUP/NAME:EXPR` each; the event may be a pattern.
        triggers: `GROUP/NAME:TRIGGER` each, likewise.
        handlers: a file with probes written in Python, None for none.
        linux_instances: return probes get as many instances as in Linux by default.
        instances: further sets of events.
        report: of samples, in place of the events: its options; None for none.
    """

    config: GuestConfig
    probes: ProbeRequest
    options: TraceOptions = TraceOptions()
    filters: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    handlers: str | None = None
    linux_instances: bool = False
    instances: tuple[TraceInstance, ...] = ()
    report: tuple[str, ...] | None = None

    @property
    def all_options(self) -> tuple[TraceOptions, ...]:
        """The options of its trace and of those of its instances."""
        return (self.options, *(each.options for each in self.instances))


class LiveRequest(Struct, frozen=True):
    """Events recorded by the running kernel of this machine.

    Attributes:
        config: the program that definitions are about; how it is started, if it is.
        probes: make the events.
        options: how the trace is shown.
        filters: as of `TraceRequest`.
        triggers: likewise.
        starts: the program is started, and its processes' events are recorded.
        pids: otherwise these processes', with all their threads and children; all if none.
        seconds: for how long, None for no limit.
        buffer: bytes of the kernel's buffer for each CPU.
        randomized: a program that is started has random addresses, if the machine's have.
    """

    config: GuestConfig
    probes: ProbeRequest
    options: TraceOptions = TraceOptions()
    filters: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    starts: bool = True
    pids: tuple[int, ...] = ()
    seconds: float | None = None
    buffer: int = 8 << 20
    randomized: bool = False


class GraphRequest(Struct, frozen=True):
    """A run whose functions are traced.

    Attributes:
        config: the guest.
        functions: patterns; all of the guest's own if there are none.
        graph: what is traced and recorded.
        options: how the trace is kept.
        text: trace options of tracefs for the tracer's text.
        summary: report at the end what was traced and what it took.
        report: what is written instead of the calls: words of `engine.trace.formats.report`;
            none for the calls themselves.
        written: name of the report that is written in place of the tracer's text, "" for none.
    """

    config: GuestConfig
    functions: tuple[str, ...] = ()
    graph: GraphOptions = GraphOptions()
    options: TraceOptions = TraceOptions()
    text: tuple[str, ...] = ()
    summary: bool = False
    report: tuple[str, ...] = ()
    written: str = ""


class BacktraceRequest(Struct, frozen=True):
    """A run up to a place, for the backtrace there.

    Attributes:
        config: the guest.
        place: of the program; None for a system call.
        syscall: name of a system call, None for a place.
        hit: at the Nth time.
        unwinder: name of the unwinder.
        limit: at most so many frames, None for the unwinder's own limit.
        probes: stand in the program besides.
        mode: strictness of placement.
        all_threads: the other threads' backtraces, too.
        tasks: only where one of these reaches the place.
    """

    config: GuestConfig
    place: str | None = None
    syscall: str | None = None
    hit: int = 1
    unwinder: str = "full"
    limit: int | None = None
    probes: ProbeRequest = ProbeRequest()
    mode: Mode = Mode.STRICT
    all_threads: bool = False
    tasks: TaskChoice = ALL_TASKS


class DiffRequest(Struct, frozen=True):
    """Two runs, without and with probes.

    Attributes:
        config: the guest.
        probes: stand in the second run.
        mode: strictness of placement.
        served: the probes have handlers besides that do nothing.
    """

    config: GuestConfig
    probes: ProbeRequest
    mode: Mode = Mode.STRICT
    served: bool = False


class LiveDiffRequest(Struct, frozen=True):
    """A run in the guest and one of the running kernel's, with the same probes.

    Attributes:
        config: the program and how it is started.
        probes: record the events that are compared.
        buffer: bytes of the kernel's buffer for each CPU.
        seconds: that the second run has, None for no limit.
    """

    config: GuestConfig
    probes: ProbeRequest
    buffer: int = 32 << 20
    seconds: float | None = None


class ExploreRequest(Struct, frozen=True):
    """Runs under many schedules, until one ends in another way.

    Attributes:
        config: the guest; its seed is the first one.
        seeds: how many are tried.
        stop_if: a C expression over the program's variables at its end: a run for which it holds
            ends the search, too; None for none.
        jobs: processes of the host's that share the search.
        seconds: for all of it, None for any time.
        schedule: a file to write the schedule to that is found, None for none.
    """

    config: GuestConfig
    seeds: int
    stop_if: str | None = None
    jobs: int = 1
    seconds: float | None = None
    schedule: str | None = None


class CheckRequest(Struct, frozen=True):
    """Verdicts on places; nothing runs. Without a choice they are the entries of all functions.

    Attributes:
        config: the guest.
        definitions: lines of `kprobe_events`: their places.
        functions: patterns: the entries of functions that match.
        everything: every instruction of the guest's own file instead.
        rules: these decide; None for a definition's own.
        mode: strictness of placement.
    """

    config: GuestConfig
    definitions: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    everything: bool = False
    rules: Rules | None = None
    mode: Mode = Mode.STRICT


class PerfRequest(Struct, frozen=True):
    """Listings of perf probe; nothing runs.

    Attributes:
        config: the guest.
        definitions: commands: their events as tracefs takes them.
        variables: places: the variables that are known there.
        lines: ranges of lines of the source.
        functions: the functions are listed.
        filter: of names of functions or variables; "" for perf's own.
        externs: variables of the whole unit, too.
        ranges: where each variable has its location.
        inlines: copies of inlined functions count.
    """

    config: GuestConfig
    definitions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    functions: bool = False
    filter: str = ""
    externs: bool = False
    ranges: bool = False
    inlines: bool = True


class CallRequest(Struct, frozen=True):
    """Calls of functions of a kernel image.

    Attributes:
        image: path of the image or module.
        calls: as written: `FUNC(ARGS)`.
        kernel: choices for the image.
        blocks_max: basic blocks that all of them may take.
    """

    image: str
    calls: tuple[str, ...]
    kernel: KernelChoice
    blocks_max: int


class ListingRequest(Struct, frozen=True):
    """Disassembly of the function around a place, or of all executable sections."""

    config: GuestConfig
    place: str | None = None


class RawListingRequest(Struct, frozen=True):
    """Disassembly of a file of plain bytes, the first of which has the address `base`."""

    path: str
    arch: str
    base: int = 0


class BenchRequest(Struct, frozen=True):
    """Measurements of what a hit costs.

    Attributes:
        arches: names of architectures, () for all that can be measured.
        calls: of the probed function.
        runs: of each case, of which the quickest counts.
        peers: other tools too, where they are installed.
        live_kernel: a uprobe of the running kernel too.
    """

    arches: tuple[str, ...]
    calls: int
    runs: int
    peers: bool = True
    live_kernel: bool = False

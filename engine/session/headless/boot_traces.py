"""Boots whose events, or calls of functions, are recorded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.machine import MachineEnd
from engine.session.booted.graph import BootGraph
from engine.session.booted.kernel_events import EventCatalog, enabling_words
from engine.session.booted.tracing import BootTracing
from engine.session.guest.outputs import OutputFiles
from engine.session.headless.bootable import bootable
from engine.session.headless.booting import Booted
from engine.session.headless.traces import FORMAT_NAMES, controlled
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import BootRequest, KernelChoice
from engine.session.protocol.report import Report
from engine.session.protocol.requests import GraphOptions, ProbeRequest, TraceOptions

TOLD: Final = "told"
BREAKPOINT: Final = "breakpoint"
BOOT_TECHNIQUES: Final = (TOLD, BREAKPOINT)
"""Ways to have a probe of a booted kernel hit: the processor tells of the place, or a breakpoint
is planted there."""


class BootTraceRequest(Struct, frozen=True):
    """A boot whose events are recorded.

    Attributes:
        boot: what is booted.
        probes: make the events.
        options: how the trace is kept and shown.
        filters: `GROUP/NAME:EXPR` each; the event may be a pattern.
        triggers: `GROUP/NAME:TRIGGER` each, likewise.
        kernel: the rules that definitions are judged by.
        technique: one of `BOOT_TECHNIQUES`.
    """

    boot: BootRequest
    probes: ProbeRequest
    options: TraceOptions = TraceOptions()
    filters: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    kernel: KernelChoice = KernelChoice()
    technique: str = TOLD


class BootGraphRequest(Struct, frozen=True):
    """A boot whose functions are traced.

    Attributes:
        boot: what is booted.
        functions: patterns.
        graph: what is traced and recorded.
        options: how the trace is kept; its text options are those of the tracer.
        kernel: the rules that say which functions take a probe.
        report: name of the format that sums up the calls, "" for the calls themselves.
    """

    boot: BootRequest
    functions: tuple[str, ...]
    graph: GraphOptions = GraphOptions()
    options: TraceOptions = TraceOptions()
    kernel: KernelChoice = KernelChoice()
    report: str = ""


class BootRun:
    """A machine with a kernel that is traced, before its first instruction.

    Attributes:
        booted: the machine.
    """

    def __init__(self, booted: Booted, tracing: BootTracing) -> None:
        """Take a machine and its trace."""
        self.booted = booted
        self._tracing = tracing

    @property
    def remarks(self) -> tuple[Report, ...]:
        """Remarks about what was set up."""
        return self._tracing.remarks

    @property
    def incomplete(self) -> bool:
        """True if the output could not take all of the trace."""
        return self._tracing.incomplete

    def run(self, run: Callable[[], MachineEnd]) -> tuple[MachineEnd, list[Report]]:
        """Run the machine to its end, with the trace written.

        Args:
            run: runs the machine of `booted`.

        Raises:
            CommandError: an output cannot be written.
        """
        self._tracing.start()
        said: list[Report] = []
        try:
            end = run()
        finally:
            said = self._tracing.finish()
        return end, said


class BootTrace(BootRun):
    """The same with probes.

    Attributes:
        refused: filters and triggers that kernel mode goes on without, in words.
    """

    def __init__(self, booted: Booted, tracing: BootTracing, request: BootTraceRequest) -> None:
        """Place the probes.

        Args:
            booted: the machine.
            tracing: of the machine, empty.
            request: what is traced and how.

        Raises:
            ProbeError: a definition, a filter or a trigger is not accepted.
        """
        super().__init__(booted, tracing)
        tracing.place(request.probes)
        refused: list[str] = []
        for text in request.filters:
            refused += controlled(tracing, "--filter", text)
        for text in request.triggers:
            refused += controlled(tracing, "--trigger", text)
        self.refused = tuple(text for text in refused if text)

    def listed(self) -> Iterator[str]:
        """The definitions as the kernel lists them."""
        return self._tracing.listing()


@contextmanager
def opened_boot_trace(
    request: BootTraceRequest, put: Callable[[bytes], None], stdin: int | None, stream: BinaryIO
) -> Iterator[BootTrace]:
    """The machine of a request with its trace, closed at the end.

    Args:
        request: what is traced and how.
        put: takes what the console writes.
        stdin: the descriptor of the console's input; None for none.
        stream: takes the trace where no file is named.

    Raises:
        ImageError: the kernel cannot be booted.
        KprobeTuiError: see `BootTrace`.
    """
    ends, planted = _Ends(put, stdin, stream), request.technique == BREAKPOINT
    lines = request.probes.definitions
    with _traced(
        request.boot, request.kernel, request.options, ends, lines=lines, planted=planted
    ) as (booted, tracing):
        yield BootTrace(booted, tracing, request)


@contextmanager
def opened_boot_graph(
    request: BootGraphRequest, put: Callable[[bytes], None], stdin: int | None, stream: BinaryIO
) -> Iterator[BootRun]:
    """The machine of a request whose functions are traced; see `opened_boot_trace`.

    Raises:
        ImageError: the kernel cannot be booted.
        ProbeError: no function matches a pattern.
    """
    ends = _Ends(put, stdin, stream)
    plain = request.options.format == FORMAT_NAMES[0]
    tracer = request.report or (request.graph.tracer if plain else "")
    options = request.options
    if request.graph.retval and plain and not request.report:
        options = replace(options, text=(*options.text, "funcgraph-retval"))
    with _traced(request.boot, request.kernel, options, ends, tracer) as (booted, tracing):
        BootGraph(tracing, request.graph).add(request.functions)
        yield BootRun(booted, tracing)


class _Ends(Struct, frozen=True):
    """The ends of a machine's console, and of its trace where no file is named."""

    put: Callable[[bytes], None]
    stdin: int | None
    stream: BinaryIO


@contextmanager
def _traced(
    boot: BootRequest,
    kernel: KernelChoice,
    options: TraceOptions,
    ends: _Ends,
    tracer: str = "",
    *,
    lines: Sequence[str] = (),
    planted: bool = False,
) -> Iterator[tuple[Booted, BootTracing]]:
    """A machine and its empty trace, closed at the end.

    The kernel is told by its command line to enable those of its own events that `lines` choose.
    """
    outputs = OutputFiles(boot.kernel, *filter(None, (boot.initrd, boot.init)), *boot.disks)
    tracing: BootTracing | None = None

    def written(data: bytes) -> None:
        if tracing is not None and tracing.is_streamed:
            tracing.drain()  # the text stands among the console's lines where it belongs
        ends.put(data)

    parts = bootable(boot)
    opened = OpenedKernel(parts.kernel, kernel)
    events = EventCatalog(opened)
    wanted = (*events.of_lines(lines), *events.probed(lines))
    append = enabling_words(wanted, boot.append, lambda: events.groups)
    booted = Booted(parts.with_words(append), written, ends.stdin)
    try:
        tracing = BootTracing(
            *(opened, booted.machine, options, outputs, ends.stream, tracer),
            planted=planted,
            files=parts.files,
            enabled=True,
        )
        try:
            yield booted, tracing
        finally:
            tracing.discard()
    finally:
        outputs.close()  # the machine stays: where a command is cut off it still runs

"""Runs whose events are recorded, and definitions as text for other tools."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CutOff, ProbeError, ProbeSyntaxError
from engine.session.guest.session import Attach, Session
from engine.session.headless.endings import explain
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report, Reports
from engine.session.protocol.requests import (
    TRACERS,
    GraphRequest,
    TraceInstance,
    TraceOptions,
    TraceRequest,
)
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.listing import KERNEL_FORM, TraceListing
from engine.session.tracing.tracing import FormatMaker, Tracing
from engine.session.tracing.triggers import split_option
from engine.trace.export import FORMS
from engine.trace.fields import format_text
from engine.trace.formats import FORMAT_NAMES as FORMAT_NAMES
from engine.trace.formats import WEIGH_CALLS as WEIGH_CALLS
from engine.trace.formats import format_named
from engine.trace.rows import EventInfo

if TYPE_CHECKING:
    from engine.session.headless.script_beside import ScriptBeside
    from engine.session.kernel.opened import OpenedKernel

AttachScript = Callable[[Tracing, ExitStack], "ScriptBeside"]
"""Attaches a script of bpftrace beside a trace, which the stack closes."""

LIST_FORMS: Final = (KERNEL_FORM, *FORMS)
"""Forms in which definitions can be listed."""

_LATENCY: Final = "latency"
_SAMPLES: Final = "samples"
_ARGS: Final = frozenset({"funcgraph-args", "func-args"})
_KERNELS_OWN: Final = frozenset({"trace.dat", "perf.data"})
"""Formats whose rows of a graph are laid out as a kernel's are."""
_RETVALS: Final = frozenset({"funcgraph-retval", "funcgraph-retval-hex"})


class Controlled(Protocol):
    """A trace whose events take filters and triggers."""

    @property
    def infos(self) -> Mapping[tuple[str, str], EventInfo]:
        """The events by group and name."""

    def set_filter(self, group: str, name: str, text: str) -> str:
        """Give an event a filter; what was refused in kernel mode, "" for nothing."""

    def add_trigger(self, group: str, name: str, text: str) -> str:
        """Give an event a trigger; likewise."""


class TraceRun:
    """A guest with a trace that stands before its first instruction.

    Attributes:
        refused: filters and triggers that kernel mode goes on without, in words.
    """

    def __init__(
        self,
        tracing: Tracing,
        request: TraceRequest,
        instances: Sequence[Tracing] = (),
        attach_script: "Callable[[], ScriptBeside] | None" = None,
    ) -> None:
        """Set up the trace.

        Args:
            tracing: it, empty.
            request: what is traced and how.
            instances: the traces of its instances, empty.
            attach_script: attaches a script of bpftrace beside it; None for none.

        Raises:
            ProbeError: a definition, a filter or a trigger is not accepted.
            WrongScriptError: the script is wrong.
        """
        self._session = session = tracing.session
        self._request = request
        self._tracing = tracing
        if request.linux_instances:
            session.probes().manager.returns.pool.kernel_maxactive = True
        self._instances = tuple(zip(request.instances, instances, strict=True))
        self._all = (tracing, *instances)
        if request.report is not None:
            tracing.print_as(format_named(_SAMPLES), request.report)
        refused: list[str] = []
        sets: list[tuple[TraceRequest | TraceInstance, Tracing]] = [(request, tracing)]
        for wanted, made in (*sets, *self._instances):
            made.definitions.place(wanted.probes)
            if session.opened.kernel is not None:
                self._ask_image(session.opened.kernel, wanted.probes.definitions)
            if made.definitions.beyond_linux:
                session.remarks.append(Report((made.definitions.beyond_linux,)))
            for text in wanted.filters:
                refused += controlled(made, "--filter", text)
            for text in wanted.triggers:
                refused += controlled(made, "--trigger", text)
        self.refused = tuple(text for text in refused if text)
        self._script = None if attach_script is None else attach_script()

    def _ask_image(self, opened: "OpenedKernel", lines: Sequence[str]) -> None:
        """Tell which definitions the image's own kernel would refuse, though they are placed here.

        Raises:
            ProbeError: it would, and its rules hold.
        """
        from engine.session.kernel.definition_answers import refusals  # few guests are kernels

        for text in refusals(opened, lines):
            if self._request.options.mode is Mode.KERNEL:
                raise ProbeError(text)
            self._session.remarks.append(Report((f"{text}; here it is placed all the same",)))

    def described(self) -> Iterator[str]:
        """The lines of the files that tracefs would have for each event."""
        yield from _described(self._tracing, "events")
        for instance, tracing in self._instances:
            yield from _described(tracing, f"instances/{instance.name}/events")
        yield from self._handled()

    def listed(self, form: str) -> Iterator[str]:
        """The lines of all definitions in one of `LIST_FORMS`.

        Raises:
            KprobeTuiError: the file of handlers cannot be used.
        """
        yield from TraceListing(self._tracing).lines(form)
        for instance, tracing in self._instances:
            yield f"# instance {instance.name}"
            yield from TraceListing(tracing).lines(form)
        yield from self._handled()

    def attached(self, attach: Attach) -> AbstractContextManager[None]:
        """Limits and signals of the host hold for a listing that executes a file of handlers."""
        return attach(self._session) if self._request.handlers is not None else nullcontext()

    def _handled(self) -> Iterator[str]:
        """The probes of the file of handlers, as comment: they are no events."""
        path = self._request.handlers
        if path is not None:
            from engine.session.tracing.handlers import load_handlers  # few traces have them

            for probe in load_handlers(path, self._session, begin=False)["probes"]:
                yield f"# {path}: {type(probe).__name__} {probe}: what it does is code"
        if self._script is not None:
            yield from self._script.listed()

    @property
    def remarks(self) -> tuple[Report, ...]:
        """Remarks about what was set up, for those who do not run it."""
        return (*self._session.opened.damage(), *self._session.remarks)

    @property
    def lost(self) -> int:
        """Events that were not written, and hits that were missed."""
        script = self._script
        return sum(each.lost for each in self._all) + (0 if script is None else script.lost)

    @property
    def special(self) -> Mapping[int, Callable[[], None]]:
        """The deeds of a script at signals to the tool that the guest does not get."""
        return {} if self._script is None else self._script.special

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Groups and names of the events of the run's own trace, in their order."""
        return tuple(self._tracing.infos)

    def write_ring(self) -> None:
        """Have what the ring holds written soon; from any thread."""
        self._session.attend()

    def run(self, attach: Attach) -> Reports:
        """Run the guest to its end, with the trace written.

        Raises:
            CommandError: the file of handlers cannot be used, or code of it fails; or a file
                that the run writes cannot be created.
            ProbeError: a probe of it cannot be placed.
        """
        session, tracing, handlers = self._session, self._tracing, self._request.handlers
        script = self._script
        begun = False
        remarks: list[Report] = []

        def begin() -> None:
            nonlocal begun
            try:
                if handlers is not None:
                    from engine.session.tracing.handlers import load_handlers

                    tracing.probes.handled += load_handlers(handlers, session)["probes"]
                session.outputs.create()
                begun = True
            except CutOff:
                begun = True
                raise
            finally:
                for each in self._all if begun else ():
                    each.start()
            for each in self._all:
                if each.is_streamed:
                    each.drain_at_calls()
            session.hooks.attention = self._dump
            if script is not None:
                script.begin()

        with attach(session):
            try:
                with _handlers_in(handlers):
                    reports = session.run(begin)
            finally:
                for each in self._all if begun else ():
                    remarks += each.finish()
                if script is not None:
                    remarks += script.finish()
        reports = reports.behind(*remarks).after(*session.opened.damage())
        incomplete = any(each.incomplete for each in self._all)
        if script is not None:
            incomplete = incomplete or script.incomplete
        return reports.not_whole() if incomplete else reports

    def _dump(self) -> None:
        """Have what all rings that keep the last events hold written."""
        for options, tracing in zip(self._request.all_options, self._all, strict=True):
            if options.buffer is not None and options.overwrite:
                tracing.dump()


def _described(tracing: Tracing, folder: str) -> Iterator[str]:
    """The lines of the files that tracefs would have for each event of a trace."""
    for (group, name), info in tracing.infos.items():
        if name in tracing.unplaced.attached_only(group):
            continue
        control = tracing.controls.of(info)
        yield f"# {folder}/{group}/{name}/format"
        yield from format_text(info).split("\n")
        yield f"# {folder}/{group}/{name}/filter"
        yield control.filter_text
        yield f"# {folder}/{group}/{name}/trigger"
        yield from control.trigger_lines()


@contextmanager
def opened_trace(
    request: TraceRequest,
    stream: BinaryIO,
    make: Callable[[GuestConfig], Session] = Session,
    attach_script: AttachScript | None = None,
) -> Iterator[TraceRun]:
    """The guest of a request with its trace, closed at the end.

    Args:
        request: what is traced and how.
        stream: for text where no file is named.
        make: loads the guest.
        attach_script: attaches a script of bpftrace beside the trace; None for none.

    Raises:
        ImageError: the guest cannot be run.
        KprobeTuiError: see `TraceRun`.
    """
    with (
        _empty_trace(request.config, request.options, stream, make) as tracing,
        ExitStack() as stack,
    ):
        instances: list[Tracing] = []
        for each in request.instances:
            made = Tracing(tracing.session, each.options, stream, main=tracing)
            stack.callback(made.discard)
            instances.append(made)
        script = None if attach_script is None else partial(attach_script, tracing, stack)
        yield TraceRun(tracing, request, instances, script)


class GraphRun:
    """A guest whose functions are traced, before its first instruction."""

    def __init__(
        self, tracing: Tracing, request: GraphRequest, report: FormatMaker | None = None
    ) -> None:
        """Set up the trace.

        Args:
            tracing: it, empty.
            request: what is traced and how.
            report: the format of a report; None for the calls themselves.

        Raises:
            ProbeError: no function matches.
        """
        graph, given = request.graph, request.text
        recorded = replace(
            graph,
            args=graph.args or not _ARGS.isdisjoint(given),
            retval=graph.retval or not _RETVALS.isdisjoint(given),
            typed=request.options.mode is not Mode.KERNEL
            and request.options.format not in _KERNELS_OWN,
        )
        self._session = tracing.session
        self._request = request
        self._tracing = tracing
        shown = (*given, *_implied(graph.tracer, graph.args, graph.retval, given))
        if report is not None:
            tracing.print_as(report, request.report)
        elif request.options.format == FORMAT_NAMES[0]:
            tracing.print_as(format_named(request.written or graph.tracer), shown)
        self._graphing = graphing = Graphing(tracing, recorded)
        option = "--latency" if request.written == _LATENCY else "-f"
        graphing.add(*(request.functions or ("*",)), option=option)

    def listed(self, form: str) -> Iterator[str]:
        """The functions as lines of definitions, in one of `LIST_FORMS`."""
        return self._graphing.listed(form)

    @property
    def remarks(self) -> tuple[Report, ...]:
        """Remarks about what was set up, for those who do not run it."""
        mine = self._graphing.remarks(every=self._request.summary)
        return (*self._session.opened.damage(), *mine, *self._session.remarks)

    def run(self, attach: Attach) -> Reports:
        """Run the guest to its end, with the trace written."""
        session, tracing, request = self._session, self._tracing, self._request
        tracing.start()
        if tracing.is_streamed:
            tracing.drain_at_calls()
        with attach(session):
            try:
                reports = session.run()
            finally:
                remarks = [*self._graphing.remarks(every=request.summary), *tracing.finish()]
        if request.summary:
            remarks.append(self._graphing.summary())
        reports = reports.behind(*remarks).after(*session.opened.damage())
        return reports.not_whole() if tracing.incomplete else reports


@contextmanager
def opened_graph(
    request: GraphRequest,
    stream: BinaryIO,
    make: Callable[[GuestConfig], Session] = Session,
    report: FormatMaker | None = None,
) -> Iterator[GraphRun]:
    """The guest of a request with its functions traced, closed at the end.

    Args:
        request: what is traced and how.
        stream: for text where no file is named.
        make: loads the guest.
        report: the format of a report; None for the calls themselves.

    Raises:
        ImageError: the guest cannot be run.
        KprobeTuiError: see `GraphRun`.
    """
    with _empty_trace(request.config, request.options, stream, make) as tracing:
        yield GraphRun(tracing, request, report)


@contextmanager
def _empty_trace(
    config: GuestConfig,
    options: TraceOptions,
    stream: BinaryIO,
    make: Callable[[GuestConfig], Session] = Session,
) -> Iterator[Tracing]:
    """A guest with a trace of nothing; if it never starts, nothing stays of it.

    Args:
        config: the guest.
        options: how the trace is kept and shown.
        stream: for text where the options name no file.
        make: loads the guest.

    Raises:
        ImageError: the guest cannot be run.
        CommandError: the output cannot be written.
    """
    session = make(config)
    explain(session)
    try:
        tracing = Tracing(session, options, stream)
        try:
            with session.opened.explained():
                yield tracing
        finally:
            tracing.discard()
    finally:
        session.close()


def controlled(tracing: Controlled, option: str, given: str) -> Iterator[str]:
    """Give events a filter or a trigger; yields what was refused in kernel mode.

    The event may be a pattern. As with a filter for a whole group under tracefs, those of the
    events that do not have a field are left alone then, if any other has it.

    Raises:
        ProbeError: there is no such event, or none of them takes it.
    """
    group, name, text = split_option(option, given)
    change = tracing.set_filter if option == "--filter" else tracing.add_trigger
    if not any(sign in group + name for sign in "*?["):
        yield change(group, name, text)
        return
    refused: list[ProbeSyntaxError] = []
    matching = [
        key for key in tracing.infos if fnmatchcase(key[0], group) and fnmatchcase(key[1], name)
    ]
    for key in matching:
        try:
            yield change(*key, text)
        except ProbeSyntaxError as error:
            if error.code != "FIELD_NOT_FOUND":
                raise
            refused.append(error)
    if refused and len(refused) == len(matching):
        raise refused[0]
    if not matching:
        raise ProbeError(f"{option} {given}: no event matches")


def _implied(tracer: str, args: bool, retval: bool, given: tuple[str, ...]) -> tuple[str, ...]:
    """Trace options that other options stand for."""
    if tracer != TRACERS[0]:
        return ("func-args",) if args else ()
    found = ("funcgraph-retval",) if retval or "funcgraph-retval-hex" in given else ()
    return (*found, "funcgraph-args") if args else found


@contextmanager
def _handlers_in(path: str | None) -> Iterator[None]:
    """Let code of a handlers file run, which has no say any more behind it; None for no file."""
    if path is None:
        yield
        return
    from engine.session.headless.process_end import take_back
    from engine.session.tracing.handlers import blamed

    with blamed(path):
        try:
            yield
        finally:
            take_back()

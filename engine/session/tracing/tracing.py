"""A trace: definitions turned into events, recorded as rows, written as text."""

import os
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from engine.arch.plan import Mode
from engine.arch.program import RecordLayout
from engine.errors import CommandError, ProbeError
from engine.fetch.evaluate import FetchContext
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.probes.kprobe import Kprobe, RowOfAny
from engine.session.guest.outputs import OutputFile, OutputTree
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.probing import Probing
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import Backtraces
from engine.session.program.places import Place
from engine.session.protocol.report import Report
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.armed import ControlHooks
from engine.session.tracing.closing_remarks import TracedProbes, stuck_exception
from engine.session.tracing.defining import Definitions
from engine.session.tracing.event_set import EventLimit, EventSet
from engine.session.tracing.output import (
    Tail,
    TraceOutput,
    is_terminal,
    probing_remarks,
    profile_lines,
    remarks,
)
from engine.session.tracing.programs import LoadedFiles, Programs
from engine.session.tracing.recorders import ProbeCpu, Recorders
from engine.session.tracing.row_names import RowNames
from engine.session.tracing.stacks import StackRecorder
from engine.session.tracing.store_events import WatchEvents
from engine.session.tracing.synthetic_events import SyntheticEvents
from engine.session.tracing.syscalls import SyscallEvents
from engine.session.tracing.tasks import Tasks
from engine.session.tracing.triggers import EventControls, FilterNames
from engine.session.tracing.unplaced_events import UnplacedEvents
from engine.trace.formats import FORMAT_NAMES, format_named
from engine.trace.formats.base import Format, Names, PlacedFormat
from engine.trace.ring import Ring
from engine.trace.ring_file import describe
from engine.trace.rows import EventInfo, EventTable, stack_event
from engine.trace.staging import Consumer, Staging

if TYPE_CHECKING:
    from engine.trace.callfilter import CallFilter

_LEFT: Final = 256
"""Threads that have ended, whose names are kept for a trace that is killed."""


FormatMaker = Callable[[EventTable, Names, Collection[str]], Format]
"""Makes an output format for the events of a table."""


class Tracing:
    """The trace of one session.

    Attributes:
        events: by group and name, in the order of definition.
        infos: what their rows are, in the same order, the kernel's own included.
        table: the same by number, with events of the trace's own.
        definitions: carries definitions out.
        ring: what is kept, None while streaming.
        controls: filters and triggers.
        syscalls: system-call events.
        watches: those of watched expressions.
        synthetics: those that triggers make.
        unplaced: those without a probe.
        probes: those of its events, and others that have none.
        incomplete: the output could not take all of the trace; known once it is finished.
        tasks: the threads whose events are recorded.
        programs: those that the guest has run, which name rows.
        row_names: names what its rows have numbers of.
        calls: lets only some calls of a graph pass; None for all.
    """

    def __init__(
        self,
        session: Session,
        options: TraceOptions,
        stream: BinaryIO | None = None,
        consumer: Consumer | None = None,
        keep: Callable[[], object] | None = None,
        main: "Tracing | None" = None,
    ) -> None:
        """Set up an empty trace.

        Args:
            session: the guest, loaded and not running.
            options: how.
            stream: where text goes without an output file.
            consumer: takes the rows as they are; nothing becomes text then.
            keep: called for a snapshot trigger, when the consumer has got all rows before it.
            main: the trace of the session that this is an instance beside; None for that one.

        Raises:
            CommandError: the output cannot be written.
        """
        self.session = session
        self.options = options
        self.incomplete = False
        self.tasks = Tasks(session.machine, options.tasks)
        if options.format not in FORMAT_NAMES:
            known = ", ".join(FORMAT_NAMES)
            raise CommandError(f"--format {options.format}: there is {known}")
        make_format = format_named(options.format)
        self._events = EventSet(
            EventLimit.of(make_format, options.mode), self._prepare, self._share
        )
        self.events = self._events.events
        self.infos = self._events.infos
        self.table = self._events.table
        self._probing: Probing = session.probes(options.mode)
        self.ring: Ring | None = None
        self._keep = keep
        self._main = main
        self.probes: TracedProbes = TracedProbes(
            self.events, self._probing.manager, None if main is None else main.probes
        )
        path = options.output
        discard = path == "/dev/null"
        if options.buffer is not None:
            self.ring = Ring(options.buffer, options.overwrite)
        self._comms = comms = session.machine.comms
        self._modules = LoadedFiles(session)
        self._left: list[int] = []  # threads that have ended since rows were written
        self.calls: CallFilter | None = None
        self._filter_calls(options)
        streams = self.ring is None and self.calls is None
        keeps = not streams
        # A script names what a kernel's tasks have run when it prints its maps.
        keeps = keeps or (consumer is not None and session.user_programs is not None)
        self.programs = programs = Programs(session, keeps=keeps)
        self._exact = options.mode is Mode.KERNEL and not is_terminal(path, stream)
        self.row_names = RowNames(
            session, self._probing, programs, options.mode, exact=self._exact
        )
        names = self.row_names.made()
        text = options.text
        if options.mode is Mode.KERNEL:
            text = (*text, "nosym-userobj")
        form = make_format(self.table, names, text)
        self._output = TraceOutput(
            form,
            None if path is None or discard else output_target(session, path, form),
            stream,
            discard=discard,
            backed=streams and options.backed,
            streams=streams,
            state=self._who_and_where,
            written=session.written,
            text_of=programs.text,
        )
        self._staging = Staging(
            consumer or self._consume, self._output.room, self._output.ring_file
        )
        self._probing.attach(self._staging, lambda: comms.get(session.machine.task, b""))
        self._context = FetchContext(
            session.arch,
            ProbeCpu(session),
            session.memory,
            self._staging,
            comm=lambda thread: comms.get(thread, b""),
            symbol=self.row_names.symbol_now,
            where=self._probing.where,
        )
        self._text = text
        self._started = False
        self.syscalls = SyscallEvents(session)
        self.watches = WatchEvents(session)
        self.synthetics = SyntheticEvents(self.row_names.symbol_now)
        self._stacks = StackRecorder(
            Backtraces(session), session.arch.roles.pc, self._context, self.syscalls
        )
        self.tail = Tail(lambda: make_format(self.table, names, text), programs.text)
        hooks = ControlHooks(
            stack=self._stacks.record,
            stack_now=lambda: self._stacks.frames(self.controls.place),
            snapshot=None if self.ring is None and keep is None else self._snapshot,
            symbol=self.row_names.symbol_now,
            comm=lambda thread: comms.get(thread, b""),
            syscall=self.syscalls.name_of,
            read_cstring=lambda at, limit: session.seen.memory.read_cstring(at, limit),
            here=lambda: self.syscalls.place,
            changed=self._changed,
            exact=self._exact,
            chosen=self.tasks.chosen,
            synthetic=self.synthetics.known,
            made=self.synthetics.happened,
        )
        names_of = FilterNames(options.mode, self._probing.manager.code_map)
        self.controls: EventControls = EventControls(self.infos, self._context, hooks, names_of)
        stacks = {"stacktrace", "userstacktrace"} & set(options.text)
        self.controls.stacks = options.stack or bool(stacks) or make_format.wants_stacks
        self.unplaced = UnplacedEvents(
            session,
            options.mode,
            self._events,
            self.controls,
            self._context,
            self.tasks.chosen,
            (self.syscalls, self.watches, self.synthetics),
        )
        guest, sink = (session, options.mode, self._probing), self._staging
        self._recorders: Recorders = Recorders(
            *guest, self.controls, self._context, sink, self.table
        )
        self.definitions = Definitions(
            *guest,
            self._events,
            self._recorders,
            self.unplaced.choose,
            self.unplaced.remove,
            (options.prototypes, options.printing),
        )

    def _filter_calls(self, options: TraceOptions) -> None:
        """Let only some calls of a graph pass, if the options say so."""
        calls = options.calls
        if calls.shortest or calls.callers_of:
            from engine.trace.callfilter import CallFilter  # few traces have one

            leads_on = bool(calls.callers_of)
            self.calls = CallFilter(self.table, calls.shortest, leads_on=leads_on)

    def _prepare(
        self, probe: Kprobe, space: ProbedSpace, place: Place, number: int, layout: RecordLayout
    ) -> None:
        """Compile the recorder of a probe whose address is known; a `Preparer`."""
        self._recorders.prepare(probe, space, place, number, layout)

    def _share(
        self, probe: Kprobe, space: ProbedSpace, number: int, layout: RecordLayout
    ) -> RowOfAny | None:
        """Find something that records a hit of a probe that is not prepared; a `Sharer`."""
        return self._recorders.share(probe, space, number, layout)

    # -- filters and triggers -------------------------------------------------------------

    def set_filter(self, group: str, name: str, text: str) -> str:
        """Give an event a filter; in kernel mode a bad one lets everything pass.

        Returns:
            What was refused, "" if nothing was.

        Raises:
            ProbeError: there is no such event, or the filter is not accepted.
        """
        lenient = self.options.mode is Mode.KERNEL
        return self.controls.set_filter(self.info(group, name), text, lenient=lenient)

    def add_trigger(self, group: str, name: str, text: str) -> str:
        """Give an event a trigger, or with `!` in front take one away.

        Returns:
            What was refused in kernel mode, where the event goes on without it; else "".

        Raises:
            ProbeError: there is no such event, or the trigger is not accepted.
        """
        info = self.info(group, name)
        try:
            self.controls.add_trigger(info, text)
        except ProbeError as error:
            if self.options.mode is not Mode.KERNEL:
                raise
            return str(error)
        self._warn_of_pointers(info)
        return ""

    def _warn_of_pointers(self, info: EventInfo) -> None:
        """Tell of histograms of an event that count addresses of strings, each once."""
        specs = [armed.trigger.hist for armed in self.controls.of(info).triggers]
        for spec in filter(None, specs):
            from engine.trace.histogram import pointed_strings  # few traces have histograms

            for name, text in pointed_strings(spec, info):
                said = Report(
                    (
                        f"{info}: hist:keys={name} counts pointers, not the strings there:"
                        f" hist:keys={text} counts those",
                    )
                )
                if said not in self.session.remarks:
                    self.session.remarks.append(said)

    def info(self, group: str, name: str) -> EventInfo:
        """The description of an event's rows.

        Raises:
            ProbeError: there is no such event.
        """
        return self._events.info(group, name)

    def _changed(self, info: EventInfo) -> None:
        """An event records in another way: compile its probes' recorders again."""
        if not self._started:
            return
        if self.unplaced.has(info):
            self.unplaced.install(info)
            return
        event = self.events.get((info.group, info.name))
        for probe in event.probes if event is not None else ():
            self._probing.renew(probe)

    def _snapshot(self) -> None:
        self._staging.drain()
        if self._keep is not None:
            self._keep()
        if self.ring is not None:
            self.tail.keep(self.ring)

    @property
    def in_guest(self) -> bool:
        """True if code in the guest may write rows too: one trace's only, and of all threads."""
        return self.tasks.chosen is None and self._probing.manager.techniques.writes_to(
            self._staging
        )

    @property
    def context(self) -> FetchContext:
        """The context that recorders of this guest share."""
        return self._context

    def add_event(self, make: Callable[[int], EventInfo]) -> EventInfo:
        """Add an event that no definition makes.

        Args:
            make: describes it, given its number.

        Raises:
            CommandError: there are too many.
        """
        return self._events.add(make)

    def print_as(self, make: FormatMaker, options: tuple[str, ...]) -> None:
        """Print rows in another format than the one of the options; before `start`.

        Args:
            make: the format.
            options: its trace options.
        """
        self._text = options
        self._output.format = make(self.table, self.row_names.made(), options)

    # -- output ---------------------------------------------------------------------------

    def start(self) -> None:
        """Before the guest runs: the clock goes, the header is out.

        Raises:
            CommandError: an output cannot be written; none is touched then.
        """
        self.session.outputs.create()
        self._output.begin()
        self.session.cpu.count_blocks(True)
        self._started = True
        self.unplaced.start()
        hooks = self.session.hooks
        renaming, renamed = hooks.renaming, hooks.renamed

        def rename_soon() -> None:
            renaming()
            self._staging.drain()

        def rename_too(thread: int) -> None:
            renamed(thread)
            self.programs.began(thread)
            self._renamed(thread)

        hooks.renaming, hooks.renamed = rename_soon, rename_too
        self._follow_programs()
        self.declare_stacks()
        for info in self.infos.awake():  # others do nothing but record
            if self.unplaced.has(info) or self.controls.touches(info):
                self._changed(info)
        ring_file = self._output.ring_file
        if ring_file is not None:
            ring_file.describe(self._description())
            self._watch_names()
        if self.ring is None:
            self._output.header()

    def _follow_programs(self) -> None:
        """Let rows be named by the programs that they are from."""
        spaces, programs = self.session.machine.spaces, self.programs
        programs.begin()
        self._probing.mapped.append(programs.mapped)
        if self.session.user_programs is not None:
            self.session.kernel.switched.append(programs.user_runs)
        copied, replaced, ended = spaces.copied, spaces.replaced, spaces.ended

        def copy_too(old: AddressSpace, new: AddressSpace) -> None:
            programs.copied(old, new)
            copied(old, new)

        def replace_too(old: AddressSpace, new: AddressSpace) -> None:
            self._staging.drain()  # what was recorded is named by what was in memory
            programs.replaced(new)
            replaced(old, new)
            for mapping in list(new.memory.mappings):  # what exec itself has loaded
                for told in self._probing.mapped:
                    told(new, mapping.start, mapping.size)
            self._output.commit()

        def end_too(space: AddressSpace) -> None:
            self._staging.drain()
            gone = programs.ended(space)
            if gone:
                self._modules.forget(gone)
            ended(space)

        spaces.copied, spaces.replaced, spaces.ended = copy_too, replace_too, end_too

    def declare_stacks(self) -> None:
        """Have an event for call stacks, if any are wanted by now."""
        if self._stacks.info is None and self.controls.wants_stacks:
            kernel = self.session.is_kernel
            self._stacks.info = self._events.add(lambda number: stack_event(number, kernel=kernel))

    def _description(self) -> dict[str, Any]:
        """Describe the rows for whoever finds them after a kill."""
        places = {
            probe.addr
            for event in self.events.awake()
            for probe in event.probes
            if probe.addr is not None
        }
        return describe(
            self.table.values(),
            self.session.arch.name,
            {
                "format": self._output.format.name,
                "options": list(self._text),
                "exact": self._exact,
                "decodes": self.options.mode is not Mode.KERNEL,
            },
            ((place, self.row_names.symbol(place)) for place in places),
            filter(self.row_names.returning, places),
        )

    def _who_and_where(self) -> dict[str, Any]:
        """Names and processes of threads, and the files that name addresses, for the same."""
        machine = self.session.machine
        wanted = {*machine.threads, *self._left}
        comms = {each: os.fsdecode(self._comms.get(each, b"")) for each in wanted}
        pids = {each: pid for each in wanted if (pid := machine.pids.get(each, each)) != each}
        programs = self.programs.times.state()
        modules = self._modules.listing
        return {"comms": comms, "pids": pids, "modules": modules, "programs": programs}

    def _watch_names(self) -> None:
        """Keep what the ring file knows of the guest's files true while it runs."""
        modules = self._modules
        self.session.machine.moments.leaving.append(self._leaving)

        def mapped(space: AddressSpace, start: int, size: int) -> None:
            if modules.found(space, self.programs.number(space), start):
                self._output.commit()

        self._probing.mapped.append(mapped)
        for mapping in self.session.memory.mappings:
            modules.found(self.session.space, 0, mapping.start)

    def drain(self) -> None:
        """Hand what was recorded so far to the output."""
        self._staging.drain()

    def _renamed(self, thread: int) -> None:
        """A thread has another name from here on; what was recorded had the one before."""
        self._output.format.renamed(thread)
        self._output.commit()

    @property
    def lost(self) -> int:
        """Events that were not written, and hits that were missed; up to now, or at the end."""
        own = [probe for event in self.events.awake() for probe in event.probes]
        missed = sum(probe.nmissed for probe in dict.fromkeys(own))
        return self._staging.lost + self._output.lost + missed

    @property
    def is_streamed(self) -> bool:
        """True if the output is no file of its own: what is recorded is to come out soon."""
        return self._output.is_stream

    def drain_at_calls(self) -> None:
        """Drain at each system call: the text stands among the guest's output where it belongs."""
        hooks = self.session.hooks
        before = hooks.syscall_enter

        def enter(number: int, name: str, arguments: tuple[int, ...]) -> None:
            before(number, name, arguments)
            self.drain()

        hooks.syscall_enter = enter

    def discard(self) -> None:
        """Nothing was traced, and nothing will be: no file stays beside the output's."""
        if not self._started:
            self._staging.close()
            self._output.close()

    def finish(self) -> list[Report]:
        """After the run: everything out, and what is to be said about it."""
        self._probing.collect()
        self._staging.close()
        output = self._output
        if self.calls is not None:
            self._put(self.calls.rest())
        if self.ring is not None:
            output.ring(self.ring)
        output.end()
        output.tail(self._tail())
        output.close()
        failure = self._staging.failure or output.failure
        self.incomplete = failure is not None
        said = list(
            remarks(
                self.options.output or "the output",
                failure,
                self._staging.lost + output.lost,
                self.probes.lacking(),
            )
        )
        said += self.watches.remarks()
        if self.calls is not None:
            said += [Report((text,)) for text in self.calls.remarks()]
        samples = self.unplaced.samples
        said += [] if samples is None else samples.remarks()
        said += self.probes.unreturned()
        if self._main is not None:
            return [*said, *self.tasks.remarks()]
        probing = probing_remarks(self._probing)
        return [
            *probing,
            *said,
            *self.tasks.remarks(),
            *stuck_exception(self.session, self._probing.manager),
        ]

    def _tail(self) -> Iterator[bytes]:
        """The snapshot, histograms and the profile."""
        yield self.tail.snapshot() if self._output.format.is_text else b""
        for table in self.controls.histograms():
            yield table + b"\n"
        if self.options.profile:
            yield b"\n# profile\n"
            shown = self.row_names.made().shown
            counted = profile_lines(self.events.values(), self.probes.without_event())
            for line in chain(counted, self.watches.profile()):
                yield shown(os.fsencode(line)) + b"\n"

    def dump(self) -> None:
        """Write what the ring has now; nothing while streaming."""
        if self.ring is not None:
            self._staging.drain()
            self._output.ring(self.ring)
            self._output.text(self._output.format.end())

    def _consume(self, rows: bytes) -> None:
        self._put(rows if self.calls is None else self.calls.passed(rows))

    def _put(self, rows: bytes) -> None:
        if self.ring is not None:
            self.ring.append(rows)
        else:
            self._output.rows(rows)
            self._left.clear()

    def _leaving(self, thread: Thread, last: bool) -> None:
        """A thread ends: its name is known until its rows are written."""
        self._left.append(thread.tid)
        if len(self._left) > _LEFT:
            self._staging.drain()
            self._left.clear()


def output_target(session: Session, path: str, form: Format) -> OutputFile | OutputTree:
    """The file or files of a format; see `OutputFiles`."""
    if isinstance(form, PlacedFormat):
        return session.outputs.add_tree("-o", path, lambda: form.is_directory, form.owns)
    return session.outputs.add("-o", path)

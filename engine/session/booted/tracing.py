"""The trace of a booted kernel: its probes' hits as rows, written as any trace is."""

from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import Any, BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.arch.program import RecordLayout
from engine.errors import ProbeError
from engine.fetch.evaluate import (
    FetchContext,
    RowSink,
)
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import TaskReader, task_members
from engine.machine.kernelmodules import KernelModules, LoadedModule, module_members
from engine.machine.machine import BareMachine
from engine.machine.probing import WORD, MachineProbes
from engine.probes.machine_breakpoints import MachineBreakpoints, breakpoints_of
from engine.session.booted.event_hits import EventHits
from engine.session.booted.event_rows import BootEvents
from engine.session.booted.files import BootFiles
from engine.session.booted.kernel_events import EventCatalog, is_from_kernel, selected
from engine.session.booted.kernel_probes import ArmedBootProbe, BootCounts, BootKernelProbes
from engine.session.booted.made_events import BootMadeEvents, EventsOfKernel
from engine.session.booted.memory import BootCpu, KernelStrings
from engine.session.booted.modules import BootModules
from engine.session.booted.probes import AddedProbes, BootProbe, BootProbes, WaitingProbe
from engine.session.booted.program_probes import BootPrograms
from engine.session.booted.programs import MachinePrograms
from engine.session.booted.stacks import BootStacks
from engine.session.booted.tasks import BootTasks
from engine.session.guest.outputs import OutputFile, OutputFiles, OutputTree
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.report import Report
from engine.session.protocol.requests import ProbeRequest, TraceOptions
from engine.session.tracing.armed import ControlHooks
from engine.session.tracing.event_set import EventLimit, EventSet, NumberedEvents
from engine.session.tracing.output import Tail, TraceOutput, is_terminal, some_lines
from engine.session.tracing.stacks import StackRecorder
from engine.session.tracing.tasks import Tasks
from engine.session.tracing.triggers import EventControls
from engine.trace.filterterms import FilterMachine
from engine.trace.formats import format_named
from engine.trace.formats.base import Names, PlacedFormat, with_idle
from engine.trace.program_times import ProgramTimes
from engine.trace.ring import Ring
from engine.trace.ring_file import describe
from engine.trace.rows import EventInfo, stack_event
from engine.trace.staging import Staging
from engine.trace.syscalls import event_name

TRAMPOLINES: Final = ("arch_rethook_trampoline", "__kretprobe_trampoline", "return_to_handler")
"""Places that Linux writes over return addresses; the last one is the graph tracer's."""


class TracedLine(Struct, frozen=True):
    """The things that came of a line that was carried out.

    Attributes:
        added: what it defines.
        infos: the events that are new.
    """

    added: AddedProbes
    infos: tuple[EventInfo, ...]


class BootTracing:
    """The trace of one boot.

    Attributes:
        infos: the events by group and name, in the order of their definition.
        incomplete: the output could not take all of the trace; known once it is finished.
        probes: of the machine.
        placing: places a probe of a module that the kernel has loaded.
        taking_out: takes the probes of a module out whose memory goes.
    """

    def __init__(
        self,
        opened: OpenedKernel,
        machine: BareMachine,
        options: TraceOptions,
        outputs: OutputFiles,
        stream: BinaryIO | None,
        tracer: str = "",
        *,
        planted: bool = False,
        files: BootFiles | None = None,
        enabled: bool = False,
        take: Callable[[bytes], None] | None = None,
    ) -> None:
        """Set up an empty trace of a machine that has not run.

        Args:
            opened: the kernel in the machine.
            machine: the machine.
            options: how the trace is kept and shown.
            outputs: all files that the run writes.
            stream: takes text where no file is named.
            tracer: whose text is written in place of the format of the options; "" for none's.
            planted: probes are breakpoints in the kernel's text, as Linux's are.
            files: of the system, as far as the host has them.
            enabled: the kernel's command line enables those of its own events that are placed.
            take: gets the rows in place of an output; None for nobody.

        Raises:
            CommandError: the output cannot be written, or nothing can be planted here.
        """
        self.incomplete = False
        self._take = take
        self._opened, self._machine, self._options = opened, machine, options
        cpu = machine.cpu
        addresses = self._addresses = KernelAddresses(cpu)
        reader = TaskReader(cpu, addresses, task_members(opened.image))
        names = opened.names
        at = (names.find(name) for name in TRAMPOLINES)
        trampolines = frozenset(each for each in at if each is not None)
        self.probes = MachineProbes(cpu, addresses, reader.address, trampolines)
        self._breakpoints: MachineBreakpoints | None = None
        if planted:
            self._breakpoints = breakpoints_of(opened.arch, opened.image.elf, cpu, addresses)
        self._reader = reader
        self._result, self._stack = cpu.reader(("rax",)), cpu.reader(("rsp",))
        self._word = addresses.reader(WORD)
        files = files or BootFiles()
        self._names_of = BootProbes(opened, files, options.mode)
        self.placing: Callable[[WaitingProbe, BootProbe], None] = self._place_waiting
        self.taking_out: Callable[[LoadedModule], None] = lambda one: self._kernel.take_out(one)
        self._waiting = BootModules(
            *(opened.arch, addresses, self._names_of.waiting),
            *(lambda *given: self.placing(*given), lambda module: self.taking_out(module)),
        )
        members = module_members(opened.image)
        self._modules: KernelModules | None = None
        if members is not None:
            self._modules = KernelModules(self.probes, cpu, addresses, members)
            self._modules.follow(self._waiting.coming, self._waiting.going)
            self._modules.leaving = self.drain  # rows so far are named by what is there
        self._tasks = BootTasks(reader)
        self._choice = Tasks(self._tasks, options.tasks)
        self._ring = Ring(options.buffer, options.overwrite) if options.buffer else None
        form = format_named(tracer or options.format)
        self._events = EventSet(EventLimit.of(form, options.mode))
        self.infos = self._events.infos
        self._exact = options.mode is Mode.KERNEL and not is_terminal(options.output, stream)
        made = form(self._events.table, self.names(), options.text)
        discard = options.output == "/dev/null"
        target: OutputFile | OutputTree | None = None
        if options.output is not None and not discard:
            if isinstance(made, PlacedFormat):
                placed = made
                target = outputs.add_tree(
                    "-o", options.output, lambda: placed.is_directory, placed.owns
                )
            else:
                target = outputs.add("-o", options.output)
        self._outputs = outputs
        self._output = TraceOutput(
            made,
            target,
            stream,
            discard=discard,
            backed=self._ring is None,
            state=self._who,
        )
        self._staging = Staging(self._consume, file=self._output.ring_file)
        self._tasks.renaming = self._staging.drain
        self._tasks.renamed = made.renamed
        self._tail = Tail(lambda: form(self._events.table, self.names(), options.text))
        as_linux = options.mode is Mode.KERNEL
        self._context = FetchContext(
            opened.arch,
            BootCpu(machine),
            KernelStrings(addresses) if as_linux else addresses,
            self._staging,
            comm=lambda thread: self._tasks.comms.get(thread, b""),
            symbol=self.symbol,
            where=names.find,
        )
        programs = MachinePrograms(*(opened, machine, addresses, reader, files), as_linux=as_linux)
        self._stacks = BootStacks(opened, cpu, addresses, self._modules, reader.address)
        self._stack_rows = StackRecorder(
            self._stacks, opened.arch.roles.pc, self._context, self._stacks
        )
        own = EventsOfKernel(lambda: self._own_rows.infos, self._has_own, self._add_own)
        self._made = BootMadeEvents(opened.arch, addresses, self.symbol, own)
        self._controls = EventControls(self.infos, self._context, self._hooks(), self._filters)
        self._controls.stacks = options.stack or form.wants_stacks
        self._controls.stacks |= not {"stacktrace", "userstacktrace"}.isdisjoint(options.text)
        self._kernel = BootKernelProbes(
            *(machine, self.probes, self._breakpoints, self._context, self._controls),
            self._tasks.running,
            lambda: self._names_of.instances if as_linux else 0,
            len(opened.arch.breakpoint) if as_linux else 0,  # as Linux leaves pc behind its int3
        )
        self._programs = BootPrograms(
            *(machine, programs, self.probes, self._context, self._controls),
            *(self._tasks.running, addresses),
        )
        self._own, self._enabled = EventCatalog(opened), enabled
        self._own_rows = BootEvents(
            *(self._own, EventHits(opened, cpu, addresses, self.probes, reader.address)),
            self._context,
            self._controls,
            addresses,
            programs.pages,
            self._stacks,
            self._tasks.running,
        )
        self._started = False

    def _hooks(self) -> ControlHooks:
        return ControlHooks(
            stack=self._stack_rows.record,
            stack_now=lambda: self._stack_rows.frames(self._controls.place),
            snapshot=None if self._ring is None else self._snapshot,
            symbol=self.symbol,
            comm=self._tasks.comms.get,
            syscall=self._call_name,
            read_cstring=self._addresses.read_cstring,
            here=lambda: 0,
            changed=self._changed,
            exact=self._exact,
            chosen=self._choice.chosen,
            synthetic=self._made.synthetics.known,
            made=self._made.synthetics.happened,
        )

    def _call_name(self, number: int) -> str | None:
        """The name of a system call; None for a number that is none's."""
        found = self._opened.arch.linux.syscalls.get(number)
        return None if found is None else event_name(found)

    def _filters(self, info: EventInfo) -> FilterMachine:
        """The names that filters may use."""
        names, kernel = self._opened.names, self._options.mode is Mode.KERNEL

        def function(name: str | int) -> tuple[int, int] | None:
            address = names.find(name) if isinstance(name, str) else name
            bounds = None if address is None else names.bounds(address)
            return None if bounds is None else bounds[1:]

        return FilterMachine(functions=function, kernel_pointers=kernel)

    # -- probes ---------------------------------------------------------------------------

    def place(self, request: ProbeRequest) -> None:
        """Define events and place their probes.

        Raises:
            ProbeError: a definition is not accepted.
            CommandError: there are too many events, or a FILE:LINE is not found.
        """
        lines = [line for line in request.definitions if selected(line) is None]
        for probe in self._names_of.probes(replace(request, definitions=tuple(lines))):
            self._arm(probe)
        for waiting in self._names_of.waiting:
            if waiting.event:
                self._info(waiting.group, waiting.event, waiting.layout)
        for one in self._names_of.programs.defined:
            layout = RecordLayout.of(one.args, one.is_return)
            self._programs.add(one, self._info(one.group, one.event, layout, symbolic=False))
        for each in self._own.of_lines(request.definitions):
            self._add_own(*each)
        trace = self._events, self._controls, self._context
        strict = self._options.mode is not Mode.KERNEL
        for line in self._names_of.made:
            self._made.define(line, *trace, strict=strict)

    def define(self, line: str) -> TracedLine:
        """Carry one more line out, while the machine stands.

        Raises:
            ProbeError: it is not accepted, with the kernel's own words.
            CommandError: there are too many events.
        """
        known = len(self.table)
        if selected(line) is not None:
            for each in self._own.of_lines([line]):
                self._add_own(*each)
            return self._traced(AddedProbes(), known)
        added = self._names_of.add(line)
        for name in added.gone:
            self._forget(*name)
        for probe in added.probes:
            self._arm(probe)
        for waiting in added.waiting:
            if waiting.event:
                self._info(waiting.group, waiting.event, waiting.layout)
        for one in added.programs:
            layout = RecordLayout.of(one.args, one.is_return)
            self._programs.add(one, self._info(one.group, one.event, layout, symbolic=False))
        strict = self._options.mode is not Mode.KERNEL
        for made in added.made:
            self._made.define(made, self._events, self._controls, self._context, strict=strict)
        if added.made and self._started:
            self._made.install(self._controls)
        self.place_late(added.waiting)
        return self._traced(added, known)

    def place_late(self, waiting: Sequence[WaitingProbe]) -> None:
        """Have probes told from now on that were placed while the machine stands.

        Args:
            waiting: those of modules, which may be loaded already.
        """
        if waiting and self._modules is not None:
            for module in self._modules.loaded.values():
                self._waiting.coming(module, waiting)
        if self._started:
            self._machine.cpu.forget_code()  # a place may have been translated without its hook

    def _traced(self, added: AddedProbes, known: int) -> TracedLine:
        fresh = tuple(info for number, info in self.table.items() if number > known)
        return TracedLine(added, fresh)

    @property
    def table(self) -> NumberedEvents:
        """All events by number."""
        return self._events.table

    @property
    def tasks(self) -> BootTasks:
        """The tasks that events were recorded in."""
        return self._tasks

    def histograms(self) -> Iterator[Sequence[bytes]]:
        """The lines of each histogram."""
        return iter(self._controls.tables())

    def armed_of(self, group: str, name: str) -> tuple[ArmedBootProbe, ...]:
        """The probes of the kernel that make an event, as far as they are placed."""
        return self._kernel.of(group, name)

    def counts(self, group: str, name: str) -> BootCounts:
        """The hits of an event's probes so far."""
        if self._kernel.of(group, name):
            return self._kernel.counts(group, name)
        for one, hits, missed in (*self._programs.profile(), *self._own_rows.profile()):
            if one == name:
                return BootCounts(hits, missed)
        return BootCounts()

    def enable(self, group: str, name: str, *, on: bool) -> None:
        """Let an event's probes record, or no longer; its place stays known.

        Raises:
            ProbeError: there is no such event.
        """
        info = self._events.info(group, name)
        self._kernel.enable(group, name, on=on)
        self._controls.of(info).off = not on
        self._changed(info)

    def remove(self, group: str, name: str) -> None:
        """Take an event and its probes out, while the machine stands.

        Raises:
            ProbeError: there is no such event.
        """
        info = self._events.info(group, name)
        gone: tuple[tuple[str, str], ...] = ((group, name),)
        if info not in self._own_rows.infos:
            gone = self._names_of.add(f"-:{group}/{name}").gone
        for each in gone:
            self._forget(*each)

    def _forget(self, group: str, name: str) -> None:
        """Take an event's probes out, and its name away: rows still say what they are."""
        self._kernel.remove(group, name)
        info = self.infos.get((group, name))
        if info is not None:
            self._controls.of(info).off = True
            self._changed(info)
            self._events.drop(info)

    def _has_own(self, group: str, name: str) -> bool:
        return (group, name) in self._own.known

    def _add_own(self, group: str, name: str) -> None:
        """Have an event of the kernel's own recorded."""
        if (group, name) in self.infos:
            return
        if is_from_kernel(group) and not self._enabled:
            raise ProbeError(
                f"{group}:{name}: the kernel makes this event itself once it is enabled, which is "
                "an effect of its own"
            )
        strings = self._options.mode is not Mode.KERNEL
        for info in self._events.add_each(
            lambda number: [self._own.info(number(), group, name, strings=strings)]
        ):
            self._own_rows.add(info)

    @property
    def remarks(self) -> tuple[Report, ...]:
        """Remarks about places that were left out."""
        return (*self._names_of.remarks, *self._names_of.programs.remarks())

    @property
    def places(self) -> int:
        """The number of places that are probed."""
        return self._kernel.places + self._programs.places + self._own_rows.places

    @property
    def hits(self) -> int:
        """The number of times that probes were hit, returns not counted."""
        return self._kernel.hits + self._programs.hits + self._own_rows.hits

    def listing(self) -> Iterator[str]:
        """The definitions as the kernel lists them, those of patterns with their places."""
        yield from self._names_of.listing().splitlines()
        yield from self._made.listing()
        for armed in self._kernel.armed:
            probe = armed.probe
            if not probe.line:
                letter = "r" if probe.is_return else "p"
                place = self.symbol(probe.address).partition("/")[0]
                yield f"{letter}:{probe.group}/{probe.event} {place}"
        yield from self._own_rows.listing()

    def _info(
        self, group: str, name: str, layout: RecordLayout, *, symbolic: bool = True
    ) -> EventInfo:
        """The description of an event, which is added where it is not there yet."""
        info = self.infos.get((group, name))
        if info is None:
            (info,) = self._events.add_each(
                lambda number: [EventInfo.of(number(), group, name, layout, symbolic=symbolic)]
            )
        return info

    def _arm(self, probe: BootProbe) -> None:
        self._kernel.add(probe, self._info(probe.group, probe.event, probe.layout))

    def _place_waiting(self, waiting: WaitingProbe, probe: BootProbe) -> None:
        """Place a probe of a module that the kernel has loaded, for the first time or again."""
        known = len(self.infos)
        info = self._info(probe.group, probe.event, probe.layout)
        self._kernel.add_of_module((id(waiting), probe.event), probe, info)
        if len(self.infos) > known:
            self._describe()

    def _changed(self, info: EventInfo) -> None:
        self._kernel.changed(info)
        if self._started:
            self._made.install(self._controls, info)
        self._programs.changed(info)
        if self._started:
            self._own_rows.changed(info)

    # -- for tracers of functions ---------------------------------------------------------

    def functions(self, globs: Sequence[str], option: str) -> Iterator[BootProbe]:
        """The functions that patterns match and that take a probe; see `BootProbes.functions`."""
        return self._names_of.functions(globs, option, is_return=False)

    @property
    def waiting(self) -> Sequence[WaitingProbe]:
        """Probes that wait for modules, in the order of their definition."""
        return self._names_of.waiting

    def add_event(self, make: Callable[[int], EventInfo]) -> EventInfo:
        """Add an event that no definition makes.

        Args:
            make: describes the event, given its number.

        Raises:
            CommandError: there are too many.
        """
        return self._events.add(make)

    @property
    def sink(self) -> RowSink:
        """Takes the rows."""
        return self._staging

    def now(self) -> int:
        """The machine's time, in nanoseconds."""
        return self._machine.clock.now

    def task(self) -> int:
        """The address of the task that runs; 0 where that is not known."""
        return self._reader.address()

    def running(self) -> int:
        """The id of the task that runs, whose name is known from here on."""
        return self._tasks.running()

    def is_chosen(self, pid: int) -> bool:
        """True for a task whose events are recorded."""
        return self._choice.chosen is None or self._choice.chosen(pid)

    def of_chosen(self, record: Callable[[int], None]) -> None:
        """Record a hit of the task that runs, if its events are recorded."""
        pid = self.running()
        if self.is_chosen(pid):
            record(pid)

    def frame(self) -> tuple[int, int]:
        """The stack pointer and the return address at the entry of a function.

        Raises:
            GuestFaultError: there is no stack.
        """
        (sp,) = self._stack()
        return sp, self._word(sp)[0]

    def result(self) -> int:
        """The value that a function has returned."""
        return self._result()[0]

    # -- filters and triggers -------------------------------------------------------------

    def set_filter(self, group: str, name: str, text: str) -> str:
        """Give an event a filter; in kernel mode a bad one lets everything pass.

        Returns:
            What was refused, "" if nothing was.

        Raises:
            ProbeError: there is no such event, or the filter is not accepted.
        """
        lenient = self._options.mode is Mode.KERNEL
        return self._controls.set_filter(self._events.info(group, name), text, lenient=lenient)

    def add_trigger(self, group: str, name: str, text: str) -> str:
        """Give an event a trigger, or with `!` in front take one away.

        Returns:
            What was refused in kernel mode, where the event goes on without it; else "".

        Raises:
            ProbeError: there is no such event, or the trigger is not accepted.
        """
        try:
            self._controls.add_trigger(self._events.info(group, name), text)
        except ProbeError as error:
            if self._options.mode is not Mode.KERNEL:
                raise
            return str(error)
        return ""

    # -- output ---------------------------------------------------------------------------

    def names(self) -> Names:
        """The names of addresses and ids in its rows."""
        tasks = self._tasks
        return Names(
            self.symbol,
            with_idle(tasks.comms.get),
            lambda address: self._kernel.is_followed(address),
            self._exact,
            lambda thread: tasks.pids.get(thread, thread),
            arch=self._opened.arch.name,
        )

    def symbol(self, address: int) -> str:
        """An address as the kernel's `%pS` prints it."""
        found = self._opened.names.bounds(address)
        module = ""
        if found is None:
            of_module = self._modules.at(address) if self._modules is not None else None
            if of_module is None:
                return f"{address:#x}"
            module, function = f" [{of_module[0].name}]", of_module[1]
            found = function.name, function.start, function.end
        name, start, end = found
        return f"{name}+{address - start:#x}/{end - start:#x}{module}"

    def _who(self) -> dict[str, Any]:
        tasks = self._tasks
        return {
            "comms": {
                pid: comm.decode(errors="surrogateescape") for pid, comm in tasks.comms.items()
            },
            "pids": {pid: tgid for pid, tgid in tasks.pids.items() if pid != tgid},
            "modules": [],
            "programs": ProgramTimes().state(),
        }

    def start(self) -> None:
        """Before the machine runs: recorders are made, the header is out.

        Raises:
            CommandError: the output cannot be written.
        """
        self._outputs.create()
        self._output.begin()
        self._started = True
        if self._controls.wants_stacks:
            self._stack_rows.info = self._events.add(
                lambda number: stack_event(number, kernel=True)
            )
        self._kernel.start()
        self._made.install(self._controls)
        self._own_rows.start()
        self._describe()
        if self._ring is None:
            self._output.header()

    def _describe(self) -> None:
        """Tell whoever finds the rows after a kill what they mean."""
        ring_file = self._output.ring_file
        if ring_file is not None:
            places = {armed.probe.address for armed in self._kernel.armed}
            ring_file.describe(
                describe(
                    self._events.table.values(),
                    self._opened.arch.name,
                    {
                        "format": self._output.format.name,
                        "options": list(self._options.text),
                        "exact": self._exact,
                    },
                    ((place, self.symbol(place)) for place in places),
                    filter(self._kernel.is_followed, places),
                )
            )

    def drain(self) -> None:
        """Write what was recorded so far."""
        self._staging.drain()

    @property
    def is_streamed(self) -> bool:
        """True if the output is no file of its own: what is recorded is to come out soon."""
        return self._output.is_stream

    def _consume(self, rows: bytes) -> None:
        if self._take is not None:
            self._take(rows)
        elif self._ring is not None:
            self._ring.append(rows)
        else:
            self._output.rows(rows)

    def _snapshot(self) -> None:
        self._staging.drain()
        assert self._ring is not None, "there is no trigger without"
        self._tail.keep(self._ring)

    def discard(self) -> None:
        """Close an output that no boot has begun to write."""
        if not self._started:
            self._staging.close()
            self._output.close()

    def finish(self) -> list[Report]:
        """After the run: everything out, and what is to be said about it."""
        self._staging.close()
        output = self._output
        if self._ring is not None:
            output.ring(self._ring)
        output.end()
        output.tail(self._ends())
        output.close()
        failure = self._staging.failure or output.failure
        self.incomplete = failure is not None
        said: list[Report] = []
        lost = self._staging.lost + output.lost
        if failure is not None:
            missing = f"{lost} events lost" if lost else "the trace is not whole"
            where = self._options.output or "the output"
            said.append(Report((f"{where}: {failure.strerror}; {missing}",)))
        if self._breakpoints is not None and self._breakpoints.unreached:
            places = map(self.symbol, self._breakpoints.unreached)
            said.append(some_lines("taken out, as no slot is within reach:", places))
        missed = [*self._kernel.missed(), *self._programs.missed()]
        if missed:
            said.append(some_lines("missed hits:", missed))
        waited = (*self._waiting.remarks(), *self._programs.remarks())
        return [*waited, *said, *self._choice.remarks()]

    def _ends(self) -> Iterator[bytes]:
        """The snapshot, histograms and the profile."""
        yield self._tail.snapshot() if self._output.format.is_text else b""
        for table in self._controls.histograms():
            yield table + b"\n"
        if self._options.profile:
            yield b"\n# profile\n"
            yield from starmap(_profiled, self._kernel.profile())
            yield from starmap(_profiled, self._programs.profile())
            yield from starmap(_profiled, self._own_rows.profile())


def _profiled(name: str, hits: int, missed: int) -> bytes:
    """A line of the profile."""
    return f"  {name:<44} {hits:>15} {missed:>15}\n".encode()

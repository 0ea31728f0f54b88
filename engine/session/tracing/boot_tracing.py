"""The trace of a booted kernel: its probes' hits as rows, written as any trace is."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import starmap
from typing import Any, BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.arch.program import RecordLayout
from engine.errors import ProbeError
from engine.fetch.evaluate import (
    FetchContext,
    FetchSite,
    Recorder,
    RowSink,
    capturer,
    recorder,
)
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import TaskReader, task_members
from engine.machine.kernelmodules import KernelModules, LoadedModule, module_members
from engine.machine.machine import BareMachine
from engine.machine.probing import WORD, MachineProbes, ReturnProbe
from engine.probes.machine_breakpoints import MachineBreakpoints, breakpoints_of
from engine.session.guest.outputs import OutputFile, OutputFiles, OutputTree
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.report import Report
from engine.session.protocol.requests import ProbeRequest, TraceOptions
from engine.session.tracing.armed import ControlHooks
from engine.session.tracing.boot_files import BootFiles
from engine.session.tracing.boot_memory import BootCpu, KernelStrings
from engine.session.tracing.boot_modules import BootModules
from engine.session.tracing.boot_probes import BootProbe, BootProbes, WaitingProbe
from engine.session.tracing.boot_programs import BootPrograms
from engine.session.tracing.boot_stacks import BootStacks
from engine.session.tracing.boot_tasks import BootTasks
from engine.session.tracing.event_set import EventLimit, EventSet
from engine.session.tracing.machine_programs import MachinePrograms
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

TRAMPOLINES: Final = ("arch_rethook_trampoline", "__kretprobe_trampoline", "return_to_handler")
"""Places that Linux writes over return addresses; the last one is the graph tracer's."""


class _ArmedProbe(Struct, eq=False):
    """A probe and what it counts."""

    probe: BootProbe
    info: EventInfo
    record: Recorder
    entry: Callable[[], None] | None = None
    returning: ReturnProbe | None = None
    hits: int = 0


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

        Raises:
            CommandError: the output cannot be written, or nothing can be planted here.
        """
        self.incomplete = False
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
        self._of_modules: dict[tuple[int, str], _ArmedProbe] = {}
        self.placing: Callable[[WaitingProbe, BootProbe], None] = self._place_waiting
        self.taking_out: Callable[[LoadedModule], None] = self._take_out
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
        self._armed: list[_ArmedProbe] = []
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
        machine_programs = MachinePrograms(
            *(opened, machine, addresses, reader, files), as_linux=as_linux
        )
        self._stacks = BootStacks(opened, cpu, addresses, self._modules, reader.address)
        self._stack_rows = StackRecorder(
            self._stacks, opened.arch.roles.pc, self._context, self._stacks
        )
        self._controls = EventControls(self.infos, self._context, self._hooks(), self._filters)
        self._controls.stacks = options.stack or form.wants_stacks
        self._controls.stacks |= not {"stacktrace", "userstacktrace"}.isdisjoint(options.text)
        self._programs = BootPrograms(
            *(machine, machine_programs, self.probes, self._context, self._controls),
            *(self._tasks.running, addresses),
        )
        self._started = False

    def _hooks(self) -> ControlHooks:
        return ControlHooks(
            stack=self._stack_rows.record,
            stack_now=lambda: self._stack_rows.frames(self._controls.place),
            snapshot=None if self._ring is None else self._snapshot,
            symbol=self.symbol,
            comm=self._tasks.comms.get,
            syscall=lambda number: None,
            read_cstring=self._addresses.read_cstring,
            here=lambda: 0,
            changed=self._changed,
            exact=self._exact,
            chosen=self._choice.chosen,
        )

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
        for probe in self._names_of.probes(request):
            self._arm(probe)
        for waiting in self._names_of.waiting:
            if waiting.event:
                self._info(waiting.group, waiting.event, waiting.layout)
        for one in self._names_of.programs.defined:
            layout = RecordLayout.of(one.args, one.is_return)
            self._programs.add(one, self._info(one.group, one.event, layout, symbolic=False))

    @property
    def remarks(self) -> tuple[Report, ...]:
        """Remarks about places that were left out."""
        return (*self._names_of.remarks, *self._names_of.programs.remarks())

    @property
    def places(self) -> int:
        """The number of places that are probed."""
        return len({armed.probe.address for armed in self._armed}) + self._programs.places

    @property
    def hits(self) -> int:
        """The number of times that probes were hit, returns not counted."""
        counts = (one.hits if one.returning is None else one.returning.hits for one in self._armed)
        return sum(counts) + self._programs.hits

    def listing(self) -> Iterator[str]:
        """The definitions as the kernel lists them, those of patterns with their places."""
        yield from self._names_of.listing().splitlines()
        for armed in self._armed:
            probe = armed.probe
            if not probe.line:
                letter = "r" if probe.is_return else "p"
                place = self.symbol(probe.address).partition("/")[0]
                yield f"{letter}:{probe.group}/{probe.event} {place}"

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
        armed = _ArmedProbe(probe, self._info(probe.group, probe.event, probe.layout), _unrecorded)
        self._armed.append(armed)
        self._place(armed)

    def _place(self, armed: _ArmedProbe) -> None:
        """Have a probe hit where it stands."""
        probe = armed.probe
        if not probe.is_return:
            armed.entry = lambda: self._hit(armed)
        else:
            capture = capturer(probe.layout, self._site(probe), self._context)
            if armed.returning is None:
                as_linux = self._names_of.instances if self._options.mode is Mode.KERNEL else 0
                limit = probe.maxactive or as_linux or None
                armed.returning = ReturnProbe(capture, partial(self._returned, armed), limit)
            armed.returning.capture = capture
            armed.entry = self.probes.entry_of(armed.returning)
        if self._breakpoints is not None:
            self._breakpoints.add(probe.address, armed.entry)
        else:
            self.probes.add(probe.place, armed.entry, begins=probe.begins is not None)

    def _place_waiting(self, waiting: WaitingProbe, probe: BootProbe) -> None:
        """Place a probe of a module that the kernel has loaded, for the first time or again."""
        key = id(waiting), probe.event
        armed = self._of_modules.get(key)
        if armed is None:
            known = len(self.infos)
            info = self._info(probe.group, probe.event, probe.layout)
            armed = self._of_modules[key] = _ArmedProbe(probe, info, _unrecorded)
            self._armed.append(armed)
            if len(self.infos) > known:
                self._describe()
        armed.probe = probe
        self._place(armed)
        self._compile(armed)

    def _take_out(self, module: LoadedModule) -> None:
        """Take the probes of a module out whose memory goes."""
        for armed in self._of_modules.values():
            if armed.entry is not None and module.at(armed.probe.address) is not None:
                probe = armed.probe
                if self._breakpoints is not None:
                    self._breakpoints.remove(probe.address, armed.entry)
                else:
                    begins = probe.begins is not None
                    self.probes.remove(probe.place, armed.entry, begins=begins)
                armed.entry = None

    def _site(self, probe: BootProbe) -> FetchSite:
        return FetchSite(probe.address)

    def _hit(self, armed: _ArmedProbe) -> None:
        armed.hits += 1
        armed.record(self._tasks.running())

    def _returned(self, armed: _ArmedProbe, ret_addr: int, *entry: Any) -> None:
        armed.record(self._tasks.running(), ret_addr, *entry)

    def _compile(self, armed: _ArmedProbe) -> None:
        """Make the recorder of a probe, with the filter and the triggers that its event has."""
        probe = armed.probe
        pc = probe.address
        if self._options.mode is Mode.KERNEL and not probe.is_return:
            pc += len(self._opened.arch.breakpoint)  # what Linux leaves behind its int3
        seen = BootCpu(self._machine, pc)

        def make(context: FetchContext) -> Recorder:
            return recorder(
                armed.info.id, probe.layout, self._site(probe), replace(context, cpu=seen)
            )

        armed.record = self._controls.recorder(armed.info, make, probe.address)

    def _changed(self, info: EventInfo) -> None:
        for armed in self._armed if self._started else ():
            if armed.info is info:
                self._compile(armed)
        self._programs.changed(info)

    # -- for tracers of functions ---------------------------------------------------------

    def functions(self, globs: Sequence[str], option: str) -> Iterator[BootProbe]:
        """The functions that patterns match and that take a probe; see `BootProbes.functions`."""
        return self._names_of.functions(globs, option, is_return=False)

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
            self._returning,
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

    def _returning(self, address: int) -> bool:
        return any(one.probe.is_return and one.probe.address == address for one in self._armed)

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
        for armed in self._armed:
            self._compile(armed)
        self._describe()
        if self._ring is None:
            self._output.header()

    def _describe(self) -> None:
        """Tell whoever finds the rows after a kill what they mean."""
        ring_file = self._output.ring_file
        if ring_file is not None:
            places = {armed.probe.address for armed in self._armed}
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
                    filter(self._returning, places),
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
        if self._ring is not None:
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
        missed = [
            f"{one.info}: {one.returning.missed} of {one.returning.hits} calls missed"
            for one in self._armed
            if one.returning is not None and one.returning.missed
        ]
        missed += self._programs.missed()
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
            for one in self._armed:
                hits, missed = one.hits, 0
                if one.returning is not None:
                    missed = one.returning.missed
                    hits = one.returning.hits - missed
                yield _profiled(one.info.name, hits, missed)
            yield from starmap(_profiled, self._programs.profile())


def _profiled(name: str, hits: int, missed: int) -> bytes:
    """A line of the profile."""
    return f"  {name:<44} {hits:>15} {missed:>15}\n".encode()


def _unrecorded(*hit: object) -> None:
    """A probe that is hit before the trace begins is not recorded."""

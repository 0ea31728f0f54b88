"""A script attached to a booted kernel: checked, compiled, placed, and its beginning and end."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from engine.errors import ProbeError
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import TaskReader, task_members
from engine.machine.kernelmodules import KernelModules, LoadedModule, module_members
from engine.machine.machine import BareMachine
from engine.machine.probing import MachineProbes, ReturnProbe
from engine.machine.programs import ProgramPlace, ProgramReturn
from engine.session.booted.event_hits import COMMIT, ENTERED, LEFT, EventHits
from engine.session.booted.files import BootFiles
from engine.session.booted.kernel_events import RAW, enabling_words
from engine.session.booted.modules import BootModules
from engine.session.booted.probes import BootProbe, BootProbes, WaitingProbe
from engine.session.booted.programs import MachinePrograms
from engine.session.booted.script.hits import HitReader
from engine.session.booted.script.kernel_points import (
    CODE,
    RETURNS,
    TIMERS,
    KernelPoint,
    KernelPoints,
)
from engine.session.booted.script.kernel_run import KernelRun
from engine.session.booted.script.kernel_types import KernelTypes
from engine.session.booted.stacks import BootStacks
from engine.session.booted.tracing import TRAMPOLINES
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.report import Report
from engine.session.protocol.scripts import BootScriptRequest
from engine.session.tracing.output import some_lines
from engine.session.tracing.script.output import ScriptSink
from engine.session.tracing.script.places import period
from engine.trace import syscalls
from engine.trace.bpftrace.attach_points import has_glob
from engine.trace.bpftrace.captures import Action
from engine.trace.bpftrace.checked import CheckedScript
from engine.trace.bpftrace.checking import check
from engine.trace.bpftrace.compiling import CompiledProbe, compile_script
from engine.trace.bpftrace.json_lines import JsonOutput
from engine.trace.bpftrace.output import ScriptOutput
from engine.trace.bpftrace.printing import TextOutput
from engine.trace.bpftrace.state import ScriptState
from engine.trace.bpftrace.text import ScriptRemark, ScriptText, Span, WrongScriptError
from engine.trace.bpftrace.tree import AttachPoint, Script, ScriptNode

_TRACED: Final = frozenset({"kprobe", "kretprobe"})
_NOT_TRACEABLE: Final = (
    'is not traceable (either non-existing, inlined, or marked as "notrace"); attaching to it '
    "will likely fail"
)
"""Words of bpftrace for a function that is not among those that the kernel traces."""


class CheckedBoot:
    """A script that was checked for a kernel, before a machine is made for it.

    Attributes:
        opened: the kernel.
        points: finds places in it.
        types: of it.
        checked: the script.
    """

    def __init__(
        self,
        opened: OpenedKernel,
        request: BootScriptRequest,
        text: ScriptText,
        tree: Script,
        files: BootFiles | None = None,
    ) -> None:
        """Check a script.

        Args:
            opened: the kernel.
            request: what is wanted.
            text: of the script.
            tree: of it.
            files: of the system, as far as they are known.

        Raises:
            WrongScriptError: it is wrong, or asks for what a booted kernel does not have.
        """
        self.opened, self.tree = opened, tree
        self.text = text
        self.files = files or BootFiles()
        self.points = KernelPoints(opened, self.files)
        self.types = KernelTypes(opened, self.points)
        self.checked: CheckedScript = check(
            tree, self.text, self.types, request.parameters, request.environment
        )

    def error(self, text: str, node: ScriptNode, hint: str = "") -> WrongScriptError:
        """An error at a place of the script."""
        return WrongScriptError(ScriptRemark("ERROR", text, node.span, self.text, hint))

    def words(self, given: str = "") -> str:
        """The words of the kernel's command line, with what enables the script's tracepoints.

        Args:
            given: those of the user, whose own events stay enabled.

        Raises:
            WrongScriptError: there are too many.
        """
        wanted: list[tuple[str, str]] = []
        last: AttachPoint | None = None
        for probe in self.checked.probes:
            for point in probe.points:
                group = point.target if point.provider == "tracepoint" else ""
                raw = point.provider == "rawtracepoint"
                if not (raw or group) or group in (syscalls.GROUP, RAW):
                    continue
                for each in self._named(point):
                    wanted.append(each)
                    last = point
        events = self.points.events
        try:
            return enabling_words(wanted, given, lambda: events.groups)
        except ProbeError as error:
            assert last is not None, "there are events"
            text = str(error).replace("events", "tracepoints", 1)
            raise self.error(text, last) from error

    def _named(self, point: AttachPoint) -> Iterator[tuple[str, str]]:
        if self.types.problem(point):
            return
        for one in self.points.expanded(point):
            yield self.points.event(one)


def _hit_at(hit: Callable[[tuple[int, ...]], None], address: int) -> None:
    """A place in a program is hit."""
    hit((address,))


def _followed_by(
    entry: Callable[[], tuple[int, ...]] | None, hit: Callable[[tuple[int, ...]], None]
) -> ProgramReturn:
    """A return probe that runs an action."""

    def returned(function: int, leads_to: int, data: tuple[int, ...] = ()) -> None:
        hit((function, *data))

    return ProgramReturn(None if entry is None else lambda address: entry(), returned)


class _Timer(Struct):
    """An action that runs at intervals."""

    period: int
    due: int
    action: Action


class AttachedBootScript:
    """A script on a machine that has not run.

    Attributes:
        incomplete: its output could not be written whole; known at the end.
    """

    def __init__(
        self,
        script: CheckedBoot,
        machine: BareMachine,
        sink: ScriptSink,
        request: BootScriptRequest,
        began: int,
    ) -> None:
        """Compile a script, and place its probes.

        Args:
            script: that was checked for the machine's kernel.
            machine: with the kernel of the script in it.
            sink: takes what is printed.
            request: what is wanted.
            began: nanoseconds since 1970 at power-on.

        Raises:
            WrongScriptError: something that it names is not there.
        """
        opened, cpu = script.opened, machine.cpu
        self.incomplete = False
        self._script, self._machine, self._sink, self._request = script, machine, sink, request
        addresses = self._addresses = KernelAddresses(cpu)
        reader = TaskReader(cpu, addresses, task_members(opened.image))
        find = opened.names.find
        trampolines = frozenset(at for at in map(find, TRAMPOLINES) if at is not None)
        self._probes = MachineProbes(cpu, addresses, reader.address, trampolines)
        self._judged = BootProbes(opened, script.files)
        self._programs = MachinePrograms(opened, machine, addresses, reader, script.files)
        self._waiting = BootModules(
            *(opened.arch, addresses, self._judged.waiting), self._comes, self._goes
        )
        run = self.run = KernelRun(opened, machine, addresses, reader, began, request.seed)
        members = module_members(opened.image)
        if members is not None:
            run.modules = KernelModules(self._probes, cpu, addresses, members)
            run.modules.follow(self._waiting.coming, self._waiting.going)
        run.stacks = BootStacks(opened, cpu, addresses, run.modules, reader.address)
        run.printed = sink.flush
        run.programs = self._programs
        run.find_symbol = script.points.programs.symbol
        self._hits = HitReader(machine, script.types, run.memory_readers)
        self._events = EventHits(opened, cpu, addresses, self._probes, reader.address)
        names = run.names()
        self._output: ScriptOutput
        if request.format == "json":
            self._output = JsonOutput(sink.write, names)
        else:
            self._output = TextOutput(sink.write, sink.write_error, names)
        self._state = ScriptState(script.checked, script.text, self._output, names)
        self._begins: list[Action] = []
        self._ends: list[Action] = []
        self._timers: list[_Timer] = []
        self._records: dict[int, list[Action]] = {}
        self._raw: dict[tuple[int, int], list[Action]] = {}
        self._entered: dict[int | None, list[Action]] = {}
        self._left: dict[int | None, list[Action]] = {}
        self._of_modules: dict[int, tuple[CompiledProbe, KernelPoint]] = {}
        self._in_files: list[tuple[str, ProgramPlace]] = []
        self._in_modules: list[tuple[BootProbe, Callable[[], None]]] = []
        self._skipped: list[str] = []
        self._wrong: list[ScriptRemark] = []
        self._found: set[Span] = set()
        """Probes of the text that have a place."""
        self._began, self._count = False, 0
        self._warn(script.checked.warnings)
        self._look_for_missing(script.tree)
        for probe in compile_script(script.checked, script.text, self._state):
            for point in probe.probe.points:
                before = self._count
                self._attach(probe, point)
                self._found |= {probe.probe.span} if self._count > before else set()
        self._look_for_empty(script.tree)
        if self._wrong:
            raise WrongScriptError(*self._wrong)
        if not self._count:
            where = script.tree.probes[0] if script.tree.probes else script.tree
            raise script.error("No probes to attach", where)
        self._follow_events()

    # -- placing --------------------------------------------------------------------------

    def _warn(self, remarks: Sequence[ScriptRemark]) -> None:
        for remark in remarks:
            lines = "".join(f"{line}\n" for line in remark.lines())
            self._sink.write_error(lines.encode(errors="surrogateescape"))

    def _attach(self, probe: CompiledProbe, point: AttachPoint) -> None:
        provider = point.provider
        if provider in ("begin", "end", *TIMERS):
            action = probe.make(self._hits.nowhere(point), self.run)
            self._count += 1
            if provider == "begin":
                self._begins.append(action)
            elif provider == "end":
                self._ends.append(action)
            else:
                every = period(point)
                self._timers.append(_Timer(every, every, action))
            return
        several = self._script.points.expanded(point)
        for one in several:
            try:
                self._place(probe, self._script.points.resolved(one, self._judged))
            except ProbeError as error:
                why = str(error).splitlines()[-1].strip()  # behind the kernel's own words
                why = why if why.startswith(one.text) else f"{one.text}: {why}"
                if len(several) == 1 and self._is_strict and not has_glob(one.written):
                    raise self._script.error(why, point) from error
                self._skipped.append(why)
            else:
                self._count += 1

    @property
    def _is_strict(self) -> bool:
        return self._script.checked.config.missing_probes == "error"

    def _look_for_missing(self, tree: Script) -> None:
        """Remark upon places of the text that are nowhere."""
        for point in (point for probe in tree.probes for point in probe.points):
            problem = self._script.types.problem(point)
            if problem:
                self._missing(problem, point)

    def _missing(self, problem: str, point: AttachPoint) -> None:
        if has_glob(point.function) and point.provider in CODE:
            return  # as in bpftrace, if other places of the probe are there
        text, told = self._script.text, self._script.checked.config.missing_probes
        hint = ""
        if point.provider in CODE and not point.target:
            hint = f"{point.provider}:MODULE:FUNCTION waits for a module."
        if point.provider in _TRACED and told != "ignore":
            said = f"{point.function} {_NOT_TRACEABLE}"
            self._warn([ScriptRemark("WARNING", said, point.span, text)])
        if self._is_strict:
            self._wrong.append(ScriptRemark("ERROR", f"{problem}.", point.span, text, hint))
        elif told == "warn":
            said = f"{problem}. Skipping."
            self._warn([ScriptRemark("WARNING", said, point.span, text, hint)])

    def _look_for_empty(self, tree: Script) -> None:
        """Remark upon probes of the text that have no place at all."""
        text, told = self._script.text, self._script.checked.config.missing_probes
        for probe in tree.probes:
            if probe.span in self._found:
                continue
            said, span = "Probe has no valid attach points.", probe.points[0].span
            if self._is_strict:
                said += " If this is expected, set the 'missing_probes' config variable to 'warn'."
                self._wrong.append(ScriptRemark("ERROR", said, span, text))
            elif told == "warn":
                said += " It is being removed which may cause issues with program behavior."
                self._warn([ScriptRemark("WARNING", said, span, text)])

    def _place(self, probe: CompiledProbe, place: KernelPoint) -> None:
        """Place a probe.

        Raises:
            ProbeError: something that its action asks for cannot be had there.
        """
        point = place.point
        if place.probe is not None:
            self._in_code(probe, place, place.probe)
        elif place.sites:
            self._in_programs(probe, place)
        elif place.waiting is not None:
            self._hits.in_code(place, 0, probe.captures)  # what cannot be had is told now
            self._of_modules[id(place.waiting)] = probe, place
            self._judged.waiting.append(place.waiting)
        elif point.provider == "rawtracepoint":
            self._raw_event(probe, place)
        elif point.target in (syscalls.GROUP, RAW):
            self._call(probe, place)
        else:
            self._record(probe, place)

    def _in_code(self, probe: CompiledProbe, place: KernelPoint, found: BootProbe) -> None:
        self._add(found, self._entry(probe, place, found))

    def _add(self, found: BootProbe, entry: Callable[[], None]) -> None:
        """Place the call of an action: those of one place run in the order of the text.

        The probes of returns are asked in the order opposite to that of their entries.
        """
        begins = found.begins is not None
        self._probes.add(found.place, entry, begins=begins, last=not found.is_return)

    def _entry(
        self, probe: CompiledProbe, place: KernelPoint, found: BootProbe
    ) -> Callable[[], None]:
        """The function that is called at a place in code."""
        hits = self._hits.in_code(place, found.address, probe.captures)
        actions, hit = (probe.make(hits.reads, self.run),), self.run.hit
        if not found.is_return:
            return lambda: hit(actions)

        def returned(leads_to: int, data: tuple[int, ...] = ()) -> None:
            hit(actions, data)

        return self._probes.entry_of(ReturnProbe(hits.entry, returned))

    def _in_programs(self, probe: CompiledProbe, place: KernelPoint) -> None:
        """Place a probe in programs, whose action is given the address of each hit."""
        hit = self.run.hit
        self._programs.name_all()
        for site in place.sites:
            hits = self._hits.in_program(place, site, probe.captures)
            actions = (probe.make(hits.reads, self.run),)
            made = ProgramPlace(site.path, site.offset)
            if place.point.provider in RETURNS:
                made.returning = _followed_by(hits.entry, partial(hit, actions))
            else:
                made.hit = partial(_hit_at, partial(hit, actions))
            self._programs.add(made, self._probes, place.point.text)
            self._in_files.append((place.point.text, made))

    # -- modules --------------------------------------------------------------------------

    def _comes(self, waiting: WaitingProbe, found: BootProbe) -> None:
        probe, place = self._of_modules[id(waiting)]
        entry = self._entry(probe, place, found)
        self._add(found, entry)
        self._in_modules.append((found, entry))

    def _goes(self, module: LoadedModule) -> None:
        gone = [each for each in self._in_modules if module.at(each[0].address) is not None]
        for each in gone:
            found, entry = each
            self._in_modules.remove(each)
            self._probes.remove(found.place, entry, begins=found.begins is not None)

    # -- the kernel's events --------------------------------------------------------------

    def _record(self, probe: CompiledProbe, place: KernelPoint) -> None:
        """A tracepoint: its action runs where the kernel has filled the event's record."""
        fields = self._script.points.events.fields
        call = fields.events[place.point.target, place.point.function]
        address = self._events.needed(COMMIT)
        hits = self._hits.of_record(place, address, probe.captures, fields.fields(call))
        action = probe.make(hits.reads, self.run)
        self._records.setdefault(call.address, []).append(action)

    def _raw_event(self, probe: CompiledProbe, place: KernelPoint) -> None:
        """One of those with the tracepoint's own arguments: where its record is begun."""
        points = self._script.points
        call = points.events.fields.events[points.event(place.point)]
        recorder = points.events.fields.recorder(call)
        if not recorder:
            raise ProbeError(f"{place.point.text}: the kernel does not tell what records it")
        hits = self._hits.of_raw(place, recorder, probe.captures)
        action = probe.make(hits.reads, self.run)
        self._raw.setdefault((recorder, call.address), []).append(action)

    def _follow_events(self) -> None:
        """Have the kernel's own events run actions."""
        hit = self.run.hit
        for call, actions in self._records.items():
            self._events.record(call, partial(hit, actions, told=True))
        for (recorder, call), actions in self._raw.items():
            self._events.begun(recorder, call, partial(hit, actions, told=True))
        for number, actions in self._entered.items():
            self._events.enters(number, partial(hit, actions))
        for number, actions in self._left.items():
            self._events.leaves(number, partial(hit, actions))
        try:
            self._events.follow()
        except ProbeError as error:
            raise self._script.error(str(error), self._script.tree) from error

    # -- system calls ---------------------------------------------------------------------

    def _call(self, probe: CompiledProbe, place: KernelPoint) -> None:
        """A system call that begins or ends: where the kernel's own code takes and leaves it."""
        point, fields = place.point, self._script.points.events.fields
        raw = point.target == RAW
        enters = point.function.startswith("sys_enter")
        number: int | None = None
        if not raw:
            name = point.function.removeprefix(syscalls.ENTER if enters else syscalls.EXIT)
            numbers = self._script.opened.arch.linux.syscalls.items()
            number = next((at for at, one in numbers if syscalls.event_name(one) == name), None)
            if number is None:
                raise ProbeError(f"{point.text}: no call of that name is known here")
        if enters:
            event = fields.events[point.target, point.function]
            names = [name for _, name in fields.arguments(event)] if not raw else []
            address = self._events.needed(ENTERED)
            hits = self._hits.of_enter(place, address, probe.captures, names, raw=raw)
        else:
            hits = self._hits.of_exit(place, self._events.needed(LEFT), probe.captures)
        action = probe.make(hits.reads, self.run)
        (self._entered if enters else self._left).setdefault(number, []).append(action)

    # -- the run --------------------------------------------------------------------------

    def begin(self) -> None:
        """The machine is about to run: what the script does before it.

        Raises:
            CommandError: a file cannot be created.
        """
        self._sink.begin()
        self._began = True
        self.run.started = self._machine.clock.now
        if not self._request.quiet:
            self._output.attached(self._count)
        self.run.hit(self._begins)
        self._sink.flush()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timers and not self.run.over:
            due = min(each.due for each in self._timers)
            self._machine.look_at(due, self._looks, self)

    def _looks(self) -> None:
        now = self._machine.clock.now
        for timer in self._timers:
            while timer.due <= now and not self.run.over:
                timer.due += timer.period
                self.run.look((timer.action,))
        self._set_timer()

    def maps(self) -> bytes:
        """The text of all maps that have entries."""
        parts: list[bytes] = []
        output = TextOutput(parts.append, parts.append, self.run.names())
        for each in sorted(self._state.maps.values(), key=lambda one: one.name):
            if each.entries:
                output.map(each)
        return b"".join(parts)

    def finish(self) -> None:
        """The machine has ended: the script's own end, and its maps."""
        if not self._began:
            return
        over, self.run.over = self.run.over, False
        self.run.look(self._ends)
        self.run.over = over or self.run.over
        if self._script.checked.config.print_maps_on_exit:
            self._state.print_maps()
        self._sink.flush()
        self.incomplete = self._sink.failure is not None

    def remarks(self) -> list[Report]:
        """Remarks about the run."""
        found = list(self._waiting.remarks())
        absent = (
            [told for told, place in self._in_files if not place.mapped] if self._began else ()
        )
        if absent:
            found.append(some_lines("no program had their code in its memory:", absent))
        if self._sink.failure is not None:
            found.append(Report((f"-o {self._request.output}: {self._sink.failure.strerror}",)))
        if self._skipped:
            found.append(some_lines("no probe stands at:", self._skipped))
        return found

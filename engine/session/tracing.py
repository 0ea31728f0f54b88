"""A trace: definitions turned into events, recorded as rows, written as text."""

import gc
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from engine.arch.jump import Recording
from engine.arch.plan import Mode, Rules
from engine.arch.program import RecordLayout
from engine.errors import CommandError, ProbeError, ProbeRejectedError
from engine.fetch.evaluate import FetchContext, Recorder, Site, capturer, recorder
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Kretprobe, Uretprobe
from engine.session.backtrace import Backtraces
from engine.session.output import TraceOutput
from engine.session.places import Place, PlaceError
from engine.session.placing import RETURN_ENTRY, Placed
from engine.session.probing import Probing, Ready, Wanted
from engine.session.report import Report
from engine.session.session import Session
from engine.session.stacks import StackRecorder
from engine.session.syscalls import SyscallEvents
from engine.session.tail import Tail, profile_lines
from engine.session.triggers import ControlHooks, EventControls
from engine.trace.definition import Definition, Deletion, compatible, matches, parse
from engine.trace.filter import FilterMachine
from engine.trace.formats import FORMATS
from engine.trace.formats.base import Format, Names
from engine.trace.place import FileOffset
from engine.trace.ring import Ring
from engine.trace.rows import EventInfo, EventSource, EventTable
from engine.trace.staging import Consumer, Staging, describe
from engine.trace.syscalls import selection

_SHOWN: Final = 10
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9_]")
_EVENTS_MAX: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How a trace is kept and shown.

    Attributes:
        format: name of the output format.
        output: file to write to, None for `stream`.
        buffer: keep so many events and print them at the end; None = stream all.
        overwrite: keep the last ones rather than the first.
        mode: strictness of placement.
        stack: record the call stack behind each event.
        profile: print hits and misses at the end.
        text: trace options of the text format, as in tracefs.
    """

    format: str = "ftrace"
    output: str | None = None
    buffer: int | None = None
    overwrite: bool = False
    mode: Mode = Mode.STRICT
    stack: bool = False
    profile: bool = False
    text: tuple[str, ...] = ()


@dataclass(slots=True)
class TraceEvent:
    """An event and its probes.

    Attributes:
        info: what its rows are.
        defined: the lines that make it, siblings included.
        probes: one for each place of them, or of a pattern.
    """

    info: EventInfo
    defined: list["Defined"] = field(default_factory=list)
    probes: list[Kprobe] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Defined:
    """A definition that was carried out.

    Attributes:
        definition: it.
        placed: its places and the verdicts on them.
        probes: one for each place.
    """

    definition: Definition
    placed: tuple[Placed, ...]
    probes: tuple[Kprobe, ...]


class _FetchCpu:
    """The session's processor as the evaluator sees it at one probe.

    Its pc is `pc`, wherever the trap left the real one.
    """

    def __init__(self, session: Session, pc: int = 0) -> None:
        self._reader = session.cpu.traps.reader
        self._pc = session.arch.roles.pc
        self._address = pc
        self.now = session.cpu.now

    def reader(self, names: tuple[str, ...]) -> Callable[[], tuple[int, ...]]:
        """Reads registers, all at once."""
        read = self._reader(names)
        if self._pc not in names:
            return read
        places = [index for index, name in enumerate(names) if name == self._pc]

        def at_probe() -> tuple[int, ...]:
            values = list(read())
            for index in places:
                values[index] = self._address
            return tuple(values)

        return at_probe


class Tracing:
    """The trace of one session.

    Attributes:
        events: by group and name, in the order of definition.
        ring: what is kept, None while streaming.
        infos: what their rows are, in the same order, system calls' included.
        controls: filters and triggers.
        syscalls: system-call events.
    """

    def __init__(
        self,
        session: Session,
        options: TraceOptions,
        stream: BinaryIO | None = None,
        consumer: Consumer | None = None,
    ) -> None:
        """Set up an empty trace.

        Args:
            session: the guest, loaded and not running.
            options: how.
            stream: where text goes without an output file.
            consumer: takes the rows as they are; nothing becomes text then.

        Raises:
            CommandError: the output cannot be written.
        """
        self.session = session
        self.options = options
        self.events: dict[tuple[str, str], TraceEvent] = {}
        self.defined: list[Defined] = []
        self.table: dict[int, EventInfo] = {}
        self._probing: Probing = session.probes(options.mode)
        self.ring: Ring | None = None
        path = options.output
        if options.buffer is not None:
            self.ring = Ring(options.buffer, options.overwrite)
        names = Names(self.symbol, lambda thread: session.kernel.comm, self._returning)
        formats = {kind.name: kind for kind in FORMATS}
        if options.format not in formats:
            known = ", ".join(formats)
            raise CommandError(f"--format {options.format}: there is {known}")
        make_format = formats[options.format]
        text = options.text
        if options.mode is Mode.KERNEL:
            text = (*text, "nosym-userobj")
        self._output = TraceOutput(make_format(self.table, names, text), path, stream)
        backing = None
        if path is not None and not self._output.discard and self.ring is None:
            backing = Path(path + ".ring")
        self._staging = Staging(consumer or self._consume, path=backing)
        jumps = self._probing.manager.jumps
        if jumps is not None and jumps.sink is None:
            jumps.sink = self._staging
        self._context = FetchContext(
            session.arch,
            _FetchCpu(session),
            session.memory,
            self._staging,
            comm=lambda thread: session.kernel.comm,
            symbol=self.symbol,
            where=self._probing.where,
        )
        self._comm = session.kernel.comm
        self.infos: dict[tuple[str, str], EventInfo] = {}
        self._prepare: dict[Kprobe, Ready] = {}
        self._started = False
        self.syscalls = SyscallEvents(session)
        self._stacks = StackRecorder(
            Backtraces(session), session.arch.roles.pc, self._context, self.syscalls
        )
        self.tail = Tail(lambda: make_format(self.table, names, text))
        hooks = ControlHooks(
            stack=self._stacks.record,
            stack_now=lambda: self._stacks.frames(self.controls.place),
            snapshot=None if self.ring is None else self._snapshot,
            symbol=self.symbol,
            comm=lambda thread: session.kernel.comm,
            syscall=self.syscalls.name_of,
            read_cstring=session.memory.read_cstring,
            here=lambda: self.syscalls.place,
            changed=self._changed,
        )
        self.controls = EventControls(self.infos, self._context, hooks, self._machine)
        stacks = {"stacktrace", "userstacktrace"} & set(options.text)
        self.controls.stacks = options.stack or bool(stacks) or make_format.wants_stacks

    # -- definitions ----------------------------------------------------------------------

    def define(self, line: str) -> Defined | None:
        """Carry out one line of `kprobe_events`: what it has defined, if anything.

        Raises:
            ProbeError: it is not accepted; what came before stays.
        """
        glob = selection(line)
        if glob is not None:
            self._choose_syscalls(glob)
            return None
        lookup = self._probing.placing.lookup
        parsed = parse(line, self.session.arch, mode=self.options.mode, lookup=lookup)
        if isinstance(parsed, Definition):
            return self._define(parsed)
        if parsed is not None:
            self._delete(parsed, line)
        return None

    def _define(self, definition: Definition) -> Defined:
        for earlier in self.defined:
            compatible(earlier.definition, definition)
        mode = Mode.KERNEL if definition.strict_override else self.options.mode
        try:
            placed = self._probing.placing.of_definition(definition)
        except PlaceError as error:
            raise _explained(definition, error.code, str(error)) from error
        for item in placed:
            verdict = item.judgement
            if not verdict.ok:
                code = "BAD_INSN_BNDRY" if verdict.errno == "EILSEQ" else "FAIL_REG_PROBE"
                if any(finding.rule == RETURN_ENTRY for finding in verdict.findings):
                    code = "BAD_RETPROBE"
                nearest = next((f.nearest for f in verdict.findings if f.nearest), None)
                hint = f"; the nearest place that would do is {nearest:#x}" if nearest else ""
                why = f"{item.place.name}: {verdict.reason} ({verdict.errno}){hint}"
                raise _explained(definition, code, why)
        if not placed:
            why = "no code of that file is ever mapped from there; it will not be hit"
            self.session.remarks.append(Report((f"{definition.command}: {why}",)))
        event = self._event(definition)
        wanted = [
            self._wanted(event, self._probing.placing.at_one(definition, placed, item), item, mode)
            for item in placed
        ]
        try:
            self._probing.place(wanted)
        except ProbeRejectedError as error:
            raise _explained(definition, "FAIL_REG_PROBE", str(error)) from error
        done = Defined(definition, placed, tuple(probe for _, probe, _ in wanted))
        event.defined.append(done)
        event.probes += done.probes
        self.defined.append(done)
        return done

    def _event(self, definition: Definition) -> TraceEvent:
        layout = RecordLayout.of(definition.args, definition.is_return)
        return self._named(definition.group, definition.event, layout, definition.kind)

    def _named(self, group: str, name: str, layout: RecordLayout, kind: str) -> TraceEvent:
        event = self.events.get((group, name))
        if event is None:
            if (group, name) in self.infos:
                raise ProbeError(f"{group}/{name} is a system call's event")
            info = EventInfo.of(self._number(), group, name, layout, symbolic=kind == "kprobe")
            self._add(info)
            event = self.events[group, name] = TraceEvent(info)
        return event

    def _number(self) -> int:
        number = len(self.table) + 1
        if number > _EVENTS_MAX:
            raise CommandError(f"more than {_EVENTS_MAX} events")
        return number

    def _add(self, info: EventInfo) -> None:
        self.table[info.id] = info
        self.infos[info.group, info.name] = info

    def _choose_syscalls(self, glob: str) -> None:
        taken = len(self.table)

        def number() -> int:
            nonlocal taken
            taken += 1
            if taken > _EVENTS_MAX:
                raise CommandError(f"more than {_EVENTS_MAX} events")
            return taken

        found = self.syscalls.choose(glob, number, lambda name: ("syscalls", name) in self.infos)
        for info in found:
            self._add(info)
            if self._started:
                self._install_syscall(info)

    def _install_syscall(self, info: EventInfo) -> None:
        syscalls = self.syscalls
        record = self.controls.recorder(info, lambda context: syscalls.make(info, context), None)
        syscalls.install(info, record)

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
        return ""

    def info(self, group: str, name: str) -> EventInfo:
        """What an event's rows are.

        Raises:
            ProbeError: there is no such event.
        """
        found = self.infos.get((group, name))
        if found is None:
            known = ", ".join("/".join(key) for key in list(self.infos)[:_SHOWN])
            raise ProbeError(f"there is no event {group}/{name}; there are {known or 'none'}")
        return found

    def _machine(self, info: EventInfo) -> FilterMachine:
        strict = self.options.mode is not Mode.KERNEL
        if not info.symbolic and info.source is EventSource.PROBE:
            return FilterMachine(kernel_pointers=not strict)
        return FilterMachine(functions=self._function, kernel_pointers=not strict)

    def _function(self, name: str | int) -> tuple[int, int] | None:
        """Where a function of the guest is, by its name or an address in it."""
        placement = self._probing.manager.placement
        try:
            address = placement.symbol(name) if isinstance(name, str) else name
        except PlaceError:
            return None
        return None if address is None else placement.function(address)

    def _changed(self, info: EventInfo) -> None:
        """An event records in another way: compile its probes' recorders again."""
        if not self._started:
            return
        if self.syscalls.is_mine(info):
            self._install_syscall(info)
            return
        event = self.events.get((info.group, info.name))
        manager = self._probing.manager
        for probe in event.probes if event is not None else ():
            if probe.addr is None:
                continue
            self._prepare[probe](probe)
            point = manager.points.get(probe.addr)
            if point is not None:
                manager.refresh(point)

    def _snapshot(self) -> None:
        assert self.ring is not None
        self._staging.drain()
        self.tail.keep(self.ring)

    def _returning(self, address: int) -> bool:
        """Whether a return event is recorded for the function at an address."""
        point = self._probing.manager.points.get(address)
        if point is None:
            return False
        return any(
            isinstance(probe, Kretprobe) and probe.record_return is not None
            for probe in point.probes
        )

    def _wanted(
        self, event: TraceEvent, definition: Definition, placed: Placed, mode: Mode
    ) -> Wanted:
        place = placed.place
        name = f"{definition.group}/{definition.event}"
        probe = _make(place, mode, name, definition.is_return, definition.maxactive)
        layout = RecordLayout.of(definition.args, definition.is_return)
        if isinstance(definition.target, FileOffset):
            probe.reference = definition.target.reference
        return place, probe, self._recording(place, event.info.id, layout)

    def _recording(self, place: Place, number: int, layout: RecordLayout) -> Ready:
        """Gives a probe its recorder, which needs the address."""
        names_pc = any(f.arg.base.register == self.session.arch.roles.pc for f in layout.fields)

        def ready(probe: Kprobe) -> None:
            assert probe.addr is not None
            base = probe.addr - (place.file_offset or 0)
            cpu = _FetchCpu(self.session, self._pc_at(probe)) if names_pc else None
            context = self._context if cpu is None else replace(self._context, cpu=cpu)
            site = Site(probe.addr, base)
            make = partial(_compiled, number, layout, site, cpu)
            record = self.controls.recorder(self.table[number], make, probe.addr)
            self._prepare[probe] = ready
            if isinstance(probe, Kretprobe):
                probe.capture = capturer(layout, site, context)
                probe.record_return = record
            else:
                probe.record = record
                probe.recording = self._in_guest(probe, number, layout, base)

        return ready

    def _in_guest(
        self, probe: Kprobe, number: int, layout: RecordLayout, base: int
    ) -> Recording | None:
        """What code in the guest would record for a probe; None where that is not all."""
        jumps, ops = self._probing.manager.jumps, self.controls.predicate(self.table[number])
        if jumps is None or jumps.sink is not self._staging or ops is None:
            return None
        assert probe.addr is not None
        return Recording(number, layout, probe.addr, base, self._pc_at(probe), ops)

    def _pc_at(self, probe: Kprobe) -> int:
        """What `%ip` is at a probe: its address.

        For Linux's kprobes on x86 it is the address behind the int3, one byte on, also where
        ftrace or a jump stands in for it (arch/x86/kernel/kprobes: core.c, ftrace.c, opt.c);
        uprobes put it back (kernel/events/uprobes.c, handle_swbp).
        """
        assert probe.addr is not None
        arch = self.session.arch
        as_linux = self.options.mode is Mode.KERNEL and probe.rules is Rules.KPROBE
        behind = len(arch.breakpoint) if as_linux and arch.trap_advances_pc else 0
        return probe.addr + behind

    @property
    def context(self) -> FetchContext:
        """What recorders of this guest share."""
        return self._context

    def add_event(self, make: Callable[[int], EventInfo]) -> EventInfo:
        """Add an event that no definition makes.

        Args:
            make: describes it, given its number.

        Raises:
            CommandError: there are too many.
        """
        number = len(self.table) + 1
        if number > _EVENTS_MAX:
            raise CommandError(f"more than {_EVENTS_MAX} events")
        info = self.table[number] = make(number)
        return info

    def print_as(self, make: Callable[[EventTable, Names], Format]) -> None:
        """Print rows in another format than the one of the options; before `start`."""
        self._output.format = make(
            self.table, Names(self.symbol, lambda _: self.session.kernel.comm)
        )

    def trace_functions(self, glob: str) -> None:
        """An entry event on every function that matches a pattern.

        Raises:
            ProbeError: none does.
        """
        with collector_paused():
            self._trace_places(self._probing.placing.places.matching(glob), f"-f {glob}")

    def trace_returns(self, glob: str) -> None:
        """A return event on every function that matches a pattern.

        Raises:
            ProbeError: none does.
        """
        places = self._probing.placing.places.matching(glob)
        with collector_paused():
            self._trace_places(places, f"-r {glob}", is_return=True)

    def trace_bodies(self, glob: str) -> None:
        """An event on every instruction of the functions that match a pattern.

        Raises:
            ProbeError: none does.
        """
        placing = self._probing.placing
        places = (
            at for entry in placing.places.matching(glob) for at in placing.instructions(entry)
        )
        with collector_paused():
            self._trace_places(places, f"--every-insn {glob}")

    def _trace_places(
        self, places: Iterable[Place], option: str, *, is_return: bool = False
    ) -> None:
        layout = RecordLayout.of((), is_return)
        wanted: list[Wanted] = []
        owners: dict[int, TraceEvent] = {}
        for place in places:
            name = _identifier(place, is_return)
            event = self._named("kprobes", name, layout, "kprobe")
            probe = _make(place, self.options.mode, f"kprobes/{name}", is_return)
            wanted.append((place, probe, self._recording(place, event.info.id, layout)))
            owners[id(probe)] = event
        if not wanted:
            raise ProbeError(f"{option}: no function matches")
        refused = self._probing.place_each(wanted)
        gone = {place.link for place, _ in refused}
        for place, probe, _ in wanted:
            if place.link not in gone:
                owners[id(probe)].probes.append(probe)
        for place, why in refused:
            self.session.remarks.append(Report((f"no probe on {place.name}: {why}",)))

    def _delete(self, deletion: Deletion, line: str) -> None:
        found = [old for old in self.defined if matches(deletion, old.definition)]
        if not found:
            raise ProbeError(f"{line.strip()}: no such event (ENOENT)")
        for old in found:
            self.remove(old)

    def remove(self, old: Defined) -> None:
        """Take the probes of one definition out; its event goes with its last definition."""
        key = old.definition.group, old.definition.event
        event = self.events[key]
        event.defined.remove(old)
        event.probes = [probe for probe in event.probes if probe not in old.probes]
        self.defined.remove(old)
        probing = self._probing
        waiting = {id(item.probe) for item in probing.pending}
        probing.manager.unregister_all([p for p in old.probes if id(p) not in waiting])
        probing.pending = [item for item in probing.pending if item.probe not in old.probes]
        for probe in old.probes:
            self._prepare.pop(probe, None)
        if not event.defined:
            del self.events[key], self.infos[key]

    def listing(self) -> Iterator[str]:
        """The definitions as the kernel lists them."""
        for done in self.defined:
            yield done.definition.listing()

    # -- output ---------------------------------------------------------------------------

    def start(self) -> None:
        """Before the guest runs: the clock goes, the header is out."""
        self.session.cpu.count_blocks(True)
        self._started = True
        self.declare_stacks()
        for info in list(self.infos.values()):
            if self.syscalls.is_mine(info) or self.controls.touches(info):
                self._changed(info)
        if self._staging.path is not None:
            self._staging.describe(self._description())
        if self.ring is None:
            self._output.text(self._output.format.header())

    def declare_stacks(self) -> None:
        """Have an event for call stacks, if any are wanted by now."""
        if self._stacks.info is None and self.controls.wants_stacks:
            self._stacks.info = info = EventInfo(
                self._number(), "ftrace", "user_stack", (), source=EventSource.STACK
            )
            self.table[info.id] = info

    def _description(self) -> dict[str, Any]:
        """What the rows mean, for whoever finds them after a kill."""
        kernel = self.session.kernel
        places = {probe.addr for event in self.events.values() for probe in event.probes}
        symbols = {place: self.symbol(place) for place in places if place is not None}
        comms = {kernel.pid: os.fsdecode(kernel.comm)}
        return describe(self.table.values(), self.session.arch.name, symbols, comms)

    def drain(self) -> None:
        """Hand what was recorded so far to the output."""
        if self.session.kernel.comm != self._comm:
            self._comm = self.session.kernel.comm
            self._output.format.renamed(self.session.kernel.pid)
        self._staging.drain()

    def finish(self) -> list[Report]:
        """After the run: everything out, and what is to be said about it."""
        if self._probing.manager.jumps is not None:
            self._probing.manager.jumps.collect()
        self._staging.close()
        output = self._output
        if self.ring is not None:
            output.ring(self.ring)
        output.text(self._output.format.end())
        output.tail(self._tail_text())
        output.close()
        return list(self._remarks())

    def _tail_text(self) -> bytes:
        """The snapshot, histograms and the profile."""
        lines = list(self.controls.histograms())
        if self.options.profile:
            profile = profile_lines(self.events.values())
            lines += [b"", b"# profile", *(os.fsencode(line) for line in profile)]
        snapshot = self.tail.snapshot() if self._output.format.is_text else b""
        return snapshot + b"".join(line + b"\n" for line in lines)

    def dump(self) -> None:
        """Write what the ring has now; nothing while streaming."""
        if self.ring is not None:
            self._staging.drain()
            self._output.ring(self.ring)
            self._output.text(self._output.format.end())

    def _consume(self, rows: bytes) -> None:
        if self.ring is not None:
            self.ring.append(rows)
        else:
            self._output.rows(rows)

    def symbol(self, address: int) -> str:
        """An address as the kernel's `%pS` prints it."""
        location = self.session.modules.locate(address)
        if location.symbol is None:
            return f"{address:#x}"
        return f"{location.symbol.name}+{location.offset:#x}/{location.symbol.size:#x}"

    # -- at the end -----------------------------------------------------------------------

    def _remarks(self) -> Iterator[Report]:
        staging = self._staging
        lost = staging.lost + self._output.lost
        failure = staging.failure or self._output.failure
        if failure is not None:
            where = self.options.output or "the output"
            yield Report((f"{where}: {failure.strerror}; {lost} events lost",))
        pending = [item.text for item in self._probing.pending if not item.again]
        if pending:
            yield _list("never placed, as their file was not mapped:", pending)
        if self._probing.notices:
            yield _list("changes to probes:", self._probing.notices)
        missed = [
            f"{probe}: {probe.nmissed} of {probe.hits} hits missed"
            for event in self.events.values()
            for probe in event.probes
            if probe.nmissed
        ]
        if missed:
            yield _list("missed hits:", missed)
        unwatched = [
            f"{probe}: {probe.unwatched} of {probe.hits} calls"
            for event in self.events.values()
            for probe in event.probes
            if isinstance(probe, Kretprobe) and probe.unwatched
        ]
        if unwatched:
            yield _list("calls that do not return, or to where no probe can stand:", unwatched)


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for garbage: thousands of new probes all stay, and each search reads them all."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _compiled(
    number: int, layout: RecordLayout, site: Site, cpu: _FetchCpu | None, context: FetchContext
) -> Recorder:
    """An event's recorder for a sink; `cpu` where the pc is another than the real one."""
    return recorder(number, layout, site, context if cpu is None else replace(context, cpu=cpu))


def _make(
    place: Place, mode: Mode, name: str, is_return: bool = False, maxactive: int = 0
) -> Kprobe:
    if place.rules is Rules.UPROBE:
        kind = Uretprobe if is_return else Uprobe
        return kind(place.path, place.file_offset or 0, mode=mode, name=name)
    if is_return:
        return Kretprobe(maxactive=maxactive, mode=mode, name=name)
    return Kprobe(mode=mode, name=name)


def _explained(definition: Definition, code: str, why: str) -> ProbeError:
    error = definition.error(code)
    error.explain(why)
    return error


def _identifier(place: Place, is_return: bool = False) -> str:
    """The kernel's automatic name for a probe on a function."""
    name = place.symbol or f"{place.link:#x}"
    letter = "r" if is_return else "p"
    return f"{letter}_{_UNNAMEABLE.sub('_', name)}_{place.offset}"


def _list(head: str, lines: Iterable[str]) -> Report:
    found = list(lines)
    more = len(found) - _SHOWN
    tail = (f"and {more} more",) if more > 0 else ()
    return Report((head, *found[:_SHOWN], *tail))

"""Tracing of whole sets of functions: ftrace's function and function_graph tracers for a guest.

No help of a compiler is needed: a traced function is a return probe (or, for the function tracer,
a plain probe) on its entry. Where a compiler has left nops there, they are what is displaced.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.arch.program import Base, FetchArg, FieldType, RecordLayout, Source, ValueKind
from engine.arch.recording import CallWord, Recording
from engine.errors import ProbeError
from engine.fetch.evaluate import FetchSite, capturer
from engine.fetch.variables import VariableError
from engine.linux.thread import Thread
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import CallEnd, CallWork
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.wanted_probes import Wanted
from engine.session.program.functions import is_part
from engine.session.program.places import Place
from engine.session.protocol.report import Report
from engine.session.protocol.requests import TRACERS, GraphOptions
from engine.session.tracing.defining import collector_paused
from engine.session.tracing.listing import TraceListing
from engine.session.tracing.tracing import Tracing
from engine.trace.function import function_info, function_recorder
from engine.trace.graph import (
    Calls,
    GraphProbe,
    GraphResult,
    Shown,
    Stack,
    entry_info,
    exit_info,
)
from engine.trace.rows import EventInfo, FormKind, ValueForm
from engine.trace.variables import ScopeVariables

if TYPE_CHECKING:
    from engine.session.inspect.program_files import Files
    from engine.session.tracing.library_calls import TypedFunctions
    from engine.session.tracing.typed_calls import TypedArguments, TypedResult, TypedValues


_ARGUMENTS_MAX: Final = 16
_EVERY: Final = 1 << 31
_SHOWN: Final = 10
_NOP_SECTIONS: Final = ("__patchable_function_entries", "__mcount_loc")
Key = tuple[str, int]
"""Guest path of a file and link address of a function in it."""


class Added(Struct):
    """The outcome of adding functions.

    Attributes:
        count: functions that are traced now and were not before.
        refused: the others that matched: name and why.
    """

    count: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)


class Graphing:
    """The tracer of one session: functions come and go while the guest runs.

    Attributes:
        calls: follows them, for the graph.
        probes: of the traced functions.
        refused: functions that cannot be traced, and why.
        parts: names of what is no function but a part of one: nobody calls it.
    """

    def __init__(self, tracing: Tracing, options: GraphOptions | None = None) -> None:
        """Trace nothing yet.

        Args:
            tracing: keeps and writes the rows.
            options: what is recorded.

        Raises:
            ProbeError: a pattern of the options names a library that is not there.
        """
        self.options = options = options or GraphOptions()
        self.probes: dict[Key, Kprobe] = {}
        self.refused: dict[str, str] = {}
        self.parts: set[str] = set()
        self._tracing = tracing
        session = tracing.session
        self._session = session
        self._probing = session.probes(tracing.options.mode)
        self._places: dict[Key, Place] = {}
        self._results: dict[TypedResult, tuple[EventInfo, CallEnd | None]] = {}
        context = self._context = tracing.context
        traps = session.cpu.traps
        self._graph = options.tracer == TRACERS[0]
        self._exits = tracing.add_event(exit_info) if self._graph else None
        self._entries = tracing.add_event(entry_info if self._graph else function_info)
        self.calls: Calls | None = None
        if self._exits is not None:
            self.calls = Calls(
                context.sink,
                self._exits,
                context.cpu.now,
                lambda: session.machine.task,
                self._stack_of,
                (lambda at: self._probing.here.manager.code_map.function(at))
                if session.arch.roles.link
                else None,
                traps.reader((session.arch.probes.retval,)) if options.retval else None,
            )
            calls, machine = self.calls, session.machine
            calls.process = machine.current.pid
            session.kernel.switched.append(
                lambda: calls.switched(machine.task, machine.current.pid)
            )
            machine.moments.executed.append(lambda one, old, path: calls.process_over(one.pid))
            machine.moments.leaving.append(self._left)
            machine.moments.task_over.append(
                lambda task, low, high: calls.thread_over(task, machine.current.pid, high)
            )
            self.calls.depth_max = options.depth_max
            self.calls.rooted = bool(options.under)
            self.calls.chosen = tracing.tasks.chosen
        plain = not (options.depth_max or options.under or options.without) and tracing.in_guest
        self._end: CallEnd | None = (
            None  # what code records for returns, where it can follow all calls
        )
        if self._exits is not None and plain:
            self._end = _call_end(self._exits, retval=options.retval)
        self._roots = self._keys(options.under)
        self._muted = self._keys(options.without)
        self._hidden = self._keys(options.hidden)
        callers_of = tracing.options.calls.callers_of
        self._led_to = self._keys(callers_of)
        if self._graph:
            for glob in (*options.under, *options.without, *callers_of):
                self._add(glob, only=self._roots | self._muted | self._led_to)

    # -- functions ------------------------------------------------------------------------

    def add(self, *globs: str, option: str = "-f") -> Added:
        """Trace the functions that match; those that do already stay. They start at once.

        Args:
            globs: patterns.
            option: gave them, for messages.

        Raises:
            ProbeError: no function matches one of the patterns.
        """
        done = Added()
        for glob in globs:
            more = self._add(glob, option=option)
            done.count += more.count
            done.refused += more.refused
        return done

    def add_places(self, places: Iterable[Place]) -> Added:
        """Trace functions by the places of their entries."""
        done, wanted, keys = Added(), [], {}
        with collector_paused():
            for place in places:
                key = _key(place)
                if key in self.probes or (not self._graph and key in self._muted):
                    continue
                if key in self._hidden or self._is_small(place):
                    continue
                if is_part(
                    self._session.arch, place.image, place.link - place.offset, place.symbol
                ):
                    self.parts.add(place.name)
                    continue
                probe, one = self._make(place, key)
                keys[id(probe)] = key
                wanted.append(one)
                self.probes[key] = probe
                self._places[key] = place
            refused = {id(place): why for place, why in self._probing.place_each(wanted)}
        for one in wanted:
            place, probe = one.place, one.probe
            why = refused.get(id(place))
            if why is None:
                done.count += 1
                continue
            del self.probes[keys[id(probe)]], self._places[keys[id(probe)]]
            done.refused.append((place.name, why))
            self.refused[place.name] = why
        return done

    def _is_small(self, place: Place) -> bool:
        """True if a function has fewer bytes than it must have to be traced."""
        least = self.options.size_min
        if not least or place.function is None:
            return False
        return place.function[1] < least

    def remove(self, *globs: str) -> int:
        """No longer trace the functions that match; how many they were.

        Returns of calls that are pending are still recorded.

        Raises:
            ProbeError: a pattern names a library that is not there.
        """
        gone = [key for key in self._keys(globs) if key in self.probes]
        self._take_out(gone)
        return len(gone)

    def clear(self) -> int:
        """Trace nothing any more; how many functions were traced."""
        count = len(self.probes)
        self._take_out(list(self.probes))
        return count

    def _take_out(self, keys: list[Key]) -> None:
        probes = [self.probes.pop(key) for key in keys]
        for key in keys:
            del self._places[key]
        self._probing.remove(probes)

    def _add(self, glob: str, only: set[Key] | None = None, option: str = "-f") -> Added:
        found = list(self._probing.verdicts.places.matching(glob))
        if not found:
            raise ProbeError(f"{option} {glob}: no function matches")
        if only is not None:
            found = [place for place in found if _key(place) in only]
        return self.add_places(found)

    def _keys(self, globs: Iterable[str]) -> set[Key]:
        places = self._probing.verdicts.places
        return {_key(place) for glob in globs for place in places.matching(glob)}

    # -- probes ---------------------------------------------------------------------------

    def _make(self, place: Place, key: Key) -> tuple[Kprobe, Wanted]:
        args: tuple[FetchArg, ...] = ()
        typed: TypedArguments | None = None
        scope = self._probing.verdicts.lookup.scope_at(place)
        if self.options.args and self.options.typed:
            typed = self._functions.arguments(place, scope)
            args = () if typed is None else typed.fetches or ()
        elif self.options.args:
            args = _arguments(scope)
        info = self._event_of(args, typed)
        name = place.name
        if self._exits is None:
            plain = Kprobe(name=name)
            record = partial(self._record, info=info, args=args, typed=typed)
            return plain, Wanted(place, plain, record, late=True, traces=True)
        mode = self._tracing.options.mode
        maxactive = _EVERY if mode is Mode.KERNEL else 0
        root, muted = key in self._roots, key in self._muted
        probe = GraphProbe(0, info, root=root, muted=muted, name=name, maxactive=maxactive)
        probe.tracker = self.calls
        result: TypedResult | None = None
        if self.options.retval and self.options.typed:
            result = self._functions.result(place, scope)
            if result is None and self.options.auto:
                from engine.session.tracing import typed_calls  # as above

                nothing = ValueForm(FormKind.NOTHING)
                result = typed_calls.TypedResult(FieldType(ValueKind.HEX, 8), nothing)
        follow = partial(self._follow, event=info, args=args, typed=typed, result=result)
        return probe, Wanted(place, probe, follow, anywhere=not args, traces=True)

    def _event_of(self, args: tuple[FetchArg, ...], typed: "TypedArguments | None") -> EventInfo:
        shown: Sequence[Shown]
        if typed is not None:
            shown = typed.columns
        elif args:
            shown = [(arg.name, arg.type, None) for arg in args]
        else:
            return self._entries
        make = entry_info if self._graph else function_info
        return self._tracing.add_event(lambda number: make(number, shown))

    def _follow(
        self,
        probe: Kprobe,
        space: ProbedSpace,
        place: Place,
        *,
        event: EventInfo,
        args: tuple[FetchArg, ...],
        typed: "TypedArguments | None",
        result: "TypedResult | None",
    ) -> None:
        graph = cast("GraphProbe", probe)
        graph.function = (graph.addr or 0) - place.offset
        if self._tracing.calls is not None and _key(place) in self._led_to:
            self._tracing.calls.functions.add(graph.function)
        graph.capture = self._capture(graph, space, place, args)
        end = self._end
        if typed is not None and typed.fetches is None:
            graph.values, end = self._values_at(graph).arguments(typed), None
        if result is not None:
            returns, own_end = self._result_of(result)
            end = None if end is None else own_end
            graph.result = GraphResult(returns)
            if result.kind is not None:
                values = self._values_at(graph)
                graph.result = GraphResult(returns, values.result(result), values.kept(result))
        if end is not None and self._tracing.in_guest:
            graph.call = _calls_of(graph, place, event, args, end)

    @cached_property
    def _functions(self) -> "TypedFunctions":
        from engine.session.tracing.library_calls import TypedFunctions  # few runs ask

        options = self._tracing.options
        return TypedFunctions(self._session.arch, options.prototypes, options.printing)

    @cached_property
    def _files(self) -> "Files":
        from engine.session.inspect.program_files import Files  # as in `_make`

        return Files(self._session)

    def _values_at(self, probe: Kprobe) -> "TypedValues":
        from engine.session.tracing.typed_calls import TypedValues  # as in `_make`

        options = self._functions.print_options
        return TypedValues(self._session, self._files, lambda: probe.addr or 0, options)

    def _result_of(self, result: "TypedResult") -> tuple[EventInfo, CallEnd | None]:
        """The event of returns with such a result, and what code records of them."""
        key = replace(result, kind=None, language=0)
        if key not in self._results:
            info = self._tracing.add_event(
                lambda number: exit_info(number, result.type, result.form)
            )
            is_void = result.form.kind is FormKind.NOTHING
            end = None if result.kind is not None else _call_end(info, retval=not is_void)
            self._results[key] = info, end
        info, end = self._results[key]
        return info, None if result.kind is not None else end

    def _record(
        self,
        probe: Kprobe,
        space: ProbedSpace,
        place: Place,
        *,
        info: EventInfo,
        args: tuple[FetchArg, ...],
        typed: "TypedArguments | None",
    ) -> None:
        context = self._context
        function = (probe.addr or 0) - place.offset
        values: Callable[[], Sequence[int | bytes]] | None = None
        if typed is not None and typed.fetches is None:
            values = self._values_at(probe).arguments(typed)
        elif self._tracing.in_guest:
            probe.recording = _call_row(self._session.arch, probe, place, info, args)
        record = function_recorder(
            function,
            info,
            context.sink,
            context.cpu.now,
            space.manager.returns.frames.frame,
            self._capture(probe, space, place, args),
            values,
        )
        chosen = self._tracing.tasks.chosen
        if chosen is None:
            probe.record = record
        else:
            probe.record = lambda thread: record(thread) if chosen(thread) else None

    def _capture(
        self, probe: Kprobe, space: ProbedSpace, place: Place, args: tuple[FetchArg, ...]
    ) -> Any:
        if not args:
            return None
        address = probe.addr or 0
        site = FetchSite(address, address - (place.file_offset or 0))
        context = replace(self._context, memory=space.space.memory, where=space.addresses.where)
        return capturer(RecordLayout.of(args, returns=True), site, context)

    def _left(self, thread: Thread, last: bool) -> None:
        if last and self.calls is not None and thread.process is not self._session.process:
            self.calls.process_over(thread.pid)

    def _stack_of(self, slot: int) -> Stack:
        """The stack of the program that a frame lies on, by what frames are known by."""
        frames = self._probing.here.manager.returns.frames
        found, at = self._stack_at(frames.sp_of(slot)), frames.lowest_at
        found.low, found.high = at(found.low), at(found.high)
        return found

    def _stack_at(self, slot: int) -> Stack:
        """The stack of the program that an address lies on."""
        base, _, size = self._session.machine.current.signals.altstack
        if size and base <= slot < base + size:
            return Stack(base, base + size, exact=True, signal=True)
        seen, stacks = self._session.seen, self._session.kernel_stacks
        if stacks is not None and seen is self._session.space:
            bounds = stacks.at(slot)
            if bounds is not None:
                return Stack(*bounds, exact=True)
        running = self._probing.here.manager.goroutines.stack_at(slot)
        if running is not None:
            return Stack(running.low, running.high, exact=True, own=not running.scheduler)
        mapping = seen.memory.find(slot)
        low, high, exact = slot, slot + 1, False
        if mapping is not None:
            low, high, exact = mapping.start, mapping.end, mapping.name == "[stack]"
        if size and low <= base < high:
            low, high = (low, base) if slot < base else (base + size, high)
        return Stack(low, high, exact)

    # -- as definitions -------------------------------------------------------------------

    def listed(self, form: str) -> Iterator[str]:
        """The lines that define events for what is traced, in one of the forms of a listing."""
        shown = [place for key, place in self._places.items() if key not in self._muted]
        listing = TraceListing(self._tracing)
        yield from listing.functions(form, shown, returns=self._graph, words=self._words)

    def _words(self, place: Place, is_return: bool) -> str:
        if is_return:
            return "ret=$retval" if self.options.retval else ""
        if not self.options.args:
            return ""
        args = _arguments(self._probing.verdicts.lookup.scope_at(place))
        return " ".join(f"{arg.name}={arg.name}" for arg in args)

    # -- what it comes to -----------------------------------------------------------------

    def remarks(self, *, every: bool = False) -> Iterator[Report]:
        """Remarks about functions that are not traced, all of them or the first ones."""
        if self.refused:
            lines = [f"{name}: {why}" for name, why in self.refused.items()]
            shown = lines if every else lines[:_SHOWN]
            more = len(lines) - len(shown)
            tail = (f"and {more} more; --summary shows all",) if more else ()
            yield Report((f"{len(lines)} functions are not traced:", *shown, *tail))
        if self.calls is not None and self.calls.late:
            yield Report((f"{self.calls.late} returns of calls that were taken for left",))

    def summary(self) -> Report:
        """Functions, their sites, calls, and the memory it all takes."""
        manager, arch = self._probing.manager, self._session.arch
        points = [
            point
            for probe in self.probes.values()
            if (point := manager.points.get(probe.addr or 0)) is not None
        ]
        slots = sum(point.slot is not None for point in points)
        size = arch.probes.kprobe_slot
        symbols = max(len(self.probes), 1)
        objects = sum(_bytes(probe) for probe in self.probes.values()) + sum(map(_bytes, points))
        lines = [
            f"{len(self.probes)} functions traced, {len(self.refused)} refused, "
            f"{len(self.parts)} are parts of others that are jumped to",
            f"entries: {self._entry_text()}",
            f"slots: {slots} of {size} bytes, {slots * size} bytes of the guest's address space",
            f"memory: {objects // symbols} bytes a function, {objects} in all",
        ]
        calls = self.calls
        if calls is not None:
            lines.append(
                f"calls: {calls.entries} entered, {calls.exits} returned, {calls.left} left "
                f"without a return, {calls.pending} pending"
            )
        else:
            lines.append(f"calls: {sum(probe.hits for probe in self.probes.values())}")
        return Report(("function tracing:", *lines))

    def _entry_text(self) -> str:
        decode, arch = self._session.disassembler.decode, self._session.arch
        nops = pads = 0
        for place in self._places.values():
            if place.function is None:
                continue
            start = place.function[0]
            pad = arch.probes.landing_pad(place.image.read_vaddr(start, arch.insn_max))
            pads += pad > 0
            code = place.image.read_vaddr(start + pad, arch.insn_max)
            first = next(iter(decode(start + pad, code)), None)
            nops += first is not None and first.mnemonic.endswith("nop")
        image = self._probing.verdicts.main.image
        sections = [
            f"{section.size // 8} in {name}"
            for name in _NOP_SECTIONS
            if (section := image.section(name)) is not None
        ]
        listed = f" (the compiler lists {', '.join(sections)})" if sections else ""
        return f"{nops} are nops for tracers{listed}, {pads} begin with a landing pad"


def _key(place: Place) -> Key:
    return place.path, place.link - place.offset


def _bytes(thing: object) -> int:
    """Memory of an object with what it alone holds on to."""
    total = sys.getsizeof(thing)
    for kind in type(thing).__mro__:
        for name in getattr(kind, "__slots__", ()):
            value = getattr(thing, name, None)
            if isinstance(value, bytes | list | tuple | str) or callable(value):
                total += sys.getsizeof(value)
    return total


def _call_row(
    arch: Arch, probe: Kprobe, place: Place, info: EventInfo, args: tuple[FetchArg, ...]
) -> Recording:
    """A call as the function tracer records it: where it returns to, and arguments."""
    link = arch.roles.link
    parent = Base(Source.STACK) if link is None else Base(Source.REGISTER, link)
    return _recording(probe, place, info, (parent,), args)


def _calls_of(
    probe: Kprobe, place: Place, info: EventInfo, args: tuple[FetchArg, ...], end: CallEnd
) -> CallWork:
    """The calls of a function as function_graph records them."""
    columns = (_of_call(CallWord.DEPTH), _of_call(CallWord.RETURN))
    row = _recording(probe, place, info, columns, args)
    return CallWork(row.address, row.image_base, row.pc, (), row, end)


def _call_end(exits: EventInfo, *, retval: bool) -> CallEnd:
    """Their returns.

    Args:
        exits: the event.
        retval: whether the value returned is recorded.
    """
    zero, value = Base(Source.IMMEDIATE), Base(Source.RETVAL)
    of_call = (_of_call(word) for word in (CallWord.DEPTH, CallWord.TIME))
    bases = (*of_call, zero, value if retval else zero)
    layout = RecordLayout.of(tuple(_word(base) for base in bases), returns=True)
    return CallEnd(Recording(exits.id, layout, 0, 0, 0), of_call=True)


def _arguments(scope: ScopeVariables) -> tuple[FetchArg, ...]:
    """The arguments of a function, as far as debug information says and words hold them."""
    args: list[FetchArg] = []
    seen: set[object] = set()
    try:
        names = scope.parameters()[:_ARGUMENTS_MAX]
        for name in names:
            found = scope.resolve(name)
            kind, where = found.kind, (found.base, found.derefs)
            if kind is None or kind.is_string or kind.count or kind.width or where in seen:
                continue
            if kind.kind is ValueKind.FLOAT:
                continue  # the kernel has none
            seen.add(where)
            base = Base(Source.AT_ENTRY, fetch=where)
            args.append(FetchArg(name, name, base, (), FieldType(kind.kind, kind.size)))
    except VariableError:
        return ()
    return tuple(args)


def _recording(
    probe: Kprobe,
    place: Place,
    info: EventInfo,
    columns: Sequence[Base],
    args: tuple[FetchArg, ...],
) -> Recording:
    """A row with some words and the arguments of a function."""
    fetches = [arg.base.fetch for arg in args if arg.base.fetch is not None]
    words = [*map(_word, columns), *(_word(base, derefs) for base, derefs in fetches)]
    address = probe.addr or 0
    base, layout = address - (place.file_offset or 0), RecordLayout.of(tuple(words))
    return Recording(info.id, layout, address - place.offset, base, address)


def _word(base: Base, derefs: tuple[int, ...] = ()) -> FetchArg:
    return FetchArg("", "", base, derefs, FieldType(ValueKind.HEX, 8))


def _of_call(word: CallWord) -> Base:
    return Base(Source.CALL, value=word)

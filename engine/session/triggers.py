"""Filters and triggers of a trace's events: what happens at a hit before it is recorded.

An event with a filter or a trigger records into a scratch buffer first, as the kernel's events do
(trace_event_buffer_lock_reserve of kernel/trace/trace_events.c); what passes is copied into the
trace. The order of things is the kernel's: triggers without a condition, then the row, then
triggers with one, then the filter, then what acts behind the event.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from engine.arch.program import PredicateOp
from engine.errors import CommandError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.fetch.predicate import PredicateContext, RowTest, compile_predicate
from engine.trace.filter import Filter, FilterMachine, FilterSyntaxError, parse_filter
from engine.trace.histtable import HistNames, HistTable
from engine.trace.rows import EventInfo
from engine.trace.trigger import SWITCHES, Trigger, TriggerError, parse_trigger

SCRATCH: Final = 1 << 19
"""Bytes of the largest row."""

Make = Callable[[FetchContext], Recorder]
"""Compiles an event's recorder for a sink."""


class Scratch:
    """Memory for the row of one hit; satisfies `engine.fetch.evaluate.RowSink`."""

    def __init__(self, most: int) -> None:
        """`most` is what the trace takes at once."""
        self.position = 0
        self.buffer = bytearray(SCRATCH)
        self.limit = self.capacity = min(SCRATCH, most)

    def drain(self) -> None:
        """There is always room: one row at a time."""


@dataclass(slots=True, eq=False)
class Armed:
    """A trigger of an event.

    Attributes:
        trigger: it.
        test: whether a row meets its condition, None for every hit.
        act: what it does, given the row's buffer, the thread and the place.
        left: how often it may still fire, None for always.
        paused: whether it rests.
        table: of a histogram.
    """

    trigger: Trigger
    test: RowTest | None
    act: Callable[[Any, int, int], bool]
    left: int | None
    paused: bool = False
    table: HistTable | None = None

    def fire(self, data: Any, thread: int, place: int) -> None:
        """Act, if it may still; only what did something counts."""
        if self.left == 0:
            return
        if self.act(data, thread, place) and self.left is not None:
            self.left -= 1

    def listing(self) -> str:
        """Its line in the event's `trigger` file."""
        spec = self.trigger.hist
        if spec is None:
            return self.trigger.listing()
        return spec.listing(self.trigger.condition, self.paused)


@dataclass(slots=True)
class EventControl:
    """What one event does at a hit besides recording.

    Attributes:
        info: the event.
        filter: what passes, None for everything.
        bad_filter: what the event's `filter` file shows for one that was refused.
        triggers: in the order they are looked at.
        off: whether it records nothing for now (EVENT_FILE_FL_SOFT_DISABLED).
    """

    info: EventInfo
    filter: Filter | None = None
    bad_filter: str = ""
    triggers: list[Armed] = field(default_factory=list)
    off: bool = False

    @property
    def filter_text(self) -> str:
        """The event's `filter` file."""
        return self.bad_filter or (self.filter.text if self.filter is not None else "none")

    def trigger_lines(self) -> Iterator[str]:
        """The event's `trigger` file."""
        if not self.triggers:
            yield "# Available triggers:"
            yield "# traceon traceoff snapshot stacktrace enable_event disable_event hist"
        for armed in self.triggers:
            yield armed.listing()


@dataclass(frozen=True, slots=True)
class ControlHooks:
    """What triggers do to the trace.

    Attributes:
        stack: records the call stack behind a row: (thread, place).
        stack_now: the call stack, innermost first.
        snapshot: keeps what is in the ring now; None without a ring.
        symbol: text of an address.
        comm: a thread's name.
        syscall: a system call's name by its number.
        read_cstring: (address, limit) to the guest's bytes there.
        here: address of the instruction that the processor is at.
        changed: an event records in another way from now on.
    """

    stack: Callable[[int, int], None]
    stack_now: Callable[[], tuple[int, ...]]
    snapshot: Callable[[], None] | None
    symbol: Callable[[int], str]
    comm: Callable[[int], bytes | None]
    syscall: Callable[[int], str | None]
    read_cstring: Callable[[int, int], bytes]
    here: Callable[[], int]
    changed: Callable[[EventInfo], None]


class EventControls:
    """All filters and triggers of one trace.

    Attributes:
        on: whether the trace records (tracing_on).
        stacks: whether every event records its call stack.
    """

    def __init__(
        self,
        events: Mapping[tuple[str, str], EventInfo],
        context: FetchContext,
        hooks: ControlHooks,
        machine: Callable[[EventInfo], FilterMachine],
    ) -> None:
        """Set up without any.

        Args:
            events: the trace's events by group and name.
            context: for recorders into the trace.
            hooks: what triggers do.
            machine: what an event's filters are parsed for.
        """
        self.on = True
        self.stacks = False
        self._events = events
        self._context = context
        self._scratch = Scratch(context.sink.capacity)
        self._buffered = replace(context, sink=self._scratch)
        self._hooks = hooks
        self._machine = machine
        self._predicates = PredicateContext(hooks.comm, hooks.read_cstring)
        self._controls: dict[int, EventControl] = {}
        self._named: dict[str, HistTable] = {}
        self._gated = False
        self._place = 0

    # -- setting up -----------------------------------------------------------------------

    def of(self, info: EventInfo) -> EventControl:
        """What an event does."""
        control = self._controls.get(info.id)
        if control is None:
            control = self._controls[info.id] = EventControl(info)
        return control

    def set_filter(self, info: EventInfo, text: str, *, lenient: bool = False) -> str:
        """Give an event a filter; what was refused, if that is forgiven.

        Args:
            info: the event.
            text: the filter; "0" takes it away.
            lenient: a bad one lets everything pass, as in the kernel.

        Raises:
            FilterSyntaxError: it is not accepted; the one before stays.
        """
        control = self.of(info)
        refused = bad = ""
        passing = None
        try:
            found = parse_filter(text, info, self._machine(info))
            passing = found if found.ops else None
        except FilterSyntaxError as error:
            if not lenient:
                raise
            refused, bad = str(error), error.readback
        control.filter, control.bad_filter = passing, bad
        self._hooks.changed(info)
        return refused

    def add_trigger(self, info: EventInfo, text: str) -> None:
        """Give an event a trigger, or take one away.

        Raises:
            ProbeError: it is not accepted.
        """
        control = self.of(info)
        trigger = parse_trigger(text, info, self._machine(info))
        if trigger.target is not None and trigger.target not in self._events:
            raise TriggerError(text, f"there is no event {'/'.join(trigger.target)}")
        if trigger.remove:
            self._remove(control, trigger, text)
        elif not self._update(control, trigger):
            armed = self._armed(control, trigger, text)
            if trigger.hist is None:
                control.triggers.insert(0, armed)
            else:
                control.triggers.append(armed)
            if trigger.name in ("traceon", "traceoff") and not self._gated:
                self._gated = True
                for other in self._events.values():
                    self._hooks.changed(other)
            if trigger.target is not None:
                target = self._events[trigger.target]
                # What another event switches on is off until then; it cannot be hit by itself.
                if trigger.name == "enable_event" and target is not info:
                    self.of(target).off = True
                self._hooks.changed(target)
        self._hooks.changed(info)

    def _remove(self, control: EventControl, trigger: Trigger, text: str) -> None:
        for armed in control.triggers:
            other = armed.trigger
            if trigger.hist is not None:
                same = other.hist is not None and other.hist.shape == trigger.hist.shape
                same = same and other.condition == trigger.condition
            else:
                same = trigger.same_kind(other)
            if same:
                control.triggers.remove(armed)
                return
        raise TriggerError(text, "there is no such trigger", "ENOENT")

    def _update(self, control: EventControl, trigger: Trigger) -> bool:
        """Whether a histogram was only paused, continued or cleared."""
        spec = trigger.hist
        if spec is None or not spec.action:
            return False
        for armed in control.triggers:
            other = armed.trigger.hist
            if other is None or armed.table is None or other.shape != spec.shape:
                continue
            if armed.trigger.condition != trigger.condition or other.name != spec.name:
                continue
            if spec.action == "clear":
                armed.table.clear()
            else:
                armed.paused = spec.action == "pause"
            return True
        if spec.action != "pause":
            raise spec.error("TRIGGER_ENOENT_CLEAR")
        return False

    def _armed(self, control: EventControl, trigger: Trigger, text: str) -> Armed:
        test = None
        if trigger.filter is not None:
            test = compile_predicate(trigger.filter.ops, self._predicates)
        if trigger.hist is not None:
            return self._histogram(control, trigger, test)
        for armed in control.triggers:
            if trigger.same_kind(armed.trigger):
                raise TriggerError(text, "the event has one of this kind", "EEXIST")
        return Armed(trigger, test, self._action(trigger), trigger.count)

    def _action(self, trigger: Trigger) -> Callable[[Any, int, int], bool]:
        hooks = self._hooks
        if trigger.name in ("traceon", "traceoff"):
            wanted = trigger.name == "traceon"

            def switch(data: Any, thread: int, place: int) -> bool:
                changes = self.on is not wanted
                self.on = wanted
                return changes

            return switch
        if trigger.name in SWITCHES:
            assert trigger.target is not None
            target = self.of(self._events[trigger.target])
            off = trigger.name == "disable_event"

            def turn(data: Any, thread: int, place: int) -> bool:
                changes = target.off is not off
                target.off = off
                return changes

            return turn
        if trigger.name == "snapshot":
            keep = hooks.snapshot
            if keep is None:
                raise CommandError("the snapshot trigger needs a ring: --buffer N")

            def snapshot(data: Any, thread: int, place: int) -> bool:
                keep()
                return True

            return snapshot

        def stack(data: Any, thread: int, place: int) -> bool:
            if self.on:
                hooks.stack(thread, place)
            return True

        return stack

    def _histogram(self, control: EventControl, trigger: Trigger, test: RowTest | None) -> Armed:
        spec, hooks = trigger.hist, self._hooks
        assert spec is not None
        table = self._named.get(spec.name) if spec.name else None
        if table is not None and table.spec.shape != spec.shape:
            raise spec.error("NAMED_MISMATCH", spec.name)
        for armed in control.triggers:
            other = armed.trigger.hist
            if other is None or other.shape != spec.shape or other.name != spec.name:
                continue
            if armed.trigger.condition == trigger.condition:
                raise spec.error("TRIGGER_EEXIST")
        if table is None:
            names = HistNames(hooks.symbol, hooks.comm, hooks.syscall, hooks.stack_now)
            table = HistTable(spec, names)
            if spec.name:
                self._named[spec.name] = table
        count = table.counter(spec)

        def counted(data: Any, thread: int, place: int) -> bool:
            count(data, 0)
            return True

        return Armed(trigger, test, counted, None, spec.action == "pause", table)

    @property
    def wants_stacks(self) -> bool:
        """Whether call stacks may be recorded as rows."""
        return self.stacks or any(
            armed.trigger.name == "stacktrace"
            for control in self._controls.values()
            for armed in control.triggers
        )

    def touches(self, info: EventInfo) -> bool:
        """Whether an event does more than record."""
        return self._gated or self.stacks or info.id in self._controls

    # -- a hit ----------------------------------------------------------------------------

    def recorder(self, info: EventInfo, make: Make, place: int | None) -> Recorder:
        """The recorder of an event's probe, with all that the event does now.

        Args:
            info: the event.
            make: compiles it for a sink.
            place: the probe's address; a return event's place is where it returns to, a
                system call's (None) where the processor is.
        """
        control = self._controls.get(info.id)
        if control is None and not self._gated and not self.stacks:
            return make(self._context)
        control = self.of(info)
        test = None
        if control.filter is not None:
            test = compile_predicate(control.filter.ops, self._predicates)
        simple = not control.triggers and not self._gated and not self.stacks
        if simple and not control.off and not self._switched(info):
            return make(self._context) if test is None else self._filtered(info, make, test)
        return self._controlled(control, make, test, place)

    def predicate(self, info: EventInfo) -> tuple[PredicateOp, ...] | None:
        """The filter of an event that does nothing but record what passes, () if all does.

        None for one that does more: see `recorder`.
        """
        control = self._controls.get(info.id)
        if self._gated or self.stacks:
            return None
        if control is None:
            return ()
        if control.triggers or control.off or self._switched(info):
            return None
        return control.filter.ops if control.filter is not None else ()

    def _switched(self, info: EventInfo) -> bool:
        """Whether a trigger of some event turns this one on or off."""
        target = (info.group, info.name)
        return any(
            armed.trigger.target == target
            for control in self._controls.values()
            for armed in control.triggers
        )

    def _filtered(self, info: EventInfo, make: Make, test: RowTest) -> Recorder:
        """The usual case: a filter and nothing else."""
        if not info.strings:
            return self._taken_back(info, make, test)
        scratch, keep = self._scratch, self._keeper(info)
        record, buffer = make(self._buffered), scratch.buffer

        def filtered(*hit: Any) -> None:
            scratch.position = 0
            record(*hit)
            keep(test(buffer, 0))

        return filtered

    def _taken_back(self, info: EventInfo, make: Make, test: RowTest) -> Recorder:
        """Rows of one size are recorded where they belong, and taken back if they do not pass."""
        record, sink = make(self._context), self._context.sink
        buffer, size = sink.buffer, info.words * 8
        zeros = bytes(size)

        def filtered(*hit: Any) -> None:
            record(*hit)
            end = sink.position
            start = end - size
            if not test(buffer, start):
                buffer[start:end] = zeros
                sink.position = start

        return filtered

    def _keeper(self, info: EventInfo) -> Callable[[bool], None]:
        """Copies the row of the scratch buffer into the trace, or drops it."""
        scratch, sink, strings = self._scratch, self._context.sink, info.strings
        buffer, trace = memoryview(scratch.buffer), sink.buffer
        zeros = bytes(SCRATCH)

        def keep(passed: bool) -> None:
            size = scratch.position
            if passed:
                position = sink.position
                if position + size > sink.limit:
                    sink.drain()
                    position = sink.position
                # The head last: a row whose first word is zero does not exist yet.
                trace[position + 8 : position + size] = buffer[8:size]
                trace[position : position + 8] = buffer[:8]
                sink.position = position + size
            if strings:
                buffer[:size] = zeros[:size]  # what pads a string is zero

        return keep

    def _controlled(
        self, control: EventControl, make: Make, test: RowTest | None, place: int | None
    ) -> Recorder:
        scratch, buffer = self._scratch, self._scratch.buffer
        record, keep = make(self._buffered), self._keeper(control.info)
        triggers = control.triggers
        needs_row = any(armed.trigger.needs_row for armed in triggers)
        returns = control.info.returns
        stack, here = self._hooks.stack, self._hooks.here

        def controlled(*hit: Any) -> None:
            thread: int = hit[0]
            where: int = hit[1] if returns else here() if place is None else place
            self._place = where
            was_off = control.off and not needs_row
            if not needs_row:
                for armed in triggers:
                    armed.fire(None, thread, where)
            recording = self.on
            scratch.position = 0
            record(*hit)
            later: list[Armed] = []
            if needs_row:
                for armed in triggers:
                    if armed.paused or (armed.test is not None and not armed.test(buffer, 0)):
                        continue
                    if armed.trigger.after:
                        later.append(armed)
                    else:
                        armed.fire(buffer, thread, where)
            passed = recording and not was_off and not control.off
            passed = passed and (test is None or test(buffer, 0))
            keep(passed)
            if passed and self.stacks:
                stack(thread, where)
            for armed in later:
                armed.fire(buffer, thread, where)

        return controlled

    @property
    def place(self) -> int:
        """Where the hit is that triggers see now."""
        return self._place

    # -- afterwards -----------------------------------------------------------------------

    def histograms(self) -> Iterator[bytes]:
        """The tables of all histograms, a line each, with an empty one before each table."""
        for table in self.tables():
            yield b""
            yield from table

    def tables(self) -> Iterator[list[bytes]]:
        """The lines of each histogram; one that events share comes once for each."""
        if not self._controls:
            return
        for key, info in self._events.items():
            control = self._controls.get(info.id)
            for armed in control.triggers if control is not None else ():
                if armed.table is not None:
                    head = f"# event: {key[0]}/{key[1]}".encode(errors="surrogateescape")
                    yield [head, *armed.table.lines(armed.trigger.condition, armed.paused)]


def split_option(option: str, text: str) -> tuple[str, str, str]:
    """Group, name and the rest of `GROUP/NAME:TEXT`.

    Raises:
        CommandError: it does not have that form.
    """
    event, colon, rest = text.partition(":")
    group, slash, name = event.partition("/")
    if not (colon and slash and group and name and rest):
        raise CommandError(f"{option} {text}: not of the form GROUP/NAME:TEXT")
    return group, name, rest

"""Filters and triggers of a trace's events: what happens at a hit before it is recorded.

An event with a filter or a trigger records into a scratch buffer first, as the kernel's events do
(trace_event_buffer_lock_reserve of kernel/trace/trace_events.c); what passes is copied into the
trace. The order of things is the kernel's: triggers without a condition, then the row, then
triggers with one, then the filter, then what acts behind the event.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from engine.arch.plan import Mode
from engine.arch.program import PredicateOp
from engine.errors import CommandError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.fetch.predicate import PredicateContext, RowTest, compile_predicate
from engine.probes.code_map import CodeMap
from engine.session.program.places import PlaceError
from engine.session.tracing.armed import (
    Armed,
    ControlHooks,
    EventControl,
    tables,
)
from engine.session.tracing.filter_buffer import Aside, Make
from engine.trace import sched
from engine.trace.filter import EventFilter, FilterMachine, FilterSyntaxError, parse_filter
from engine.trace.rows import EventInfo, EventSource
from engine.trace.trigger import EventTrigger, TriggerAction, TriggerError, parse_trigger

if TYPE_CHECKING:
    from engine.session.tracing.hist_triggers import HistTriggers


_ABOUT_SEVERAL: Final = (EventSource.SCHED, EventSource.KERNEL)
"""Sources of the scheduler's events, which are about several threads."""


class EventControls:
    """All filters and triggers of one trace.

    Attributes:
        on: whether the trace records (tracing_on).
        stacks: whether every event records its call stack.
        at_once: ids of events whose rows are taken while the guest stands at the hit.
        machine: what an event's filters are parsed for.
        behind: called behind each row that triggers have seen; None for nothing.
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
        self.at_once: set[int] = set()
        self._events = events
        self._context = context
        self._aside = Aside(context)
        self._hooks = hooks
        self.machine = machine
        self._predicates = PredicateContext(hooks.comm, hooks.read_cstring)
        self._controls: dict[int, EventControl] = {}
        self._histograms: HistTriggers | None = None
        self.behind: Callable[[], None] | None = None
        self._gated = False
        self._place = 0

    @property
    def chosen(self) -> Callable[[int], bool] | None:
        """The test of a thread's id for being recorded; None where all are."""
        return self._hooks.chosen

    # -- setting up -----------------------------------------------------------------------

    def of(self, info: EventInfo) -> EventControl:
        """The filter and the triggers of an event."""
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
            found = parse_filter(text, info, self.machine(info))
            passing = found if found.ops else None
        except FilterSyntaxError as error:
            if not lenient:
                raise
            refused, bad = str(error), error.readback
        control.filter, control.bad_filter = passing, bad
        self._hooks.changed(info)
        return refused

    @property
    def _counting(self) -> "HistTriggers":
        """The histograms; they are made for the first trigger that may be one."""
        if self._histograms is None:
            from engine.session.tracing.hist_triggers import HistTriggers  # few traces have any

            self._histograms = HistTriggers(self._hooks, lambda *name: self._events.get(name))
            self._histograms.scope.add = self.add_trigger
        return self._histograms

    def add_trigger(self, info: EventInfo, text: str) -> None:
        """Give an event a trigger, or take one away.

        Raises:
            ProbeError: it is not accepted.
        """
        control = self.of(info)
        scope = self._counting.scope if "hist" in text else None
        trigger = parse_trigger(text, info, self.machine(info), scope)
        if trigger.target is not None and trigger.target not in self._events:
            raise TriggerError(text, f"there is no event {'/'.join(trigger.target)}")
        if trigger.remove:
            self._remove(control, trigger, text)
        elif trigger.hist is None or not self._counting.update(control, trigger):
            armed = self._armed(control, trigger, text)
            if trigger.hist is None:
                control.triggers.insert(0, armed)
            else:
                control.triggers.append(armed)
            if trigger.kind.action is TriggerAction.SWITCH_TRACE and not self._gated:
                self._gated = True
                for other in self._events.values():
                    self._hooks.changed(other)
            if trigger.target is not None and trigger.kind.action is TriggerAction.SWITCH_EVENT:
                target = self._events[trigger.target]
                # What another event switches on is off until then; it cannot be hit by itself.
                if trigger.kind.on and target is not info:
                    self.of(target).off = True
                self._hooks.changed(target)
        self._hooks.changed(info)

    def arm(self, info: EventInfo, armed: Armed) -> None:
        """Give an event a trigger that no line describes."""
        self.of(info).triggers.append(armed)
        self._hooks.changed(info)

    def disarm(self, info: EventInfo, makes: int) -> None:
        """Take away from an event what makes another one, by its id."""
        control = self.of(info)
        control.triggers[:] = [armed for armed in control.triggers if armed.makes != makes]
        self._hooks.changed(info)

    def makes(self, synthetic: str) -> bool:
        """True if a trigger makes a synthetic event of that name."""
        return self._histograms is not None and self._histograms.makes(synthetic)

    def test(self, passing: EventFilter) -> RowTest:
        """Compile a filter for rows."""
        return compile_predicate(passing.ops, self._predicates)

    def _remove(self, control: EventControl, trigger: EventTrigger, text: str) -> None:
        if trigger.hist is not None:
            self._counting.remove(control, trigger)
            return
        for armed in control.triggers:
            if trigger.same_kind(armed.trigger):
                control.triggers.remove(armed)
                return
        raise TriggerError(text, "there is no such trigger", "ENOENT")

    def _armed(self, control: EventControl, trigger: EventTrigger, text: str) -> Armed:
        test = None
        if trigger.filter is not None:
            test = compile_predicate(trigger.filter.ops, self._predicates)
        if trigger.hist is not None:
            return self._counting.arm(control, trigger, test)
        for armed in control.triggers:
            if trigger.same_kind(armed.trigger):
                raise TriggerError(text, "the event has one of this kind", "EEXIST")
        return Armed(trigger, test, self._action(trigger), trigger.count)

    def _action(self, trigger: EventTrigger) -> Callable[[Any, int, int], bool]:
        hooks = self._hooks
        action = trigger.kind.action
        if action is TriggerAction.SWITCH_TRACE:
            wanted = trigger.kind.on

            def switch(data: Any, thread: int, place: int) -> bool:
                changes = self.on is not wanted
                self.on = wanted
                return changes

            return switch
        if action is TriggerAction.SWITCH_EVENT:
            assert trigger.target is not None
            target = self.of(self._events[trigger.target])
            off = not trigger.kind.on

            def turn(data: Any, thread: int, place: int) -> bool:
                changes = target.off is not off
                target.off = off
                return changes

            return turn
        if action is TriggerAction.SWITCH_HIST:
            assert trigger.target is not None
            counted, rests = self.of(self._events[trigger.target]), not trigger.kind.on

            def rest(data: Any, thread: int, place: int) -> bool:
                for armed in counted.triggers:
                    if armed.table is not None:
                        armed.paused = rests
                return True

            return rest
        if action is TriggerAction.SNAPSHOT:
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

    @property
    def wants_stacks(self) -> bool:
        """True if call stacks may be recorded as rows."""
        return self.stacks or any(
            armed.trigger.kind.action is TriggerAction.STACK
            for control in self._controls.values()
            for armed in control.triggers
        )

    def touches(self, info: EventInfo) -> bool:
        """True if an event does more than record."""
        return self._gated or self.stacks or info.id in self._controls or info.id in self.at_once

    def records_only(self, info: EventInfo) -> bool:
        """True if an event records each hit of any thread and does nothing else."""
        return not self.touches(info) and self._hooks.chosen is None

    # -- a hit ----------------------------------------------------------------------------

    def recorder(self, info: EventInfo, make: Make, place: int | None) -> Recorder:
        """The recorder of an event's probe, with all that the event does now.

        Args:
            info: the event.
            make: compiles it for a sink.
            place: the probe's address; a return event's place is where it returns to, a
                system call's (None) where the processor is.
        """
        record, chosen = self._recorder(info, make, place), self._hooks.chosen
        if info.id in self.at_once:
            record = self._taken_at_once(record)
        if chosen is None or (info.group == sched.GROUP and info.source in _ABOUT_SEVERAL):
            return record

        def of_chosen(thread: int, *hit: Any) -> None:
            if chosen(thread):
                record(thread, *hit)

        return of_chosen

    def _taken_at_once(self, record: Recorder) -> Recorder:
        """A recorder whose rows somebody looks at before the guest goes on."""
        drain = self._context.sink.drain

        def taken(*hit: Any) -> None:
            record(*hit)
            drain()

        return taken

    def _recorder(self, info: EventInfo, make: Make, place: int | None) -> Recorder:
        """The same, whichever thread hits it."""
        control = self._controls.get(info.id)
        if control is None and not self._gated and not self.stacks:
            return make(self._context)
        control = self.of(info)
        test = None
        if control.filter is not None:
            test = compile_predicate(control.filter.ops, self._predicates)
        simple = not control.triggers and not self._gated and not self.stacks
        if simple and not control.off and not self._switched(info):
            return make(self._context) if test is None else self._aside.filtered(info, make, test)
        return self._controlled(control, make, test, place)

    def passing(self, info: EventInfo, make: Make) -> Callable[..., bool] | None:
        """Tells whether a hit passes an event's filter, without a row; None without a filter.

        Args:
            info: the event.
            make: compiles its recorder.
        """
        control = self._controls.get(info.id)
        if control is None or control.filter is None:
            return None
        ops, made = control.filter.ops, list[tuple[Recorder, RowTest | None]]()
        scratch = self._aside.scratch

        def passes(*hit: Any) -> bool:
            if not made:  # nobody asks most of them
                made.append((make(self._aside.context), compile_predicate(ops, self._predicates)))
            record, test = made[0]
            scratch.position = 0
            record(*hit)
            passed = test is None or test(scratch.buffer, 0)
            if info.strings:
                scratch.buffer[: scratch.position] = bytes(scratch.position)
            return passed

        return passes

    def predicate(self, info: EventInfo) -> tuple[PredicateOp, ...] | None:
        """The filter of an event that does nothing but record what passes, () if all does.

        None for one that does more: see `recorder`.
        """
        control = self._controls.get(info.id)
        if self._gated or self.stacks or self._hooks.chosen is not None:
            return None
        if info.id in self.at_once:
            return None
        if control is None:
            return ()
        if control.triggers or control.off or self._switched(info):
            return None
        return control.filter.ops if control.filter is not None else ()

    def _switched(self, info: EventInfo) -> bool:
        """True if a trigger of some event turns this one on or off."""
        target = (info.group, info.name)
        return any(
            armed.trigger.target == target
            and armed.trigger.kind.action is TriggerAction.SWITCH_EVENT
            for control in self._controls.values()
            for armed in control.triggers
        )

    def _controlled(
        self, control: EventControl, make: Make, test: RowTest | None, place: int | None
    ) -> Recorder:
        scratch, buffer = self._aside.scratch, self._aside.scratch.buffer
        record, keep = make(self._aside.context), self._aside.keeper(control.info)
        triggers = control.triggers
        needs_row = any(armed.trigger.needs_row for armed in triggers)
        returns = control.info.returns
        stack, here = self._hooks.stack, self._hooks.here
        flush = self._flush
        if not triggers and test is None:
            return self._switchable(control, make(self._context), place)

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
                    if armed.trigger.kind.after:
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
            flush(where)

        return controlled

    def _flush(self, place: int) -> None:
        """Make the events that the histograms of a row have asked for."""
        if self._histograms is not None:
            self._histograms.flush(place)
        if self.behind is not None:
            self.behind()

    def _switchable(self, control: EventControl, record: Recorder, place: int | None) -> Recorder:
        """The same of an event that records all its hits while it is on."""
        returns, stack, here = control.info.returns, self._hooks.stack, self._hooks.here

        def switchable(*hit: Any) -> None:
            self._place = where = hit[1] if returns else here() if place is None else place
            if self.on and not control.off:
                record(*hit)
                if self.stacks:
                    stack(hit[0], where)

        return switchable

    @property
    def place(self) -> int:
        """The place of the hit that triggers see now."""
        return self._place

    # -- afterwards -----------------------------------------------------------------------

    def histograms(self) -> Iterator[bytes]:
        """The tables of all histograms, a line each, with an empty one before each table."""
        for table in self.tables():
            yield b""
            yield from table

    def take_tables(self, other: "EventControls") -> None:
        """Have the histograms count on from those of another trace of the same events."""
        for key, info in self._events.items():
            there = other._events.get(key)
            mine = self._controls.get(info.id)
            theirs = other._controls.get(there.id) if there is not None else None
            if mine is None or theirs is None:
                continue
            for armed in mine.triggers:
                table = armed.table
                for known in theirs.triggers:
                    same = armed.trigger.text == known.trigger.text
                    if table is not None and known.table and same:
                        table.take(known.table)

    def tables(self) -> Iterator[list[bytes]]:
        """The lines of each histogram; one that events share comes once for each."""
        yield from tables(
            (key, self._controls.get(info.id))
            for key, info in (self._events.items() if self._controls else ())
        )


class FilterNames:
    """Says what the filter of an event is parsed for; called with the event."""

    def __init__(self, mode: Mode, code_map: CodeMap) -> None:
        """Set up.

        Args:
            mode: kernel mode has the kernel's pointers only.
            code_map: finds functions.
        """
        self._strict = mode is not Mode.KERNEL
        self._placement = code_map

    def __call__(self, info: EventInfo) -> FilterMachine:
        """The names that a filter of an event may use."""
        if not info.symbolic and info.source is EventSource.PROBE:
            return FilterMachine(kernel_pointers=not self._strict)
        return FilterMachine(functions=self._function, kernel_pointers=not self._strict)

    def _function(self, name: str | int) -> tuple[int, int] | None:
        """(start, end) of a function of the guest, by its name or an address in it."""
        try:
            address = self._placement.symbol(name) if isinstance(name, str) else name
        except PlaceError:
            return None
        return None if address is None else self._placement.function(address)


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

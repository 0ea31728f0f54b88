"""Event probes of a session's trace: rows of other events make theirs, of their fields."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.program import Base, Source
from engine.errors import UnloggedError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.session.tracing.armed import Armed
from engine.session.tracing.triggers import EventControls
from engine.trace import sched
from engine.trace.definition import Deletion, named
from engine.trace.eventprobe import EventProbe, ProbedEvents, parse_definition
from engine.trace.fieldvalues import FieldReaders, GuestBytes, Words
from engine.trace.rows import EventInfo, EventSource, pack_row
from engine.trace.staging import put_row
from engine.trace.syscalls import ENTER, EXIT, event_name
from engine.trace.syscalls import GROUP as SYSCALLS
from engine.trace.tracepoints import Selection
from engine.trace.trigger import EventTrigger, TriggerAction, TriggerKind

_KIND: Final = TriggerKind("eprobe", TriggerAction.EVENT_PROBE)


class ProbedSystem(Struct, frozen=True):
    """The system whose events are probed.

    Attributes:
        arch: of the program or the kernel that runs.
        memory: gives the memory that arguments point to.
        attach: adds events that its kernel has without a definition.
        has: says if a (group, name) is one of those.
        others: those, in words; "" for the usual ones of programs.
    """

    arch: Arch
    memory: Callable[[], GuestBytes]
    attach: Callable[[Selection], None]
    has: Callable[[str, str], bool]
    others: str = ""


def has_program_event(arch: Arch) -> Callable[[str, str], bool]:
    """A function that says if programs of an architecture have an event without a definition."""

    def has(group: str, name: str) -> bool:
        if group == sched.GROUP:
            return name in sched.BY_NAME
        front = next((one for one in (ENTER, EXIT) if name.startswith(one)), "")
        calls = arch.linux.syscalls.values()
        return group == SYSCALLS and bool(front) and name[len(front) :] in map(event_name, calls)

    return has


class EventProbes:
    """The event probes of a trace; a `KernelEvents`.

    Attributes:
        silent: ids of events that are not recorded themselves: probes alone want them.
    """

    def __init__(
        self,
        system: ProbedSystem,
        infos: Mapping[tuple[str, str], EventInfo],
        controls: EventControls,
        context: FetchContext,
        *,
        strict: bool,
    ) -> None:
        """None is defined.

        Args:
            system: whose events they stand on.
            infos: all events of the trace by group and name.
            controls: their filters and triggers.
            context: of the trace's recorders.
            strict: they may stand on probes' events, too.
        """
        self.silent: set[int] = set()
        self._system = system
        self._all = infos
        self._controls = controls
        self._context = context
        self._strict = strict
        self._known: dict[int, EventProbe] = {}
        self._infos: dict[int, EventInfo] = {}
        self._lines: dict[int, str] = {}
        self._records: dict[int, Recorder] = {}
        self._unwanted: frozenset[int] = frozenset()
        self._made: deque[tuple[EventInfo, int, list[Words], int]] = deque()
        self._flushing = False
        controls.behind = self._flush

    @property
    def infos(self) -> list[EventInfo]:
        """The events in the order they were defined."""
        return list(self._infos.values())

    def choose(
        self, glob: str, number: Callable[[], int], known: Callable[[str], bool]
    ) -> list[EventInfo]:
        """Define an event.

        Args:
            glob: the line that does, as `eventprobe.parse_definition` reads it.
            number: the next free event id.
            known: is not asked: a line says itself which group its event is of.

        Raises:
            ProbeError: it is not accepted; one that is unwanted is recorded again.
        """
        for one in self._unwanted:
            if self._lines[one] == glob:
                self._unwanted -= {one}
                return []
        found = parse_definition(glob, self._events)
        info = found.info(number())
        self._known[info.id], self._infos[info.id] = found, info
        self._lines[info.id] = glob
        self._arm(found, info)
        return [info]

    def is_mine(self, info: EventInfo) -> bool:
        """True if an event is one of these."""
        return info.id in self._infos

    def make(self, info: EventInfo, context: FetchContext) -> Recorder:
        """Compile the recorder of one of the events."""
        return partial(_write, info, context)

    def install(self, info: EventInfo, record: Recorder) -> None:
        """Have an event recorded by a function of (thread, values, place)."""
        self._records[info.id] = record

    def record_only(self, globs: Sequence[str]) -> None:
        """Of the events only those with such definitions are recorded from now on."""
        self._unwanted = frozenset(
            number for number, line in self._lines.items() if line not in globs
        )

    def listed(self) -> list[tuple[str, str]]:
        """The definitions, as `dynamic_events` lists them and as lines that define them again."""
        return [(one.listing(), one.line) for one in self._known.values()]

    def on_probe(self, info: EventInfo) -> bool:
        """True if an event stands on a probe's, where Linux has none."""
        known = self._known.get(info.id)
        return known is not None and known.attached.source is EventSource.PROBE

    # -- the other events -----------------------------------------------------------------

    def wanted(self, info: EventInfo) -> None:
        """An event that was silent is to be recorded itself, too."""
        if info.id in self.silent:
            self.silent.discard(info.id)
            self._controls.of(info).off = False

    def of_group(self, group: str) -> tuple[str, ...]:
        """Names of the silent events of a group."""
        return tuple(
            one.name for one in self._all.values() if one.group == group and one.id in self.silent
        )

    def on(self, info: EventInfo) -> list[EventInfo]:
        """The probes on an event."""
        return [self._infos[at] for at, one in self._known.items() if one.attached.id == info.id]

    def matching(self, deletion: Deletion) -> list[EventInfo]:
        """The events that a line takes away (eprobe_dyn_event_match)."""
        return [self._infos[at] for at, one in self._known.items() if _is_meant(one, deletion)]

    def remove(self, info: EventInfo) -> None:
        """Take one of the events away.

        Raises:
            UnloggedError: it has triggers.
        """
        if self._controls.of(info).triggers:
            raise UnloggedError(f"{info}: it has triggers, which are to go before", "EBUSY")
        self._controls.disarm(self._known[info.id].attached, info.id)
        for each in (self._known, self._infos, self._lines, self._records):
            each.pop(info.id, None)

    @property
    def _events(self) -> ProbedEvents:
        arch, machine = self._system.arch, self._controls.machine
        found = ProbedEvents(arch, self._find, self._is_taken, self._symbol, machine)
        return replace(found, others=self._system.others) if self._system.others else found

    def _symbol(self, name: str) -> Base | None:
        known = self._context.where(name) is not None
        return Base(Source.SYMBOL, text=name.encode(errors="surrogateescape")) if known else None

    def _find(self, group: str, name: str) -> EventInfo | None:
        found = self._all.get((group, name))
        if found is None and self._system.has(group, name):
            before = set(self._all)
            self._system.attach(Selection(group, name))
            for key, info in self._all.items():
                if key not in before:
                    self.silent.add(info.id)
                    self._controls.of(info).off = True
            found = self._all.get((group, name))
        if found is None or found.source is EventSource.EPROBE:
            return None
        return None if found.source is EventSource.PROBE and not self._strict else found

    def _is_taken(self, group: str, name: str) -> bool:
        return (group, name) in self._all or self._system.has(group, name)

    # -- hits -----------------------------------------------------------------------------

    def _arm(self, probe: EventProbe, info: EventInfo) -> None:
        """Have the other event's rows make those of a probe."""
        readers = FieldReaders(self._context, self._system.memory)
        values = readers.of(probe.args, probe.attached)

        def take(data: Any, thread: int, place: int) -> bool:
            if info.id not in self._unwanted:
                self._made.append((info, thread, values(data, thread), place))
            return True

        test = None if probe.filter is None else self._controls.test(probe.filter)
        trigger = EventTrigger(_KIND, filter=probe.filter, condition=probe.condition)
        self._controls.arm(probe.attached, Armed(trigger, test, take, None, makes=info.id))

    def _flush(self) -> None:
        """Record the events that a row of another one has made, behind it."""
        if self._flushing:
            return
        self._flushing = True
        try:
            while self._made:
                info, thread, values, place = self._made.popleft()
                record = self._records.get(info.id)
                if record is not None:
                    record(thread, values, place)
        finally:
            self._flushing = False


def _is_meant(probe: EventProbe, deletion: Deletion) -> bool:
    if not named(deletion, probe.group, probe.name):
        return False
    given = [f"{arg.name}={arg.text}" for arg in probe.args][: len(deletion.args)]
    here = deletion.place.replace("/", ".", 1) in ("", probe.source)
    return here and given == list(deletion.args)


def _write(
    info: EventInfo, context: FetchContext, thread: int, values: list[Words], place: int
) -> None:
    words = [word for each in values for word in each]
    put_row(context.sink, pack_row(info, thread, context.cpu.now(), place, words))

"""The events of one trace, by number and by name, and the probes that make them."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec import Struct, field

from engine.arch.plan import Mode
from engine.arch.program import EVENT_LOW, EVENT_MOST, RecordLayout
from engine.errors import CommandError, ProbeError
from engine.probes.kprobe import Kprobe
from engine.session.program.places import Place
from engine.trace.definition import Definition
from engine.trace.formats import FORMAT_NAMES, Format, format_named
from engine.trace.rows import EventInfo

_SHOWN: Final = 10


class TraceEvent(Struct):
    """An event and its probes.

    Attributes:
        info: what its rows are.
        defined: the lines that make it, siblings included.
        probes: one for each place of them, or of a pattern.
    """

    info: EventInfo
    defined: list["Defined"] = field(default_factory=list)
    probes: list[Kprobe] = field(default_factory=list)


class Defined(Struct, frozen=True, eq=False):
    """A definition that was carried out.

    Attributes:
        definition: it.
        places: where.
        probes: one for each place.
    """

    definition: Definition
    places: tuple[Place, ...]
    probes: tuple[Kprobe, ...]


class EventLimit(Struct, frozen=True):
    """The number of events that there may be.

    Attributes:
        most: the highest id.
        why: none is higher, in words.
    """

    most: int
    why: str

    @classmethod
    def of(cls, kind: type[Format], mode: Mode) -> "EventLimit":
        """That of an output format: in kernel mode Linux's (TRACE_EVENT_TYPE_MAX)."""
        if mode is Mode.KERNEL:
            return cls(EVENT_LOW, "Linux has no ids for more (ENODEV)")
        more = ""
        if kind.event_most < EVENT_MOST:
            others = []
            for name in FORMAT_NAMES:
                with suppress(CommandError):  # a library is not there
                    if format_named(name).event_most > kind.event_most:
                        others.append(name)
            more = f"; these have: {', '.join(others)}"
        return cls(kind.event_most, f"--format {kind.name} has no ids for more{more}")


class EventSet:
    """All events of a trace.

    Attributes:
        events: those of definitions and patterns, by group and name, in the order of definition.
        infos: what rows are, by group and name, in the same order, the kernel's own included.
        table: the same by number, with the events that have no name of the user's.
    """

    def __init__(self, limit: EventLimit) -> None:
        """None yet."""
        self._limit = limit
        self.events: dict[tuple[str, str], TraceEvent] = {}
        self.infos: dict[tuple[str, str], EventInfo] = {}
        self.table: dict[int, EventInfo] = {}

    def add(self, make: Callable[[int], EventInfo]) -> EventInfo:
        """Add an event to the table alone.

        Args:
            make: describes it, given its number.

        Raises:
            CommandError: there are too many.
        """
        number = self._number(len(self.table) + 1)
        info = self.table[number] = make(number)
        return info

    def add_each(
        self, choose: Callable[[Callable[[], int]], Iterable[EventInfo]]
    ) -> list[EventInfo]:
        """Add events that are described together.

        Args:
            choose: describes them, given what gives the next number.

        Raises:
            CommandError: there are too many; none is added then.
        """
        taken = len(self.table)

        def number() -> int:
            nonlocal taken
            taken += 1
            return self._number(taken)

        found = list(choose(number))
        for info in found:
            self._put(info)
        return found

    def named(self, group: str, name: str, layout: RecordLayout, kind: str) -> TraceEvent:
        """The event of a definition, made if it is not there yet.

        Raises:
            ProbeError: an event of the kernel's has that name.
            CommandError: there are too many.
        """
        event = self.events.get((group, name))
        if event is None:
            if (group, name) in self.infos:
                raise ProbeError(f"{group}/{name} is an event of the kernel's")
            number = self._number(len(self.table) + 1)
            info = EventInfo.of(number, group, name, layout, symbolic=kind == "kprobe")
            self._put(info)
            event = self.events[group, name] = TraceEvent(info)
        return event

    def forget(self, group: str, name: str) -> None:
        """Take an event's name away; rows with its number still say what they are."""
        del self.events[group, name], self.infos[group, name]

    def info(self, group: str, name: str) -> EventInfo:
        """The description of an event's rows.

        Raises:
            ProbeError: there is no such event.
        """
        found = self.infos.get((group, name))
        if found is None:
            known = ", ".join("/".join(key) for key in list(self.infos)[:_SHOWN])
            raise ProbeError(f"there is no event {group}/{name}; there are {known or 'none'}")
        return found

    def _put(self, info: EventInfo) -> None:
        self.table[info.id] = info
        self.infos[info.group, info.name] = info

    def _number(self, which: int) -> int:
        """The id of the first, second, ... event: one whose low half is not 0."""
        number = which + (which - 1) // EVENT_LOW
        if number > self._limit.most:
            raise CommandError(f"more than {which - 1} events: {self._limit.why}")
        return number

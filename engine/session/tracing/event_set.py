"""The events of one trace, by number and by name, and the probes that make them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct

from engine.arch.plan import Mode
from engine.arch.program import EVENT_LOW, EVENT_MOST, RecordLayout
from engine.errors import CommandError, ProbeError
from engine.probes.kprobe import Kprobe, RowOfAny
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.wanted_probes import Wanted
from engine.session.program.places import Place
from engine.trace.definition import Definition
from engine.trace.formats import FORMAT_NAMES, Format, format_named
from engine.trace.rows import EventInfo, Forms

_SHOWN: Final = 10


class Preparer(Protocol):
    """Compiles the recorder of a probe whose address is known."""

    def __call__(
        self, probe: Kprobe, space: ProbedSpace, place: Place, number: int, layout: RecordLayout
    ) -> None:
        """Compile it, for rows of an event and of a layout."""


class Sharer(Protocol):
    """Finds what records hits of probes that are not prepared."""

    def __call__(
        self, probe: Kprobe, space: ProbedSpace, number: int, layout: RecordLayout
    ) -> RowOfAny | None:
        """Find it, for rows of an event and of a layout; None where nothing can."""


def unprepared(
    probe: Kprobe, space: ProbedSpace, place: Place, number: int, layout: RecordLayout
) -> None:
    """The events have no probes of a session; a `Preparer`."""


def never_shared(
    probe: Kprobe, space: ProbedSpace, number: int, layout: RecordLayout
) -> RowOfAny | None:
    """Each probe is prepared; a `Sharer`."""
    return None


class EventKind(Struct, frozen=True, eq=False):
    """The things that many events share.

    Attributes:
        layout: how their rows are laid out.
        prepare: prepares their probes.
        share: finds what records hits of those that are not prepared.
    """

    layout: RecordLayout
    prepare: Preparer
    share: Sharer = never_shared


class TraceEvent(Struct, eq=False):
    """An event and its probes; prepares those whose rows are of its layout (a `Ready`).

    There may be a million of them.

    Attributes:
        info: what its rows are.
        kind: what others have in common with it.
    """

    info: EventInfo
    kind: EventKind
    _lines: "Defined | list[Defined] | None" = None
    _patterned: list[Kprobe] | None = None

    def __call__(self, probe: Kprobe, space: ProbedSpace, place: Place) -> None:
        """Prepare a probe."""
        self.kind.prepare(probe, space, place, self.info.id, self.kind.layout)

    def once(self, probe: Kprobe, space: ProbedSpace) -> RowOfAny | None:
        """Find something that records a hit of a probe that is not prepared, if anything can."""
        return self.kind.share(probe, space, self.info.id, self.kind.layout)

    @property
    def defined(self) -> "Sequence[Defined]":
        """The lines that make it, siblings included."""
        lines = self._lines
        return lines if isinstance(lines, list) else () if lines is None else (lines,)

    @property
    def probes(self) -> list[Kprobe]:
        """One for each place of them, or of a pattern."""
        lines = self._lines
        if isinstance(lines, Defined) and self._patterned is None:
            return list(lines.probes)  # as most of a million have
        return [*(probe for one in self.defined for probe in one.probes), *(self._patterned or ())]

    def add(self, line: "Defined") -> None:
        """A line makes it, too."""
        if isinstance(self._lines, list):
            self._lines.append(line)
        else:
            self._lines = line if self._lines is None else [self._lines, line]

    def add_patterned(self, probe: Kprobe) -> None:
        """A probe of a pattern makes it, too."""
        if self._patterned is None:
            self._patterned = [probe]
        else:
            self._patterned.append(probe)

    def remove(self, gone: "Collection[Defined]") -> None:
        """Lines make it no longer."""
        left = [line for line in self.defined if line not in gone]
        self._lines = left if len(left) > 1 else left[0] if left else None


class Defined(Struct, frozen=True, eq=False):
    """A definition that was carried out.

    There may be a million of them: what its line says by itself is not kept besides.

    Attributes:
        what: it, or its line.
        given: its probes and their places; alone where it has one.
        event: what it makes.
        read: reads the line again.
    """

    what: Definition | str
    given: Wanted | tuple[Wanted, ...]
    event: TraceEvent
    read: Callable[[str], Definition]

    @property
    def definition(self) -> Definition:
        """It, as read."""
        return self.what if isinstance(self.what, Definition) else self.read(self.what)

    @property
    def name(self) -> tuple[str, str]:
        """Group and name of its event: no line is read for that."""
        info = self.event.info
        return info.group, info.name

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """The definition's probes and their places."""
        return self.given if isinstance(self.given, tuple) else (self.given,)

    @property
    def places(self) -> tuple[Place, ...]:
        """The places that it means."""
        return tuple(one.place for one in self.wanted)

    @property
    def probes(self) -> tuple[Kprobe, ...]:
        """One for each place."""
        given = self.given
        return (given.probe,) if isinstance(given, Wanted) else tuple(one.probe for one in given)


class DormantEvents(Protocol):
    """Events of lines alike that have no objects yet; whoever asks for one wakes it."""

    def __len__(self) -> int:
        """The number of them, those that have woken included."""

    def named(self, name: str) -> TraceEvent:
        """The event with a name."""

    def info(self, event_id: int) -> EventInfo:
        """The description of the rows of the event with an id; it does not wake."""

    def id_of(self, name: str) -> int:
        """The id of the event with a name; it does not wake."""

    def lines(self) -> list[Defined]:
        """The definitions, in order."""


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
        """Return the limit of an output format: in kernel mode Linux's (TRACE_EVENT_TYPE_MAX)."""
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


class NamedEvents(Mapping[tuple[str, str], TraceEvent]):
    """Events by group and name, in the order of definition."""

    def __init__(self) -> None:
        """None yet."""
        # No key of its own for each, and for dormant ones no value either.
        self._groups: dict[str, dict[str, TraceEvent | DormantEvents]] = {}

    def __getitem__(self, key: tuple[str, str]) -> TraceEvent:
        found = self._groups[key[0]][key[1]]
        return found if isinstance(found, TraceEvent) else found.named(key[1])

    def __setitem__(self, key: tuple[str, str], event: TraceEvent) -> None:
        self._groups.setdefault(key[0], {})[key[1]] = event

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and key[1] in self._groups.get(key[0], ())

    def leave(self, group: str, name: str, dormant: DormantEvents) -> None:
        """An event without an object has a name."""
        self._groups.setdefault(group, {})[name] = dormant

    def __delitem__(self, key: tuple[str, str]) -> None:
        del self._groups[key[0]][key[1]]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        if len(self._groups) < 2:
            return iter([(group, name) for group, each in self._groups.items() for name in each])
        found = [
            (event.info.id if isinstance(event, TraceEvent) else event.id_of(name), group, name)
            for group, each in self._groups.items()
            for name, event in each.items()
        ]
        return ((group, name) for _, group, name in sorted(found))

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def awake(self) -> list[TraceEvent]:
        """Return the events that are not dormant, by number: all that can have been hit."""
        found = [
            event
            for each in self._groups.values()
            for event in each.values()
            if isinstance(event, TraceEvent)
        ]
        return sorted(found, key=lambda event: event.info.id)


class NamedInfos(Mapping[tuple[str, str], EventInfo]):
    """Descriptions of rows by group and name, in the order of definition, the kernel's included.

    Attributes:
        others: of events that have no probes.
    """

    def __init__(self, events: NamedEvents) -> None:
        """Begin with the events of definitions."""
        self._events = events
        self.others: dict[tuple[str, str], EventInfo] = {}

    def __getitem__(self, key: tuple[str, str]) -> EventInfo:
        found = self.others.get(key)
        return self._events[key].info if found is None else found

    def __contains__(self, key: object) -> bool:
        return key in self.others or key in self._events

    def awake(self) -> list[EventInfo]:
        """Return the descriptions of events that are not dormant, in the same order."""
        infos = [*(event.info for event in self._events.awake()), *self.others.values()]
        return sorted(infos, key=lambda info: info.id)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        if not self.others:
            return iter(self._events)
        infos = [*(event.info for event in self._events.values()), *self.others.values()]
        infos.sort(key=lambda info: info.id)
        return ((info.group, info.name) for info in infos)

    def __len__(self) -> int:
        return len(self._events) + len(self.others)


class NumberedEvents(Mapping[int, EventInfo]):
    """Events by number; numbers are given in order, with few gaps."""

    def __init__(self) -> None:
        """None yet."""
        self._infos: list[EventInfo | DormantEvents | None] = [None]
        self._count = 0

    def put(self, number: int, info: EventInfo | DormantEvents) -> None:
        """Add one with a number that is higher than all so far, or that of a dormant event."""
        self._infos += [None] * (number - len(self._infos))
        self._infos.append(info)
        self._count += 1

    def woke(self, info: EventInfo) -> None:
        """A dormant one has an object from now on."""
        self._infos[info.id] = info

    def __getitem__(self, number: int) -> EventInfo:
        found = self._infos[number] if 0 < number < len(self._infos) else None
        if found is None:
            raise KeyError(number)
        return found if isinstance(found, EventInfo) else found.info(number)

    def __iter__(self) -> Iterator[int]:
        return (number for number, info in enumerate(self._infos) if info is not None)

    def __len__(self) -> int:
        return self._count


class EventSet:
    """All events of a trace.

    Attributes:
        events: those of definitions and patterns, by group and name, in the order of definition.
        infos: what rows are, by group and name, in the same order, the kernel's own included.
        table: the same by number, with the events that have no name of the user's.
    """

    def __init__(
        self, limit: EventLimit, prepare: Preparer = unprepared, share: Sharer = never_shared
    ) -> None:
        """None yet.

        Args:
            limit: of their number.
            prepare: prepares their probes.
            share: finds what records hits of those that are not prepared.
        """
        self._limit = limit
        self._prepare, self._share = prepare, share
        self.events = NamedEvents()
        self.infos = NamedInfos(self.events)
        self.table = NumberedEvents()
        self._kind: EventKind | None = None  # of the event that was made last

    def add(self, make: Callable[[int], EventInfo]) -> EventInfo:
        """Add an event to the table alone.

        Args:
            make: describes it, given its number.

        Raises:
            CommandError: there are too many.
        """
        number = self._number(len(self.table) + 1)
        info = make(number)
        self.table.put(info.id, info)
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
        more = 0

        def number() -> int:
            nonlocal more
            more += 1
            return self._number(len(self.table) + more)  # to choose some may add others first

        found = list(choose(number))
        for info in found:
            self.table.put(info.id, info)
            self.infos.others[info.group, info.name] = info
        return found

    def named(
        self, group: str, name: str, layout: RecordLayout, kind: str, forms: Forms = ()
    ) -> TraceEvent:
        """The event of a definition, made if it is not there yet.

        Args:
            group: first part of its name.
            name: second part.
            layout: of its rows.
            kind: of its probes, as `Definition.kind`.
            forms: how its values are shown.

        Raises:
            ProbeError: an event of the kernel's has that name.
            CommandError: there are too many.
        """
        event = self.events.get((group, name))
        if event is None:
            if (group, name) in self.infos.others:
                raise ProbeError(f"{group}/{name} is an event of the kernel's")
            number = self._number(len(self.table) + 1)
            symbolic = kind == "kprobe"
            info = EventInfo.of(number, group, name, layout, symbolic, forms)
            self.table.put(info.id, info)
            if self._kind is None or self._kind.layout is not layout:
                self._kind = EventKind(layout, self._prepare, self._share)
            event = self.events[group, name] = TraceEvent(info, self._kind)
        return event

    def is_free(self, group: str, name: str) -> bool:
        """True if no event has a name."""
        return (group, name) not in self.infos

    def leave(self, group: str, name: str, dormant: DormantEvents) -> int:
        """Add an event without an object, whose name is free; its id.

        Raises:
            CommandError: there are too many.
        """
        number = self._number(len(self.table) + 1)
        self.table.put(number, dormant)
        self.events.leave(group, name, dormant)
        return number

    def woke(self, event: TraceEvent) -> None:
        """A dormant event has an object from now on."""
        self.table.woke(event.info)
        self.events[event.info.group, event.info.name] = event

    def free_name(self, group: str, name: str, layout: RecordLayout, forms: Forms) -> str:
        """A name for an event with such rows: with a number behind it where others have it."""
        found, number = name, 0
        while (event := self.events.get((group, found))) is not None:
            if event.info == EventInfo.of(
                event.info.id, group, found, layout, event.info.symbolic, forms
            ):
                break
            number += 1
            found = f"{name}_{number}"
        return found

    def drop(self, info: EventInfo) -> None:
        """Take the name of an event without probes away; rows still say what they are."""
        self.infos.others.pop((info.group, info.name), None)

    def forget(self, group: str, name: str) -> None:
        """Take an event's name away; rows with its number still say what they are."""
        del self.events[group, name]

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

    def _number(self, which: int) -> int:
        """The id of the first, second, ... event: one whose low half is not 0."""
        number = which + (which - 1) // EVENT_LOW
        if number > self._limit.most:
            raise CommandError(f"more than {which - 1} events: {self._limit.why}")
        return number

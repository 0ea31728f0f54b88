"""The number of events: Linux's in kernel mode, as many as a format can tell apart else."""

from typing import ClassVar

import pytest

from engine.arch.plan import Mode
from engine.arch.program import EVENT_LOW, EVENT_MOST, RecordLayout
from engine.errors import CommandError
from engine.session.tracing.event_set import Defined, EventKind, EventLimit, EventSet, TraceEvent
from engine.trace.formats import FORMAT_NAMES, format_named
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.rows import EventInfo

_LAYOUT = RecordLayout.of(())


class NarrowFormat(FtraceFormat):
    """A format with 16 bits for the id."""

    name: ClassVar[str] = "narrow"
    event_most: ClassVar[int] = EVENT_LOW


def filled(limit: EventLimit, count: int) -> EventSet:
    found = EventSet(limit, lambda *probed: None)
    for which in range(count):
        found.named("g", f"e{which}", _LAYOUT, "kprobe")
    return found


WIDE = [kind for kind in map(format_named, FORMAT_NAMES) if kind.event_most > EVENT_LOW]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=kind.name, marks=[pytest.mark.slow] if number else [])
        for number, kind in enumerate(WIDE)
    ],
)
def test_strict_mode_takes_more_than_linux(kind: type[FtraceFormat]) -> None:
    found = filled(EventLimit.of(kind, Mode.STRICT), 3 * EVENT_LOW)
    assert len(found.table) == 3 * EVENT_LOW
    assert all(number & EVENT_LOW for number in found.table)
    assert all(info.id == number for number, info in found.table.items())
    assert list(found.table)[EVENT_LOW - 1 : EVENT_LOW + 1] == [EVENT_LOW, EVENT_LOW + 2]


def test_kernel_mode_refuses_as_linux_does() -> None:
    found = filled(EventLimit.of(FtraceFormat, Mode.KERNEL), EVENT_LOW)
    with pytest.raises(CommandError, match=r"more than 65535 events: Linux .* \(ENODEV\)"):
        found.named("g", "more", _LAYOUT, "kprobe")
    with pytest.raises(CommandError, match="more than 65535 events"):
        found.add(lambda number: EventInfo(number, "g", "more", ()))
    with pytest.raises(CommandError, match="more than 65535 events"):
        found.add_each(lambda number: [EventInfo(number(), "g", "more", ())])
    assert len(found.table) == EVENT_LOW


def test_a_format_with_narrow_ids_names_those_that_have_wide_ones() -> None:
    found = filled(EventLimit.of(NarrowFormat, Mode.STRICT), EVENT_LOW)
    others = ", ".join(kind.name for kind in WIDE)
    text = f"more than 65535 events: --format narrow has no ids for more; these have: {others}"
    with pytest.raises(CommandError) as caught:
        found.named("g", "more", _LAYOUT, "kprobe")
    assert str(caught.value) == text


def test_there_is_an_end() -> None:
    """The last id of all is still one that a row can have."""
    limit = EventLimit.of(FtraceFormat, Mode.STRICT)
    assert limit.most == EVENT_MOST
    assert limit.why == "--format ftrace has no ids for more"


class Dormant:
    """Events of which one wakes at a time; a `DormantEvents`."""

    def __init__(self, found: EventSet, *names: str) -> None:
        self.found = found
        self.ids = {name: found.leave("g", name, self) for name in names}

    def __len__(self) -> int:
        return len(self.ids)

    def named(self, name: str) -> TraceEvent:
        kind = EventKind(_LAYOUT, lambda *probed: None)
        event = TraceEvent(self.info(self.ids[name]), kind)
        self.found.woke(event)
        return event

    def info(self, event_id: int) -> EventInfo:
        name = next(name for name, number in self.ids.items() if number == event_id)
        return EventInfo.of(event_id, "g", name, _LAYOUT)

    def id_of(self, name: str) -> int:
        return self.ids[name]

    def lines(self) -> list[Defined]:
        raise NotImplementedError


@pytest.mark.parametrize("group", ["g", "h"])
def test_dormant_events_are_known_by_name_and_number(group: str) -> None:
    """They wake when they are asked for by name."""
    found = EventSet(EventLimit.of(FtraceFormat, Mode.STRICT))
    found.named(group, "first", _LAYOUT, "kprobe")
    Dormant(found, "a", "b", "c")
    found.named(group, "last", _LAYOUT, "kprobe")
    found.infos.others["k", "own"] = found.add(lambda number: EventInfo(number, "k", "own", ()))
    names = [(group, "first"), ("g", "a"), ("g", "b"), ("g", "c"), (group, "last")]

    def awake() -> list[str]:
        assert [info for info in found.infos.awake() if info.group != "k"] == [
            event.info for event in found.events.awake()
        ]
        return [info.name for info in found.infos.awake()]

    assert len(found.events) == len(found.table) - 1 == 5
    assert list(found.events) == names
    assert [found.table[number].name for number in found.table] == [
        *(name for _, name in names),
        "own",
    ]
    assert ("g", "b") in found.events
    assert ("g", "b") in found.infos
    assert ("g", "none") not in found.infos
    assert not found.is_free("g", "b")
    assert found.is_free("g", "d")
    assert awake() == ["first", "last", "own"]
    event = found.events["g", "b"]
    assert found.events["g", "b"] is event
    assert found.table[3] is event.info is found.infos["g", "b"]
    assert list(found.events) == names
    assert awake() == ["first", "b", "last", "own"]
    assert list(found.infos) == [*names, ("k", "own")]
    found.forget("g", "b")
    assert found.is_free("g", "b")
    assert found.table[3] is event.info

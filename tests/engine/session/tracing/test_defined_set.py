"""What a new definition is compared with: the same outcome as with all, for the work of a few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workcount import calls

from engine.arch import by_name
from engine.arch.program import RecordLayout
from engine.errors import ProbeError
from engine.session.tracing.defined_set import DefinedSet
from engine.session.tracing.event_set import Defined, EventKind, TraceEvent
from engine.trace.definition import Definition, compatible, parse
from engine.trace.rows import EventInfo

_ARCH = by_name("x86_64")
_HEADS = ("p", "r")
_PLACES = ("f", "f+4", "h", "/l:0x10", "/l:0x20", "/l:0x10(0x40)", "/l:0x10(0x48)")
_ARGS = ("", " a=%ax", " a=%bx", " a=%ax:u8", " b=%ax")


def definition(line: str) -> Definition:
    parsed = parse(line, _ARCH)
    assert isinstance(parsed, Definition)
    return parsed


def carried_out(line: Definition) -> Defined:
    """A definition without places, and its event."""
    layout = RecordLayout.of(line.args, line.is_return)
    info = EventInfo.of(1, line.group, line.event, layout)
    event = TraceEvent(info, EventKind(layout, lambda *probe: None))
    return Defined(line, (), event, definition)


LINE = st.builds(
    lambda head, name, place, args: definition(f"{head}:g/{name} {place}{args}"),
    st.sampled_from(_HEADS),
    st.sampled_from(("a", "b", "c")),
    st.sampled_from([place for place in _PLACES if "+" not in place]),
    st.sampled_from(_ARGS),
)


def outcome(check: object) -> str:
    try:
        assert callable(check)
        check()
    except ProbeError as error:
        return str(error)
    return ""


@given(st.lists(st.tuples(LINE, st.integers(0, 8)), max_size=40))
def test_the_first_objection_is_that_of_a_comparison_with_all(
    steps: list[tuple[Definition, int]],
) -> None:
    found, kept = DefinedSet(), list[Defined]()
    for line, gone in steps:

        def all_of_them(line: Definition = line) -> None:
            for earlier in kept:
                compatible(earlier.definition, line)

        def some(line: Definition = line) -> None:
            name = (line.group, line.event)
            named = [d for d in kept if (d.definition.group, d.definition.event) == name]
            found.agree(line, named)

        expected = outcome(all_of_them)
        assert outcome(some) == expected
        if not expected:
            done = carried_out(line)
            kept.append(done)
            found.add(done, line)
        if gone < len(kept):
            found.remove([kept.pop(gone)])
        assert list(found) == kept
        assert len(found) == len(kept)
        assert all(done in found for done in kept)


@pytest.mark.parametrize("form", ["p:g/e{0} f{0}", "p:g/e f{0}", "p:g/e{0} /l:{0}(0x40)"])
def test_work_grows_with_the_number_of_definitions(form: str) -> None:
    """Of their own names, of one name, with reference counters: not with its square."""

    def carry_out(count: int) -> int:
        lines = [definition(form.format(number)) for number in range(count)]
        found, named = DefinedSet(), dict[str, list[Defined]]()

        def work() -> None:
            for line in lines:
                siblings = named.setdefault(line.event, [])
                found.agree(line, siblings)
                done = carried_out(line)
                siblings.append(done)
                found.add(done, line)

        return calls(work, 100 * count)

    few, many = carry_out(100), carry_out(400)
    assert many <= 4.2 * few


class Dormant:
    """Two lines that wake; a `DormantEvents`."""

    def __init__(self, *names: str) -> None:
        self.names, self.woken = names, 0

    def __len__(self) -> int:
        return len(self.names)

    def lines(self) -> list[Defined]:
        self.woken += 1
        return [carried_out(definition(f"p:g/{name} f")) for name in self.names]

    def named(self, name: str) -> TraceEvent:
        raise NotImplementedError

    def info(self, event_id: int) -> EventInfo:
        raise NotImplementedError

    def id_of(self, name: str) -> int:
        raise NotImplementedError


def test_dormant_lines_have_their_place_in_the_order() -> None:
    found, dormant = DefinedSet(), [Dormant("a", "b"), Dormant("d"), Dormant("e"), Dormant("h")]
    found.add_dormant(dormant[0])
    for name, behind in (("c", dormant[1:3]), ("f", []), ("g", dormant[3:])):
        line = definition(f"p:g/{name} f")
        found.add(carried_out(line), line)
        for events in behind:
            found.add_dormant(events)
    assert len(found) == 8
    assert not any(events.woken for events in dormant)
    assert "".join(one.name[1] for one in found) == "abcdefgh"
    lines = list(found)
    assert all(one in found for one in lines)
    found.remove(lines[1:4])
    assert list(found) == lines[:1] + lines[4:]
    assert len(found) == 5
    assert [events.woken for events in dormant] == [1, 1, 1, 1]

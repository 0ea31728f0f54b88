"""The event store against a plain list of everything that was recorded."""

from collections import Counter
from itertools import groupby

import pytest
from eventkit import FACT, INFOS, NAMES, OPEN, RET, fact, facts, opened, ret
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.trace.formats.base import Names
from engine.trace.rows import Event, decode
from tui.filters import FilterError, compile_filter
from tui.lineindex import Fold
from tui.store import EventStore

EVENTS = {info.id: info for info in INFOS}

rows = st.one_of(
    st.builds(fact, st.just(0), st.integers(-2, 2), st.sampled_from((7, 8))),
    st.builds(ret, st.just(0), st.integers(0, 2), st.integers(0, 3)),
    st.builds(
        opened,
        st.just(0),
        st.binary(max_size=12).map(lambda b: b.replace(b"\0", b"/")),
        st.integers(-1, 1),
    ),
)


def text_of(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


filters: dict[str, object] = {
    "": lambda event, values: True,
    "n<1": lambda event, values: "n" in values and values["n"] < 1,
    "fa*": lambda event, values: event.name.startswith("fa"),
    "name==open": lambda event, values: event.name == "open",
    "name!=open && fd==0": lambda event, values: False,
    "fd==0||ret>=0x1": lambda event, values: values.get("fd") == 0 or values.get("ret", 0) >= 1,
    "tid==8": lambda event, values: event.thread_id == 8,
    'path~"*a*"': lambda event, values: "a" in text_of(values.get("path", b"")),
}


def values_of(event: Event) -> dict[str, object]:
    names = [column.name for column in EVENTS[event.id].columns]
    return dict(zip(names, event.values, strict=True))


def oracle(everything: list[bytes], kept: int, text: str, fold: Fold) -> list[tuple[int, int]]:
    """(row, rows folded into it) of each line: worked out the slow way."""
    wanted = filters[text]
    assert callable(wanted)
    numbered = [(number, decode(EVENTS, row)) for number, row in enumerate(everything)]
    shown = [(number, event) for number, event in numbered if wanted(event, values_of(event))]

    def key(item: tuple[int, Event]) -> object:
        number, event = item
        if fold is Fold.NONE:
            return number
        if fold is Fold.EVENT:
            return event.id, event.thread_id
        return event.id, event.thread_id, event.address, event.values

    groups = [list(group) for _, group in groupby(shown, key)]
    lines = [(group[-1][0], len(group)) for group in groups]
    return [line for line in lines if line[0] >= len(everything) - kept]


@settings(max_examples=80, deadline=None)
@given(
    batches=st.lists(st.lists(rows, max_size=30), max_size=8),
    capacity=st.integers(1, 80),
    text=st.sampled_from(sorted(filters)),
    fold=st.sampled_from(Fold),
    late=st.booleans(),
    queries=st.lists(st.integers(0, 100), max_size=5),
)
def test_lines_are_those_of_a_list(
    batches: list[list[bytes]],
    capacity: int,
    text: str,
    fold: Fold,
    late: bool,
    queries: list[int],
) -> None:
    store = EventStore(NAMES, capacity)
    store.declare(INFOS)
    everything: list[bytes] = []

    def choose() -> None:
        store.filter = compile_filter(text, store.events) if text else None
        store.fold = fold

    if not late:
        choose()
    for batch in batches:
        for row in batch:
            # A fold looks at rows as they come: one at a time, none is overwritten before that.
            everything.append(row)
            store.append(row)
            while not late and store.step(0):
                pass
        assert len(store) == min(len(everything), capacity)
        assert store.first + len(store) == store.end == len(everything)
    if late:
        choose()
        while store.step(0):
            pass
        gone = store.first
        expected = oracle(everything[gone:], len(store), text, fold)
        expected = [(number + gone, count) for number, count in expected]
    else:
        expected = oracle(everything, len(store), text, fold)
    assert store.skipped == 0 == store.pending
    lines = [(store.number(i), store.folded(i)) for i in range(store.line_count)]
    assert lines == expected
    assert store.counts == Counter(decode(EVENTS, row).id for row in everything)
    for query in queries:
        at = store.line_of(query)
        assert all(number < query for number, _ in lines[: max(at, 0)])
        assert all(number >= query for number, _ in lines[max(at, 0) :])


@settings(max_examples=100, deadline=None)
@given(
    recorded=st.lists(rows, min_size=1, max_size=60),
    pattern=st.sampled_from(
        ("n=-1", "open", "OPEN", "fact", "ret=0x2", "main+0x25", "guest-8", "a")
    ),
    start=st.integers(0, 59),
    backwards=st.booleans(),
    text=st.sampled_from(sorted(filters)),
)
def test_search_finds_the_nearest_line_with_the_text(
    recorded: list[bytes], pattern: str, start: int, backwards: bool, text: str
) -> None:
    store = EventStore(NAMES)
    store.declare(INFOS)
    store.append(b"".join(recorded))
    store.filter = compile_filter(text, store.events) if text else None
    while store.step(1):
        pass
    count = store.line_count
    if not count:
        assert list(store.find(pattern, 0, -1 if backwards else 0, backwards)) == []
        return
    start = min(start, count - 1)
    stop = -1 if backwards else count
    found = [at for at in store.find(pattern, start, stop, backwards) if at is not None]
    expected = []
    for line in range(start, stop, -1 if backwards else 1):
        parts = store.parts(store.number(line))
        seen = f"{parts.time} {parts.task.decode()} {parts.name}".encode()
        seen += b"(" + parts.arguments + b") " + parts.place
        if pattern.encode() in (seen.lower() if pattern.islower() else seen):
            expected = [line]
            break
    assert found == expected


def test_rows_read_as_people_write_them() -> None:
    store = EventStore(NAMES)
    store.declare(INFOS)
    store.append(fact(5, -3) + ret(9, 24) + opened(11, b"/etc/x", 3))
    first, second, third = (store.parts(number) for number in range(3))
    assert (first.time, first.task, first.name) == (5, b"guest-77", "fact")
    assert (first.arguments, first.place, first.returns) == (b"n=-3", b"fact+0x0/0x2a", False)
    assert (second.arguments, second.place) == (b"ret=0x18", b"main+0x25/0x80 <- fact")
    assert (second.returns, second.address, first.address) == (True, 0x401155, 0x401130)
    assert third.arguments == b'path="/etc/x", fd=3'
    assert store.text(0).split() == [
        "guest-77",
        "[000]",
        ".....",
        "5:",
        "fact:",
        "(fact+0x0/0x2a)",
        "n=-3",
    ]


def test_a_new_run_begins_afresh_and_keeps_the_filter() -> None:
    store = EventStore(NAMES, capacity=10)
    store.declare(INFOS)
    store.filter = compile_filter("n<15", store.events)
    store.append(facts(20))
    store.step(1)
    assert store.line_count == 5
    store.clear()
    assert (store.line_count, len(store), store.end, store.counts) == (0, 0, 0, Counter())
    store.declare(INFOS)
    store.append(facts(8))
    store.step(1)
    assert store.line_count == 8
    assert store.filter is not None
    assert store.filter.text == "n<15"


def test_what_was_overwritten_is_remembered() -> None:
    """By event, whatever is taken out or made anew."""
    store = EventStore(NAMES, capacity=10)
    store.declare(INFOS)
    store.append(b"".join(fact(time, time) + ret(time, time) for time in range(8)))
    store.erase({RET})
    assert (store.first, store.end, len(store)) == (3, 8, 5)
    assert store.counts == {FACT: 8}
    assert store.event(3).time == 3

    store.begin_refill()
    store.append(facts(15))
    store.end_refill(((12, 1 << 62),))
    assert (store.first, store.end, len(store)) == (5, 12, 7)
    assert store.counts == {FACT: 12}
    assert store.event(5).time == 5


def test_rows_overwritten_before_the_filter_saw_them_are_counted() -> None:
    store = EventStore(NAMES, capacity=1000)
    store.declare(INFOS)
    store.filter = compile_filter("n>=0", store.events)
    for batch in range(20):
        store.append(facts(500, batch * 500))
    while store.step(0):
        pass
    assert store.skipped == 9000
    assert store.line_count == 1000 == len(store)
    assert [store.number(line) for line in (0, 999)] == [9000, 9999]


@pytest.mark.parametrize("fold", Fold)
def test_rows_may_come_before_what_describes_them(fold: Fold) -> None:
    store = EventStore(NAMES)
    store.filter = compile_filter("n>=0", store.events)
    store.fold = fold
    store.append(facts(3))
    store.step(1)
    assert store.line_count == 0
    store.filter = None
    while store.step(1):
        pass
    assert store.parts(0).name == "event 1"
    assert list(store.find("event 1", 0, 3, False)) == [0]
    assert store.text(0) == ""
    store.declare(INFOS)
    assert (store.parts(0).name, store.parts(0).arguments) == ("fact", b"n=0")
    store.filter = compile_filter("n>=1", store.events)
    store.step(1)
    assert store.number(store.line_count - 1) == 2


def test_the_rate_is_events_a_second() -> None:
    now = [100.0]
    store = EventStore(NAMES, clock=lambda: now[0])
    store.declare(INFOS)
    store.append(facts(50))
    now[0] += 0.5
    store.append(facts(10))
    now[0] += 1.0
    assert store.rates(10) == [100.0, 20.0, 0.0, 0.0]
    assert store.rates(2) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "column"),
    [("n<", 2), ("n<x", 2), ("fact && ", 8), ("n==1 || x=='a", 11), ("n==1 2", 3), ("<4", 0)],
)
def test_a_bad_filter_says_where(text: str, column: int) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text, EVENTS)
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("fact", (True, False, False)),
        ("fact*", (True, True, False)),
        ("n<4", (None, False, False)),
        ("group==uprobes || n<4", (None, False, True)),
        ("time<4", (None, None, None)),
        ("nosuch==1", (False, False, False)),
    ],
)
def test_events_that_cannot_match_are_never_decoded(
    text: str, verdicts: tuple[bool | None, ...]
) -> None:
    compiled = compile_filter(text, EVENTS)
    assert tuple(verdict(compiled.tester(EVENTS[each])) for each in (FACT, RET, OPEN)) == verdicts


def verdict(test: object) -> bool | None:
    return test if isinstance(test, bool) else None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("tid==8", [1]),
        ("common_pid==8 && cpu==0", [1]),
        ("pid==7", [0, 1]),
        ("comm==second || tid==9", [1, 2]),
        ('!(comm == "second")', [0, 2]),
        ("(pid == 9)", [2]),
    ],
)
def test_events_of_a_thread(text: str, kept: list[int]) -> None:
    names = Names(
        comm=lambda thread: b"second" if thread == 8 else b"first",
        process=lambda thread: 7 if thread == 8 else thread,
    )
    store = EventStore(names)
    store.declare(INFOS)
    rows = bytearray(facts(3))
    for index in range(3):
        rows[index * len(rows) // 3 + 4] = 7 + index
    store.append(bytes(rows))
    store.filter = compile_filter(text, store.events, store.names)
    while store.step(1.0):
        pass
    assert [store.number(line) for line in range(store.line_count)] == kept


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("(n < 4)", (None, False, False)),
        ('!(name == "fact")', (False, True, True)),
        ("n & 4 || fd == 3", (None, False, None)),
    ],
)
def test_the_kernels_filters_are_understood_too(
    text: str, verdicts: tuple[bool | None, ...]
) -> None:
    compiled = compile_filter(text, EVENTS)
    assert tuple(verdict(compiled.tester(EVENTS[each])) for each in (FACT, RET, OPEN)) == verdicts


def test_an_error_of_the_kernels_form_is_the_kernels() -> None:
    with pytest.raises(FilterError, match="Too many"):
        compile_filter("(n < 4", EVENTS)


def test_stretches_of_a_refill_come_in_any_order() -> None:
    """Rows of each are at their place; what has no room is counted; old rows stay if it is cut."""
    now = 0.0
    store = EventStore(NAMES, capacity=10, clock=lambda: now)
    store.declare(INFOS)
    store.append(b"".join(ret(time, time) for time in range(8)))
    store.begin_refill()
    store.begin_stretch(2)
    store.append_past(facts(3, 20), 2)
    assert store.merges
    store.merge()
    store.begin_stretch(1)
    store.append_past(facts(9, 10), 1)
    store.begin_stretch(1)  # whoever has sent them has failed
    store.append_past(facts(6, 10), 1)
    assert not store.merges
    now = 1.0
    assert store.merges
    store.merge()
    assert [store.event(number).time for number in range(store.first, store.end)] == [
        *range(10, 16),
        *range(20, 23),
    ]
    store.begin_stretch(0)
    store.append_past(facts(9), 0)
    store.end_refill()
    assert (store.first, store.end, store.counts) == (8, 18, {FACT: 18})
    assert [store.event(number).time for number in range(8, 11)] == [8, 10, 11]

    store.begin_refill()
    store.begin_stretch(0)
    store.append_past(b"".join(ret(time, time) for time in range(5, 13)), 0)
    store.end_refill(((0, 6), (11, 1 << 62)))
    times = [store.event(number).time for number in range(store.first, store.end)]
    assert times == [7, 8, 9, 10, *range(11, 16), *range(20, 23)][-10:]

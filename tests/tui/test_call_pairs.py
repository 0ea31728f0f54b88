"""Entry and return rows of one call, against calls that are really nested."""

import pytest
from eventkit import INFOS, NAMES, fact, opened, ret
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.trace.rows import HEAD, EventInfo
from tui.call_pairs import partner
from tui.store import EventStore

SECOND, SECOND_RET = 4, 5
SECONDS = (
    replace(INFOS[0], id=SECOND, name="fact_too"),
    replace(INFOS[1], id=SECOND_RET, name="fact_too_ret"),
)


def store_of(data: bytes, *more: EventInfo, capacity: int = 1_000_000) -> EventStore:
    store = EventStore(NAMES, capacity)
    store.declare((*INFOS, *more))
    store.append(data)
    return store


def found(store: EventStore, number: int) -> int | None:
    return next((row for row in partner(store, number) if row is not None), None)


def renumbered(row: bytes, event: int) -> bytes:
    _, words, thread = HEAD.unpack_from(row)
    return HEAD.pack(event, words, thread) + row[HEAD.size :]


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from((7, 8))), max_size=80),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_rows_of_nested_calls_find_each_other(
    steps: list[tuple[bool, int]], twice: bool, noise: bool
) -> None:
    rows: list[bytes] = []
    pending: dict[int, list[list[int]]] = {7: [], 8: []}
    pairs: dict[int, int | None] = {}
    for time, (enters, thread) in enumerate(steps):
        if enters:
            pending[thread].append([len(rows)])
            rows.append(fact(time, 1, thread))
            pairs[len(rows) - 1] = None
            if twice:
                rows.append(renumbered(fact(time, 1, thread), SECOND))
                pairs[len(rows) - 1] = None
                pending[thread][-1].append(len(rows) - 1)
        elif pending[thread]:
            entries = pending[thread].pop()
            begin = len(rows)
            rows.append(ret(time, 1, thread=thread))
            if twice:
                rows.append(renumbered(ret(time, 1, thread=thread), SECOND_RET))
            for number in range(begin, len(rows)):
                pairs[number] = entries[-1]  # the nearest one's rows count
            for number in entries:
                pairs[number] = begin
        if noise:
            rows.append(opened(time, b"x", 3, thread))
    store = store_of(b"".join(rows), *SECONDS)
    for number, other in pairs.items():
        assert found(store, number) == other, number


def test_a_row_that_is_of_no_function_has_no_partner() -> None:
    store = store_of(opened(1, b"x", 3) + fact(2, 1) + opened(3, b"y", 3))
    assert [found(store, number) for number in range(3)] == [None, None, None]
    with pytest.raises(IndexError):
        found(store, 3)


def test_an_entry_that_was_overwritten_is_not_found() -> None:
    data = fact(0, 1) + b"".join(opened(n, b"x", 3) for n in range(1, 100)) + ret(100, 1)
    assert found(store_of(data), 100) == 0
    assert found(store_of(data), 0) == 100
    assert found(store_of(data, capacity=50), 100) is None


def test_far_apart_they_are_found_in_slices() -> None:
    inner = b"".join(fact(n, 1) + ret(n, 1) for n in range(1, 10_001))
    store = store_of(fact(0, 1) + inner + ret(10_001, 1))
    for number, other in ((0, 20_001), (20_001, 0)):
        slices = list(partner(store, number))
        assert slices[-1] == other
        assert len(slices) > 4
        assert set(slices[:-1]) == {None}

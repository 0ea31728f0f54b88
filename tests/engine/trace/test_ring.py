"""The ring against a list."""

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.trace import ring as ring_module
from engine.trace.ring import Ring
from engine.trace.rows import HEAD, count_rows


def make_row(number: int, words: int) -> bytes:
    """A row of a size that holds its own number."""
    return HEAD.pack(1 + number // 37 % 3 * 300, words, number).ljust(
        words * 8, bytes([number % 256])
    )


@settings(max_examples=300, deadline=None)
@given(
    capacity=st.none() | st.integers(1, 120),
    overwrite=st.booleans(),
    batches=st.lists(
        st.lists(st.integers(3, 40), max_size=60)
        | st.builds(lambda size, rows: [size] * rows, st.integers(3, 40), st.integers(0, 90)),
        max_size=8,
    ),
    chunk=st.sampled_from((64, 512, 1 << 18)),
    queries=st.lists(st.integers(0, 400), max_size=10),
)
def test_the_ring_is_the_front_or_the_end_of_a_list(
    capacity: int | None, overwrite: bool, batches: list[list[int]], chunk: int, queries: list[int]
) -> None:
    before, ring_module.CHUNK = ring_module.CHUNK, chunk
    try:
        ring = Ring(capacity, overwrite, count=True)
        model: list[bytes] = []
        for batch in batches:
            rows = [make_row(len(model) + index, words) for index, words in enumerate(batch)]
            model += rows
            ring.append(b"".join(rows))
            kept = model if capacity is None else model[-capacity:]
            if capacity is not None and not overwrite:
                kept = model[:capacity]
            assert len(ring) == len(kept)
            assert ring.written == len(model)
            missing = len(model) - len(kept)
            assert (ring.lost, ring.overwritten) == ((0, missing) if overwrite else (missing, 0))
            assert list(ring) == kept
            assert b"".join(ring.stretches()) == b"".join(kept)
            taken = model if overwrite or capacity is None else model[:capacity]
            assert ring.counts == Counter(HEAD.unpack_from(row)[0] for row in taken)
            for index in queries:
                if index < len(kept):
                    assert ring.row(index) == kept[index]
                    piece, some = ring.stretch(index, 20)
                    assert 1 <= some <= 20
                    assert piece == b"".join(kept[index : index + some])
                else:
                    with pytest.raises(IndexError):
                        ring.row(index)
    finally:
        ring_module.CHUNK = before


def test_counts_stay_exact_over_many_drains() -> None:
    data = b"".join(make_row(number, 6) for number in range(20_000))
    for overwrite in (False, True):
        ring = Ring(30_001, overwrite)
        for _ in range(4):
            ring.append(data)
        assert (len(ring), ring.written) == (30_001, 80_000)
        assert ring.lost + ring.overwritten == 49_999
        last = (80_000 if overwrite else 30_001) - 1
        assert HEAD.unpack(ring.row(30_000)[:8])[2] == last % 20_000
        assert HEAD.unpack(ring.row(0)[:8])[2] == (80_000 - 30_001 if overwrite else 0) % 20_000


def test_a_million_events_of_three_arguments_fit_in_60_mb() -> None:
    data = make_row(1, 6) * 20_000
    tracemalloc.start()
    try:
        ring = Ring()
        for _ in range(10):
            ring.append(data)
        used, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(ring) == 200_000
    assert used * 5 < 52e6
    assert peak * 5 < 60e6


def test_overwriting_frees_what_it_drops() -> None:
    data = make_row(1, 6) * 20_000
    ring = Ring(1000, overwrite=True)
    tracemalloc.start()
    try:
        for _ in range(20):
            ring.append(data)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 1_000_000


def test_clear_forgets_everything() -> None:
    ring = Ring(2)
    ring.append(make_row(1, 3) * 5)
    ring.clear()
    assert (len(ring), ring.lost, ring.written, list(ring)) == (0, 0, 0, [])
    ring.append(make_row(2, 3))
    assert ring.row(0) == make_row(2, 3)


def test_an_event_without_a_size_is_an_error_and_no_endless_loop() -> None:
    with pytest.raises(EngineError):
        Ring().append(bytes(64))
    with pytest.raises(EngineError):
        count_rows(bytes(8))


def test_a_ring_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Ring(0)


def test_bytes_are_bounded_as_well() -> None:
    ring = Ring(None, overwrite=True, most_bytes=1 << 20)
    for batch in range(40):
        ring.append(b"".join(make_row(batch * 1000 + number, 20) for number in range(1000)))
        assert sum(map(len, ring)) <= (1 << 20) + 2 * ring_module.CHUNK
    assert ring.written == 40_000 == len(ring) + ring.overwritten
    assert HEAD.unpack_from(ring.row(len(ring) - 1))[2] == 39_999
    assert HEAD.unpack_from(ring.row(0))[2] == ring.overwritten

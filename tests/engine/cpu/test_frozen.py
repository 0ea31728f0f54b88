"""Pages that stretches of the arena share until they write: contents, counts, room."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cpu.ram import PAGE, Ram

_PAGES = 12
"""Of a stretch at the most."""


@contextmanager
def _ram(many: int = 2, budget: int = 1 << 22) -> Iterator[Ram]:
    ram = Ram(size=1 << 28, budget=budget)
    ram.many = many
    try:
        yield ram
    finally:
        ram.close()


def _write(ram: Ram, place: int, data: bytes) -> None:
    assert ram.touch(place, len(data))
    ram.write(place, data)


_PAGE = st.integers(0, _PAGES - 1)
_STEP = st.one_of(
    st.tuples(st.just("new"), st.integers(1, _PAGES), st.booleans()),
    st.tuples(st.just("write"), _PAGE, st.integers(1, 255)),
    st.tuples(st.just("fill"), _PAGE, _PAGE, st.integers(1, 255)),
    st.tuples(st.just("copy")),
    st.tuples(st.just("discard"), _PAGE, _PAGE),
    st.tuples(st.just("cut"), _PAGE),
    st.tuples(st.just("release")),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 5), _STEP), max_size=40))
def test_copies_hold_what_a_copy_of_the_bytes_does(
    steps: list[tuple[int, tuple[str | int, ...]]],
) -> None:
    with _ram() as ram:
        model: list[tuple[int, list[int]]] = []
        for which, (kind, *values) in steps:
            _step(ram, model, kind, which, [int(value) for value in values])
            for place, pages in model:
                for index, value in enumerate(pages):
                    data = ram.read(place + index * PAGE, PAGE)
                    assert data[1:] == bytes(PAGE - 1)
                    assert data[0] == value
            assert ram.used() >= ram.frozen.taken()
        for place, pages in model:
            ram.release(place, len(pages) * PAGE)
        assert ram.used() == 0
        assert ram.frozen.taken() == 0
        assert not ram.frozen.pieces
        assert ram.frozen.prepared == 0


def _step(
    ram: Ram, model: list[tuple[int, list[int]]], kind: object, which: int, values: list[int]
) -> None:
    if kind == "new":
        place = ram.allocate(values[0] * PAGE)
        assert place is not None
        if values[1]:
            ram.prepare(place, values[0] * PAGE)
        model.append((place, [0] * values[0]))
        return
    if not model:
        return
    at = which % len(model)
    place, pages = model[at]
    first = values[0] % len(pages) if values else 0
    if kind == "write":
        pages[first] = values[1]
        _write(ram, place + first * PAGE, bytes([values[1]]))
    elif kind == "fill":
        for page in range(first, min(len(pages), first + values[1])):
            pages[page] = values[2]
            _write(ram, place + page * PAGE, bytes([values[2]]))
    elif kind == "copy" and len(model) < 12:
        target = ram.allocate(len(pages) * PAGE)
        assert target is not None
        assert ram.copy(place, target, len(pages) * PAGE)
        model.append((target, list(pages)))
    elif kind == "discard":
        count = min(len(pages) - first, values[1] + 1)
        ram.discard(place + first * PAGE, count * PAGE)
        pages[first : first + count] = [0] * count
    elif kind == "cut" and first:
        ram.release(place + first * PAGE, (len(pages) - first) * PAGE)
        del pages[first:]
    elif kind == "release":
        ram.release(place, len(pages) * PAGE)
        del model[at]


@pytest.mark.parametrize("prepared", [False, True])
def test_a_copy_takes_room_for_what_is_written_afterwards_only(prepared: bool) -> None:
    size = 64 * PAGE
    with _ram(budget=160 * PAGE) as ram:
        place = ram.allocate(size)
        assert place is not None
        if prepared:
            ram.prepare(place, size)
        for page in range(64):
            _write(ram, place + page * PAGE, b"x")
        copies = []
        for number in range(20):  # twenty copies of 64 pages, of which two change, in 160
            target = ram.allocate(size)
            assert target is not None
            assert ram.copy(place, target, size)
            _write(ram, target, b"own")
            _write(ram, target + 63 * PAGE, bytes([number]))
            copies.append(target)
        assert ram.frozen.taken() == size
        for number, target in enumerate(copies):
            assert ram.read(target, 3) == b"own"
            assert ram.read(target + 63 * PAGE, 1) == bytes([number])
            assert ram.read(target + 5 * PAGE, 1) == b"x"
        assert ram.read(place, 3) == b"x\0\0"
        assert ram.touched(copies[0], size) == size


def test_pages_that_were_only_read_take_no_room_after_the_next_copy() -> None:
    size = 64 * PAGE
    with _ram(budget=1 << 22) as ram:
        place, second, third = (ram.allocate(size) for _ in range(3))
        assert place is not None
        assert second is not None
        assert third is not None
        for page in range(64):
            _write(ram, place + page * PAGE, b"x")
        assert ram.copy(place, second, size)
        assert ram.used() == size
        for page in range(64):
            assert ram.touch(place + page * PAGE, 1)  # as a guest that reads
            ram.read(place + page * PAGE, 1)
        assert ram.used() == 2 * size
        assert ram.copy(place, third, size)
        assert ram.used() == size


@pytest.mark.parametrize("prepared", [False, True])
def test_what_was_written_since_the_last_copy_is_in_the_next(prepared: bool) -> None:
    size = 64 * PAGE
    with _ram() as ram:
        place, second, third, fourth = (ram.allocate(size) or 0 for _ in range(4))
        if prepared:
            ram.prepare(place, size)
        for page in range(60):
            _write(ram, place + page * PAGE, b"x")
        assert ram.copy(place, second, size)
        for page in (0, 3, 4, 59, 62):
            _write(ram, place + page * PAGE, b"new")
        assert ram.copy(place, third, size)
        _write(ram, third + PAGE, b"third")
        assert ram.copy(third, fourth, size)
        texts = [
            [ram.read(start + page * PAGE, 5).strip(b"\0") for page in (0, 1, 4, 59, 62)]
            for start in (place, second, third, fourth)
        ]
        assert texts == [
            [b"new", b"x", b"new", b"new", b"new"],
            [b"x", b"x", b"x", b"x", b""],
            [b"new", b"third", b"new", b"new", b"new"],
            [b"new", b"third", b"new", b"new", b"new"],
        ]


def test_what_has_changed_most_is_frozen_anew() -> None:
    size = 64 * PAGE
    with _ram() as ram:
        place = ram.allocate(size)
        assert place is not None
        for value in (b"a", b"b", b"c"):
            for page in range(64):
                _write(ram, place + page * PAGE, value)
            target = ram.allocate(size)
            assert target is not None
            assert ram.copy(place, target, size)
            assert ram.touched(target, size) == size
            ram.release(target, size)
            assert ram.frozen.taken() == size  # nobody shows the last ones


def test_looking_at_untouched_prepared_pages_takes_no_room() -> None:
    size = 512 * PAGE
    with _ram() as ram:
        place = ram.allocate(size)
        assert place is not None
        ram.prepare(place, size)
        assert ram.prepared(place + 100 * PAGE, PAGE)
        _write(ram, place + 7 * PAGE + 5, b"here")
        assert ram.read(place, size) == bytes(7 * PAGE + 5) + b"here" + bytes(505 * PAGE - 9)
        assert ram.read(place + 8 * PAGE - 3, 9) == bytes(9)
        assert ram.frozen.taken() == PAGE


def test_growing_stretches_are_one_piece() -> None:
    with _ram() as ram:
        place = ram.allocate(64 * PAGE)
        assert place is not None
        for index in (2, 3, 1, 0):
            ram.prepare(place + index * 16 * PAGE, 16 * PAGE)
        assert [piece[:2] for piece in ram.frozen.pieces] == [(place, place + 64 * PAGE)]


def test_a_host_that_refuses_copies_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.memfd_create", raising=False)
    size = 64 * PAGE
    with _ram() as ram:
        place, target = ram.allocate(size), ram.allocate(size)
        assert place is not None
        assert target is not None
        ram.prepare(place, size)
        for page in range(64):
            _write(ram, place + page * PAGE, b"x")
        assert ram.copy(place, target, size)
        assert not ram.frozen.pieces
        assert ram.used() == 2 * size
        assert ram.read(target + 63 * PAGE, 1) == b"x"


def test_beyond_the_budget_a_copy_fails() -> None:
    size = 64 * PAGE
    with _ram(many=1000, budget=100 * PAGE) as ram:
        place, target = ram.allocate(size), ram.allocate(size)
        assert place is not None
        assert target is not None
        for page in range(64):
            _write(ram, place + page * PAGE, b"x")
        assert not ram.copy(place, target, size)
        ram.release(target, size)
        assert ram.used() == size

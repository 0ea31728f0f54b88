"""The address space against a dictionary of pages: any sequence of calls, bytes included."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import string_at
from functools import partial
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from workcount import calls

from engine.arch.x86_64 import X86_64
from engine.cpu import native
from engine.cpu.base import Cpu
from engine.cpu.pagetable import PageTable
from engine.cpu.ram import EXECUTE, PAGE, PHYSICAL_BASE, READ, WRITE, Ram
from engine.errors import GuestFaultError
from engine.guest.memory import Mapping, MappingError, Memory
from engine.guest.mremap import Mremap
from engine.guest.pages import regions

_BASE = 0x10_0000
_PAGES = 24


class _Cpu:
    """As much of a processor as the address space asks for."""

    def __init__(self, ram: Ram) -> None:
        self.page_table = PageTable(ram)
        self.traps = None
        self._ram = ram
        self._remembered: dict[int, tuple[int, int]] = {}

    def invalidate(self, start: int, size: int) -> None:
        assert size > 0

    def flush_tlb(self) -> None:
        self._remembered.clear()

    def flush_pages(self, start: int, size: int) -> None:
        for page in range(start, start + size, PAGE):
            self._remembered.pop(page, None)

    def access(self, address: int, kind: int) -> None:
        """The program loads or stores, and the emulator remembers where the page is."""
        entry = native.TlbEntry()
        if native.fill(self._ram, self.page_table, address, kind, entry):
            self._remembered[address] = entry.paddr - PHYSICAL_BASE, entry.perms

    def check(self) -> None:
        """What it remembers is so still, and counts as touched."""
        for address, (physical, perms) in self._remembered.items():
            region = self.page_table.find(address)
            assert region is not None
            assert (region.physical + address - region.start, region.perms) == (physical, perms)
            assert self._ram.touched(physical, PAGE)


@contextmanager
def _memory() -> Iterator[Memory]:
    ram = Ram(size=1 << 28, budget=1 << 22)
    try:
        yield Memory(X86_64.plan, ram, cast(Cpu, _Cpu(ram)))
    finally:
        ram.close()


_PAGE = st.integers(0, _PAGES - 1)
_COUNT = st.integers(1, 6)
_PERMS = st.sampled_from([0, 1, 3, 3, 3, 5, 7])
_STEP = st.one_of(
    st.tuples(st.just("map"), _PAGE, _COUNT, _PERMS, st.booleans()),
    st.tuples(st.just("unmap"), _PAGE, _COUNT),
    st.tuples(st.just("protect"), _PAGE, _COUNT, _PERMS),
    st.tuples(st.just("move"), _PAGE, _COUNT, _COUNT, _PAGE),
    st.tuples(st.just("discard"), _PAGE, _COUNT),
    st.tuples(st.just("close"), _PAGE, st.integers(0, 3)),
    st.tuples(st.just("write"), _PAGE, st.integers(1, 255)),
    st.tuples(st.just("access"), _PAGE, _COUNT, st.sampled_from([16, 17])),
)


class _Page:
    """One page of the model; shared ones are never discarded."""

    def __init__(self, perms: int, shared: bool, group: int) -> None:
        self.perms, self.shared, self.group, self.value = perms, shared, group, 0


def _at(page: int) -> int:
    return _BASE + page * PAGE


def _check(memory: Memory, model: dict[int, _Page]) -> None:
    memory.sync()
    cast(_Cpu, memory._cpu).check()
    last = 0
    physical: set[int] = set()
    for mapping in memory.mappings:
        assert mapping.start >= last
        assert mapping.end > mapping.start
        last = mapping.end
        if mapping.physical is not None:
            pages = set(range(mapping.physical, mapping.physical + mapping.size, PAGE))
            assert not pages & physical
            physical |= pages
    _check_tables(memory)
    for page in range(_PAGES + 16):
        known = model.get(page)
        found = memory.find(_at(page))
        assert (found is None) == (known is None), page
        if known is None or found is None:
            continue
        assert found.perms == known.perms
        if known.perms:
            assert memory.read(_at(page) + 7, 1)[0] == known.value, page
        else:
            with pytest.raises(GuestFaultError):
                memory.read(_at(page), 1)


def _check_tables(memory: Memory) -> None:
    """What is kept up to date is what a look at all mappings finds."""
    page_table, table = memory._cpu.page_table, memory.table
    assert page_table.regions == list(regions(memory.mappings, memory.closed))
    assert all(a.end <= b.start for a, b in pairwise(page_table.regions))
    control = page_table.ram.control
    words = struct.unpack(f"={control.count * 4}Q", string_at(control.table, control.count * 32))
    entries = [words[at : at + 4] for at in range(0, len(words), 4)]
    assert [start for start, *_ in entries] == sorted(start for start, *_ in entries)
    delta = [(r.start, r.end, PHYSICAL_BASE + r.physical) for r in page_table.regions]
    live = [(start, end, (start + skip) & 2**64 - 1) for start, end, skip, _ in entries if end]
    assert live == delta
    at = 0
    gaps = []
    for mapping in (*memory.mappings, Mapping(1 << 64, 1 << 64, 0)):
        gaps += [(at, mapping.start)] if at < mapping.start else []
        at = mapping.end
    assert table._free.all() == gaps
    assert table.size == sum(m.size for m in memory.mappings)
    private = [m for m in memory.mappings if not m.shared and m.perms & WRITE]
    assert table.data == sum(m.size for m in private)
    assert table._joints == sum(a.continues(b) for a, b in pairwise(memory.mappings))
    for extent, views in table.views.items():
        shown = [m for m in memory.mappings if m.extent is extent and m.physical is not None]
        writing = [m for m in shown if m.perms & WRITE]
        executing = [m for m in shown if m.perms & EXECUTE]
        both = [m for m in writing if m in executing]
        counted = (views.mappings, views.writing, views.executing, views.both)
        assert counted == (len(shown), len(writing), len(executing), len(both))
        several = len({*writing, *executing}) > 1
        assert extent.mixed == (bool(writing and executing) and several)


@settings(max_examples=250, deadline=None)
@given(st.lists(_STEP, max_size=30))
@example([("map", 0, 2, 3, False), ("access", 0, 1, 17), ("discard", 0, 1)])
def test_any_sequence(steps: list[tuple[Any, ...]]) -> None:
    with _memory() as memory:
        model: dict[int, _Page] = {}
        for group, step in enumerate(steps):
            _apply(memory, model, step, group)
            _check(memory, model)
        memory.unmap(_at(0), (_PAGES + 16) * PAGE)
        assert memory.used() == 0


def _apply(memory: Memory, model: dict[int, _Page], step: tuple[Any, ...], group: int) -> None:
    kind, page, *rest = step
    if kind == "map":
        count, perms, shared = rest
        memory.map(_at(page), count * PAGE, perms, shared=shared)
        for index in range(page, page + count):
            model[index] = _Page(perms, shared, group)
    elif kind == "unmap":
        memory.unmap(_at(page), rest[0] * PAGE)
        for index in range(page, page + rest[0]):
            model.pop(index, None)
    elif kind == "protect":
        count, perms = rest
        whole = all(index in model for index in range(page, page + count))
        try:
            memory.protect(_at(page), count * PAGE, perms)
            assert whole
        except MappingError:
            assert not whole
        for index in range(page, page + count):
            if index not in model:
                break
            model[index].perms = perms
    elif kind == "discard":
        memory.discard(_at(page), rest[0] * PAGE)
        for index in range(page, page + rest[0]):
            if index in model and not model[index].shared:
                model[index].value = 0
    elif kind == "close":
        memory.close_pages({_at(page + 2 * index): READ for index in range(rest[0])})
    elif kind == "access":
        for index in range(rest[0]):
            cast(_Cpu, memory._cpu).access(_at(page + index), rest[1])
    elif kind == "write":
        known = model.get(page)
        if known is not None and known.perms & WRITE:
            memory.write(_at(page) + 7, bytes([rest[0]]))
            known.value = rest[0]
        else:
            with pytest.raises(GuestFaultError):
                memory.write(_at(page) + 7, b"x")
    else:
        _move(memory, model, page, *rest)


def _move(
    memory: Memory, model: dict[int, _Page], page: int, count: int, size: int, to: int
) -> None:
    target = to + _PAGES + 6  # behind the last page that a step can map: never overlapping
    mapping = Mremap(memory).whole(_at(page), _at(page + count))
    if mapping is None or mapping.end < _at(page + count) or target + size > _PAGES + 16:
        return
    if mapping.shared and size > count:
        return  # it would show more pages of its object, perhaps those of a neighbour
    Mremap(memory).move(mapping.part(_at(page), _at(page + count)), _at(target), size * PAGE)
    first = model[page]
    for index in range(size):
        if index < count:
            model[target + index] = model.pop(page + index)
        else:
            model[target + index] = _Page(first.perms, first.shared, first.group)
    for index in range(size, count):
        model.pop(page + index, None)


def test_free_ranges_are_the_highest() -> None:
    with _memory() as memory:
        top = memory.plan.mmap_top
        assert memory.free_range(PAGE) == top - PAGE
        memory.map(top - 2 * PAGE, PAGE, READ)
        assert memory.free_range(PAGE) == top - PAGE
        assert memory.free_range(2 * PAGE) == top - 4 * PAGE


def _map_alternately(memory: Memory, count: int) -> None:
    for index in range(count):
        where = memory.free_range(PAGE)
        assert where is not None
        memory.map(where, PAGE, READ | index % 2 * WRITE)
        memory.sync()


def _cut_up(change: Callable[[Memory, int], None]) -> Callable[[Memory, int], None]:
    def work(memory: Memory, count: int) -> None:
        memory.map(1 << 40, 2 * count * PAGE, READ | WRITE)
        for index in range(count):
            change(memory, (1 << 40) + 2 * index * PAGE)
            memory.sync()

    return work


def _shrink_and_fill(memory: Memory, count: int) -> None:
    _cut_up(lambda memory, at: memory.unmap(at, PAGE))(memory, count)
    for _ in range(count):
        where = memory.free_range(3 * PAGE)  # none of the holes is large enough
        assert where is not None
        memory.map(where, PAGE, READ)
        memory.sync()


@pytest.mark.parametrize(
    "work",
    [
        _map_alternately,
        _cut_up(lambda memory, at: memory.protect(at, PAGE, READ)),
        _cut_up(lambda memory, at: memory.unmap(at, PAGE)),
        _shrink_and_fill,
    ],
)
def test_four_times_the_mappings_are_four_times_the_work(
    work: Callable[[Memory, int], None],
) -> None:
    done = []
    for count in (100, 400):
        with _memory() as memory:
            done.append(calls(partial(work, memory, count), 400_000))
    assert done[1] < 4.4 * done[0]


def test_neighbours_that_differ_in_nothing_are_one_mapping() -> None:
    with _memory() as memory:
        for _ in range(50):
            where = memory.free_range(PAGE)
            assert where is not None
            memory.map(where, PAGE, READ | WRITE)
        for index in range(50):
            memory.map(_BASE + index * PAGE, PAGE, READ | WRITE, name="[heap]")
        assert [m.size for m in memory.mappings] == [50 * PAGE, 50 * PAGE]


def test_a_page_of_ones_own_stands_in_for_a_shared_one() -> None:
    with _memory() as memory:
        memory.map(_at(0), 4 * PAGE, READ | EXECUTE, shared=True, name="/shared")
        for page in range(4):
            memory.patch(_at(page), bytes((page + 1,)))
        extent = memory.mappings[0].extent
        assert extent is not None

        def shared(page: int) -> int:
            return memory.ram.read(extent.physical + page * PAGE, 1)[0]

        memory.own_page(_at(2), "/file", 7 * PAGE)
        memory.patch(_at(2), b"\xcc")
        assert [memory.read(_at(page), 1)[0] for page in range(4)] == [1, 2, 0xCC, 4]
        assert [shared(page) for page in range(4)] == [1, 2, 3, 4]
        assert extent.mapped == 3 * PAGE
        memory.protect(_at(0), 4 * PAGE, READ)
        own = memory.find(_at(2))
        assert own is not None
        assert (own.name, own.offset, own.shared, own.size) == ("/file", 7 * PAGE, False, PAGE)
        memory.sync()
        _check_tables(memory)
        memory.unmap(_at(0), 4 * PAGE)
        assert memory.find(_at(2)) is None
        memory.own_page(_at(2), "/file", 0)  # there is none to stand in for


def test_a_reservation_takes_no_pages() -> None:
    with _memory() as memory:
        memory.map(1 << 40, 1 << 42, 0)
        assert memory.used() == 0
        memory.protect(1 << 41, PAGE, READ | WRITE)
        memory.write(1 << 41, b"x")
        assert memory.used() == PAGE


def test_the_engine_windows_stay() -> None:
    with _memory() as memory:
        memory.map(_BASE, PAGE, READ, reserved=True)
        with pytest.raises(MappingError):
            memory.unmap(_BASE, PAGE)
        with pytest.raises(MappingError):
            memory.protect(_BASE, PAGE, READ | WRITE)
        with pytest.raises(MappingError):
            memory.map(_BASE, PAGE, READ)


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=60))
def test_the_arena_hands_out_disjoint_pages(steps: list[tuple[int, bool]]) -> None:
    ram = Ram(size=1 << 28, budget=1 << 20)
    held: list[tuple[int, int]] = []
    for pages, give_back in steps:
        if give_back and held:
            ram.release(*held.pop(pages % len(held)))
            continue
        offset = ram.allocate(pages * PAGE)
        assert offset is not None
        end = offset + pages * PAGE
        assert all(end <= start or start + size <= offset for start, size in held)
        held.append((offset, pages * PAGE))
    for piece in held:
        ram.release(*piece)
    assert ram.allocate(ram.size) == 0
    ram.close()


def test_few_pages_are_kept_beside_those_that_count() -> None:
    ram = Ram(size=1 << 28, budget=1 << 24)
    try:
        count = 1000
        offset = ram.allocate(count * PAGE)
        assert offset is not None
        for page in range(count):
            assert ram.touch(offset + page * PAGE, PAGE)
            ram.write(offset + page * PAGE, b"x")
        for page in range(count):
            assert ram.release(offset + page * PAGE, PAGE)
            assert len(ram._kept) <= 256
        assert ram.used() == 0
        assert not ram.discard(offset, PAGE)
        assert ram.read(offset, count * PAGE) == bytes(count * PAGE)
    finally:
        ram.close()

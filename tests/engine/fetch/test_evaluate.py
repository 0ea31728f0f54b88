"""Recorders against a byte-by-byte interpreter, and against what Linux recorded."""

import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fetchkit import PAGE, Bench, FakeMemory, memory_of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.arch import by_name
from engine.arch.program import Base, FetchArg, FieldType, RecordLayout, Source, ValueKind
from engine.fetch.evaluate import ROW_MAX, STRING_MAX, FetchSite, recorder
from engine.trace.definition import Definition, parse
from engine.trace.formats.base import Names
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.rows import HEAD, EventInfo, Value, decode

DATA = Path(__file__).parents[2] / "data" / "events" / "kernel-6.18.json"
KERNEL: dict[str, Any] = json.loads(DATA.read_text())
X86 = by_name("x86_64")
POINTERS = (0x1000, 0x1FF8, 0x1FFD, 0x2000, 0x2FF0, 0x4FFC, 0x7000, 0, (1 << 64) - 4)
HEX = FieldType(ValueKind.HEX, 8)
STRING = FieldType(ValueKind.STRING, 0)
SITE = FetchSite(0x401156)


def record(args: tuple[FetchArg, ...], bench: Bench, site: FetchSite = SITE) -> tuple[Value, ...]:
    """The values of one hit."""
    layout = RecordLayout.of(args)
    recorder(7, layout, site, bench.context)(42)
    rows = bench.rows()
    event = decode({7: EventInfo.of(7, "g", "e", layout)}, rows)
    assert (event.id, event.thread_id, event.address, event.time) == (7, 42, site.address, 1)
    assert HEAD.unpack_from(rows)[1] * 8 == len(rows)
    return event.values


def value_of(arg: FetchArg, bench: Bench, site: FetchSite = SITE) -> Value:
    return record((arg,), bench, site)[0]


def fetch(base: Base, type_: FieldType = HEX, *derefs: int) -> FetchArg:
    return FetchArg("v", "text", base, derefs, type_)


def register(name: str) -> Base:
    return Base(Source.REGISTER, name)


class Plain:
    """A sink without a cursor."""

    def __init__(self, capacity: int) -> None:
        self.position = 0
        self.limit = self.capacity = capacity
        self.buffer = bytearray(capacity)

    def drain(self) -> None:
        raise AssertionError("one row has room")


class Reference:
    """The plainest evaluation there is: one byte at a time, one rule at a time."""

    def __init__(self, bench: Bench, site: FetchSite) -> None:
        self.bench = bench
        self.site = site
        self.bits = bench.arch.bits

    def byte(self, address: int) -> int | None:
        address %= 1 << self.bits
        page = self.bench.memory.pages.get(address // PAGE * PAGE)
        return None if page is None else page[address % PAGE]

    def number(self, address: int, size: int) -> int | None:
        if address % (1 << self.bits) + size > 1 << self.bits:
            return None
        got = [self.byte(address + index) for index in range(size)]
        if None in got:
            return None
        if self.bench.arch.byteorder == "little":
            got.reverse()
        value = 0
        for one in got:
            value = value * 256 + (one or 0)
        return value

    def string(self, address: int) -> bytes | None:
        out = bytearray()
        while len(out) < 4095:
            one = self.byte(address + len(out))
            if one is None:
                return None
            if one == 0:
                break
            out.append(one)
        return bytes(out)

    def start(self, base: Base) -> tuple[bool, int]:
        """Whether it is an address, and the number."""
        registers = self.bench.cpu.registers
        match base.source:
            case Source.REGISTER:
                return False, registers.get(base.register, 0)
            case Source.STACK_POINTER:
                return False, registers.get(self.bench.arch.roles.sp, 0)
            case Source.RETVAL:
                return False, registers.get(self.bench.arch.probes.retval, 0)
            case Source.STACK:
                sp = registers.get(self.bench.arch.roles.sp, 0)
                size = self.bits // 8
                return False, self.number(sp + base.value * size, size) or 0
            case Source.IMMEDIATE:
                return False, base.value
            case Source.ADDRESS:
                return True, base.value
            case _:
                return True, base.value + self.site.image_base

    def typed(self, type_: FieldType, value: int | None) -> int:
        value = (value or 0) % (1 << 8 * type_.size)
        if type_.kind is ValueKind.SIGNED and value >> (8 * type_.size - 1):
            return value - (1 << 8 * type_.size)
        if type_.kind is ValueKind.BITFIELD:
            bits = 8 * type_.size
            shifted = value << (bits - type_.width - type_.offset)
            return shifted % (1 << bits) >> (bits - type_.width)
        return value

    def evaluate(self, arg: FetchArg) -> Value:
        in_memory, here = self.start(arg.base)
        place: int | None = here
        for offset in arg.derefs:
            if in_memory and place is not None:
                place = self.number(place, self.bits // 8)
            place = None if place is None else (place + offset) % (1 << self.bits)
            in_memory = True
        if not in_memory:
            return self.typed(arg.type, place)
        kind, size = arg.type.kind, arg.type.size
        found: list[int | bytes | None] = []
        for index in range(max(arg.type.count, 1)):
            if place is None:
                found.append(None if kind is ValueKind.STRING else 0)
            elif kind is not ValueKind.STRING:
                found.append(self.typed(arg.type, self.number(place + index * size, size)))
            elif not arg.type.count:
                found.append(self.string(place))
            else:
                pointer = self.number(place + index * self.bits // 8, self.bits // 8)
                found.append(None if pointer is None else self.string(pointer))
        return tuple(found) if arg.type.count else found[0]


@st.composite
def types(draw: st.DrawFn) -> FieldType:
    kind = draw(
        st.sampled_from(
            (
                ValueKind.UNSIGNED,
                ValueKind.SIGNED,
                ValueKind.HEX,
                ValueKind.STRING,
                ValueKind.BITFIELD,
            )
        )
    )
    count = draw(st.sampled_from((0, 0, 1, 3, 64)))
    if kind is ValueKind.STRING:
        return FieldType(kind, 0, count)
    size = draw(st.sampled_from((1, 2, 4, 8)))
    if kind is not ValueKind.BITFIELD:
        return FieldType(kind, size, count)
    width = draw(st.integers(1, 8 * size))
    return FieldType(kind, size, count, width, draw(st.integers(0, 8 * size - width)))


@st.composite
def arguments(draw: st.DrawFn) -> FetchArg:
    type_ = draw(types())
    source = draw(
        st.sampled_from(
            (
                Source.REGISTER,
                Source.REGISTER,
                Source.STACK_POINTER,
                Source.RETVAL,
                Source.STACK,
                Source.IMMEDIATE,
                Source.ADDRESS,
                Source.IMAGE,
            )
        )
    )
    memory = source in (Source.ADDRESS, Source.IMAGE)
    least = 1 if (type_.count or type_.kind is ValueKind.STRING) and not memory else 0
    derefs = draw(st.lists(st.integers(-16, 16), min_size=least, max_size=4))
    if source is Source.STACK:
        number = draw(st.integers(0, 4))
    elif source is Source.IMAGE:
        number = draw(st.sampled_from((0, 0x18, 0xFF0, -0x1000)))
    else:
        number = draw(st.sampled_from(POINTERS))
    name = draw(st.sampled_from(("rdi", "rsi", "rdx")))
    text = "text"
    return FetchArg("v", text, Base(source, name, number), tuple(derefs), type_)


def random_memory(seed: int) -> FakeMemory:
    """Three pages, two of them neighbours, full of pointers among each other and of strings."""
    random = Random(seed)
    pages = {}
    for address in (0x1000, 0x2000, 0x4000):
        data = bytearray(random.randbytes(PAGE))
        for at in range(0, PAGE - 8, 8):
            if random.random() < 0.6:
                struct.pack_into("<Q", data, at, random.choice(POINTERS))
            elif random.random() < 0.2:
                data[at] = 0
        pages[address] = bytes(data)
    return FakeMemory(pages)


MEMORIES = st.integers(0, 1000).map(random_memory)


@settings(max_examples=200, deadline=None)
@given(
    args=st.lists(arguments(), max_size=6),
    memory=MEMORIES,
    registers=st.fixed_dictionaries(
        {name: st.sampled_from(POINTERS) for name in ("rdi", "rsi", "rdx", "rsp", "rax")}
    ),
    big=st.booleans(),
    most=st.sampled_from((1 << 14, 1 << 20)),
)
def test_values_are_those_of_the_reference(
    args: list[FetchArg], memory: FakeMemory, registers: dict[str, int], big: bool, most: int
) -> None:
    bench = Bench(memory, replace(X86, byteorder="big" if big else "little"))
    bench.cpu.registers = registers
    site = FetchSite(0x1234, image_base=0x1000)
    reference = Reference(bench, site)
    assert record(tuple(args), bench, site) == tuple(reference.evaluate(arg) for arg in args)
    bench.cpu.time, sink = 0, Plain(most)
    context = replace(bench.context, sink=sink)
    recorder(7, RecordLayout.of(tuple(args)), site, context)(42)
    if len(bench.drained[0]) <= most:  # nothing was cut
        assert bytes(sink.buffer[: sink.position]) == bench.drained[0]


@settings(max_examples=60, deadline=None)
@given(arg=arguments(), memory=MEMORIES, low=st.sampled_from((0x1000, 0x2FF0, 0xFFFFFFFC)))
def test_a_32_bit_guest_has_small_words_and_addresses(
    arg: FetchArg, memory: FakeMemory, low: int
) -> None:
    bench = Bench(memory, replace(X86, bits=32))
    bench.cpu.registers = dict.fromkeys(("rdi", "rsi", "rdx", "rsp", "rax"), low)
    site = FetchSite(0x1234, image_base=0x1000)
    if arg.base.source is Source.IMMEDIATE and not arg.derefs:
        return  # an immediate of 64 bits is recorded whole
    assert value_of(arg, bench, site) == Reference(bench, site).evaluate(arg)


@pytest.mark.parametrize("case", KERNEL["cases"], ids=lambda case: str(case["id"]))
def test_lines_are_those_of_linux(case: dict[str, Any]) -> None:
    pages = {int(at, 16): bytes.fromhex(data) for at, data in KERNEL["pages"].items()}
    bench = Bench(memory_of(pages), comm=b"kf_nopie")
    definition = parse(case["definition"], X86)
    assert isinstance(definition, Definition)
    layout = RecordLayout.of(definition.args, definition.is_return)
    site = FetchSite(case["address"], image_base=0x400000)
    hit = recorder(1, layout, site, bench.context)
    for one in case["hits"]:
        bench.cpu.registers = one["registers"]
        hit(99, *([one["returned_to"]] if definition.is_return else []))
    info = EventInfo.of(1, definition.group, definition.event, layout)
    text = FtraceFormat({1: info}, Names()).rows(bench.rows()).decode()
    bodies = [line.split(": ", 1)[1] for line in text.splitlines()]
    expected = case["lines"]
    if 's=\\"' in case["definition"]:
        # Linux reads the immediate string of a uprobe from user memory and fails.
        assert expected == ["e: (0x401156) s=(fault)"] * 2
        expected = ['e: (0x401156) s=""'] * 2
    assert bodies == expected


def test_strings_are_cut_at_the_limit_of_the_kernel() -> None:
    pages = {0x1000 * page: b"x" * PAGE for page in range(1, 4)}
    bench = Bench(FakeMemory(pages))
    arg = fetch(Base(Source.ADDRESS, value=0x1001), STRING)
    assert value_of(arg, bench) == b"x" * (STRING_MAX - 1)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 4094, 4095])
def test_a_string_may_end_with_its_page(size: int) -> None:
    bench = Bench(memory_of({0x1000: b"y" * (PAGE - 1)}))
    arg = fetch(Base(Source.ADDRESS, value=0x2000 - 1 - size), STRING)
    assert value_of(arg, bench) == b"y" * size


def test_a_string_that_runs_into_nothing_is_a_fault() -> None:
    bench = Bench(FakeMemory({0x1000: b"z" * PAGE}))
    assert value_of(fetch(Base(Source.ADDRESS, value=0x1FF0), STRING), bench) is None


def test_an_array_keeps_the_elements_that_can_be_read() -> None:
    bench = Bench(FakeMemory({0x1000: b"\1" * PAGE}))
    arg = fetch(Base(Source.ADDRESS, value=0x1FFA), FieldType(ValueKind.UNSIGNED, 2, 5))
    assert value_of(arg, bench) == (257, 257, 257, 0, 0)


def test_text_comm_and_symbol_strings() -> None:
    bench = Bench(FakeMemory({}), comm=b"a name")
    bench.cpu.registers = {"rdi": 0xABC}
    args = (
        fetch(Base(Source.TEXT, text=b"const"), STRING),
        fetch(Base(Source.COMM), STRING),
        fetch(register("rdi"), FieldType(ValueKind.SYMSTR, 0)),
    )
    assert record(args, bench) == (b"const", b"a name", b"sym_abc+0x0/0x10")


def test_what_no_definition_can_contain_is_refused() -> None:
    bench = Bench(FakeMemory({}))
    for type_ in (STRING, FieldType(ValueKind.HEX, 8, 4)):
        layout = RecordLayout.of((fetch(register("rdi"), type_),))
        with pytest.raises(ValueError, match="not in memory"):
            recorder(1, layout, FetchSite(0), bench.context)
    for event_id in (0, 0x10000):
        with pytest.raises(ValueError, match="event id"):
            recorder(event_id, RecordLayout.of(()), FetchSite(0), bench.context)


@pytest.mark.parametrize("capacity", [1 << 17, 1 << 20])
def test_a_row_never_outgrows_its_size_field_or_the_staging(capacity: int) -> None:
    """128 arrays of 64 pointers to 4,095 bytes each: what fits is kept, the rest is cut."""
    pages = {0x1000: struct.pack("<Q", 0x2000) * 512, 0x2000: b"s" * 4095 + b"\0"}
    bench = Bench(FakeMemory(pages), capacity=capacity)
    arg = fetch(Base(Source.ADDRESS, value=0x1000), FieldType(ValueKind.STRING, 0, 64))
    values = record((arg,) * 128, bench)
    flat = [text for value in values if isinstance(value, tuple) for text in value]
    assert len(flat) == 128 * 64
    sizes = [len(text) if isinstance(text, bytes) else None for text in flat]
    whole = sizes.count(4095)
    room = min(ROW_MAX * 8, capacity) - (3 + 128 * 64) * 8
    assert whole == room // 4096
    assert sizes[whole] == room % 4096 - 1
    assert set(sizes[whole + 1 :]) == {None}


def test_rows_survive_drains_in_between() -> None:
    """Strings of all lengths, many more than the staging holds at once."""
    bench = Bench(memory_of({0x1000: bytes(range(1, 250))}), capacity=1 << 17)
    layout = RecordLayout.of((fetch(register("rdi"), STRING, 0), fetch(register("rsi"))))
    hit = recorder(3, layout, FetchSite(0x10), bench.context)
    for index in range(5000):
        bench.cpu.registers = {"rdi": 0x1000 + index % 249, "rsi": index}
        hit(1)
    rows = bench.rows()
    assert len(bench.drained) > 2
    events, position = {3: EventInfo.of(3, "g", "e", layout)}, 0
    for index in range(5000):
        event = decode(events, rows, position)
        assert event.time == index + 1
        assert event.values == (bytes(range(1 + index % 249, 250)), index)
        position += HEAD.unpack_from(rows, position)[1] * 8
    assert position == len(rows)


def test_a_return_event_records_both_addresses() -> None:
    bench = Bench(FakeMemory({}))
    bench.cpu.registers = {"rax": 5}
    plain = (fetch(Base(Source.RETVAL)),)
    general = (*plain, fetch(Base(Source.COMM), STRING))
    for args in (plain, general):
        layout = RecordLayout.of(args, returns=True)
        bench.drained.clear()
        recorder(2, layout, FetchSite(0x401156), bench.context)(9, 0x4012D9)
        event = decode({2: EventInfo.of(2, "g", "e", layout)}, bench.rows())
        assert (event.address, event.returned_to, event.values[0]) == (0x401156, 0x4012D9, 5)

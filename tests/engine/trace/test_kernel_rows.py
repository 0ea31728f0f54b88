"""Rows made of a running kernel's records say what the kernel's own text says."""

import struct
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from livekit import DATA, FORMATS, LAYOUT, LINES, defined, formats, pages

from engine.arch.program import THREAD_MOST, FieldType, ValueKind
from engine.errors import CommandError
from engine.session.tracing.tracing import Tracing
from engine.trace.formats import format_named
from engine.trace.formats.base import Names
from engine.trace.kernel_rows import KernelEvent, RowMaker, row_maker, stack_maker, thread_of
from engine.trace.ring_pages import RingRecord
from engine.trace.rows import Column, EventInfo, EventSource, decode

BUSY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

STACK = EventInfo(9, "ftrace", "user_stack", (), source=EventSource.STACK)


@pytest.fixture(scope="module")
def tracing() -> Iterator[Tracing]:
    with defined(*LINES) as found:
        yield found


@pytest.fixture(scope="module")
def makers(tracing: Tracing) -> dict[int, RowMaker]:
    """By the number that records begin with."""
    events = formats(FORMATS)
    return {
        events[name].number: row_maker(info, events[name])
        for (_, name), info in tracing.infos.items()
    }


@pytest.fixture(scope="module")
def records() -> list[RingRecord]:
    (page,) = pages((DATA / "pages.bin").read_bytes())
    return LAYOUT.decode(page).records


def number_of(record: RingRecord) -> int:
    (number,) = struct.unpack_from("<H", record.data)
    assert isinstance(number, int)
    return number


def test_the_text_is_the_kernels(
    tracing: Tracing, makers: dict[int, RowMaker], records: list[RingRecord]
) -> None:
    names = Names(comm=lambda thread: b"structs", exact=True)
    form = format_named("ftrace")(tracing.table, names)
    rows = b"".join(makers[number_of(one)](one.time, one.data) for one in records)
    ours = form.rows(rows).splitlines()
    theirs = [
        line
        for line in (DATA / "trace.txt").read_bytes().splitlines()
        if line[:1] not in (b"#", b"")
    ]
    assert len(ours) == len(theirs) == 19
    for own, line in zip(ours, theirs, strict=True):
        who, _, what = own.partition(b" [000] ..... ")
        their_who, _, told = line.partition(b" [000] DBZff ")
        assert who == their_who
        assert what.split(b": ", 1)[1] == told.split(b": ", 1)[1]


def test_times_and_threads(
    tracing: Tracing, makers: dict[int, RowMaker], records: list[RingRecord]
) -> None:
    for record in records:
        row = makers[number_of(record)](record.time, record.data)
        event = decode(tracing.table, row)
        assert (event.time, event.thread_id) == (record.time, thread_of(record.data))


def test_a_call_stack() -> None:
    event = formats((DATA / "overwritten_formats.txt").read_text())["user_stack"]
    page = LAYOUT.decode((DATA / "overwritten.bin").read_bytes())
    stacks = [one for one in page.records if number_of(one) == event.number]
    row = stack_maker(STACK, event)(stacks[0].time, stacks[0].data)
    assert row[24:] == b"" or len(row) % 8 == 0
    assert struct.unpack_from("<Q", row, 16) == (0x555555555159,)
    assert struct.unpack_from("<Q", row, 8) == (stacks[0].time,)


def test_what_the_format_file_lacks_is_told(tracing: Tracing) -> None:
    info = tracing.infos["kprobes", "deposit"]
    events = formats(FORMATS)
    with pytest.raises(CommandError, match="records no __probe_ip"):
        row_maker(info, events["deposited"])
    with pytest.raises(CommandError, match="ID"):
        KernelEvent.of("name: other\n")
    text = FORMATS[FORMATS.index("name: deposit\n") :].replace("size:1;", "size:3;")
    with pytest.raises(CommandError, match="3 bytes"):
        row_maker(info, KernelEvent.of(text.partition("print fmt")[0]))


@BUSY
@given(st.data())
def test_damaged_records(
    makers: dict[int, RowMaker], records: list[RingRecord], tracing: Tracing, data: st.DataObject
) -> None:
    record = data.draw(st.sampled_from(records))
    changed = bytearray(record.data[: data.draw(st.integers(8, len(record.data)))])
    changed[data.draw(st.integers(2, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        row = makers[number_of(record)](record.time, bytes(changed))
    except struct.error:
        return
    event = decode(tracing.table, row)
    assert 0 <= event.thread_id <= THREAD_MOST


KPROBES: Final = {
    "open": (
        ("dfd", FieldType(ValueKind.SIGNED, 4)),
        ("name", FieldType(ValueKind.STRING, 0)),
        ("flags", FieldType(ValueKind.HEX, 8)),
        ("comm", FieldType(ValueKind.STRING, 0)),
    ),
    "opened": (("ret", FieldType(ValueKind.SIGNED, 8)),),
    "inside": (
        ("ip", FieldType(ValueKind.HEX, 8)),
        ("two", FieldType(ValueKind.HEX, 8, count=2)),
        ("f", FieldType(ValueKind.BITFIELD, 4, width=4, offset=2)),
        ("c", FieldType(ValueKind.HEX, 1)),
    ),
}
"""The arguments of kprobes on do_sys_openat2 of Debian's Linux 6.1."""


def test_kprobes_of_an_older_kernel() -> None:
    infos: list[EventInfo] = []
    for number, (name, args) in enumerate(KPROBES.items(), 1):
        word = 4 if name == "opened" else 3
        columns: list[Column] = []
        for arg, kind in args:
            columns.append(Column(arg, kind, word))
            word += columns[-1].words
        infos.append(
            EventInfo(number, "mine", name, tuple(columns), word, name == "opened", symbolic=True)
        )
    events = formats((DATA / "kprobes_formats.txt").read_text())
    made = {events[info.name].number: row_maker(info, events[info.name]) for info in infos}
    (page,) = pages((DATA / "kprobes_pages.bin").read_bytes())
    records = LAYOUT.decode(page).records
    rows = b"".join(made[number_of(one)](one.time, one.data) for one in records)
    form = format_named("ftrace")({info.id: info for info in infos}, Names(exact=True))
    ours = [line.partition(b") ")[2] for line in form.rows(rows).splitlines()]
    text = (DATA / "kprobes_trace.txt").read_bytes().splitlines()
    assert ours == [line.partition(b") ")[2] for line in text]
    assert len(ours) == 12

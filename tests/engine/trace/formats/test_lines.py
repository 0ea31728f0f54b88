"""Rows that become text many at a time say what they say one by one."""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.program import RETURN_HEAD, ROW_HEAD, FieldType, ValueKind
from engine.trace.formats import format_named
from engine.trace.formats.base import Names
from engine.trace.formats.protobuf import varint, varints
from engine.trace.rows import Column, EventInfo, pack_row

FORMATS = ("ftrace", "jsonl", "perfetto")
KINDS = (
    FieldType(ValueKind.SIGNED, 4),
    FieldType(ValueKind.UNSIGNED, 8),
    FieldType(ValueKind.HEX, 8),
    FieldType(ValueKind.HEX, 2, 3),
    FieldType(ValueKind.CHAR, 1),
    FieldType(ValueKind.SYMBOL, 8),
    FieldType(ValueKind.STRING, 0),
)
NAMES = Names(
    symbol=lambda address: f"%f{address:x}+0x0/0x10",
    comm={7: b"a %d", 8: b"b\xff"}.get,
    returning=lambda address: address == 0x2000,
)


def event(number: int, kinds: list[FieldType], returns: bool, symbolic: bool) -> EventInfo:
    word, columns = RETURN_HEAD if returns else ROW_HEAD, []
    for index, kind in enumerate(kinds):
        columns.append(Column(f"%a{index}", kind, word))
        word += columns[-1].words
    return EventInfo(number, "g%", f"e%{number}", tuple(columns), word, returns, symbolic)


@st.composite
def runs(draw: st.DrawFn) -> tuple[dict[int, EventInfo], list[list[bytes]]]:
    """Events, and rows: of one event in one thread at one place each list."""
    kinds = st.lists(st.sampled_from(KINDS), max_size=3)
    plain = st.lists(st.sampled_from(KINDS[:4]), max_size=3)
    events = {
        number: event(number, draw(plain | kinds), number != 1, draw(st.booleans()))
        for number in (1, 2, 70_000)
    }
    time, found = draw(st.sampled_from((0, 16_380, 1 << 40))), []
    number = st.sampled_from((0, 1, 127, 128)) | st.integers(0, (1 << 64) - 1)
    text = st.just(b"") | st.binary(max_size=5).map(lambda text: text + b"\0")
    for _ in range(draw(st.integers(1, 5))):
        info = events[draw(st.sampled_from(sorted(events)))]
        thread, address = draw(st.sampled_from((7, 8, 9))), draw(st.sampled_from((0x1000, 0x2000)))
        returned = [draw(st.sampled_from((0x3000, 0x4000)))] if info.returns else []
        rows = []
        for _ in range(draw(st.sampled_from((1, 2, 4, 9)))):
            time += draw(st.integers(0, 9))
            values: list[int | bytes] = [*returned]
            for column in info.columns:
                one: st.SearchStrategy[Any] = text if column.type.is_string else number
                values += [draw(one) for _ in range(column.words)]
            rows.append(pack_row(info, thread, time, address, values))
        found.append(rows)
    return events, found


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=15, deadline=None)
@given(runs())
def test_rows_at_once_say_what_they_say_one_by_one(
    name: str, case: tuple[dict[int, EventInfo], list[list[bytes]]]
) -> None:
    events, found = case
    forms = [format_named(name)(events, NAMES) for _ in range(3)]
    single, by_run, whole = [form.header() for form in forms]
    for rows in found:
        single += b"".join(map(forms[0].rows, rows))
        by_run += forms[1].rows(b"".join(rows))
    whole += forms[2].rows(b"".join(b"".join(rows) for rows in found))
    assert single == by_run == whole
    assert forms[0].state() == forms[1].state() == forms[2].state()


@pytest.mark.parametrize("name", FORMATS)
def test_a_long_run_and_another_name_and_program_behind_it(name: str) -> None:
    info = event(1, [KINDS[2], KINDS[0]], False, True)
    rows = [pack_row(info, 7, 5 + at, 0x1000, [at * at, -at]) for at in range(3000)]
    comms, program = {7: b"first"}, 0
    names = Names(symbol=lambda address: f"p{program}.{address:x}", comm=comms.get)

    def written(pieces: list[bytes]) -> bytes:
        nonlocal program
        form, out = format_named(name)({1: info}, names), b""
        for program, comm in ((0, b"first"), (1, b"second"), (0, b"second")):
            comms[7] = comm
            form.renamed(7)
            form.program(program)
            out += b"".join(map(form.rows, pieces))
        return out

    found = written([b"".join(rows)])
    assert found == written(rows)
    assert found.count(b"second") >= 1


@pytest.mark.parametrize("name", FORMATS)
def test_events_at_very_many_places(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than is remembered."""
    monkeypatch.setattr("engine.trace.formats.lines._LINES", 5)
    monkeypatch.setattr("engine.trace.formats.perfetto._MEMORY", 1000)
    events = {number: event(number, [KINDS[1]], False, True) for number in range(1, 30)}
    rows = [
        pack_row(events[1 + at % 29], 7 + at % 2, at, 0x1000 + at % 31, [at]) for at in range(200)
    ]
    small = format_named(name)(events, NAMES)
    found = b"".join(map(small.rows, rows))
    monkeypatch.undo()
    assert found == format_named(name)(events, NAMES).rows(b"".join(rows))


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_of_another_size_than_its_event_has(name: str) -> None:
    """As a program can write it that has the memory of rows in reach."""
    info = event(1, [KINDS[1]], False, False)
    row = struct.pack("<HHI4Q", 1, 5, 7, 3, 0x1000, 9, 0)
    form, other = (format_named(name)({1: info}, NAMES) for _ in range(2))
    assert form.rows(row * 5) == b"".join(other.rows(row) for _ in range(5))
    with pytest.raises(struct.error):
        form.rows(struct.pack("<HHIQQ", 1, 3, 7, 3, 0x1000) * 5)


@settings(max_examples=40)
@given(st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 1 << 15)))
def test_varints_of_many(values: list[int]) -> None:
    assert varints(values) == list(map(varint, values))

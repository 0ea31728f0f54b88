"""JSON lines, Perfetto and folded stacks.

Perfetto's bytes are read by a decoder of the test's own, and by Perfetto's schema where the
package `perfetto` is installed.
"""

import json
import struct
from typing import Any

import pytest
from eventkit import FACT, INFOS, OPEN, RET, SYMBOLS, THREAD, fact, opened, ret
from hypothesis import given
from hypothesis import strategies as st
from protowire import fields, packets

from engine.arch.program import ROW_HEAD, FieldType, ValueKind
from engine.trace.formats import FORMAT_NAMES, Names, format_named
from engine.trace.formats.folded import FoldedFormat
from engine.trace.formats.jsonl import JsonLinesFormat
from engine.trace.formats.perfetto import PerfettoFormat
from engine.trace.formats.protobuf import varint
from engine.trace.formats.values import plain
from engine.trace.rows import HEAD, Column, EventInfo, EventSource, decode, pack_row
from engine.trace.syscalls import arguments, enter_info, exit_info

FIELDS = arguments("openat", False)
assert FIELDS is not None
STACK = EventInfo(4, "ftrace", "user_stack", (), source=EventSource.STACK)
ENTER, EXIT = enter_info(5, "openat", FIELDS), exit_info(6, "openat")
EVENTS = {info.id: info for info in (*INFOS, STACK, ENTER, EXIT)}
NAMES = Names(
    lambda address: SYMBOLS.get(address, hex(address)),
    lambda thread: b"gu\xffest" if thread == THREAD else None,
    lambda address: address == 0x401130,
    process=lambda thread: {THREAD: THREAD - 1}.get(thread, thread),
)


def stack(time: int, *frames: int) -> bytes:
    words = ROW_HEAD + len(frames)
    return HEAD.pack(4, words, THREAD) + struct.pack(f"<{words - 1}Q", time, frames[0], *frames)


def openat(time: int, path: bytes) -> bytes:
    text = path + b"\0"
    words = struct.pack("<QQ", time, 0x400000)
    words += struct.pack("<5Q", 257, 2**64 - 100, 0x5000, 0, 0)
    words += struct.pack("<II", ENTER.words * 8, len(text))
    data = words + text + bytes(-len(text) % 8)
    return HEAD.pack(5, len(data) // 8 + 1, THREAD) + data


def opened_at(time: int, result: int) -> bytes:
    return HEAD.pack(6, EXIT.words, THREAD) + struct.pack("<QQQq", time, 0x400000, 257, result)


def track_events(data: bytes) -> list[tuple[int, int, str]]:
    """(time, type, name) of the events of a trace."""
    found = []
    for packet in packets(data):
        assert packet[10] == 1
        if 11 in packet:
            event = dict(fields(packet[11]))
            assert event[11] == THREAD
            found.append((packet[8], event[9], event.get(23, b"").decode()))
    return found


BEGIN, END, INSTANT = 1, 2, 3


def perfetto(*rows: bytes) -> bytes:
    form = PerfettoFormat(EVENTS, NAMES)
    return form.header() + form.rows(b"".join(rows)) + form.end()


def test_calls_nest_as_slices() -> None:
    data = perfetto(
        fact(10, 2), fact(12, 1), openat(13, b"/x"), opened_at(14, 3), ret(15, 1), ret(17, 2)
    )
    assert track_events(data) == [
        (10, BEGIN, "fact"),
        (12, BEGIN, "fact"),
        (13, BEGIN, "openat"),
        (14, END, ""),
        (15, END, ""),
        (17, END, ""),
    ]


def test_what_never_returned_ends_with_its_caller() -> None:
    data = perfetto(fact(10, 2), openat(13, b"/x"), ret(15, 1), ret(16, 1))
    kinds = [kind for _, kind, _ in track_events(data)]
    assert kinds == [BEGIN, BEGIN, END, END, INSTANT]


def test_two_events_of_one_hit_are_one_slice() -> None:
    kinds = [kind for _, kind, _ in track_events(perfetto(fact(10, 2), fact(10, 2), ret(12, 1)))]
    assert kinds == [BEGIN, INSTANT, END]


def test_annotations_tracks_and_strings_that_are_no_utf8() -> None:
    found = packets(perfetto(opened(9, b"/a\xff", -1)))
    first, process, thread, event = found
    assert first[13] == 1
    described = dict(fields(process[60]))
    assert dict(fields(described[3])) == {1: THREAD - 1, 6: b"?"}
    track = dict(fields(thread[60]))
    assert track[5] == described[1]  # the process's track is the parent
    task = dict(fields(track[4]))
    assert (task[1], task[2], task[5]) == (THREAD - 1, THREAD, b"gu\xffest")
    notes = [dict(fields(value)) for number, value in fields(event[11]) if number == 4]
    by_name = {note[10].decode(): note for note in notes}
    assert by_name["path"][6] == b"/a\\xff"
    assert by_name["fd"][4] == 2**64 - 1
    assert by_name["address"][6].startswith(b"0x")


@given(st.integers(-(2**63), 2**64 - 1))
def test_varints(value: int) -> None:
    assert list(fields(b"\x08" + varint(value))) == [(1, value % 2**64)]


def test_perfettos_schema_knows_every_field() -> None:
    module = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    unknown = pytest.importorskip("google.protobuf.unknown_fields")
    trace = module.Trace()
    trace.ParseFromString(
        perfetto(fact(10, 2), stack(10, 0x401130, 0x401155), opened(11, b"/a", 3), ret(12, 1))
    )
    assert len(trace.packet) == 7

    def strangers(message: Any) -> int:
        count = len(unknown.UnknownFieldSet(message))
        for field, value in message.ListFields():
            if field.message_type is not None:
                several = value if isinstance(value, list) or hasattr(value, "add") else [value]
                count += sum(strangers(one) for one in several)
        return count

    assert sum(strangers(packet) for packet in trace.packet) == 0
    assert [packet.track_event.name for packet in trace.packet[3:]] == [
        "fact",
        "stack",
        "open",
        "",
    ]


# -- the others -------------------------------------------------------------------------------


def test_json_lines() -> None:
    form = JsonLinesFormat(EVENTS, NAMES)
    rows = fact(10, -2) + stack(10, 0x401130, 0x401155) + ret(15, 7) + opened(16, b'"/a\xff\n', 3)
    lines = [json.loads(line) for line in (form.header() + form.rows(rows)).splitlines()]
    assert [line["event"] for line in lines] == [
        "kprobes/fact", "ftrace/user_stack", "kprobes/fact_ret", "uprobes/open",
    ]  # fmt: skip
    assert lines[0] == {
        "event": "kprobes/fact",
        "time": 10,
        "pid": THREAD - 1,
        "tid": THREAD,
        "cpu": 0,
        "comm": {"text": "gu\\xffest", "hex": b"gu\xffest".hex()},
        "address": "0x401130",
        "symbol": "fact+0x0/0x2a",
        "args": {"n": -2},
    }
    assert [frame["symbol"] for frame in lines[1]["stack"]] == ["fact+0x0/0x2a", "main+0x25/0x80"]
    assert (lines[2]["returned_to"], lines[2]["args"]) == ("0x401155", {"ret": 7})
    path = {"text": '"/a\\xff\n', "hex": b'"/a\xff\n'.hex()}
    assert lines[3]["args"] == {"path": path, "fd": 3}
    assert json.loads(form.lost(4)) == {"lost": 4}


_TYPES = [
    FieldType(ValueKind.SIGNED, 4),
    FieldType(ValueKind.UNSIGNED, 8),
    FieldType(ValueKind.HEX, 2, 3),
    FieldType(ValueKind.CHAR, 1),
    FieldType(ValueKind.CHAR, 1, 2),
    FieldType(ValueKind.SYMBOL, 8),
    FieldType(ValueKind.STRING, 0),
    FieldType(ValueKind.STRING, 0, 2),
]
_NUMBERS: st.SearchStrategy[int | bytes] = st.integers(0, 2**64 - 1)
_TEXTS: st.SearchStrategy[int | bytes] = st.one_of(
    st.just(b""), st.binary(max_size=9).map(lambda text: text + b"\0")
)


def as_json(value: Any, kind: FieldType) -> Any:
    """A value as JSON lines have it: bytes that are no UTF-8 are told from text."""
    if isinstance(value, tuple):
        return [as_json(one, kind) for one in value]
    data = bytes([value & 0xFF]) if kind.kind is ValueKind.CHAR else value
    if not isinstance(data, bytes):
        return plain(value, kind, NAMES)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"text": data.decode(errors="backslashreplace"), "hex": data.hex()}


@given(st.data())
def test_json_lines_have_the_values_of_rows(data: st.DataObject) -> None:
    returns = data.draw(st.booleans())
    word = 3 if returns else 2
    columns: list[Column] = []
    values: list[int | bytes] = [0x401155] * returns
    for number, kind in enumerate(data.draw(st.lists(st.sampled_from(_TYPES), max_size=4))):
        column = Column(f"%a{number}", kind, word + 1)
        word += column.words
        columns.append(column)
        one: st.SearchStrategy[int | bytes] = _TEXTS if kind.is_string else _NUMBERS
        values += [data.draw(one) for _ in range(column.words)]
    info = EventInfo(9, "g%", 'n"', tuple(columns), word + 1, returns)
    row = pack_row(info, THREAD, 5, 0x401130, values)
    (line,) = JsonLinesFormat({9: info}, NAMES).rows(row).splitlines()
    found, event = json.loads(line), decode({9: info}, row)
    assert found["event"] == 'g%/n"'
    assert found.get("returned_to") == ("0x401155" if returns else None)
    assert found["args"] == {
        column.name: as_json(value, column.type)
        for column, value in zip(columns, event.values, strict=True)
    }
    assert line.isascii()
    assert b"\x7f" not in line


def test_folded_stacks() -> None:
    form = FoldedFormat(EVENTS, NAMES)
    one, two = (0x401130, 0x401156), (0x401130, 0x401131, 0x401156)
    data = b"".join(fact(t, 1) + stack(t, *frames) for t, frames in enumerate((one, two, one)))
    assert form.header() + form.rows(data) + form.lost(5) == b""
    lines = form.end().decode().splitlines()
    assert lines == [
        "[lost] 5",
        "gu\\xffest;main;fact;fact 2",
        "gu\\xffest;main;fact;fact;fact 1",
    ]
    assert form.end() == b""


@pytest.mark.parametrize("kind", [*map(format_named, FORMAT_NAMES)], ids=lambda kind: kind.name)
def test_every_format_takes_every_row(kind: Any) -> None:
    form = kind(EVENTS, NAMES)
    rows = (fact(1, 1), openat(2, b"/x"), stack(2, 0x401130), opened_at(3, -2), ret(4, 1),
            opened(5, b"", 0))  # fmt: skip
    out = form.header() + form.rows(b"".join(rows)) + form.lost(3) + form.end()
    assert isinstance(out, bytes)
    assert out or any(write.data for write in form.aside())
    form.renamed(THREAD)
    assert isinstance(form.rows(rows[0]), bytes)
    assert {FACT, RET, OPEN} <= set(EVENTS)


@pytest.mark.parametrize("info", EVENTS.values(), ids=lambda info: info.name)
def test_descriptions_survive_as_json(info: EventInfo) -> None:
    again = EventInfo.from_json(json.loads(json.dumps(info.to_json())))
    assert again == info
    assert again.accepts(info.words)
    assert again.accepts(info.words + 3) is (info.strings or info.source is EventSource.STACK)

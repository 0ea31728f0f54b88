"""ftrace's text; what a kernel printed for values is compared in tests/engine/fetch."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.program import Base, FetchArg, FieldType, RecordLayout, Source, ValueKind
from engine.trace.formats import FORMAT_NAMES, format_named
from engine.trace.formats.base import Names, no_symbol
from engine.trace.formats.event_text import EventLines
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.kinds import float_text
from engine.trace.rows import Event, EventInfo, Scalar, Value, decode

DATA = Path(__file__).parents[3] / "data" / "events" / "kernel-6.18.json"
RAX = Base(Source.REGISTER, "rax")
SYMBOLS = {
    0x1000: "vfs_read+0x0/0x4b0",
    0x2004: "do_it+0x4/0x20",
    0x3010: "a::operator+(b)+0x10/0x40",
}
NAMES = Names(
    lambda address: SYMBOLS.get(address, f"{address:#x}"),
    lambda thread: {7: b"prog", 8: b"sixteen-chars-16"}.get(thread),
)


def arg(name: str, type_: FieldType) -> FetchArg:
    return FetchArg(name, "x", RAX, (0,), type_)


def event(
    *types: FieldType, returns: bool = False, symbolic: bool = False, name: str = "e"
) -> EventInfo:
    args = tuple(arg(f"a{index}", type_) for index, type_ in enumerate(types))
    return EventInfo.of(1, "g", name, RecordLayout.of(args, returns), symbolic)


def row(
    info: EventInfo,
    *words: int,
    texts: bytes = b"",
    thread: int = 7,
    time: int = 5,
    address: int = 0x1000,
) -> bytes:
    data = struct.pack(f"<QQ{len(words)}Q", time, address, *words) + texts
    data += bytes(-len(data) % 8)
    return struct.pack("<HHI", info.id, len(data) // 8 + 1, thread) + data


def line(info: EventInfo, data: bytes) -> str:
    text = FtraceFormat({1: info}, NAMES).rows(data).decode()
    assert text.endswith("\n")
    return text[:-1]


def body(info: EventInfo, data: bytes) -> str:
    return line(info, data).split(": ", 1)[1]


def test_the_header_is_that_of_the_kernel() -> None:
    expected = json.loads(DATA.read_text())["header"]
    text = FtraceFormat({}, Names())
    counted = text.header(2, 2).decode().replace("#P:1", "#P:2")
    assert counted == "\n".join(expected) + "\n"
    assert text.header(3, 10).decode().splitlines()[2].split() == [
        "#", "entries-in-buffer/entries-written:", "3/10", "#P:1",
    ]  # fmt: skip
    streamed = text.header().decode()
    assert streamed == "\n".join(expected[:2] + expected[4:]) + "\n"


@pytest.mark.parametrize(
    ("thread", "time", "expected"),
    [
        (7, 5, "            prog-7       [000] .....            5: e: (0x1000)"),
        (8, 10**12, "sixteen-chars-16-8       [000] ..... 1000000000000: e: (0x1000)"),
        (1234567, 0, "           <...>-1234567 [000] .....            0: e: (0x1000)"),
    ],
)
def test_the_front_of_a_line(thread: int, time: int, expected: str) -> None:
    info = event()
    assert line(info, row(info, thread=thread, time=time)) == expected


def test_the_columns_of_a_line_stand_below_the_legend() -> None:
    info = event()
    legend = FtraceFormat({}, Names()).header().decode().splitlines()[-2:]
    assert legend[0].startswith("#           TASK-PID     CPU#  |||||  TIMESTAMP")
    text = line(info, row(info))
    assert text[legend[0].index("CPU#") :].startswith("[000] ")
    flags = legend[0].index("|||||")
    assert text[flags : flags + 5] == "....."


def test_the_process_of_a_thread_stands_in_a_column_of_its_own() -> None:
    """As Linux 6.18 prints it with options/record-tgid."""
    info = event()
    form = FtraceFormat({1: info}, Names(process=lambda thread: thread - 1), ("record-tgid",))
    *_, rule, names, bars = form.header().decode().splitlines()
    assert names == "#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION"
    assert bars == "#              | |           |       |   |||||     |         |"
    assert rule.index("||||") == names.index("|||||")
    assert form.rows(row(info)).startswith(b"           <...>-7       (      6) [000] .....   ")


def test_a_renamed_thread_is_printed_with_its_new_name() -> None:
    comm = {7: b"old"}
    info = event()
    text = FtraceFormat({1: info}, Names(comm=comm.get))
    assert b" old-7 " in text.rows(row(info))
    comm[7] = b"new"
    text.renamed(7)
    assert b" new-7 " in text.rows(row(info))


def test_lost_events_are_noted() -> None:
    assert FtraceFormat({}, Names()).lost(12) == b"CPU:0 [LOST 12 EVENTS]\n"


@pytest.mark.parametrize(
    ("symbolic", "returns", "words", "expected"),
    [
        (False, False, (), "e: (0x1000)"),
        (True, False, (), "e: (vfs_read+0x0/0x4b0)"),
        (False, True, (0x2004,), "e: (0x2004 <- 0x1000)"),
        (True, True, (0x2004,), "e: (do_it+0x4/0x20 <- vfs_read)"),
        (True, True, (0x9999,), "e: (0x9999 <- vfs_read)"),
    ],
)
def test_where_an_event_was(
    symbolic: bool, returns: bool, words: tuple[int, ...], expected: str
) -> None:
    info = event(symbolic=symbolic, returns=returns)
    assert body(info, row(info, *words)) == expected


def test_a_function_without_offset_whatever_its_name() -> None:
    info = event(symbolic=True, returns=True)
    text = body(info, row(info, 0x2004, address=0x3010))
    assert text == "e: (do_it+0x4/0x20 <- a::operator+(b))"
    assert body(info, row(info, 0x2004, address=0x77)) == "e: (do_it+0x4/0x20 <- 0x77)"


@pytest.mark.parametrize(
    ("type_", "word", "expected"),
    [
        (FieldType(ValueKind.UNSIGNED, 1), 0xFFFFFFFFFFFFFFF9, "249"),
        (FieldType(ValueKind.SIGNED, 1), 0xFFFFFFFFFFFFFFF9, "-7"),
        (FieldType(ValueKind.SIGNED, 2), 0x12348000, "-32768"),
        (FieldType(ValueKind.SIGNED, 4), 0xFFFFFFF9, "-7"),
        (FieldType(ValueKind.SIGNED, 8), (1 << 64) - 1, "-1"),
        (FieldType(ValueKind.UNSIGNED, 4), (1 << 64) - 1, "4294967295"),
        (FieldType(ValueKind.UNSIGNED, 8), (1 << 64) - 1, "18446744073709551615"),
        (FieldType(ValueKind.HEX, 2), 0x1234FFF9, "0xfff9"),
        (FieldType(ValueKind.HEX, 8), 0, "0x0"),
        (FieldType(ValueKind.CHAR, 1), 0x7F00 + ord("Q"), "'Q'"),
        (FieldType(ValueKind.BITFIELD, 4, 0, 5, 3), 19, "19"),
        (FieldType(ValueKind.SYMBOL, 8), 0x2004, "do_it+0x4/0x20"),
        (FieldType(ValueKind.SYMBOL, 8), 0x2005, "0x2005"),
    ],
)
def test_values(type_: FieldType, word: int, expected: str) -> None:
    info = event(type_)
    assert body(info, row(info, word)) == f"e: (0x1000) a0={expected}"


@pytest.mark.parametrize(
    ("exact", "expected"),
    [
        (False, b'a0=\'\\33\' a1="\xc3\xa9\\xff%d\\n\\""\n'),
        (True, b'a0=\'\x1b\' a1="\xc3\xa9\xff%d\n""\n'),
    ],
)
def test_bytes_of_the_guest_are_escaped_or_exact(exact: bool, expected: bytes) -> None:
    info = event(FieldType(ValueKind.CHAR, 1), FieldType(ValueKind.STRING, 0))
    text = FtraceFormat({1: info}, Names(exact=exact)).rows(
        row(info, 0x1B, 40 | 8 << 32, texts=b'\xc3\xa9\xff%d\n"\0')
    )
    assert text.endswith(expected)


def test_percent_signs_in_names_are_text() -> None:
    info = event(FieldType(ValueKind.HEX, 8), name="a%s")
    assert body(info, row(info, 1)) == "a%s: (0x1000) a0=0x1"


def test_arrays_of_everything() -> None:
    types = (
        FieldType(ValueKind.SYMBOL, 8, 2),
        FieldType(ValueKind.STRING, 0, 2),
        FieldType(ValueKind.SIGNED, 1, 3),
        FieldType(ValueKind.CHAR, 1, 1),
    )
    info = event(*types, returns=True, symbolic=True)
    at = (4 + 8) * 8
    words = (0x2004, 0x1000, 0x9, at | 4 << 32, 0, 1, 0xFF, 0x80, 65)
    assert body(info, row(info, *words, texts=b"abc\0")) == (
        "e: (do_it+0x4/0x20 <- vfs_read) a0={vfs_read+0x0/0x4b0,0x9} "
        "a1={\"abc\",(fault)} a2={1,-1,-128} a3={'A'}"
    )


def plain(info: EventInfo, found: Event) -> str:
    """The text of a decoded event, written the long way."""

    def shown(kind: ValueKind, value: Scalar) -> str:
        if value is None:
            return "(fault)"
        if isinstance(value, bytes):
            return '"' + value.decode().replace("\n", "\\n") + '"'
        if isinstance(value, float):
            return float_text(value, 8)
        if kind is ValueKind.CHAR:
            return f"'{chr(value)}'"
        if kind is ValueKind.SYMBOL:
            return NAMES.symbol(value)
        return f"{value:#x}" if kind is ValueKind.HEX else str(value)

    def column(kind: ValueKind, value: Value) -> str:
        if isinstance(value, tuple):
            return "{" + ",".join(shown(kind, one) for one in value) + "}"
        return shown(kind, value)

    where = f"{found.address:#x}"
    if found.returned_to is not None:
        where = f"{found.returned_to:#x} <- {where}"
    values = "".join(
        f" {one.name}={column(one.type.kind, value)}"
        for one, value in zip(info.columns, found.values, strict=True)
    )
    return f"            prog-7       [000] ..... {found.time:12d}: e: ({where}){values}\n"


@st.composite
def events(draw: st.DrawFn) -> tuple[EventInfo, bytes]:
    """An event and a few of its rows."""
    kinds = st.sampled_from(
        (
            ValueKind.UNSIGNED,
            ValueKind.SIGNED,
            ValueKind.HEX,
            ValueKind.CHAR,
            ValueKind.SYMBOL,
            ValueKind.STRING,
        )
    )
    types = []
    for kind in draw(st.lists(kinds, max_size=5)):
        size = {ValueKind.CHAR: 1, ValueKind.SYMBOL: 8, ValueKind.STRING: 0}.get(kind)
        size = draw(st.sampled_from((1, 2, 4, 8))) if size is None else size
        types.append(FieldType(kind, size, draw(st.sampled_from((0, 0, 1, 3)))))
    info = event(*types, returns=draw(st.booleans()))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        words = [draw(st.integers(0, 1 << 47))] if info.returns else []
        texts = b""
        for type_ in types:
            for _ in range(max(type_.count, 1)):
                if type_.kind is ValueKind.STRING:
                    text = draw(st.none() | st.text("ab \n%", max_size=9))
                    data = b"" if text is None else text.encode() + b"\0"
                    words.append(info.words * 8 + len(texts) | len(data) << 32)
                    texts += data
                elif type_.kind is ValueKind.CHAR:
                    words.append(draw(st.integers(32, 126)))
                else:
                    words.append(draw(st.integers(0, (1 << 64) - 1)))
        rows.append(row(info, *words, texts=texts, time=draw(st.integers(0, 1 << 63))))
    return info, b"".join(rows)


@settings(max_examples=200, deadline=None)
@given(events())
def test_lines_and_decoded_events_say_the_same(case: tuple[EventInfo, bytes]) -> None:
    info, data = case
    expected, position = "", 0
    while position < len(data):
        expected += plain(info, decode({1: info}, data, position))
        position += struct.unpack_from("<H", data, position + 2)[0] * 8
    assert FtraceFormat({1: info}, NAMES).rows(data).decode() == expected


@settings(max_examples=100, deadline=None)
@given(events())
def test_the_description_of_an_event_survives_json(case: tuple[EventInfo, bytes]) -> None:
    info, _ = case
    assert EventInfo.from_json(json.loads(json.dumps(info.to_json()))) == info


def test_formats_have_names_of_their_own() -> None:
    assert FORMAT_NAMES[0] == "ftrace"
    assert [format_named(name).name for name in FORMAT_NAMES] == list(FORMAT_NAMES)


def test_a_name_that_is_known_only_later() -> None:
    """What is not known is asked for again, what is known is not."""
    asked: list[int] = []
    known: dict[int, bytes] = {}

    def comm(thread: int) -> bytes | None:
        asked.append(thread)
        return known.get(thread)

    info = event()
    names = Names(no_symbol, comm)
    text, lines = FtraceFormat({1: info}, names), EventLines({1: info}, names)
    data = row(info, thread=9)
    assert b"<...>-9 " in text.rows(data)
    assert lines.parts(data).task == b"<...>-9"
    known[9] = b"late"
    assert b" late-9 " in text.rows(data)
    assert lines.parts(data).task == b"late-9"
    asked.clear()
    assert b" late-9 " in text.rows(data * 3)
    assert lines.parts(data).task == b"late-9"
    assert asked == []

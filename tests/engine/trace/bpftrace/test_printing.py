"""What scripts print, as text: maps, values, messages, and what stands for nothing."""

import time
from typing import Any

import pytest

from engine.trace.bpftrace import output
from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.maps import SCALAR, ScriptMap
from engine.trace.bpftrace.output import ScriptPlace
from engine.trace.bpftrace.printing import TextOutput
from engine.trace.bpftrace.text import ScriptText, Span
from engine.trace.bpftrace.types import AGGREGATES, BOOL, INT64, UINT64, Aggregate, TextType, Tuple
from engine.trace.bpftrace.value_names import SymbolName, ValueNames
from engine.trace.bpftrace.values import (
    AF_INET,
    UNWOUND_NO_FURTHER,
    CgroupPathValue,
    InetValue,
    MacValue,
    StackValue,
    SymbolValue,
    TimestampValue,
    UsernameValue,
)

SYMBOLS = {
    0x10: (SymbolName("inner", None, place="/src/a.c:3"), SymbolName("main", 4, "/bin/x")),
    0x20: (SymbolName("start", 0),),
}
NAMES = ValueNames(
    user_symbols=lambda address, process: SYMBOLS.get(address, ()) if process == 7 else (),
    kernel_symbols=lambda address: SYMBOLS.get(address, ()),
    username=lambda user: "root" if not user else "",
    cgroup_path=lambda group, pattern: f"unified:/{group}",
    localtime=time.gmtime,
    booted_at=1_700_000_000_000_000_000,
)
MS = 1_000_000
LAST = AGGREGATES.index("hist")
"""Stands for no function of a time series."""


class Printed:
    """An output that remembers."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.errors: list[bytes] = []
        self.to = TextOutput(self.parts.append, self.errors.append, NAMES)

    @property
    def text(self) -> str:
        return b"".join(self.parts).decode()


def printed(of: ScriptMap, top: int = 0, div: int = 0) -> str:
    into = Printed()
    into.to.map(of, top, div)
    return into.text


def shown(kind: kinds.Type, value: Any) -> str:
    into = Printed()
    into.to.value(kind, value)
    assert into.text.endswith("\n")
    return into.text[:-1]


def entries(key: kinds.Type | None, value: kinds.Type, **found: Any) -> ScriptMap:
    of = ScriptMap("", key, value)
    for name, cell in found.items():
        of.add(name.encode(), cell)
    return of


def test_values() -> None:
    record = kinds.Record((("x", INT64), ("y", Tuple((BOOL, TextType(4))))))
    assert shown(record, (1, (True, b"ab"))) == "{ .x = 1, .y = (true, ab) }"
    assert shown(kinds.Record(()), ()) == "{}"
    assert shown(kinds.Array(kinds.Array(INT64, 2), 2), ((1, 2), (3, 4))) == "[[1,2],[3,4]]"
    assert shown(kinds.Tuple((INT64,)), (1,)) == "(1)"
    assert shown(TextType(4), b"abcd") == "abcd.."
    assert shown(kinds.BufferType(9), b"a\0\x7f\\") == r"a\x00\x7f\\"[:-1]
    assert shown(kinds.Pointer(INT64), 0) == "0x0"
    assert shown(kinds.VOID, None) == "null"
    enumeration = kinds.Enumeration("e", kinds.Integer(32, True), ((-1, "LOW"), (3, "HIGH")))
    assert [shown(enumeration, value) for value in (-1, 3, -2)] == ["LOW", "HIGH", "4294967294"]


def test_values_that_are_shown_by_name() -> None:
    assert shown(kinds.ShownType("inet"), InetValue(AF_INET, b"\x7f\0\0\1")) == "127.0.0.1"
    assert shown(kinds.ShownType("mac"), MacValue(b"\1\2\3\4\5\xff")) == "01:02:03:04:05:FF"
    assert shown(kinds.ShownType("username"), UsernameValue(0)) == "root"
    assert shown(kinds.ShownType("username"), UsernameValue(4)) == ""
    assert shown(kinds.ShownType("cgroup_path"), CgroupPathValue(5)) == "unified:/5"
    assert shown(kinds.ShownType("strerror"), b"I/O error") == "I/O error"
    assert shown(kinds.SymbolType("user"), SymbolValue(0x10, 7)) == "main"
    assert shown(kinds.SymbolType("user"), SymbolValue(0x10, 8)) == "0x10"
    assert shown(kinds.SymbolType("kernel"), SymbolValue(0)) == "0"


@pytest.mark.parametrize(
    ("form", "nanoseconds", "text"),
    [
        (b"%m/%d/%y", 0, "11/14/23"),
        (b"%H:%M:%S.%f", 1_000_123_456, "22:13:21.000123"),
        (b"%S %k %l", 5_012_345_678, "25 012345678 012"),
        (b"%%|%Y", 0, "%|2023"),
        (b"", 0, "(?)"),
        (b"a" * 1024, 0, "(?)"),
        (b"\xff", 0, "\udcff"),
        (b"%Y", 1 << 100, "(?)"),
        (b"%Y", -1_700_000_000_000_000_000, "(?)"),
    ],
)
def test_moments(form: bytes, nanoseconds: int, text: str) -> None:
    into = Printed()
    into.to.value(kinds.ShownType("timestamp"), TimestampValue(nanoseconds, form))
    assert b"".join(into.parts).decode("utf-8", "surrogateescape") == f"{text}\n"


def test_a_moment_of_the_wall_clock_is_counted_from_1970() -> None:
    moment = TimestampValue(86400 * 10**9, b"%F %T", "tai")
    assert shown(kinds.ShownType("timestamp"), moment) == "1970-01-02 00:00:00"


def test_stacks() -> None:
    stack = StackValue((0x10, 0x20, 0x30), process=7)
    assert shown(kinds.StackType("user"), stack) == (
        "\n        [inlined] inner@/src/a.c:3\n        main+4\n        start+0\n        0x30\n"
    )
    assert shown(kinds.StackType("user", "perf"), stack) == (
        "\n\t10 inner (inlined)\n\t10 main+4 (/bin/x)\n\t20 start+0 ([unknown])\n"
        "\t30 0x30 ([unknown])\n"
    )
    assert shown(kinds.StackType("kernel", "perf"), stack) == (
        "\n\t10 inner (inlined)\n\t10 main+4\n\t20 start+0\n\t30 0x30\n"
    )
    assert shown(kinds.StackType("user", "raw", limit=2), stack) == "\n10\n20\n"
    assert shown(kinds.StackType("user"), StackValue((0x20, UNWOUND_NO_FURTHER, 0x10), 7)) == (
        "\n        start+0\n        <unwind failure>\n"
    )
    build = StackValue(build_ids=((b"\xab\xcd", 5), (b"", 0x30)))
    assert shown(kinds.StackType("user", "build_id"), build) == "\nabcd 0x05\n30\n"
    assert shown(kinds.StackType("user"), StackValue()) == "\n"


def test_a_stack_as_a_key_takes_several_lines() -> None:
    of = ScriptMap("x", kinds.StackType("user"), Aggregate("count"))
    of.count(StackValue((0x20,), 7))
    assert printed(of) == "@x[\n        start+0\n]: 1\n"


def test_keys_of_tuples_have_no_parentheses() -> None:
    inner = Tuple((INT64, Tuple((INT64, INT64))))
    of = ScriptMap("x", inner, INT64)
    of.add((1, (2, 3)), 4)
    assert printed(of) == "@x[1, (2, 3)]: 4\n"
    assert printed(entries(TextType(8), INT64, **{"(a)": 1})) == "@[a]: 1\n"
    assert printed(entries(TextType(8), INT64, **{"(": 1})) == "@[(]: 1\n"


def test_maps_of_numbers() -> None:
    of = entries(TextType(8), INT64, c=7, a=-7, b=2)
    assert printed(of) == "@[a]: -7\n@[b]: 2\n@[c]: 7\n"
    assert printed(of, top=2, div=2) == "@[b]: 1\n@[c]: 3\n"
    assert printed(of, div=2).startswith("@[a]: -3\n")
    averages = entries(TextType(8), Aggregate("avg"), a=[1, 10], b=[1, 20], c=[1, 30], d=[1, 40])
    assert printed(averages, top=2, div=10) == "@[c]: 3\n@[d]: 4\n"
    stats = entries(TextType(8), Aggregate("stats"), a=[2, 9])
    assert printed(stats, div=2) == "@[a]: { .count = 2, .average = 2, .total = 9 }\n"


def test_a_value_that_is_not_there_is_zero_if_it_is_asked_for() -> None:
    for kind, text in (
        (INT64, "0"),
        (Aggregate("count"), "0"),
        (Aggregate("avg"), "0"),
        (Aggregate("stats"), "{ .count = 0, .average = 0, .total = 0 }"),
        (
            kinds.Record((("a", INT64), ("b", Tuple((INT64, TextType(4)))))),
            "{ .a = 0, .b = (0, ) }",
        ),
        (TextType(5), ""),
    ):
        of = ScriptMap("", None, kind)
        assert printed(of) == f"@: {text}\n"
        into = Printed()
        into.to.final([of])
        assert into.text == "\n\n"
    assert printed(ScriptMap("", None, Aggregate("hist", True, (0,)))) == ""
    assert printed(ScriptMap("", INT64, INT64)) == ""


def test_maps_are_printed_at_the_end_in_the_order_of_their_names() -> None:
    found = []
    for name in ("b", "", "a"):
        of = ScriptMap(name, None, INT64)
        of.add(SCALAR, 1)
        found.append(of)
    into = Printed()
    into.to.final(found)
    assert into.text == "\n\n@: 1\n@a: 1\n@b: 1\n"


def test_histograms_have_an_empty_line_behind_them() -> None:
    of = ScriptMap("h", INT64, Aggregate("hist", True, (0,)))
    of.histogram(5, 3)
    bar = "@" * 52
    assert printed(of) == f"@h[5]:\n[2, 4)                 1 |{bar}|\n\n"
    scalar = ScriptMap("h", None, Aggregate("lhist", True, (0, 10, 5)))
    scalar.linear(SCALAR, 99)
    assert printed(scalar) == f"@h:\n[10, ...)              1 |{bar}|\n\n"
    scalar.zero()
    assert printed(scalar) == "@h:\n\n"


def test_time_series() -> None:
    of = ScriptMap("", None, Aggregate("tseries", True, (100 * MS, 3, LAST)))
    for now, value in ((100, 5), (200, -2), (300, 1), (500, 4)):
        of.series(SCALAR, value, now * MS)
    assert printed(of).splitlines() == [
        "@:",
        "             1                                                   4",
        "hh:mm:ss.ms  |___________________________________________________|",
        "00:00:00.300 *                                                   | 1",
        "00:00:00.400 |                                                   | -",
        "00:00:00.500 |                                                   * 4",
        "             v___________________________________________________v",
        "             1                                                   4",
        "",
    ]
    of.zero()
    assert printed(of) == "@:\n<no data>\n"


def test_time_series_of_one_value_and_of_both_signs() -> None:
    of = ScriptMap("x", TextType(4), Aggregate("tseries", True, (10**9, 5, LAST)))
    of.series(b"a", 7, 3 * 10**9)
    lines = printed(of).splitlines()
    assert lines[0] == "@x[a]:"
    assert lines[1].split() == ["6", "8"]
    assert lines[3] == "00:00:03.000000000 |" + " " * 25 + "*" + " " * 25 + "| 7"
    of.series(b"a", -7, 4 * 10**9)
    lines = printed(of).splitlines()
    assert lines[2] == "hh:mm:ss |" + "_" * 51 + "|"
    assert lines[3] == "00:00:03 |" + " " * 25 + "." + " " * 25 + "* 7"
    assert lines[4] == "00:00:04 *" + " " * 25 + "." + " " * 25 + "| -7"


def test_unsigned_time_series_reach_the_end_of_their_numbers() -> None:
    of = ScriptMap("x", None, Aggregate("tseries", False, (10**9, 5, LAST)))
    of.series(SCALAR, (1 << 64) - 1, 10**9)
    assert printed(of).splitlines()[1].split() == [str((1 << 64) - 2), str((1 << 64) - 1)]


def test_texts_and_counts() -> None:
    into = Printed()
    into.to.text("printf", b"a\0\xff")
    into.to.text("time", b"12:00\n")
    into.to.text("join", b"a b")
    into.to.text("cat", b"c")
    into.to.attached(1)
    into.to.attached(3)
    into.to.lost(5)
    assert b"".join(into.parts) == b"a\0\xff12:00\na b\nc"
    assert into.errors == [b"Attached 1 probe\n", b"Attached 3 probes\n", b"Lost 5 events\n"]


SCRIPT = ScriptText("stdin", 'macro bad() { errorf("x"); }\nbegin {\tbad(); }\n')
CALL = ScriptPlace(SCRIPT, Span(14, 25))
USE = ScriptPlace(SCRIPT, Span(SCRIPT.text.index("\tbad") + 1, SCRIPT.text.index("; }\n", 30)))


def test_messages_name_their_place() -> None:
    into = Printed()
    into.to.message("ERROR", b"Something \xff\n", [CALL, USE])
    assert b"".join(into.errors).decode("utf-8", "surrogateescape") == (
        "stdin:1:15-26: ERROR: Something \udcff\n"
        "stdin:2:9-14: ERROR: expanded from\n"
        "begin {    bad(); }\n"
        "           ~~~~~\n"
    )
    assert into.parts == []


def test_faults_show_their_place() -> None:
    into = Printed()
    into.to.fault(output.MAP_FULL, [CALL])
    first, second, *rest = b"".join(into.errors).decode().splitlines()
    assert first.startswith("stdin:1:15-26: WARNING: Map full; can't update element.")
    assert second == "Additional Info - helper: map_update_elem, retcode: -7"
    assert rest == ['macro bad() { errorf("x"); }', " " * 14 + "~" * 11]
    into = Printed()
    into.to.fault(output.DIVIDED_BY_ZERO, [ScriptPlace(SCRIPT, Span(14, 40))])
    lines = b"".join(into.errors).decode().splitlines()
    assert lines[0].startswith("stdin:1-2: WARNING: Divide or modulo by 0 detected.")
    assert lines[1:] == SCRIPT.text.splitlines()


def test_a_map_of_many_keys_is_written_in_parts() -> None:
    of = ScriptMap("x", UINT64, UINT64)
    for key in range(4096):
        of.add(key, key)
    into = Printed()
    into.to.map(of)
    assert len(into.parts) > 1
    assert into.text.splitlines() == [f"@x[{key}]: {key}" for key in range(4096)]

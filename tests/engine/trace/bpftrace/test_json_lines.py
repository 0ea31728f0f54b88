"""What scripts print, as lines of JSON: each is read back by a reader of JSON."""

import json
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.trace.bpftrace import output
from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.json_lines import JsonOutput
from engine.trace.bpftrace.maps import SCALAR, ScriptMap
from engine.trace.bpftrace.output import ScriptPlace
from engine.trace.bpftrace.text import ScriptText, Span
from engine.trace.bpftrace.types import AGGREGATES, BOOL, INT64, Aggregate, TextType, Tuple
from engine.trace.bpftrace.value_names import ValueNames
from engine.trace.bpftrace.values import StackValue, SymbolValue

PLACE = ScriptPlace(ScriptText("a.bt", "begin { f() }"), Span(8, 11))


class Lines:
    """An output that remembers."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.to = JsonOutput(self.parts.append, ValueNames(localtime=time.gmtime))

    @property
    def text(self) -> str:
        return b"".join(self.parts).decode()

    @property
    def only(self) -> Any:
        (line,) = self.text.removesuffix("\n").split("\n")
        return json.loads(line)


def value(kind: kinds.Type, held: Any) -> str:
    into = Lines()
    into.to.value(kind, held)
    start = '{"type": "value", "data": '
    assert into.text.startswith(start)
    json.loads(into.text)
    return into.text[len(start) : -2]


def mapped(of: ScriptMap, top: int = 0, div: int = 0) -> Any:
    into = Lines()
    into.to.map(of, top, div)
    return into.only


def test_values() -> None:
    record = kinds.Record((("x", INT64), ("y", Tuple((BOOL, TextType(4))))))
    assert value(record, (1, (True, b"a b"))) == '{"x": 1, "y": [true,"a b"]}'
    assert value(kinds.Array(INT64, 3), (1, 2, 3)) == "[1,2,3]"
    assert value(kinds.Pointer(INT64), 50) == "50"
    assert value(kinds.BufferType(4), b"a\xff") == "[97,-1]"
    assert value(kinds.VOID, None) == "null"
    enumeration = kinds.Enumeration("e", kinds.Integer(32, False), ((3, "HIGH"),))
    assert value(enumeration, 3) == "3"  # JSON has numbers
    assert value(kinds.SymbolType("user"), SymbolValue(1)) == '"0x1"'
    assert value(kinds.StackType("user"), StackValue((16,))) == '"\\n        0x10\\n"'


def test_numbers_that_are_no_floating_point_numbers_are_texts() -> None:
    assert value(INT64, 1 << 53) == "9007199254740992"
    assert value(INT64, (1 << 53) + 1) == '"9007199254740993"'
    assert value(INT64, -(1 << 63)) == "-9223372036854775808"
    assert value(INT64, (1 << 63) - 1) == '"9223372036854775807"'


@given(st.binary(max_size=20))
def test_any_text_is_read_back(text: bytes) -> None:
    into = Lines()
    into.to.text("printf", text)
    assert into.only["data"].encode("utf-8", "surrogatepass") == (
        text.decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass")
    )
    assert into.text.count("\n") == 1


def test_texts_have_the_name_of_their_function() -> None:
    into = Lines()
    into.to.text("printf", b'test \r \n \t \\ " bar\x01')
    into.to.text("join", b"a,b")
    into.to.attached(1)
    into.to.lost(7)
    assert into.text.splitlines() == [
        r'{"type": "printf", "data": "test \r \n \t \\ \" bar\u0001"}',
        '{"type": "join", "data": "a,b"}',
        '{"type": "attached_probes", "count": 1, "data": {"probes": 1}}',
        '{"type": "lost_events", "count": 7, "data": {"events": 7}}',
    ]


def test_maps() -> None:
    of = ScriptMap("complex", Tuple((TextType(16), INT64)), INT64)
    of.add((b"a b", 2), 5)
    of.add((b"c", 1), 3)
    into = Lines()
    into.to.map(of)
    # No spaces in keys.
    assert into.text == '{"type": "map", "data": {"@complex": {"c,1": 3, "ab,2": 5}}}\n'
    assert mapped(of, top=1, div=2)["data"] == {"@complex": {"ab,2": 2}}
    scalar = ScriptMap("", None, INT64)
    assert mapped(scalar) == {"type": "map", "data": {"@": 0}}
    scalar.add(SCALAR, 5)
    assert mapped(scalar) == {"type": "map", "data": {"@": 5}}


def test_averages_are_stats() -> None:
    of = ScriptMap("s", TextType(8), Aggregate("stats"))
    for number in (2, 10):
        of.average(b"curl", number)
    wanted = {"curl": {"count": 2, "average": 6, "total": 12}}
    assert mapped(of) == {"type": "stats", "data": {"@s": wanted}}
    averages = ScriptMap("s", None, Aggregate("avg"))
    assert mapped(averages) == {"type": "stats", "data": {"@s": 0}}
    averages.average(SCALAR, 5)
    assert mapped(averages) == {"type": "stats", "data": {"@s": 5}}


def test_histograms_have_closed_buckets() -> None:
    of = ScriptMap("h", INT64, Aggregate("hist", True, (0,)))
    for number in (-1, 0, 3):
        of.histogram(7, number)
    assert mapped(of) == {
        "type": "hist",
        "data": {
            "@h": {
                "7": [
                    {"max": -1, "count": 1},
                    {"min": 0, "max": 0, "count": 1},
                    {"min": 1, "max": 1, "count": 0},
                    {"min": 2, "max": 3, "count": 1},
                ]
            }
        },
    }
    linear = ScriptMap("h", None, Aggregate("lhist", True, (0, 4096, 1024)))
    linear.linear(SCALAR, 5000)
    assert mapped(linear)["data"] == {"@h": [{"min": 4096, "count": 1}]}
    linear.zero()
    assert mapped(linear)["data"] == {"@h": []}


def test_time_series_have_moments_of_greenwich() -> None:
    last = AGGREGATES.index("hist")
    of = ScriptMap("a", None, Aggregate("tseries", True, (500_000_000, 4, last)))
    of.series(SCALAR, 9, 500_000_000)
    of.series(SCALAR, -1, 1_500_000_000)
    assert mapped(of) == {
        "type": "tseries",
        "data": {
            "@a": [
                {"interval_start": "1970-01-01 00:00:00.500000000", "value": 9},
                {"interval_start": "1970-01-01 00:00:01.500000000", "value": -1},
            ]
        },
    }


def test_maps_at_the_end() -> None:
    empty = ScriptMap("e", INT64, INT64)
    full = ScriptMap("f", None, INT64)
    full.add(SCALAR, 1)
    into = Lines()
    into.to.final([full, empty, ScriptMap("d", None, INT64)])
    assert into.only == {"type": "map", "data": {"@f": 1}}
    stats = Lines()
    stats.to.final([ScriptMap("s", INT64, Aggregate("avg"))])
    assert stats.only == {"type": "stats", "data": {"@s": {}}}  # as bpftrace has it


def test_messages_and_faults_have_their_place() -> None:
    place = {"filename": "a.bt", "line": 1, "col": 9}
    into = Lines()
    into.to.message("WARNING", b"x\xff", [PLACE])
    assert into.only == {"type": "warnf", "msg": "x\udcff", **place}
    into = Lines()
    into.to.fault(output.unreadable("probe_read_user"), [PLACE])
    assert into.only == {
        "type": "helper_error",
        "msg": "Bad address",
        "helper": "probe_read_user",
        "retcode": -14,
        **place,
    }
    into = Lines()
    into.to.fault(output.OUT_OF_BOUNDS, [PLACE, PLACE])
    assert into.only["type"] == "runtime_error"
    assert into.only["msg"] == output.OUT_OF_BOUNDS.text

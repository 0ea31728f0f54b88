"""Histograms: counts against collections.Counter, lines as the kernel's documentation has them."""

import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arch.program import Base, FetchArg, FieldType, RecordLayout, Source, ValueKind
from engine.errors import ProbeSyntaxError, UnloggedError
from engine.trace.hist_parser import parse_hist
from engine.trace.hist_readers import HistNames
from engine.trace.histogram import HistSpec
from engine.trace.histtable import HistTable
from engine.trace.rows import HEAD, EventInfo

RAX = Base(Source.REGISTER, "rax")
TYPES = {
    "id": FieldType(ValueKind.SIGNED, 8),
    "n": FieldType(ValueKind.SIGNED, 4),
    "bytes_req": FieldType(ValueKind.UNSIGNED, 8),
    "call_site": FieldType(ValueKind.HEX, 8),
    "s": FieldType(ValueKind.STRING, 0),
    "arr": FieldType(ValueKind.UNSIGNED, 1, 4),
}
LAYOUT = RecordLayout.of(tuple(FetchArg(n, "x", RAX, (0,), t) for n, t in TYPES.items()))
INFO = EventInfo.of(3, "kmem", "kmalloc", LAYOUT)
NAMES = HistNames(
    symbol=lambda address: {
        0xFFFFFFFF81046810: "do_it+0x10/0x40",
        0x1000: "main+0x0/0x20",
    }.get(address, f"{address:#x}"),
    comm=lambda thread: {3196: b"gnome-terminal", 3108: b"bash"}.get(thread),
    syscall=lambda number: {10: "unlink", 112: "setsid"}.get(number),
    stack=lambda: (0xFFFFFFFF81046810, 0x1000),
)


def row(
    n: int = 0,
    bytes_req: int = 0,
    call_site: int = 0,
    s: bytes = b"",
    thread: int = 7,
    id_: int = 0,
) -> bytes:
    text = s + b"\0"
    words = struct.pack("<QQqqQQ", 5, 0x1000, id_, n, bytes_req, call_site)
    words += struct.pack("<II4Q", INFO.words * 8, len(text), 1, 2, 3, 4)
    data = words + text + bytes(-len(text) % 8)
    return HEAD.pack(3, len(data) // 8 + 1, thread) + data


def table(text: str, *rows: bytes) -> list[str]:
    """The lines of the table without the head."""
    spec = parse_hist(text, text, INFO)
    found = HistTable(spec, NAMES)
    count = found.counter(spec)
    for data in rows:
        count(data, 0)
    lines = [line.decode() for line in found.lines()]
    assert lines[:2] == ["# event histogram", "#"]
    assert lines[3:5] == ["#", ""]
    return lines[5:]


@pytest.mark.parametrize(
    ("text", "data", "line"),
    [
        ("keys=call_site:val=bytes_req", row(call_site=18446744072106379007, bytes_req=176),
         "{ call_site: 18446744072106379007 } hitcount:          1  bytes_req:        176"),
        ("keys=call_site.hex:val=bytes_req", row(call_site=0xFFFFFFFFA0419369, bytes_req=9),
         "{ call_site: ffffffffa0419369 } hitcount:          1  bytes_req:          9"),
        ("keys=call_site.sym", row(call_site=0xFFFFFFFF81046810),
         "{ call_site: [ffffffff81046810] " + "do_it".ljust(45) + " } hitcount:          1"),
        ("keys=call_site.sym-offset", row(call_site=0xFFFFFFFF81046810),
         "{ call_site: [ffffffff81046810] " + "do_it+0x10/0x40".ljust(55)
         + " } hitcount:          1"),
        ("keys=common_pid.execname:val=bytes_req", row(thread=3196, bytes_req=1093512),
         "{ common_pid: gnome-terminal  [      3196] } hitcount:          1  "
         "bytes_req:    1093512"),
        ("keys=id.syscall", row(id_=10),
         "{ id: sys_unlink                    [ 10] } hitcount:          1"),
        ("keys=id.syscall", row(id_=999),
         "{ id: unknown_syscall               [999] } hitcount:          1"),
        ("keys=bytes_req.log2", row(bytes_req=32),
         "{ bytes_req: ~ 2^5  } hitcount:          1"),
        ("keys=bytes_req.log2", row(bytes_req=33),
         "{ bytes_req: ~ 2^6  } hitcount:          1"),
        ("keys=bytes_req.buckets=100", row(bytes_req=1234),
         "{ bytes_req: ~ 1200-1299 } hitcount:          1"),
        ("keys=n", row(n=-7),
         "{ n: 18446744073709551609 } hitcount:          1"),
        ("keys=s,n", row(s=b"hello", n=3),
         "{ s: " + "hello".ljust(50) + ", n:          3 } hitcount:          1"),
        ("keys=common_comm", row(thread=3108),
         "{ common_comm: " + "bash".ljust(50) + " } hitcount:          1"),
        ("keys=common_cpu,common_timestamp", row(),
         "{ common_cpu:          0, common_timestamp:          5 } hitcount:          1"),
        ("keys=n:vals=bytes_req.hex", row(bytes_req=255),
         "{ n:          0 } hitcount:          1  bytes_req:         ff"),
        ("keys=n:vals=bytes_req:nohitcount", row(bytes_req=5),
         "{ n:          0 }  bytes_req:          5"),
    ],
)  # fmt: skip
def test_lines(text: str, data: bytes, line: str) -> None:
    assert table(text, data) == [line, "", "Totals:", "    Hits: 1", "    Entries: 1",
                                 "    Dropped: 0"]  # fmt: skip


def test_stacks_as_keys() -> None:
    lines = table("keys=stacktrace:values=bytes_req", row(bytes_req=4), row(bytes_req=5))
    assert "\n".join(lines[:1]).splitlines() == [
        "{ common_stacktrace:",
        "         do_it+0x10/0x40",
        "         main+0x0/0x20",
        "} hitcount:          2  bytes_req:          9",
    ]


def test_shares_and_bars() -> None:
    rows = [row(n=1)] * 3 + [row(n=2)]
    lines = table("keys=n:vals=hitcount.percent", *rows)
    assert lines[:2] == [
        "{ n:          2 } hitcount:          1  hitcount (%):  25.00",
        "{ n:          1 } hitcount:          3  hitcount (%):  75.00",
    ]
    lines = table("keys=n:vals=hitcount.graph", *rows)
    assert lines[:2] == [
        "{ n:          2 } hitcount:          1  hitcount: " + "######".ljust(20),
        "{ n:          1 } hitcount:          3  hitcount: " + "#" * 20,
    ]
    assert "[ERROR]" not in table("keys=n:vals=bytes_req.percent", *rows)[0]


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 5)), max_size=60))
def test_it_counts_as_a_counter(pairs: list[tuple[int, int]]) -> None:
    spec = parse_hist("keys=n,bytes_req:sort=n,bytes_req.descending", "", INFO)
    found = HistTable(spec, NAMES)
    count = found.counter(spec)
    for n, size in pairs:
        count(row(n=n, bytes_req=size), 0)
    expected = Counter(pairs)
    order = sorted(expected, key=lambda pair: (pair[0], -pair[1]))
    lines = found.lines()[5 : 5 + len(order)]
    assert lines == [
        b"{ n: %10d, bytes_req: %10d } hitcount: %10d" % (n % 2**64, size, expected[n, size])
        for n, size in order
    ]
    assert (found.hits, found.dropped) == (len(pairs), 0)


def test_a_full_table_drops() -> None:
    spec = parse_hist("keys=n:size=65", "", INFO)
    assert spec.size == 128
    found = HistTable(spec, NAMES)
    count = found.counter(spec)
    for n in range(200):
        count(row(n=n), 0)
    count(row(n=5), 0)
    assert (found.hits, found.dropped) == (129, 72)
    found.clear()
    assert found.lines()[-3:] == [b"    Hits: 0", b"    Entries: 0", b"    Dropped: 0"]


@pytest.mark.parametrize(
    ("text", "listing"),
    [
        ("keys=n", "hist:keys=n:vals=hitcount:sort=hitcount:size=2048 [active]"),
        ("key=n.hex,s:val=bytes_req:sort=n.descending,hitcount:size=100:name=x",
         "hist:name=x:keys=n.hex,s:vals=hitcount,bytes_req:sort=n.hex.descending,hitcount:size=128"
         " [active]"),
        ("keys=bytes_req.buckets=16:pause",
         "hist:keys=bytes_req.buckets=16:vals=hitcount:sort=hitcount:size=2048 [active]"),
        ("keys=stacktrace,cpu",
         "hist:keys=common_stacktrace,common_cpu:vals=hitcount:sort=hitcount:size=2048 [active]"),
    ],
)  # fmt: skip
def test_the_line_of_the_trigger_file(text: str, listing: str) -> None:
    spec = parse_hist(text, text, INFO)
    assert spec.listing() == listing
    assert spec.listing("n > 1", paused=True).endswith(" if n > 1 [paused]")


@pytest.mark.parametrize(
    ("text", "error", "at"),
    [
        ("keys=m", "Couldn't find field", "m"),
        ("keys=n.loud", "Invalid field modifier", "loud"),
        ("keys=n.execname", "Invalid field modifier", "execname"),
        ("keys=n.percent", "Invalid field modifier", "percent"),
        ("keys=n:vals=bytes_req.log2", "Invalid field modifier", "bytes_req.log2"),
        ("keys=n.buckets=0", "Invalid field modifier", "0"),
        ("keys=s.sym", "Invalid field modifier", "sym"),
        ("keys=common_comm.hex", "Invalid field modifier", "hex"),
        ("keys=n:x=comm.log2", "Invalid field modifier", "log2"),
        ("keys=common_stacktrace.hex", "Invalid field modifier", "hex"),
        ("keys=common_comm.stacktrace", "Invalid field modifier", "common_comm.stacktrace"),
        ("keys=", "Empty assignment", "keys="),
        ("keys=n:sort=s", "Sort field must be a key or a val", "s"),
        ("keys=n:sort=n.up", "Invalid sort modifier", "up"),
        ("keys=n,s:sort=n,s,hitcount", "Too many sort fields (Max = 2)", "sort="),
        ("keys=n:sort=n,", "Empty sort field", "sort="),
        ("keys=n:vals=s", "Invalid argument", "s"),
        ("keys=arr", "Invalid argument", "arr"),
        ("keys=n:nohitcount", "Non-hitcount value is required for 'nohitcount'", ""),
    ],
)
def test_errors(text: str, error: str, at: str) -> None:
    with pytest.raises(ProbeSyntaxError) as caught:
        parse_hist(text, text, INFO)
    found = caught.value
    assert (found.text, found.subsystem) == (error, "hist:kmem:kmalloc")
    assert found.command == f"hist:{text}"
    assert found.column == (found.command.index(at) if at else 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vals=n", "keys="),
        ("keys=n,s,id,call_site", "more than 3 keys"),
        ("keys=s,s,s", "384 bytes"),
        ("keys=n:vals=n,id,call_site", "more than 2 values"),
        ("keys=n:size=9999999", "131072"),
        ("keys=n:size=x", "no number"),
        ("keys=n:loud", "no part"),
        ("keys=n:x=n+", "operand"),
        ("keys=n:x=-n", r"-\(EXPRESSION"),
        ("keys=n:x=-(n", "not closed"),
        ("keys=n:x=n:onmax($x", "not closed"),
    ],
)
def test_where_the_kernel_says_nothing(text: str, said: str) -> None:
    with pytest.raises(UnloggedError, match=said):
        parse_hist(text, text, INFO)


def test_what_makes_two_histograms_the_same() -> None:
    def shape(text: str) -> object:
        spec: HistSpec = parse_hist(text, text, INFO)
        return spec.shape

    assert shape("keys=n") == shape("keys=n:pause:size=100")
    assert shape("keys=n") != shape("keys=n.hex")
    assert shape("keys=n") != shape("keys=n:sort=n")
    assert shape("keys=n") != shape("keys=n:vals=bytes_req")

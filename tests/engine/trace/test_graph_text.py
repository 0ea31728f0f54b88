"""The text of the function tracers: golden files written from the kernel's rules, then frozen."""

import struct

import pytest
from sysroot import CHECKOUT

from engine.arch.program import FieldType, ValueKind
from engine.errors import CommandError
from engine.trace.formats.base import Names
from engine.trace.formats.function import FunctionFormat
from engine.trace.formats.graph import GraphFormat
from engine.trace.function import function_info
from engine.trace.graph import EXIT_ROW, entry_info, exit_info
from engine.trace.rows import EventInfo

GOLDEN = CHECKOUT / "tests" / "data" / "graph"
SYMBOLS = {
    0x1000: ("main", 0x40),
    0x2000: ("leaf", 0x10),
    0x3000: ("mid", 0x20),
    0x4000: ("deep", 0x80),
    0x5000: ("lost", 0x8),
    0x6000: ("last", 0x8),
    0x7000: ("start", 0x94),
}
S32, HEX = FieldType(ValueKind.SIGNED, 4), FieldType(ValueKind.HEX, 8)
U8 = FieldType(ValueKind.UNSIGNED, 1)
MAIN_ARGS = (("argc", S32, None), ("argv", HEX, None))
LEAF_ARGS = (("a", S32, None), ("c", U8, None))
EVENTS: dict[int, EventInfo] = {
    1: entry_info(1),
    2: exit_info(2),
    3: entry_info(3, MAIN_ARGS),
    4: entry_info(4, LEAF_ARGS),
    5: function_info(5),
    6: function_info(6, MAIN_ARGS),
    7: function_info(7, LEAF_ARGS),
}


def symbol(address: int) -> str:
    name, size = SYMBOLS[address & ~0xFFF]
    return f"{name}+{address & 0xFFF:#x}/{size:#x}"


NAMES = Names(symbol, lambda thread: b"mystery-machine" if thread == 557 else b"other")


def enter(
    time: int,
    function: int,
    depth: int,
    parent: int,
    *args: int,
    event: int = 1,
    thread: int = 557,
) -> bytes:
    words = 5 + len(args)
    head = event | words << 16
    return struct.pack(f"<II{words - 1}Q", head, thread, time, function, depth, parent, *args)


def leave(
    time: int, function: int, depth: int, began: int, *, value: int = 0, left: int = 0
) -> bytes:
    head = 2 | 8 << 16
    return EXIT_ROW.pack(head, 557, time, function, 0x1010, depth, began, left, value)


def rows(*, args: bool = False) -> list[bytes]:
    main = (2 | 0xDEAD << 32, 0x7FFE) if args else ()
    leaf = ((1 << 32) - 1, 0x12FF) if args else ()
    return [
        enter(100, 0x1000, 0, 0x7058, *main, event=3 if args else 1),
        enter(102, 0x2000, 1, 0x1010, *leaf, event=4 if args else 1),
        leave(105, 0x2000, 1, 102, value=(1 << 64) - 2),
        enter(110, 0x3000, 1, 0x1018),
        enter(112, 0x4000, 2, 0x3008),
        leave(150, 0x4000, 2, 112, left=1),
        leave(160, 0x3000, 1, 110, value=42),
        leave(170, 0x5000, 1, 165, value=0xFFFFFFEA),
        leave(1234567, 0x1000, 0, 100),
        enter(1234570, 0x6000, 0, 0x705C),
    ]


def written(options: tuple[str, ...], data: list[bytes]) -> str:
    form = GraphFormat(EVENTS, NAMES, options)
    return (form.header() + b"".join(map(form.rows, data)) + form.end()).decode()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("default", ()),
        ("funcgraph-tail", ("funcgraph-tail",)),
        ("funcgraph-retval", ("funcgraph-retval",)),
        ("funcgraph-retval-hex", ("funcgraph-retval", "funcgraph-retval-hex")),
        ("funcgraph-retaddr", ("funcgraph-retaddr",)),
        ("funcgraph-retaddr-retval", ("funcgraph-retaddr", "funcgraph-retval")),
        ("funcgraph-args", ("funcgraph-args",)),
        ("funcgraph-abstime", ("funcgraph-abstime",)),
        ("funcgraph-proc", ("funcgraph-proc",)),
        ("nofuncgraph-duration", ("nofuncgraph-duration",)),
        ("nofuncgraph-cpu", ("nofuncgraph-cpu",)),
    ],
)
def test_function_graph(name: str, options: tuple[str, ...]) -> None:
    data = rows(args=name == "funcgraph-args")
    golden = (GOLDEN / f"{name}.txt").read_text("ascii")
    assert written(options, data) == golden
    assert written(options, [b"".join(data)]) == golden  # however rows are cut


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("function", ()),
        ("function-args", ("func-args",)),
        ("function-noparent", ("noprint-parent",)),
        ("function-sym-offset", ("sym-offset",)),
    ],
)
def test_function(name: str, options: tuple[str, ...]) -> None:
    form = FunctionFormat(EVENTS, NAMES, options)

    def row(event: int, time: int, function: int, parent: int, *args: int) -> bytes:
        words = 4 + len(args)
        head = event | words << 16
        return struct.pack(f"<II{words - 1}Q", head, 557, time, function, parent, *args)

    data = (
        row(6, 100, 0x1000, 0x7058, 2, 0x7FFE),
        row(7, 102, 0x2000, 0x1010, (1 << 32) - 1, 0xFF),
        row(5, 110, 0x3000, 0x1018),
    )
    text = form.header() + form.rows(b"".join(data)) + form.end()
    assert text.decode() == (GOLDEN / f"{name}.txt").read_text("ascii")


def test_another_thread_and_lost_events() -> None:
    form = GraphFormat(EVENTS, NAMES)
    text = form.rows(enter(1, 0x1000, 0, 0x7058)) + form.rows(
        enter(2, 0x2000, 0, 0x7058, thread=7)
    )
    assert form.lost(3) == (
        b" ------------------------------------------\n"
        b" 0)  mystery-557   =>    other-7    \n"
        b" ------------------------------------------\n\n"
        b" 0)               |  leaf() {\n"
        b"CPU:0 [LOST 3 EVENTS]\n"
    )
    assert text == b" 0)               |  main() {\n"


@pytest.mark.parametrize("form", [GraphFormat, FunctionFormat])
def test_no_such_option(form: type[GraphFormat] | type[FunctionFormat]) -> None:
    with pytest.raises(CommandError, match="no trace option funcgraph-irq"):
        form(EVENTS, NAMES, ("funcgraph-irq",))

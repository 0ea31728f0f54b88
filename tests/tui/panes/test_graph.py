"""The graph of calls: its lines, its totals, its pane."""

import struct

import pytest
from archkit import FIRST_COMPILED
from controlkit import sample
from eventkit import INFOS, NAMES, fact, ret
from flowkit import SIZES, User, flow
from graphkit import traced
from sessionkit import SAMPLES, loaded

from engine.session.protocol.views import RunState
from engine.trace.formats.base import Names
from engine.trace.formats.graph import GraphFormat
from engine.trace.graph import EXIT_ROW, entry_info, exit_info
from tui.calltree import CLOSE, LEAF, LEFT, OPEN, POINT, CallTree
from tui.panes.graph import ORDERS
from tui.store import EventStore

ENTRY, EXIT = 11, 12
A, B, C = 0x1000, 0x2000, 0x3000


def enter(time: int, function: int, depth: int) -> bytes:
    return struct.pack("<IIQQQQ", ENTRY | 5 << 16, 1, time, function, depth, 0)


def leave(time: int, function: int, depth: int, left: int = 0) -> bytes:
    return EXIT_ROW.pack(EXIT | 8 << 16, 1, time, function, 0, depth, 0, left, 0)


def tree(*rows: bytes, fold: bool = True, returning: tuple[int, ...] = ()) -> CallTree:
    store = EventStore(NAMES)
    store.declare((*INFOS, entry_info(ENTRY), exit_info(EXIT)))
    found = CallTree(store)
    found.fold, found.returning = fold, returning
    for row in rows:  # as they come, not all at once
        store.append(row)
        found.step(0)
    while found.step(1):
        pass
    return found


def shown(lines: CallTree) -> list[tuple[int, int, int, int, int]]:
    found = [lines[index] for index in range(len(lines))]
    return [(each.kind, each.depth, each.function, each.ticks, each.count) for each in found]


LOOP = (
    enter(0, A, 0),
    *(
        row
        for n in range(3)
        for row in (
            enter(10 * n + 1, B, 1),
            enter(10 * n + 2, C, 2),
            leave(10 * n + 4, C, 2),
            leave(10 * n + 5, B, 1),
        )
    ),
    leave(40, A, 0),
)


def test_calls_that_repeat_are_one_line() -> None:
    lines = tree(*LOOP)
    assert shown(lines) == [
        (OPEN, 0, A, 40, 1),
        (OPEN, 1, B, 12, 3),
        (LEAF, 2, C, 2, 1),
        (CLOSE, 1, B, 4, 1),
        (CLOSE, 0, A, 40, 1),
    ]
    totals = {at: (t.calls, t.ticks, t.own) for (_, at), t in lines.totals.items()}
    assert totals == {A: (1, 40, 28), B: (3, 12, 6), C: (3, 6, 6)}
    assert [lines.line_of(number) for number in (0, 1, 2, 4, 13)] == [0, 1, 2, 3, 4]


def test_a_call_within_its_own_function_counts_once_in_the_totals() -> None:
    lines = tree(
        enter(0, A, 0),
        enter(1, B, 1),  # A calls B, which calls A, which calls itself
        enter(3, A, 2),
        enter(6, A, 3),
        leave(8, A, 3),
        leave(9, A, 2),
        leave(12, B, 1),
        leave(20, A, 0),
        enter(30, A, 0),
        leave(35, A, 0),
    )
    totals = {at: (t.calls, t.ticks, t.own) for (_, at), t in lines.totals.items()}
    assert totals == {A: (4, 25, 9 + 4 + 2 + 5), B: (1, 11, 5)}


def test_each_call_alone() -> None:
    lines = tree(*LOOP, fold=False)
    assert [kind for kind, *_ in shown(lines)] == [OPEN, *(OPEN, LEAF, CLOSE) * 3, CLOSE]
    assert {at: t.calls for (_, at), t in lines.totals.items()} == {A: 1, B: 3, C: 3}


def test_calls_left_without_a_return() -> None:
    lines = tree(enter(0, A, 0), enter(1, B, 1), leave(5, B, 1, left=1), enter(6, C, 1))
    assert shown(lines) == [
        (OPEN, 0, A, -1, 1),
        (OPEN, 1, B, 4, 1),
        (LEFT, 1, B, 4, 1),
        (OPEN, 1, C, -1, 1),
    ]


def test_probes_on_entry_and_return_make_a_graph_too() -> None:
    place = 0x401130
    rows = (fact(0, 3), fact(1, 2), fact(2, 1), ret(5, 1), ret(6, 2), ret(9, 6), ret(10, 0))
    assert shown(tree(*rows, returning=(place,))) == [
        (OPEN, 0, place, 9, 1),
        (OPEN, 1, place, 5, 1),
        (LEAF, 2, place, 3, 1),
        (CLOSE, 1, place, 5, 1),
        (CLOSE, 0, place, 9, 1),
        (CLOSE, 0, place, -1, 1),  # its entry was not recorded
    ]
    assert [kind for kind, *_ in shown(tree(fact(0, 1), fact(1, 1)))] == [POINT, POINT]


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_the_lines_are_those_of_the_text(arch: str) -> None:
    with loaded(SAMPLES / arch / "recursion") as guest:
        done = traced(guest.session)
    store = EventStore(NAMES)
    store.declare(done.tracing.table.values())
    store.append(done.data)
    lines = CallTree(store)
    lines.fold = False
    while lines.step(1):
        pass
    form = GraphFormat(done.tracing.table, Names())
    text = (form.rows(done.data) + form.end()).decode().splitlines()
    assert len(lines) == len(text)
    for index, row in enumerate(text):
        line = lines[index]
        duration, _, call = row[4:].partition("|  ")
        assert len(call) - len(call.lstrip()) == 2 * line.depth
        if line.kind != OPEN:
            assert int(duration) == line.ticks
        wanted = {OPEN: "{", LEAF: ";", CLOSE: "}", LEFT: "/"}[line.kind]
        assert call.endswith(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_t_traces_and_the_pane_shows(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.press("t")
        await user.typing()
        await user.type("main fibonacci print")
        await user.press("enter")
        await user.until(lambda: user.focus == "graph", "graph")
        await user.press("c")
        await user.state(RunState.ENDED)
        source = user.panes.graph.source
        await user.until(lambda: not source.calls.pending)
        assert source.calls.totals
        await user.press("a")
        await user.until(lambda: source.totals is not None)
        await user.shows("fibonacci")
        await user.until(lambda: not source.calls.pending)
        first = {}
        for order in (*ORDERS[1:], ORDERS[0]):
            await user.press("o")
            assert source.order is order
            first[order.name] = source.plain(0, user.panes.graph.lines.looks).split()[-1]
        assert first["time"] == first["average"] == first["longest"] == "main"
        assert first["alone"] == first["calls"] == "fibonacci"
        assert user.panes.graph.parts[0] == "totals: with callees, alone, calls"
        await user.press("a", "home")
        await user.shows("main(argc=1, argv=0x")  # with arguments, and without where calls fold
        await user.press("enter")
        await user.until(lambda: user.panes.events.lines.cursor == 0)
        await user.press("9", "t")  # in the code it is about the function at the cursor
        await user.until(lambda: not user.app.controls.functions.traced)

    flow(steps, guest=sample("x86_64", "recursion"), size=size)


@pytest.mark.slow
def test_the_set_grows_and_shrinks() -> None:
    async def steps(user: User) -> None:
        await user.command("graph +fibonacci")
        await user.says("1 functions traced")
        await user.command("graph +ackermann +nosuch")
        await user.says("no function matches")
        assert user.app.controls.functions.traced == ("fibonacci",)
        await user.command("graph +ackermann -fibonacci")
        await user.until(lambda: user.app.controls.functions.traced == ("ackermann",))
        await user.command("go factorial")
        await user.press("t")
        await user.says("2 functions traced")
        await user.press("t")
        await user.says("1 functions are no longer traced")
        await user.command("graph")
        await user.says("traced: ackermann")
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.press("9")
        await user.shows("ackermann")
        assert "fibonacci()" not in user.screen
        await user.command("graph !")
        await user.says("no longer traced")
        await user.command("graph")
        await user.says("nothing is traced")

    flow(steps)

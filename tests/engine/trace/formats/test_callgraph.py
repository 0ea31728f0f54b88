"""Callers and callees of a function."""

import json

import pytest
from graphrows import NAMES, TABLE, back, call

import engine.trace.formats.callgraph
from engine.trace.formats.callgraph import DEEPEST, CallGraphFormat

ROWS = (
    *(call(0, 1, 0), call(1, 2, 1), call(2, 3, 2), back(4, 3, 2), call(5, 4, 2), call(6, 5, 3)),
    *(back(8, 5, 3), back(9, 4, 2), back(10, 2, 1), call(11, 3, 1), back(12, 3, 1)),
    *(call(13, 2, 1), call(14, 2, 2), call(15, 3, 3), back(16, 3, 3), back(18, 2, 2)),
    *(back(20, 2, 1), back(30, 1, 0)),
)


def graph(*words: str, rows: tuple[bytes, ...] = ROWS) -> str:
    form = CallGraphFormat(TABLE, NAMES, words)
    assert form.rows(b"".join(rows)) == b""
    return form.end().decode()


def test_the_tree_is_drawn_as_uftrace_draws_it() -> None:
    """A single callee stands below its caller, several hang on a line (uftrace-graph(1))."""
    assert graph("callees=f2") == (
        "# function call graph for 'f2'\n"
        "# times in ticks, blocks of the guest's own code\n"
        "========== FUNCTION CALL GRAPH ==========\n"
        "# TOTAL TIME   FUNCTION\n"
        "         16 : (2) f2\n"
        "          2 :  +-(1) f3\n"
        "            :  |\n"
        "          4 :  +-(1) f4\n"
        "          2 :  | (1) f5\n"
        "            :  |\n"
        "          4 :  +-(1) f2\n"
        "          1 :    (1) f3\n"
        "\n"
    )


def test_ways_to_a_function() -> None:
    assert graph("callers=f3").split("\n\n")[0] == (
        "# function call graph for 'f3'\n"
        "# times in ticks, blocks of the guest's own code\n"
        "=============== BACKTRACE ===============\n"
        " backtrace #0: hit 1, time 2\n"
        "   [0] f1\n"
        "   [1] f2\n"
        "   [2] f3"
    )
    found = json.loads(graph("callers=f2", "json"))["callers"]
    assert found == [{"path": ["f1", "f2"], "calls": 2, "time": 16}]


def test_a_function_that_is_not_called() -> None:
    assert graph("callers=f9", "callees=f9").count("no call of such a function") == 2


def test_a_deep_recursion_does_not_fill_the_host() -> None:
    count = 20_000
    rows = tuple(call(at, 1, at) for at in range(count))
    tree = json.loads(graph("callees=f1", "callers=f2", "json", rows=rows))["callees"]
    level, calls = 0, 0
    while tree:
        level, calls, tree = level + 1, calls + tree[0]["calls"], tree[0]["calls_to"]
    assert (level, calls) == (DEEPEST, count)


def test_more_ways_than_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.trace.formats.callgraph, "WAYS_MOST", 4)
    rows: list[bytes] = []
    for at in range(100, 200):
        rows += call(at, 1, 0), call(at, at, 1), call(at, 2, 2), back(at, 2, 2)
        rows += back(at, at, 1), back(at, 1, 0)
    found = json.loads(graph("callers=f2", "callees=f1", "json", rows=tuple(rows)))
    assert [one["calls"] for one in found["callers"]] == [1, 1, 1, 1, 96]
    assert found["callers"][-1]["path"] == ["(others)"]
    below = found["callees"][0]["calls_to"]
    assert below[-1] == {"name": "(others)", "calls": 196, "time": 0, "calls_to": []}
    assert len(below) == 3


def test_another_one_goes_on_in_the_middle() -> None:
    words = ("callers=f3", "callees=f*")
    wanted = graph(*words)
    for cut in range(len(ROWS) + 1):
        first, then = (CallGraphFormat(TABLE, NAMES, words) for _ in range(2))
        first.rows(b"".join(ROWS[:cut]))
        then.restore(json.loads(json.dumps(first.state())))
        then.rows(b"".join(ROWS[cut:]))
        assert then.end().decode() == wanted

"""Calls as JSON: one object, also where it was begun by a run that was killed."""

import json
from typing import Any

from engine.arch.program import row_head
from engine.trace.formats import format_named
from engine.trace.formats.base import Names
from engine.trace.graph import ENTRY_ROW, EXIT_ROW, entry_info, exit_info

ENTRY, EXIT = entry_info(1), exit_info(2)
TABLE = {1: ENTRY, 2: EXIT}
NAMES = Names(symbol=lambda at: f"f{at:x}+0x0/0x10", comm=lambda thread: b'a"\xff')


def call(time: int, function: int, depth: int, thread: int = 7) -> bytes:
    head, more = row_head(ENTRY.id, ENTRY.words)
    return ENTRY_ROW.pack(head, more | thread, time, function, depth, 0)


def back(began: int, ticks: int, function: int, depth: int, left: int = 0) -> bytes:
    head, more = row_head(EXIT.id, EXIT.words)
    return EXIT_ROW.pack(head, more | 7, began + ticks, function, 0, depth, began, left, 5)


ROWS = (
    call(1, 1, 0),
    call(2, 2, 1),
    call(3, 3, 0, thread=8),
    back(2, 4, 2, 1, left=1),
    call(7, 2, 1),
    back(7, 1, 2, 1),
    back(90, 2, 9, 4),
)


def written(cut: int, *options: str) -> list[dict[str, Any]]:
    """The calls of an object that one format begins and another goes on with."""
    form, other = (format_named("calls")(TABLE, NAMES, options) for _ in range(2))
    text = form.header() + form.rows(b"".join(ROWS[:cut]))
    other.restore(json.loads(json.dumps(form.state())))
    text += other.rows(b"".join(ROWS[cut:])) + other.lost(3) + other.end()
    found = json.loads(text)
    assert (found["kind"], found["unit"], found["lost"]) == ("calls", "blocks", 3)
    return list(found["calls"])


def test_calls_come_as_they_end_and_open_ones_last() -> None:
    wanted = [
        ("f2", 7, 1, 2, 6, 4, True),
        ("f2", 7, 1, 7, 8, 1, False),
        ("f9", 7, 4, 90, 92, 2, False),  # its begin is lost
        ("f1", 7, 0, 1, None, None, False),
        ("f3", 8, 0, 3, None, None, False),
    ]
    keys = ("function", "thread", "depth", "start", "end", "blocks", "left")
    for cut in range(len(ROWS) + 1):
        found = written(cut)
        assert [tuple(each[key] for key in keys) for each in found] == wanted
        assert {each["name"] for each in found} == {'a"\\xff'}


def test_a_value_is_there_where_it_was_asked_for() -> None:
    assert all("ret" not in each for each in written(3))
    returned = [each.get("ret") for each in written(3, "funcgraph-retval")]
    assert returned == [None, 5, 5, None, None]


def test_a_trace_without_calls_is_an_object_too() -> None:
    form = format_named("calls")(TABLE, NAMES)
    found = json.loads(form.header() + form.end())
    assert found == {"kind": "calls", "unit": "blocks", "calls": [], "lost": 0}

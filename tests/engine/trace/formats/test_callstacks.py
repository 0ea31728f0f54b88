"""Stacks of calls from the rows of the tracers of functions, and the time in each."""

import json
from typing import Any

import pytest

from engine.arch.program import row_head
from engine.trace.formats import format_named
from engine.trace.formats.base import Names
from engine.trace.formats.callstacks import DEEPEST
from engine.trace.graph import ENTRY_ROW, EXIT_ROW, entry_info, exit_info

ENTRY, EXIT = entry_info(1), exit_info(2)
TABLE = {1: ENTRY, 2: EXIT}
NAMES = Names(symbol=lambda at: f"f{at:x}+0x0/0x10", comm=lambda thread: b"a;b c")


def call(time: int, function: int, depth: int, thread: int = 7) -> bytes:
    head, more = row_head(ENTRY.id, ENTRY.words)
    return ENTRY_ROW.pack(head, more | thread, time, function, depth, 0)


def back(time: int, function: int, depth: int, thread: int = 7, began: int = 0) -> bytes:
    head, more = row_head(EXIT.id, EXIT.words)
    return EXIT_ROW.pack(head, more | thread, time, function, 0, depth, began, 0, 0)


def folded(*rows: bytes) -> dict[str, int]:
    form = format_named("folded")(TABLE, NAMES)
    assert form.rows(b"".join(rows)) == b""
    lines = form.end().decode().splitlines()
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}


def test_time_is_that_of_the_function_itself() -> None:
    rows = call(10, 1, 0), call(13, 2, 1), back(18, 2, 1), back(20, 1, 0)
    assert folded(*rows) == {"a:b_c;f1": 5, "a:b_c;f1;f2": 5}


def test_threads_have_stacks_of_their_own() -> None:
    rows = call(10, 1, 0), call(11, 2, 0, 8), back(12, 1, 0), back(15, 2, 0, 8)
    assert folded(*rows) == {"a:b_c;f1": 2, "a:b_c;f2": 4}


def test_a_call_without_its_return_ends_with_its_caller() -> None:
    rows = call(10, 1, 0), call(11, 2, 1), call(12, 3, 2), back(20, 1, 0), call(21, 4, 0)
    assert folded(*rows) == {"a:b_c;f1": 1, "a:b_c;f1;f2": 1, "a:b_c;f1;f2;f3": 8, "a:b_c;f4": 0}


def test_a_return_without_its_call_has_the_time_that_is_known() -> None:
    rows = back(10, 2, 1), back(14, 1, 0)
    assert folded(*rows) == {"a:b_c;f2": 0, "a:b_c;f1": 4}


def test_a_deep_recursion_does_not_fill_the_host() -> None:
    count = 20_000
    rows = [call(at, 1, at) for at in range(count)]
    found = folded(*rows)
    assert len(found) == DEEPEST
    assert sum(found.values()) == count - 1


@pytest.mark.parametrize("name", ["folded", "pprof"])
def test_another_one_goes_on_in_the_middle_of_calls(name: str) -> None:
    rows = [call(10, 1, 0), call(13, 2, 1), back(18, 2, 1), call(19, 2, 1), back(20, 1, 0)]
    whole = format_named(name)(TABLE, NAMES)
    whole.rows(b"".join(rows))
    wanted = whole.end()
    for cut in range(len(rows) + 1):
        first, then = format_named(name)(TABLE, NAMES), format_named(name)(TABLE, NAMES)
        first.rows(b"".join(rows[:cut]))
        state: Any = json.loads(json.dumps(first.state()))
        then.restore(state)
        then.rows(b"".join(rows[cut:]))
        assert then.end() == wanted

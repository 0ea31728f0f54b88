"""Latencies from the rows of calls: percentiles, histograms, calls without a return."""

import json
import random
from typing import Any

import pytest

from engine.arch.program import row_head
from engine.errors import CommandError
from engine.trace.formats import format_named
from engine.trace.formats.base import Names
from engine.trace.formats.latency import DISTINCT, PERCENTILES
from engine.trace.graph import ENTRY_ROW, EXIT_ROW, entry_info, exit_info

ENTRY, EXIT = entry_info(1), exit_info(2)
TABLE = {1: ENTRY, 2: EXIT}
NAMES = Names(symbol=lambda at: f"f{at:x}+0x0/0x10", comm=lambda thread: b"a\x1bb")


def call(time: int, function: int, thread: int = 7) -> bytes:
    head, more = row_head(ENTRY.id, ENTRY.words)
    return ENTRY_ROW.pack(head, more | thread, time, function, 0, 0)


def back(began: int, ticks: int, function: int, thread: int = 7, left: int = 0) -> bytes:
    head, more = row_head(EXIT.id, EXIT.words)
    return EXIT_ROW.pack(head, more | thread, began + ticks, function, 0, 0, began, left, 0)


def calls(*ticks: int, function: int = 1, thread: int = 7) -> bytes:
    return b"".join(call(5, function, thread) + back(5, n, function, thread) for n in ticks)


def report(*rows: bytes, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    form = format_named("latency")(TABLE, NAMES, ("json", *options))
    assert form.rows(b"".join(rows)) == b""
    plain = json.loads(form.end())
    assert plain["unit"] == "blocks"
    found: list[dict[str, Any]] = plain["functions"]
    return found


def text(*rows: bytes) -> list[str]:
    form = format_named("latency")(TABLE, NAMES)
    form.rows(b"".join(rows))
    return form.end().decode().splitlines()


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    chance = random.Random(3)
    for count in (1, 2, 10, 999, 1000, 1001):
        ticks = [chance.randrange(2000) for _ in range(count)]
        (one,) = report(calls(*ticks))
        ordered = sorted(ticks)
        for name, share in PERCENTILES:
            assert one[name] == ordered[-(-count * share // 1000) - 1], (count, name)
        assert (one["min"], one["max"], one["total"]) == (ordered[0], ordered[-1], sum(ticks))
        assert (one["count"], one["mean"]) == (count, sum(ticks) / count)
        assert sum(each["count"] for each in one["histogram"]) == count


def test_the_histogram_is_the_one_that_funclatency_draws() -> None:
    lines = text(calls(0, 1, 2, 3, 3, 9, 9, 9, 9, 9))
    at = lines.index("Function = f1")
    assert lines[at + 1 : at + 8] == [
        "     blocks              : count     distribution",
        "         0 -> 1          : 2        |****************                        |",
        "         2 -> 3          : 3        |************************                |",
        "         4 -> 7          : 0        |                                        |",
        "         8 -> 15         : 5        |****************************************|",
        "avg = 5.4 blocks, total: 54 blocks, count: 10",
        "min 0, p50 3, p90 9, p99 9, p99.9 9, max 9",
    ]


def test_calls_without_a_return_are_told_and_no_latency() -> None:
    rows = calls(4), call(1, 1), back(1, 9, 1, left=1), call(2, 1), call(3, 2)
    one, other = report(*rows)
    figures = ("calls", "count", "left", "open", "total", "max")
    assert [one[name] for name in figures] == [3, 1, 1, 1, 4, 4]
    assert [other[name] for name in figures] == [1, 0, 0, 1, 0, 0]
    assert other["p50"] is None
    lines = text(*rows)
    assert "without a return: 1 left by a jump or an exception, 1 open at the end" in lines
    assert lines[-2:] == ["Function = f2", "without a return: 1 open at the end"]


def test_threads_have_latencies_of_their_own_by_choice() -> None:
    rows = calls(4, 6), calls(8, thread=9)
    assert [each["count"] for each in report(*rows)] == [3]
    found = {each["thread"]: each for each in report(*rows, options=("threads",))}
    assert {key: (each["count"], each["total"]) for key, each in found.items()} == {
        7: (2, 10),
        9: (1, 8),
    }
    assert found[7]["name"] == "a\\33b"


def test_very_many_durations_do_not_fill_the_host() -> None:
    ticks = [at * 7 + 100_000 for at in range(DISTINCT + 5000)]
    form = format_named("latency")(TABLE, NAMES, ("json",))
    for at in range(0, len(ticks), 1000):
        form.rows(calls(*ticks[at : at + 1000]))
    again = format_named("latency")(TABLE, NAMES, ("json",))
    again.restore(json.loads(json.dumps(form.state())))
    assert len(json.dumps(form.state())) < DISTINCT * 4
    (one,) = json.loads(form.end())["functions"]
    assert json.loads(again.end())["functions"] == [one]
    assert one["rounded"]
    assert (one["total"], one["max"], one["count"]) == (sum(ticks), ticks[-1], len(ticks))
    for name, share in PERCENTILES:
        exact = ticks[-(-len(ticks) * share // 1000) - 1]
        assert exact <= one[name] <= exact * 1.001


def test_an_option_that_is_none_is_refused() -> None:
    with pytest.raises(CommandError, match="no trace option raw; there is json, threads"):
        format_named("latency")(TABLE, NAMES, ("raw",))

"""The report of a graph: table, sort keys, fields, threads, JSON, differences."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from graphrows import NAMES, TABLE, back, call
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CommandError
from engine.trace.formats.report import Baseline, ReportFormat
from engine.trace.functiontimes import FunctionTimes, parsed_report

ROWS = (
    *(call(10, 1, 0), call(12, 2, 1), call(13, 2, 2), back(15, 2, 2), back(18, 2, 1)),
    *(call(20, 3, 1), back(21, 3, 1), back(30, 1, 0)),
    *(call(30, 3, 0, 8), back(39, 3, 0, 8)),
)


def report(*words: str, rows: tuple[bytes, ...] = ROWS, baseline: Baseline | None = None) -> str:
    form = ReportFormat(TABLE, NAMES, words, baseline)
    assert form.rows(b"".join(rows)) == b""
    return form.end().decode()


def lines(*words: str, **more: Any) -> list[list[str]]:
    return [line.split() for line in report(*words, **more).splitlines() if line[0] != "#"][2:]


def test_recursion_counts_once_in_the_total() -> None:
    assert report() == (
        "# times in ticks, blocks of the guest's own code\n"
        "  Total time   Self time       Calls  Function\n"
        "  ==========  ==========  ==========  ====================\n"
        "          20          13           1  f1\n"
        "          10          10           2  f3\n"
        "           6           6           2  f2\n"
    )


def test_sort_keys_and_fields() -> None:
    assert [line[-1] for line in lines("sort=call,self")] == ["f3", "f2", "f1"]
    assert [line[-1] for line in lines("sort=func")] == ["f1", "f2", "f3"]
    assert lines("fields=call,size,total-max", "sort=func")[1] == ["2", "16", "6", "f2"]
    assert len(lines("fields=all")[0]) == 13
    assert lines("average=total")[1] == ["5.00", "1", "9", "80.00%", "f3"]
    assert lines("average=self", "sort=max")[0] == ["13.00", "13", "13", "0.00%", "f1"]
    assert [line[-1] for line in lines("average=total", "sort=min")] == ["f1", "f2", "f3"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("sort=x", "--sort x: no such key; there is total, "),
        ("fields=total,y", "--fields y: no such field; there is total, "),
        ("colour=red", "no option colour=red of a report"),
    ],
)
def test_unknown_words_are_refused(word: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        report(word)


def test_threads() -> None:
    assert lines("tasks") == [["20", "20", "7", "4", "prog"], ["9", "9", "8", "1", "prog"]]
    assert lines("tasks", "sort=tid")[0][2] == "7"
    found = json.loads(report("tasks", "json", "sort=func"))["tasks"]
    assert found[0] == {"tid": 7, "name": "prog", "calls": 4, "total": 20, "self": 20}
    with pytest.raises(CommandError, match="no such key of tasks"):
        report("tasks", "sort=call")


def test_json_is_read_again() -> None:
    text = report("json")
    assert json.loads(text)["functions"][2]["total_avg"] == 4
    again = parsed_report(text.encode(), "x", "ticks")
    form = ReportFormat(TABLE, NAMES, ("fields=all",))
    form.rows(b"".join(ROWS))
    form._calls.finish()
    for name, one in form._functions.items():
        one.size = 16
        assert again[name] == one
    with pytest.raises(CommandError, match="its times are ticks, those here ns"):
        parsed_report(text.encode(), "x", "ns")


@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_what_is_no_report_is_refused(data: bytes) -> None:
    with pytest.raises(CommandError, match="no report of graph --report --json"):
        parsed_report(data, "file", "ticks")


@pytest.mark.parametrize("number", ["1e308", "-1e308", "1e30", "-4.5"])
@pytest.mark.parametrize("field", ["total_stdv", "self_avg"])
def test_hostile_numbers_of_a_report(field: str, number: str) -> None:
    found: dict[str, Any] = json.loads(report("json"))
    for one in found["functions"]:
        one[field] = float(number)
    with suppress(CommandError):
        report(baseline=Baseline("x", parsed_report(json.dumps(found).encode(), "x", "ticks")))


def before() -> Baseline:
    rows = (call(1, 1, 0), call(2, 2, 1), back(10, 2, 1), call(11, 4, 1), back(12, 4, 1))
    form = ReportFormat(TABLE, NAMES)
    form.rows(b"".join((*rows, back(15, 1, 0))))
    form._calls.finish()
    return Baseline("old", form._functions)


def test_the_difference_is_the_other_one_less_this_one() -> None:
    text = report(baseline=before())
    assert "#  [0] base: this run\n#  [1] diff: old\n" in text
    assert lines(baseline=before()) == [
        ["-10", "-10", "-2", "f3"],
        ["-6", "-8", "+0", "f1"],
        ["+2", "+2", "-1", "f2"],
        ["+1", "+1", "+1", "f4"],
    ]
    assert [line[-1] for line in lines("policy=no-abs", baseline=before())] == [
        *("f2", "f4", "f1", "f3"),
    ]
    percent = lines("policy=percent", "sort=func", baseline=before())
    assert percent[0] == ["-30.00%", "-61.54%", "+0", "f1"]
    assert percent[2:] == [["N/A", "N/A", "-2", "f3"], ["N/A", "N/A", "+1", "f4"]]
    full = lines("policy=full", "column=1", baseline=before())
    assert full[0] == ["20", "14", "-6", "13", "5", "-8", "1", "1", "+0", "f1"]
    found = json.loads(report("json", "fields=call", baseline=before()))["functions"]
    assert found[0] == {"name": "f3", "call": [2, 0]}


def test_another_one_goes_on_in_the_middle(tmp_path: Path) -> None:
    wanted = report("fields=all")
    for cut in range(len(ROWS) + 1):
        first, then = (ReportFormat(TABLE, NAMES, ("fields=all",)) for _ in range(2))
        first.rows(b"".join(ROWS[:cut]))
        then.restore(json.loads(json.dumps(first.state())))
        then.rows(b"".join(ROWS[cut:]))
        assert then.end().decode() == wanted


def test_lost_events_are_told() -> None:
    form = ReportFormat(TABLE, NAMES)
    form.lost(3)
    assert form.end().startswith(b"# 3 events lost")


def test_a_function_without_calls_has_no_average() -> None:
    assert FunctionTimes().total.mean == 0

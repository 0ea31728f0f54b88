"""Hist triggers and synthetic events against what a kernel answered.

`hist-6.12.json.xz` has what Linux 6.12.117 (Debian's, in QEMU) said to each line that was written
to an event's `trigger`, to `synthetic_events` and to `dynamic_events`, and its tables and events
after a run of `hist_target` (of `hist_target.c`) with uprobes on three of its functions.
"""

import json
import lzma
import re
from pathlib import Path
from typing import Any, Final

import pytest
from sessionkit import Guest, loaded

from engine.errors import KprobeTuiError, ProbeSyntaxError
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing
from engine.trace.rows import EventInfo

DATA: Final = Path(__file__).parents[3] / "data" / "events"
TARGET: Final = DATA / "hist_target"
SCENARIOS: Final[list[dict[str, Any]]] = json.loads(
    lzma.decompress((DATA / "hist-6.12.json.xz").read_bytes())
)
EVENTS: Final = (
    "p:t/begin {}:0x1000 id=%di:s32 num=%si:u64 name=+0(%dx):string",
    "p:t/step {}:0x1020 id=%di:s32 delta=%si:s16 kind=%dx:u8",
    "p:t/end {}:0x1040 id=%di:s32 num=%si:s64 name=+0(%dx):string",
)
ON_PURPOSE: Final = {
    # It sums addresses of strings there.
    "hist:keys=id:vals=name": "EINVAL",
    # It takes nothing away and says nothing.
    **dict.fromkeys(("!hist:keys=id", "!hist:keys=name"), "ENOENT"),
    # Linux 6.16 and later have it.
    **dict.fromkeys(
        (
            "hist:keys=comm",
            "hist:keys=COMM",
            "hist:keys=common_comm",
            "hist:keys=id:x=common_comm",
        ),
        "",
    ),
}
"""Lines that are answered in another way here, with the error; all others as the kernel does."""
OF_THE_MACHINE: Final = re.compile(
    r"stacktrace|common_pid|execname|__probe_ip\.sym|name:sort=hitcount|vals=name|st=STACK|lat: "
)
"""What is in a table or event that no two machines have in common: ids, clocks, stacks."""


def traced(guest: Guest) -> Tracing:
    tracing = guest.tracing(TraceOptions(buffer=100000))
    for line in EVENTS:
        tracing.definitions.define(line.format(TARGET))
    return tracing


def written(tracing: Tracing, step: dict[str, Any]) -> KprobeTuiError | None:
    """What a line is answered with."""
    try:
        if "/" in step["on"]:
            tracing.controls.add_trigger(tracing.info(*step["on"].split("/")), step["text"])
        elif step["on"] == "synthetic_events":
            tracing.definitions.define("s:" + step["text"].lstrip())
        else:
            tracing.definitions.define(step["text"])
    except KprobeTuiError as error:
        return error
    return None


def check(step: dict[str, Any], error: KprobeTuiError | None) -> None:
    errno = "" if error is None else getattr(error, "errno", "?")
    if step["text"] in ON_PURPOSE and (step["errno"], errno) != (step["errno"],) * 2:
        assert errno == ON_PURPOSE[step["text"]], step
        return
    assert errno == step["errno"], step
    if not step["errno"]:
        return
    logged = step["errors"][-1] if step["errors"] else None
    if logged is None:
        assert not isinstance(error, ProbeSyntaxError), step
        return
    assert isinstance(error, ProbeSyntaxError), step
    column = error.column
    if step["on"] == "synthetic_events":  # here it begins with "s:"
        column = max(column - 2, 0)
        assert [error.subsystem, error.text, column] == [*logged[:2], logged[3]], step
    else:
        assert [error.subsystem, error.text, error.command, column] == logged


def entries(table: list[str]) -> list[str]:
    """The entries of tables, sorted: the kernel's order of equal ones is its hash table's."""
    found = re.split(r"^(?=\{ |$)", "\n".join(table), flags=re.MULTILINE)
    return sorted(found)


def tables(tracing: Tracing, info: EventInfo) -> list[str]:
    shown: list[str] = []
    for armed in tracing.controls.of(info).triggers:
        if armed.table is not None:
            shown += ["", ""] if shown else []
            text = b"\n".join(armed.table.lines(armed.trigger.condition, armed.paused))
            shown += text.decode().split("\n")
    return shown


def replay(scenario: dict[str, Any]) -> int:
    """Write the lines of a scenario and run; the number of tables that were compared."""
    compared = 0
    with loaded(TARGET) as guest:
        tracing = traced(guest)
        for step in scenario["steps"]:
            check(step, written(tracing, step))
        if not scenario["tables"] or scenario["name"] == "keys=id:vals=name":
            return 0
        guest.run(tracing)
        for event, table in scenario["tables"].items():
            info = tracing.info(*event.split("/"))
            control = tracing.controls.of(info)
            assert list(control.trigger_lines()) == scenario["triggers"][event]
            if OF_THE_MACHINE.search("\n".join(table)) is None:
                found = tables(tracing, info)
                assert entries(found) == entries(table)
                if ORDERED.search(table[2]) is not None:
                    assert found == table
                compared += 1
        made = scenario["trace"]
        if made and OF_THE_MACHINE.search("\n".join(made)) is None:
            rows = [row for row in guest.events if not re.match(r"(begin|step|end): \(", row)]
            assert rows == made
    return compared


ORDERED: Final = re.compile(
    r"sort=(id|name|num|id,num|id,name|first,second|id,delta)(\.desc\w+)?:size"
)
"""Orders in which no two entries of the golden tables are equal."""


def chosen(part: int) -> list[dict[str, Any]]:
    return [one for one in SCENARIOS[part::8] if one["name"] not in ("dyn", "syn !foo")]


@pytest.mark.parametrize("part", range(8))
def test_each_line_is_answered_as_the_kernel_answers_it(part: int) -> None:
    unlike = []
    compared = 0
    for scenario in chosen(part):
        try:
            compared += replay(scenario)
        except AssertionError as error:
            unlike.append(f"{scenario['name']}: {error}")
    assert not unlike, "\n\n".join(unlike)
    assert compared > 15


def test_the_golden_set_is_large() -> None:
    lines = [step for one in SCENARIOS for step in one["steps"]]
    assert sum("hist:" in step["text"] for step in lines) > 300
    assert sum(bool(step["errors"]) and bool(step["errno"]) for step in lines) > 100

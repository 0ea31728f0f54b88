"""Event probes, and lines that take events away, against what a kernel answered.

`eprobes-6.12.json.xz` has what Linux 6.12.117 (Debian's, in QEMU) said to each line that was
written to `dynamic_events`, `synthetic_events`, a `trigger` or a `filter`, its list of events,
their formats, and the events of a run of `eprobe_target` (of `eprobe_target.c`).
"""

import json
import lzma
import re
from pathlib import Path
from typing import Any, Final

from sessionkit import Guest, events, loaded

from engine.arch.plan import Mode
from engine.errors import KprobeTuiError, ProbeSyntaxError
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.listing import TraceListing
from engine.session.tracing.tracing import Tracing
from engine.trace.fields import format_text

DATA: Final = Path(__file__).parents[3] / "data" / "events"
TARGET: Final = DATA / "eprobe_target"
SCENARIOS: Final[list[dict[str, Any]]] = json.loads(
    lzma.decompress((DATA / "eprobes-6.12.json.xz").read_bytes())
)
BEGIN: Final = "p:t/begin {}:0x1000 id=%di:s32 num=%si:u64 name=+0(%dx):string"
GIVEN: Final = frozenset(
    {
        "e:co1 syscalls/sys_enter_close $comm:u64",
        "e:co4 syscalls/sys_enter_close c=$comm:string[2]",
        'e:im2 syscalls/sys_enter_close c=\\"hi":u8',
        "e:ex4 sched/sched_process_exit c=$comm:u64",
        "e:ex5 sched/sched_process_exit c=$comm:string[2]",
        "e:ex3 sched/sched_process_exec f=+0($filename):string q=+0($filename):u8 "
        "l=$filename:u64 h=+0($filename):x8[4]",
    }
)
"""Lines that the kernel takes to record addresses in its own memory: here they are refused."""
UNSTABLE: Final = re.compile(
    r"^(comm\d?|immtext2?|symstr|sched|schedfork|synth|heads|again|cant)$"
)
"""Scenarios whose events are not compared: ids, addresses, stale bytes, the order of enabling."""
CAST: Final = "e:x34 syscalls/sys_enter_close a=(struct file)$fd"
"""Linux 6.18 has another text for it, which is ours."""


def traced(guest: Guest) -> Tracing:
    tracing = guest.tracing(TraceOptions(mode=Mode.KERNEL, buffer=10000))
    tracing.definitions.define(BEGIN.format(TARGET))
    return tracing


def written(tracing: Tracing, step: dict[str, Any]) -> KprobeTuiError | None:
    """What a line is answered with."""
    on, text = step["on"], step["text"].replace("/target:", f"{TARGET}:")
    try:
        if on == "synthetic_events":
            tracing.definitions.define(text if text.startswith("!") else f"s:{text}")
        elif on == "dynamic_events":
            tracing.definitions.define(text)
        elif on.startswith("filter:"):
            info = tracing.info(*on.removeprefix("filter:").split("/"))
            tracing.controls.set_filter(info, text)
        else:
            tracing.controls.add_trigger(tracing.info(*on.split("/")), text)
    except KprobeTuiError as error:
        return error
    return None


def check(step: dict[str, Any], error: KprobeTuiError | None) -> None:
    wanted, text = step["errno"], step["text"]
    if text in GIVEN:
        assert error is not None
        return
    errno = "" if error is None else getattr(error, "errno", "?")
    assert errno == wanted, (step, error)
    logged = step["errors"][-1] if step["errors"] and wanted else None
    if logged is None:
        return
    assert isinstance(error, ProbeSyntaxError), step
    column = (
        error.column - 2 if step["on"] == "synthetic_events" and error.column else error.column
    )
    text = logged[1] if step["text"] == CAST else error.text
    assert [error.subsystem, text, column] == [logged[0], logged[1], logged[3]], step


def test_each_line_is_answered_as_the_kernel_answers_it() -> None:
    unlike, compared = [], 0
    for scenario in SCENARIOS:
        try:
            compared += replay(scenario)
        except AssertionError as error:
            unlike.append(f"{scenario['name']}: {error}")
    assert not unlike, "\n\n".join(unlike)
    assert compared > 100


def replay(scenario: dict[str, Any]) -> int:
    """Write the lines of a scenario and run; the number of events that were compared."""
    with loaded(TARGET) as guest:
        tracing = traced(guest)
        for step in scenario["steps"]:
            check(step, written(tracing, step))
        if UNSTABLE.match(scenario["name"]):
            return 0
        listed = [line for line in TraceListing(tracing).lines("kernel") if line[0] in "es"]
        assert listed == scenario["listing"]
        for event, wanted in scenario["formats"].items():
            if not event.startswith("synthetic/"):
                lines = format_text(tracing.info(*event.split("/"))).split("\n")
                found = [line for line in lines if line[:7] in ("\tfield:", "print f")]
                assert [line for line in found if " common_" not in line] == wanted
        guest.run(tracing)
        rows = events(guest.written.decode(errors="surrogateescape"))
        trace = scenario["trace"]
        first = next(at for at, row in enumerate(trace) if row.startswith("begin:"))
        wanted = trace[first:]
        if scenario["name"] == "deref":  # of what could not be read it has what was there before
            assert rows.pop()[-7:] == wanted.pop()[-7:] == "(fault)"
        assert rows == wanted
    return len(rows)

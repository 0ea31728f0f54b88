"""What recorded runs wrote to the files of kernels' events, and what these kernels said."""

import errno
import re
from typing import Any

import pytest
from eventfiles import EventFiles
from kernelkit import KERNELS, golden_kernel, golden_rows

from engine.errors import ProbeSyntaxError
from engine.trace.kprobe_events import KprobeEvents, Outcome

_TIME = re.compile(r"^\[ *[\d.]+\] ", re.MULTILINE)
_ID = re.compile(r"^ID: \d+$", re.MULTILINE)


def _logged(outcome: Outcome) -> str:
    error = outcome.error
    if not isinstance(error, ProbeSyntaxError):
        return ""
    caret = " " * (11 + error.column) + "^"
    return f"{error.subsystem}: error: {error.text}\n  Command: {error.command}\n{caret}\n"


@pytest.mark.parametrize("name", KERNELS)
def test_recorded_runs_are_accepted_and_refused_as_they_were(name: str) -> None:
    for row in golden_rows(name, "recorded"):
        if row.get("scen"):
            _replay(name, row)


def _replay(name: str, row: dict[str, Any]) -> None:
    kernel = golden_kernel(name)
    events = KprobeEvents(kernel)
    files = EventFiles(events.event)
    formats: dict[str, str] = {}
    log = ""
    for line in row["log"].splitlines():
        refused, kind, text = line.split(" ", 2)
        event, _, rest = text.partition(" ")
        if kind == "def":
            # Whether a probe may stand there is another's to find out.
            kernel.refusal = ""
            if refused == "1" and "Failed to register" in row["errors"]:
                kernel.refusal = "EINVAL"
            outcome = events.take(text)
            if outcome.definition is not None and outcome.format is not None:
                formats[outcome.definition.event] = outcome.format
        elif kind == "filt":
            outcome = files.write_filter("w", event, rest)
        elif kind == "trig":
            outcome = files.write_trigger("w", event, rest)
        elif kind == "syn":
            outcome = files.write_synthetic(text)
        else:
            continue
        assert str(int(outcome.rc != 0)) == refused, (row["scenario"], line, outcome.error)
        log += _logged(outcome)
    recorded = _TIME.sub("", row["errors"])
    assert recorded == log * 2, "it was recorded twice"
    assert _ID.sub("ID: N", row["formats"]) == "".join(formats[one] for one in sorted(formats))


@pytest.fixture
def files() -> EventFiles:
    kernel = golden_kernel("amd64-6.12")
    kernel.refusal, kernel.traceable = "", True
    events = KprobeEvents(kernel)
    assert events.take("p:w/write vfs_write num=$arg3:u64").rc == 0
    assert events.take("r:w/done vfs_write ret=$retval:s64").rc == 0
    opened = EventFiles(events.event)
    assert opened.write_synthetic("late u64 num; u64 ret").rc == 0
    return opened


def test_variables_join_events(files: EventFiles) -> None:
    assert files.write_trigger("w", "write", "hist:keys=common_pid:n0=num,n1=num*2").rc == 0
    text = "hist:keys=common_pid:d=ret-$n0:onmatch(w.write).trace(late,$n1,ret) if ret > 0"
    assert files.write_trigger("w", "done", text).rc == 0
    text = "hist:keys=common_pid:e=ret-$n0:onmax($e).save(ret,$n0)"
    assert files.write_trigger("w", "done", text).rc == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hist:keys=num:a=nosuch", "Couldn't find field"),
        ("hist:keys=num:a=$nosuch", "Couldn't find field"),  # behind "Couldn't find variable"
        ("hist:keys=num:a=", "Empty assignment"),
        ("hist:keys=num:a=num,a=num", "Variable already defined"),
        ("hist:keys=num:onmatch(w.done).late(num,ret)", "Matching event histogram not found"),
        ("hist:keys=num:onmax(num).save(num)", "x must be a variable"),
        ("hist:keys=num:onmax($xx).save(num)", "Couldn't find onmax or onchange variable"),
        ("hist:keys=num:a=num:onmax($a).late(num)", "Param count doesn't match"),
        ("hist:keys=num:a=num:onmax($a).other(num)", "Couldn't find synthetic event"),
        ("hist:keys=num:a=num:onmax($a).save(other)", "Couldn't create field variable"),
        ("hist:keys=num:onmatch(w.write", "No closing paren found"),
        ("hist:keys=num:a=num:onmax($a)", "No action found"),
    ],
)
def test_what_handlers_need(files: EventFiles, text: str, said: str) -> None:
    outcome = files.write_trigger("w", "write", text)
    assert outcome.rc == -errno.EINVAL
    assert said in (outcome.text or "")


def test_other_refusals(files: EventFiles) -> None:
    assert files.write_filter("w", "nosuch", "n > 1").rc == -errno.ENOENT
    assert files.write_filter("w", "write", "m > 1").text == "Field not found"
    assert files.write_trigger("w", "write", "enable_event:w:nosuch").rc == -errno.EINVAL
    assert files.write_trigger("w", "write", "hist:vals=n").text is None
    assert files.write_synthetic("late u64 n").rc == -errno.EEXIST
    assert files.write_synthetic("2late u64 n").rc == -errno.EINVAL

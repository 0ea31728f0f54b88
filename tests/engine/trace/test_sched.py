"""The scheduler's events against the `format` files of Linux 6.18, and their text."""

from pathlib import Path

import pytest

from engine.trace import sched
from engine.trace.fields import format_text
from engine.trace.filter import parse_filter
from engine.trace.formats.base import Names
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.rows import decode, pack_row

FORMATS = Path(__file__).parents[2] / "data" / "events" / "sched-6.18.txt"


def test_formats_are_the_kernels() -> None:
    mine = [
        line
        for number, event in enumerate(sched.EVENTS, 1)
        for line in format_text(event.info(number)).splitlines()
        if not line.startswith("ID:")
    ]
    assert mine == FORMATS.read_text("ascii").splitlines()


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        (
            "sched_switch",
            (b"python3\0", 30295, 120, 0, b"bash\0", 12543, 120),
            "prev_comm=python3 prev_pid=30295 prev_prio=120 prev_state=R ==> next_comm=bash"
            " next_pid=12543 next_prio=120",
        ),
        (
            "sched_switch",
            (b"a\x1b\0", 1, 139, 0x121, b"\0", 0, -1),
            "prev_comm=a\\33 prev_pid=1 prev_prio=139 prev_state=S|Z+ ==> next_comm="
            " next_pid=0 next_prio=-1",
        ),
        ("sched_waking", (b"ls\0", 12, 120, 1), "comm=ls pid=12 prio=120 target_cpu=001"),
        (
            "sched_process_fork",
            (b"bash\0", 1, b"bash\0", 2),
            "comm=bash pid=1 child_comm=bash child_pid=2",
        ),
        (
            "sched_process_exec",
            (b"/usr/bin/ls\0", 2, 2),
            "filename=/usr/bin/ls pid=2 old_pid=2",
        ),
        (
            "sched_process_exit",
            (b"ls\0", 2, 120, 1),
            "comm=ls pid=2 prio=120 group_dead=true",
        ),
    ],
)
def test_text_is_the_kernels(name: str, values: tuple[int | bytes, ...], text: str) -> None:
    info = sched.BY_NAME[name].info(3)
    row = pack_row(info, 7, 99, 0x1000, values)
    assert len(row) % 8 == 0
    line = FtraceFormat({3: info}, Names(comm=lambda thread: b"me")).rows(row).decode()
    assert line == f"              me-7       [000] .....           99: {name}: {text}\n"
    event = decode({3: info}, row)
    plain = tuple(v.removesuffix(b"\0") if isinstance(v, bytes) else v for v in values)
    assert event.values == plain
    assert (event.thread_id, event.time, event.address) == (7, 99, 0x1000)
    parse_filter(f'{info.columns[0].name} == "x" || {info.columns[1].name} != 0', info)


def test_patterns() -> None:
    assert [event.name for event in sched.matching("*wak*")] == [
        "sched_waking",
        "sched_wakeup",
        "sched_wakeup_new",
    ]
    assert sched.matching("switch") == []

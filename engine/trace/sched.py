"""The scheduler's events: the kernel's names, fields and texts (include/trace/events/sched.h).

As Linux 6.18 has them in the `format` files of /sys/kernel/tracing/events/sched.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from engine.arch.program import ROW_HEAD, FieldType, ValueKind
from engine.trace.rows import Column, EventInfo, EventSource

GROUP: Final = "sched"
_COMM: Final = "char[16]"
_TEXT: Final = "__data_loc char[]"
_SIZES: Final = {"pid_t": 4, "int": 4, "long": 8, "bool": 1, _COMM: 16, _TEXT: 4}
_NUMBER: Final = FieldType(ValueKind.SIGNED, 8)
_STRING: Final = FieldType(ValueKind.STRING, 0)
_STATES: Final = ((1, "S"), (2, "D"), (4, "T"), (8, "t"), (0x10, "X"), (0x20, "Z"), (0x40, "P"))
_PREEMPTED: Final = 0x100
RUNNING, SLEEPING, WAITING, STOPPED, DEAD, ZOMBIE = 0, 1, 2, 4, 0x10, 0x20
"""Numbers of `prev_state` (TASK_* and EXIT_* of include/linux/sched.h)."""
IDLE: Final = b"swapper/0"
"""The name of the idle thread, whose id is 0."""


class SchedEvent(Struct, frozen=True):
    """One event.

    Attributes:
        name: of it.
        fields: (name, the kernel's type) in the order of the kernel's record.
        text: of an event in the trace, with fields in braces.
        expression: the kernel's own, behind `print fmt:`.
    """

    name: str
    fields: tuple[tuple[str, str], ...]
    text: str
    expression: str

    def info(self, event_id: int) -> EventInfo:
        """The event in a trace."""
        columns = tuple(
            Column(name, _STRING if "char" in ctype else _NUMBER, ROW_HEAD + at, ctype)
            for at, (name, ctype) in enumerate(self.fields)
        )
        words, source = ROW_HEAD + len(columns), EventSource.SCHED
        return EventInfo(event_id, GROUP, self.name, columns, words, source=source)


def _waking(name: str) -> SchedEvent:
    return SchedEvent(
        name,
        (("comm", _COMM), ("pid", "pid_t"), ("prio", "int"), ("target_cpu", "int")),
        "comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:03d}",
        '"comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, '
        "REC->target_cpu",
    )


_REPORT_MAX: Final = (
    f"((({' | '.join(f'{bit:#010x}' for bit in (0, 1, 2, 4, 8, 0x10, 0x20, 0x40))}) + 1) << 1)"
)
_REPORTED: Final = f"REC->prev_state & ({_REPORT_MAX} - 1)"
_FLAGS: Final = ", ".join(
    f'{{ {bit:#010x}, "{letter}" }}' for bit, letter in (*_STATES, (0x80, "I"))
)
EVENTS: Final = (
    SchedEvent(
        "sched_switch",
        (
            ("prev_comm", _COMM),
            ("prev_pid", "pid_t"),
            ("prev_prio", "int"),
            ("prev_state", "long"),
            ("next_comm", _COMM),
            ("next_pid", "pid_t"),
            ("next_prio", "int"),
        ),
        "prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={prev_state}"
        " ==> next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}",
        '"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d '
        'next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, '
        f'({_REPORTED}) ? __print_flags({_REPORTED}, "|", {_FLAGS}) : "R", '
        f'REC->prev_state & {_REPORT_MAX} ? "+" : "", REC->next_comm, REC->next_pid, '
        "REC->next_prio",
    ),
    _waking("sched_waking"),
    _waking("sched_wakeup"),
    _waking("sched_wakeup_new"),
    SchedEvent(
        "sched_process_fork",
        (
            ("parent_comm", _TEXT),
            ("parent_pid", "pid_t"),
            ("child_comm", _TEXT),
            ("child_pid", "pid_t"),
        ),
        "comm={parent_comm} pid={parent_pid} child_comm={child_comm} child_pid={child_pid}",
        '"comm=%s pid=%d child_comm=%s child_pid=%d", __get_str(parent_comm), REC->parent_pid, '
        "__get_str(child_comm), REC->child_pid",
    ),
    SchedEvent(
        "sched_process_exec",
        (("filename", _TEXT), ("pid", "pid_t"), ("old_pid", "pid_t")),
        "filename={filename} pid={pid} old_pid={old_pid}",
        '"filename=%s pid=%d old_pid=%d", __get_str(filename), REC->pid, REC->old_pid',
    ),
    SchedEvent(
        "sched_process_exit",
        (("comm", _COMM), ("pid", "pid_t"), ("prio", "int"), ("group_dead", "bool")),
        "comm={comm} pid={pid} prio={prio} group_dead={group_dead}",
        '"comm=%s pid=%d prio=%d group_dead=%s", REC->comm, REC->pid, REC->prio, '
        'REC->group_dead ? "true" : "false"',
    ),
)
"""All of them, in the order of a listing."""

BY_NAME: Final[Mapping[str, SchedEvent]] = {event.name: event for event in EVENTS}


def matching(glob: str) -> list[SchedEvent]:
    """The events whose name matches a pattern."""
    return [event for event in EVENTS if fnmatchcase(event.name, glob)]


def field_places(info: EventInfo) -> list[tuple[Column, int, int]]:
    """(column, offset, size) of each field in the kernel's record."""
    found: list[tuple[Column, int, int]] = []
    at = 8
    for column in info.columns:
        size = _SIZES[column.ctype]
        at += -at % (1 if column.ctype == _COMM else size)
        found.append((column, at, size))
        at += size
    return found


def state_text(state: int) -> str:
    """The letters of a `prev_state`."""
    letters = "|".join(letter for bit, letter in _STATES if state & bit)
    return (letters or "R") + ("+" if state & _PREEMPTED else "")

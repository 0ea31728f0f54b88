"""All kinds of arguments that `calls.txt` names, and those that need both ends of a call."""

from collections.abc import Callable, Mapping
from typing import Final

from engine.trace.strace.bpf import BPF, bpf_is_late
from engine.trace.strace.buffers import BUFFERS
from engine.trace.strace.call import Kind, TracedCall, Words
from engine.trace.strace.fileargs import (
    FILES,
    fcntl_is_late,
    fcntl_result,
    note_offset,
    note_parameters,
    poll_result,
    select_result,
)
from engine.trace.strace.ioctls import IOCTLS, ioctl_is_late
from engine.trace.strace.ipcargs import IPC, ipc_is_late
from engine.trace.strace.names import name_set, signal_name
from engine.trace.strace.scalars import SCALARS, descriptor, hexadecimal, octal, scheduler
from engine.trace.strace.signalargs import SIGNALS
from engine.trace.strace.sockets import (
    SOCKETS,
    note_length,
    note_message,
    note_messages,
    recvmmsg_result,
)
from engine.trace.strace.structures import STRUCTURES, date_comment
from engine.trace.strace.taskargs import (
    TASKS,
    arch_prctl_is_late,
    clone_args_are_late,
    clone_args_rest,
    clone_is_late,
    clone_rest,
    personality_result,
    prctl_is_late,
    prctl_result,
    priority_text,
    ptrace_is_late,
    syslog_is_late,
)


def _scalar(name: str) -> Kind:
    show = SCALARS[name]

    def shown(call: TracedCall, index: int, words: Words) -> str:
        return show(call, call.arguments[index], words)

    return shown


KINDS: Final[Mapping[str, Kind]] = {
    **{name: _scalar(name) for name in SCALARS},
    **BUFFERS,
    **STRUCTURES,
    **FILES,
    **SIGNALS,
    **SOCKETS,
    **TASKS,
    **IPC,
    **IOCTLS,
    **BPF,
}
"""Functions that show an argument, by its kind."""

NOTES: Final[Mapping[str, Callable[[TracedCall, int], None]]] = {
    "socklen": note_length,
    "outmsghdr": note_message,
    "outmmsghdrs": note_messages,
    "sendoffset": note_offset,
    "uring_params": note_parameters,
}
"""Notes that are taken when a call is made, for arguments that are shown when it returns."""

LATE: Final[Mapping[str, Callable[[TracedCall], bool]]] = {
    "fcntl": fcntl_is_late,
    "ioctl_argument": ioctl_is_late,
    "prctl_arguments": prctl_is_late,
    "archarg": arch_prctl_is_late,
    "ptrace_data": ptrace_is_late,
    "syslogarguments": syslog_is_late,
    "shmbuf": ipc_is_late,
    "semarg": ipc_is_late,
    "msgarg": ipc_is_late,
    "bpf_attr": bpf_is_late,
}
"""Kinds of which the call's other arguments say whether they are shown when it returns."""

SPLIT: Final[Mapping[str, tuple[Callable[[TracedCall], bool], Kind]]] = {
    "clone": (clone_is_late, clone_rest),
    "clone_args": (clone_args_are_late, clone_args_rest),
}
"""Kinds of which a second part is shown when the call returns, and whether there is one."""


def _membarrier(call: TracedCall, result: int) -> str:
    if call.arguments[0] or not result:
        return str(result)
    call.comment = name_set("membarrier_cmds").flags(result)
    return f"{result:#x}"


def _scheduler(call: TracedCall, result: int) -> str:
    call.comment = scheduler(call, result)
    return hexadecimal(result)


def _priority(call: TracedCall, result: int) -> str:
    call.comment = priority_text(result)
    return hexadecimal(result)


def _clock_state(call: TracedCall, result: int) -> str:
    call.comment = name_set("adjtimex_state").by_number.get(result, "")
    return str(result)


def _time(call: TracedCall, result: int) -> str:
    call.comment = date_comment(result, 0, 9)[4:-3]
    return str(result)


def _signal(call: TracedCall, result: int) -> str:
    if result:
        call.comment = signal_name(result)
    return str(result)


RESULTS: Final[Mapping[str, Callable[[TracedCall, int], str]]] = {
    "": lambda call, result: str(result),
    "fd": descriptor,
    "hex": lambda call, result: hexadecimal(result & (1 << 64) - 1),
    "octal": lambda call, result: octal(result),
    "none": lambda call, result: "?",
    "fcntl": fcntl_result,
    "ioctl": lambda call, result: str(result),
    "poll": poll_result,
    "select": select_result,
    "recvmmsg": recvmmsg_result,
    "membarrier": _membarrier,
    "scheduler": _scheduler,
    "ioprio": _priority,
    "timex": _clock_state,
    "signal": _signal,
    "time": _time,
    "prctl": prctl_result,
    "personality": personality_result,
    "ptrace": lambda call, result: str(result),
}
"""Functions that show a result that is no error, by its kind; they may leave a comment."""

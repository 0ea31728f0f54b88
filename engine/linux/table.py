"""All system calls by name: the one list of families to extend.

A family module ends with `SYSCALLS`. What is not here returns ENOSYS and is reported once.
Threads, fork and exec belong in families of their own (`clone`, `fork`, `execve`).
"""

import inspect
from typing import Final

from engine.linux import (
    delivery,
    descriptors,
    dirs,
    eventfiles,
    files,
    futex,
    identity,
    limits,
    machine,
    memory,
    pipes,
    poll,
    posixtimers,
    sched,
    signalcalls,
    sockets,
    stat,
    tasks,
    time,
    transfer,
)
from engine.linux.context import Handler, SyscallTable

FAMILIES: Final[tuple[SyscallTable, ...]] = (
    files.SYSCALLS,
    transfer.SYSCALLS,
    descriptors.SYSCALLS,
    dirs.SYSCALLS,
    stat.SYSCALLS,
    poll.SYSCALLS,
    eventfiles.SYSCALLS,
    pipes.SYSCALLS,
    sockets.SYSCALLS,
    memory.SYSCALLS,
    signalcalls.SYSCALLS,
    delivery.SYSCALLS,
    time.SYSCALLS,
    posixtimers.SYSCALLS,
    tasks.SYSCALLS,
    identity.SYSCALLS,
    limits.SYSCALLS,
    machine.SYSCALLS,
    sched.SYSCALLS,
    futex.SYSCALLS,
)

EXPECTED_MISSING: Final = frozenset(
    {"rseq", "clone3", "io_uring_setup", "landlock_create_ruleset"}
)
"""Programs try these first and fall back silently: not worth a report."""


def _count(handler: Handler) -> int:
    """How many arguments a handler takes behind its context; 6 for a variadic one."""
    code, defaults = handler.__code__, handler.__defaults__ or ()
    if code.co_flags & inspect.CO_VARARGS:
        return 6
    return int(code.co_argcount) - len(defaults) - 1


def build() -> dict[str, tuple[Handler, int]]:
    """Name to (handler, number of arguments)."""
    table: dict[str, tuple[Handler, int]] = {}
    for family in FAMILIES:
        for name, handler in family.items():
            assert name not in table, name
            table[name] = (handler, _count(handler))
    return table

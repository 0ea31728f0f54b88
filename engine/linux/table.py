"""All system calls by name: the one list of families to extend.

A family module ends with `SYSCALLS`. What is not here returns ENOSYS and is reported once.
"""

import inspect
from typing import Final

from engine.arch.base import LinuxAbi, OwnCall
from engine.linux import (
    cloning,
    delivery,
    descriptors,
    dirs,
    eventfiles,
    exec,
    filelocks,
    files,
    futex,
    identity,
    limits,
    memory,
    mempolicy,
    msg,
    notify,
    pidfiles,
    pipes,
    poll,
    posixtimers,
    reaping,
    sched,
    sem,
    shm,
    signalcalls,
    signalfiles,
    stat,
    system,
    tasks,
    time,
    transfer,
    xattr,
)
from engine.linux.context import Handler, SyscallTable
from engine.linux.net import calls as network

FAMILIES: Final[tuple[SyscallTable, ...]] = (
    files.SYSCALLS,
    transfer.SYSCALLS,
    descriptors.SYSCALLS,
    filelocks.SYSCALLS,
    dirs.SYSCALLS,
    stat.SYSCALLS,
    xattr.SYSCALLS,
    poll.SYSCALLS,
    eventfiles.SYSCALLS,
    notify.SYSCALLS,
    pipes.SYSCALLS,
    network.SYSCALLS,
    memory.SYSCALLS,
    signalcalls.SYSCALLS,
    signalfiles.SYSCALLS,
    delivery.SYSCALLS,
    time.SYSCALLS,
    posixtimers.SYSCALLS,
    tasks.SYSCALLS,
    cloning.SYSCALLS,
    pidfiles.SYSCALLS,
    reaping.SYSCALLS,
    exec.SYSCALLS,
    identity.SYSCALLS,
    limits.SYSCALLS,
    system.SYSCALLS,
    sched.SYSCALLS,
    futex.SYSCALLS,
    shm.SYSCALLS,
    sem.SYSCALLS,
    msg.SYSCALLS,
    mempolicy.SYSCALLS,
)

SEVERAL: Final[tuple[SyscallTable, ...]] = (cloning.SYSCALLS, exec.SYSCALLS)
"""Calls that make another thread or program: see `LinuxAbi.several`."""

EXPECTED_MISSING: Final = frozenset({"rseq", "landlock_create_ruleset"})
"""C libraries and sandboxes try these first and do without: not worth a report."""


def _count(handler: Handler | OwnCall) -> int:
    """The number of arguments a handler takes behind its context; 6 for a variadic one."""
    code, defaults = handler.__code__, handler.__defaults__ or ()
    if code.co_flags & inspect.CO_VARARGS:
        return 6
    return int(code.co_argcount) - len(defaults) - 1


def _own(call: OwnCall) -> Handler:
    """A handler for a call that one architecture has."""
    return lambda k, *arguments: call(k.cpu, k.memory, *arguments)


def build(linux: LinuxAbi) -> dict[str, tuple[Handler, int]]:
    """Name to (handler, number of arguments), with an architecture's own calls."""
    table: dict[str, tuple[Handler, int]] = {}
    own = linux.own_calls
    for family in FAMILIES:
        if not linux.several and family in SEVERAL:
            continue
        for name, handler in family.items():
            assert name not in table, name
            table[name] = (handler, _count(handler))
    for name, call in own.items():
        assert name not in table, name
        table[name] = (_own(call), _count(call) - 1)
    return table

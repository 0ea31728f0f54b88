"""Scheduling as a process sees it: processors, policies and priorities, no privileges."""

import errno
import struct

from engine.cpu.ram import PAGE
from engine.linux import cpus
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.init import Init
from engine.linux.thread import Thread

_OTHER, _FIFO, _RR, _BATCH, _IDLE, _DEADLINE = 0, 1, 2, 3, 5, 6
_NORMAL = frozenset({_OTHER, _BATCH, _IDLE})
_RESET_ON_FORK = 0x40000000
_ATTR_OLD, _ATTR = 48, 56
"""Sizes of struct sched_attr, without and with the utilization clamps."""
_SLICE = 3_000_000
"""Nanoseconds: the base slice on one processor."""


def _check_pid(k: Thread, pid: int) -> Thread | Init:
    """The thread that is meant: EINVAL for a negative id, ESRCH for nobody's."""
    if s32(pid) < 0:
        raise LinuxError(errno.EINVAL)
    return k.machine.see_thread(pid, k)


def _changeable(found: Thread | Init, refusal: int = errno.EPERM) -> Thread:
    """The thread, unless it is another user's."""
    if isinstance(found, Init):
        raise LinuxError(refusal)
    return found


def sched_yield(k: Thread) -> int:
    """Let others run."""
    k.machine.yielding = True
    return 0


def sched_getaffinity(k: Thread, pid: int, size: int, address: int) -> int:
    """The processors that a thread may be on: all, or those that it was given."""
    bytes_of = -(-k.machine.cpus // 64) * 8
    size &= 0xFFFFFFFF
    if size * 8 < k.machine.cpus or size % 8:
        raise LinuxError(errno.EINVAL)
    thread = k.machine.see_thread(pid, k)
    k.memory.write(address, thread.affinity.to_bytes(bytes_of, "little")[:size])
    return min(size, bytes_of)


def sched_setaffinity(k: Thread, pid: int, size: int, address: int) -> int:
    """The set must have a processor in it that there is."""
    mask = int.from_bytes(k.memory.read(address, min(size, 128)), "little")
    thread = k.machine.find_thread(pid, k)
    mask &= cpus.all_of(k.machine.cpus)
    if not mask:
        raise LinuxError(errno.EINVAL)
    thread.affinity = mask
    return 0


def sched_getparam(k: Thread, pid: int, address: int) -> int:
    """The priority of normal policies is always 0."""
    if not address:
        raise LinuxError(errno.EINVAL)
    _check_pid(k, pid)
    k.memory.write(address, bytes(4))
    return 0


def sched_getscheduler(k: Thread, pid: int) -> int:
    """The policy."""
    return _check_pid(k, pid).policy


def _set_policy(k: Thread, pid: int, policy: int, address: int) -> int:
    if not address or s32(pid) < 0:
        raise LinuxError(errno.EINVAL)
    (priority,) = struct.unpack("<i", k.memory.read(address, 4))
    thread = _check_pid(k, pid)
    kind = policy & ~_RESET_ON_FORK
    if kind in _NORMAL and priority == 0:
        _changeable(thread).policy = kind
        return 0
    if kind in (_FIFO, _RR) and 1 <= priority <= 99:
        raise LinuxError(errno.EPERM)
    raise LinuxError(errno.EINVAL)


def sched_setscheduler(k: Thread, pid: int, policy: int, address: int) -> int:
    """Only the policies that need no privileges."""
    if s32(policy) < 0:
        raise LinuxError(errno.EINVAL)
    return _set_policy(k, pid, s32(policy), address)


def sched_setparam(k: Thread, pid: int, address: int) -> int:
    """Only the priority it has."""
    if not address or s32(pid) < 0:
        raise LinuxError(errno.EINVAL)
    return _set_policy(k, pid, _check_pid(k, pid).policy, address)


def sched_get_priority_max(k: Thread, policy: int) -> int:
    """99 for real-time policies."""
    policy = s32(policy)
    if policy in (_FIFO, _RR):
        return 99
    if policy not in _NORMAL and policy != _DEADLINE:
        raise LinuxError(errno.EINVAL)
    return 0


def sched_get_priority_min(k: Thread, policy: int) -> int:
    """1 for real-time policies."""
    return min(sched_get_priority_max(k, policy), 1)


def _who(k: Thread, which: int, who: int) -> list[Thread | Init]:
    """The threads that are meant: a thread, a process group's, a user's."""
    which, who = s32(which), s32(who)
    if not 0 <= which <= 2:
        raise LinuxError(errno.EINVAL)
    if which == 0:
        return [k.machine.see_thread(who, k)]
    init = k.machine.init
    if which == 2 and who not in (0, k.uid):
        raise LinuxError(errno.ESRCH)
    group = who or k.process.group
    found: list[Thread | Init] = [
        thread
        for thread in k.machine.threads.values()
        if which == 2 or thread.process.group == group
    ]
    if which == 1 and group == init.group:
        found.append(init)
    if not found:
        raise LinuxError(errno.ESRCH)
    return found


def getpriority(k: Thread, which: int, who: int) -> int:
    """20 minus the nice value, as the raw system call gives it."""
    return 20 - min(thread.nice for thread in _who(k, which, who))


def setpriority(k: Thread, which: int, who: int, nice: int) -> int:
    """Set the nice value of a thread, which may not become less nice."""
    nice = min(max(s32(nice), -20), 19)
    for found in _who(k, which, who):
        thread = _changeable(found)
        if nice < thread.nice and 20 - nice > k.limit("nice"):
            raise LinuxError(errno.EACCES)
        thread.nice = nice
    return 0


def sched_getattr(k: Thread, pid: int, address: int, size: int, flags: int) -> int:
    """Policy and nice value as a struct sched_attr."""
    if not address or s32(pid) < 0 or not _ATTR_OLD <= size <= PAGE or flags:
        raise LinuxError(errno.EINVAL)
    thread = _check_pid(k, pid)
    told = struct.pack(
        "<IIQiI3QII", min(size, _ATTR), thread.policy, 0, thread.nice, 0, _SLICE, 0, 0, 0, 1024
    )
    k.memory.write(address, told[: min(size, _ATTR)])
    return 0


def sched_setattr(k: Thread, pid: int, address: int, flags: int) -> int:
    """Policies that need no privileges, and nice values that do not fall."""
    if not address or s32(pid) < 0 or flags:
        raise LinuxError(errno.EINVAL)
    (size,) = struct.unpack("<I", k.memory.read(address, 4))
    size = size or _ATTR_OLD
    if not _ATTR_OLD <= size <= PAGE:
        k.memory.write(address, struct.pack("<I", _ATTR))
        raise LinuxError(errno.E2BIG)
    data = k.memory.read(address, size)
    if any(data[_ATTR:]):
        k.memory.write(address, struct.pack("<I", _ATTR))
        raise LinuxError(errno.E2BIG)
    _, policy, _, nice, priority = struct.unpack_from("<IIQiI", data)
    if policy >= 1 << 31:
        raise LinuxError(errno.EINVAL)
    found = _check_pid(k, pid)
    if policy in (_FIFO, _RR) and 1 <= priority <= 99:
        raise LinuxError(errno.EPERM)
    if policy not in _NORMAL or priority:
        raise LinuxError(errno.EPERM if policy == _DEADLINE else errno.EINVAL)
    thread, nice = _changeable(found), min(max(nice, -20), 19)
    if nice < thread.nice and 20 - nice > k.limit("nice"):
        raise LinuxError(errno.EPERM)
    thread.policy, thread.nice = policy, nice
    return 0


def sched_rr_get_interval(k: Thread, pid: int, address: int) -> int:
    """The slice of a normal policy."""
    if s32(pid) < 0:
        raise LinuxError(errno.EINVAL)
    _check_pid(k, pid)
    k.memory.write(address, struct.pack("<2q", 0, _SLICE))
    return 0


def ioprio_get(k: Thread, which: int, who: int) -> int:
    """None set, for a process, a group or a user that there is."""
    _check_ioprio(k, which, who)
    return 0


def ioprio_set(k: Thread, which: int, who: int, priority: int) -> int:
    """Takes effect by not mattering."""
    return 0


def _check_ioprio(k: Thread, which: int, who: int) -> None:
    """Refuse what IOPRIO_WHO_PROCESS, _PGRP and _USER find nobody by (block/ioprio.c)."""
    which, who = s32(which), s32(who)
    if which not in (1, 2, 3):
        raise LinuxError(errno.EINVAL)
    if which == 1:
        k.machine.see_thread(who, k)
        return
    processes = k.machine.processes.values()
    known = {each.group for each in processes} if which == 2 else {k.uid}
    if who and who not in known:
        raise LinuxError(errno.ESRCH)


SYSCALLS: SyscallTable = {
    "sched_yield": sched_yield,
    "sched_getaffinity": sched_getaffinity,
    "sched_setaffinity": sched_setaffinity,
    "sched_getparam": sched_getparam,
    "sched_setparam": sched_setparam,
    "sched_getscheduler": sched_getscheduler,
    "sched_setscheduler": sched_setscheduler,
    "sched_get_priority_max": sched_get_priority_max,
    "sched_get_priority_min": sched_get_priority_min,
    "sched_getattr": sched_getattr,
    "sched_setattr": sched_setattr,
    "sched_rr_get_interval": sched_rr_get_interval,
    "getpriority": getpriority,
    "setpriority": setpriority,
    "ioprio_get": ioprio_get,
    "ioprio_set": ioprio_set,
}

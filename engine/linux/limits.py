"""Resource limits and usage."""

import errno
import struct
from typing import Final

from engine.linux.context import SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.thread import Thread

LIMITS: Final = (
    *("cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile"),
    *("memlock", "as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime"),
)
"""RLIMIT_* by number."""
_SELF, _CHILDREN, _THREAD = 0, -1, 1


def prlimit64(k: Thread, pid: int, resource: int, new: int, old: int) -> int:
    """Examine and change a limit."""
    process = k.machine.find_thread(pid, k).process
    resource = u32(resource)
    if resource >= len(LIMITS):
        raise LinuxError(errno.EINVAL)
    name = LIMITS[resource]
    before = process.limits[name]
    if new:
        soft, hard = struct.unpack("<QQ", k.memory.read(new, 16))
        if soft > hard:
            raise LinuxError(errno.EINVAL)
        if hard > before[1]:
            raise LinuxError(errno.EPERM)
        process.limits[name] = (soft, hard)
        if name == "cpu":
            process.timers.set_limit(soft, hard)
        if name == "stack" and soft != before[0] and not process.borrows:  # by vfork
            process.space.limit_stack(soft)
    if old:
        k.memory.write(old, struct.pack("<QQ", *before))
    return 0


def getrlimit(k: Thread, resource: int, address: int) -> int:
    """Examine a limit."""
    return prlimit64(k, 0, resource, 0, address)


def setrlimit(k: Thread, resource: int, address: int) -> int:
    """Change a limit."""
    return prlimit64(k, 0, resource, address, 0)


def getrusage(k: Thread, who: int, address: int) -> int:
    """Processor time and memory used."""
    process = k.process
    if s32(who) == _CHILDREN:
        used = usage(process.children_time, process.children_peak)
    elif s32(who) in (_SELF, _THREAD):
        time = process.cpu_time() if s32(who) == _SELF else k.cpu_time()
        used = usage(time, process.peak_memory())
    else:
        raise LinuxError(errno.EINVAL)
    k.memory.write(address, used)
    return 0


def usage(time: int, memory: int) -> bytes:
    """A struct rusage.

    Args:
        time: nanoseconds of processor time.
        memory: bytes that were resident at most.
    """
    seconds, rest = divmod(time // 1000, 10**6)
    return struct.pack("<5q", seconds, rest, 0, 0, memory >> 10).ljust(144, b"\0")


SYSCALLS: SyscallTable = {
    "prlimit64": prlimit64,
    "getrlimit": getrlimit,
    "setrlimit": setrlimit,
    "getrusage": getrusage,
}

"""The machine a guest is on: names, memory, processors, priorities, random numbers."""

import errno
import struct
from typing import Final

from engine.linux import cpus
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.thread import Thread

RELEASE: Final = b"6.18.0-kprobe-tui"
VERSION: Final = b"#1 SMP PREEMPT_DYNAMIC"
HOSTNAME: Final = b"guest"


def uname(k: Thread, address: int) -> int:
    """Names of system and machine."""
    fields = (
        *(b"Linux", HOSTNAME, RELEASE, VERSION),
        *(k.arch.linux.machine.encode(), b"(none)"),
    )
    k.memory.write(address, b"".join(field.ljust(65, b"\0") for field in fields))
    return 0


def sysinfo(k: Thread, address: int) -> int:
    """Load and memory: what the guest may use."""
    total = k.machine.memory_limit.total
    free = max(total - k.memory.used(), 0)
    uptime = k.clock.monotonic() // 10**9
    data = struct.pack(
        "<q3QQQQQQQHHIQQI", uptime, 0, 0, 0, total, free, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1
    )
    k.memory.write(address, data.ljust(112, b"\0"))
    return 0


def getrandom(k: Thread, address: int, size: int, flags: int) -> int:
    """Seeded bytes: the same for the same seed."""
    if flags & ~7 or flags & 6 == 6:
        raise LinuxError(errno.EINVAL)
    size = min(size, 1 << 20)
    k.memory.write(address, k.random_bytes(size))
    return size


def getcpu(k: Thread, cpu: int, node: int, cache: int) -> int:
    """One of the processors that the thread may be on, of node 0."""
    for address, number in ((cpu, cpus.first(k.affinity)), (node, 0)):
        if address:
            k.memory.write(address, number.to_bytes(4, "little"))
    return 0


def membarrier(k: Thread, command: int, flags: int, cpu: int) -> int:
    """One processor needs no barriers."""
    command = s32(command)
    if flags or (command and (command & command - 1 or not command & 0x1FF)):
        raise LinuxError(errno.EINVAL)
    return 0x1FF if command == 0 else 0


SYSCALLS: SyscallTable = {
    "uname": uname,
    "sysinfo": sysinfo,
    "getrandom": getrandom,
    "getcpu": getcpu,
    "membarrier": membarrier,
}

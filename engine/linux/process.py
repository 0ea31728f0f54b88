"""System calls about the process itself: identity, limits, exit, and the machine it is on."""

import errno
import struct
from typing import TYPE_CHECKING, Final

from engine.linux.context import SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.wait import Wait

if TYPE_CHECKING:
    from engine.linux.kernel import Kernel

RELEASE: Final = b"6.18.0-kprobe-tui"
VERSION: Final = b"#1 SMP PREEMPT_DYNAMIC"
HOSTNAME: Final = b"guest"
INFINITY: Final = (1 << 64) - 1

LIMITS: Final = (
    *("cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile"),
    *("memlock", "as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime"),
)
"""RLIMIT_* by number."""

_ARCH_SET_GS, _ARCH_SET_FS, _ARCH_GET_FS, _ARCH_GET_GS = 0x1001, 0x1002, 0x1003, 0x1004


def exit_group(k: "Kernel", code: int) -> int:
    """End the process."""
    k.finish(code & 0xFF)
    return 0


def identity_uid(k: "Kernel") -> int:
    """The guest's user."""
    return k.uid


def identity_gid(k: "Kernel") -> int:
    """The guest's group."""
    return k.gid


def getpid(k: "Kernel") -> int:
    """Process id."""
    return k.pid


def getppid(k: "Kernel") -> int:
    """The parent is outside the guest."""
    return k.ppid


def getpgid(k: "Kernel", pid: int = 0) -> int:
    """The process leads its group."""
    if s32(pid) not in (0, k.pid):
        raise LinuxError(errno.ESRCH)
    return k.pid


def setpgid(k: "Kernel", pid: int, group: int) -> int:
    """Only the group it has."""
    if s32(pid) not in (0, k.pid):
        raise LinuxError(errno.ESRCH)
    if s32(group) not in (0, k.pid):
        raise LinuxError(errno.EPERM)
    return 0


def setsid(k: "Kernel") -> int:
    """A group leader may not."""
    raise LinuxError(errno.EPERM)


def set_id(k: "Kernel", *ids: int) -> int:
    """Only the identity it has."""
    if any(s32(one) not in (-1, k.uid, k.gid) for one in ids):
        raise LinuxError(errno.EPERM)
    return 0


def setfsuid(k: "Kernel", uid: int) -> int:
    """The previous one, as always."""
    return k.uid


def getresuid(k: "Kernel", real: int, effective: int, saved: int) -> int:
    """All three are the same."""
    for address in (real, effective, saved):
        k.memory.write(address, struct.pack("<I", k.uid))
    return 0


def getresgid(k: "Kernel", real: int, effective: int, saved: int) -> int:
    """All three are the same."""
    for address in (real, effective, saved):
        k.memory.write(address, struct.pack("<I", k.gid))
    return 0


def getgroups(k: "Kernel", size: int, address: int) -> int:
    """One group."""
    size = s32(size)
    if size < 0:
        raise LinuxError(errno.EINVAL)
    if size:
        k.memory.write(address, struct.pack("<I", k.gid))
    return 1


def not_permitted(k: "Kernel", *arguments: int) -> int:
    """Needs privileges that a guest never has."""
    raise LinuxError(errno.EPERM)


def set_tid_address(k: "Kernel", address: int) -> int:
    """Remembered for when the thread ends."""
    k.clear_child_tid = address
    return k.pid


def set_robust_list(k: "Kernel", head: int, size: int) -> int:
    """Remembered for when the thread ends."""
    if size != 24:
        raise LinuxError(errno.EINVAL)
    k.robust_list = head
    return 0


def get_robust_list(k: "Kernel", pid: int, head: int, size: int) -> int:
    """What set_robust_list was given."""
    k.memory.write(head, struct.pack("<Q", k.robust_list))
    k.memory.write(size, struct.pack("<Q", 24))
    return 0


def uname(k: "Kernel", address: int) -> int:
    """Names of system and machine."""
    fields = (
        *(b"Linux", HOSTNAME, RELEASE, VERSION),
        *(k.arch.linux.machine.encode(), b"(none)"),
    )
    k.memory.write(address, b"".join(field.ljust(65, b"\0") for field in fields))
    return 0


def sysinfo(k: "Kernel", address: int) -> int:
    """Load and memory: what the guest may use."""
    total = k.memory_budget
    free = max(total - k.memory.used(), 0)
    uptime = k.clock.monotonic() // 10**9
    data = struct.pack(
        "<q3QQQQQQQHHIQQI", uptime, 0, 0, 0, total, free, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1
    )
    k.memory.write(address, data.ljust(112, b"\0"))
    return 0


def getrandom(k: "Kernel", address: int, size: int, flags: int) -> int:
    """Seeded bytes: the same for the same seed."""
    if flags & ~7:
        raise LinuxError(errno.EINVAL)
    size = min(size, 1 << 20)
    k.memory.write(address, k.random_bytes(size))
    return size


def prlimit64(k: "Kernel", pid: int, resource: int, new: int, old: int) -> int:
    """Examine and change a limit."""
    if s32(pid) not in (0, k.pid):
        raise LinuxError(errno.ESRCH)
    resource = u32(resource)
    if resource >= len(LIMITS):
        raise LinuxError(errno.EINVAL)
    name = LIMITS[resource]
    before = k.limits[name]
    if new:
        soft, hard = struct.unpack("<QQ", k.memory.read(new, 16))
        if soft > hard:
            raise LinuxError(errno.EINVAL)
        if hard > before[1]:
            raise LinuxError(errno.EPERM)
        k.limits[name] = (soft, hard)
    if old:
        k.memory.write(old, struct.pack("<QQ", *before))
    return 0


def getrlimit(k: "Kernel", resource: int, address: int) -> int:
    """Examine a limit."""
    return prlimit64(k, 0, resource, 0, address)


def setrlimit(k: "Kernel", resource: int, address: int) -> int:
    """Change a limit."""
    return prlimit64(k, 0, resource, address, 0)


def getrusage(k: "Kernel", who: int, address: int) -> int:
    """Processor time and memory used."""
    if s32(who) not in (0, -1, 1):
        raise LinuxError(errno.EINVAL)
    microseconds = k.cpu_time() // 1000 if s32(who) != -1 else 0
    seconds, rest = divmod(microseconds, 10**6)
    k.memory.write(
        address, struct.pack("<5q", seconds, rest, 0, 0, k.memory.used() >> 10).ljust(144, b"\0")
    )
    return 0


def prctl(k: "Kernel", option: int, a: int, b: int, c: int, d: int) -> int:
    """What programs ask of their own process."""
    option = s32(option)
    if option == 15:  # PR_SET_NAME
        k.set_comm(k.memory.read_cstring(a, 16)[:15])
        return 0
    if option == 16:  # PR_GET_NAME
        k.memory.write(a, k.comm.ljust(16, b"\0"))
        return 0
    if option in (1, 4, 38, 29, 36, 33):  # PDEATHSIG, DUMPABLE, NO_NEW_PRIVS, slack, subreaper
        return 0
    if option == 3:  # PR_GET_DUMPABLE
        return 1
    if option == 30:  # PR_GET_TIMERSLACK
        return 50_000
    if option == 39:  # PR_GET_NO_NEW_PRIVS
        return 1
    if option == 23:  # PR_CAPBSET_READ
        if a > 40:
            raise LinuxError(errno.EINVAL)
        return 0
    if option == 21:  # PR_GET_SECCOMP
        return 0
    raise LinuxError(errno.EINVAL)


def arch_prctl(k: "Kernel", code: int, address: int) -> int:
    """Segment bases of x86-64."""
    names = {_ARCH_SET_FS: "fs_base", _ARCH_SET_GS: "gs_base"}
    if code in names:
        if address >= k.arch.plan.task_size:
            raise LinuxError(errno.EPERM)
        k.cpu.write_register(names[code], address)
        return 0
    names = {_ARCH_GET_FS: "fs_base", _ARCH_GET_GS: "gs_base"}
    if code in names:
        k.memory.write(address, struct.pack("<Q", k.cpu.read_register(names[code])))
        return 0
    raise LinuxError(errno.EINVAL)


def personality(k: "Kernel", persona: int) -> int:
    """PER_LINUX with ADDR_NO_RANDOMIZE, which is how a guest runs."""
    return 0x0040000


def sched_yield(k: "Kernel") -> int:
    """Nobody else is there."""
    return 0


def sched_getaffinity(k: "Kernel", pid: int, size: int, address: int) -> int:
    """One processor."""
    if size < 8 or size % 8:
        raise LinuxError(errno.EINVAL)
    k.memory.write(address, struct.pack("<Q", 1))
    return 8


def accept(k: "Kernel", *arguments: int) -> int:
    """Takes effect by not mattering."""
    return 0


def sched_getparam(k: "Kernel", pid: int, address: int) -> int:
    """Priority 0 of SCHED_OTHER."""
    k.memory.write(address, bytes(4))
    return 0


def sched_priority(k: "Kernel", policy: int) -> int:
    """Only SCHED_OTHER, whose priorities are all 0."""
    return 0


def getpriority(k: "Kernel", which: int, who: int) -> int:
    """Nice 0, as the raw system call gives it."""
    return 20


def getcpu(k: "Kernel", cpu: int, node: int, cache: int) -> int:
    """Processor 0 of node 0."""
    for address in (cpu, node):
        if address:
            k.memory.write(address, bytes(4))
    return 0


def membarrier(k: "Kernel", command: int, flags: int, cpu: int) -> int:
    """One processor needs no barriers."""
    return 0x1FF if s32(command) == 0 else 0


def capget(k: "Kernel", header: int, data: int) -> int:
    """No capabilities."""
    version, pid = struct.unpack("<Ii", k.memory.read(header, 8))
    if version not in (0x19980330, 0x20071026, 0x20080522):
        k.memory.write(header, struct.pack("<I", 0x20080522))
        if data:
            raise LinuxError(errno.EINVAL)
        return 0
    if pid not in (0, k.pid):
        raise LinuxError(errno.ESRCH)
    if data:
        k.memory.write(data, bytes(12 if version == 0x19980330 else 24))
    return 0


def wait4(k: "Kernel", *arguments: int) -> int:
    """There are no children."""
    raise LinuxError(errno.ECHILD)


def futex(
    k: "Kernel", address: int, operation: int, value: int, timeout: int, other: int, extra: int
) -> int | Wait:
    """Wait and wake; with one thread a wait ends by a signal, a timeout or never."""
    command = operation & 0x7F
    if address % 4:
        raise LinuxError(errno.EINVAL)
    if command in (0, 9):  # WAIT, WAIT_BITSET
        (current,) = struct.unpack("<I", k.memory.read(address, 4))
        if current != u32(value):
            raise LinuxError(errno.EAGAIN)
        deadline = None
        if timeout:
            seconds, nanoseconds = struct.unpack("<qq", k.memory.read(timeout, 16))
            if not 0 <= nanoseconds < 10**9 or seconds < 0:
                raise LinuxError(errno.EINVAL)
            length = seconds * 10**9 + nanoseconds
            now = k.clock.monotonic()
            if command == 9:  # an absolute moment
                length -= k.clock.realtime() if operation & 256 else now
            deadline = now + max(length, 0)
        return Wait(lambda: None, deadline, -errno.ETIMEDOUT, restart=timeout == 0)
    if command in (1, 10, 3, 4, 5):  # WAKE, WAKE_BITSET, REQUEUE, CMP_REQUEUE, WAKE_OP
        k.memory.read(address, 4)
        if command == 4:
            (current,) = struct.unpack("<I", k.memory.read(address, 4))
            if current != u32(extra):
                raise LinuxError(errno.EAGAIN)
        return 0
    raise LinuxError(errno.ENOSYS)


SYSCALLS: SyscallTable = {
    "exit": exit_group,
    "exit_group": exit_group,
    "getuid": identity_uid,
    "geteuid": identity_uid,
    "getgid": identity_gid,
    "getegid": identity_gid,
    "getpid": getpid,
    "gettid": getpid,
    "getppid": getppid,
    "getpgid": getpgid,
    "getpgrp": getpgid,
    "getsid": getpgid,
    "setpgid": setpgid,
    "setsid": setsid,
    "setuid": set_id,
    "setgid": set_id,
    "setreuid": set_id,
    "setregid": set_id,
    "setresuid": set_id,
    "setresgid": set_id,
    "setfsuid": setfsuid,
    "setfsgid": setfsuid,
    "setgroups": not_permitted,
    "getresuid": getresuid,
    "getresgid": getresgid,
    "getgroups": getgroups,
    "set_tid_address": set_tid_address,
    "set_robust_list": set_robust_list,
    "get_robust_list": get_robust_list,
    "uname": uname,
    "sysinfo": sysinfo,
    "getrandom": getrandom,
    "prlimit64": prlimit64,
    "getrlimit": getrlimit,
    "setrlimit": setrlimit,
    "getrusage": getrusage,
    "prctl": prctl,
    "arch_prctl": arch_prctl,
    "personality": personality,
    "sched_yield": sched_yield,
    "sched_getaffinity": sched_getaffinity,
    "sched_setaffinity": accept,
    "sched_getparam": sched_getparam,
    "sched_setparam": accept,
    "sched_getscheduler": sched_priority,
    "sched_setscheduler": accept,
    "sched_get_priority_max": sched_priority,
    "sched_get_priority_min": sched_priority,
    "getpriority": getpriority,
    "setpriority": accept,
    "ioprio_get": sched_priority,
    "ioprio_set": accept,
    "getcpu": getcpu,
    "membarrier": membarrier,
    "capget": capget,
    "capset": not_permitted,
    "wait4": wait4,
    "waitid": wait4,
    "futex": futex,
    "reboot": not_permitted,
    "sethostname": not_permitted,
    "setdomainname": not_permitted,
    "ptrace": not_permitted,
    "init_module": not_permitted,
    "finit_module": not_permitted,
    "delete_module": not_permitted,
    "kexec_load": not_permitted,
    "iopl": not_permitted,
    "ioperm": not_permitted,
    "perf_event_open": not_permitted,
    "bpf": not_permitted,
    "syslog": not_permitted,
    "acct": not_permitted,
    "quotactl": not_permitted,
    "process_vm_readv": not_permitted,
    "process_vm_writev": not_permitted,
}

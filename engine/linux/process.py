"""The process itself: its end, its thread's pointers, prctl; it has no children."""

import errno
import struct
from typing import TYPE_CHECKING

from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError

if TYPE_CHECKING:
    from engine.linux.kernel import Kernel

_ARCH_SET_GS, _ARCH_SET_FS, _ARCH_GET_FS, _ARCH_GET_GS = 0x1001, 0x1002, 0x1003, 0x1004


def exit_group(k: "Kernel", code: int) -> int:
    """End the process."""
    k.finish(code & 0xFF)
    return 0


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


def wait4(k: "Kernel", *arguments: int) -> int:
    """There are no children."""
    raise LinuxError(errno.ECHILD)


SYSCALLS: SyscallTable = {
    "exit": exit_group,
    "exit_group": exit_group,
    "set_tid_address": set_tid_address,
    "set_robust_list": set_robust_list,
    "get_robust_list": get_robust_list,
    "prctl": prctl,
    "arch_prctl": arch_prctl,
    "personality": personality,
    "wait4": wait4,
    "waitid": wait4,
}

"""The end of threads and processes, what they are told at it, and prctl."""

import errno
import struct
from typing import Final

from engine.linux import futex
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.process import KNOBS
from engine.linux.thread import Thread


def exit_group(k: Thread, code: int) -> int:
    """End the process."""
    k.process.finish(code & 0xFF)
    return 0


def exit_thread(k: Thread, code: int) -> int:
    """End the thread, and the process with its last one."""
    if k.tracee is None or not k.tracee.ends((code & 0xFF) << 8):
        leave(k, code)
    return 0


def leave(k: Thread, code: int) -> None:
    """A thread ends, and the process with its last one."""
    process = k.process
    futex.thread_ends(k)
    if len(process.threads) > 1:
        k.machine.left(k, (code & 0xFF) << 8)
        k.files.leave()
    else:
        process.finish(code & 0xFF)  # whatever the others have left with


def set_tid_address(k: Thread, address: int) -> int:
    """Remembered for when the thread ends."""
    k.clear_child_tid = address
    return k.tid


def set_robust_list(k: Thread, head: int, size: int) -> int:
    """Remembered for when the thread ends."""
    if size != 24:
        raise LinuxError(errno.EINVAL)
    k.robust_list = head
    return 0


def get_robust_list(k: Thread, pid: int, head: int, size: int) -> int:
    """The address that set_robust_list was given."""
    thread = k.machine.find_thread(pid, k)
    k.memory.write(head, struct.pack("<Q", thread.robust_list))
    k.memory.write(size, struct.pack("<Q", 24))
    return 0


_KNOBS: Final = {
    1: "pdeathsig",
    4: "dumpable",
    8: "keepcaps",
    29: "slack",
    36: "subreaper",
    38: "no_new_privs",
}
_READ = {3: "dumpable", 7: "keepcaps", 30: "slack"}
_READ_BARE: Final = {34: "mce_kill", 39: "no_new_privs", 42: "thp_disable"}
"""Options that want their other arguments to be 0, else EINVAL."""
_WITHOUT_EFFECT: Final = frozenset({13, 31, 32})
"""PR_GET_TIMING, PR_TASK_PERF_EVENTS_DISABLE and ENABLE: 0."""
_PRIVILEGED: Final = frozenset({24, 28, 57, 58})
"""PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_SET_IO_FLUSHER, PR_GET_IO_FLUSHER."""
_MCE_CLEAR, _MCE_SET, _MCE_DEFAULT = 0, 1, 2
_EXCEPT_ADVISED: Final = 2
"""PR_THP_DISABLE_EXCEPT_ADVISED, since Linux 6.18."""
_MM_AUXV, _MM_MAP, _MM_MAP_SIZE = 12, 14, 15
_MM_MAP_BYTES: Final = 104
"""Size of struct prctl_mm_map."""
_GET_TSC, _SET_TSC = 25, 26
_TSC_ENABLE, _TSC_SIGSEGV = 1, 2
_READ_BY_ADDRESS = {2: "pdeathsig", 37: "subreaper"}


def _set_knob(k: Thread, name: str, value: int, others: int) -> int:
    wrong = (
        (name == "pdeathsig" and value > 64)
        or (name in ("dumpable", "keepcaps") and value > 1)
        or (name == "no_new_privs" and (value != 1 or others))
    )
    if wrong:
        raise LinuxError(errno.EINVAL)
    if name == "slack" and not value:
        value = KNOBS["slack"]
    k.process.knobs[name] = value & 0x7FFFFFFF if name != "subreaper" else int(value != 0)
    return 0


def prctl(k: Thread, option: int, a: int, b: int, c: int, d: int) -> int:
    """Operations on the process's own attributes."""
    option = s32(option)
    if option == 15:  # PR_SET_NAME
        k.set_comm(k.memory.read_cstring(a, 16)[:15])
        return 0
    if option == 16:  # PR_GET_NAME
        k.memory.write(a, k.comm.ljust(16, b"\0"))
        return 0
    if option in _KNOBS:
        return _set_knob(k, _KNOBS[option], a, b | c | d)
    if option in (2, 37):  # PR_GET_PDEATHSIG, PR_GET_CHILD_SUBREAPER
        k.memory.write(a, struct.pack("<i", k.process.knobs[_READ_BY_ADDRESS[option]]))
        return 0
    if option in _READ:
        return k.process.knobs[_READ[option]]
    if option == 23:  # PR_CAPBSET_READ
        if a > 40:
            raise LinuxError(errno.EINVAL)
        return 0
    if option == 21:  # PR_GET_SECCOMP
        return 0 if k.seccomp is None else k.seccomp.mode
    if option == 22:  # PR_SET_SECCOMP
        from engine.linux import seccomp  # few programs restrict themselves

        return seccomp.set_mode(k, a, b)
    if option in _READ_BARE:
        if a | b | c | d:
            raise LinuxError(errno.EINVAL)
        return k.process.knobs[_READ_BARE[option]]
    if option in _WITHOUT_EFFECT:
        return 0
    if option == 33:  # PR_MCE_KILL
        return _set_mce_kill(k, a, b, c | d)
    if option == 41:  # PR_SET_THP_DISABLE
        if b & ~_EXCEPT_ADVISED or (b and not a) or c | d:
            raise LinuxError(errno.EINVAL)
        k.process.knobs["thp_disable"] = 1 | b if a else 0
        return 0
    if option == 40:  # PR_GET_TID_ADDRESS
        k.memory.write(a, struct.pack("<Q", k.clear_child_tid))
        return 0
    if option == 35:  # PR_SET_MM
        return _set_mm(k, a, b, c, d)
    if option == 14 and not a:  # PR_SET_TIMING, PR_TIMING_STATISTICAL
        return 0
    if option == 27:  # PR_GET_SECUREBITS: SECBIT_KEEP_CAPS
        return k.process.knobs["keepcaps"] << 4
    if option in _PRIVILEGED:
        raise LinuxError(errno.EPERM)
    if option in (_GET_TSC, _SET_TSC) and k.arch.linux.refuses_counter:
        return _time_stamp_counter(k, option, a)
    if option == 47:  # PR_CAP_AMBIENT
        return _ambient(a, b, c | d)
    raise LinuxError(errno.EINVAL)


def _set_mce_kill(k: Thread, operation: int, policy: int, others: int) -> int:
    """Remember when a memory error kills: late (0), early (1), or as the system says (2)."""
    policy &= 0xFFFFFFFF
    clears = operation == _MCE_CLEAR and not policy
    if others or not (clears or (operation == _MCE_SET and policy <= _MCE_DEFAULT)):
        raise LinuxError(errno.EINVAL)
    k.process.knobs["mce_kill"] = _MCE_DEFAULT if clears else policy
    return 0


def _time_stamp_counter(k: Thread, option: int, value: int) -> int:
    """Tell or say whether the thread may read the counter (get_tsc_mode, set_tsc_mode)."""
    if option == _GET_TSC:
        mode = _TSC_SIGSEGV if k.refuses_counter else _TSC_ENABLE
        k.memory.write(value, struct.pack("<I", mode))
        return 0
    value &= 0xFFFFFFFF
    if value not in (_TSC_ENABLE, _TSC_SIGSEGV):
        raise LinuxError(errno.EINVAL)
    k.refuses_counter = value == _TSC_SIGSEGV
    return 0


def _set_mm(k: Thread, option: int, address: int, size: int, other: int) -> int:
    """Refuse to change the bounds of code, data and stack (prctl_set_mm)."""
    if other or (size and option not in (_MM_AUXV, _MM_MAP, _MM_MAP_SIZE)):
        raise LinuxError(errno.EINVAL)
    if option == _MM_MAP_SIZE:
        k.memory.write(address, struct.pack("<I", _MM_MAP_BYTES))
        return 0
    raise LinuxError(errno.EPERM)


def _ambient(operation: int, capability: int, others: int) -> int:
    """Look at and change ambient capabilities, of which there are none."""
    everything = operation == 4
    if others or (capability if everything else capability > 40) or not 1 <= operation <= 4:
        raise LinuxError(errno.EINVAL)
    if operation == 2:
        raise LinuxError(errno.EPERM)
    return 0


def personality(k: Thread, persona: int) -> int:
    """PER_LINUX with ADDR_NO_RANDOMIZE, which is how a guest runs."""
    return 0x0040000


SYSCALLS: SyscallTable = {
    "exit": exit_thread,
    "exit_group": exit_group,
    "set_tid_address": set_tid_address,
    "set_robust_list": set_robust_list,
    "get_robust_list": get_robust_list,
    "prctl": prctl,
    "personality": personality,
}

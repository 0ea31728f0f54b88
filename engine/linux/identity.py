"""Users, groups, process ids, capabilities: a guest has one identity and no privileges."""

import errno
import struct
from typing import NoReturn

from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.init import CAPABILITIES, INIT, Init
from engine.linux.process import Process
from engine.linux.thread import Thread

_CAPABILITY_WORDS = {0x19980330: 1, 0x20071026: 2, 0x20080522: 2}
"""32-bit words of each set, by version of the structure (linux/capability.h)."""


def identity_uid(k: Thread) -> int:
    """The guest's user."""
    return k.uid


def identity_gid(k: Thread) -> int:
    """The guest's group."""
    return k.gid


def getpid(k: Thread) -> int:
    """Process id."""
    return k.pid


def gettid(k: Thread) -> int:
    """Thread id."""
    return k.tid


def getppid(k: Thread) -> int:
    """The parent is outside the guest."""
    return k.process.ppid


def _process(k: Thread, pid: int) -> Process | Init:
    """The process of an id, 0 for one's own; ESRCH if there is none."""
    if not s32(pid):
        return k.process
    if s32(pid) == INIT:
        return k.machine.init
    found = k.machine.processes.get(s32(pid))
    return k.machine.find_thread(pid, k).process if found is None else found


def getpgid(k: Thread, pid: int) -> int:
    """The process group of a process."""
    return _process(k, pid).group


def getpgrp(k: Thread) -> int:
    """The process group of the caller."""
    return k.process.group


def getsid(k: Thread, pid: int) -> int:
    """The session of a process."""
    return _process(k, pid).session


def setpgid(k: Thread, pid: int, group: int) -> int:
    """Put itself or a child into a process group."""
    group = s32(group)
    if group < 0:
        raise LinuxError(errno.EINVAL)
    target = k.machine.processes.get(s32(pid) or k.pid)
    if target is None or (target is not k.process and target.parent is not k.process):
        raise LinuxError(errno.ESRCH)
    if target is not k.process and target.session != k.process.session:
        raise LinuxError(errno.EPERM)
    if target is not k.process and target.executed:
        raise LinuxError(errno.EACCES)
    if target.session == target.pid:
        raise LinuxError(errno.EPERM)
    group = group or target.pid
    if group != target.pid and not any(
        each.group == group and each.session == k.process.session
        for each in k.machine.processes.values()
    ):
        raise LinuxError(errno.EPERM)
    target.group = group
    return 0


def setsid(k: Thread) -> int:
    """Lead a session and a process group of its own; a group's leader may not."""
    process = k.process
    if any(each.group == process.pid for each in k.machine.processes.values()):
        raise LinuxError(errno.EPERM)
    process.group = process.session = process.pid
    process.terminal = None
    return process.pid


def _only(own: int, *ids: int) -> int:
    """Only the identity it has."""
    if any(s32(one) not in (-1, own) for one in ids):
        raise LinuxError(errno.EPERM)
    return 0


def _one(own: int, wanted: int) -> int:
    if s32(wanted) == -1:
        raise LinuxError(errno.EINVAL)
    return _only(own, wanted)


def setuid(k: Thread, uid: int) -> int:
    """Only the identity it has."""
    return _one(k.uid, uid)


def setgid(k: Thread, gid: int) -> int:
    """Only the identity it has."""
    return _one(k.gid, gid)


def setreuid(k: Thread, real: int, effective: int) -> int:
    """Only the identity it has."""
    return _only(k.uid, real, effective)


def setregid(k: Thread, real: int, effective: int) -> int:
    """Only the identity it has."""
    return _only(k.gid, real, effective)


def setresuid(k: Thread, real: int, effective: int, saved: int) -> int:
    """Only the identity it has."""
    return _only(k.uid, real, effective, saved)


def setresgid(k: Thread, real: int, effective: int, saved: int) -> int:
    """Only the identity it has."""
    return _only(k.gid, real, effective, saved)


def setfsuid(k: Thread, uid: int) -> int:
    """The previous one, as always."""
    return k.uid


def getresuid(k: Thread, real: int, effective: int, saved: int) -> int:
    """All three are the same."""
    for address in (real, effective, saved):
        k.memory.write(address, struct.pack("<I", k.uid))
    return 0


def getresgid(k: Thread, real: int, effective: int, saved: int) -> int:
    """All three are the same."""
    for address in (real, effective, saved):
        k.memory.write(address, struct.pack("<I", k.gid))
    return 0


def getgroups(k: Thread, size: int, address: int) -> int:
    """Tell the groups of the guest's user (getgroups(2))."""
    size, groups = s32(size), k.fs.identity.groups
    if size < 0 or 0 < size < len(groups):
        raise LinuxError(errno.EINVAL)
    if size:
        k.memory.write(address, struct.pack(f"<{len(groups)}I", *groups))
    return len(groups)


def capget(k: Thread, header: int, data: int) -> int:
    """No capabilities; process 1 has all."""
    version, pid = struct.unpack("<Ii", k.memory.read(header, 8))
    if version not in _CAPABILITY_WORDS:
        k.memory.write(header, struct.pack("<I", 0x20080522))
        if data or pid < 0:
            raise LinuxError(errno.EINVAL)
        return 0
    if pid < 0:
        raise LinuxError(errno.EINVAL)
    privileged = isinstance(k.machine.see_thread(pid, k), Init)
    if data:
        words = (CAPABILITIES >> 32 * i & 0xFFFFFFFF for i in range(_CAPABILITY_WORDS[version]))
        sets = [(word, word, 0) if privileged else (0, 0, 0) for word in words]
        k.memory.write(data, b"".join(struct.pack("<3I", *each) for each in sets))
    return 0


def capset(k: Thread, header: int, data: int) -> int:
    """Gives up capabilities, of which there are none; none can be gained."""
    version, pid = struct.unpack("<Ii", k.memory.read(header, 8))
    if version not in _CAPABILITY_WORDS:
        k.memory.write(header, struct.pack("<I", 0x20080522))
        raise LinuxError(errno.EINVAL)
    if pid not in (0, k.tid):
        raise LinuxError(errno.EPERM)
    words = _CAPABILITY_WORDS[version]
    if any(k.memory.read(data, 12 * words)):
        raise LinuxError(errno.EPERM)
    return 0


def not_permitted(k: Thread, *arguments: int) -> NoReturn:
    """Needs privileges that a guest never has."""
    raise LinuxError(errno.EPERM)


SYSCALLS: SyscallTable = {
    "getuid": identity_uid,
    "geteuid": identity_uid,
    "getgid": identity_gid,
    "getegid": identity_gid,
    "getpid": getpid,
    "gettid": gettid,
    "getppid": getppid,
    "getpgid": getpgid,
    "getpgrp": getpgrp,
    "getsid": getsid,
    "setpgid": setpgid,
    "setsid": setsid,
    "setuid": setuid,
    "setgid": setgid,
    "setreuid": setreuid,
    "setregid": setregid,
    "setresuid": setresuid,
    "setresgid": setresgid,
    "setfsuid": setfsuid,
    "setfsgid": setfsuid,
    "setgroups": not_permitted,
    "getresuid": getresuid,
    "getresgid": getresgid,
    "getgroups": getgroups,
    "capget": capget,
    "capset": capset,
    "reboot": not_permitted,
    "vhangup": not_permitted,
    "fanotify_init": not_permitted,
    "open_by_handle_at": not_permitted,
    "userfaultfd": not_permitted,
    "kexec_file_load": not_permitted,
    "quotactl_fd": not_permitted,
    "fsopen": not_permitted,
    "fspick": not_permitted,
    "open_tree": not_permitted,
    "move_mount": not_permitted,
    "mount_setattr": not_permitted,
    "sethostname": not_permitted,
    "setdomainname": not_permitted,
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
}

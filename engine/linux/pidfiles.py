"""Files that stand for processes and threads: pidfds (kernel/pid.c, fs/pidfs.c)."""

import errno
import struct
from typing import Final

from engine.linux import signals as sig
from engine.linux.context import SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.eventfd_timerfd import AnonymousFile
from engine.linux.fs.openfile import PathFile
from engine.linux.fs.proc import ProcessDirectory
from engine.linux.init import INIT, Init
from engine.linux.machine import Machine
from engine.linux.process import Process
from engine.linux.signals import PendingSignal
from engine.linux.thread import Thread

THREAD: Final = 0o200
"""PIDFD_THREAD: of a thread, which O_EXCL tells in its flags."""
_SELF_THREAD, _SELF_PROCESS = -10000, -10001
_TO_THREAD, _TO_PROCESS, _TO_GROUP = 1, 2, 4


class PidFile(AnonymousFile):
    """A pidfd.

    Attributes:
        process: the process that it stands for, or whose thread.
    """

    def __init__(
        self, machine: Machine, process: Process | Init, tid: int, flags: int = 0
    ) -> None:
        super().__init__(fl.O_RDWR | flags)
        self.title = b"anon_inode:[pidfd]"
        self.process, self._machine, self._tid = process, machine, tid

    @property
    def thread(self) -> Thread | None:
        """The thread, None if it has ended."""
        return self._machine.threads.get(self._tid)

    def seek(self, offset: int, whence: int) -> int:
        """Refuse: a pidfd has no position."""
        raise LinuxError(errno.ESPIPE)

    def known(self) -> bool:
        """True if its process has not been waited for."""
        process = self.process
        if self._tid != process.pid:
            return self.thread is not None
        return process in (self._machine.init, self._machine.processes.get(process.pid))

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        if self.flags & THREAD and self._tid != self.process.pid:
            over = self.thread is None
        else:
            over = self.process.exit is not None
        if not over:
            return 0
        return fl.POLLIN | fl.POLLRDNORM | (0 if self.known() else fl.POLLHUP)

    def details(self) -> bytes:
        """Lines of /proc/self/fdinfo/N that only its kind has."""
        number = self._tid if self.known() else -1
        return b"Pid:\t%d\nNSpid:\t%d\n" % (number, number)


def at(k: Thread, fd: int) -> PidFile:
    """The pidfd of a number; EBADF if it is none."""
    file = k.files.get(fd)
    if not isinstance(file, PidFile):
        raise LinuxError(errno.EBADF)
    return file


def pidfd_open(k: Thread, pid: int, flags: int) -> int:
    """A descriptor of a process, or with PIDFD_THREAD of a thread."""
    pid, flags = s32(pid), u32(flags)
    if flags & ~(fl.O_NONBLOCK | THREAD) or pid <= 0:
        raise LinuxError(errno.EINVAL)
    thread = k.machine.threads.get(pid)
    process = k.machine.init if pid == INIT else k.machine.processes.get(pid)
    if process is None:
        if thread is None:
            raise LinuxError(errno.ESRCH)
        if not flags & THREAD:
            raise LinuxError(errno.ENOENT)
        process = thread.process
    return k.files.add(PidFile(k.machine, process, pid, flags), cloexec=True)


def _target(k: Thread, fd: int) -> tuple[Process | Init, Thread | None, bool]:
    """(process, thread, whether the thread alone is meant) of a descriptor or PIDFD_SELF_*."""
    if fd in (_SELF_THREAD, _SELF_PROCESS):
        return k.process, k, fd == _SELF_THREAD
    opened = k.files.get(fd)
    directory = None if isinstance(opened, PathFile) else opened.node
    if isinstance(directory, ProcessDirectory) and directory.pid is not None:
        # As before there were pidfds: /proc/PID stands for the process, too.
        pid = directory.pid
        found = k.machine.init if pid == INIT else k.machine.processes.get(pid)
        if found is None:
            raise LinuxError(errno.ESRCH)
        return found, None, False
    file = at(k, fd)
    if not file.known():
        raise LinuxError(errno.ESRCH)
    return file.process, file.thread, bool(file.flags & THREAD)


def pidfd_send_signal(k: Thread, fd: int, number: int, info: int, flags: int) -> int:
    """Send a signal to a process, a thread or a process group."""
    number, flags = s32(number), u32(flags)
    if flags not in (0, _TO_THREAD, _TO_PROCESS, _TO_GROUP):
        raise LinuxError(errno.EINVAL)
    process, thread, alone = _target(k, s32(fd))
    if flags:
        alone = flags == _TO_THREAD
    code = sig.SI_TKILL if alone else sig.SI_USER
    data = sig.info_kill(number, code, k.pid, k.uid)
    if info:
        given = k.memory.read(info, 128)
        own, _, code = struct.unpack_from("<iii", given)
        if own != number:
            raise LinuxError(errno.EINVAL)
        others = process is not k.process or flags == _TO_GROUP
        if others and (code >= 0 or code == sig.SI_TKILL):
            raise LinuxError(errno.EPERM)
        data = bytes(given[:48])
    if not 0 <= number <= 64:
        raise LinuxError(errno.EINVAL)
    if isinstance(process, Init):
        raise LinuxError(errno.EPERM)
    item = PendingSignal(number, data)
    if flags == _TO_GROUP:
        members = [each for each in k.machine.processes.values() if each.group == process.pid]
        if not members:
            raise LinuxError(errno.ESRCH)
        for each in members:
            if number and each.exit is None:
                each.post(item)
        return 0
    if alone and thread is None and process.exit is None:
        raise LinuxError(errno.ESRCH)
    if not number or process.exit is not None:
        return 0
    if not (thread.post(item) if thread is not None and alone else process.post(item)):
        raise LinuxError(errno.EAGAIN)
    return 0


def pidfd_getfd(k: Thread, fd: int, other: int, flags: int) -> int:
    """A descriptor of another process's open file."""
    if u32(flags):
        raise LinuxError(errno.EINVAL)
    file = at(k, s32(fd))
    if isinstance(file.process, Init):
        raise LinuxError(errno.EPERM)
    if file.process.exit is not None or not file.known():
        raise LinuxError(errno.ESRCH)
    return k.files.add(file.process.files.get(s32(other)), cloexec=True)


SYSCALLS: SyscallTable = {
    "pidfd_open": pidfd_open,
    "pidfd_send_signal": pidfd_send_signal,
    "pidfd_getfd": pidfd_getfd,
}

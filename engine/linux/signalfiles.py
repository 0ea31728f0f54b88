"""Signals that are read from a file (fs/signalfd.c)."""

import struct
from typing import Final

from engine.linux import signals as sig
from engine.linux.context import SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.calls import opened
from engine.linux.fs.eventfd_timerfd import AnonymousFile
from engine.linux.machine import Machine
from engine.linux.thread import Thread

EINVAL = 22

_SIZE: Final = 128
_SI_SIGIO: Final = -5
_POLL, _FAULTS = 29, frozenset({sig.SIGILL, sig.SIGFPE, sig.SIGSEGV, sig.SIGBUS, sig.SIGTRAP})
_HEAD: Final = struct.Struct("<IiiIIiIIIIiiQQQQ")


class SignalFile(AnonymousFile):
    """A signalfd: pending signals of whoever reads it, one record each."""

    outside = True

    def __init__(self, machine: Machine, mask: int, flags: int = 0) -> None:
        super().__init__(fl.O_RDWR | flags)
        self.title = b"anon_inode:[signalfd]"
        self.mask = mask
        self._machine = machine

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        if count < _SIZE:
            raise LinuxError(EINVAL)
        state = self._machine.caller.signals
        records: list[bytes] = []
        while len(records) < count // _SIZE:
            item = state.take(self.mask)
            if item is None:
                break
            records.append(_record(item.info))
        return b"".join(records) or None

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        return fl.POLLIN if self._machine.caller.signals.waiting() & self.mask else 0

    def details(self) -> bytes:
        """Lines of /proc/self/fdinfo/N that only its kind has."""
        return b"sigmask:\t%016x\n" % self.mask


def _record(info: bytes) -> bytes:
    """A struct signalfd_siginfo of a siginfo; the kind of that goes by its code and number."""
    info = info.ljust(48, b"\0")
    number, error, code = struct.unpack_from("<iii", info)
    pid = uid = tid = band = overrun = status = pointer = utime = stime = address = 0
    fd = 0
    if code == sig.SI_TIMER:
        tid, overrun, pointer = struct.unpack_from("<IIQ", info, 16)
    elif code == _SI_SIGIO or (number == _POLL and 0 < code < sig.SI_KERNEL):
        band, fd = struct.unpack_from("<qi", info, 16)
    elif number in _FAULTS and 0 < code < sig.SI_KERNEL:
        (address,) = struct.unpack_from("<Q", info, 16)
    elif number == sig.SIGCHLD and 0 < code < sig.SI_KERNEL:
        pid, uid, status, utime, stime = struct.unpack_from("<IIi4xqq", info, 16)
    else:
        pid, uid, pointer = struct.unpack_from("<IIQ", info, 16)
        pointer = pointer if code < 0 else 0
    head = _HEAD.pack(
        *(number, error, code, pid, uid, fd, tid, band & 0xFFFFFFFF, overrun, 0, status),
        *(s32(pointer), pointer, utime, stime, address),
    )
    return head.ljust(_SIZE, b"\0")


def signalfd4(k: Thread, fd: int, mask_at: int, size: int, flags: int) -> int:
    """A file that signals are read from, or another mask for one."""
    flags, fd = u32(flags), s32(fd)
    if size != 8:
        raise LinuxError(EINVAL)
    (mask,) = struct.unpack("<Q", k.memory.read(mask_at, 8))
    if flags & ~(fl.O_CLOEXEC | fl.O_NONBLOCK):
        raise LinuxError(EINVAL)
    mask &= ~sig.UNBLOCKABLE
    if fd == -1:
        file = SignalFile(k.machine, mask, flags & fl.O_NONBLOCK)
        return k.files.add(file, cloexec=bool(flags & fl.O_CLOEXEC))
    found = opened(k, fd)
    if not isinstance(found, SignalFile):
        raise LinuxError(EINVAL)
    found.mask = mask
    return fd


def signalfd(k: Thread, fd: int, mask_at: int, size: int) -> int:
    """The same without flags."""
    return signalfd4(k, fd, mask_at, size, 0)


SYSCALLS: SyscallTable = {"signalfd": signalfd, "signalfd4": signalfd4}

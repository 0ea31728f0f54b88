"""Copies from and to memory of other processes, as these have it (mm/process_vm_access.c)."""

import errno
import struct
from collections.abc import Callable

from engine.errors import GuestFaultError
from engine.guest.memory import Memory
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.init import INIT
from engine.linux.thread import Thread

_MOST = 1024
"""UIO_MAXIOV."""
_PIECE = 1 << 12


def _vector(k: Thread, address: int, count: int) -> list[tuple[int, int]]:
    if count > _MOST:
        raise LinuxError(errno.EINVAL)
    data = k.memory.read(address, 16 * count) if count else b""
    found = [struct.unpack_from("<QQ", data, 16 * index) for index in range(count)]
    if any(size >> 63 for _, size in found):
        raise LinuxError(errno.EINVAL)
    return found


def _transfer(
    k: Thread,
    pid: int,
    vectors: tuple[int, int, int, int],
    flags: int,
    copy: Callable[[Memory, Memory, int, int, int], None],
) -> int:
    """Copy between the caller's memory and another one's, in both by vectors."""
    local_at, local_count, remote_at, remote_count = vectors
    if flags:
        raise LinuxError(errno.EINVAL)
    local = _vector(k, local_at, local_count)
    if not sum(size for _, size in local):
        return 0
    remote = _vector(k, remote_at, remote_count)
    if not any(size for _, size in remote):
        return 0
    thread = k.machine.threads.get(s32(pid))
    if thread is None:
        raise LinuxError(errno.EPERM if s32(pid) == INIT else errno.ESRCH)
    if not thread.visible_to(k):
        raise LinuxError(errno.EPERM)
    done, own = 0, iter([(at, size) for at, size in local if size])
    here, left = next(own)
    for at, size in remote:
        while size:
            if not left:
                here, left = next(own, (0, 0))
                if not left:
                    return done
            part = min(size, left, _PIECE - at % _PIECE, _PIECE - here % _PIECE)
            try:
                copy(k.memory, thread.memory, here, at, part)
            except GuestFaultError:
                if done:
                    return done
                raise
            done, here, at = done + part, here + part, at + part
            left, size = left - part, size - part
    return done


def _read(own: Memory, other: Memory, here: int, there: int, size: int) -> None:
    own.write(here, other.read(there, size))


def _write(own: Memory, other: Memory, here: int, there: int, size: int) -> None:
    other.write(there, own.read(here, size))


def process_vm_readv(
    k: Thread, pid: int, local: int, count: int, remote: int, remotes: int, flags: int
) -> int:
    """Read another process's memory."""
    return _transfer(k, pid, (local, count, remote, remotes), flags, _read)


def process_vm_writev(
    k: Thread, pid: int, local: int, count: int, remote: int, remotes: int, flags: int
) -> int:
    """Write to another process's memory."""
    return _transfer(k, pid, (local, count, remote, remotes), flags, _write)


SYSCALLS: SyscallTable = {
    "process_vm_readv": process_vm_readv,
    "process_vm_writev": process_vm_writev,
}

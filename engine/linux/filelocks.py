"""Locks of files: the lock commands of fcntl, and flock (fs/locks.c)."""

import struct
from collections.abc import Callable
from typing import Final

from engine.linux.context import Context, SyscallTable, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.locks import END, FREE, READ, WRITE, FileLock, LockTable, LockWaiter
from engine.linux.fs.openfile import PathFile
from engine.linux.fs.vfs import OpenFile
from engine.linux.wait import Wait

EBADF, EAGAIN, EINVAL, EOVERFLOW = 9, 11, 22, 75

_GETLK, _SETLK, _SETLKW = 5, 6, 7
_OFD_GETLK, _OFD_SETLK, _OFD_SETLKW = 36, 37, 38
_SIZE: Final = 32
"""Bytes of struct flock on 64-bit machines."""

_FLOCKS: Final = {1: READ, 2: WRITE, 8: FREE}
_NONBLOCKING, _MANDATORY = 4, 32


def _lock_at(ctx: Context, file: OpenFile, address: int, *, own: bool) -> FileLock:
    """The lock that a struct flock describes.

    Args:
        ctx: the process.
        file: the file.
        address: of the structure.
        own: it is to belong to the open file.
    """
    order = "<" if ctx.arch.byteorder == "little" else ">"
    raw = ctx.memory.read(address, _SIZE)
    kind, whence, start, length, pid = struct.unpack(order + "hh4xqqi", raw[:28])
    if whence == 0:
        base = 0
    elif whence == 1:
        base = file.offset
    elif whence == 2:
        base = file.stat().size
    else:
        raise LinuxError(EINVAL)
    first = base + start
    if first > END:
        raise LinuxError(EOVERFLOW)
    if first < 0:
        raise LinuxError(EINVAL)
    last = first + length - 1 if length > 0 else END
    if last > END:
        raise LinuxError(EOVERFLOW)
    if length < 0:
        first, last = first + length, first - 1
        if first < 0:
            raise LinuxError(EINVAL)
    if kind not in (READ, WRITE, FREE):
        raise LinuxError(EINVAL)
    if own and pid:
        raise LinuxError(EINVAL)
    return FileLock(file if own else ctx.files, kind, first, last, -1 if own else ctx.pid)


def _get(ctx: Context, file: OpenFile, address: int, *, own: bool) -> int:
    """Tell of the first lock that one could not be had beside (fcntl_getlk)."""
    order = "<" if ctx.arch.byteorder == "little" else ">"
    (kind,) = struct.unpack(order + "h", ctx.memory.read(address, _SIZE)[:2])
    if not own and kind not in (READ, WRITE):
        raise LinuxError(EINVAL)
    lock = _lock_at(ctx, file, address, own=own)
    table = ctx.fs.locks.of(file).ranges
    found = table.own(lock) if lock.kind == FREE else table.conflict(lock)
    if found is None:
        ctx.memory.write(address, struct.pack(order + "h", FREE))
        return 0
    length = 0 if found.last == END else found.last - found.first + 1
    ctx.memory.write(
        address, struct.pack(order + "hh4xqqi", found.kind, 0, found.first, length, found.pid)
    )
    return 0


def _take(ctx: Context, table: LockTable, lock: FileLock, *, wait: bool) -> int | Wait:
    """Take a lock, now or as soon as it can be had."""
    blocker = table.conflict(lock) if lock.kind != FREE else None
    if blocker is None:
        table.set(lock)
        return 0
    if not wait:
        raise LinuxError(EAGAIN)
    waiter = LockWaiter(lock, blocker, ctx.wake)
    table.check_deadlock(waiter)
    table.enter(waiter)

    def attempt() -> int | None:
        blocker = table.conflict(lock)
        if blocker is not None and blocker.owner is waiter.blocker.owner:
            return None
        table.leave(waiter)
        if blocker is None:
            table.set(lock)
            return 0
        waiter.blocker = blocker
        table.check_deadlock(waiter)
        table.enter(waiter)
        return None

    return Wait(attempt, leave=lambda: table.leave(waiter), woken_by_calls=True)


def _set(ctx: Context, file: OpenFile, address: int, *, own: bool, wait: bool) -> int | Wait:
    """Take or give up a lock (fcntl_setlk)."""
    lock = _lock_at(ctx, file, address, own=own)
    access = file.flags & fl.O_ACCMODE
    if (lock.kind == READ and access == fl.O_WRONLY) or (
        lock.kind == WRITE and access == fl.O_RDONLY
    ):
        raise LinuxError(EBADF)
    return _take(ctx, ctx.fs.locks.of(file).ranges, lock, wait=wait)


COMMANDS: Final[dict[int, Callable[[Context, OpenFile, int], int | Wait]]] = {
    _GETLK: lambda ctx, file, at: _get(ctx, file, at, own=False),
    _SETLK: lambda ctx, file, at: _set(ctx, file, at, own=False, wait=False),
    _SETLKW: lambda ctx, file, at: _set(ctx, file, at, own=False, wait=True),
    _OFD_GETLK: lambda ctx, file, at: _get(ctx, file, at, own=True),
    _OFD_SETLK: lambda ctx, file, at: _set(ctx, file, at, own=True, wait=False),
    _OFD_SETLKW: lambda ctx, file, at: _set(ctx, file, at, own=True, wait=True),
}
"""The commands of fcntl that are about locks."""


def flock(ctx: Context, fd: int, operation: int) -> int | Wait:
    """Lock a whole file for all descriptors that were made from one."""
    operation = u32(operation)
    if operation & _MANDATORY:
        return 0  # locks that other systems had; Linux only warns
    kind = _FLOCKS.get(operation & ~_NONBLOCKING)
    if kind is None:
        raise LinuxError(EINVAL)
    file = ctx.files.get(fd)
    if isinstance(file, PathFile):
        raise LinuxError(EBADF)
    table = ctx.fs.locks.of(file).whole
    before = table.kind_of(file)
    if before == kind:
        return 0
    if before != FREE:
        table.drop(file)  # what cannot be had instead is lost all the same
    return _take(ctx, table, FileLock(file, kind, pid=ctx.pid), wait=not operation & _NONBLOCKING)


SYSCALLS: SyscallTable = {"flock": flock}

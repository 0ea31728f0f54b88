"""System V semaphores (Linux: ipc/sem.c)."""

import errno
import struct
from typing import Final

from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.memorylimit import HeldMemory
from engine.linux.process import Process
from engine.linux.sysv import (
    IPC_INFO,
    IPC_NOWAIT,
    IPC_RMID,
    IPC_SET,
    IPC_STAT,
    MAY_READ,
    MAY_WRITE,
    OBJECT,
    PERM_SIZE,
    SemaphoreSet,
    SemaphoreWaiter,
    now,
    order,
    owners,
)
from engine.linux.thread import Thread
from engine.linux.wait import Wait

GETPID, GETVAL, GETALL, GETNCNT, GETZCNT, SETVAL, SETALL = 11, 12, 13, 14, 15, 16, 17
SEM_STAT, SEM_INFO, SEM_STAT_ANY = 18, 19, 20
_SETS, _PER_SET, _OPS, _MAX = 32000, 32000, 500, 32767
_ALL: Final = _SETS * _PER_SET
_UNDO: Final = 0x1000
"""SEM_UNDO."""


def semget(k: Thread, key: int, count: int, flags: int) -> int:
    """Find or make a set."""
    table, count = k.machine.sysv.semaphores, s32(count)
    if not 0 <= count <= _PER_SET:
        raise LinuxError(errno.EINVAL)
    found = table.by_key(k, key, flags)
    if found is not None:
        if count > len(found.values):
            raise LinuxError(errno.EINVAL)
        return found.id
    if not count:
        raise LinuxError(errno.EINVAL)
    if sum(len(item.values) for item in table.all()) + count > _PER_SET * 32:
        raise LinuxError(errno.ENOSPC)
    number = table.new_id()
    held = HeldMemory(k.machine.memory_limit, OBJECT)
    values, pids = [0] * count, [0] * count
    made = SemaphoreSet(
        s32(key), number, flags & 0o777, *owners(k), now(k), values, pids, held=held
    )
    made.account()
    return table.add(made)


def semop(k: Thread, number: int, address: int, count: int) -> int | Wait:
    """Several operations at once, or none of them."""
    return semtimedop(k, number, address, count, 0)


def semtimedop(k: Thread, number: int, address: int, count: int, timeout: int) -> int | Wait:
    """The same, but waiting no longer than a time."""
    count = count & 0xFFFFFFFF
    if count > _OPS:
        raise LinuxError(errno.E2BIG)
    form, limit = order(k), b""
    if timeout:
        limit = k.memory.read(timeout, 16)
    operations = list(struct.iter_unpack(form + "Hhh", k.memory.read(address, 6 * count)))
    if not count or s32(number) < 0:
        raise LinuxError(errno.EINVAL)
    deadline = None
    if limit:
        seconds, nanoseconds = struct.unpack(form + "2q", limit)
        if seconds < 0 or not 0 <= nanoseconds < 10**9:
            raise LinuxError(errno.EINVAL)
        deadline = k.clock.peek() + seconds * 10**9 + nanoseconds
    found = k.machine.sysv.semaphores.by_id(number)
    if any(which >= len(found.values) for which, _, _ in operations):
        raise LinuxError(errno.EFBIG)
    found.permits(k, MAY_WRITE if any(change for _, change, _ in operations) else MAY_READ)

    waiter = SemaphoreWaiter(0, False, k.wake)

    def attempt() -> int | None:
        if found.removed:
            raise LinuxError(errno.EIDRM)
        values = list(found.values)
        undo = list(found.undo.get(k.process) or [0] * len(values))
        for which, change, flags in operations:
            value = values[which] + change
            if value < 0 or (not change and values[which]):
                if flags & IPC_NOWAIT:
                    raise LinuxError(errno.EAGAIN)
                waiter.number, waiter.zero = which, not change
                return None
            if flags & _UNDO:
                undo[which] -= change
            if value > _MAX or not -_MAX - 1 <= undo[which] <= _MAX:
                raise LinuxError(errno.ERANGE)
            values[which] = value
        if any(undo) or k.process in found.undo:
            found.account(undone=k.process not in found.undo)
            found.undo[k.process] = undo
            k.process.semaphores[found] = None
        changed = found.values != values
        found.values[:] = values
        found.operated = now(k)
        for which, _, _ in operations:
            found.pids[which] = k.pid
        if changed:
            found.wake()
        return 0

    def leave() -> None:
        found.waiters.pop(waiter, None)

    def poll() -> int | None:
        try:
            done = attempt()
        except LinuxError:
            leave()
            raise
        if done is not None:
            leave()
        return done

    done = attempt()
    if done is not None:
        return done
    found.waiters[waiter] = None
    return Wait(
        poll,
        deadline,
        -errno.EAGAIN,
        restart=False,
        leave=leave,
        woken_by_calls=True,
        stop_ends=True,
    )


def process_ends(process: Process) -> None:
    """Take back what a process that ends has done with SEM_UNDO (exit_sem)."""
    for found in process.semaphores:
        undo = found.undo.pop(process, None)
        if undo is None or found.removed:
            continue
        found.account()
        for which, change in enumerate(undo):
            if change:
                found.values[which] = min(max(found.values[which] + change, 0), _MAX)
                found.pids[which] = process.pid
        found.wake()
    process.semaphores.clear()


def _told(k: Thread, found: SemaphoreSet) -> bytes:
    form = order(k)
    size = len(found.values)
    if k.arch.linux.semid_padded:
        tail = struct.pack(form + "7Q", found.operated, 0, found.changed, 0, size, 0, 0)
    else:
        tail = struct.pack(form + "5Q", found.operated, found.changed, size, 0, 0)
    return found.perm(form) + tail


def semctl(k: Thread, number: int, which: int, command: int, argument: int) -> int:
    """Ask about a set, change or remove it."""
    table, command, which, form = k.machine.sysv.semaphores, s32(command), s32(which), order(k)
    if s32(number) < 0:
        raise LinuxError(errno.EINVAL)
    if command in (IPC_INFO, SEM_INFO):
        used = (len(table), sum(len(item.values) for item in table.all()))
        usage = used if command == SEM_INFO else (20, _MAX)
        limits = (_ALL, _SETS, _ALL, _ALL, _PER_SET, _OPS, _OPS, *usage, _MAX)
        k.memory.write(argument, struct.pack(form + "10i", *limits))
        return table.highest()
    if command in (IPC_STAT, SEM_STAT, SEM_STAT_ANY):
        slot, anyone = command != IPC_STAT, command == SEM_STAT_ANY
        found = table.described(k, number, slot=slot, anyone=anyone)
        k.memory.write(argument, _told(k, found))
        return 0 if command == IPC_STAT else found.id
    found = table.by_id(number)
    if command == IPC_RMID:
        found.owned(k)
        found.removed, found.held = True, None
        table.remove(found)
        found.wake()
        return 0
    if command == IPC_SET:
        data = k.memory.read(argument, PERM_SIZE)
        found.owned(k)
        found.set(k, data, form)
        return 0
    return _values(k, found, which, command, argument)


def _values(k: Thread, found: SemaphoreSet, which: int, command: int, argument: int) -> int:
    """The commands that read and write values."""
    form, size = order(k), len(found.values)
    if command in (GETALL, SETALL):
        found.permits(k, MAY_READ if command == GETALL else MAY_WRITE)
        if command == GETALL:
            k.memory.write(argument, struct.pack(f"{form}{size}H", *found.values))
            return 0
        values = struct.unpack(f"{form}{size}H", k.memory.read(argument, 2 * size))
        if max(values) > _MAX:
            raise LinuxError(errno.ERANGE)
        found.values[:] = values
        found.pids[:] = [k.pid] * size
        found.undo.clear()
        found.account()
        found.changed = now(k)
        found.wake()
        return 0
    if command not in (GETVAL, GETPID, GETNCNT, GETZCNT, SETVAL):
        raise LinuxError(errno.EINVAL)
    if not 0 <= which < size and command != SETVAL:
        found.permits(k, MAY_READ)
        raise LinuxError(errno.EINVAL)
    if command == SETVAL:
        value = s32(argument)
        if not 0 <= value <= _MAX:
            raise LinuxError(errno.ERANGE)
        if not 0 <= which < size:
            raise LinuxError(errno.EINVAL)
        found.permits(k, MAY_WRITE)
        found.values[which], found.pids[which] = value, k.pid
        for undo in found.undo.values():
            undo[which] = 0
        found.changed = now(k)
        found.wake()
        return 0
    found.permits(k, MAY_READ)
    if command in (GETNCNT, GETZCNT):
        wanted = (which, command == GETZCNT)
        return sum((each.number, each.zero) == wanted for each in found.waiters)
    return found.values[which] if command == GETVAL else found.pids[which]


SYSCALLS: SyscallTable = {
    "semget": semget,
    "semop": semop,
    "semtimedop": semtimedop,
    "semctl": semctl,
}

"""System V shared memory (Linux: ipc/shm.c).

A segment is a nameless file that is mapped shared.
"""

import errno
import struct
from typing import Final

from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.guest.memory import Mapping, page_up
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.memory import FileBacking, beyond_limit
from engine.linux.process import Process
from engine.linux.sysv import (
    IPC_INFO,
    IPC_RMID,
    IPC_SET,
    IPC_STAT,
    MAY_READ,
    MAY_WRITE,
    PERM_SIZE,
    IpcTable,
    SharedSegment,
    now,
    order,
    owners,
)
from engine.linux.thread import Thread

SHM_LOCK, SHM_UNLOCK, SHM_STAT, SHM_INFO, SHM_STAT_ANY = 11, 12, 13, 14, 15
SHM_RDONLY, SHM_RND, SHM_REMAP, SHM_EXEC = 0o10000, 0o20000, 0o40000, 0o100000
SHM_DEST, SHM_LOCKED = 0o1000, 0o2000
SHM_NORESERVE = 0o10000
"""Of shmget: nothing is reserved for the segment (the number is that of shmat's SHM_RDONLY)."""
_SHMMAX: Final = (1 << 64) - 1 - (1 << 24)


def _mappings(k: Thread, segment: SharedSegment) -> list[Mapping]:
    """The places where a segment is attached in the caller's memory."""
    node = segment.file.node
    return [m for m in k.memory.mappings if m.backing and m.backing.identity is node]


def _attached(k: Thread, segment: SharedSegment) -> int:
    """The number of places where it is attached in anybody's."""
    return k.memory.shared.shows(segment.node())


def forked(k: Thread) -> None:
    """A process has a copy of the caller's memory: what is attached there was attached anew."""
    for segment in k.machine.sysv.segments.all():
        if k.memory.shows(segment.node()):
            segment.attached, segment.last = now(k), k.pid


def memory_left(process: Process) -> None:
    """A process is about to leave its memory for good, of which it is the last user."""
    for segment in process.machine.sysv.segments.all():
        if process.space.memory.shows(segment.node()):
            moment = process.machine.clock.realtime() // 10**9
            segment.detached, segment.last = moment, process.pid


def _sweep(k: Thread) -> IpcTable[SharedSegment]:
    """The segments, less those that were removed and that nobody uses any more."""
    table = k.machine.sysv.segments
    for segment in table.all():
        if segment.mode & SHM_DEST and not _attached(k, segment):
            table.remove(segment)
            segment.file.release()
    return table


def shmget(k: Thread, key: int, size: int, flags: int) -> int:
    """Find or make a segment."""
    table = _sweep(k)
    found = table.by_key(k, key, flags)
    if found is not None:
        if size > found.size:
            raise LinuxError(errno.EINVAL)
        return found.id
    if not 0 < size <= _SHMMAX:
        raise LinuxError(errno.EINVAL)
    limit = k.machine.memory_limit
    if page_up(size) > limit.total:
        raise LinuxError(errno.ENOMEM)
    if not flags & SHM_NORESERVE:
        limit.require(size)
    number = table.new_id()
    file = k.fs.unnamed_file(fl.O_RDWR, 0o600).acquire()
    file.truncate(size)
    return table.add(
        SharedSegment(
            s32(key),
            number,
            flags & 0o777,
            *owners(k),
            now(k),
            file,
            size,
            k.pid,
        )
    )


def shmat(k: Thread, number: int, address: int, flags: int) -> int:
    """Attach a segment; returns where it is."""
    flags = s32(flags)
    if s32(number) < 0:
        raise LinuxError(errno.EINVAL)
    if address % PAGE:
        if not flags & SHM_RND:
            raise LinuxError(errno.EINVAL)
        address &= -PAGE
    if not address and flags & SHM_REMAP:
        raise LinuxError(errno.EINVAL)
    segment = _sweep(k).by_id(number)
    perms, want = READ, MAY_READ
    if not flags & SHM_RDONLY:
        perms, want = READ | WRITE, MAY_READ | MAY_WRITE
    if flags & SHM_EXEC:
        perms, want = perms | EXECUTE, want | 1
    segment.permits(k, want)
    memory, length = k.memory, page_up(segment.size)
    where: int | None = address
    if not address:
        where = memory.free_range(length)
    else:
        plan = k.arch.plan
        taken = address + length >= 1 << 64 or (
            address + length <= plan.task_size and not memory.is_free(address, address + length)
        )
        if taken and not flags & SHM_REMAP:
            raise LinuxError(errno.EINVAL)
        if address + length > plan.task_size:
            raise LinuxError(errno.ENOMEM)
        if address < plan.mmap_min:
            raise LinuxError(errno.EPERM)
    if where is None or beyond_limit(k, length, where):
        raise LinuxError(errno.ENOMEM)
    st = segment.file.stat()
    memory.map(
        where,
        length,
        perms,
        name=f"/SYSV{segment.key & 0xFFFFFFFF:08x} (deleted)",
        backing=FileBacking(segment.file.mmap_source()),
        shared=True,
        inode=(st.dev, segment.id),
    )
    segment.attached, segment.last = now(k), k.pid
    return where


def shmdt(k: Thread, address: int) -> int:
    """Detach the segment that was attached at an address, with all that is left of it."""
    if address % PAGE:
        raise LinuxError(errno.EINVAL)
    for segment in _sweep(k).all():
        pieces = [m for m in _mappings(k, segment) if m.start - m.offset == address]
        if not pieces:
            continue
        for piece in pieces:
            k.memory.unmap(piece.start, piece.size)
        segment.detached, segment.last = now(k), k.pid
        _sweep(k)
        return 0
    raise LinuxError(errno.EINVAL)


def shmctl(k: Thread, number: int, command: int, address: int) -> int:
    """Ask about a segment, change or remove it."""
    table, command, form = _sweep(k), s32(command), order(k)
    if s32(number) < 0 or command < 0:
        raise LinuxError(errno.EINVAL)
    if command == IPC_INFO:
        limits = (_SHMMAX, 1, table.limit, table.limit, _SHMMAX, 0, 0, 0, 0)
        k.memory.write(address, struct.pack(form + "9Q", *limits))
        return table.highest()
    if command == SHM_INFO:
        pages = sum(page_up(segment.size) // PAGE for segment in table.all())
        k.memory.write(address, struct.pack(form + "i4x5Q", len(table), pages, pages, 0, 0, 0))
        return table.highest()
    if command in (SHM_STAT, SHM_STAT_ANY, IPC_STAT):
        slot, anyone = command != IPC_STAT, command == SHM_STAT_ANY
        segment = table.described(k, number, slot=slot, anyone=anyone)
        times = (segment.attached, segment.detached, segment.changed)
        ids = (segment.creator, segment.last)
        told = struct.pack(
            form + "Q3q2i3Q", segment.size, *times, *ids, _attached(k, segment), 0, 0
        )
        k.memory.write(address, segment.perm(form) + told)
        return 0 if command == IPC_STAT else segment.id
    segment = table.by_id(number)
    if command in (SHM_LOCK, SHM_UNLOCK):
        segment.owned(k)
        segment.mode = segment.mode & ~SHM_LOCKED | (SHM_LOCKED if command == SHM_LOCK else 0)
    elif command == IPC_SET:
        data = k.memory.read(address, PERM_SIZE)
        segment.owned(k)
        segment.set(k, data, form)
    elif command == IPC_RMID:
        segment.owned(k)
        segment.mode |= SHM_DEST
        segment.key = 0
        _sweep(k)
    else:
        raise LinuxError(errno.EINVAL)
    return 0


SYSCALLS: SyscallTable = {"shmget": shmget, "shmat": shmat, "shmdt": shmdt, "shmctl": shmctl}

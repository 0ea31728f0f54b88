"""System V objects: shared memory, semaphores and message queues (Linux: ipc/util.c).

What they have in common: ids, keys and permissions. The calls on them stand in `shm`, `sem` and
`msg`.
"""

import errno
import struct
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct, field

from engine.arch.base import Arch
from engine.linux.clock import Clock
from engine.linux.context import s32
from engine.linux.errno import LinuxError
from engine.linux.fs.vfs import Node, OpenFile
from engine.linux.memorylimit import HeldMemory

IPC_PRIVATE: Final = 0
IPC_CREAT, IPC_EXCL, IPC_NOWAIT = 0o1000, 0o2000, 0o4000
IPC_RMID, IPC_SET, IPC_STAT, IPC_INFO = 0, 1, 2, 3
MAY_READ, MAY_WRITE = 4, 2
MESSAGES: Final = 16384
"""Bytes of text that a queue takes unless IPC_SET says otherwise (MSGMNB)."""

_SLOTS: Final = 32768
"""IPCMNI: an id is the slot and, above it, how often ids were given."""
PERM_SIZE: Final = 48
"""Bytes of struct ipc64_perm on 64-bit machines."""


class IpcCaller(Protocol):
    """The process that makes a call.

    Attributes:
        arch: its architecture.
        uid: its user.
        gid: its group.
    """

    arch: Arch
    uid: int
    gid: int

    @property
    def clock(self) -> Clock:
        """The caller's time."""


class IpcObject(Struct, eq=False):
    """One object.

    Attributes:
        key: of the `get` calls, 0 for a private one.
        id: what `get` gave.
        mode: permission bits, and SHM_DEST of a segment that goes with its last user.
        uid: owner.
        gid: its group.
        cuid: who made it.
        cgid: the group of who made it.
        changed: time of making or of the last IPC_SET, seconds.
    """

    key: int
    id: int
    mode: int
    uid: int
    gid: int
    cuid: int
    cgid: int
    changed: int

    def permits(self, k: IpcCaller, want: int) -> None:
        """EACCES unless the process may do what bits of the last octal digit say."""
        if k.uid in (self.uid, self.cuid):
            granted = self.mode >> 6
        elif k.gid in (self.gid, self.cgid):
            granted = self.mode >> 3
        else:
            granted = self.mode
        if k.uid and want & ~granted & 7:
            raise LinuxError(errno.EACCES)

    def owned(self, k: IpcCaller) -> None:
        """EPERM unless the process may change or remove it."""
        if k.uid not in (0, self.uid, self.cuid):
            raise LinuxError(errno.EPERM)

    def perm(self, order: str) -> bytes:
        """The object's struct ipc64_perm."""
        who = (self.uid, self.gid, self.cuid, self.cgid)
        return struct.pack(
            f"{order}i5IHH4xQQ", self.key, *who, self.mode, self.id // _SLOTS, 0, 0, 0
        )

    def set(self, k: IpcCaller, data: bytes, order: str) -> None:
        """Take owner, group and permission bits from a struct ipc64_perm (IPC_SET)."""
        _, self.uid, self.gid, _, _, mode = struct.unpack_from(f"{order}i5I", data)
        self.mode = (self.mode & ~0o777) | (mode & 0o777)
        self.changed = now(k)


def now(k: IpcCaller) -> int:
    """The time, in seconds."""
    return k.clock.realtime() // 10**9


def owners(k: IpcCaller) -> tuple[int, int, int, int]:
    """Owner and group, then maker and its group, of what a process makes."""
    return k.uid, k.gid, k.uid, k.gid


def order(k: IpcCaller) -> str:
    """The byte order for `struct`."""
    return "<" if k.arch.byteorder == "little" else ">"


OBJECT: Final = 1 << 10
"""Bytes that an object takes, beside what is in it;"""
_MESSAGE: Final = 192
"""a message, beside its text;"""
_SEMAPHORE: Final = 64
"""a semaphore,"""
_UNDO: Final = 8
"""and what is to be undone of it at the end of a process."""

Kind = TypeVar("Kind", bound=IpcObject)


class IpcTable(Generic[Kind]):
    """The objects of one kind.

    Attributes:
        limit: most that there can be.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._slots: dict[int, Kind] = {}
        self._given = 0

    def __len__(self) -> int:
        return len(self._slots)

    def all(self) -> list[Kind]:
        """All objects, by slot."""
        return [self._slots[slot] for slot in sorted(self._slots)]

    def highest(self) -> int:
        """The highest slot in use, 0 if there is none."""
        return max(self._slots, default=0)

    def new_id(self) -> int:
        """The id that the next object gets; ENOSPC if there are too many."""
        if len(self._slots) >= self.limit:
            raise LinuxError(errno.ENOSPC)
        slot = next(number for number in range(self.limit) if number not in self._slots)
        number = slot + self._given % _SLOTS * _SLOTS
        self._given += 1
        return number

    def add(self, item: Kind) -> int:
        """Enter an object; returns its id."""
        self._slots[item.id % _SLOTS] = item
        return item.id

    def remove(self, item: Kind) -> None:
        """Take an object away."""
        self._slots.pop(item.id % _SLOTS, None)

    def by_key(self, k: IpcCaller, key: int, flags: int) -> Kind | None:
        """The object that a `get` call means; None if one is to be made."""
        if s32(key) == IPC_PRIVATE:
            return None
        found = next((item for item in self._slots.values() if item.key == s32(key)), None)
        if found is None:
            if not flags & IPC_CREAT:
                raise LinuxError(errno.ENOENT)
            return None
        if flags & IPC_CREAT and flags & IPC_EXCL:
            raise LinuxError(errno.EEXIST)
        found.permits(k, (flags >> 6 | flags >> 3 | flags) & 7)
        return found

    def by_id(self, number: int) -> Kind:
        """The object of an id; EINVAL if there is none, EIDRM if it was another's."""
        number = s32(number)
        if number < 0:
            raise LinuxError(errno.EINVAL)
        found = self._slots.get(number % _SLOTS)
        if found is None:
            raise LinuxError(errno.EINVAL)
        if found.id != number:
            raise LinuxError(errno.EIDRM)
        return found

    def described(self, k: IpcCaller, number: int, *, slot: bool, anyone: bool) -> Kind:
        """The object that IPC_STAT (by id), or SHM_STAT and its like (by slot) ask about.

        EACCES unless the process may read it, or the command lets anyone.
        """
        found = self.by_slot(number) if slot else self.by_id(number)
        if not anyone:
            found.permits(k, MAY_READ)
        return found

    def by_slot(self, slot: int) -> Kind:
        """The object in a slot (SHM_STAT and its like); EINVAL if there is none."""
        found = self._slots.get(s32(slot))
        if found is None:
            raise LinuxError(errno.EINVAL)
        return found


class SharedSegment(IpcObject, eq=False):
    """A segment.

    Attributes:
        file: its contents.
        size: in bytes, as it was asked for.
        attached: when it was last attached; `detached` likewise, seconds.
        creator: pid of who made it; `last` is that of who attached or detached it last.
    """

    file: OpenFile
    size: int
    creator: int
    attached: int = 0
    detached: int = 0
    last: int = 0

    def node(self) -> Node:
        """The inode of its contents."""
        assert self.file.node is not None, "made with one"
        return self.file.node


class SemaphoreWaiter(Struct, eq=False):
    """Somebody who waits for operations on semaphores.

    Attributes:
        number: of the semaphore that is waited for.
        zero: it is waited to become zero; else to become greater.
        wake: tells that something has changed.
    """

    number: int
    zero: bool
    wake: Callable[[], None]


class SemaphoreSet(IpcObject, eq=False):
    """A set of semaphores.

    Attributes:
        values: of the semaphores.
        pids: who changed each last.
        operated: time of the last operation, seconds.
        removed: it is gone; calls that wait for it end.
        undo: what is added to each semaphore at the end of a process (SEM_UNDO).
        waiters: those who wait, in the order in which they came.
        held: memory that it takes.
    """

    values: list[int]
    pids: list[int]
    operated: int = 0
    removed: bool = False
    undo: dict[object, list[int]] = field(default_factory=dict)
    waiters: dict[SemaphoreWaiter, None] = field(default_factory=dict)
    held: HeldMemory | None = None

    def account(self, *, undone: int = 0) -> None:
        """Count what it holds, with changes to undo for so many processes more.

        Raises:
            LinuxError: ENOMEM beyond the guest's memory.
        """
        if self.held is not None:
            count = len(self.values)
            lists = len(self.undo) + undone
            self.held.resize(OBJECT + count * _SEMAPHORE + lists * (OBJECT + count * _UNDO))

    def wake(self) -> None:
        """Values have changed, or it is gone."""
        for waiter in self.waiters:
            waiter.wake()


class MessageQueue(IpcObject, eq=False):
    """A queue.

    Attributes:
        messages: (type, text), the oldest first.
        capacity: bytes of text that it takes.
        sent: when a message was last sent; `received` likewise, seconds.
        sender: pid of who sent last; `receiver` is that of who received last.
        removed: it is gone; calls that wait for it end.
        held: memory that it takes.
        size: bytes of text in it.
    """

    messages: list[tuple[int, bytes]] = field(default_factory=list)
    capacity: int = MESSAGES
    sent: int = 0
    received: int = 0
    sender: int = 0
    receiver: int = 0
    removed: bool = False
    held: HeldMemory | None = None
    size: int = 0

    def put(self, kind: int, text: bytes) -> None:
        """Add a message; ENOMEM beyond the guest's memory."""
        if self.held is not None:
            self.held.resize(self.held.size + _MESSAGE + len(text))
        self.messages.append((kind, text))
        self.size += len(text)

    def take(self, position: int) -> None:
        """Take a message away."""
        text = self.messages.pop(position)[1]
        self.size -= len(text)
        if self.held is not None:
            self.held.resize(self.held.size - _MESSAGE - len(text))


class SysvObjects:
    """All System V objects of a guest.

    Attributes:
        segments: of shared memory.
        semaphores: sets of them.
        queues: of messages.
    """

    def __init__(self) -> None:
        self.segments: IpcTable[SharedSegment] = IpcTable(4096)
        self.semaphores: IpcTable[SemaphoreSet] = IpcTable(32000)
        self.queues: IpcTable[MessageQueue] = IpcTable(32000)

"""Locks on files: on ranges of them (fcntl), and by whole open files (flock); fs/locks.c.

A range is locked by a process or by an open file description. A process is its table of
descriptors here, as in Linux: threads share its locks, a child has none of them, another program
keeps them, and the first of its descriptors of the file that is closed takes them all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from engine.linux.errno import LinuxError
from engine.linux.fs.devices import show
from engine.linux.memorylimit import HeldMemory, MemoryLimit

if TYPE_CHECKING:
    from engine.linux.fs.vfs import OpenFile

EDEADLK, ENOLCK = 35, 37

READ, WRITE, FREE = 0, 1, 2
"""F_RDLCK, F_WRLCK and F_UNLCK."""
END: Final = (1 << 63) - 1
"""The last byte that a file can have (OFFSET_MAX)."""
_NAMES: Final = ("READ", "WRITE")
_MOST: Final = 1 << 16
"""Locks that one owner may have on a file."""
_LOCK: Final = 256
"""Bytes that a lock takes."""
_LONGEST_CHAIN: Final = 10
"""Owners who wait for each other that are looked at (MAX_DEADLK_ITERATIONS)."""


class FileLock(Struct, frozen=True):
    """A lock, or one that is asked for (struct file_lock).

    Attributes:
        owner: whose it is; equal only to itself.
        kind: READ or WRITE; FREE to give up what is there.
        first: first byte.
        last: the last one.
        pid: process that has asked for it, -1 where it belongs to an open file.
    """

    owner: object
    kind: int
    first: int = 0
    last: int = END
    pid: int = -1

    def conflicts(self, other: "FileLock") -> bool:
        """True if two owners cannot have both."""
        return (
            self.owner is not other.owner
            and WRITE in (self.kind, other.kind)
            and self.first <= other.last
            and other.first <= self.last
        )


class LockWaiter(Struct, eq=False):
    """Somebody who waits for a lock.

    Attributes:
        lock: the one that is asked for.
        blocker: one that it waits for.
        wake: tells that it may be free.
    """

    lock: FileLock
    blocker: FileLock
    wake: Callable[[], None]


class LockTable:
    """Locks of one kind on one file.

    Attributes:
        waiters: those who wait for one, in the order in which they came.
    """

    def __init__(self, memory: MemoryLimit, waiting: dict[LockWaiter, None] | None = None) -> None:
        """Nothing is locked.

        Args:
            memory: the limit that locks count against.
            waiting: those who wait for such locks on any file, where deadlocks are looked for.
        """
        self._waiting = waiting
        self._held: dict[object, list[FileLock]] = {}
        self._taken = HeldMemory(memory)
        self.waiters: list[LockWaiter] = []

    def __bool__(self) -> bool:
        """True if there are locks; nobody waits where there are none."""
        return bool(self._held)

    def all(self) -> list[FileLock]:
        """The locks, by owner and place."""
        return [lock for held in self._held.values() for lock in held]

    def kind_of(self, owner: object) -> int:
        """The kind of an owner's first lock, FREE if it has none."""
        held = self._held.get(owner)
        return held[0].kind if held else FREE

    def conflict(self, lock: FileLock) -> FileLock | None:
        """The first lock that one cannot be had beside."""
        for held in self._held.values():
            for other in held[bisect_left(held, lock.first, key=_last) :]:
                if other.first > lock.last:
                    break
                if other.conflicts(lock):
                    return other
        return None

    def own(self, lock: FileLock) -> FileLock | None:
        """The first lock of the same owner in a range."""
        held = self._held.get(lock.owner, [])
        at = bisect_left(held, lock.first, key=_last)
        return held[at] if at < len(held) and held[at].first <= lock.last else None

    def set(self, lock: FileLock) -> None:
        """Take a lock, which conflicts with none, in the place of what the owner has there.

        Raises:
            LinuxError: ENOLCK for too many.
        """
        held = self._held.get(lock.owner, [])
        low = bisect_left(held, lock.first - 1, key=_last)
        high = bisect_right(held, lock.last + 1, key=_first)
        before: list[FileLock] = []
        after: list[FileLock] = []
        first, last = lock.first, lock.last
        for piece in held[low:high]:
            if piece.kind == lock.kind:
                first, last = min(first, piece.first), max(last, piece.last)
                continue
            if piece.first < lock.first:
                before.append(replace(piece, last=min(piece.last, lock.first - 1)))
            if piece.last > lock.last:
                after.append(replace(piece, first=max(piece.first, lock.last + 1)))
        if lock.kind != FREE:
            before.append(replace(lock, first=first, last=last))
        if len(held) > _MOST and len(before) + len(after) > high - low:
            raise LinuxError(ENOLCK)
        more = len(before) + len(after) - (high - low)
        self._taken.resize(self._taken.size + more * _LOCK, ENOLCK)
        less = low < high and lock.kind != WRITE
        held[low:high] = before + after
        if held:
            self._held[lock.owner] = held
        else:
            self._held.pop(lock.owner, None)
        if less:
            self._changed()

    def drop(self, owner: object) -> None:
        """Give up all locks of an owner."""
        held = self._held.pop(owner, None)
        if held is not None:
            self._taken.resize(self._taken.size - len(held) * _LOCK)
            self._changed()

    def _changed(self) -> None:
        """Wake those who have nothing to wait for any more, or wait for somebody else now."""
        for waiter in list(self.waiters):
            blocker = self.conflict(waiter.lock)
            if blocker is None or blocker.owner is not waiter.blocker.owner:
                waiter.wake()

    def enter(self, waiter: LockWaiter) -> None:
        """Somebody begins to wait."""
        self.waiters.append(waiter)
        if self._waiting is not None:
            self._waiting[waiter] = None

    def leave(self, waiter: LockWaiter) -> None:
        """Somebody waits no longer."""
        if waiter in self.waiters:
            self.waiters.remove(waiter)
        if self._waiting is not None:
            self._waiting.pop(waiter, None)

    def check_deadlock(self, waiter: LockWaiter) -> None:
        """EDEADLK if whom somebody would wait for waits for the same owner."""
        if self._waiting is None:
            return
        blocker = waiter.blocker
        for _ in range(_LONGEST_CHAIN):
            others = reversed(self._waiting)
            found = next((each for each in others if each.lock.owner is blocker.owner), None)
            if found is None:
                return
            blocker = found.blocker
            if blocker.owner is waiter.lock.owner:
                raise LinuxError(EDEADLK)


def _first(lock: FileLock) -> int:
    return lock.first


def _last(lock: FileLock) -> int:
    return lock.last


class InodeLocks:
    """The locks on one file.

    Attributes:
        ranges: those of fcntl.
        whole: those of flock.
        place: device and inode number.
    """

    def __init__(
        self, memory: MemoryLimit, waiting: dict[LockWaiter, None], place: tuple[int, int]
    ) -> None:
        self.ranges = LockTable(memory, waiting)
        self.whole = LockTable(memory)
        self.place = place

    def closed(self, owner: object) -> None:
        """An owner is gone, or has closed a descriptor of the file."""
        if self.ranges:
            self.ranges.drop(owner)
        if self.whole:
            self.whole.drop(owner)


class FileLocks:
    """The locks on all files."""

    def __init__(self, memory: MemoryLimit) -> None:
        """Begin without locks; `memory` is the limit that they count against."""
        self._memory = memory
        self._waiting: dict[LockWaiter, None] = {}
        self._known: WeakSet[InodeLocks] = WeakSet()

    def of(self, file: "OpenFile") -> InodeLocks:
        """The locks on an open file's inode; on itself where it has none."""
        holder = file if file.node is None else file.node
        if holder.locks is None:
            stat = file.stat()
            holder.locks = InodeLocks(self._memory, self._waiting, (stat.dev, stat.ino))
            self._known.add(holder.locks)
        return holder.locks

    def text(self) -> bytes:
        """/proc/locks."""
        lines: list[str] = []
        number = 0
        for known in sorted(self._known, key=lambda each: each.place):
            for name, table in (("FLOCK ", known.whole), ("POSIX ", known.ranges)):
                for lock in table.all():
                    number += 1
                    lines.append(_line(f"{number}: ", name, lock, known.place))
                    for waiter in table.waiters:
                        blocker = waiter.blocker
                        if blocker.owner is lock.owner and blocker.first == lock.first:
                            lines.append(_line(f"{number}: -> ", name, waiter.lock, known.place))
        return "".join(lines).encode()


def _line(head: str, name: str, lock: FileLock, place: tuple[int, int]) -> str:
    device, inode = place
    if name == "POSIX " and lock.pid < 0:
        name = "OFDLCK"
    last = "EOF" if lock.last == END else str(lock.last)
    where = f"{show(device).decode()}:{inode} {lock.first} {last}"
    return f"{head}{name} ADVISORY  {_NAMES[lock.kind]} {lock.pid} {where}\n"

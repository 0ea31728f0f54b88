"""Threads that wait in futex, by what they wait for."""

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from engine.linux.thread import Thread


class FutexWaiter(Struct, eq=False):
    """A thread that waits.

    Attributes:
        thread: which.
        key: of the word that it waits for; a requeue changes it.
        bits: only a wake with one of these is meant for it.
        locks: it waits to be given a lock (FUTEX_LOCK_PI), which a wake does not do.
        target: the lock's word that it may be requeued to (FUTEX_WAIT_REQUEUE_PI), by its key;
            None where it only waits to be woken.
        woken: its wait is over.
    """

    thread: "Thread"
    key: object
    bits: int
    locks: bool = False
    target: object = None
    woken: bool = False


class FutexQueues:
    """All waiters of a machine, those of a word in the order in which they came."""

    def __init__(self, wake: "Callable[[Thread], None]") -> None:
        """`wake` is told of a thread whose wait is over."""
        self._wake = wake
        self._queues: dict[object, dict[FutexWaiter, None]] = {}

    def add(self, waiter: FutexWaiter) -> None:
        """A thread begins to wait."""
        self._queues.setdefault(waiter.key, {})[waiter] = None

    def remove(self, waiter: FutexWaiter) -> None:
        """A thread waits no longer."""
        queue = self._queues.get(waiter.key)
        if queue is not None and waiter in queue:
            del queue[waiter]
            if not queue:
                del self._queues[waiter.key]

    def waiting(self, key: object) -> bool:
        """True if anybody waits for a word."""
        return key in self._queues

    def first_lock(self, key: object) -> FutexWaiter | None:
        """The first that waits to be given a lock."""
        return next((each for each in self._queues.get(key, ()) if each.locks), None)

    def release(self, waiter: FutexWaiter) -> None:
        """The wait of a thread that has been removed is over."""
        waiter.woken = True
        self._wake(waiter.thread)

    def of(self, key: object) -> list[FutexWaiter]:
        """All that wait for a word."""
        return list(self._queues.get(key, ()))

    def move(self, waiter: FutexWaiter, key: object) -> None:
        """Let a thread wait for another word."""
        self.remove(waiter)
        waiter.key = key
        self.add(waiter)

    def wake(self, key: object, count: int, bits: int) -> int:
        """Wake up to so many, at least one (as Linux does).

        Returns:
            the number of those woken; -EINVAL where one of those asked waits for a lock.
        """
        woken = 0
        for waiter in self.of(key):
            if waiter.locks or waiter.target is not None:
                return -errno.EINVAL
            if not waiter.bits & bits:
                continue
            self.remove(waiter)
            self.release(waiter)
            woken += 1
            if woken >= count:
                break
        return woken

    def requeue(self, key: object, other: object, count: int, moved: int) -> int:
        """Wake up to so many and let up to `moved` wait for another word.

        Returns:
            the number of both; -EINVAL where one of them waits for a lock.
        """
        done = 0
        for waiter in self.of(key):
            if done >= count + moved:
                break
            if waiter.locks or waiter.target is not None:
                return -errno.EINVAL
            if done < count:
                self.remove(waiter)
                self.release(waiter)
            else:
                self.move(waiter, other)
            done += 1
        return done

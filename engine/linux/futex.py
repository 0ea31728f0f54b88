"""futex: threads that wait for a word of memory (kernel/futex)."""

import errno
import struct
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import GuestFaultError
from engine.linux.context import SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.futexqueues import FutexQueues, FutexWaiter
from engine.linux.thread import Thread
from engine.linux.wait import Wait

WAITERS, OWNER_DIED, TID_MASK = 0x80000000, 0x40000000, 0x3FFFFFFF
_PRIVATE, _REALTIME = 128, 256
_EVERY: Final = 0xFFFFFFFF
_MOST_ROBUST: Final = 2048
"""ROBUST_LIST_LIMIT."""


class FutexCall(Struct, frozen=True):
    """Arguments of the call; `length`: nanoseconds of the timeout, where one was given."""

    address: int
    operation: int
    value: int
    timeout: int
    other: int
    extra: int
    length: int | None


def _queues(k: Thread) -> FutexQueues:
    return k.machine.futexes


def _word(k: Thread, address: int) -> int:
    if address % 4:
        raise LinuxError(errno.EINVAL)
    return int(struct.unpack("<I", k.memory.read(address, 4))[0])


def _key(k: Thread, address: int, operation: int) -> object:
    """The waiters' queue of a word: by the pages that processes share, or by address."""
    if address % 4:
        raise LinuxError(errno.EINVAL)
    if operation & _PRIVATE:
        if address >= k.arch.plan.task_size:
            raise LinuxError(errno.EFAULT)
        return k.space, address
    k.memory.read(address, 4)
    mapping = k.memory.find(address)
    if mapping is not None and mapping.extent is not None:
        return mapping.extent, mapping.offset + address - mapping.start
    return k.space, address


def _deadline(k: Thread, call: FutexCall, *, absolute: bool, realtime: bool) -> int | None:
    length = call.length
    if length is None:
        return None
    now = k.clock.monotonic()
    if absolute:
        length -= k.clock.realtime() if realtime else now
    return int(now + max(length, 0))


def _wait(k: Thread, call: FutexCall, bits: int, *, absolute: bool) -> Wait:
    realtime = bool(call.operation & _REALTIME)
    deadline = _deadline(k, call, absolute=absolute, realtime=realtime)
    key = _key(k, call.address, call.operation)
    if _word(k, call.address) != u32(call.value):
        raise LinuxError(errno.EAGAIN)
    return _queued(k, FutexWaiter(k, key, bits), deadline, restart=call.timeout == 0)


def _queued(k: Thread, waiter: FutexWaiter, deadline: int | None, *, restart: bool) -> Wait:
    queues = _queues(k)
    queues.add(waiter)

    def leave() -> None:
        queues.remove(waiter)

    return Wait(
        lambda: 0 if waiter.woken else None,
        deadline,
        -errno.ETIMEDOUT,
        restart=restart,
        leave=leave,
        woken_by_calls=True,
    )


def _wait_plain(k: Thread, call: FutexCall) -> int | Wait:
    return _wait(k, call, _EVERY, absolute=False)


def _wait_bits(k: Thread, call: FutexCall) -> int | Wait:
    return _wait(k, call, _bits(call), absolute=True)


def _bits(call: FutexCall) -> int:
    bits = u32(call.extra)
    if not bits:
        raise LinuxError(errno.EINVAL)
    return bits


def _wake(k: Thread, call: FutexCall) -> int:
    return _queues(k).wake(_key(k, call.address, call.operation), s32(call.value), _EVERY)


def _wake_bits(k: Thread, call: FutexCall) -> int:
    bits = _bits(call)
    return _queues(k).wake(_key(k, call.address, call.operation), s32(call.value), bits)


def _requeue(k: Thread, call: FutexCall) -> int:
    woken, moved = s32(call.value), s32(call.timeout)
    if woken < 0 or moved < 0:
        raise LinuxError(errno.EINVAL)
    key, other = _key(k, call.address, call.operation), _key(k, call.other, call.operation)
    return _queues(k).requeue(key, other, woken, moved)


def _compare_requeue(k: Thread, call: FutexCall) -> int:
    woken, moved = s32(call.value), s32(call.timeout)
    if woken < 0 or moved < 0:
        raise LinuxError(errno.EINVAL)
    _key(k, call.address, call.operation)  # the errors of the first word go before the second's
    _key(k, call.other, call.operation)
    if _word(k, call.address) != u32(call.extra):
        raise LinuxError(errno.EAGAIN)
    return _requeue(k, call)


_OPERATIONS: Final[tuple[Callable[[int, int], int], ...]] = (
    lambda old, argument: argument,
    lambda old, argument: old + argument,
    lambda old, argument: old | argument,
    lambda old, argument: old & ~argument,
    lambda old, argument: old ^ argument,
)
_COMPARISONS: Final[tuple[Callable[[int, int], bool], ...]] = (
    lambda old, argument: old == argument,
    lambda old, argument: old != argument,
    lambda old, argument: old < argument,
    lambda old, argument: old <= argument,
    lambda old, argument: old > argument,
    lambda old, argument: old >= argument,
)


def _wake_operation(k: Thread, call: FutexCall) -> int:
    code = u32(call.extra)
    operation, comparison = code >> 28 & 7, code >> 24 & 15
    argument, compared = _signed12(code >> 12), _signed12(code)
    if code >> 31:
        argument = 1 << (argument & 31)
    key = _key(k, call.address, call.operation)
    other = _key(k, call.other, call.operation)
    if operation >= len(_OPERATIONS):
        raise LinuxError(errno.ENOSYS)
    old = _word(k, call.other)
    k.memory.write(call.other, struct.pack("<I", u32(_OPERATIONS[operation](old, argument))))
    if comparison >= len(_COMPARISONS):
        raise LinuxError(errno.ENOSYS)
    woken = _queues(k).wake(key, s32(call.value), _EVERY)
    if woken < 0:
        return woken
    if _COMPARISONS[comparison](s32(old), compared):
        more = _queues(k).wake(other, s32(call.timeout), _EVERY)
        return more if more < 0 else woken + more
    return woken


def _signed12(value: int) -> int:
    value &= 0xFFF
    return value - 0x1000 if value & 0x800 else value


# -- priority-inheriting locks: the word holds the owner's thread id --------------------------


def _lock(k: Thread, call: FutexCall, *, realtime: bool) -> int | Wait:
    deadline = _deadline(k, call, absolute=True, realtime=realtime)
    waiter = _try_lock(k, call, wait=True)
    return 0 if waiter is None else _queued(k, waiter, deadline, restart=True)


def _lock_realtime(k: Thread, call: FutexCall) -> int | Wait:
    return _lock(k, call, realtime=True)


def _lock_either(k: Thread, call: FutexCall) -> int | Wait:
    return _lock(k, call, realtime=bool(call.operation & _REALTIME))


def _try_lock(k: Thread, call: FutexCall, *, wait: bool) -> FutexWaiter | None:
    key = _key(k, call.address, call.operation)
    if _takes(k, call.address, key, k.tid, wait=wait):
        return None
    return FutexWaiter(k, key, _EVERY, locks=True)


def _takes(
    k: Thread, address: int, key: object, tid: int, *, wait: bool, others: bool = False
) -> bool:
    """Give a free lock to a thread; if it is not free, its word says that somebody waits.

    Args:
        k: whose call it is.
        address: of the lock.
        key: of it.
        tid: of the thread that is to have it.
        wait: it may wait: EAGAIN if not.
        others: others are going to wait for it even if it is free.
    """
    old = _word(k, address)
    owner = old & TID_MASK
    if owner == tid:
        raise LinuxError(errno.EDEADLK)
    if not owner:
        kept = old & OWNER_DIED | (WAITERS if others or _queues(k).waiting(key) else 0)
        k.memory.write(address, struct.pack("<I", kept | tid))
        return True
    if owner not in k.machine.threads:
        raise LinuxError(errno.ESRCH)
    if not wait:
        raise LinuxError(errno.EAGAIN)
    k.memory.write(address, struct.pack("<I", old | WAITERS))
    return False


def _try(k: Thread, call: FutexCall) -> int:
    _try_lock(k, call, wait=False)
    return 0


def _unlock(k: Thread, call: FutexCall) -> int:
    (old,) = struct.unpack("<I", k.memory.read(call.address, 4))
    if old & TID_MASK != k.tid:
        raise LinuxError(errno.EPERM)
    _hand_over(k, call.address, _key(k, call.address, call.operation), 0)
    return 0


def _hand_over(k: Thread, address: int, key: object, flags: int) -> None:
    """Give a lock to the first that waits for it, or free it."""
    queues = _queues(k)
    first = queues.first_lock(key)
    word = flags
    if first is not None:
        queues.remove(first)
        word |= first.thread.tid | WAITERS  # there may be more: Linux does not look
    k.memory.write(address, struct.pack("<I", word))
    if first is not None:
        queues.release(first)


def _wait_requeue(k: Thread, call: FutexCall) -> Wait:
    """Wait to be requeued to a lock, and for that (futex_wait_requeue_pi)."""
    deadline = _deadline(k, call, absolute=True, realtime=bool(call.operation & _REALTIME))
    if call.address == call.other:
        raise LinuxError(errno.EINVAL)
    target = _key(k, call.other, call.operation)
    key = _key(k, call.address, call.operation)
    if _word(k, call.address) != u32(call.value):
        raise LinuxError(errno.EAGAIN)
    if key == target:
        raise LinuxError(errno.EINVAL)
    waiter = FutexWaiter(k, key, _EVERY, target=target)
    wait = _queued(k, waiter, deadline, restart=True)

    def interrupted() -> int:
        over = deadline is not None and k.clock.peek() >= deadline
        if not waiter.locks or over:
            return 0
        _queues(k).remove(waiter)
        return -errno.EAGAIN  # it cannot wait for the first word again

    return replace(wait, partial=interrupted, again=True)


def _requeue_to_lock(k: Thread, call: FutexCall) -> int:
    """Give a lock to the first that waits for a word, let others wait for the lock."""
    woken, moved = s32(call.value), s32(call.timeout)
    if woken != 1 or moved < 0 or call.address == call.other:
        raise LinuxError(errno.EINVAL)
    key, other = _key(k, call.address, call.operation), _key(k, call.other, call.operation)
    if key == other:
        raise LinuxError(errno.EINVAL)
    if _word(k, call.address) != u32(call.extra):
        raise LinuxError(errno.EAGAIN)
    _word(k, call.other)
    queues = _queues(k)
    waiting, done = queues.of(key), 0
    for waiter in waiting:
        if done > moved:
            break
        if waiter.target != other or waiter.locks:
            raise LinuxError(errno.EINVAL)
        first = waiter is waiting[0]
        if first and _takes(k, call.other, other, waiter.thread.tid, wait=True, others=moved > 0):
            queues.remove(waiter)
            queues.release(waiter)
        elif waiter.thread.tid == _word(k, call.other) & TID_MASK:
            raise LinuxError(errno.EDEADLK)
        else:
            queues.move(waiter, other)
            waiter.locks = True
        done += 1
    return done


_COMMANDS: Final[dict[int, Callable[[Thread, FutexCall], int | Wait]]] = {
    0: _wait_plain,
    1: _wake,
    3: _requeue,
    4: _compare_requeue,
    5: _wake_operation,
    6: _lock_realtime,
    7: _unlock,
    8: _try,
    9: _wait_bits,
    10: _wake_bits,
    11: _wait_requeue,
    12: _requeue_to_lock,
    13: _lock_either,
}
_WITH_REALTIME: Final = frozenset({9, 11, 13})
_TIMED: Final = frozenset({0, 6, 9, 11, 13})


def futex(
    k: Thread, address: int, operation: int, value: int, timeout: int, other: int, extra: int
) -> int | Wait:
    """Wait for a word to change, and wake those that do."""
    command = u32(operation) & ~(_PRIVATE | _REALTIME)  # what is left over is no command
    length = None
    if timeout and command in _TIMED:  # looked at before anything else
        seconds, nanoseconds = struct.unpack("<qq", k.memory.read(timeout, 16))
        if not 0 <= nanoseconds < 10**9 or seconds < 0:
            raise LinuxError(errno.EINVAL)
        length = seconds * 10**9 + nanoseconds
    handler = _COMMANDS.get(command)
    if handler is None or (operation & _REALTIME and command not in _WITH_REALTIME):
        raise LinuxError(errno.ENOSYS)
    return handler(k, FutexCall(address, operation, value, timeout, other, extra, length))


# -- the end of a thread ----------------------------------------------------------------------


def threads_end(threads: Iterable[Thread]) -> None:
    """The same of threads that end at once: none of them takes what others wait for."""
    dying = list(threads)
    for thread in dying:
        thread.leave_wait()
    for thread in dying:
        thread_ends(thread)


def thread_ends(k: Thread) -> None:
    """Tell others that a thread is gone: locks of its robust list, and its id's word."""
    if k.robust_list:
        try:
            _leave_robust(k)
        except (GuestFaultError, LinuxError):
            pass  # the list is the program's: exit_robust_list stops where it cannot be read
        k.robust_list = 0
    if k.clear_child_tid:
        address, k.clear_child_tid = k.clear_child_tid, 0
        try:
            k.memory.write(address, bytes(4))
            _queues(k).wake(_key(k, address, 0), 1, _EVERY)
        except (GuestFaultError, LinuxError):
            pass


def _leave_robust(k: Thread) -> None:
    head = k.robust_list
    entry, offset, pending = struct.unpack("<QqQ", k.memory.read(head, 24))
    for _ in range(_MOST_ROBUST):
        if entry & -2 == head & -2:
            break
        following = int(struct.unpack("<Q", k.memory.read(entry & -2, 8))[0])
        if entry & -2 != pending & -2:
            _died(k, (entry & -2) + offset, pi=bool(entry & 1))
        entry = following
    if pending:
        _died(k, (pending & -2) + offset, pi=bool(pending & 1), pending=True)


def _died(k: Thread, address: int, *, pi: bool, pending: bool = False) -> None:
    """The owner of a lock is gone (handle_futex_death)."""
    old = _word(k, address)
    key = _key(k, address, 0)
    if pending and not pi and not old & TID_MASK:
        # It was giving the lock up, or had been woken to take it: the next one may.
        _queues(k).wake(key, 1, _EVERY)
        _queues(k).wake(_key(k, address, _PRIVATE), 1, _EVERY)
        return
    if old & TID_MASK != k.tid:
        return
    if pi:
        _hand_over(k, address, key, OWNER_DIED)
        return
    k.memory.write(address, struct.pack("<I", old & WAITERS | OWNER_DIED))
    if old & WAITERS:
        _queues(k).wake(key, 1, _EVERY)
        _queues(k).wake(_key(k, address, _PRIVATE), 1, _EVERY)


SYSCALLS: SyscallTable = {
    "futex": futex,
}

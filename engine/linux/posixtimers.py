"""POSIX timers: timer_create and its family, with a signal or without any notice."""

import errno
import struct
from typing import Final

from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.signals import SIGALRM
from engine.linux.thread import Thread
from engine.linux.time import clock_now, read_timespec, timespec
from engine.linux.timers import PosixTimer

SIGEV_SIGNAL, SIGEV_NONE, SIGEV_THREAD_ID = 0, 1, 4
_TIMER_ABSTIME: Final = 1
_NO_TIMERS: Final = frozenset((4, 5, 6))
"""CLOCK_MONOTONIC_RAW and the coarse clocks."""
_OF_DEVICE: Final = 3
"""Last bits of a clock that a descriptor stands for (CLOCKFD)."""
_MAX_TIMERS: Final = 4096


def timer_create(k: Thread, clock: int, event: int, id_at: int) -> int:
    """Make a timer."""
    given = bytes(k.memory.read(event, 64)) if event else b""
    of_processor = s32(clock) < 0
    if s32(clock) in _NO_TIMERS or (of_processor and clock & 7 == _OF_DEVICE):
        raise LinuxError(errno.EOPNOTSUPP)
    if not of_processor:
        clock_now(k, clock)
    timers = k.process.timers.posix
    if len(timers) >= _MAX_TIMERS:
        raise LinuxError(errno.EAGAIN)
    number = k.process.timers.next_id
    k.process.timers.next_id += 1  # also if nothing comes of it
    notify, signal, value, tid = SIGEV_SIGNAL, SIGALRM, None, 0
    if event:
        value, signal, notify, tid = struct.unpack("<Qiii", given[:20])
        if notify not in (SIGEV_SIGNAL, SIGEV_NONE, SIGEV_SIGNAL | SIGEV_THREAD_ID):
            raise LinuxError(errno.EINVAL)
        if notify != SIGEV_NONE and not 1 <= signal <= 64:
            raise LinuxError(errno.EINVAL)
        if notify & SIGEV_THREAD_ID and tid not in k.process.threads:
            raise LinuxError(errno.EINVAL)
    k.memory.write(id_at, struct.pack("<i", number))
    if of_processor:
        clock_now(k, clock)  # whose time is to be counted is asked last
    silent = notify == SIGEV_NONE
    timers[number] = PosixTimer(number, s32(clock), signal, number if value is None else value)
    timers[number].silent = silent
    timers[number].thread = tid if notify & SIGEV_THREAD_ID else 0
    return 0


def _timer(k: Thread, number: int) -> PosixTimer:
    timer = k.process.timers.posix.get(s32(number))
    if timer is None:
        raise LinuxError(errno.EINVAL)
    return timer


def timer_settime(k: Thread, number: int, flags: int, new: int, old: int) -> int:
    """Arm or disarm a timer."""
    if not new:
        raise LinuxError(errno.EINVAL)
    interval, value = read_timespec(k, new), read_timespec(k, new + 16)
    timer = _timer(k, number)
    before = _setting(k, timer)
    if value and flags & _TIMER_ABSTIME:
        value = max(value - clock_now(k, timer.clock), 1)
    k.process.timers.arm_posix(timer, value, interval)
    if old:
        k.memory.write(old, before)
    return 0


def timer_gettime(k: Thread, number: int, address: int) -> int:
    """Rest of a timer."""
    k.memory.write(address, _setting(k, _timer(k, number)))
    return 0


def _setting(k: Thread, timer: PosixTimer) -> bytes:
    value, interval = k.process.timers.rest_posix(timer)
    return timespec(interval) + timespec(value)


def timer_getoverrun(k: Thread, number: int) -> int:
    """Expirations without a signal of their own, as of the last one delivered."""
    return min(_timer(k, number).overrun, 0x7FFFFFFF)


def timer_delete(k: Thread, number: int) -> int:
    """Remove a timer, and its signal if that was not delivered yet."""
    timer = _timer(k, number)
    k.process.timers.arm_posix(timer, 0, 0)
    del k.process.timers.posix[timer.number]
    k.process.drop_timer_signal(timer.number)
    return 0


SYSCALLS: SyscallTable = {
    "timer_create": timer_create,
    "timer_settime": timer_settime,
    "timer_gettime": timer_gettime,
    "timer_getoverrun": timer_getoverrun,
    "timer_delete": timer_delete,
}

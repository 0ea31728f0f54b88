"""System calls of time: clocks, sleeping, interval timers."""

import errno
import struct
from typing import Final, NoReturn

from engine.linux.clock import COARSE_TICK, FOREVER
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.init import INIT
from engine.linux.thread import Thread
from engine.linux.wait import Wait

_SECOND: Final = 10**9
_REALTIME = frozenset({0, 8, 11})  # REALTIME, REALTIME_ALARM, TAI
_MONOTONIC = frozenset({1, 4, 7, 9})  # MONOTONIC, RAW, BOOTTIME, BOOTTIME_ALARM
_COARSE: Final = frozenset({5, 6})
"""CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE: the time of the last tick."""
_CPU = frozenset({2, 3})  # PROCESS_CPUTIME_ID, THREAD_CPUTIME_ID
_OF_THREAD, _KINDS = 4, 3  # of a clock of somebody's, and how many there are
_TIMER_ABSTIME = 1


def clock_now(k: Thread, clock: int) -> int:
    """Nanoseconds of a clock; EINVAL for one that does not exist."""
    clock = s32(clock)
    if clock in _COARSE:
        exact = k.clock.realtime() if clock == 5 else k.clock.monotonic()
        return exact - exact % COARSE_TICK
    if clock in _REALTIME:
        return k.clock.realtime()
    if clock in _MONOTONIC:
        return k.clock.monotonic()
    if clock in _CPU:
        return k.process.cpu_time() if clock == 2 else k.cpu_time()
    if clock < 0 and clock & 3 < _KINDS:
        return _time_of(k, ~(clock >> 3), thread=bool(clock & _OF_THREAD))
    raise LinuxError(errno.EINVAL)


def _time_of(k: Thread, number: int, *, thread: bool) -> int:
    """Processor time of a process, or of another thread of the caller's (pid_for_clock)."""
    if thread:
        found = k.process.threads.get(number) if number else k
        if found is not None:
            return found.cpu_time()
    elif number in (0, k.tid):
        return k.process.cpu_time()
    elif number in k.machine.processes:
        return k.machine.processes[number].cpu_time()
    elif number == INIT:
        return 0
    raise LinuxError(errno.EINVAL)


def read_timespec(k: Thread, address: int) -> int:
    """Nanoseconds of a struct timespec, at most `FOREVER`; EINVAL if it is out of range."""
    seconds, nanoseconds = struct.unpack("<qq", k.memory.read(address, 16))
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        raise LinuxError(errno.EINVAL)
    return min(int(seconds * _SECOND + nanoseconds), FOREVER)


def timespec(value: int) -> bytes:
    """A struct timespec."""
    return struct.pack("<qq", *divmod(value, _SECOND))


def _timeval(value: int) -> bytes:
    return struct.pack("<qq", value // _SECOND, value % _SECOND // 1000)


def clock_gettime(k: Thread, clock: int, address: int) -> int:
    """Read a clock."""
    k.memory.write(address, timespec(clock_now(k, clock)))
    return 0


def clock_getres(k: Thread, clock: int, address: int) -> int:
    """One nanosecond, of the coarse clocks a tick."""
    clock_now(k, clock)
    if address:
        k.memory.write(address, timespec(COARSE_TICK if s32(clock) in _COARSE else 1))
    return 0


def gettimeofday(k: Thread, address: int, zone: int) -> int:
    """CLOCK_REALTIME in microseconds."""
    if address:
        k.memory.write(address, _timeval(k.clock.realtime()))
    if zone:
        k.memory.write(zone, bytes(8))
    return 0


def time(k: Thread, address: int) -> int:
    """CLOCK_REALTIME in seconds."""
    seconds = k.clock.realtime() // _SECOND
    if address:
        k.memory.write(address, struct.pack("<q", seconds))
    return seconds


def times(k: Thread, address: int) -> int:
    """Processor time in clock ticks."""
    own, children = k.process.cpu_time(), k.process.children_time
    if address:
        tick = _SECOND // 100
        k.memory.write(address, struct.pack("<4q", own // tick, 0, children // tick, 0))
    return k.clock.monotonic() // (_SECOND // 100)


def nanosleep(k: Thread, request: int, rest: int) -> Wait:
    """Sleep."""
    return _sleep(k, k.clock.monotonic() + read_timespec(k, request), rest)


NOT_SLEPT: Final = frozenset((3, 4, 5, 6))
"""Clocks that nobody can sleep by: one's own CPU time, the raw and the coarse ones."""


def clock_nanosleep(k: Thread, clock: int, flags: int, request: int, rest: int) -> int | Wait:
    """Sleep by a clock."""
    if s32(clock) in NOT_SLEPT:
        raise LinuxError(errno.EOPNOTSUPP)
    if s32(clock) >= 0:  # a process's or thread's is looked for behind the time
        clock_now(k, clock)
    length = read_timespec(k, request)
    now = clock_now(k, clock)
    if flags & _TIMER_ABSTIME:
        length, rest = length - now, 0
    if length <= 0:
        return 0
    return _sleep(k, k.clock.monotonic() + length, rest)


def _sleep(k: Thread, deadline: int, rest: int) -> Wait:
    deadline = min(deadline, FOREVER)

    def interrupted() -> None:
        if rest:
            k.memory.write(rest, timespec(max(deadline - k.clock.peek(), 0)))

    return Wait(
        lambda: None, deadline, 0, restart=False, on_interrupt=interrupted, woken_by_calls=True
    )


def setitimer(k: Thread, which: int, new: int, old: int) -> int:
    """Arm an interval timer."""
    which = s32(which)
    interval = value = 0
    if new:
        words = struct.unpack("<4q", k.memory.read(new, 32))
        if any(part < 0 for part in words) or words[1] >= 10**6 or words[3] >= 10**6:
            raise LinuxError(errno.EINVAL)
        interval = words[0] * _SECOND + words[1] * 1000
        value = words[2] * _SECOND + words[3] * 1000
    if which not in (0, 1, 2):
        raise LinuxError(errno.EINVAL)
    before = _itimerval(k, which)
    k.process.timers.arm(which, value, interval)
    if old:
        k.memory.write(old, before)
    return 0


def getitimer(k: Thread, which: int, address: int) -> int:
    """Rest of an interval timer."""
    which = s32(which)
    if which not in (0, 1, 2):
        raise LinuxError(errno.EINVAL)
    k.memory.write(address, _itimerval(k, which))
    return 0


def _itimerval(k: Thread, which: int) -> bytes:
    value, interval = k.process.timers.rest(which)
    return _timeval(interval) + _timeval(value)


def alarm(k: Thread, seconds: int) -> int:
    """Arm the real interval timer once."""
    value, _ = k.process.timers.rest(0)
    k.process.timers.arm(0, (seconds & 0xFFFFFFFF) * _SECOND, 0)
    return -(-value // _SECOND)


def not_permitted(k: Thread, *arguments: int) -> NoReturn:
    """Setting clocks needs privileges."""
    raise LinuxError(errno.EPERM)


def clock_settime(k: Thread, clock: int, address: int) -> NoReturn:
    """Only CLOCK_REALTIME can be set at all, and that needs privileges."""
    raise LinuxError(errno.EINVAL if s32(clock) in _MONOTONIC else errno.EPERM)


SYSCALLS: SyscallTable = {
    "clock_gettime": clock_gettime,
    "clock_getres": clock_getres,
    "clock_settime": clock_settime,
    "clock_nanosleep": clock_nanosleep,
    "nanosleep": nanosleep,
    "gettimeofday": gettimeofday,
    "settimeofday": not_permitted,
    "adjtimex": not_permitted,
    "time": time,
    "times": times,
    "setitimer": setitimer,
    "getitimer": getitimer,
    "alarm": alarm,
}

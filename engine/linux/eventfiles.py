"""System calls that make and set event counters and timers."""

import struct

from engine.linux.context import Context, SyscallTable, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.calls import opened
from engine.linux.fs.eventfd_timerfd import EventFile, TimerFile

EINVAL = 22

_SECOND = 1_000_000_000
_SEMAPHORE = 1
_CLOCKS = (0, 1, 7, 8, 9)
_REALTIME = (0, 8)
_ABSOLUTE, _CANCEL_ON_SET = 1, 2


def eventfd2(ctx: Context, count: int, flags: int) -> int:
    """Linux's eventfd2."""
    flags = u32(flags)
    if flags & ~(fl.O_CLOEXEC | fl.O_NONBLOCK | _SEMAPHORE):
        raise LinuxError(EINVAL)
    file = EventFile(
        u32(count),
        semaphore=bool(flags & _SEMAPHORE),
        byteorder=ctx.arch.byteorder,
        flags=flags & fl.O_NONBLOCK,
    )
    return ctx.files.add(file, cloexec=bool(flags & fl.O_CLOEXEC))


def eventfd(ctx: Context, count: int) -> int:
    """Linux's eventfd."""
    return eventfd2(ctx, count, 0)


def timerfd_create(ctx: Context, clock: int, flags: int) -> int:
    """Linux's timerfd_create."""
    flags = u32(flags)
    if u32(clock) not in _CLOCKS or flags & ~(fl.O_CLOEXEC | fl.O_NONBLOCK):
        raise LinuxError(EINVAL)
    file = TimerFile(
        ctx.clock,
        realtime=u32(clock) in _REALTIME,
        byteorder=ctx.arch.byteorder,
        flags=flags & fl.O_NONBLOCK,
    )
    return ctx.files.add(file, cloexec=bool(flags & fl.O_CLOEXEC))


def _timer(ctx: Context, fd: int) -> TimerFile:
    file = opened(ctx, fd)
    if not isinstance(file, TimerFile):
        raise LinuxError(EINVAL)
    return file


def _store(ctx: Context, timer: TimerFile, address: int) -> None:
    left, interval = timer.get()
    order = "<" if ctx.arch.byteorder == "little" else ">"
    values = (*divmod(interval, _SECOND), *divmod(left, _SECOND))
    ctx.memory.write(address, struct.pack(order + "4q", *values))


def timerfd_settime(ctx: Context, fd: int, flags: int, new: int, old: int) -> int:
    """Linux's timerfd_settime."""
    order = "<" if ctx.arch.byteorder == "little" else ">"
    interval_s, interval_ns, value_s, value_ns = struct.unpack(
        order + "4q", ctx.memory.read(new, 32)
    )
    if u32(flags) & ~(_ABSOLUTE | _CANCEL_ON_SET):
        raise LinuxError(EINVAL)
    if not (0 <= interval_ns < _SECOND and 0 <= value_ns < _SECOND):
        raise LinuxError(EINVAL)
    if interval_s < 0 or value_s < 0:
        raise LinuxError(EINVAL)
    timer = _timer(ctx, fd)
    if old:
        _store(ctx, timer, old)
    timer.set(
        value_s * _SECOND + value_ns,
        interval_s * _SECOND + interval_ns,
        absolute=bool(flags & _ABSOLUTE),
    )
    return 0


def timerfd_gettime(ctx: Context, fd: int, current: int) -> int:
    """Linux's timerfd_gettime."""
    _store(ctx, _timer(ctx, fd), current)
    return 0


SYSCALLS: SyscallTable = {
    "eventfd": eventfd,
    "eventfd2": eventfd2,
    "timerfd_create": timerfd_create,
    "timerfd_settime": timerfd_settime,
    "timerfd_gettime": timerfd_gettime,
}

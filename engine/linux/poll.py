"""System calls that wait for several files: poll, select, epoll; eventfd and timerfd."""

import struct
from collections.abc import Callable, Sequence
from typing import Final

from engine.linux.clock import FOREVER
from engine.linux.context import Context, SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.calls import opened
from engine.linux.fs.epoll import EPOLLET, EPOLLEXCLUSIVE, EPOLLONESHOT, EpollFile
from engine.linux.fs.vfs import OpenFile
from engine.linux.wait import Wait

EPERM, EBADF, EFAULT, EINVAL = 1, 9, 14, 22

_SECOND = 1_000_000_000
_MASK_SIZE: Final = 8
"""Bytes of a signal mask."""

_SELECT_IN = fl.POLLRDNORM | fl.POLLIN | fl.POLLHUP | fl.POLLERR
_SELECT_OUT = fl.POLLWRNORM | fl.POLLOUT | fl.POLLERR
_SELECT_EXCEPT = fl.POLLPRI
_ALWAYS = fl.POLLERR | fl.POLLHUP
_POLLFD = {"little": struct.Struct("<iHH"), "big": struct.Struct(">iHH")}
"""Struct pollfd by byte order."""

_CTL_ADD, _CTL_DEL, _CTL_MOD = 1, 2, 3


def _order(ctx: Context) -> str:
    return "<" if ctx.arch.byteorder == "little" else ">"


def _timespec(ctx: Context, address: int, unit: int = 1) -> int | None:
    """Nanoseconds of a timespec (or with unit 1000 a timeval); None for a null pointer."""
    if not address:
        return None
    seconds, fraction = struct.unpack(_order(ctx) + "qq", ctx.memory.read(address, 16))
    if seconds < 0 or not 0 <= fraction < _SECOND // unit:
        raise LinuxError(EINVAL)
    return int(seconds * _SECOND + fraction * unit)


def _milliseconds(timeout: int) -> int | None:
    return None if timeout < 0 else timeout * 1_000_000


def _wait_for(
    ctx: Context,
    watched: Sequence[tuple[OpenFile, int]],
    timeout: int | None,
    attempt: Callable[[], int | None],
    finish: Callable[[], None] | None = None,
    *,
    stop_ends: bool = False,
) -> int | Wait:
    """Try, and wait if nothing is ready and time is left."""
    count = attempt()
    if count is not None:
        return count
    if timeout == 0:
        if finish is not None:
            finish()
        return 0
    fds: list[tuple[int, int]] = []
    timed: list[OpenFile] = []
    outside = not watched
    for file, events in watched:
        outside = outside or file.outside
        fds.extend(file.wait_fds(events))
        if file.timed:
            timed.append(file)
    deadline = None if timeout is None else min(ctx.clock.monotonic() + timeout, FOREVER)

    def due() -> int | None:
        moments = [file.next_deadline() for file in timed]
        return min((moment for moment in moments if moment is not None), default=None)

    def attempt_or_end() -> int | None:
        result = attempt()
        if result is None and deadline is not None and ctx.clock.monotonic() >= deadline:
            if finish is not None:
                finish()
            return 0
        return result

    return Wait(
        attempt_or_end,
        deadline=deadline,
        host_fds=tuple(fds),
        restart=False,
        outside=outside,
        due=due if timed else None,
        stop_ends=stop_ends,
    )


def _poll(ctx: Context, address: int, count: int, timeout: int | None) -> int | Wait:
    count = u32(count)
    if count > ctx.limit("nofile"):
        raise LinuxError(EINVAL)
    if address > ctx.arch.plan.task_size:  # also of no entries at all (access_ok)
        raise LinuxError(EFAULT)
    layout = _POLLFD[ctx.arch.byteorder]
    peek, memory = ctx.files.peek, ctx.memory
    entries = [
        (fd, events, peek(fd) if fd >= 0 else None)
        for fd, events, _ in layout.iter_unpack(memory.read(address, count * layout.size))
    ]

    def attempt() -> int | None:
        ready, out = 0, b""
        for fd, events, file in entries:
            found = 0
            if file is not None:
                found = file.readiness() & (events | _ALWAYS)
            elif fd >= 0:
                found = fl.POLLNVAL
            ready += found != 0
            out += layout.pack(fd, events, found)
        memory.write(address, out)  # where it must not, that is EFAULT at the end, as in Linux
        return ready or None

    if timeout == 0:  # nobody has to know what could be waited for
        return attempt() or 0
    watched = [(file, events) for _, events, file in entries if file is not None]
    return _wait_for(ctx, watched, timeout, attempt)


def poll(ctx: Context, address: int, count: int, timeout: int) -> int | Wait:
    """Linux's poll."""
    return _poll(ctx, address, count, _milliseconds(s32(timeout)))


def _mask_at(ctx: Context, address: int) -> int:
    (mask,) = struct.unpack(_order(ctx) + "Q", ctx.memory.read(address, 8))
    return int(mask)


def _masked(ctx: Context, mask: int, size: int, call: Callable[[], int | Wait]) -> int | Wait:
    """Make a call with the signal mask at an address, if there is one (set_user_sigmask)."""
    if not mask:
        return call()
    if size != _MASK_SIZE:
        raise LinuxError(EINVAL)
    return ctx.with_signal_mask(_mask_at(ctx, mask), call)


def ppoll(
    ctx: Context, address: int, count: int, timeout: int, mask: int, size: int
) -> int | Wait:
    """Linux's ppoll."""
    limit = _timespec(ctx, timeout)
    return _masked(ctx, mask, size, lambda: _poll(ctx, address, count, limit))


def _fd_set(ctx: Context, address: int, size: int) -> int:
    """A bit set of longs as an integer."""
    if not address:
        return 0
    raw = bytes(ctx.memory.read(address, size))
    if ctx.arch.byteorder == "big":
        raw = b"".join(raw[at : at + 8][::-1] for at in range(0, size, 8))
    return int.from_bytes(raw, "little")


def _store_fd_set(ctx: Context, address: int, size: int, bits: int) -> None:
    if not address:
        return
    raw = bits.to_bytes(size, "little")
    if ctx.arch.byteorder == "big":
        raw = b"".join(raw[at : at + 8][::-1] for at in range(0, size, 8))
    ctx.memory.write(address, raw)


def _select(
    ctx: Context,
    count: int,
    sets: tuple[int, int, int],
    timeout: int | None,
    remaining: Callable[[int], None],
) -> int | Wait:
    count = s32(count)
    if count < 0:
        raise LinuxError(EINVAL)
    count = min(count, 1 << 16)
    size = (count + 63) // 64 * 8
    wanted = [_fd_set(ctx, address, size) & (1 << count) - 1 for address in sets]
    kinds = (_SELECT_IN, _SELECT_OUT, _SELECT_EXCEPT)
    everything = wanted[0] | wanted[1] | wanted[2]
    files: list[tuple[int, OpenFile]] = []
    fd = 0
    while everything >> fd:
        if everything >> fd & 1:
            file = ctx.files.peek(fd)
            if file is None:
                raise LinuxError(EBADF)
            files.append((fd, file))
        fd += 1
    end = None if timeout is None else ctx.clock.monotonic() + timeout

    def left() -> None:
        if end is not None:
            remaining(max(0, end - ctx.clock.monotonic()))

    def store(found: list[int]) -> None:
        for address, bits in zip(sets, found, strict=True):
            _store_fd_set(ctx, address, size, bits)

    def attempt() -> int | None:
        found = [0, 0, 0]
        ready = 0
        for fd, file in files:
            mask = file.readiness()
            for index, kind in enumerate(kinds):
                if wanted[index] >> fd & 1 and mask & kind:
                    found[index] |= 1 << fd
                    ready += 1
        if not ready:
            return None
        store(found)
        left()
        return ready

    def finish() -> None:
        store([0, 0, 0])
        left()

    watched = [
        (
            file,
            (fl.POLLIN if wanted[0] >> fd & 1 else 0) | (fl.POLLOUT if wanted[1] >> fd & 1 else 0),
        )
        for fd, file in files
    ]
    return _wait_for(ctx, watched, timeout, attempt, finish)


def select(
    ctx: Context, count: int, readable: int, writable: int, exceptional: int, timeout: int
) -> int | Wait:
    """Linux's select; Linux stores the time left."""

    def remaining(ns: int) -> None:
        seconds, fraction = divmod(ns, _SECOND)
        ctx.memory.write(timeout, struct.pack(_order(ctx) + "qq", seconds, fraction // 1000))

    limit = _timespec(ctx, timeout, 1000)
    return _select(ctx, count, (readable, writable, exceptional), limit, remaining)


def pselect6(
    ctx: Context, count: int, readable: int, writable: int, exceptional: int, timeout: int,
    mask: int,
) -> int | Wait:  # fmt: skip
    """Linux's pselect6; the mask comes as a pointer to (address, size)."""

    def remaining(ns: int) -> None:
        ctx.memory.write(timeout, struct.pack(_order(ctx) + "qq", *divmod(ns, _SECOND)))

    address = size = 0
    if mask:
        address, size = struct.unpack(_order(ctx) + "QQ", ctx.memory.read(mask, 16))
    limit = _timespec(ctx, timeout)

    def call() -> int | Wait:
        return _select(ctx, count, (readable, writable, exceptional), limit, remaining)

    return _masked(ctx, address, size, call)


def epoll_create1(ctx: Context, flags: int) -> int:
    """Linux's epoll_create1."""
    if u32(flags) & ~fl.O_CLOEXEC:
        raise LinuxError(EINVAL)
    return ctx.files.add(EpollFile(ctx.fs.budget.memory), cloexec=bool(flags & fl.O_CLOEXEC))


def epoll_create(ctx: Context, size: int) -> int:
    """Linux's epoll_create."""
    if s32(size) <= 0:
        raise LinuxError(EINVAL)
    return epoll_create1(ctx, 0)


def _epoll(ctx: Context, fd: int) -> EpollFile:
    file = opened(ctx, fd)
    if not isinstance(file, EpollFile):
        raise LinuxError(EINVAL)
    return file


def _event_layout(ctx: Context) -> struct.Struct:
    return struct.Struct(_order(ctx) + ("IQ" if ctx.arch.linux.epoll_packed else "I4xQ"))


_WITH_EXCLUSIVE: Final = 0x1D | 1 << 29 | EPOLLET | EPOLLEXCLUSIVE
"""EPOLLEXCLUSIVE_OK_BITS."""


def epoll_ctl(ctx: Context, epfd: int, operation: int, fd: int, event: int) -> int:
    """Linux's epoll_ctl."""
    operation, fd = s32(operation), u32(fd)
    events = data = 0
    if operation != _CTL_DEL:
        layout = _event_layout(ctx)
        events, data = layout.unpack(ctx.memory.read(event, layout.size))
    file, target = opened(ctx, epfd), opened(ctx, fd)
    if not EpollFile.can_watch(target):
        raise LinuxError(EPERM)
    epoll = _epoll(ctx, epfd)
    if file is target:
        raise LinuxError(EINVAL)
    if events & EPOLLEXCLUSIVE and (
        operation == _CTL_MOD or events & ~_WITH_EXCLUSIVE or isinstance(target, EpollFile)
    ):
        raise LinuxError(EINVAL)
    events &= 0x3FFF | EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE
    if operation == _CTL_ADD:
        epoll.add(fd, target, events, data)
    elif operation == _CTL_MOD:
        epoll.change(fd, target, events, data)
    elif operation == _CTL_DEL:
        epoll.remove(fd, target)
    else:
        raise LinuxError(EINVAL)
    return 0


def _epoll_wait(
    ctx: Context, epfd: int, address: int, limit: int, timeout: int | None
) -> int | Wait:
    opened(ctx, epfd)
    limit = s32(limit)
    layout = _event_layout(ctx)
    if not 0 < limit <= 0x7FFFFFFF // layout.size:
        raise LinuxError(EINVAL)
    if address >> 63:  # beyond all memory (access_ok)
        raise LinuxError(EFAULT)
    epoll = _epoll(ctx, epfd)

    def attempt() -> int | None:
        if not ctx.memory.accessible(address, layout.size, True):
            if epoll.readiness():
                raise LinuxError(EFAULT)
            return None
        found = epoll.collect(limit)
        if not found:
            return None
        ctx.memory.write(address, b"".join(layout.pack(*event) for event in found))
        return len(found)

    return _wait_for(ctx, [(epoll, fl.POLLIN)], timeout, attempt, stop_ends=True)


def epoll_wait(ctx: Context, epfd: int, address: int, limit: int, timeout: int) -> int | Wait:
    """Linux's epoll_wait."""
    return _epoll_wait(ctx, epfd, address, limit, _milliseconds(s32(timeout)))


def epoll_pwait(
    ctx: Context, epfd: int, address: int, limit: int, timeout: int, mask: int, size: int
) -> int | Wait:
    """Linux's epoll_pwait."""

    def call() -> int | Wait:
        return epoll_wait(ctx, epfd, address, limit, timeout)

    return _masked(ctx, mask, size, call)


def epoll_pwait2(
    ctx: Context, epfd: int, address: int, limit: int, timeout: int, mask: int, size: int
) -> int | Wait:
    """Linux's epoll_pwait2: the timeout is a timespec."""
    nanoseconds = _timespec(ctx, timeout)

    def call() -> int | Wait:
        return _epoll_wait(ctx, epfd, address, limit, nanoseconds)

    return _masked(ctx, mask, size, call)


SYSCALLS: SyscallTable = {
    "poll": poll,
    "ppoll": ppoll,
    "select": select,
    "pselect6": pselect6,
    "epoll_create": epoll_create,
    "epoll_create1": epoll_create1,
    "epoll_ctl": epoll_ctl,
    "epoll_wait": epoll_wait,
    "epoll_pwait": epoll_pwait,
    "epoll_pwait2": epoll_pwait2,
}

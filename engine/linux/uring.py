"""System calls of io_uring (io_uring(7)), as Linux 6.1 has them.

The kernel's thread that polls (SQPOLL) always sleeps: it is woken for each submission, as programs
must expect. There are no devices to be polled (IOPOLL), no entries of double size and no buffers
that are provided: a program that asks for these is refused.
"""

import errno
import struct

from msgspec.structs import replace

from engine.linux.context import SyscallTable, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.eventfd_timerfd import EventFile
from engine.linux.fs.uring import SQPOLL, UringFile
from engine.linux.thread import Thread
from engine.linux.uringcalls import KNOWN, LAST
from engine.linux.uringrequests import RingRequests
from engine.linux.wait import Wait

_IOPOLL, _SQ_AFF, _CQSIZE, _CLAMP, _ATTACH, _DISABLED = 1, 4, 8, 0x10, 0x20, 0x40
_COOPERATIVE, _TASKRUN, _SQE128, _CQE32, _SINGLE, _DEFER = (
    0x100,
    0x200,
    0x400,
    0x800,
    0x1000,
    0x2000,
)
_SETUP = 0x3FFF
_MISSING = {_IOPOLL: "IOPOLL", _SQE128: "SQE128", _CQE32: "CQE32"}
_FEATURES = 0x1FFF & ~0x400
"""All that 6.1 has, from IORING_FEAT_SINGLE_MMAP to LINKED_FILE, but for RSRC_TAGS."""
_MOST_ENTRIES, _MOST_COMPLETIONS = 1 << 15, 1 << 16
_MOST_FILES, _MOST_BUFFERS = 1 << 15, 1 << 14
_PARAMS, _SQ_OFFSETS, _CQ_OFFSETS, _PROBE = 40, "7I4xQ", "7I4xQ", 16

_GETEVENTS, _WAKEUP, _SQ_WAIT, _EXT_ARG = 1, 2, 4, 8
_SUPPORTED = 1
EBADFD, ETIME = 77, 62


def _order(k: Thread) -> str:
    return "<" if k.arch.byteorder == "little" else ">"


def _ring(k: Thread, fd: int) -> UringFile:
    file = k.files.get(fd)
    if not isinstance(file, UringFile):
        raise LinuxError(errno.EOPNOTSUPP)
    return file


def _power(value: int) -> int:
    return 1 << (value - 1).bit_length()


def _sizes(entries: int, completions: int, setup: int) -> tuple[int, int]:
    """Entries of both queues, from those that are asked for."""
    if entries > _MOST_ENTRIES:
        if not setup & _CLAMP:
            raise LinuxError(errno.EINVAL)
        entries = _MOST_ENTRIES
    entries = _power(entries)
    if not setup & _CQSIZE:
        return entries, 2 * entries
    if completions > _MOST_COMPLETIONS:
        if not setup & _CLAMP:
            raise LinuxError(errno.EINVAL)
        completions = _MOST_COMPLETIONS
    if not completions or _power(completions) < entries:
        raise LinuxError(errno.EINVAL)
    return entries, _power(completions)


def io_uring_setup(k: Thread, entries: int, params: int) -> int:
    """Make a ring: a descriptor; its layout is told in `params`."""
    order, entries = _order(k), u32(entries)
    given = struct.unpack(order + "10I", k.memory.read(params, _PARAMS))
    completions, setup, attached, reserved = given[1], given[2], given[6], given[7:]
    if any(reserved) or setup & ~_SETUP or not entries:
        raise LinuxError(errno.EINVAL)
    for flag, name in _MISSING.items():
        if setup & flag:
            k.unsupported(f"io_uring with IORING_SETUP_{name}")
            raise LinuxError(errno.EINVAL)
    if setup & _TASKRUN and not setup & (_COOPERATIVE | _DEFER):
        raise LinuxError(errno.EINVAL)
    if setup & (_COOPERATIVE | _TASKRUN | _DEFER) and setup & SQPOLL:
        raise LinuxError(errno.EINVAL)
    if setup & _SQ_AFF and not setup & SQPOLL:
        raise LinuxError(errno.EINVAL)
    if setup & _DEFER and not setup & _SINGLE:
        raise LinuxError(errno.EINVAL)
    if setup & _ATTACH and not isinstance(k.files.peek(attached), UringFile):
        raise LinuxError(errno.ENXIO if k.files.peek(attached) is None else errno.EINVAL)
    entries, completions = _sizes(entries, completions, setup)
    if not k.memory.accessible(params, 120, True):
        raise LinuxError(errno.EFAULT)
    rings, table = (k.fs.unnamed_file(fl.O_RDWR, 0o600) for _ in range(2))
    ring = UringFile(
        rings,
        table,
        k.memory.shared,
        setup=setup,
        entries=entries,
        completions=completions,
        order=order,
        disabled=bool(setup & _DISABLED),
    )
    ring.work = RingRequests(k.machine, ring)
    fd = k.files.add(ring, cloexec=True)
    answer = (entries, completions, setup, given[3], given[4], _FEATURES, attached, 0, 0, 0)
    submission, completion = ring.offsets()
    k.memory.write(
        params,
        struct.pack(order + "10I", *answer)
        + struct.pack(order + _SQ_OFFSETS, *submission, 0)
        + struct.pack(order + _CQ_OFFSETS, *completion, 0),
    )
    return fd


def io_uring_enter(
    k: Thread, fd: int, count: int, least: int, flags: int, argument: int, size: int
) -> int | Wait:
    """Begin entries of a ring, and wait for completions: how many have been begun."""
    flags = u32(flags)
    if flags & ~(_GETEVENTS | _WAKEUP | _SQ_WAIT | _EXT_ARG):
        raise LinuxError(errno.EINVAL)
    ring = _ring(k, fd)
    if ring.disabled:
        raise LinuxError(EBADFD)
    count, least = u32(count), u32(least)
    work = _work(ring)
    if ring.setup & SQPOLL:
        work.submit(k, ring.submitted())
        done = count
    else:
        done = work.submit(k, count) if count else 0
    if done != count or not flags & _GETEVENTS:
        work.progress()
        return done
    try:
        mask, mask_size, timeout = _argument(k, flags, argument, size)
        if mask and mask_size != 8:
            raise LinuxError(errno.EINVAL)
    except LinuxError:
        if done:
            return done
        raise

    def call() -> int | Wait:
        return _wait(k, ring, min(least, ring.completions), done, timeout)

    if not mask:
        return call()
    (signals,) = struct.unpack(_order(k) + "Q", k.memory.read(mask, 8))
    return k.with_signal_mask(signals, call)


def _work(ring: UringFile) -> RingRequests:
    assert isinstance(ring.work, RingRequests)
    return ring.work


def _argument(k: Thread, flags: int, argument: int, size: int) -> tuple[int, int, int | None]:
    """(address of a signal mask, its size, nanoseconds to wait at most) of io_uring_enter."""
    if not flags & _EXT_ARG:
        return argument, size, None
    if size != 24:
        raise LinuxError(errno.EINVAL)
    mask, mask_size, reserved, timeout = struct.unpack(
        _order(k) + "QIIQ", k.memory.read(argument, 24)
    )
    if reserved:
        raise LinuxError(errno.EINVAL)
    if not timeout:
        return mask, mask_size, None
    seconds, fraction = struct.unpack(_order(k) + "qq", k.memory.read(timeout, 16))
    return mask, mask_size, max(seconds * 1_000_000_000 + fraction, 0)


def _wait(k: Thread, ring: UringFile, least: int, done: int, timeout: int | None) -> int | Wait:
    """Wait for so many completions."""
    work = _work(ring)

    def attempt() -> int | None:
        work.progress()
        ring.flush()
        if ring.ready() >= least:
            return done
        wait, awaited = k.wait, work.wait_fds()
        if wait is not None and wait.host_fds != awaited:  # what was begun meanwhile counts, too
            k.wait = replace(wait, host_fds=awaited)
        return None

    result = attempt()
    if result is not None:
        return result
    return Wait(
        attempt,
        deadline=None if timeout is None else k.clock.monotonic() + timeout,
        timeout_result=-ETIME,
        host_fds=work.wait_fds(),
        restart=False,
        partial=lambda: done,
        due=work.next_expiry,
        outside=work.outside,
    )


# -- registering ---------------------------------------------------------------------------


def _register_buffers(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    work = _work(ring)
    if work.buffers:
        raise LinuxError(errno.EBUSY)
    if not 0 < count <= _MOST_BUFFERS:
        raise LinuxError(errno.EINVAL)
    raw = k.memory.read(argument, 16 * count)
    buffers = list(struct.iter_unpack(_order(k) + "QQ", raw))
    for start, size in buffers:
        if not start and not size:
            continue
        if not start or not 0 < size <= 1 << 30 or not k.memory.accessible(start, size, False):
            raise LinuxError(errno.EFAULT)
    work.buffers = buffers
    return 0


def _unregister_buffers(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    work = _work(ring)
    if argument or count:
        raise LinuxError(errno.EINVAL)
    if not work.buffers:
        raise LinuxError(errno.ENXIO)
    work.buffers = []
    return 0


def _register_files(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    if not count:
        raise LinuxError(errno.EINVAL)
    if count > min(_MOST_FILES, k.limit("nofile")):
        raise LinuxError(errno.EMFILE)
    return _work(ring).register_files(k, argument, count)


def _unregister_files(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    if argument or count:
        raise LinuxError(errno.EINVAL)
    return _work(ring).unregister_files()


def _update_files(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    offset, reserved, numbers = struct.unpack(_order(k) + "IIQ", k.memory.read(argument, 16))
    if reserved:
        raise LinuxError(errno.EINVAL)
    return _work(ring).update_files(k, offset, numbers, count)


def _register_event(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    if count != 1:
        raise LinuxError(errno.EINVAL)
    (number,) = struct.unpack(_order(k) + "i", k.memory.read(argument, 4))
    if ring.event is not None:
        raise LinuxError(errno.EBUSY)
    file = k.files.get(number)
    if not isinstance(file, EventFile):
        raise LinuxError(errno.EINVAL)
    file.acquire()
    ring.event = file
    return 0


def _unregister_event(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    if argument or count:
        raise LinuxError(errno.EINVAL)
    if ring.event is None:
        raise LinuxError(errno.ENXIO)
    event, ring.event = ring.event, None
    event.release()
    return 0


def _probe(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    """Tell which operations there are."""
    if not argument or count > 256:
        raise LinuxError(errno.EINVAL)
    count = min(count, LAST + 1)
    if any(k.memory.read(argument, _PROBE + 8 * count)):
        raise LinuxError(errno.EINVAL)
    told = struct.pack("BB14x", LAST, count)
    for operation in range(count):
        flags = _SUPPORTED if operation in KNOWN else 0
        told += struct.pack(_order(k) + "BBHI", operation, 0, flags, 0)
    k.memory.write(argument, told)
    return 0


def _enable(k: Thread, ring: UringFile, argument: int, count: int) -> int:
    if argument or count:
        raise LinuxError(errno.EINVAL)
    if not ring.disabled:
        raise LinuxError(EBADFD)
    ring.disabled = False
    return 0


_REGISTER = {
    0: _register_buffers,
    1: _unregister_buffers,
    2: _register_files,
    3: _unregister_files,
    4: _register_event,
    5: _unregister_event,
    6: _update_files,
    7: _register_event,
    8: _probe,
    12: _enable,
}


def io_uring_register(k: Thread, fd: int, operation: int, argument: int, count: int) -> int:
    """Register files, buffers or an eventfd with a ring, or ask what it can do."""
    ring, register = _ring(k, fd), _REGISTER.get(u32(operation))
    if register is None:
        raise LinuxError(errno.EINVAL)
    return register(k, ring, argument, u32(count))


SYSCALLS: SyscallTable = {
    "io_uring_setup": io_uring_setup,
    "io_uring_enter": io_uring_enter,
    "io_uring_register": io_uring_register,
}

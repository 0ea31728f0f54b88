"""futex: with one thread, a wait ends by a signal, a timeout or never."""

import errno
import struct

from engine.linux.context import SyscallTable, u32
from engine.linux.errno import LinuxError
from engine.linux.thread import Thread
from engine.linux.wait import Wait


def futex(
    k: Thread, address: int, operation: int, value: int, timeout: int, other: int, extra: int
) -> int | Wait:
    """Wait and wake; with one thread a wait ends by a signal, a timeout or never."""
    command = operation & 0x7F
    if command in (9, 10) and not u32(extra):  # an empty bit set
        raise LinuxError(errno.EINVAL)
    if address % 4:
        raise LinuxError(errno.EINVAL)
    if command in (0, 9):  # WAIT, WAIT_BITSET
        (current,) = struct.unpack("<I", k.memory.read(address, 4))
        if current != u32(value):
            raise LinuxError(errno.EAGAIN)
        deadline = None
        if timeout:
            seconds, nanoseconds = struct.unpack("<qq", k.memory.read(timeout, 16))
            if not 0 <= nanoseconds < 10**9 or seconds < 0:
                raise LinuxError(errno.EINVAL)
            length = seconds * 10**9 + nanoseconds
            now = k.clock.monotonic()
            if command == 9:  # an absolute moment
                length -= k.clock.realtime() if operation & 256 else now
            deadline = now + max(length, 0)
        return Wait(lambda: None, deadline, -errno.ETIMEDOUT, restart=timeout == 0)
    if command in (1, 10, 3, 4, 5):  # WAKE, WAKE_BITSET, REQUEUE, CMP_REQUEUE, WAKE_OP
        k.memory.read(address, 4)
        if command == 4:
            (current,) = struct.unpack("<I", k.memory.read(address, 4))
            if current != u32(extra):
                raise LinuxError(errno.EAGAIN)
        return 0
    raise LinuxError(errno.ENOSYS)


SYSCALLS: SyscallTable = {
    "futex": futex,
}

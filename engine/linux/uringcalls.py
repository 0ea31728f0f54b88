"""Which system call an entry of an io_uring stands for (io_uring_enter(2), "OPERATIONS").

Most operations are system calls under another form: an entry's fields in another order. Those
that are about the ring itself are `uringrequests`'.
"""

import errno
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.linux.errno import LinuxError
from engine.linux.fs.uring import UringFile
from engine.linux.thread import Thread

NOP, READV, WRITEV, READ_FIXED, WRITE_FIXED = 0, 1, 2, 4, 5
POLL_ADD, POLL_REMOVE, RECVMSG, TIMEOUT, TIMEOUT_REMOVE, ACCEPT = 6, 7, 10, 11, 12, 13
ASYNC_CANCEL, LINK_TIMEOUT, FILES_UPDATE, READ, WRITE, SEND, RECV = 14, 15, 20, 22, 23, 26, 27
LAST: Final = 48
"""The last operation that Linux 6.1 has."""

FIXED_FILE: Final = 1
"""Of an entry's flags: its `fd` is the number of a registered file."""

_FORM: Final = "BBHiQQIIQHHiQ8x"
_WHOLE: Final = frozenset({READV, WRITEV, READ_FIXED, WRITE_FIXED, READ, WRITE})
_PRIORITIZED: Final = _WHOLE
"""Operations with a priority; for others the field has flags."""
_POLL_AGAIN: Final = 1
_ACCEPT_AGAIN: Final = 1
_CANCEL_FLAGS: Final = 0xF
_CLOSE: Final = 19
_WAITALL: Final = 0x100
_LENIENT: Final = frozenset({3, 8, 17, 21, 25, 34, *range(35, 40), *range(41, 45)})
"""Operations that never end a chain: they do not set REQ_F_FAIL."""
_ANY: Final = -4096
_IN_PLACE: Final = (1 << 64) - 1


class RingEntry(NamedTuple):
    """An entry of a submission queue (struct io_uring_sqe).

    Attributes:
        operation: what is to be done.
        flags: IOSQE_* bits.
        priority: of it; more flags for some operations.
        fd: a descriptor, or the number of a registered file.
        offset: in a file, or a second address.
        address: of memory.
        length: of it.
        how: flags of the operation's own.
        user_data: what its completion carries.
        buffer: number of a registered buffer.
        personality: credentials to be used.
        other: a second descriptor.
        third: a third address.
    """

    operation: int
    flags: int
    priority: int
    fd: int
    offset: int
    address: int
    length: int
    how: int
    user_data: int
    buffer: int
    personality: int
    other: int
    third: int


def entry_of(raw: bytes, order: str) -> RingEntry:
    """An entry from its bytes; `order` as `struct` writes it."""
    return RingEntry(*struct.unpack(order + _FORM, raw))


Call = tuple[str, tuple[int, ...]]
"""A system call: its name, and arguments as its handler takes them."""


def _at_place(k: Thread, e: RingEntry) -> bool:
    """True if the file is read or written where the entry says, not at its position."""
    file = k.files.get(e.fd)
    if e.how & ~7:  # RWF_HIPRI, DSYNC and SYNC change nothing here
        raise LinuxError(errno.EOPNOTSUPP)
    return file.seekable and e.offset != _IN_PLACE


def _reads(k: Thread, e: RingEntry) -> Call:
    if _at_place(k, e):
        return "pread64", (e.fd, e.address, e.length, e.offset)
    return "read", (e.fd, e.address, e.length)


def _writes(k: Thread, e: RingEntry) -> Call:
    if _at_place(k, e):
        return "pwrite64", (e.fd, e.address, e.length, e.offset)
    return "write", (e.fd, e.address, e.length)


def _reads_vectors(k: Thread, e: RingEntry) -> Call:
    if _at_place(k, e):
        return "preadv", (e.fd, e.address, e.length, e.offset, 0)
    return "readv", (e.fd, e.address, e.length)


def _writes_vectors(k: Thread, e: RingEntry) -> Call:
    if _at_place(k, e):
        return "pwritev", (e.fd, e.address, e.length, e.offset, 0)
    return "writev", (e.fd, e.address, e.length)


def _opens(k: Thread, e: RingEntry) -> Call:
    return "openat", (e.fd, e.address, e.how, e.length)


def _closes(k: Thread, e: RingEntry) -> Call:
    if isinstance(k.files.get(e.fd), UringFile):
        raise LinuxError(errno.EBADF)
    return "close", (e.fd,)


_CALLS: Final[dict[int, Callable[[Thread, RingEntry], Call]]] = {
    READV: _reads_vectors,
    WRITEV: _writes_vectors,
    3: lambda k, e: ("fdatasync" if e.how & 1 else "fsync", (e.fd,)),
    READ_FIXED: _reads,
    WRITE_FIXED: _writes,
    8: lambda k, e: ("sync_file_range", (e.fd, e.offset, e.length, e.how)),
    9: lambda k, e: ("sendmsg", (e.fd, e.address, e.how)),
    RECVMSG: lambda k, e: ("recvmsg", (e.fd, e.address, e.how)),
    ACCEPT: lambda k, e: ("accept4", (e.fd, e.address, e.offset, e.how)),
    16: lambda k, e: ("connect", (e.fd, e.address, e.offset)),
    17: lambda k, e: ("fallocate", (e.fd, e.length, e.offset, e.address)),
    18: _opens,
    _CLOSE: _closes,
    21: lambda k, e: ("statx", (e.fd, e.address, e.how, e.length, e.offset)),
    READ: _reads,
    WRITE: _writes,
    24: lambda k, e: ("fadvise64", (e.fd, e.offset, e.length, e.how)),
    25: lambda k, e: ("madvise", (e.address, e.length, e.how)),
    SEND: lambda k, e: ("sendto", (e.fd, e.address, e.length, e.how, 0, 0)),
    RECV: lambda k, e: ("recvfrom", (e.fd, e.address, e.length, e.how, 0, 0)),
    28: lambda k, e: ("openat2", (e.fd, e.address, e.offset, e.length)),
    29: lambda k, e: ("epoll_ctl", (e.fd, e.length, e.offset, e.address)),
    33: lambda k, e: ("tee", (e.other, e.fd, e.length, e.how)),
    34: lambda k, e: ("shutdown", (e.fd, e.length)),
    35: lambda k, e: ("renameat2", (e.fd, e.address, e.length, e.offset, e.how)),
    36: lambda k, e: ("unlinkat", (e.fd, e.address, e.how)),
    37: lambda k, e: ("mkdirat", (e.fd, e.address, e.length)),
    38: lambda k, e: ("symlinkat", (e.address, e.fd, e.offset)),
    39: lambda k, e: ("linkat", (e.fd, e.address, e.length, e.offset, e.how)),
    41: lambda k, e: ("fsetxattr", (e.fd, e.address, e.offset, e.length, e.how)),
    42: lambda k, e: ("setxattr", (e.third, e.address, e.offset, e.length, e.how)),
    43: lambda k, e: ("fgetxattr", (e.fd, e.address, e.offset, e.length)),
    44: lambda k, e: ("getxattr", (e.third, e.address, e.offset, e.length)),
    45: lambda k, e: ("socket", (e.fd, e.offset, e.length)),
}
"""The operations that stand for system calls."""

_OF_RINGS: Final = frozenset(
    (NOP, POLL_ADD, POLL_REMOVE, TIMEOUT, TIMEOUT_REMOVE, ASYNC_CANCEL, LINK_TIMEOUT, FILES_UPDATE)
)
_PLACED: Final = frozenset({18, 28, 45, ACCEPT})
"""Operations that give a new file its place by `RingEntry.other`, which is not there."""
_WITHOUT_FILE: Final = frozenset({NOP, TIMEOUT, TIMEOUT_REMOVE, LINK_TIMEOUT, 25, 42, 44, 45}) | {
    *(18, 19, 21, 28, 35, 36, 37, 38, 39),
    *(POLL_REMOVE, ASYNC_CANCEL, FILES_UPDATE),
}
"""Operations whose `RingEntry.fd` is no open file that is used."""

KNOWN: Final = _OF_RINGS | _CALLS.keys()
"""All operations that there are."""


def malformed(entry: RingEntry) -> int:
    """The errno of an entry that nothing can be begun with, as of its fields; else 0."""
    operation = entry.operation
    if operation == _CLOSE:
        fields = (entry.offset, entry.address, entry.length, entry.how, entry.buffer)
        return errno.EINVAL if any(fields) else errno.EBADF if entry.flags & FIXED_FILE else 0
    wrong = operation in _PLACED and entry.other
    if operation == POLL_ADD:
        wrong = entry.length & ~_POLL_AGAIN
    elif operation == POLL_REMOVE:
        wrong = entry.length
    elif operation == ASYNC_CANCEL:
        wrong = entry.how & ~_CANCEL_FLAGS
    elif operation == TIMEOUT:
        wrong = entry.length != 1 or entry.buffer
    elif operation == LINK_TIMEOUT:
        wrong = entry.length != 1 or entry.offset
    again = _ACCEPT_AGAIN if operation == ACCEPT else 0
    if operation not in _PRIORITIZED:
        wrong = wrong or entry.priority & ~again
    return errno.EINVAL if wrong else 0


def call_of(k: Thread, entry: RingEntry) -> Call:
    """The system call that an entry stands for.

    Raises:
        LinuxError: it cannot be made of this file.
    """
    return _CALLS[entry.operation](k, entry)


def uses_file(entry: RingEntry) -> bool:
    """True if an entry's `fd` is an open file that is used."""
    return entry.operation not in _WITHOUT_FILE


def least(k: Thread, entry: RingEntry) -> int:
    """The least result that does not end a chain: one that is short does, too."""
    if entry.operation in _LENIENT:
        return _ANY
    whole = entry.operation in _WHOLE
    if entry.operation in (SEND, RECV):
        whole = bool(entry.how & _WAITALL)
    if not whole:
        return 0
    if entry.operation not in (READV, WRITEV):
        return entry.length
    order = "<" if k.arch.byteorder == "little" else ">"
    raw = k.memory.read(entry.address, 16 * entry.length)
    return sum(size for _, size in struct.iter_unpack(order + "QQ", raw))

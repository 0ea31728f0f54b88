"""Constants of Linux's file system calls, in the values of the generic ABI.

The four open flags that differ between architectures are kept in these values inside and
converted where system calls enter (`engine.linux.files`).
"""

from collections.abc import Mapping

O_ACCMODE = 0o3
O_RDONLY = 0o0
O_WRONLY = 0o1
O_RDWR = 0o2
O_CREAT = 0o100
O_EXCL = 0o200
O_NOCTTY = 0o400
O_TRUNC = 0o1000
O_APPEND = 0o2000
O_NONBLOCK = 0o4000
O_DSYNC = 0o10000
O_ASYNC = 0o20000
O_DIRECT = 0o40000
O_LARGEFILE = 0o100000
O_DIRECTORY = 0o200000
O_NOFOLLOW = 0o400000
O_NOATIME = 0o1000000
O_CLOEXEC = 0o2000000
O_PATH = 0o10000000
O_TMPFILE_BIT = 0o20000000

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_REMOVEDIR = 0x200
AT_EACCESS = 0x200
AT_SYMLINK_FOLLOW = 0x400
AT_EMPTY_PATH = 0x1000

POLLIN, POLLPRI, POLLOUT, POLLERR, POLLHUP, POLLNVAL = 1, 2, 4, 8, 0x10, 0x20
POLLRDNORM, POLLWRNORM, POLLRDHUP = 0x40, 0x100, 0x2000

READABLE = POLLIN | POLLRDNORM
WRITABLE = POLLOUT | POLLWRNORM

MAX_NAME = 255
MAX_PATH = 4096
MAX_LINKS = 40
MAX_RW_COUNT = 0x7FFFF000

_VARYING = {
    "O_DIRECTORY": O_DIRECTORY,
    "O_NOFOLLOW": O_NOFOLLOW,
    "O_DIRECT": O_DIRECT,
    "O_LARGEFILE": O_LARGEFILE,
}
_VARYING_BITS = O_DIRECTORY | O_NOFOLLOW | O_DIRECT | O_LARGEFILE


def from_guest(flags: int, table: Mapping[str, int]) -> int:
    """Open flags of an architecture in the values used here."""
    result = flags & ~_VARYING_BITS
    for name, ours in _VARYING.items():
        if flags & table[name]:
            result |= ours
    return result


def to_guest(flags: int, table: Mapping[str, int]) -> int:
    """Open flags used here in the values of an architecture."""
    result = flags & ~_VARYING_BITS
    for name, ours in _VARYING.items():
        if flags & ours:
            result |= table[name]
    return result

"""Functions of scripts on strings, memory and addresses of networks.

Strings are bytes without the NUL. Sources: bpftrace's src/stdlib/strings.bt, strings.bpf.c, and
CreateStrncmp of src/ast/irbuilderbpf.cpp.
"""

import errno
import os
import signal
from typing import Final

from engine.trace.bpftrace.values import AF_INET, AF_INET6, InetValue, MacValue

NOT_FOUND: Final = -1
_SIGNALS: Final = range(65)
CONCATENATED: Final = 1024
"""Bytes that `str_concat()` has room for, the NUL included."""
_OTHER_ERRORS: Final = {
    errno.EIO: "I/O error",
    errno.EBADF: "Bad file number",
    errno.EAGAIN: "Try again (operation would block)",
    errno.ENOMEM: "Out of memory",
    errno.EXDEV: "Cross-device link",
    errno.ENFILE: "File table overflow",
    errno.ENOTTY: "Not a typewriter",
    errno.EDOM: "Math argument out of domain of func",
    errno.ERANGE: "Math result not representable",
    errno.EDEADLK: "Resource deadlock would occur",
    errno.ENOLCK: "No record locks available",
    errno.ENOSYS: "Invalid system call number",
    errno.ELOOP: "Too many symbolic links encountered",
    errno.EBADMSG: "Not a data message",
    errno.EILSEQ: "Illegal byte sequence",
    errno.EOPNOTSUPP: "Operation not supported on transport endpoint",
    errno.ENETRESET: "Network dropped connection because of reset",
    errno.EDQUOT: "Quota exceeded",
    errno.ECANCELED: "Operation Canceled",
    133: "Memory page has hardware error",
}
"""Errors that have another text than strerror(3) has for them: that of the kernel's errno.h."""


def compare_strings(left: bytes, right: bytes, count: int) -> int:
    """0 if two strings begin with the same bytes, up to a NUL or a count; else 1: `strncmp()`."""
    return int(until_nul(left[:count]) != until_nul(right[:count]))


def compare_memory(left: bytes, right: bytes, count: int) -> int:
    """As memcmp(3): 0, or the difference of the first bytes that are not the same."""
    for one, other in zip(left[:count], right[:count], strict=False):
        if one != other:
            return one - other
    return 0


def find_string(haystack: bytes, needle: bytes) -> int:
    """The place of a string in another one; -1 if it is not there: `strstr()`."""
    return until_nul(haystack).find(until_nul(needle))


def contains_string(haystack: bytes, needle: bytes) -> bool:
    """A string is in another one: `strcontains()`."""
    return find_string(haystack, needle) != NOT_FOUND


def string_length(text: bytes) -> int:
    """Bytes up to the NUL: `strlen()`."""
    return len(until_nul(text))


def concatenated(left: bytes, right: bytes) -> bytes:
    """Two strings as one, which is cut where there is no room: `str_concat()`."""
    return (until_nul(left) + until_nul(right))[: CONCATENATED - 1]


def until_nul(text: bytes) -> bytes:
    """The text before the first NUL."""
    return text.split(b"\0", 1)[0]


def error_text(number: int) -> bytes:
    """The meaning of an error of Linux: `strerror()`; the sign does not matter."""
    number = abs(number)
    if number in _OTHER_ERRORS:
        return _OTHER_ERRORS[number].encode()
    known = number in errno.errorcode or not number
    return os.strerror(number).encode() if known else b"Unknown error"


def signal_text(number: int) -> bytes:
    """The meaning of a signal of Linux: `signal_name()`."""
    if number not in _SIGNALS:
        return b"N/A"
    known = number in signal.valid_signals()
    text = signal.strsignal(number) if known else f"Unknown signal {number}"
    return (text or "").encode()


def inet_value(
    address: int | bytes, family: int | None = None, *, little: bool = True
) -> InetValue:
    """The result of `ntop()`.

    Args:
        address: 4 or 16 bytes, or a number of 32 bits as a register holds it.
        family: AF_INET or AF_INET6; None where the size of the address tells it.
        little: the machine is little-endian.
    """
    if isinstance(address, int):
        address = (address & 0xFFFFFFFF).to_bytes(4, "little" if little else "big")
    if family is None:
        family = AF_INET6 if len(address) == 16 else AF_INET
    return InetValue(family, bytes(address[: 16 if family == AF_INET6 else 4]))


def network_bytes(text: bytes) -> bytes | None:
    """The 4 or 16 bytes of a written address of a network: `pton()`; None if it is none."""
    import socket  # few scripts are about networks

    family = socket.AF_INET6 if b":" in text else socket.AF_INET
    try:
        return socket.inet_pton(family, text.decode("ascii"))
    except (OSError, ValueError):
        return None


def mac_value(data: bytes) -> MacValue:
    """The result of `macaddr()`."""
    return MacValue(bytes(data[:6]).ljust(6, b"\0"))

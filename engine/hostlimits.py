"""Limits that the host sets to this process: looked at first, and named where one was reached.

What runs into one fails anywhere, with an error that is about a file or a library and not about
the limit.
"""

import errno
import resource
from collections.abc import Iterator
from typing import Final

from engine.errors import CommandError

_FILES: Final = 64
"""Open files that every command gets along with: libraries, the guest's files, pipes."""
_ADDRESSES: Final = 256 << 20
"""Bytes of address space that Python and the libraries take."""
_STACK: Final = 256 << 10
_KILO: Final = 10


def ensure_room() -> None:
    """See to it that the limits let a command begin.

    A limit that may be raised by anybody is.

    Raises:
        CommandError: one is too low.
    """
    for kind, least, what in (
        (resource.RLIMIT_NOFILE, _FILES, "files may be open at once (ulimit -n)"),
        (resource.RLIMIT_AS, _ADDRESSES, "bytes of address space may be used (ulimit -v)"),
        (resource.RLIMIT_STACK, _STACK, "bytes of stack may be used (ulimit -s)"),
    ):
        soft, hard = resource.getrlimit(kind)
        if soft == resource.RLIM_INFINITY or soft >= least:
            continue
        if hard != resource.RLIM_INFINITY and hard < least:
            raise CommandError(f"no more than {hard} {what}; kprobe-tui needs {least}")
        resource.setrlimit(kind, (least, hard))


def limit_reached(error: BaseException) -> str:
    """The words for an error that is a limit of the host's; "" for any other error."""
    for one in _chain(error):
        words = _words(one)
        if words:
            return words
    return ""


def because_of(error: OSError) -> str:
    """The words for an error of the host's: the limit that was reached, or the error's own."""
    return _words(error) or error.strerror or str(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it came of."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _words(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"there is no memory left{_set(resource.RLIMIT_AS, 'ulimit -v', _KILO)}"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return f"no thread can be started{_set(resource.RLIMIT_NPROC, 'ulimit -u')}"
    if not isinstance(error, OSError):
        return ""
    match error.errno:
        case errno.EMFILE:
            return f"too many files are open{_set(resource.RLIMIT_NOFILE, 'ulimit -n')}"
        case errno.ENFILE:
            return "too many files are open on this host (sysctl fs.file-max)"
        case errno.EFBIG:
            limit = _set(resource.RLIMIT_FSIZE, "ulimit -f")
            return f"a file grows too large{limit}" if limit else ""
        case errno.ENOMEM:
            return f"there is no memory left{_set(resource.RLIMIT_AS, 'ulimit -v', _KILO)}"
    return ""


def _set(kind: int, name: str, shift: int = 0) -> str:
    """The value of a limit and the word that sets it; "" where there is none."""
    soft, _ = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY:
        return ""
    return f": the limit is {soft >> shift} {'KB ' * bool(shift)}({name})"

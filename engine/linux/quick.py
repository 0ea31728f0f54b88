"""System calls that may be carried out inside the processor, which then need not be left.

They change no text of the program, and no registers but those of their results and, as signals
do, those of a frame.
"""

from collections.abc import Callable
from typing import Final

from engine.arch.base import LinuxAbi
from engine.cpu.ram import EXECUTE
from engine.guest.mapping import page_up
from engine.linux.memory import MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_PRIVATE
from engine.linux.memory import MAP_TYPE as _MAP_TYPE
from engine.linux.thread import Thread

Condition = Callable[[Thread, tuple[int, ...]], bool]
"""True if a call is one of them, from the thread and the call's registers, its number first."""

_ALWAYS: Final = frozenset(
    (
        *("getpid", "gettid", "getppid", "getpgrp", "getpgid", "getsid"),
        *("getuid", "geteuid", "getgid", "getegid"),
        *("read", "readv", "pread64", "preadv", "write", "writev", "pwrite64", "pwritev"),
        *("lseek", "fstat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat"),
        *("open", "openat", "close", "dup", "dup2", "dup3", "readlink", "readlinkat", "getcwd"),
        *("getdents64", "fsync", "umask", "poll", "ppoll", "futex", "pipe", "pipe2"),
        *("clock_gettime", "clock_getres", "gettimeofday", "time", "getrandom", "uname"),
        *("rt_sigprocmask", "rt_sigaction", "sigaltstack", "sched_yield"),
        *("rt_sigreturn", "kill", "tkill", "tgkill", "brk"),
    )
)


def _anonymous(k: Thread, registers: tuple[int, ...]) -> bool:
    """Fresh memory of the program's own, in a free place and without code."""
    _, _, _, prot, flags = registers[:5]
    kind = flags & (_MAP_TYPE | MAP_ANONYMOUS | MAP_FIXED | MAP_FIXED_NOREPLACE)
    return kind == MAP_PRIVATE | MAP_ANONYMOUS and not prot & EXECUTE


def _data(k: Thread, registers: tuple[int, ...]) -> bool:
    """There is no code in the range."""
    start, size = registers[1:3]
    for mapping in k.memory.overlapping(start, start + page_up(size)):
        if mapping.perms & EXECUTE:
            return False
    return True


def _stays_data(k: Thread, registers: tuple[int, ...]) -> bool:
    """Nor will there be any."""
    return not registers[3] & EXECUTE and _data(k, registers)


_SOMETIMES: Final[dict[str, Condition]] = {
    "mmap": _anonymous,
    "munmap": _data,
    "mprotect": _stays_data,
    "madvise": _data,
}


def table(linux: LinuxAbi) -> dict[int, Condition | None]:
    """The numbers of all of them; None where a call always is one."""
    numbers: dict[int, Condition | None] = {}
    for number, name in linux.syscalls.items():
        if name in _ALWAYS or name in _SOMETIMES:
            numbers[number] = _SOMETIMES.get(name)
    return numbers

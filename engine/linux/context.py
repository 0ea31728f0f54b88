"""The process as handlers of files and time see it, and the arguments they are given.

Handlers are plain functions `handler(ctx, *arguments) -> int | Wait`; arguments are raw
unsigned 64-bit register values (use `s32`, `s64`, `u32`). A family module ends with
`SYSCALLS`, name to handler; `table.py` merges the families.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from engine.arch.base import Arch
from engine.guest.memory import Memory
from engine.linux.clock import Clock
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.table import FileTable
from engine.linux.fs.vfs import Directory
from engine.linux.net.network import Network
from engine.linux.wait import Wait

Handler = Callable[..., int | Wait]
SyscallTable = Mapping[str, Handler]


class Context(Protocol):
    """The process that makes the call, as handlers of files and time see it.

    Attributes:
        arch: its architecture.
        memory: its memory; a `GuestFaultError` from it becomes EFAULT.
        files: its open files.
        fs: the tree it sees.
        net: the network it is on.
        umask: its file mode mask.
        directory: its working directory.
    """

    arch: Arch
    memory: Memory
    files: FileTable
    fs: FileSystem
    net: Network
    umask: int
    directory: Directory

    @property
    def pid(self) -> int:
        """The caller's process id."""

    @property
    def clock(self) -> Clock:
        """The caller's time."""

    def send_signal(self, number: int) -> None:
        """Queue a signal to the process itself (SIGPIPE of a write to a closed pipe)."""

    def wake(self) -> None:
        """Something has happened that may end the wait of its call."""

    def limit(self, name: str) -> int:
        """Soft resource limit by name: "nofile", "fsize", "stack", ..."""

    def random_bytes(self, count: int) -> bytes:
        """Seeded random bytes: the same for the same seed."""

    def with_signal_mask(self, mask: int, call: Callable[[], int | Wait]) -> int | Wait:
        """Run a call (ppoll, pselect6, epoll_pwait) under another signal mask."""

    def set_second_result(self, value: int) -> None:
        """The second result of a call that has two (pipe on IA-64)."""

    def unsupported(self, what: str) -> None:
        """Report once, at exit, that the guest asked for something that is not there."""


def s32(value: int) -> int:
    """The low 32 bits as a signed number (an int argument)."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def u32(value: int) -> int:
    """The low 32 bits as an unsigned number."""
    return value & 0xFFFFFFFF


def s64(value: int) -> int:
    """A register as a signed number (off_t, ssize_t)."""
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >> 63 else value

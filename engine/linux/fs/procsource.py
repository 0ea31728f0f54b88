"""The guest as /proc asks for it; `procview` implements it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from engine.linux.fs.table import FileTable
from engine.linux.fs.terminal import Jobs, Terminal
from engine.linux.fs.vfs import Directory, Node

if TYPE_CHECKING:
    from engine.linux.fs.procmem import ProcMemory

VSYSCALLS: Final = b"[vsyscall]"
"""Name of the page beyond user space whose addresses are system calls: no mapping's size."""


class MapEntry(Struct, frozen=True):
    """One mapping as a line of /proc/PID/maps.

    Attributes:
        start: first address.
        end: first address beyond.
        flags: as "r-xp".
        offset: offset in the file.
        resident: bytes of it that are in memory.
        path: path of the file or a name such as b"[heap]"; b"" for anonymous memory.
        dev: device number of the file.
        ino: inode number of the file.
        grows: the first thread's stack, or a part of it.
    """

    start: int
    end: int
    flags: str
    offset: int = 0
    path: bytes = b""
    dev: int = 0
    ino: int = 0
    resident: int = 0
    grows: bool = False


class ProcStatus(Struct, frozen=True):
    """Numbers for status and stat; masks have bit N-1 for signal N.

    `peak` is of bytes in memory, `most` of bytes that were mapped.
    """

    ppid: int = 1
    tracer: int = 0
    umask: int = 0o022
    state: str = "R"
    nice: int = 0
    policy: int = 0
    threads: int = 1
    capabilities: int = 0
    pgrp: int = 0
    session: int = 0
    blocked: int = 0
    pending: int = 0
    cpus: int = 1
    affinity: int = 1
    ignored: int = 0
    caught: int = 0
    start_time: int = 0
    cpu_ticks: int = 0
    children_ticks: int = 0
    start_code: int = 0
    end_code: int = 0
    start_stack: int = 0
    peak: int = 0
    most: int = 0
    no_new_privileges: int = 0
    seccomp: int = 0
    seccomp_filters: int = 0


class ProcProcess(Protocol):
    """One process of the guest."""

    @property
    def pid(self) -> int:
        """Process id."""

    @property
    def identity(self) -> tuple[int, int]:
        """The process's user and group."""

    @property
    def files(self) -> FileTable:
        """The process's descriptors."""

    @property
    def directory(self) -> Directory:
        """Working directory."""

    @property
    def exe(self) -> bytes:
        """Guest path of its program, as readlink shows it."""

    @property
    def program(self) -> Node | None:
        """The file of its program; None where only the path is known."""

    @property
    def shared(self) -> bool:
        """True if it shares the memory that it has not changed since a fork."""

    @property
    def terminal(self) -> Terminal | None:
        """The process's controlling terminal."""

    @property
    def comm(self) -> bytes:
        """The shown thread's name, at most 15 bytes."""

    def set_comm(self, name: bytes) -> None:
        """Rename it (a write to /proc/self/comm)."""

    def cmdline(self) -> bytes:
        """Arguments, each ended by a zero byte."""

    def environ(self) -> bytes:
        """Environment at start, each entry ended by a zero byte."""

    def auxv(self) -> bytes:
        """The auxiliary vector as in its memory."""

    def maps(self) -> Iterable[MapEntry]:
        """The process's mappings in the order of their addresses."""

    def status(self) -> ProcStatus:
        """Numbers for status and stat."""

    def call(self) -> bytes:
        """The system call that it is in, as /proc/PID/syscall shows it; LinuxError if secret."""

    def address_space(self) -> "ProcMemory":
        """The process's memory; LinuxError where none may have it."""

    def limits(self) -> Sequence[tuple[str, int, int]]:
        """(name as in `Context.limit`, soft, hard); all ones = unlimited."""

    def threads(self) -> Sequence[int]:
        """Thread ids, the first thread's first."""


class ProcSource(Protocol):
    """All processes of the guest."""

    @property
    def jobs(self) -> Jobs:
        """Who uses terminals."""

    def current_pid(self) -> int:
        """Process that makes the present system call."""

    def current_tid(self) -> int:
        """Thread that makes the present system call."""

    def pids(self) -> Sequence[int]:
        """All processes."""

    def process(self, pid: int) -> ProcProcess | None:
        """One process, by its own id or that of one of its threads, which is shown then."""

    def thread(self, pid: int, tid: int) -> ProcProcess | None:
        """One thread of a process."""

    def busy_time(self) -> int:
        """Nanoseconds that the processor has had something to do."""

    def memory(self) -> tuple[int, int]:
        """Bytes of the machine's memory, and those of it that are free."""

    def cpuinfo(self) -> bytes:
        """Text of /proc/cpuinfo for the guest's architecture."""

    @property
    def cpus(self) -> int:
        """Processors that the guest is told of."""

    def network(self) -> Mapping[bytes, Callable[[], bytes]]:
        """Contents of the files of /proc/net by name."""

    @property
    def release(self) -> bytes:
        """Kernel release, as uname gives it."""

    @property
    def hostname(self) -> bytes:
        """Host name, as uname gives it."""

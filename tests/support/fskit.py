"""A process without a CPU: calls handlers of the file families over a flat memory."""

import itertools
import os
from collections.abc import Callable
from typing import Any

from engine.arch import by_name
from engine.errors import GuestFaultError
from engine.linux import (
    descriptors,
    dirs,
    eventfiles,
    files,
    notify,
    pipes,
    poll,
    stat,
    transfer,
    xattr,
)
from engine.linux.errno import LinuxError
from engine.linux.fs.data import Budget
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.procmem import ProcMemory
from engine.linux.fs.procsource import MapEntry, ProcStatus
from engine.linux.fs.table import FileTable
from engine.linux.fs.terminal import Jobs, Terminal
from engine.linux.fs.vfs import Directory, OpenFile
from engine.linux.fs.view import View
from engine.linux.net import calls as network
from engine.linux.net.network import Network
from engine.linux.wait import Wait

SIZE = 1 << 22
AT_FDCWD = -100


class NothingShared:
    """No file is mapped."""

    def may_be_written(self, identity: object) -> bool:
        return False


class FlatMemory:
    """Guest addresses 0x1000 up to SIZE."""

    shared = NothingShared()

    def __init__(self) -> None:
        self.data = bytearray(SIZE)

    def accessible(self, address: int, size: int, write: bool) -> bool:
        return address >= 0x1000 and address + size <= SIZE

    def read(self, address: int, size: int) -> bytes:
        if size and not self.accessible(address, size, False):
            raise GuestFaultError(address, "read")
        return bytes(self.data[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        if data and not self.accessible(address, len(data), True):
            raise GuestFaultError(address, "write")
        self.data[address : address + len(data)] = data

    def read_cstring(self, address: int, limit: int) -> bytes:
        if not self.accessible(address, 1, False):
            raise GuestFaultError(address, "read")
        end = self.data.find(0, address, address + limit)
        return bytes(self.data[address : end if end >= 0 else address + limit])


class FixedClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000_000

    def monotonic(self) -> int:
        return self.now

    def realtime(self) -> int:
        return 1_700_000_000_000_000_000 + self.now

    def file_time(self, host: int) -> int:
        return host


class OneJob:
    """`Jobs` of a process without a session."""

    def own(self) -> tuple[int, int, int]:
        return 42, 42, 1

    def terminal(self) -> Terminal | None:
        return None

    def may_take(self) -> bool:
        return False

    def attach(self, terminal: Terminal) -> None:
        """Nobody has one."""

    def detach(self, terminal: Terminal) -> None:
        """Nobody has one."""

    def hang_up(self, terminal: Terminal) -> None:
        """Nobody has one."""

    def session_of(self, group: int) -> int | None:
        return None

    def shielded(self, number: int) -> bool:
        return False

    def orphaned(self, group: int) -> bool:
        return False

    def signal(self, group: int, number: int) -> None:
        """Nobody is there."""


class OneProcess:
    """`ProcSource` and `ProcProcess` of a single process."""

    pid = 42
    release = b"6.1.0"
    hostname = b"guest"
    exe = b"/bin/prog"
    program = None
    comm = b"prog"

    def __init__(self) -> None:
        self.context: Any = None

    @property
    def jobs(self) -> Jobs:
        return OneJob()

    @property
    def identity(self) -> tuple[int, int]:
        return 1000, 1000

    @property
    def files(self) -> FileTable:
        table: FileTable = self.context.files
        return table

    @property
    def directory(self) -> Directory:
        found: Directory = self.context.directory
        return found

    @property
    def shared(self) -> bool:
        return False

    @property
    def terminal(self) -> Terminal | None:
        return None

    def current_pid(self) -> int:
        return 42

    def current_tid(self) -> int:
        return 42

    def pids(self) -> list[int]:
        return [42]

    def process(self, pid: int) -> "OneProcess | None":
        return self if pid == 42 else None

    def busy_time(self) -> int:
        return 0

    def memory(self) -> tuple[int, int]:
        return 1 << 30, 1 << 29

    def thread(self, pid: int, tid: int) -> "OneProcess | None":
        return self if pid == tid == 42 else None

    def cpuinfo(self) -> bytes:
        return b"processor\t: 0\n"

    @property
    def cpus(self) -> int:
        return 1

    def network(self) -> dict[bytes, Callable[[], bytes]]:
        return {}

    def set_comm(self, name: bytes) -> None:
        self.comm = name

    def cmdline(self) -> bytes:
        return b"prog\0-v\0"

    def environ(self) -> bytes:
        return b"A=1\0"

    def auxv(self) -> bytes:
        return bytes(16)

    def maps(self) -> list[MapEntry]:
        return [
            MapEntry(0x400000, 0x401000, "r-xp", 0, b"/bin/prog", 0x28, 5),
            MapEntry(0x7FFF0000, 0x7FFFF000, "rw-p", 0, b"[stack]"),
        ]

    def status(self) -> ProcStatus:
        return ProcStatus()

    def call(self) -> bytes:
        return b"running\n"

    def address_space(self) -> ProcMemory:
        raise LinuxError(13)

    def limits(self) -> list[tuple[str, int, int]]:
        return [("nofile", 1024, 4096)]

    def threads(self) -> list[int]:
        return [42]


class FailedError(Exception):
    """A call returned -errno."""


class Process:
    """Calls handlers by name; strings and buffers are put into memory."""

    def __init__(
        self,
        view: View | None = None,
        *,
        arch: str = "x86_64",
        stdio: tuple[OpenFile, ...] = (),
        cwd: bytes = b"/tmp",
        budget: Budget | None = None,
        uid: int = 1000,
    ) -> None:
        self.arch = by_name(arch)
        self.memory: Any = FlatMemory()
        self.clock = FixedClock()
        self.pid = 42
        self.umask = 0o022
        self.limits = {"nofile": 1024, "fsize": (1 << 64) - 1}
        self.signals: list[int] = []
        self.wakes = 0
        self.reports: list[str] = []
        counter = itertools.count(1)
        self.proc = OneProcess()
        self.fs = FileSystem(
            view or View(),
            self.proc,
            uid=uid,
            gid=uid,
            clock=self.clock,
            random_bytes=lambda count: bytes(next(counter) & 0xFF for _ in range(count)),
            budget=budget,
        )
        self.net = Network(self.clock, self.fs.numbers)
        self.directory = self.fs.directory(cwd)
        self.files = FileTable(stdio, lambda: self.limits["nofile"])
        self.proc.context = self
        self.table: dict[str, Callable[..., int | Wait]] = {}
        for family in (
            *(files, stat, dirs, descriptors, pipes, poll, eventfiles, network, transfer),
            *(notify, xattr),
        ):
            self.table.update(family.SYSCALLS)
        self._arena = 0x2000

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def wake(self) -> None:
        self.wakes += 1

    def limit(self, name: str) -> int:
        return self.limits[name]

    def random_bytes(self, count: int) -> bytes:
        return bytes(count)

    def with_signal_mask(self, mask: int, call: Callable[[], int | Wait]) -> int | Wait:
        return call()

    def unsupported(self, what: str) -> None:
        self.reports.append(what)

    def put(self, data: bytes) -> int:
        """Copy bytes into memory; returns the address."""
        if self._arena + len(data) + 64 > SIZE // 2:
            self._arena = 0x2000
        address = self._arena
        self.memory.write(address, data)
        self._arena = (address + len(data) + 63) & ~63
        return address

    def call(self, name: str, *arguments: int | bytes | str) -> int:
        """The result or -errno; AssertionError if the call would wait."""
        result = self.start(name, *arguments)
        assert isinstance(result, int), "the call waits"
        return result

    def start(self, name: str, *arguments: int | bytes | str) -> int | Wait:
        """As `call`, but a wait is returned."""
        raw = []
        for argument in arguments:
            if isinstance(argument, str):
                argument = os.fsencode(argument)
            if isinstance(argument, bytes):
                argument = self.put(argument + b"\0")
            raw.append(argument & 0xFFFFFFFFFFFFFFFF)
        try:
            return self.table[name](self, *raw)
        except LinuxError as error:
            return -error.code
        except GuestFaultError:
            return -14

    def open(self, path: bytes | str, flags: int = 0, mode: int = 0o644) -> int:
        return self.call("openat", AT_FDCWD, path, flags, mode)

    def read(self, fd: int, count: int) -> bytes:
        """What a read delivers."""
        buffer = SIZE // 2
        done = self.call("read", fd, buffer, count)
        if done < 0:
            raise FailedError(-done)
        return bytes(self.memory.read(buffer, done))

    def write(self, fd: int, data: bytes) -> int:
        return self.call("write", fd, self.put(data), len(data))

    def cat(self, path: bytes | str) -> bytes:
        """Contents of a file."""
        fd = self.open(path)
        if fd < 0:
            raise FailedError(-fd)
        pieces = []
        while piece := self.read(fd, 1 << 16):
            pieces.append(piece)
        self.call("close", fd)
        return b"".join(pieces)

    def ls(self, path: bytes | str) -> list[bytes]:
        """Names in a directory."""
        fd = self.open(path, 0o200000)
        if fd < 0:
            raise FailedError(-fd)
        names = []
        while (count := self.call("getdents64", fd, SIZE // 2, 4096)) > 0:
            raw = bytes(self.memory.read(SIZE // 2, count))
            while raw:
                length = int.from_bytes(raw[16:18], "little")
                names.append(raw[19:length].split(b"\0")[0])
                raw = raw[length:]
        self.call("close", fd)
        return [name for name in names if name not in (b".", b"..")]

    def stat(self, path: bytes | str, *, follow: bool = True) -> dict[str, int]:
        """Attributes, or {"errno": N}."""
        buffer = SIZE // 2
        result = self.call("newfstatat", AT_FDCWD, path, buffer, 0 if follow else 0x100)
        if result < 0:
            return {"errno": -result}
        raw = bytes(self.memory.read(buffer, 144))

        def field(at: int, size: int = 8) -> int:
            return int.from_bytes(raw[at : at + size], "little")

        return {
            "dev": field(0),
            "ino": field(8),
            "nlink": field(16),
            "mode": field(24, 4),
            "uid": field(28, 4),
            "gid": field(32, 4),
            "size": field(48),
            "blocks": field(64),
            "mtime": field(88),
        }

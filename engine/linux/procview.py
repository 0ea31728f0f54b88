"""The process as /proc shows it."""

from collections.abc import Iterable, Sequence

from engine.linux.fs.procsource import MapEntry, ProcStatus
from engine.linux.fs.table import FileTable
from engine.linux.machine import HOSTNAME, RELEASE
from engine.linux.process import Process


class ProcessView:
    """Implements `fs.procsource.ProcProcess` for the guest's process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def files(self) -> FileTable:
        """Its descriptors."""
        return self._process.files

    @property
    def cwd(self) -> bytes:
        """Working directory."""
        return self._process.cwd

    @property
    def exe(self) -> bytes:
        """Guest path of its program."""
        return self._process.exe

    @property
    def comm(self) -> bytes:
        """Name."""
        return self._process.comm

    def set_comm(self, name: bytes) -> None:
        """Rename it."""
        self._process.set_comm(name)

    def cmdline(self) -> bytes:
        """Arguments, each ended by a zero byte."""
        return b"".join(word + b"\0" for word in self._process.argv)

    def environ(self) -> bytes:
        """Environment at start."""
        return b"".join(word + b"\0" for word in self._process.env)

    def auxv(self) -> bytes:
        """The auxiliary vector."""
        return self._process.start.auxv if self._process.start else b""

    def maps(self) -> Iterable[MapEntry]:
        """Its mappings; neighbours that differ in nothing are shown as one."""
        last: MapEntry | None = None
        for mapping in self._process.memory.mappings:
            letters = "".join(
                letter if mapping.perms >> bit & 1 else "-" for bit, letter in enumerate("rwx")
            )
            entry = MapEntry(
                mapping.start,
                mapping.end,
                # As Linux shows its area, whether or not a probe uses it at the moment.
                "--xp" if mapping.reserved else letters + ("s" if mapping.shared else "p"),
                mapping.offset,
                mapping.name.encode(errors="surrogateescape"),
                *mapping.inode,
            )
            if (
                last is not None
                and last.end == entry.start
                and (last.flags, last.path) == (entry.flags, entry.path)
                and not entry.path.startswith(b"/")
            ):
                last = MapEntry(last.start, entry.end, *_rest(last))
                continue
            if last is not None:
                yield last
            last = entry
        if last is not None:
            yield last

    def status(self) -> ProcStatus:
        """Numbers for status and stat."""
        process = self._process
        state = process.signals
        ignored = caught = 0
        for number, action in state.actions.items():
            if action.handler == 1:
                ignored |= 1 << (number - 1)
            elif action.handler:
                caught |= 1 << (number - 1)
        code = process.start.code if process.start else (0, 0)
        return ProcStatus(
            ppid=process.ppid,
            pgrp=process.pid,
            session=process.pid,
            blocked=state.blocked,
            pending=state.pending.mask,
            ignored=ignored,
            caught=caught,
            start_time=100_000,
            cpu_ticks=process.cpu_time() // 10_000_000,
            start_code=code[0],
            end_code=code[1],
            start_stack=process.start.sp if process.start else 0,
        )

    def limits(self) -> Sequence[tuple[str, int, int]]:
        """All limits."""
        return [(name, soft, hard) for name, (soft, hard) in self._process.limits.items()]

    def threads(self) -> Sequence[int]:
        """Thread ids."""
        return [self._process.pid]


def _rest(entry: MapEntry) -> tuple[str, int, bytes, int, int]:
    return entry.flags, entry.offset, entry.path, entry.dev, entry.ino


class ProcView:
    """Implements `fs.procsource.ProcSource`.

    Attributes:
        only: the only process, None until there is one.
    """

    release = RELEASE
    hostname = HOSTNAME

    def __init__(self) -> None:
        self.only: Process | None = None

    def _known(self) -> Process:
        assert self.only is not None
        return self.only

    def current_pid(self) -> int:
        """The only process."""
        return self._known().pid

    def current_tid(self) -> int:
        """Its only thread."""
        return self._known().pid

    def pids(self) -> Sequence[int]:
        """All processes."""
        return [self._known().pid]

    def process(self, pid: int) -> ProcessView | None:
        """One process."""
        known = self._known()
        return ProcessView(known) if pid == known.pid else None

    def cpuinfo(self) -> bytes:
        """Text of /proc/cpuinfo."""
        linux = self._known().arch.linux
        lines = {
            "processor": "0",
            "model name": f"kprobe-tui emulated {linux.machine}",
            **linux.cpuinfo,
        }
        return "".join(f"{name:<15}\t: {text}\n" for name, text in lines.items()).encode() + b"\n"

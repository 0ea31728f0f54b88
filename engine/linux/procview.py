"""Processes as /proc shows them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from engine.linux.fs.procsource import MapEntry, ProcStatus
from engine.linux.fs.table import FileTable
from engine.linux.fs.terminal import Jobs, Terminal
from engine.linux.fs.vfs import Directory
from engine.linux.jobs import MachineJobs
from engine.linux.machine import Machine
from engine.linux.net import procnet
from engine.linux.process import Process
from engine.linux.system import HOSTNAME, RELEASE


class ProcessView:
    """Implements `fs.procsource.ProcProcess`."""

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
    def directory(self) -> Directory:
        """Working directory."""
        return self._process.place.directory

    @property
    def exe(self) -> bytes:
        """Guest path of its program."""
        return self._process.space.exe

    @property
    def shared(self) -> bool:
        """True if it shares the memory that it has not changed since a fork."""
        process = self._process
        if process.parent is not None and process.parent.exit is None and not process.executed:
            return True
        return any(not each.executed and each.exit is None for each in process.children.values())

    @property
    def terminal(self) -> Terminal | None:
        """Its controlling terminal."""
        return self._process.terminal

    @property
    def comm(self) -> bytes:
        """Name."""
        return self._process.leader.comm

    def set_comm(self, name: bytes) -> None:
        """Rename it."""
        self._process.leader.set_comm(name)

    def cmdline(self) -> bytes:
        """Arguments, each ended by a zero byte."""
        if self._process.exit is not None:
            return b""
        return b"".join(word + b"\0" for word in self._process.space.argv)

    def environ(self) -> bytes:
        """Environment at start."""
        return b"".join(word + b"\0" for word in self._process.space.env)

    def auxv(self) -> bytes:
        """The auxiliary vector."""
        start = self._process.space.start
        return start.auxv if start else b""

    def maps(self) -> Iterable[MapEntry]:
        """Its mappings; neighbours that differ in nothing are shown as one."""
        last: MapEntry | None = None
        at_fork = 0
        if self._process.exit is not None:
            return
        for mapping in self._process.space.memory.mappings:
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
                and (last.flags, last.path, at_fork) == (entry.flags, entry.path, mapping.at_fork)
                and not entry.path.startswith(b"/")
            ):
                last = MapEntry(last.start, entry.end, *_rest(last))
                continue
            if last is not None:
                yield last
            last, at_fork = entry, mapping.at_fork
        if last is not None:
            yield last

    def status(self) -> ProcStatus:
        """Numbers for status and stat."""
        process = self._process
        state = process.leader.signals
        ignored = caught = 0
        for number, action in process.hand.actions.items():
            if action.handler == 1:
                ignored |= 1 << (number - 1)
            elif action.handler:
                caught |= 1 << (number - 1)
        start = process.space.start
        code = start.code if start else (0, 0)
        return ProcStatus(
            ppid=process.ppid,
            umask=process.place.umask,
            state=self._state(),
            pgrp=process.group,
            session=process.session,
            blocked=state.blocked,
            pending=state.waiting(),
            threads=len(process.threads),
            cpus=process.machine.cpus,
            affinity=process.leader.affinity,
            ignored=ignored,
            caught=caught,
            start_time=100_000,
            cpu_ticks=process.cpu_time() // 10_000_000,
            children_ticks=process.children_time // 10_000_000,
            start_code=code[0],
            end_code=code[1],
            start_stack=start.sp if start else 0,
        )

    def _state(self) -> str:
        """The letter for what it does: a zombie, stopped, running or waiting."""
        process = self._process
        if process.exit is not None:
            return "Z"
        if process.stopped:
            return "T"
        waits = all(thread.wait is not None for thread in process.threads.values())
        return "S" if waits else "R"

    def limits(self) -> Sequence[tuple[str, int, int]]:
        """All limits."""
        return [(name, soft, hard) for name, (soft, hard) in self._process.limits.items()]

    def threads(self) -> Sequence[int]:
        """Thread ids."""
        return list(self._process.threads)


def _rest(entry: MapEntry) -> tuple[str, int, bytes, int, int]:
    return entry.flags, entry.offset, entry.path, entry.dev, entry.ino


class ProcView:
    """Implements `fs.procsource.ProcSource`.

    Attributes:
        machine: whose processes are shown, None until there is one.
    """

    release = RELEASE
    hostname = HOSTNAME

    def __init__(self) -> None:
        self.machine: Machine | None = None

    def _known(self) -> Machine:
        assert self.machine is not None
        return self.machine

    @property
    def jobs(self) -> Jobs:
        """Who uses terminals."""
        return MachineJobs(self._known())

    def current_pid(self) -> int:
        """Process that makes the present system call."""
        return self._known().caller.pid

    def current_tid(self) -> int:
        """Thread that makes the present system call."""
        return self._known().caller.tid

    def pids(self) -> Sequence[int]:
        """All processes."""
        return sorted(self._known().processes)

    def process(self, pid: int) -> ProcessView | None:
        """One process, by its own id or that of one of its threads."""
        machine = self._known()
        thread = machine.threads.get(pid)
        found = machine.processes.get(pid) if thread is None else thread.process
        return None if found is None else ProcessView(found)

    def network(self) -> Mapping[bytes, Callable[[], bytes]]:
        """Contents of the files of /proc/net by name."""

        def content(text: procnet.Text) -> bytes:
            return text(self._known().net)

        return {name: partial(content, text) for name, text in procnet.FILES.items()}

    def cpuinfo(self) -> bytes:
        """Text of /proc/cpuinfo."""
        linux = self._known().arch.linux
        found: list[str] = []
        for number in range(self.cpus):
            lines = {
                "processor": str(number),
                "model name": f"kprobe-tui emulated {linux.machine}",
                **linux.cpuinfo,
            }
            found += [f"{name:<15}\t: {text}\n" for name, text in lines.items()]
            found.append("\n")
        return "".join(found).encode()

    @property
    def cpus(self) -> int:
        """Processors that the guest is told of."""
        return self._known().cpus

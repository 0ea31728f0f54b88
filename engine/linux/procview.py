"""Processes as /proc shows them."""

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.cpu.ram import PAGE
from engine.linux.errno import LinuxError
from engine.linux.fs.procsource import VSYSCALLS, MapEntry, ProcStatus
from engine.linux.fs.table import FileTable
from engine.linux.fs.terminal import Jobs, Terminal
from engine.linux.fs.vfs import Directory, Node
from engine.linux.init import CAPABILITIES, INIT
from engine.linux.jobs import MachineJobs
from engine.linux.loader import STACK
from engine.linux.machine import Machine
from engine.linux.process import LIMITS, Process
from engine.linux.space import AddressSpace
from engine.linux.system import HOSTNAME, RELEASE
from engine.linux.thread import Thread

if TYPE_CHECKING:
    from engine.linux.fs.procmem import ProcMemory

NETWORK_FILES: Final = (
    *(b"tcp", b"tcp6", b"udp", b"udp6", b"raw", b"raw6", b"unix", b"netlink", b"packet", b"dev"),
    *(b"if_inet6", b"route", b"ipv6_route", b"arp", b"sockstat", b"sockstat6"),
)
"""Names of the files of /proc/net (`engine.linux.net.procnet.FILES`)."""


def _named(entry: MapEntry, space: AddressSpace) -> MapEntry:
    """A part of the stack without the first frame has no name (vma_is_initial_stack)."""
    if entry.grows and space.start is not None and space.start.sp:
        return entry if entry.start <= space.start.sp <= entry.end else replace(entry, path=b"")
    return entry


class ProcessView:
    """Implements `fs.procsource.ProcProcess`."""

    def __init__(
        self, process: Process, thread: Thread | None = None, *, alone: bool = False
    ) -> None:
        """Show a process.

        Args:
            process: which.
            thread: the one of its threads that is shown; its first by default.
            alone: processor time is the thread's alone.
        """
        self._process = process
        self._thread = thread or process.leader
        self._alone = alone

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def identity(self) -> tuple[int, int]:
        """The process's user and group."""
        return self._process.uid, self._process.gid

    @property
    def files(self) -> FileTable:
        """The process's descriptors."""
        return self._thread.files

    @property
    def directory(self) -> Directory:
        """Working directory."""
        return self._thread.directory

    @property
    def exe(self) -> bytes:
        """Guest path of its program, as readlink shows it."""
        space = self._process.space
        return space.exe if space.program is None else space.program.shown()

    @property
    def program(self) -> Node | None:
        """The file of its program; None where only the path is known."""
        found = self._process.space.program
        return None if found is None else found.node

    @property
    def shared(self) -> bool:
        """True if it shares the memory that it has not changed since a fork."""
        process = self._process
        if process.parent is not None and process.parent.exit is None and not process.executed:
            return True
        return any(not each.executed and each.exit is None for each in process.children.values())

    @property
    def terminal(self) -> Terminal | None:
        """The process's controlling terminal."""
        return self._process.terminal

    @property
    def comm(self) -> bytes:
        """Name."""
        return self._thread.comm

    def set_comm(self, name: bytes) -> None:
        """Rename it."""
        self._thread.set_comm(name)

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
        """The process's mappings; neighbours that differ in nothing are shown as one."""
        last: MapEntry | None = None
        at_fork = 0
        if self._process.exit is not None:
            return
        space = self._process.space
        memory, own, low = space.memory, space.exe, space.stack_low()
        for mapping in memory.mappings:
            if mapping.reserved or (mapping.name == STACK and mapping.end <= low):
                continue  # the engine's own windows, and where the stack has not grown to
            path = mapping.name.encode(errors="surrogateescape")
            letters = "".join(
                letter if mapping.perms >> bit & 1 else "-" for bit, letter in enumerate("rwx")
            )
            entry = MapEntry(
                max(mapping.start, low) if mapping.name == STACK else mapping.start,
                mapping.end,
                letters + ("s" if mapping.shared else "p"),
                mapping.offset,
                self.exe if path == own else path,
                *mapping.inode,
                memory.resident_of(mapping),
                mapping.name == STACK,
            )
            if (
                last is not None
                and last.end == entry.start
                and (last.flags, last.path, at_fork) == (entry.flags, entry.path, mapping.at_fork)
                and not entry.path.startswith(b"/")
            ):
                together = last.resident + entry.resident
                last = replace(last, end=entry.end, resident=together)
                continue
            if last is not None:
                yield _named(last, space)
            last, at_fork = entry, mapping.at_fork
        if last is not None:
            yield _named(last, space)
        calls = self._thread.arch.linux.vsyscalls
        if calls is not None:
            yield MapEntry(calls[0], calls[0] + PAGE, "--xp", path=VSYSCALLS)

    def status(self) -> ProcStatus:
        """Numbers for status and stat."""
        process, thread = self._process, self._thread
        state = thread.signals
        spent = thread.cpu_time() if self._alone else process.cpu_time()
        ignored = caught = 0
        for number, action in process.hand.actions.items():
            if action.handler == 1:
                ignored |= 1 << (number - 1)
            elif action.handler:
                caught |= 1 << (number - 1)
        space = process.space
        memory, start = space.memory, space.start
        code = start.code if start else (0, 0)
        return ProcStatus(
            ppid=process.ppid,
            no_new_privileges=process.knobs["no_new_privs"],
            seccomp=0 if thread.seccomp is None else thread.seccomp.mode,
            seccomp_filters=0 if thread.seccomp is None else len(thread.seccomp.filters),
            tracer=thread.tracee.tracer.tid if thread.tracee is not None else 0,
            umask=thread.umask,
            state=self._state(),
            pgrp=process.group,
            session=process.session,
            blocked=state.blocked,
            pending=state.waiting(),
            threads=len(process.threads),
            cpus=process.machine.cpus,
            affinity=thread.affinity,
            nice=thread.nice,
            policy=thread.policy,
            ignored=ignored,
            caught=caught,
            start_time=process.began // 10_000_000,
            cpu_ticks=spent // 10_000_000,
            children_ticks=process.children_time // 10_000_000,
            start_code=code[0],
            end_code=code[1],
            start_stack=start.sp if start else 0,
            peak=max(memory.resident(), memory.peak) if process.exit is None else 0,
            most=memory.table.most - memory.table.size + space.size(),
        )

    def _state(self) -> str:
        """The letter for what it does: a zombie, stopped, running or waiting."""
        process = self._process
        if process.exit is not None:
            return "Z"
        if self._thread.tracee is not None and self._thread.tracee.stopped:
            return "t"
        if self._thread.stopped:
            return "T"
        return "R" if self._thread.wait is None else "S"

    def call(self) -> bytes:
        """The system call that it is in."""
        from engine.linux.ptrace import UserRegisters  # few programs ask

        self._check_access()
        thread = self._thread
        if thread.ended:
            raise LinuxError(errno.ESRCH)
        if thread.wait is None and not thread.stopped:
            return b"running\n"
        registers, roles = UserRegisters(thread), thread.arch.roles
        call = thread.original if thread.wait is None else thread.call.number
        places = [registers.read_register(name) for name in (roles.sp, roles.pc)]
        if call < 0:
            return b"-1 0x%x 0x%x\n" % (places[0], places[1])
        words = [registers.read_register(name) for name in thread.arch.linux.arguments]
        if thread.arch.linux.result in thread.arch.linux.arguments and thread.wait is None:
            words[0] = thread.first
        return b"%d %s\n" % (call, b" ".join(b"0x%x" % word for word in (*words, *places)))

    def address_space(self) -> "ProcMemory":
        """The process's memory."""
        from engine.linux.tracedmemory import SpaceMemory  # few programs ask

        self._check_access()
        return SpaceMemory(self._process.space)

    def _check_access(self) -> None:
        if not self._thread.visible_to(self._process.machine.caller):
            raise LinuxError(errno.EACCES)

    def limits(self) -> Sequence[tuple[str, int, int]]:
        """All limits."""
        return [(name, soft, hard) for name, (soft, hard) in self._process.limits.items()]

    def threads(self) -> Sequence[int]:
        """Thread ids."""
        return list(self._process.threads)


class InitView:
    """Implements `fs.procsource.ProcProcess` for process 1: what others may see of it."""

    exe = b"/sbin/init"
    comm = b"init"
    shared = False

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._init = machine.init
        self.files = FileTable()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._init.pid

    @property
    def identity(self) -> tuple[int, int]:
        """The user and group of init."""
        return self._init.uid, self._init.gid

    @property
    def directory(self) -> Directory:
        """Working directory."""
        return self._machine.fs.root

    @property
    def program(self) -> None:
        """None: the file of process 1 is not in the guest's tree."""

    @property
    def terminal(self) -> Terminal | None:
        """None: init has no terminal."""
        return None

    def set_comm(self, name: bytes) -> None:
        """Change nothing: none may name init."""

    def cmdline(self) -> bytes:
        """Arguments, each ended by a zero byte."""
        return self.exe + b"\0"

    def environ(self) -> bytes:
        """Not shown."""
        return b""

    def auxv(self) -> bytes:
        """Not shown."""
        return b""

    def maps(self) -> Iterable[MapEntry]:
        """Not shown."""
        return ()

    def status(self) -> ProcStatus:
        """Numbers for status and stat."""
        init = self._init
        return ProcStatus(
            ppid=0,
            umask=0,
            state="S",
            capabilities=CAPABILITIES,
            pgrp=init.group,
            session=init.session,
            cpus=self._machine.cpus,
            affinity=init.affinity,
        )

    def call(self) -> bytes:
        """Not shown."""
        raise LinuxError(errno.EACCES)

    def address_space(self) -> "ProcMemory":
        """Not shown."""
        raise LinuxError(errno.EACCES)

    def limits(self) -> Sequence[tuple[str, int, int]]:
        """All limits."""
        return [(name, soft, hard) for name, (soft, hard) in LIMITS.items()]

    def threads(self) -> Sequence[int]:
        """Thread ids."""
        return [self._init.pid]


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
        return [INIT, *sorted(self._known().processes)]

    def process(self, pid: int) -> ProcessView | InitView | None:
        """One process, by its own id or that of one of its threads."""
        machine = self._known()
        if pid == INIT:
            return InitView(machine)
        thread = machine.threads.get(pid)
        found = machine.processes.get(pid) if thread is None else thread.process
        return None if found is None else ProcessView(found, thread)

    def thread(self, pid: int, tid: int) -> ProcessView | InitView | None:
        """One thread of a process."""
        machine = self._known()
        if pid == INIT:
            return InitView(machine) if tid == INIT else None
        thread = machine.threads.get(tid)
        if thread is None or thread.pid != pid:
            return None
        return ProcessView(thread.process, thread, alone=True)

    def network(self) -> Mapping[bytes, Callable[[], bytes]]:
        """Contents of the files of /proc/net by name."""

        def content(name: bytes) -> bytes:
            from engine.linux.net import procnet  # all kinds of sockets, for who looks there

            return procnet.FILES[name](self._known().net)

        return {name: partial(content, name) for name in NETWORK_FILES}

    def busy_time(self) -> int:
        """Nanoseconds that the processor has had something to do."""
        return self._known().busy_time()

    def memory(self) -> tuple[int, int]:
        """Bytes of the machine's memory, and those of it that are free."""
        machine = self._known()
        total = machine.memory_limit.total
        return total, max(total - machine.caller.memory.used(), 0)

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

"""The computer that guests run on: one processor, its time, and all processes."""

import errno
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from engine.arch.base import Arch
from engine.cpu.base import Cpu
from engine.errors import GuestFaultError, KprobeTuiError
from engine.guest.hooks import GuestHooks
from engine.guest.mapping import MappingError
from engine.linux.clock import BLOCK_NS, CALL_NS, GuestClock
from engine.linux.context import s32
from engine.linux.ending import Crash, Exit
from engine.linux.errno import LinuxError
from engine.linux.fs.filesystem import FileSystem
from engine.linux.futexqueues import FutexQueues
from engine.linux.host import HostEvents
from engine.linux.images import ProgramImages
from engine.linux.init import INIT, Init
from engine.linux.memorylimit import MemoryLimit
from engine.linux.net.network import Network
from engine.linux.signals import SI_KERNEL, SIGKILL, PendingSignal, info_kill
from engine.linux.space import SpaceEvents
from engine.linux.sysv import SysvObjects
from engine.linux.thread_events import Moments

if TYPE_CHECKING:
    from engine.linux.process import Process
    from engine.linux.recorder import KernelRecorder
    from engine.linux.space import AddressSpace
    from engine.linux.thread import Thread

_FIRST_PID: Final = 1000
_PID_MAX: Final = 1 << 22
"""PID_MAX_LIMIT: ids begin again behind it,"""
_RESERVED: Final = 300
"""and then with this one (RESERVED_PIDS)."""
_NAMES: Final = 1 << 16
"""Names of threads that are kept."""
_MISSING: Final = 1000
"""Kinds of what is not there that are kept."""
_PROCESS: Final = 32 << 10
"""Bytes that a process takes beside its memory, mappings, and descriptors."""
_THREAD: Final = 16 << 10
"""Bytes that a thread takes: the stack that Linux gives it in the kernel."""
_CRASHES: Final = 100
"""Faults that are kept."""
_TOO_MANY_PLACES: Final = (
    "the guest touched its vast mappings in too many places: each takes 4 MiB of the 64 GiB that "
    "a guest has room for"
)


class Expiring(Protocol):
    """A part that has something to do by itself, whoever makes system calls."""

    def next_expiry(self) -> int | None:
        """When that is due by time alone (CLOCK_MONOTONIC); None where time brings nothing."""

    def post_expired(self) -> None:
        """Do what is due."""


class InnerKernel(Struct):
    """A kernel that runs as a process, and has tasks of its own: user-mode Linux.

    Attributes:
        process: the process that the kernel runs as.
        task: id of its task that runs; None as long as it has none.
    """

    process: "Process"
    task: int | None = None


class Machine:
    """The computer that all processes of a guest are on.

    Attributes:
        arch: its architecture.
        cpu: its processor.
        registers: the same for system calls and signals, which change registers of the program.
        clock: its time.
        cpus: processors that the guest is told of.
        memory_limit: the limit for what all processes together may make the host hold.
        fs: the tree of files; given by whoever makes it.
        net: the network that all processes are on; given likewise.
        sysv: the System V objects.
        images: files that are run or mapped.
        hooks: what the layers above want to be told of all processes.
        spaces: what they want to be told of address spaces.
        host: what the host has to say.
        processes: those that have not been waited for, by process id.
        threads: those that run or wait, by thread id.
        init: process 1, which is neither of these.
        first: the process that the run began with; its end is that of the run.
        current: the thread whose registers the processor holds; given by the first one.
        caller: the thread whose system call is carried out, or was last; a call that has waited
            is finished while another thread is the current one.
        serving: the thread whose system call is being carried out just now; None for none.
        delivering: number of the signal whose frame is being made; 0 for none.
        comms: name of each thread that there is or was, by thread id.
        pids: the process of each of them, likewise.
        tid: id of the current thread.
        task: id under which events show what runs: `tid`, or that of the inner kernel's task.
        inner: the kernel that runs as one of the processes; None without one.
        woken: blocked threads that something has happened to, in order.
        futexes: threads that wait for words of memory.
        blank: the processor's state when a program begins.
        moments: who is told of what happens to threads.
        yielding: the current thread lets others run.
        exit: how the run has ended, None while it goes on.
        crashes: the first fatal faults of processes but the first, in words.
        crash_count: number of all of them.
        missing: what was asked for and is not there, with how often.
        failures: calls in which the engine failed, with how often, by name and place.
        syscall_count: system calls so far.
        carried_out: instructions so far that the processor refused and the kernel carried out.
        attend: called when the host asks for attention.
        armed: all that has something to do by itself: processes with timers, and rings.
        timers_changed: called when that has changed.
        started: told of a new thread that can run.
        left: told of a thread that ends, and what it ends with, as wait4 tells it.
        held: told of a thread that stops.
        released: told of one that does so no more.
        buried: told of a process that has ended and is traced no longer.
        recorder: records the run; None for nobody.
    """

    fs: FileSystem
    net: Network
    first: "Process"
    current: "Thread"
    caller: "Thread"

    def __init__(
        self,
        arch: Arch,
        cpu: Cpu,
        *,
        clock: GuestClock,
        seed: int,
        memory_limit: MemoryLimit,
        cpus: int = 1,
    ) -> None:
        """Set up a computer on which nothing runs.

        Args:
            arch: its architecture.
            cpu: the processor.
            clock: its time.
            seed: for the random numbers it gives.
            memory_limit: for what its processes may make the host hold.
            cpus: processors that the guest is told of.
        """
        self.arch = arch
        self.cpu = self.registers = cpu
        self.clock = clock
        self.cpus = cpus
        self.memory_limit = memory_limit
        self.sysv = SysvObjects()
        self.images = ProgramImages()
        self.hooks = GuestHooks()
        self.spaces = SpaceEvents()
        self.host = HostEvents()
        self.processes: dict[int, Process] = {}
        self.threads: dict[int, Thread] = {}
        self.init = Init(cpus)
        self.comms: dict[int, bytes] = {}
        self.pids: dict[int, int] = {}
        self.serving: Thread | None = None
        self.delivering = 0
        self.tid = self.task = _FIRST_PID
        self.inner: InnerKernel | None = None
        self.woken: deque[Thread] = deque()
        self.futexes = FutexQueues(self.wake)
        self.blank = cpu.save()
        self.moments = Moments()
        self.yielding = False
        self.exit: Exit | None = None
        self.crashes: list[str] = []
        self.crash_count = 0
        self.missing: dict[str, int] = {}
        self.failures: dict[tuple[str, str], tuple[str, int]] = {}
        self.syscall_count = self.carried_out = 0
        self.attend: Callable[[], None] = lambda: None
        self.armed: dict[Expiring, None] = {}
        self.timers_changed: Callable[[], None] = lambda: None
        self.started: Callable[[Thread], None] = lambda thread: None
        self.left: Callable[[Thread, int], None] = lambda thread, code: None
        self.held: Callable[[Thread], None] = lambda thread: None
        self.released: Callable[[Thread], None] = lambda thread: None
        self.buried: Callable[[Process], None] = lambda process: None
        self.recorder: KernelRecorder | None = None
        self._random = random.Random(seed)
        self._next_id = _FIRST_PID
        self._turn_began = self._turn_tick = 0

    def new_id(self) -> int:
        """A process or thread id that nobody has."""
        while self._next_id in self.threads or self._next_id in self.processes:
            self._advance()
        number = self._next_id
        self._advance()
        if len(self.comms) > _NAMES:  # those of the oldest threads that are gone
            gone = [each for each in self.comms if each not in self.threads]
            for each in gone[: _NAMES // 2]:
                del self.comms[each], self.pids[each]
        return number

    def _advance(self) -> None:
        self._next_id = self._next_id + 1 if self._next_id < _PID_MAX - 1 else _RESERVED

    def crashed(self, text: str) -> None:
        """Remember the fatal fault of a process but the first."""
        self.crash_count += 1
        if len(self.crashes) < _CRASHES:
            self.crashes.append(text)

    def random_bytes(self, count: int) -> bytes:
        """Seeded random bytes."""
        return self._random.randbytes(count)

    def find_thread(self, tid: int, own: "Thread") -> "Thread":
        """The thread of an id, 0 for one's own; ESRCH if there is none, EPERM for root's."""
        tid = s32(tid)
        found = self.threads.get(tid) if tid else own
        if found is None:
            process = self.processes.get(tid)
            if process is None or not process.threads:
                raise LinuxError(errno.EPERM if tid == INIT else errno.ESRCH)
            found = process.leader  # the first has ended, the process goes on
        return found

    def see_thread(self, tid: int, own: "Thread") -> "Thread | Init":
        """The same for calls that only look: at process 1, too."""
        return self.init if s32(tid) == INIT else self.find_thread(tid, own)

    def enter_process(self, process: "Process") -> None:
        """There is one process more."""
        self.memory_limit.change(_PROCESS)
        self.processes[process.pid] = process

    def forget_process(self, process: "Process") -> None:
        """A process has been waited for: nothing is left of it."""
        if self.processes.pop(process.pid, None) is not None:
            self.memory_limit.change(-_PROCESS)

    def enter_thread(self, thread: "Thread") -> None:
        """There is one thread more."""
        self.memory_limit.change(_THREAD)
        self.threads[thread.tid] = thread

    def forget_thread(self, thread: "Thread") -> None:
        """A thread has ended."""
        if self.threads.pop(thread.tid, None) is not None:
            self.memory_limit.change(-_THREAD)

    def require_task(self, *, process: bool) -> None:
        """ENOMEM if nothing is left for another thread, or for another process and its first."""
        self.memory_limit.require(_THREAD + (_PROCESS if process else 0))

    def becomes_first(self, thread: "Thread") -> None:
        """A thread takes over its process's id, as the others are gone (exec)."""
        for threads in (self.threads, thread.process.threads):
            threads.pop(thread.tid, None)
            threads[thread.pid] = thread
        self.comms[thread.pid], self.pids[thread.pid] = thread.comm, thread.pid
        if thread.tracee is not None:
            tracees = thread.tracee.tracer.process.tracees
            tracees[thread.pid] = tracees.pop(thread.tid)
        before, thread.tid = thread.tid, thread.pid
        if thread is self.current:
            self.tid, self.task = thread.tid, self.task_of(thread)
        if self.recorder is not None:
            self.recorder.became_first(before, thread)

    def holds(self, thread: "Thread") -> None:
        """The processor has a thread's registers."""
        self.current, self.tid, self.task = thread, thread.tid, self.task_of(thread)

    def task_of(self, thread: "Thread") -> int:
        """The id under which events show a thread.

        The inner kernel's programs run for its task in processes that it traces.
        """
        inner = self.inner
        if inner is None or inner.task is None:
            return thread.tid
        mine = thread.process is inner.process
        traced = thread.tracee is not None and thread.tracee.tracer.process is inner.process
        return inner.task if mine or traced else thread.tid

    def wake(self, thread: "Thread") -> None:
        """Something has happened that may end a thread's wait."""
        if thread.wait is not None and not thread.nudged:
            thread.nudged = True
            self.woken.append(thread)

    def interrupt(self, item: PendingSignal) -> None:
        """A signal of the user's, as at a terminal: to its foreground group.

        Without a terminal that is the group of the first process.
        """
        terminal = self.first.terminal
        group = terminal.group if terminal is not None else self.first.group
        for process in list(self.processes.values()):
            if process.exit is None and process.group == group:
                process.post(item)

    def unsupported(self, what: str) -> None:
        """Report once, at exit, that the guest asked for something that is not there."""
        if what in self.missing or len(self.missing) < _MISSING:
            self.missing[what] = self.missing.get(what, 0) + 1

    def refused(self, name: str, arguments: tuple[int, ...], error: Exception) -> int:
        """The result of a system call for what its handler has raised: -errno.

        Raises:
            KprobeTuiError: it is one, which no guest may catch.
        """
        if isinstance(error, LinuxError | MappingError):
            return -error.code
        if isinstance(error, GuestFaultError):
            return -errno.EFAULT
        if isinstance(error, OSError):
            return -(error.errno or errno.EIO)
        if isinstance(error, MemoryError | OverflowError):
            return -errno.ENOMEM
        if isinstance(error, KprobeTuiError):
            raise error
        # A defect of ours: this call fails, not the run.
        self._failed(name, arguments, error)
        return -errno.EIO

    def _failed(self, name: str, arguments: tuple[int, ...], error: Exception) -> None:
        """Report at exit that a handler of a system call did not work: where, and with what."""
        from traceback import extract_tb

        frames = extract_tb(error.__traceback__)
        path, line = (frames[-1].filename, frames[-1].lineno) if frames else ("", 0)
        where = f"{'/'.join(path.split('/')[-3:])}:{line}"
        first = f"{name}({', '.join(f'{each:#x}' for each in arguments)})"
        what, count = self.failures.get((name, where), (f"{first}: {error!r} at {where}", 0))
        self.failures[name, where] = what, count + 1

    def turn_time(self) -> int:
        """Nanoseconds of processor time since the current thread got the processor."""
        return self.busy_time() - self._turn_began

    def turn_ticks(self) -> int:
        """Ticks since then."""
        return self.cpu.blocks() - self._turn_tick

    def busy_time(self) -> int:
        """Nanoseconds that the processor has had something to do."""
        return self.syscall_count * CALL_NS + self.cpu.blocks() * BLOCK_NS

    def turn_over(self) -> None:
        """The current thread gives the processor up."""
        current, tick = self.current, self.cpu.blocks()
        now = self.syscall_count * CALL_NS + tick * BLOCK_NS
        current.spent += now - self._turn_began
        current.ran += tick - self._turn_tick
        self._turn_began, self._turn_tick = now, tick

    @property
    def turn(self) -> tuple[int, int]:
        """Nanoseconds and tick at which the current thread's turn has begun."""
        return self._turn_began, self._turn_tick

    @turn.setter
    def turn(self, began: tuple[int, int]) -> None:
        self._turn_began, self._turn_tick = began

    def next_expiry(self) -> int | None:
        """When the next timer of any process expires, or one of a ring."""
        moments = [each.next_expiry() for each in self.armed]
        return min((moment for moment in moments if moment is not None), default=None)

    def post_expired(self) -> None:
        """Post the signals of timers that have run out, and let rings go on."""
        for each in list(self.armed):
            each.post_expired()

    def timers_of(self, process: "Process") -> None:
        """A process's timers have been armed or disarmed."""
        self.arm(process, on=process.timers.armed)

    def arm(self, item: Expiring, *, on: bool) -> None:
        """Something has, or has no longer, something to do by itself."""
        if on:
            self.armed[item] = None
        else:
            self.armed.pop(item, None)
        self.timers_changed()

    def out_of_memory(self, space: "AddressSpace", address: int) -> None:
        """End the processes of an address space, as the memory is used up (oom_kill_process).

        Args:
            space: of the process that needed more.
            address: the place that got none.
        """
        mapping = space.memory.find(address)
        if mapping is not None and mapping.awaits_pages:  # no place for them: --memory is no help
            why = _TOO_MANY_PLACES
        else:
            why = self.memory_used_up
            self.memory_limit.note()
            if mapping is not None and mapping.shared and mapping.backing is not None:
                return  # a file system is full: the call fails with EFAULT
        pc = self.current.pc()
        for process in list(self.processes.values()):
            if process.space is space and process.exit is None:
                if process is self.current.process:
                    process.die(SIGKILL, Crash(SIGKILL, pc, address, why))
                else:  # it ends where it runs next
                    self.crashed(f"process {process.pid} killed by SIGKILL: {why}")
                    process.post(PendingSignal(SIGKILL, info_kill(SIGKILL, SI_KERNEL, 0, 0)))

    @property
    def memory_used_up(self) -> str:
        """The line that tells the user of a guest at the limit of its memory."""
        limit = self.memory_limit.total >> 20
        return f"the guest used up its {limit} MiB of memory; --memory raises the limit"

    def close(self) -> None:
        """Give back what belongs to the host."""
        for process in list(self.processes.values()):
            process.close()
        self.host.close()

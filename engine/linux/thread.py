"""A thread of a guest's process: whose system calls are made, and what it waits for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from engine.cpu.base import Cpu, Stop
from engine.errors import GuestFaultError
from engine.guest.memory import Memory
from engine.linux import signals as sig
from engine.linux.cpus import all_of
from engine.linux.ending import Crash
from engine.linux.errno import LinuxError
from engine.linux.fs.table import FileTable
from engine.linux.fs.vfs import Directory, OpenFile
from engine.linux.process import Process, WorkingPlace
from engine.linux.signals import PendingSignal, SignalState
from engine.linux.space import AddressSpace
from engine.linux.wait import Wait

if TYPE_CHECKING:
    from engine.linux.debugregs import DebugRegisters
    from engine.linux.seccomp import Seccomp
    from engine.linux.tracee import Suspended, Tracee


class SystemCall(NamedTuple):
    """A system call as it was made.

    Attributes:
        number: of the call.
        name: of it, "" where there is none.
        arguments: all six, and no more than the handler takes where it is known.
    """

    number: int
    name: str
    arguments: tuple[int, ...]


class KeptSignal(NamedTuple):
    """A signal that a debugger keeps back.

    Attributes:
        item: the signal, as it was queued.
        crash: of one that the program cannot escape: what it tells of.
        passes: it is delivered when the program goes on.
    """

    item: PendingSignal
    crash: Crash | None
    passes: bool


class FramingCpu:
    """The CPU as signal frames use it: memory with the program's own permissions."""

    def __init__(self, cpu: Cpu, memory: Memory) -> None:
        self.read_register = cpu.read_register
        self.write_register = cpu.write_register
        self.read_block, self.write_block = cpu.read_block, cpu.write_block
        self.float_flags = cpu.float_flags
        self.clear_float_flags = cpu.clear_float_flags
        self.execute = cpu.execute
        self.counter = cpu.counter
        self.entropy = cpu.entropy
        self.read = memory.read
        self.write = memory.write


class Thread:
    """One thread; satisfies `engine.linux.context.Context`.

    What it shares with others (a task_struct's mm, files, signal) is here under the names that
    handlers of system calls use.

    Attributes:
        process: whose thread it is.
        machine: the computer it runs on.
        tid: its id; that of the process for its first thread.
        uid: its user.
        gid: its group.
        arch: its architecture.
        cpu: the processor; it holds this thread's registers while it is the current one.
        clock: its time.
        fs: the tree it sees.
        net: the network it is on.
        files: its open files.
        place: its working directory and file mode mask.
        space: the address space it runs in.
        memory: its mappings.
        framing: the processor with that memory, for frames of signals.
        hooks: what watches the program there.
        signals: what signals do to it, and those that wait.
        comm: its name.
        policy: its scheduling policy.
        nice: its nice value.
        affinity: the processors that it may be on, as a mask.
        refuses_counter: reading the processor's time stamp counter is SIGSEGV (TIF_NOTSC).
        clear_child_tid: address given by set_tid_address.
        robust_list: address given by set_robust_list.
        call: the system call it makes.
        wait: what it waits for, None while it can run.
        kept_signal: a signal that a debugger keeps back.
        kept_call: the stop of the CPU for a system call that one keeps back.
        nudged: something has happened that may end its wait.
        answer: the result of the call that it has waited for, for when it runs again.
        stopped: it does not run: with its process, or for its tracer.
        tracee: as its tracer has it; None while nobody traces it.
        suspended: what it does once it goes on, where a tracer has stopped it.
        original: of one that is traced: number of the system call that it is in; -1 for none.
        first: the first argument of that call, where its result takes the place.
        restarting: (where it would be made again, where it would go on, its result) of a call
            that is about to be made again.
        restart: what a call that is made again by restart_syscall waits for.
        marked: of one that is traced: (name, value) of the register that shows where calls begin.
        passing: address of an instruction that it will execute, and whose probe it has hit; -1 for
            none.
        rewritten: registers that its tracer has changed while it stood, of a run that is recorded.
        debug: its debug registers, if a debugger has ever touched them.
        seccomp: what it may call; None while that is everything.
        traced_outside: its parent outside of the guest traces it, and lets it run.
        registers: of a thread that is not the current one.
        position: likewise, what the clock knows of where it is.
        ended: it will not run again.
        spent: nanoseconds that it has had the processor, but for its present turn.
        ran: the same in ticks of the clock, which system calls do not take.
    """

    def __init__(
        self,
        process: Process,
        tid: int,
        comm: bytes = b"",
        *,
        files: FileTable | None = None,
        place: WorkingPlace | None = None,
    ) -> None:
        """Make a thread of a process; its registers are the caller's care.

        Args:
            process: whose thread.
            tid: its id.
            comm: its name.
            files: its open files; None for those of the process.
            place: its working directory; None for that of the process.
        """
        self.process = process
        self.machine = machine = process.machine
        self.tid = tid
        self.arch, self.cpu, self.clock = machine.arch, machine.registers, machine.clock
        self.fs, self.net = machine.fs, machine.net
        self.files = (files or process.files).join()
        self.place = place or process.place
        self.enter(process.space)
        self.signals = SignalState(process.hand)
        self.signals.pending.count_against(process.machine.memory_limit)
        self.uid, self.gid = process.uid, process.gid
        self.comm = machine.comms[tid] = comm
        machine.pids[tid] = process.pid
        self.policy = self.nice = 0
        self.affinity = all_of(machine.cpus)
        self.refuses_counter = False
        self.clear_child_tid = self.robust_list = 0
        self.call = SystemCall(-1, "", ())
        self.wait: Wait | None = None
        self.kept_signal: KeptSignal | None = None
        self.kept_call: Stop | None = None
        self.nudged = False
        self.answer: int | None = None
        self.stopped = False
        self.tracee: Tracee | None = None
        self.suspended: Suspended | None = None
        self.original, self.first = -1, 0
        self.restarting: tuple[int, int, int] | None = None
        self.restart: Wait | None = None
        self.rewritten: dict[str, int] = {}
        self.marked, self.passing = ("", 0), -1
        self.debug: DebugRegisters | None = None
        self.seccomp: Seccomp | None = None
        self.traced_outside = False
        self.registers: object = None
        self.position: object = None
        self.ended = False
        self.spent = 0
        self._held: tuple[OpenFile, ...] = ()
        self.ran = 0
        process.threads[tid] = process.last = self
        machine.enter_thread(self)

    def enter(self, space: AddressSpace) -> None:
        """Run in an address space from now on."""
        self.space, self.memory, self.hooks = space, space.memory, space.hooks
        self.framing = FramingCpu(self.cpu, space.memory)

    def ticks(self) -> int:
        """Ticks that it has run."""
        machine = self.machine
        return self.ran + (machine.turn_ticks() if machine.current is self else 0)

    def cpu_time(self) -> int:
        """Nanoseconds of processor time."""
        machine = self.machine
        return self.spent + (machine.turn_time() if machine.current is self else 0)

    @property
    def pid(self) -> int:
        """The id of the thread's process."""
        return self.process.pid

    def own_files(self) -> None:
        """From now on its descriptors are shared with nobody (unshare_fd)."""
        before = self.files
        if before.users == 1:
            return
        process = self.process
        self.files = before.copy(lambda: process.limit("nofile")).join()
        before.leave()
        if self is process.leader:
            process.files = self.files

    def own_place(self) -> None:
        """From now on its working directory and mode mask are shared with nobody (unshare_fs)."""
        self.place = WorkingPlace(self.place.directory, self.place.umask)
        if self is self.process.leader:
            self.process.place = self.place

    @property
    def umask(self) -> int:
        """The thread's file mode mask."""
        return self.place.umask

    @umask.setter
    def umask(self, value: int) -> None:
        self.place.umask = value

    @property
    def directory(self) -> Directory:
        """The thread's working directory."""
        return self.place.directory

    @directory.setter
    def directory(self, value: Directory) -> None:
        self.place.directory = value

    def wake(self) -> None:
        """Something has happened that may end its wait."""
        self.machine.wake(self)

    def limit(self, name: str) -> int:
        """Soft resource limit."""
        return self.process.limits[name][0]

    def random_bytes(self, count: int) -> bytes:
        """Seeded random bytes."""
        return self.machine.random_bytes(count)

    def unsupported(self, what: str) -> None:
        """Report once, at exit, that the guest asked for something that is not there."""
        self.machine.unsupported(what)

    def pc(self) -> int:
        """The program counter of the current thread, by the program's own addresses."""
        return self.hooks.original_pc(self.cpu.read_register(self.arch.roles.pc))

    def set_comm(self, name: bytes) -> None:
        """Rename the thread."""
        self.machine.hooks.renaming()
        self.comm = self.machine.comms[self.tid] = name[:15]
        if self.machine.recorder is not None:
            self.machine.recorder.renamed(self)
        self.machine.hooks.renamed(self.tid)

    def set_second_result(self, value: int) -> None:
        """The second result of a call that has two (pipe on IA-64)."""
        self.cpu.write_register(self.arch.linux.second, value)

    def visible_to(self, other: "Thread") -> bool:
        """True if another thread may look into its process (ptrace_may_access)."""
        return self.process is other.process or bool(self.process.knobs["dumpable"])

    @property
    def restricted(self) -> bool:
        """True if some of what programs may do is refused: system calls, or the counter."""
        return self.seccomp is not None or self.refuses_counter

    def doomed(self) -> bool:
        """True if it is about to be killed."""
        kill = sig.bit(sig.SIGKILL)
        return self.process.exit is not None or bool(self.signals.waiting() & kill)

    def leave_wait(self) -> None:
        """End the thread's wait, although nothing has come of it."""
        wait = self.wait
        self.end_wait()
        if wait is not None and wait.leave is not None:
            wait.leave()

    def begin_wait(self, files: tuple[OpenFile, ...]) -> None:
        """Have the thread wait for files, which stay open meanwhile, whoever closes them."""
        self._held = files
        for file in files:
            file.acquire()

    def end_wait(self) -> None:
        """End the thread's wait."""
        self.wait = None
        held, self._held = self._held, ()
        for file in held:
            file.release()

    # -- signals ---------------------------------------------------------------------------

    def send_signal(self, number: int) -> None:
        """Queue a signal to the process itself."""
        self.process.post(PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))

    def post(self, item: PendingSignal) -> bool:
        """Make a signal to this thread pending; False if the queue is full."""
        self.process.prepare(item.number)
        if self.machine.moments.unheard:
            self.tell_unheard(item)
        queued = self.signals.queue(item)
        self.machine.wake(self)
        return queued

    def tell_unheard(self, item: PendingSignal) -> None:
        """Tell listeners of a signal that is sent and has no effect."""
        if self.signals.has_no_effect(item.number):
            for listener in self.machine.moments.unheard:
                listener(self, item)

    def with_signal_mask(self, mask: int, call: Callable[[], int | Wait]) -> int | Wait:
        """Run a call under another signal mask, which lasts until it ends."""
        state = self.signals
        before = state.blocked
        state.blocked = mask & ~sig.UNBLOCKABLE
        try:
            result = call()
        except (LinuxError, GuestFaultError):
            state.blocked = before
            raise
        if isinstance(result, Wait) or state.deliverable():
            state.saved = before
        else:
            state.blocked = before
        return result

"""The guest's process: all that its system calls read and change.

System-call families take a `Process`; `kernel` runs it. There is one with one thread so far:
`signals`, `clear_child_tid`, `robust_list` and `comm` will be the thread's, the rest is the
process's or (clock, processor, random numbers, the host's events) the machine's.
"""

import random
import traceback
from collections.abc import Callable
from typing import Final

from engine.arch.base import Arch
from engine.cpu.base import Cpu
from engine.errors import GuestFaultError
from engine.guest.hooks import GuestHooks
from engine.guest.memory import Memory
from engine.linux import signals as sig
from engine.linux.clock import BLOCK_NS, GuestClock
from engine.linux.ending import Crash, Exit
from engine.linux.errno import LinuxError
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.table import FileTable
from engine.linux.host import HostEvents
from engine.linux.loader import Start
from engine.linux.signals import PendingSignal, SignalState
from engine.linux.sysv import SysvObjects
from engine.linux.timers import Timers
from engine.linux.wait import Wait

INFINITY: Final = (1 << 64) - 1
"""RLIM_INFINITY."""

KNOBS: Final[dict[str, int]] = {
    "pdeathsig": 0,
    "dumpable": 1,
    "slack": 50_000,
    "subreaper": 0,
    "no_new_privs": 0,
}
"""Numbers that prctl sets and gets without any other effect, as they are at the start."""

_PID: Final = 1000
_STACK_LIMIT: Final = 8 << 20
_LIMITS: Final = {
    **dict.fromkeys(("cpu", "fsize", "data", "rss", "as", "locks"), (INFINITY, INFINITY)),
    "stack": (_STACK_LIMIT, INFINITY),
    "core": (0, INFINITY),
    "nproc": (4096, 4096),
    "nofile": (1024, 4096),
    "memlock": (8 << 20, 8 << 20),
    "sigpending": (4096, 4096),
    "msgqueue": (819200, 819200),
    "nice": (0, 0),
    "rtprio": (0, 0),
    "rttime": (INFINITY, INFINITY),
}


class Process:
    """One guest process; satisfies `engine.linux.context.Context`.

    Attributes:
        arch: its architecture.
        cpu: the processor that runs it.
        memory: its address space.
        clock: its time.
        hooks: what the layers above want to be told.
        uid: its user.
        gid: its group.
        pid: its process id, and that of its only thread.
        ppid: its parent's, which is outside the guest.
        memory_budget: bytes of memory it may use.
        fs: the tree it sees; given by whoever makes it.
        files: its open files; likewise.
        umask: its file mode mask.
        cwd: its working directory, an absolute normalised guest path.
        comm: its thread's name.
        exe: guest path of its program.
        argv: its arguments.
        env: its environment at the start.
        start: how its program was loaded.
        heap: first byte and end of what brk gives.
        signals: what signals do, and those that wait.
        timers: its interval timers and POSIX timers.
        limits: resource limits by name: (soft, hard).
        sysv: the System V objects that it sees.
        policy: its scheduling policy.
        nice: its nice value.
        knobs: see `KNOBS`.
        clear_child_tid: address given by set_tid_address.
        robust_list: address given by set_robust_list.
        exit: how it ended, None while it runs.
        missing: what it asked for and is not there, with how often.
        failures: calls in which the engine failed, with how often, by name and place.
        syscall_count: system calls so far.
        host: what the host has to say to it.
    """

    fs: FileSystem
    files: FileTable

    def __init__(
        self,
        arch: Arch,
        cpu: Cpu,
        memory: Memory,
        *,
        clock: GuestClock,
        seed: int,
        hooks: GuestHooks,
        identity: tuple[int, int],
        memory_budget: int,
    ) -> None:
        """Set up a process without files and without a program.

        Args:
            arch: its architecture.
            cpu: the processor.
            memory: its address space, empty.
            clock: its time.
            seed: for the random numbers it is given.
            hooks: of the layers above.
            identity: its user and group.
            memory_budget: bytes of memory it may use.
        """
        self.arch = arch
        self.cpu = cpu
        self.memory = memory
        memory.bytes.on_exhausted = self.out_of_memory
        self.clock = clock
        self.hooks = hooks
        self.uid, self.gid = identity
        self.pid, self.ppid = _PID, 1
        self.memory_budget = memory_budget
        self.umask = 0o022
        self.cwd = b"/"
        self.comm = self.exe = b""
        self.argv: tuple[bytes, ...] = ()
        self.env: tuple[bytes, ...] = ()
        self.start: Start | None = None
        self.heap = (0, 0)
        self.signals = SignalState()
        self.timers = Timers(clock)
        self.limits = dict(_LIMITS)
        self.sysv = SysvObjects()
        self.policy = self.nice = 0
        self.knobs = dict(KNOBS)
        self.clear_child_tid = self.robust_list = 0
        self.exit: Exit | None = None
        self.missing: dict[str, int] = {}
        self.failures: dict[tuple[str, str], tuple[str, int]] = {}
        self.syscall_count = 0
        self.host = HostEvents()
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        """Seeded random bytes."""
        return self._random.randbytes(count)

    def limit(self, name: str) -> int:
        """Soft resource limit."""
        return self.limits[name][0]

    def pc(self) -> int:
        """The program counter, by the program's own addresses."""
        return self.hooks.original_pc(self.cpu.read_register(self.arch.roles.pc))

    def cpu_time(self) -> int:
        """Nanoseconds of processor time: all of the guest's time that it did not sleep."""
        return self.syscall_count * 1000 + self.cpu.blocks() * BLOCK_NS

    def set_comm(self, name: bytes) -> None:
        """Rename the process."""
        self.comm = name[:15]
        self.hooks.renamed()

    def set_second_result(self, value: int) -> None:
        """The second result of a call that has two (pipe on IA-64)."""
        self.cpu.write_register(self.arch.linux.second, value)

    def unsupported(self, what: str) -> None:
        """Report once, at exit, that the guest asked for something that is not there."""
        self.missing[what] = self.missing.get(what, 0) + 1

    def failed(self, name: str, arguments: tuple[int, ...], error: Exception) -> None:
        """Report at exit that a handler of a system call did not work: where, and with what."""
        frames = traceback.extract_tb(error.__traceback__)
        path, line = (frames[-1].filename, frames[-1].lineno) if frames else ("", 0)
        where = f"{'/'.join(path.split('/')[-3:])}:{line}"
        first = f"{name}({', '.join(f'{each:#x}' for each in arguments)})"
        what, count = self.failures.get((name, where), (f"{first}: {error!r} at {where}", 0))
        self.failures[name, where] = what, count + 1

    # -- signals ---------------------------------------------------------------------------

    def send_signal(self, number: int) -> None:
        """Queue a signal to the process itself."""
        self.post(PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))

    def post(self, item: PendingSignal) -> bool:
        """Make a signal pending; False if the queue is full."""
        return self.signals.queue(item)

    def post_expired(self) -> None:
        """Post the signals of timers that have run out."""
        for number in self.timers.expired():
            self.post(PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))
        for timer, times in self.timers.expired_posix():
            pending = self.signals.pending
            old = pending.of_timer(timer.number)
            timer.overrun = times - 1 if old is None else timer.overrun + times
            info = sig.info_timer(timer.signal, timer.number, timer.overrun, timer.value)
            item = PendingSignal(timer.signal, info, timer.number)
            if old is None:
                self.post(item)
            else:
                pending.replace(old, item)

    def with_signal_mask(self, mask: int, call: Callable[[], int | Wait]) -> int | Wait:
        """Run a call under another signal mask, which lasts until it ends."""
        state = self.signals
        before = state.blocked
        state.blocked = mask & ~(sig.bit(sig.SIGKILL) | sig.bit(sig.SIGSTOP))
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

    def hear_host(self) -> None:
        """Take what the host has said."""
        for kind, number in self.host.take():
            if kind == "attention":
                self.hooks.attention()
            elif kind == "signal":
                self.post(PendingSignal(number, sig.info_kill(number, sig.SI_USER, 0, self.uid)))
            elif kind == "end":
                self.exit = Exit(signal=number, by_user=True)
            else:
                self.exit = Exit(limit=kind)

    # -- the end ---------------------------------------------------------------------------

    def finish(self, code: int) -> None:
        """End the process by exit."""
        self.exit = Exit(code=code)

    def die(self, number: int, crash: Crash | None) -> None:
        """End the process by a signal."""
        if self.exit is None:
            self.exit = Exit(signal=number, crash=crash)

    def out_of_memory(self, address: int) -> None:
        """End the process as it has used up its memory."""
        limit = self.memory_budget >> 20
        why = f"the guest used up its {limit} MiB of memory; --memory raises the limit"
        self.die(sig.SIGKILL, Crash(sig.SIGKILL, self.pc(), address, why))

    def close(self) -> None:
        """Give back what belongs to the host."""
        self.memory.shared.flush_all()
        self.files.close_all()
        self.host.close()

"""The guest's kernel: runs the program, carries out its system calls, delivers signals.

One process with one thread so far. What belongs to a thread (registers, signal mask, the
wait it is in) is kept apart from what belongs to the process, so that threads become a list.
"""

import errno
import random
from collections.abc import Callable
from typing import Final

from engine.arch.base import Arch
from engine.cpu.base import Cpu, Stop, StopKind
from engine.errors import GuestFaultError
from engine.guest.hooks import GuestHooks
from engine.guest.memory import MappingError, Memory
from engine.guest.modules import Modules
from engine.linux import coherence, delivery, faults, waiting
from engine.linux import signals as sig
from engine.linux.clock import BLOCK_NS, GuestClock
from engine.linux.ending import Crash, Exit
from engine.linux.errno import LinuxError
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.table import FileTable
from engine.linux.host import HostEvents
from engine.linux.limits import INFINITY
from engine.linux.loader import Start
from engine.linux.process import KNOBS
from engine.linux.signals import PendingSignal, SignalState
from engine.linux.table import EXPECTED_MISSING, build
from engine.linux.timers import Timers
from engine.linux.wait import Wait

__all__ = ["Crash", "Exit", "Kernel"]

_PID: Final = 1000
_QUANTUM_MAX: Final = 1 << 40
_STACK_LIMIT: Final = 8 << 20


class Kernel:
    """One guest process; satisfies `engine.linux.context.Context`."""

    def __init__(
        self,
        arch: Arch,
        cpu: Cpu,
        memory: Memory,
        modules: Modules,
        *,
        clock: GuestClock,
        seed: int,
        hooks: GuestHooks,
        uid: int,
        gid: int,
        memory_budget: int,
        max_blocks: int | None = None,
    ) -> None:
        """Set up a process without a program; `attach` gives it files, `begin` starts it."""
        self.arch = arch
        self.cpu = cpu
        self.memory = memory
        memory.bytes.on_exhausted = self._out_of_memory
        self.modules = modules
        self.clock = clock
        self.hooks = hooks
        self.uid, self.gid = uid, gid
        self.pid, self.ppid = _PID, 1
        self.umask = 0o022
        self.cwd = b"/"
        self.comm = b""
        self.memory_budget = memory_budget
        self.heap = (0, 0)
        self.signals = SignalState()
        self.timers = Timers(clock, self._clock_need_changed)
        self.limits = {
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
        self.policy = self.nice = 0
        self.knobs = dict(KNOBS)
        self.clear_child_tid = 0
        self.robust_list = 0
        self.exit: Exit | None = None
        self.missing: dict[str, int] = {}
        self.start: Start | None = None
        self.argv: tuple[bytes, ...] = ()
        self.env: tuple[bytes, ...] = ()
        self.exe = b""
        self.max_blocks = max_blocks
        self.syscall_count = 0
        self.waiting_in = ""
        self._random = random.Random(seed)
        self._table = build()
        self._names = arch.linux.syscalls
        self._argument_names = arch.linux.arguments
        self._system_registers = (arch.linux.number, *arch.linux.arguments)
        self._seen_blocks = 0
        self.host = HostEvents()
        self.attention = self.host.attention
        self.fs: FileSystem
        self.files: FileTable

    # -- what handlers ask for -------------------------------------------------------------

    def random_bytes(self, count: int) -> bytes:
        """Seeded random bytes."""
        return self._random.randbytes(count)

    def limit(self, name: str) -> int:
        """Soft resource limit."""
        return self.limits[name][0]

    def send_signal(self, number: int) -> None:
        """Queue a signal to the process itself."""
        self.post(PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))

    def post(self, item: PendingSignal) -> bool:
        """Make a signal pending; False if the queue is full."""
        return self.signals.queue(item)

    def post_expired(self) -> None:
        """Signals of the timers that have run out."""
        for number in self.timers.expired():
            self.post(PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))
        for timer, times in self.timers.expired_posix():
            pending = self.signals.pending
            old = next((item for item in pending if item.timer == timer.number), None)
            timer.overrun = times - 1 if old is None else timer.overrun + times
            info = sig.info_timer(timer.signal, timer.number, timer.overrun, timer.value)
            item = PendingSignal(timer.signal, info, timer.number)
            if old is None:
                self.post(item)
            else:
                pending[pending.index(old)] = item

    def unsupported(self, what: str) -> None:
        """Report once, at exit, that the guest asked for something that is not there."""
        self.missing[what] = self.missing.get(what, 0) + 1

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

    def cpu_time(self) -> int:
        """Nanoseconds of processor time: all of the guest's time that it did not sleep."""
        return self.syscall_count * 1000 + self.cpu.blocks() * BLOCK_NS

    def set_comm(self, name: bytes) -> None:
        """Rename the process."""
        self.comm = name[:15]

    def finish(self, code: int) -> None:
        """End the process by exit."""
        self.exit = Exit(code=code)

    def die(self, number: int, crash: Crash | None) -> None:
        """End the process by a signal."""
        if self.exit is None:
            self.exit = Exit(signal=number, crash=crash)

    # -- the host's side -------------------------------------------------------------------

    def host_signal(self, number: int) -> None:
        """The host user sends the guest a signal; from any thread."""
        self.host.put("signal", number)
        self.cpu.halt()

    def host_stop(self, limit: str) -> None:
        """Stop the guest for good; from any thread."""
        self.host.put(limit, 0)
        self.cpu.halt()

    def host_attention(self) -> None:
        """Have `hooks.attention` called in the engine's thread, soon; from any thread."""
        self.host.put("attention", 0)
        self.cpu.halt()

    def hear_host(self) -> None:
        """Take what the host has said."""
        for kind, number in self.host.take():
            if kind == "attention":
                self.hooks.attention()
            elif kind == "signal":
                self.post(PendingSignal(number, sig.info_kill(number, sig.SI_USER, 0, self.uid)))
            else:
                self.exit = Exit(limit=kind)

    def close(self) -> None:
        """Give back what belongs to the host."""
        self.memory.shared.flush_all()
        self.files.close_all()
        self.host.close()

    # -- running ---------------------------------------------------------------------------

    def run(self) -> Exit:
        """Run the program to its end."""
        self._clock_need_changed()
        while self.exit is None:
            self.resume()
        return self.exit

    def resume(self) -> None:
        """One stretch of the program up to the next thing the kernel has to do."""
        if self.host.waiting():
            self.hear_host()
        held = self.hooks.hold()
        if not held:
            delivery.deliver_all(self)
        if self.exit is not None:
            return
        self.memory.sync()
        stop: Stop | None
        if held and self.signals.deliverable():
            # As uprobes do: a signal waits for the end of the step.
            stop = self.cpu.step()
        else:
            stop = self.cpu.run(self._quantum())
        self._count_blocks()
        if stop is not None:
            self.handle(stop)

    def step(self) -> None:
        """One instruction; or the delivery of a signal, up to its handler's first one."""
        if self.host.waiting():
            self.hear_host()
        pc = self.arch.roles.pc
        before = self.cpu.read_register(pc)
        if not self.hooks.hold():
            delivery.deliver_all(self)
        if self.exit is not None or self.cpu.read_register(pc) != before:
            return
        self.memory.sync()
        stop = self.cpu.step()
        self._count_blocks()
        if stop is not None:
            self.handle(stop)

    def handle(self, stop: Stop) -> None:
        """Do what a stop of the CPU asks for."""
        if stop.kind is not StopKind.FAULT or not faults.opened(self, stop):
            left = self.hooks.stopped(stop)
            if left is not None:
                self.take(left)
        self._check_limits()

    def take(self, stop: Stop) -> None:
        """Do what is left of a stop once the machinery of probes has seen it."""
        if stop.kind is StopKind.SYSCALL:
            self._syscall()
        elif stop.kind is StopKind.FAULT:
            faults.fault(self, stop)
        elif stop.kind is StopKind.TRAP:
            faults.trap(self, stop)
        elif stop.kind is StopKind.OUT_OF_MEMORY:
            self._out_of_memory(stop.address)

    def _out_of_memory(self, address: int) -> None:
        limit = self.memory_budget >> 20
        why = f"the guest used up its {limit} MiB of memory; --memory raises the limit"
        self.die(sig.SIGKILL, Crash(sig.SIGKILL, self.pc(), address, why))

    def pc(self) -> int:
        """Where the program is, by its own addresses."""
        return self.hooks.original_pc(self.cpu.read_register(self.arch.roles.pc))

    def _quantum(self) -> int | None:
        """Blocks until something must happen, None if nothing is planned."""
        quantum: int | None = None
        expiry = self.timers.next()
        if expiry is not None and not self.clock.host:
            quantum = max((expiry - self.clock.peek()) // BLOCK_NS, 1)
        elif expiry is not None:
            quantum = 100_000
        if self.max_blocks is not None:
            rest = max(self.max_blocks - self.cpu.blocks(), 1)
            quantum = rest if quantum is None else min(quantum, rest)
        return quantum

    def _clock_need_changed(self) -> None:
        if self.timers.next() is not None or self.max_blocks is not None:
            self.cpu.count_blocks(True)
            self._seen_blocks = self.cpu.blocks()

    def _count_blocks(self) -> None:
        blocks = self.cpu.blocks()
        if self.timers.next() is not None:
            self.clock.add_blocks(blocks - self._seen_blocks)
        self._seen_blocks = blocks

    def _check_limits(self) -> None:
        self.post_expired()
        over = self.max_blocks is not None and self.cpu.blocks() >= self.max_blocks
        if over and self.exit is None:
            self.exit = Exit(limit="max-blocks")

    # -- system calls ----------------------------------------------------------------------

    def _syscall(self) -> None:
        linux = self.arch.linux
        registers = self.cpu.read_registers(self._system_registers)
        number, arguments = registers[0], registers[1:]
        name = self._names.get(number)
        for register, source in linux.clobbers:
            self.cpu.write_register(register, self.cpu.read_register(source))
        self.syscall_count += 1
        self.hooks.syscall_enter(number, name or f"#{number}", arguments)
        if name is None:
            self.unsupported(f"system call number {number}")
            result = -errno.ENOSYS
        else:
            if name not in ("clock_gettime", "gettimeofday", "time"):
                self.clock.settle()
            result = self._call(name, arguments)
        if name == "rt_sigreturn" or self.exit is not None:
            return
        state = self.signals
        if result in (waiting.INTERRUPTED, waiting.RESTART):
            restart = result == waiting.RESTART and waiting.handler_restarts(self)
            result = -errno.EINTR
            if restart:
                pc = self.cpu.read_register(self.arch.roles.pc)
                before = linux.syscall_before
                again = pc - linux.syscall_size if before is None else before(pc)
                self.cpu.write_register(self.arch.roles.pc, again)
                self.hooks.syscall_exit(number, name or "", result)
                return
        self.hooks.syscall_exit(number, name or f"#{number}", result)
        if linux.error:
            self.cpu.write_register(linux.error, 0xFFFFFFFFFFFFFFFF if result < 0 else 0)
            result = abs(result)
        self.cpu.write_register(linux.result, result & 0xFFFFFFFFFFFFFFFF)
        if state.saved is not None and not state.deliverable():
            state.blocked, state.saved = state.saved, None

    def _call(self, name: str, arguments: tuple[int, ...]) -> int:
        entry = self._table.get(name)
        if entry is None:
            if name not in EXPECTED_MISSING:
                self.unsupported(f"system call {name}")
            return -errno.ENOSYS
        handler, count = entry
        try:
            coherence.before(self, name, arguments)
            result = handler(self, *arguments[:count])
            if isinstance(result, Wait):
                self.waiting_in = name
                result = waiting.wait_for(self, result)
            coherence.after(self, name, arguments)
            return result
        except LinuxError as error:
            return -error.code
        except MappingError as error:
            return -error.code
        except GuestFaultError:
            return -errno.EFAULT
        except OSError as error:
            return -(error.errno or errno.EIO)
        except (MemoryError, OverflowError):
            return -errno.ENOMEM
        finally:
            self.waiting_in = ""

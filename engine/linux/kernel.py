"""The guest's kernel: runs the program, carries out its system calls, delivers signals.

One process with one thread so far. What belongs to a thread (registers, signal mask, the
wait it is in) is kept apart from what belongs to the process, so that threads become a list.
"""

import errno
import os
import random
import select
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.arch.base import Arch, SignalFrame, TrapKind
from engine.cpu.base import Cpu, Stop, StopKind
from engine.cpu.ram import READ, WRITE
from engine.errors import GuestFaultError
from engine.guest.hooks import GuestHooks
from engine.guest.memory import Mapping, MappingError, Memory
from engine.guest.modules import Modules
from engine.linux import signals as sig
from engine.linux.clock import BLOCK_NS, GuestClock
from engine.linux.errno import LinuxError
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.table import FileTable
from engine.linux.loader import Start
from engine.linux.process import INFINITY
from engine.linux.signals import Pending, SignalState
from engine.linux.table import EXPECTED_MISSING, build
from engine.linux.timers import Timers
from engine.linux.wait import Wait

_PID: Final = 1000
_QUANTUM_MAX: Final = 1 << 40
_INTERRUPTED: Final = -(1 << 62)  # a wait that a signal with a handler has ended
_RESTART: Final = _INTERRUPTED + 1
_STACK_LIMIT: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Crash:
    """How a fatal fault came about.

    Attributes:
        signal: its number.
        pc: guest address of the instruction (the program's own, not a slot's).
        address: address of the access, None where there is none.
        why: in words.
    """

    signal: int
    pc: int
    address: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Exit:
    """How a guest ended.

    Attributes:
        code: its exit code, None if a signal killed it or it was stopped.
        signal: the signal that killed it, 0 if none.
        limit: "timeout" or "max-blocks" if the user's limit stopped it.
        crash: for a fatal fault.
    """

    code: int | None = None
    signal: int = 0
    limit: str = ""
    crash: Crash | None = None


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
        self._random = random.Random(seed)
        self._table = build()
        self._names = arch.linux.syscalls
        self._argument_names = arch.linux.arguments
        self._system_registers = (arch.linux.number, *arch.linux.arguments)
        self._seen_blocks = 0
        self._host_events: deque[tuple[str, int]] = deque()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)
        self.attention = threading.Event()
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
        self.post(Pending(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))

    def post(self, item: Pending) -> bool:
        """Make a signal pending; False if the queue is full."""
        return self.signals.queue(item)

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

    # -- the host's side -------------------------------------------------------------------

    def host_signal(self, number: int) -> None:
        """The host user sends the guest a signal; from any thread."""
        self._host_event("signal", number)

    def host_stop(self, limit: str) -> None:
        """Stop the guest for good; from any thread."""
        self._host_event(limit, 0)

    def _host_event(self, kind: str, number: int) -> None:
        self._host_events.append((kind, number))
        self.attention.set()
        try:
            os.write(self._wake_out, b"x")
        except BlockingIOError:
            pass
        self.cpu.halt()

    def _host_news(self) -> None:
        self.attention.clear()
        try:
            os.read(self._wake_in, 4096)
        except BlockingIOError:
            pass
        while self._host_events:
            kind, number = self._host_events.popleft()
            if kind == "signal":
                self.post(Pending(number, sig.info_kill(number, sig.SI_USER, 0, self.uid)))
            else:
                self.exit = Exit(limit=kind)

    def close(self) -> None:
        """Give back what belongs to the host."""
        for mapping in self.memory.mappings:
            self.memory.write_back(mapping)
        self.files.close_all()
        os.close(self._wake_in)
        os.close(self._wake_out)

    # -- running ---------------------------------------------------------------------------

    def run(self) -> Exit:
        """Run the program to its end."""
        self._clock_need_changed()
        while self.exit is None:
            self.resume()
        return self.exit

    def resume(self) -> None:
        """One stretch of the program up to the next thing the kernel has to do."""
        if self.attention.is_set():
            self._host_news()
        if not self.hooks.hold():
            self._deliver_all()
        if self.exit is not None:
            return
        self.memory.sync()
        stop = self.cpu.run(self._quantum())
        self._count_blocks()
        self._handle(stop)

    def _handle(self, stop: Stop) -> None:
        if stop.kind is StopKind.SYSCALL:
            self._syscall()
        elif stop.kind is StopKind.FAULT:
            self._fault(stop)
        elif stop.kind is StopKind.TRAP:
            self._trap(stop)
        elif stop.kind is StopKind.OUT_OF_MEMORY:
            limit = self.memory_budget >> 20
            self._die(
                sig.SIGKILL,
                Crash(
                    sig.SIGKILL,
                    self._pc(),
                    stop.address,
                    f"the guest used up its {limit} MiB of memory; --memory raises the limit",
                ),
            )
        self._check_limits()

    def _pc(self) -> int:
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
        for number in self.timers.expired():
            self.post(Pending(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))
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
        if result in (_INTERRUPTED, _RESTART):
            restart = result == _RESTART and self._handler_restarts()
            result = -errno.EINTR
            if restart:
                pc = self.cpu.read_register(self.arch.roles.pc)
                self.cpu.write_register(self.arch.roles.pc, pc - linux.syscall_size)
                self.hooks.syscall_exit(number, name or "", result)
                return
        self.hooks.syscall_exit(number, name or f"#{number}", result)
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
            result = handler(self, *arguments[:count])
            return self._wait(result) if isinstance(result, Wait) else result
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

    def _handler_restarts(self) -> bool:
        """Whether the signal that will be delivered next asks for SA_RESTART."""
        state = self.signals
        ready = [item.number for item in state.pending if not state.blocked & sig.bit(item.number)]
        if not ready:
            return True
        return bool(state.action(min(ready)).flags & sig.SA_RESTART)

    def _wait(self, wait: Wait) -> int:
        """Block the only thread: until the call is done, a signal comes, or time is up."""
        while True:
            result = wait.poll()
            if result is not None:
                return result
            if self.attention.is_set():
                self._host_news()
                if self.exit is not None:
                    return _INTERRUPTED
            if self._interrupted(wait):
                if wait.on_interrupt is not None:
                    wait.on_interrupt()
                return _RESTART if wait.restart else _INTERRUPTED
            if wait.deadline is not None and self.clock.peek() >= wait.deadline:
                return wait.timeout_result
            self._sleep(wait)

    def _interrupted(self, wait: Wait) -> bool:
        """Whether a signal ends a wait; those without effect are taken away."""
        state = self.signals
        while True:
            for item in state.pending:
                if state.blocked & sig.bit(item.number) or wait.signals & sig.bit(item.number):
                    continue
                if not state.ignored(item.number):
                    return True
                state.pending.remove(item)
                break
            else:
                return False

    def _sleep(self, wait: Wait) -> None:
        """Let time pass until something may have changed."""
        moments = [m for m in (wait.deadline, self.timers.next()) if m is not None]
        moment = min(moments) if moments else None
        if not wait.host_fds and moment is not None and not self.clock.host:
            self.clock.jump(moment)
        else:
            poller = select.poll()
            poller.register(self._wake_in, select.POLLIN)
            for descriptor, events in wait.host_fds:
                poller.register(descriptor, events)
            timeout = None
            if moment is not None:
                timeout = max((moment - self.clock.peek()) / 1e6, 0)
            if not poller.poll(timeout) and moment is not None:
                self.clock.jump(moment)
        for number in self.timers.expired():
            self.post(Pending(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))

    # -- signals ---------------------------------------------------------------------------

    def _deliver_all(self) -> None:
        state = self.signals
        while state.pending and self.exit is None:
            item = state.take(~state.blocked & ((1 << 64) - 1))
            if item is None:
                break
            self._deliver(item)
        if state.saved is not None:
            state.blocked, state.saved = state.saved, None

    def _deliver(self, item: Pending) -> None:
        state = self.signals
        number = item.number
        action = state.action(number)
        if state.ignored(number):
            return
        if action.handler == sig.SIG_DFL:
            if sig.stops(number):
                self.unsupported(f"stopping by {sig.name(number)} (ignored)")
            else:
                self._die(number, None)
            return
        sp = self.cpu.read_register(self.arch.roles.sp)
        base, flags, size = state.altstack
        fresh = bool(action.flags & sig.SA_ONSTACK) and not flags & sig.SS_DISABLE
        fresh = fresh and not state.on_altstack(sp)
        mask = state.blocked if state.saved is None else state.saved
        frame = SignalFrame(
            number=number,
            siginfo=item.info.ljust(128, b"\0"),
            handler=action.handler,
            restorer=action.restorer if action.flags & sig.SA_RESTORER else 0,
            mask=mask,
            stack_top=base + size if fresh else sp,
            altstack=state.altstack,
            fault_address=item.fault_address,
            trap_number=item.trap_number,
            error_code=item.error_code,
            on_altstack=fresh,
        )
        self.memory.sync()
        pc = self._pc()
        try:
            self.arch.linux.signals.enter(self._user_cpu(), frame, self.arch.plan.trampoline[0])
        except GuestFaultError as error:
            why = "the stack has no room for a signal frame"
            self._die(sig.SIGSEGV, Crash(sig.SIGSEGV, pc, error.address, why))
            return
        state.saved = None
        if flags & sig.SS_AUTODISARM and fresh:
            state.altstack = (0, sig.SS_DISABLE, 0)
        state.blocked |= action.mask
        if not action.flags & sig.SA_NODEFER:
            state.blocked |= sig.bit(number)
        if action.flags & sig.SA_RESETHAND:
            state.actions[number] = sig.Action(flags=action.flags)

    def _user_cpu(self) -> "_UserCpu":
        return _UserCpu(self.cpu, self.memory)

    def return_from_signal(self) -> None:
        """rt_sigreturn: registers, mask and alternate stack come from the frame."""
        pc = self._pc()
        try:
            mask, altstack = self.arch.linux.signals.leave(
                self._user_cpu(), self.arch.plan.trampoline[0]
            )
        except GuestFaultError as error:
            why = "rt_sigreturn without a signal frame"
            self._force(sig.SIGSEGV, sig.SI_KERNEL, 0, Crash(sig.SIGSEGV, pc, error.address, why))
            return
        self.signals.blocked = mask & ~(sig.bit(sig.SIGKILL) | sig.bit(sig.SIGSTOP))
        if altstack[1] & sig.SS_DISABLE or altstack[2] >= self.arch.linux.signals.minimum_stack:
            self.signals.altstack = altstack

    def _force(
        self, number: int, code: int, address: int, crash: Crash, codes: tuple[int, int] = (0, 0)
    ) -> None:
        """A signal the program cannot escape: a blocked or ignored one kills (force_sig)."""
        state = self.signals
        action = state.action(number)
        blocked = bool(state.blocked & sig.bit(number))
        if blocked or action.handler in (sig.SIG_DFL, sig.SIG_IGN):
            self._die(number, crash)
            return
        info = sig.info_fault(number, code, address)
        self._deliver(Pending(number, info, crash.address or 0, *codes))

    def _die(self, number: int, crash: Crash | None) -> None:
        if self.exit is None:
            self.exit = Exit(signal=number, crash=crash)

    # -- faults ----------------------------------------------------------------------------

    def _fault(self, stop: Stop) -> None:
        mapping = self.memory.find(stop.address)
        abi = self.arch.linux.signals
        codes = abi.fault_codes(stop.access, mapping is not None)
        if self.arch.plan.task_size <= stop.address and codes[0] != 0:
            # A non-canonical or kernel address is a general protection fault on x86-64.
            number, code, address = sig.SIGSEGV, sig.SI_KERNEL, 0
            why = f"{stop.access} at {stop.address:#x}, outside user space"
        else:
            number, code, address, why = self._classify(stop, mapping)
        crash = Crash(number, self._pc(), stop.address, why)
        self._force(number, code, address, crash, codes)

    def _classify(self, stop: Stop, mapping: Mapping | None) -> tuple[int, int, int, str]:
        at, access = stop.address, stop.access
        if mapping is None:
            return sig.SIGSEGV, 1, at, f"{access} at {at:#x}, where nothing is mapped"
        allowed = {"read": READ, "write": WRITE, "execute": 4}[access]
        if mapping.perms & allowed:
            return sig.SIGBUS, 2, at, f"{access} at {at:#x}, behind the end of {mapping.name}"
        what = mapping.name or "anonymous memory"
        if mapping.reserved:
            what = f"the engine's window {mapping.name}"
        permissions = "".join(
            letter if mapping.perms & 1 << index else "-" for index, letter in enumerate("rwx")
        )
        return sig.SIGSEGV, 2, at, f"{access} at {at:#x} in {what} ({permissions})"

    def _trap(self, stop: Stop) -> None:
        pc = self._pc()
        if stop.trap in (TrapKind.PRIVILEGED, TrapKind.ILLEGAL):
            try:
                raw = self.memory.read(pc, self.arch.insn_max)
            except GuestFaultError:
                raw = b""
            after = self.arch.emulate_trapped(self.cpu, raw, pc)
            if after is not None:
                self.cpu.write_register(self.arch.roles.pc, after)
                return
        if stop.address:
            self.cpu.write_register(self.arch.roles.pc, stop.address)
            pc = self._pc()
        traps = self.arch.linux.signals.traps
        number, code, with_pc = traps.get(stop.trap, traps[TrapKind.OTHER])
        names = {
            TrapKind.ILLEGAL: "illegal instruction",
            TrapKind.PRIVILEGED: "privileged instruction or non-canonical address",
            TrapKind.BREAKPOINT: "breakpoint instruction",
            TrapKind.DIVIDE: "division by zero or overflow",
            TrapKind.SINGLE_STEP: "trap flag",
        }
        why = stop.detail or names.get(stop.trap, f"exception {stop.number}")
        crash = Crash(number, pc, None, why)
        trap = stop.number if stop.number >= 0 else 6
        self._force(number, code, pc if with_pc else 0, crash, (trap, 0))


class _UserCpu:
    """The CPU as signal frames use it: memory with the program's own permissions."""

    def __init__(self, cpu: Cpu, memory: Memory) -> None:
        self.read_register = cpu.read_register
        self.write_register = cpu.write_register
        self.float_flags = cpu.float_flags
        self.clear_float_flags = cpu.clear_float_flags
        self.execute = cpu.execute
        self.counter = cpu.counter
        self.entropy = cpu.entropy
        self.read = memory.read
        self.write = memory.write

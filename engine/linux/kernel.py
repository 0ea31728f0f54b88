"""The guest's kernel: runs the program, carries out its system calls, delivers signals."""

import errno
from typing import Final

from engine.cpu.base import Stop, StopKind
from engine.errors import GuestFaultError, KprobeTuiError
from engine.guest.memory import MappingError
from engine.linux import coherence, delivery, faults, sleeping
from engine.linux.clock import BLOCK_NS
from engine.linux.ending import Exit
from engine.linux.errno import LinuxError
from engine.linux.process import Process
from engine.linux.table import EXPECTED_MISSING, build
from engine.linux.wait import Wait

_HOST_QUANTUM: Final = 100_000
"""Ticks between two looks at the host's clock while a timer runs by it."""


class Kernel:
    """Runs one guest process.

    Attributes:
        process: which.
        max_blocks: ticks of the clock at which it is stopped, None for never.
        waiting_in: name of the system call that it is blocked in, "" while it runs.
        attention: set while the host has something to say.
    """

    def __init__(self, process: Process, max_blocks: int | None = None) -> None:
        """Run a process that is ready to start; at most `max_blocks` ticks of the clock."""
        self.process = process
        self.max_blocks = max_blocks
        self.waiting_in = ""
        self._cpu = process.cpu
        self._memory = process.memory
        self._hooks = process.hooks
        self._clock = process.clock
        self._host = process.host
        self._timers = process.timers
        self._timers.changed = self._clock_need_changed
        self._table = build(process.arch.linux.own_calls)
        self._linux = process.arch.linux
        self._pc = process.arch.roles.pc
        self._system_registers = (self._linux.number, *self._linux.arguments)
        self._seen_blocks = 0
        self.attention = process.host.attention

    # -- the host's side -------------------------------------------------------------------

    def host_signal(self, number: int) -> None:
        """The host user sends the guest a signal; from any thread."""
        self._host.put("signal", number)
        self._cpu.halt()

    def host_stop(self, limit: str) -> None:
        """Stop the guest for good; from any thread."""
        self._host.put(limit, 0)
        self._cpu.halt()

    def host_end(self, number: int) -> None:
        """End the guest for good, for a signal to the tool; from any thread."""
        self._host.put("end", number)
        self._cpu.halt()

    def host_attention(self) -> None:
        """Have `hooks.attention` called in the engine's thread, soon; from any thread."""
        self._host.put("attention", 0)
        self._cpu.halt()

    # -- running ---------------------------------------------------------------------------

    def run(self) -> Exit:
        """Run the program to its end."""
        self._clock_need_changed()
        while self.process.exit is None:
            self.resume()
        return self.process.exit

    def resume(self) -> None:
        """One stretch of the program up to the next thing the kernel has to do."""
        if self._host.waiting():
            self.process.hear_host()
        held = self._hooks.hold()
        waits = held and self.process.signals.deliverable()
        if waits and self._hooks.withdraw():
            held = waits = False
        if not held:
            delivery.deliver_all(self.process)
        if self.process.exit is not None:
            return
        self._memory.sync()
        # As uprobes do: a signal waits for the end of the step.
        stop = self._cpu.step() if waits else self._cpu.run(self._quantum())
        self._count_blocks()
        if stop is not None:
            self.handle(stop)

    def step(self) -> None:
        """One instruction; or the delivery of a signal, up to its handler's first one."""
        if self._host.waiting():
            self.process.hear_host()
        pc = self._pc
        before = self._cpu.read_register(pc)
        if not self._hooks.hold():
            delivery.deliver_all(self.process)
        if self.process.exit is not None or self._cpu.read_register(pc) != before:
            return
        self._memory.sync()
        stop = self._cpu.step()
        self._count_blocks()
        if stop is not None:
            self.handle(stop)

    def handle(self, stop: Stop) -> None:
        """Do what a stop of the CPU asks for."""
        if stop.kind is not StopKind.FAULT or not faults.opened(self.process, stop):
            left = self._hooks.stopped(stop)
            if left is not None:
                self.take(left)

    def take(self, stop: Stop) -> None:
        """Do what is left of a stop once the machinery of probes has seen it.

        Time and limits are looked at here only: these stops are the program's own, and the same
        with and without probes. A stop of the machinery's, or one that the host asked for, is
        no moment of the guest's time.
        """
        if stop.kind is StopKind.SYSCALL:
            self._syscall()
        elif stop.kind is StopKind.FAULT:
            faults.fault(self.process, stop)
        elif stop.kind is StopKind.TRAP:
            faults.trap(self.process, stop)
        elif stop.kind is StopKind.OUT_OF_MEMORY:
            self.process.out_of_memory(stop.address)
        if stop.kind is not StopKind.HALTED:
            self._check_limits()

    def _quantum(self) -> int | None:
        """Blocks until something must happen, None if nothing is planned.

        0 where it is due already: it happens in front of the next tick, wherever in the block
        the CPU stands now.
        """
        quantum: int | None = None
        expiry = self._timers.next()
        if expiry is not None and not self._clock.host:
            quantum = max(-((self._clock.peek() - expiry) // BLOCK_NS), 0)
        elif expiry is not None:
            quantum = _HOST_QUANTUM
        if self.max_blocks is not None:
            rest = max(self.max_blocks - self._cpu.blocks(), 0)
            quantum = rest if quantum is None else min(quantum, rest)
        return quantum

    def _clock_need_changed(self) -> None:
        if self._timers.next() is not None or self.max_blocks is not None:
            self._cpu.count_blocks(True)
            self._seen_blocks = self._cpu.blocks()

    def _count_blocks(self) -> None:
        blocks = self._cpu.blocks()
        if self._timers.next() is not None:
            self._clock.add_blocks(blocks - self._seen_blocks)
        self._seen_blocks = blocks

    def _check_limits(self) -> None:
        self.process.post_expired()
        over = self.max_blocks is not None and self._cpu.blocks() >= self.max_blocks
        if over and self.process.exit is None:
            self.process.exit = Exit(limit="max-blocks")

    # -- system calls ----------------------------------------------------------------------

    def _syscall(self) -> None:
        linux, process = self._linux, self.process
        registers = self._cpu.read_registers(self._system_registers)
        number, arguments = registers[0], registers[1:]
        name = linux.syscalls.get(number)
        for register, source in linux.clobbers:
            self._cpu.write_register(register, self._cpu.read_register(source))
        process.syscall_count += 1
        self._hooks.syscall_enter(number, name or f"#{number}", arguments)
        if name is None:
            process.unsupported(f"system call number {number}")
            result = -errno.ENOSYS
        else:
            if name not in ("clock_gettime", "gettimeofday", "time"):
                self._clock.settle()
            result = self._call(name, arguments)
        if name == "rt_sigreturn" or process.exit is not None:
            return
        state = process.signals
        if result in (sleeping.INTERRUPTED, sleeping.RESTART):
            restart = result == sleeping.RESTART and sleeping.handler_restarts(process)
            result = -errno.EINTR
            if restart:
                pc = self._cpu.read_register(self._pc)
                before = linux.syscall_before
                again = pc - linux.syscall_size if before is None else before(pc)
                self._cpu.write_register(self._pc, again)
                self._hooks.syscall_exit(number, name or "", result)
                return
        self._hooks.syscall_exit(number, name or f"#{number}", result)
        if linux.error:
            self._cpu.write_register(linux.error, 0xFFFFFFFFFFFFFFFF if result < 0 else 0)
            result = abs(result)
        self._cpu.write_register(linux.result, result & 0xFFFFFFFFFFFFFFFF)
        if state.saved is not None and not state.deliverable():
            state.blocked, state.saved = state.saved, None

    def _call(self, name: str, arguments: tuple[int, ...]) -> int:
        entry = self._table.get(name)
        if entry is None:
            if name not in EXPECTED_MISSING:
                numbers = {known: number for number, known in self._linux.syscalls.items()}
                self.process.unsupported(f"system call {name} ({numbers[name]})")
            return -errno.ENOSYS
        handler, count = entry
        process = self.process
        try:
            coherence.before(process, name, arguments)
            result = handler(process, *arguments[:count])
            if isinstance(result, Wait):
                self.waiting_in = name
                result = sleeping.wait_for(process, result)
            coherence.after(process, name, arguments)
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
        except KprobeTuiError:
            raise
        except Exception as error:  # a defect of ours: this call fails, not the run
            process.failed(name, arguments[:count], error)
            return -errno.EIO
        finally:
            self.waiting_in = ""

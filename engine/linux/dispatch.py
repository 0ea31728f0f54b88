"""System calls as they are carried out: from a thread's registers to those with the result."""

import errno
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from engine.errors import GuestFaultError
from engine.linux import blocking, coherence
from engine.linux.errno import ERESTARTSYS, LinuxError
from engine.linux.machine import Machine
from engine.linux.table import EXPECTED_MISSING, CallTable
from engine.linux.thread import SystemCall, Thread
from engine.linux.wait import Wait

_WORD, _LOW = (1 << 64) - 1, (1 << 32) - 1
_OFTEN: Final = 64
"""System calls of a run before what makes the next ones quicker is worth its preparation."""
_EXEC: Final = frozenset({"execve", "execveat"})
"""Calls that have no result where they succeed."""
_RETURN: Final = "rt_sigreturn"
"""A call that takes no time: where timers follow each other closely it could take a whole period,
and the program would come to nothing else."""
_WITHOUT_RESULT: Final = frozenset({_RETURN, *_EXEC})
_LOOKS: Final = frozenset({"clock_gettime", "gettimeofday", "time"})
"""Calls that look at the clock and do nothing else."""


class CallDispatch:
    """Carries out the system calls of one machine's current thread.

    Attributes:
        table: handlers by name.
        read: gives number and arguments of a call, and the address behind its instruction.
    """

    read: Callable[[], tuple[int, ...]]

    def __init__(self, machine: Machine, begin_wait: Callable[[Thread, Wait], int | None]) -> None:
        """Serve a machine.

        Args:
            machine: whose threads make the system calls.
            begin_wait: lets a thread wait; gives the result if that is over at once.
        """
        self.table = CallTable(machine.arch.linux)
        self._machine = machine
        self._cpu = machine.cpu
        self._clock = machine.clock
        self._linux = machine.arch.linux
        self._pc = machine.arch.roles.pc
        self._begin_wait = begin_wait
        self._prepared = False
        cpu = machine.cpu
        self._use(
            lambda names: partial(cpu.read_registers, names),
            lambda name: partial(cpu.write_register, name),
        )

    def _use(
        self,
        reader: Callable[[Sequence[str]], Callable[[], tuple[int, ...]]],
        writer: Callable[[str], Callable[[int], None]],
    ) -> None:
        """Read and write the registers of calls by functions of these."""
        linux = self._linux
        self.read = reader((linux.number, *linux.arguments, self._pc))
        # Those that are copied: (writes one, place among those of the call, reads it if it is
        # none of them).
        places = {linux.number: 0, self._pc: -1}
        self._clobbers = [
            (writer(to), places.get(source, 0), None if source in places else reader((source,)))
            for to, source in linux.clobbers
        ]
        self._write_result = writer(linux.result)

    @property
    def is_often(self) -> bool:
        """True if there were enough calls or refused instructions to prepare their way."""
        return self._machine.syscall_count + self._machine.carried_out > _OFTEN

    def clobber(self, registers: tuple[int, ...]) -> None:
        """Change what the instruction changes, from the registers of the call."""
        for write, place, read in self._clobbers:
            write(registers[place] if read is None else read()[0])

    def make(self, thread: Thread, registers: tuple[int, ...]) -> None:
        """The thread has made a call."""
        machine = self._machine
        number, arguments = registers[0], registers[1:-1]
        if machine.recorder is not None:
            machine.recorder.called()
        self.clobber(registers)
        machine.syscall_count += 1
        if not self._prepared and self.is_often:
            self._prepared = True
            self._use(self._cpu.traps.reader, self._cpu.traps.writer)
        if thread.tracee is not None and thread.tracee.enters(number, arguments[0]):
            return
        self.carry_out(thread, number, arguments)

    def make_by_address(self, thread: Thread, number: int) -> bool:
        """The thread has called a function of the kernel's that is a system call.

        Returns:
            False if there is none of the number, or what it was given is not in memory.
        """
        machine, cpu, sp = self._machine, thread.cpu, self._machine.arch.roles.sp
        if machine.recorder is not None:
            machine.recorder.called()
        name = self._linux.syscalls.get(number)
        top, size = cpu.read_register(sp), machine.arch.bits // 8
        try:
            caller = thread.memory.read(top, size)
        except GuestFaultError:
            return False
        self._clock.settle()
        result = self._result(thread, number, name, self.read()[1:-1]) if name else None
        if result is None or result == -errno.EFAULT:
            return False
        cpu.write_register(self._linux.result, result & _WORD)
        cpu.write_register(sp, top + size & _WORD)
        cpu.write_register(self._pc, int.from_bytes(caller, "little"))
        return True

    def make_by_interrupt(self, thread: Thread) -> None:
        """The thread has made a call of the 32-bit architecture that came before its own."""
        machine, cpu, calls = self._machine, self._cpu, self._linux.interrupt
        assert calls is not None
        if machine.recorder is not None:
            machine.recorder.called()
        machine.syscall_count += 1
        number, *arguments = (
            cpu.read_register(name) & _LOW for name in (calls.number, *calls.arguments)
        )
        name = calls.names().get(number)
        own = next((at for at, each in self._linux.syscalls.items() if each == name), -1)
        if own < 0:
            thread.unsupported(f"system call number {number} of a 32-bit program")
        self.carry_out(thread, own, tuple(arguments))

    def make_untold(self, thread: Thread, registers: tuple[int, ...]) -> None:
        """The same, of a call that there is, where nobody is told of it and nobody traces."""
        machine, number = self._machine, registers[0]
        for write, place, read in self._clobbers:
            write(registers[place] if read is None else read()[0])
        machine.syscall_count += 1
        name = self._linux.syscalls[number]
        if name not in _LOOKS:
            self._clock.settle()
        result = self._result(thread, number, name, registers[1:-1])
        if result is None:
            return
        special = result < 0 or name in _WITHOUT_RESULT or thread.signals.saved is not None
        if special or self._linux.error or thread.process.exit is not None or thread.ended:
            self.finish(thread, result)
        else:
            self._write_result(result)

    def carry_out(self, thread: Thread, number: int, arguments: tuple[int, ...]) -> None:
        """Carry out a call, whatever came before it."""
        machine, name = self._machine, self._linux.syscalls.get(number)
        machine.hooks.syscall_enter(number, name or f"#{number}", arguments)
        if thread.seccomp is not None and self._restricted(thread, number, name or "", arguments):
            return
        give = machine.hooks.given_result
        if give is not None and (given := give(number, name or f"#{number}")) is not None:
            thread.call = SystemCall(number, name or "", arguments)
            self.finish(thread, given)
            return
        if name is None:
            if number >= 0:
                thread.unsupported(f"system call number {number}")
            thread.call = SystemCall(number, "", arguments)
            result: int | None = -errno.ENOSYS
        else:
            if name not in _LOOKS:
                self._clock.settle()
                if name != _RETURN:
                    self._clock.called()
            result = self._result(thread, number, name, arguments)
        if result is not None:
            self.finish(thread, result)

    def _restricted(
        self, thread: Thread, number: int, name: str, arguments: tuple[int, ...]
    ) -> bool:
        """True if seccomp keeps a call from being made; its result is given then, if any."""
        from engine.linux import seccomp  # few programs restrict themselves

        judged = seccomp.judged(thread, number, name, arguments)
        if judged is True:
            return False
        thread.call = SystemCall(number, name, arguments)
        if judged is not False:
            self.finish(thread, judged)
        elif thread.tracee is not None:
            thread.tracee.returns()
        return True

    def finish(self, thread: Thread, result: int) -> None:
        """Give the current thread the result of its call."""
        call, linux, machine = thread.call, self._linux, self._machine
        number, name, _ = call
        if thread.process.exit is not None or thread.ended:
            return
        if name in _WITHOUT_RESULT and (not result or name not in _EXEC):
            if name not in _EXEC:
                thread.original = -1
                for listener in machine.moments.restored:
                    listener(thread)
            if thread.tracee is not None:
                thread.tracee.returns()
            return
        if result <= blocking.AGAIN:
            restart = result == blocking.AGAIN or (
                result == blocking.RESTART and blocking.handler_restarts(thread)
            )
            result = -errno.EINTR
            if machine.recorder is not None:
                machine.recorder.returned(result, restarts=restart)
            if thread.tracee is not None:
                result = thread.tracee.interrupted(None) if restart else -errno.EINTR
            elif restart:
                pc = self._cpu.read_register(self._pc)
                before = linux.syscall_before
                again = pc - linux.syscall_size if before is None else before(pc)
                self._cpu.write_register(self._pc, again)
                machine.hooks.left_call(number, name or f"#{number}", result)
                return
        elif machine.recorder is not None:
            machine.recorder.returned(result, restarts=False)
        machine.hooks.left_call(number, name or f"#{number}", result)
        if linux.error:
            self._cpu.write_register(linux.error, 0xFFFFFFFFFFFFFFFF if result < 0 else 0)
            result = abs(result)
        self._write_result(result & 0xFFFFFFFFFFFFFFFF)
        state = thread.signals
        if state.saved is not None and not state.deliverable():
            state.blocked, state.saved = state.saved, None
        if thread.tracee is not None:
            thread.tracee.returns()

    def _result(
        self, thread: Thread, number: int, name: str, arguments: tuple[int, ...]
    ) -> int | None:
        """The result of a call; None if the thread waits for it."""
        entry = self.table[name]
        if entry is None:
            thread.call = SystemCall(number, name, arguments)
            if name not in EXPECTED_MISSING:
                thread.unsupported(f"system call {name} ({number})")
            return -errno.ENOSYS
        handler, count, concerned = entry
        arguments = arguments[:count]
        call = (number, name, arguments)
        thread.call = tuple.__new__(SystemCall, call)  # `SystemCall` itself takes three times that
        machine = self._machine
        machine.caller = machine.serving = thread
        try:
            change = coherence.before(thread, name, arguments) if concerned else None
            result = handler(thread, *arguments)
            if change is not None:
                coherence.after(change)
            if thread.suspended is not None:
                return None
            if result.__class__ is int:
                return result
        except Exception as error:
            return self.refused(thread.call, error)
        finally:
            machine.serving = None
        return self._begin_wait(thread, result) if isinstance(result, Wait) else result

    def refused(self, call: SystemCall, error: Exception) -> int:
        """The result of a call for what its handler has raised."""
        if isinstance(error, LinuxError) and error.code == ERESTARTSYS:
            return blocking.RESTART
        return self._machine.refused(call.name, call.arguments, error)

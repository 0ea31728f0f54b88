"""A traced thread: what its tracer has asked for, and its stops (kernel/ptrace.c, signal.c).

A thread that stops for its tracer is `stopped`, and what it was about to do waits in
`Thread.suspended`: a value, so that it goes on whoever lets it, its tracer or that one's end.
"""

import struct
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.arch.base import TrapKind
from engine.arch.ptrace import PtraceAbi
from engine.cpu.base import Stop, StopKind
from engine.errors import GuestFaultError
from engine.linux import restarts
from engine.linux import signals as sig
from engine.linux.ending import Crash
from engine.linux.signals import PendingSignal
from engine.linux.wait import Wait

if TYPE_CHECKING:
    from engine.linux.thread import Thread

SYSGOOD, FORK, VFORK, CLONE, EXEC, VFORK_DONE, EXIT, SECCOMP = (1 << n for n in range(8))
"""Options (PTRACE_O_*): bit N of those with an event is that of event N."""
EXITKILL: Final = 1 << 20
EVENT_FORK, EVENT_VFORK, EVENT_CLONE, EVENT_EXEC = 1, 2, 3, 4
EVENT_VFORK_DONE, EVENT_EXIT, EVENT_SECCOMP, EVENT_STOP = 5, 6, 7, 128
MESSAGE_ENTRY, MESSAGE_EXIT = 1, 2
"""Messages of the stops at the beginning and the end of a call."""


class After(Enum):
    """Ways for a thread to go on behind a stop."""

    NOTHING = auto()
    """The thread goes on."""
    SIGNAL = auto()
    """The thread gets the signal that it stopped for, or another one, or none."""
    CALL = auto()
    """The thread makes a system call."""
    RETURN = auto()
    """The thread comes back from a system call."""
    RESULT = auto()
    """The call that it is in has a result, or has to wait."""
    END = auto()
    """The thread ends."""


class Suspended(Struct):
    """The intention of a stopped thread, for when it goes on.

    Attributes:
        after: what.
        number: the signal that it is let on with, 0 for none.
        item: the signal that it stopped for.
        crash: of one that it cannot escape: what it tells of.
        result: of the call that it is in; for one that ends: what it ends with.
        emulated: the call is not carried out (PTRACE_SYSEMU).
    """

    after: After
    number: int = 0
    item: PendingSignal | None = None
    crash: Crash | None = None
    result: int | Wait = 0
    emulated: bool = False


class Tracee:
    """A thread as its tracer has it.

    Attributes:
        thread: which.
        tracer: who traces it.
        seized: it was attached to by PTRACE_SEIZE.
        options: PTRACE_O_*.
        syscalls: it stops at the beginning and the end of system calls.
        emulates: it stops at their beginning, and they are not carried out.
        steps: it stops behind each instruction.
        stop_signal: the last that has stopped its process.
        stop_pending: its process stops, and it has not yet done so.
        trap: it will stop when it would run its program again.
        notify: likewise, to tell that something has changed.
        listening: it is stopped, but its tracer only wants to be told of what comes.
        stopped: it is stopped for its tracer.
        code: what its tracer has not yet been told of the stop.
        info: siginfo of the stop; None where it has none.
        message: of the event.
        ending: its tracer has been told that it is about to end.
        vfork_event: its tracer is told when the child has given its memory back.
        status: how it has ended, as wait4 tells it; None before.
    """

    def __init__(self, thread: "Thread", tracer: "Thread", *, seized: bool, options: int) -> None:
        """Let a thread be traced from now on."""
        self.thread = thread
        self.tracer = tracer
        self.seized = seized
        self.options = options
        self.syscalls = self.emulates = self.steps = False
        self.stop_signal = thread.process.stopped
        self.stop_pending = self.trap = self.notify = self.listening = self.stopped = False
        self.code = self.message = 0
        self.info: bytes | None = None
        self.ending = False
        self.vfork_event = 0
        self.status: int | None = None
        thread.tracee = self
        thread.signals.traced = True
        tracer.process.tracees[thread.tid] = self

    # -- stopping --------------------------------------------------------------------------

    def stop(
        self,
        code: int,
        why: int,
        then: Suspended,
        *,
        info: bytes | None = None,
        message: int = 0,
    ) -> bool:
        """Stop it, and tell its tracer (ptrace_stop).

        Args:
            code: what wait tells: a signal, and the event above it.
            why: CLD_TRAPPED or CLD_STOPPED.
            then: what it does when it is let on.
            info: siginfo of the stop.
            message: of the event.

        Returns:
            False if it is about to be killed: it does not stop.
        """
        thread = self.thread
        if then.after is not After.END and thread.doomed():
            return False
        self.code, self.info, self.message = code, info, message
        process = thread.process
        joined = why == sig.CLD_STOPPED and self.stop_pending
        if joined:
            self.stop_pending = False
            joined = process.joined()
        self.trap = False
        if code >> 8 == EVENT_STOP:
            self.notify = False
        self.listening = False
        thread.suspended = then
        if thread is thread.machine.current:
            self.abi.show(thread.cpu)
        thread.machine.clock.stopped()
        self.stopped = thread.stopped = True
        thread.machine.held(thread)
        status = process.stop_code if why == sig.CLD_STOPPED else code & 0x7F
        self.tracer.process.hear_child(why, thread.tid, thread.uid, status)
        if joined and self.reparented:
            process.tell_stop()
        return True

    def notified(self, number: int, event: int, why: int, then: Suspended, message: int) -> bool:
        """Stop it with a siginfo that says why (ptrace_do_notify)."""
        code = number | event << 8
        info = sig.info_kill(number, code, self.thread.tid, self.thread.uid)
        return self.stop(code, why, then, info=info, message=message)

    def event(self, event: int, message: int, then: Suspended) -> bool:
        """Stop it for an event, if its tracer wants that (ptrace_event); whether it does."""
        if not self.options & 1 << event:
            return False
        return self.notified(sig.SIGTRAP, event, sig.CLD_TRAPPED, then, message)

    def call_stop(self, message: int, then: Suspended) -> bool:
        """Stop it at the beginning or the end of a system call."""
        number = sig.SIGTRAP | (0x80 if self.options & SYSGOOD else 0)
        info = sig.info_kill(sig.SIGTRAP, number, self.thread.tid, self.thread.uid)
        return self.stop(number, sig.CLD_TRAPPED, then, info=info, message=message)

    def signal_stop(self, item: PendingSignal, crash: Crash | None = None) -> bool:
        """Stop it in front of a signal (ptrace_signal)."""
        then = Suspended(After.SIGNAL, item=item, crash=crash)
        return self.stop(item.number, sig.CLD_TRAPPED, then, info=item.info)

    def traps(self) -> bool:
        """Stop it if its process has, or its tracer wants it to (do_jobctl_trap)."""
        if self.stop_pending:
            self.trap = True
        if not (self.trap or self.notify):
            return False
        then, number = Suspended(After.NOTHING), self.stop_signal
        if not self.seized:
            return self.stop(number, sig.CLD_STOPPED, then)
        process = self.thread.process
        if not process.stopped and not process.stopping():
            number = sig.SIGTRAP
        return self.notified(number, EVENT_STOP, sig.CLD_STOPPED, then, 0)

    # -- going on --------------------------------------------------------------------------

    def let_on(self, number: int) -> None:
        """Let it go on, with a signal or 0."""
        self.answer(number)
        self._rises()

    def answer(self, number: int) -> None:
        """Say with which signal it will go on, 0 for none."""
        then, tracer = self.thread.suspended, self.tracer
        if then is not None:
            then.number = number
            if then.item is not None and number and number != then.item.number:
                info = sig.info_kill(number, sig.SI_USER, tracer.pid, tracer.uid)
                then.item, then.crash = PendingSignal(number, info), None
        self.code = 0

    def _rises(self) -> None:
        thread = self.thread
        self.stopped = self.listening = False
        thread.stopped = False
        thread.machine.released(thread)

    def rouse(self) -> None:
        """Something has happened that it has to see to (ptrace_signal_wake_up)."""
        if self.listening:
            self._rises()
        else:
            self.thread.wake()

    def killed(self) -> None:
        """Nothing keeps it any more: it is being killed."""
        if self.stopped:
            then = self.thread.suspended
            if then is not None and then.after is not After.END:
                self.thread.suspended = None
            self._rises()

    @property
    def reparented(self) -> bool:
        """True if its tracer is not of the process that its own parent is (ptrace_reparented)."""
        return self.tracer.process is not self.thread.process.parent

    # -- system calls ----------------------------------------------------------------------

    @property
    def abi(self) -> PtraceAbi:
        """The thread's registers, for its tracer."""
        ptrace = self.thread.arch.linux.ptrace
        assert ptrace is not None, "somebody traces it"
        return ptrace()

    def enters(self, number: int, first: int) -> bool:
        """Enter a system call; True if the thread stops there.

        Args:
            number: of the call.
            first: its first argument.
        """
        k, ptrace = self.thread, self.abi
        k.original, k.first, k.restarting = number, first, None
        if ptrace.entry_result is not None:
            k.cpu.write_register(k.arch.linux.result, ptrace.entry_result)
        if not (self.syscalls or self.emulates):
            return False
        self._mark(0)
        return self.call_stop(MESSAGE_ENTRY, Suspended(After.CALL, emulated=self.emulates))

    def returns(self) -> None:
        """Return from a system call; the thread may stop there."""
        k = self.thread
        if k.process.exit is not None:
            return
        if self.vfork_event:
            child, self.vfork_event = self.vfork_event, 0
            then = Suspended(After.RESULT, result=child)
            if self.event(EVENT_VFORK_DONE, child, then):
                return
        if self.steps and not self.emulates:
            self.steps = False
            k.signals.force(_step_of_call(self.abi.exit_step, k.pc()))
        elif self.syscalls:
            self._mark(1)
            self.call_stop(MESSAGE_EXIT, Suspended(After.RETURN))

    def _mark(self, value: int) -> None:
        """Show in a register whether a call begins or ends (arm64: report_syscall)."""
        name = self.abi.entry_mark
        if name:
            self.thread.marked = name, self.thread.cpu.read_register(name)
            self.thread.cpu.write_register(name, value)

    def interrupted(self, wait: Wait | None) -> int:
        """The result of a call that a signal has interrupted, as its tracer sees it."""
        return -restarts.code_of(self.thread, wait)

    def clones(self, exit_signal: int, *, vfork: bool) -> int:
        """The event of a new thread or process that it makes; 0 where its tracer wants none."""
        forked = EVENT_FORK if exit_signal == sig.SIGCHLD else EVENT_CLONE
        event = EVENT_VFORK if vfork else forked
        return event if self.options & 1 << event else 0

    def adopt(self, child: "Thread") -> None:
        """Trace the thread or process that it has made, too (ptrace_init_task)."""
        tracee = Tracee(child, self.tracer, seized=self.seized, options=self.options)
        child.original = self.thread.call.number
        if self.seized:
            tracee.trap = True
        else:
            info = sig.info_kill(sig.SIGSTOP, sig.SI_USER, 0, 0)
            child.signals.pending.append(PendingSignal(sig.SIGSTOP, info))

    def cloned(self, event: int, child: int, result: int | Wait) -> None:
        """Take note of a child; the call goes on to a result, or waits for that."""
        if isinstance(result, Wait) and self.options & VFORK_DONE:
            self.vfork_event = child
        if event:
            self.event(event, child, Suspended(After.RESULT, result=result))

    def executed(self, before: int) -> None:
        """Take note of another program, with an id of before (ptrace_event)."""
        thread = self.thread
        if self.options & EXEC:
            self.event(EVENT_EXEC, before, Suspended(After.RESULT))
        elif not self.seized:  # the way of old
            info = sig.info_kill(sig.SIGTRAP, sig.SI_USER, thread.pid, thread.uid)
            thread.post(PendingSignal(sig.SIGTRAP, info))

    # -- steps and breakpoints -------------------------------------------------------------

    def step(self) -> Stop | None:
        """Let it go one instruction."""
        k, after_step = self.thread, self.abi.after_step
        if after_step is None:
            return k.cpu.step()
        try:
            raw = k.memory.read(k.cpu.read_register(k.arch.roles.pc), 2)
        except GuestFaultError:
            raw = b""
        stop = k.cpu.step()
        if stop is None:
            after_step(raw, k.cpu, k.memory)
        return stop

    def stepped(self, stop: Stop | None) -> None:
        """Stop the thread if the one instruction is done that it was let go."""
        k = self.thread
        if not self.steps or k.stopped or k.ended or k.process.exit is not None:
            return
        if stop is not None and stop.kind in (StopKind.QUANTUM, StopKind.HALTED):
            return
        if stop is not None and stop.kind is StopKind.SYSCALL:
            return  # it is told of behind the call
        if k.wait is not None or k.suspended is not None or k.hooks.hold():
            return
        self.steps = False
        if k.debug is not None:
            k.debug.stepped()
        info = sig.info_fault(sig.SIGTRAP, self.abi.breakpoint_step, k.pc())
        k.signals.force(PendingSignal(sig.SIGTRAP, info))

    def entered_handler(self) -> None:
        """A signal's handler is about to run: that is a step, too (signal_delivered)."""
        if self.steps:
            self.steps = False
            self.notified(sig.SIGTRAP, 0, sig.CLD_TRAPPED, Suspended(After.NOTHING), 0)

    def trapped(self, stop: Stop) -> None:
        """Take note of a breakpoint, perhaps the debugger's in front of a probe."""
        k = self.thread
        if stop.trap is TrapKind.BREAKPOINT:
            arch = k.arch
            address = k.pc() - (len(arch.breakpoint) if arch.trap_advances_pc else 0)
            if k.hooks.covers(address):
                k.passing = address

    # -- the end ---------------------------------------------------------------------------

    def ends(self, code: int) -> bool:
        """End with a status as wait4 tells it; True if the thread is stopped first."""
        if self.ending or not self.options & EXIT:
            return self.stopped and self.ending
        self.ending = True
        if self.stopped:
            self.killed()
        return self.event(EVENT_EXIT, code, Suspended(After.END, result=code))

    def gone(self, code: int) -> None:
        """Take note that the thread has ended."""
        thread, process = self.thread, self.thread.process
        self.stopped, self.code, self.info = False, 0, None
        self.status = code
        if thread.tid == process.pid:
            process.tracee = self  # it is told of with its process
        else:
            number = code & 0x7F
            told = (sig.CLD_KILLED, number) if number else (sig.CLD_EXITED, code >> 8)
            self.tracer.process.hear_child(told[0], thread.tid, thread.uid, told[1])

    def abandon(self) -> None:
        """Let go of the tracer, which ends (exit_ptrace)."""
        thread = self.thread
        if self.options & EXITKILL and not thread.ended:
            info = sig.info_kill(sig.SIGKILL, sig.SI_KERNEL, 0, 0)
            thread.process.post(PendingSignal(sig.SIGKILL, info))
        if self.stopped:
            self.answer(self.code if self.code <= sig.HIGHEST else 0)
        self.detach()

    def detach(self) -> None:
        """Trace it no longer; if it has ended its parent is told now (__ptrace_detach)."""
        process, other = self.thread.process, self.reparented
        self.unlink()
        first = self.thread.tid == process.pid
        if self.thread.ended and first and not process.threads and other:
            process.machine.buried(process)

    # -- the end of tracing ----------------------------------------------------------------

    def unlink(self) -> None:
        """Trace it no longer; a stop of its process holds it still (__ptrace_unlink)."""
        thread, process = self.thread, self.thread.process
        self.tracer.process.tracees.pop(thread.tid, None)
        thread.tracee = None
        thread.signals.traced = False
        if process.tracee is self:
            process.tracee = None
        if thread.ended:
            return
        was, self.stopped = self.stopped, False
        if process.exit is None and (process.stopped or process.stopping()):
            if not thread.stopped:
                thread.stopped = True
                thread.machine.held(thread)
            pending, self.stop_pending = self.stop_pending, False
            if pending and process.joined():
                process.tell_stop()
        elif was:
            thread.stopped = False
            thread.machine.released(thread)


def _step_of_call(code: int, address: int) -> PendingSignal:
    """The SIGTRAP of a step that ends with a system call (user_single_step_report)."""
    if code:
        return PendingSignal(sig.SIGTRAP, sig.info_fault(sig.SIGTRAP, code, address))
    return PendingSignal(sig.SIGTRAP, struct.pack("<iii", sig.SIGTRAP, 0, 0).ljust(32, b"\0"))

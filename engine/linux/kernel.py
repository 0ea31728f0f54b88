"""The guest's kernel: runs threads in turn, carries out system calls, delivers signals."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from engine.cpu.base import ServesCalls, Stop, StopKind
from engine.linux import (
    blocking,
    coherence,
    delivery,
    faults,
    fileowners,
    quick,
    reaping,
)
from engine.linux import signals as sig
from engine.linux.clock import BLOCK_NS
from engine.linux.dispatch import CallDispatch
from engine.linux.ending import Exit
from engine.linux.machine import Machine
from engine.linux.process import Process
from engine.linux.schedule import Why
from engine.linux.scheduler import Scheduler
from engine.linux.signals import PendingSignal
from engine.linux.thread import Thread
from engine.linux.turns import Turns
from engine.linux.wait import Wait

_HOST_QUANTUM: Final = 100_000
"""Ticks between two looks at the host's clock while a timer runs by it."""


def _never(thread: Thread, registers: tuple[int, ...]) -> bool:
    return False


class Kernel:
    """Runs the threads of one machine.

    Attributes:
        machine: which.
        scheduler: whose turn it is.
        max_blocks: ticks of the clock at which it is stopped, None for never.
        attention: set while the host has something to say.
        switched: told, in order, that another thread is the current one.
        awaited: a run ends where this thread gets the processor, before it goes on.
        going: asked where a thread is about to go on, with nothing half done: how many ticks it
            may take before it is asked again. None while nobody wants to know.
    """

    def __init__(self, machine: Machine, turns: Turns, max_blocks: int | None = None) -> None:
        """Run a machine.

        Args:
            machine: with a thread that is ready to start as its current one.
            turns: decides in what order threads run.
            max_blocks: ticks of the clock that it may take at most.
        """
        self.machine = machine
        self.scheduler = Scheduler(turns)
        self.max_blocks = max_blocks
        self.switched: list[Callable[[], None]] = []
        self._cpu = machine.cpu
        self._clock = machine.clock
        self._host = machine.host
        self._signalled = machine.fs.signalled.seen
        machine.timers_changed = self._clock_need_changed
        machine.started, machine.left = self._started, self._left
        machine.held, machine.released = self._held, self._released
        machine.buried = reaping.buried
        self._linux = machine.arch.linux
        self._pc = machine.arch.roles.pc
        self._calls = CallDispatch(machine, self._begin_wait)
        self._quick = quick.table(self._linux)
        self._serving = machine.cpu if isinstance(machine.cpu, ServesCalls) else None
        self._served = False  # the call that the processor has stopped for has been carried out
        self._seen_blocks = 0
        self._passes = False  # a timer has been armed: from then on what is executed takes time
        self._over: Why | None = None  # why the current thread's turn is over
        self._stale = False  # something may have ended a wait
        self._moment: int | None = None  # when time alone makes something happen
        self._spare: object = None  # saved registers to write over
        self._idle = False  # listeners have been told that nobody can run
        self.awaited: Thread | None = None
        self.going: Callable[[], int] | None = None
        self.attention = machine.host.attention

    @property
    def exit(self) -> Exit | None:
        """The end of the run, None while it goes on."""
        return self.machine.exit

    @property
    def waiting_in(self) -> str:
        """Name of the system call that the current thread is blocked in, "" while it can run."""
        thread = self.machine.current
        return "" if thread.wait is None else thread.call.name

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
        while self.machine.exit is None:
            self.resume(alone=True)
        return self.machine.exit

    @contextmanager
    def _working(self) -> Iterator[None]:
        """All that happens meanwhile comes to the program from outside."""
        recorder = self.machine.recorder
        if recorder is None:
            yield
            return
        recorder.enter()
        try:
            yield
        finally:
            recorder.pause()

    def _goes(self) -> None:
        """The program goes on."""
        if self.machine.recorder is not None:
            self.machine.recorder.leave()

    def _has_stopped(self, kind: StopKind) -> None:
        if self.machine.recorder is not None:
            self.machine.recorder.stopped(kind)

    def resume(self, *, alone: bool = False) -> None:
        """Run one stretch of a thread up to the next thing the kernel has to do.

        Args:
            alone: the caller looks at nothing that a system call changes between two stretches:
                quick calls may be carried out inside one.
        """
        if self.machine.recorder is None:
            self._resume(alone=alone)
            return
        with self._working():
            self._resume(alone=alone)

    def _resume(self, *, alone: bool) -> None:
        if not self._runnable():
            return
        thread = self.machine.current
        if thread is self.awaited:
            return
        if thread.kept_call is not None:
            self._let_on(thread)
            return
        if thread.suspended is not None:
            self._take_up(thread)
            return
        hooks = thread.hooks
        held = hooks.hold()
        waits = held and thread.signals.deliverable()
        if waits and hooks.withdraw():
            held = waits = False
        if not held:
            delivery.deliver_all(thread)
        if self._goes_on(thread):
            thread.memory.sync()
            tracee = thread.tracee if thread.tracee is not None and thread.tracee.steps else None
            debug, single = thread.debug, False
            if debug is not None and debug.stops:
                if not held and debug.meets():
                    return
                waits = single = True
            passing, thread.passing = thread.passing, -1
            if passing >= 0 and thread.pc() != passing:
                hooks.passed(passing)
                passing = -1
            self._goes()
            if tracee is not None:
                stop = tracee.step()
            elif passing >= 0:
                stop, single = self._cpu.step(), True
            else:  # as uprobes do: a signal waits for the end of the step
                stop = self._cpu.step() if waits else self._run(thread, alone)
            if stop is not None:
                self._has_stopped(stop.kind)
            elif self.machine.recorder is not None and (tracee is not None or single):
                self.machine.recorder.stepped(ends=tracee is not None)
            if passing >= 0:
                hooks.passed(passing)
            self._count_blocks()
            if self._served:
                self._served = False
            elif stop is not None:
                self.handle(stop)
            if tracee is not None:
                tracee.stepped(stop)
        if thread.process.exit is not None:
            self._end(thread.process)

    def _run(self, thread: Thread, alone: bool) -> Stop:
        """Let the processor run, and carry out quick calls inside it where nobody can tell."""
        quantum, cpu = self._quantum(), self._serving
        if self.going is not None:
            most = self.going()
            quantum = most if quantum is None else min(quantum, most)
        if (
            cpu is None
            or not alone
            or self._moment is not None
            or self._passes
            or not self._calls.is_often
            or self._seen(thread)
        ):
            return self._cpu.run(quantum)
        cpu.serve(self._serve, counts=self.machine.recorder is None)
        try:
            return self._cpu.run(quantum)
        finally:
            cpu.serve(None)

    def _seen(self, thread: Thread) -> bool:
        """True if anybody looks at what a thread does, or at what is done for it."""
        memory = thread.memory
        if (
            thread.tracee is not None
            or thread.restricted
            or self.machine.hooks.hear_calls()
            or (thread.hooks.hear_stops() and thread.hooks.passes_call is None)
        ):
            return True
        return bool(memory.closed or memory.watched) or memory.bytes.watcher is not None

    def _serve(self) -> bool:
        """Carry out a quick call; False if it is none, or if the thread does not just go on.

        What `resume` sees to between two stretches makes the processor stop behind it.
        """
        calls = self._calls
        registers = calls.read()
        condition = self._quick.get(registers[0], _never)
        thread, recorder = self.machine.current, self.machine.recorder
        if condition is not None and not condition(thread, registers):
            return False
        passes = thread.hooks.passes_call
        if passes is not None and not passes(registers[-1]):
            return False
        if recorder is None:
            calls.make_untold(thread, registers)
            return self._goes_straight_on(thread)
        recorder.begins_call(registers[-1])
        try:
            calls.make(thread, registers)
            return self._goes_straight_on(thread)
        finally:
            (recorder.pause if self._served else recorder.leave)()

    def _goes_straight_on(self, thread: Thread) -> bool:
        """A call has been carried out in the processor: False if that has to stop behind it."""
        machine, scheduler = self.machine, self.scheduler
        if (
            machine.armed
            or machine.yielding
            or self._signalled
            or scheduler.polled
            or scheduler.timed
            or scheduler.turn_end is not None
            or self.max_blocks is not None
        ):
            self._check_limits()
        goes = not (
            thread.wait is not None
            or self._over is not None
            or self._stale
            or machine.woken
            or thread.process.exit is not None
            or machine.exit is not None
            or thread.stopped
            or self.attention.is_set()
            or machine.armed
        )
        state, table = thread.signals, thread.memory.table
        waiting = (state.pending.mask | state.hand.pending.mask) & ~state.blocked
        if waiting or state.saved is not None:
            goes = goes and machine.recorder is None
            if goes:
                delivery.deliver_all(thread)
                goes = self._goes_on(thread)
        self._served = not goes
        if goes and (table.dirty or table.stale):
            thread.memory.sync()
        return goes

    def step(self) -> None:
        """One instruction; or the delivery of a signal, up to its handler's first one."""
        with self._working():
            self._step()
        self.wait()

    def _step(self) -> None:
        if not self._runnable():
            return
        thread = self.machine.current
        if thread.kept_call is not None:
            self._let_on(thread)
            return
        if thread.suspended is not None:
            self._take_up(thread)
            self.wait()
            return
        pc = self._pc
        before = self._cpu.read_register(pc)
        if not thread.hooks.hold():
            delivery.deliver_all(thread)
        if self._goes_on(thread) and self._cpu.read_register(pc) == before:
            thread.memory.sync()
            self._plan()
            self._goes()
            stop = self._cpu.step()
            if stop is not None:
                self._has_stopped(stop.kind)
            self._count_blocks()
            if stop is not None:
                self.handle(stop)
            if thread.tracee is not None:
                thread.tracee.stepped(stop)
        if thread.process.exit is not None:
            self._end(thread.process)

    def _goes_on(self, thread: Thread) -> bool:
        """True if a thread runs on once its signals have been delivered."""
        return thread.process.exit is None and not thread.stopped and thread.kept_signal is None

    def _let_on(self, thread: Thread) -> None:
        """Carry out a system call that was kept back."""
        stop, thread.kept_call = thread.kept_call, None
        assert stop is not None
        self.take(stop, asked=True)

    def wait(self) -> None:
        """Let time pass until a thread can run, if the current one has to wait."""
        machine = self.machine
        while machine.exit is None and not self._can_run(machine.current):
            with self._working():
                self._runnable()

    @staticmethod
    def _can_run(thread: Thread) -> bool:
        return thread.wait is None and not thread.ended and not thread.stopped

    def _runnable(self) -> bool:
        """True if the current thread can run, which another one may have become."""
        machine = self.machine
        if self._host.waiting():
            self._hear_host()
        if machine.exit is not None:
            return False
        thread = machine.current
        if self._can_run(thread):
            if self._stale or machine.woken:
                self._look()
            if self._over is None or thread.hooks.hold():
                return True
        return self._next()

    def _hear_host(self) -> None:
        """Take what the host has said."""
        machine = self.machine
        for kind, number in self._host.take():
            if kind == "attention":
                machine.attend()
            elif kind == "signal":
                if machine.recorder is not None:
                    machine.recorder.interrupted(number)
                info = sig.info_kill(number, sig.SI_USER, 0, machine.current.process.uid)
                machine.interrupt(PendingSignal(number, info))
                self._stale = True
            elif kind == "end":
                self.stop(Exit(signal=number, by_user=True))
            else:
                self.stop(Exit(limit=kind))

    def hear(self) -> None:
        """Take what the host has said, outside of the run."""
        if self._host.waiting():
            self._hear_host()

    def stop(self, end: Exit) -> None:
        """End the run as it is."""
        self._finished(end)

    def _finished(self, end: Exit) -> None:
        self.machine.exit = end
        if self.machine.recorder is not None:
            self.machine.recorder.finished(end)

    # -- threads ---------------------------------------------------------------------------

    def _started(self, thread: Thread) -> None:
        """A new thread can run."""
        self._cpu.count_blocks(True)
        self.scheduler.add(thread, self.machine.current, self._cpu.blocks())
        for listener in self.machine.moments.started:
            listener(self.machine.caller, thread)

    def _held(self, thread: Thread) -> None:
        """A thread stops."""
        if thread.wait is not None and thread.wait.stop_ends:
            thread.leave_wait()
            thread.answer = blocking.INTERRUPTED
        self.scheduler.hold(thread)

    def _released(self, thread: Thread) -> None:
        """Let a thread go on where it was: running, or waiting."""
        scheduler, now = self.scheduler, self._cpu.blocks()
        scheduler.held.pop(thread, None)
        if thread.wait is not None:
            scheduler.block(thread)
            thread.nudged = False
            self.machine.wake(thread)
        elif thread is not self.machine.current or thread.answer is not None:
            for listener in self.machine.moments.woken:
                listener(thread)
            scheduler.add(thread, self.machine.current, now)

    def _look(self) -> None:
        """Blocked threads whose waits are over can run again."""
        self._stale = False
        scheduler, woken = self.scheduler, self.machine.woken
        if not scheduler.blocked:
            woken.clear()
            return
        if not (woken or scheduler.polled or scheduler.timed):
            return
        now = self._cpu.blocks()
        changed = dict.fromkeys((*woken, *scheduler.polled, *scheduler.timed))
        woken.clear()
        for thread in changed:
            if thread.wait is None or thread in scheduler.held:
                continue  # it has ended or been stopped meanwhile
            answer = self._waited(thread)
            if answer is not None:
                thread.end_wait()
                thread.answer = answer
                self.scheduler.unblock(thread, self.machine.current, now)
                for listener in self.machine.moments.woken:
                    listener(thread)

    def _waited(self, thread: Thread) -> int | None:
        """The result of a thread's wait, None while it goes on."""
        call = thread.call
        self.machine.caller = self.machine.serving = thread
        try:
            change = coherence.of_wait(thread, call.name, call.arguments)
            found = blocking.result(thread)
            if change is not None:
                coherence.after(change)
        except Exception as error:
            found = self._calls.refused(call, error)
        finally:
            self.machine.serving = None
        thread.nudged = False
        return found

    def _next(self) -> bool:
        """Let the next thread run, or time pass while none can; whether one does."""
        machine, scheduler = self.machine, self.scheduler
        if machine.armed:
            machine.post_expired()
        if self._signalled:
            fileowners.tell(machine)
        self._look()
        current = machine.current
        now = self._cpu.blocks()
        over, self._over = self._over, None
        if current.ended:
            why = Why.ENDS
        elif current.stopped:
            why = Why.STOPS
        elif current.wait is not None or current.answer is not None:
            why = Why.WAITS
        else:
            why = over or Why.STOPS  # it was, until now
            scheduler.ready.append(current)
        thread = scheduler.next(current, why, now)
        if thread is None:
            if self._deadlocked():
                self.stop(replace(machine.first.exit or Exit(), limit="deadlock"))
            else:
                if machine.moments.switching and not self._idle and not self._host_awaited():
                    self._tell_switch(current, None, why)
                blocking.sleep(machine, (*scheduler.polled, *scheduler.timed))
                self._stale = True
            return False
        if machine.moments.switching and (self._idle or thread is not current):
            self._tell_switch(None if self._idle else current, thread, why)
        if thread is not current:
            self._hold(thread)
            scheduler.switched(thread, now)
        if thread.answer is not None:
            answer, thread.answer = thread.answer, None
            self._calls.finish(thread, answer)
        return machine.exit is None and thread.process.exit is None and not thread.stopped

    def _tell_switch(self, before: Thread | None, thread: Thread | None, why: Why) -> None:
        self._idle = thread is None
        for listener in self.machine.moments.switching:
            listener(before, thread, why)

    def _deadlocked(self) -> bool:
        """True if nothing can end any thread's wait any more."""
        scheduler = self.scheduler
        if self.machine.next_expiry() is not None or self._host_awaited():
            return False
        if any(thread.wait and blocking.moment(thread) is not None for thread in scheduler.timed):
            return False
        return not any(thread.wait and thread.wait.outside for thread in scheduler.blocked)

    def _hold(self, thread: Thread) -> None:
        """Let the processor hold another thread's registers."""
        machine, cpu = self.machine, self._cpu
        before = machine.current
        if thread is before:
            return
        if machine.recorder is not None:
            machine.recorder.switches(thread)
        machine.turn_over()
        if not before.ended:
            before.registers, before.position = cpu.save(self._spare), cpu.position()
            self._spare = None
        if thread.memory is not before.memory:
            thread.memory.activate()
        cpu.restore(thread.registers)
        cpu.go_on(thread.position)
        self._spare = thread.registers
        thread.registers = thread.position = None
        machine.holds(thread)
        for listener in self.switched:
            listener()

    def look_at(self, thread: Thread) -> None:
        """Let the processor hold a thread's registers, of a machine that will not go on."""
        self._hold(thread)

    @contextmanager
    def visit(self, thread: Thread) -> Iterator[None]:
        """Let the processor hold a thread's registers for a while in which nobody runs.

        They may be read and written; nothing else changes, the schedule least of all.
        """
        current = self.machine.current
        self._hold(thread)
        try:
            yield
        finally:
            if not current.ended:  # one that has ended has no registers to come back to
                self._hold(current)

    def prefer(self, thread: Thread | None, *, at_once: bool = True) -> None:
        """Give a thread each turn that it can take from now on; None: as the turns have it.

        Args:
            thread: the thread that is preferred; None for no preference.
            at_once: the turn that another one has is over.
        """
        scheduler, recorder = self.scheduler, self.machine.recorder
        if recorder is not None and (at_once or thread is not scheduler.preferred):
            recorder.preferred(0 if thread is None else thread.tid, at_once=at_once)
        scheduler.preferred = thread
        if at_once and thread is not self.machine.current and thread in scheduler.ready:
            self._over = self._over or Why.PREEMPTED

    def _end(self, process: Process) -> None:
        """A process has ended; the run with the last one."""
        machine = self.machine
        if not process.threads:
            return  # it has been seen to
        end = process.exit
        if end is not None and end.crash is not None and process is not machine.first:
            comm = process.leader.comm.decode(errors="replace")
            what = f"process {process.pid} ({comm}) killed by {sig.name(end.signal)}"
            machine.crashed(f"{what}: {end.crash.why}, pc {end.crash.pc:#x}")
        if any(thread.tracee is not None for thread in process.threads.values()):
            from engine.linux import ptrace_resume  # few programs are traced

            if ptrace_resume.lingers(process):
                return
        if machine.recorder is not None:
            machine.recorder.process_ended(process)
        last = all(each.exit is not None for each in machine.processes.values())
        reaping.ended(process, last=last)
        if last and machine.exit is None and machine.first.exit is not None:
            self._finished(machine.first.exit)

    def _left(self, thread: Thread, code: int) -> None:
        """A thread is gone."""
        for listener in self.machine.moments.leaving:
            listener(thread, len(thread.process.threads) == 1)
        thread.leave_wait()
        thread.process.spent += thread.cpu_time()
        thread.process.ran += thread.ticks()
        if thread is self.machine.current:
            self.machine.turn_over()
        thread.ended = True
        self.scheduler.drop(thread)
        thread.process.threads.pop(thread.tid, None)
        thread.process.last = thread
        self.machine.forget_thread(thread)
        if thread.debug is not None:
            thread.debug.clear()
        if thread.passing >= 0:
            thread.hooks.passed(thread.passing)
        for traced in list(thread.process.tracees.values()):
            if traced.tracer is thread:
                traced.abandon()
        if thread.tracee is not None:
            thread.tracee.gone(code)

    def handle(self, stop: Stop) -> None:
        """Do what a stop of the CPU asks for."""
        thread = self.machine.current
        if stop.kind is StopKind.FAULT:
            refused = thread.hooks.watched(stop)
            self._count_blocks()  # it may have taken time
            if refused is None or (
                refused.kind is StopKind.FAULT
                and (faults.opened(thread, refused) or faults.provided(thread, refused))
            ):
                return
            stop = refused
        left = thread.hooks.stopped(stop)
        if left is not None:
            self.take(left)

    def take(self, stop: Stop, *, asked: bool = False) -> None:
        """Do what is left of a stop once the machinery of probes has seen it.

        A system call that a debugger keeps back is carried out when it is `asked`.

        Time, limits and turns are looked at here only: these stops are the program's own, and the
        same with and without probes. A stop of the machinery's, or one that the host asked for,
        is no moment of the guest's time.
        """
        if self.machine.recorder is None:
            self._take(stop, asked=asked)
            return
        self._has_stopped(stop.kind)
        with self._working():
            self._take(stop, asked=asked)

    def _take(self, stop: Stop, *, asked: bool) -> None:
        thread = self.machine.current
        if stop.kind is StopKind.SYSCALL:
            if not asked and self._keeps(thread, stop):
                return
            self._calls.make(thread, self._calls.read())
        elif stop.kind is StopKind.FAULT:
            number = faults.called(thread, stop)
            if number is None:
                self._called()
                faults.fault(thread, stop)
            elif not self._calls.make_by_address(thread, number):
                faults.refuse_call(thread, stop)
        elif stop.kind is StopKind.TRAP and self._interrupts(stop):
            self._calls.make_by_interrupt(thread)
        elif stop.kind is StopKind.TRAP:
            self._called()
            if thread.tracee is not None:
                thread.tracee.trapped(stop)
            faults.trap(thread, stop)
        elif stop.kind is StopKind.OUT_OF_MEMORY:
            faults.exhausted(thread, stop.address)
        if stop.kind is not StopKind.HALTED:
            self._check_limits()
        if thread.process.exit is not None:
            self._end(thread.process)

    def _interrupts(self, stop: Stop) -> bool:
        """True for an exception that makes a system call."""
        calls = self._linux.interrupt
        return calls is not None and stop.number == calls.exception

    def _quantum(self) -> int | None:
        """Blocks until something must happen, None if nothing is planned.

        0 where it is due already: it happens in front of the next tick, wherever in the block
        the CPU stands now.
        """
        quantum: int | None = None
        expiry = self._plan()
        if expiry is not None and not self._clock.host:
            quantum = max(-((self._clock.peek() - expiry) // BLOCK_NS), 0)
        elif expiry is not None or (self.scheduler.polled and self._host_awaited()):
            quantum = _HOST_QUANTUM
        end = self.scheduler.turn_end
        if end is None or (self.max_blocks is not None and self.max_blocks < end):
            end = self.max_blocks
        if end is not None:
            rest = max(end - self._cpu.blocks(), 0)
            quantum = rest if quantum is None else min(quantum, rest)
        return quantum

    def _plan(self) -> int | None:
        """See when time alone makes something happen, and whether it passes until then."""
        expiry = self._moment = self._next_moment()
        self._clock.passing = self._passes or expiry is not None
        return expiry

    def _next_moment(self) -> int | None:
        """When something happens by time alone: a timer, or the end of a wait."""
        if not self.machine.armed and not self.scheduler.timed:
            return None
        expiry = self.machine.next_expiry()
        for thread in self.scheduler.timed:
            if thread.wait is not None:
                end = blocking.moment(thread)
                expiry = end if expiry is None or end is None else min(expiry, end)
        return expiry

    def _host_awaited(self) -> bool:
        """True if a thread waits for something of the host's while another one runs."""
        return any(thread.wait and thread.wait.host_fds for thread in self.scheduler.polled)

    def _clock_need_changed(self) -> None:
        expires = self.machine.next_expiry() is not None
        if expires or self.max_blocks is not None:
            self._cpu.count_blocks(True)
            if not self._passes:
                self._seen_blocks = self._cpu.blocks()
        self._passes = self._passes or expires

    def _count_blocks(self) -> None:
        blocks = self._cpu.blocks()
        self._clock.add_blocks(blocks - self._seen_blocks)
        self._seen_blocks = blocks

    def _check_limits(self) -> None:
        machine, scheduler = self.machine, self.scheduler
        if machine.armed:
            machine.post_expired()
        if self._signalled:
            fileowners.tell(machine)
        if scheduler.polled or scheduler.timed:
            self._stale = True
        end = scheduler.turn_end
        if machine.yielding:
            self._over, machine.yielding = Why.YIELDS, False
        elif end is not None and self._over is None and self._cpu.blocks() >= end:
            self._over = Why.PREEMPTED
        over = self.max_blocks is not None and self._cpu.blocks() >= self.max_blocks
        if over and machine.exit is None:
            self.stop(Exit(limit="max-blocks"))

    # -- system calls ----------------------------------------------------------------------

    def _keeps(self, thread: Thread, stop: Stop) -> bool:
        """True if a debugger keeps the current thread's system call back."""
        ask = self.machine.hooks.asked_call
        if ask is None:
            return False
        number = self._cpu.read_register(self._linux.number)
        if not ask(number, self._linux.syscalls.get(number, "")):
            return False
        thread.kept_call = stop
        return True

    def _called(self) -> None:
        if self.machine.recorder is not None:
            self.machine.recorder.called()

    def _take_up(self, thread: Thread) -> None:
        """Go on with what a thread was about to do when its tracer stopped it."""
        from engine.linux import ptrace_resume, tasks  # few programs are traced
        from engine.linux.tracee import After

        for register, value in thread.rewritten.items():
            thread.cpu.write_register(register, value)  # once more, for who records it
        thread.rewritten.clear()
        then, thread.suspended = thread.suspended, None
        assert then is not None
        process = thread.process
        if process.exit is not None:
            self._end(process)
            return
        if then.after is After.END:
            tasks.leave(thread, then.result >> 8 if isinstance(then.result, int) else 0)
        elif then.after is After.CALL:
            called = ptrace_resume.called(thread, then, self._calls.read())
            if called is not None:
                self._calls.carry_out(thread, *called)
        elif then.after is After.RESULT:
            result = then.result
            found = result.poll() if isinstance(result, Wait) else result
            if found is None and isinstance(result, Wait):
                found = self._begin_wait(thread, result)
            if found is not None:
                self._calls.finish(thread, found)
        else:
            ptrace_resume.go_on(thread, then)
        self._check_limits()
        if process.exit is not None:
            self._end(process)

    def _begin_wait(self, thread: Thread, wait: Wait) -> int | None:
        """Let a thread wait; the result if that is over at once."""
        thread.wait, thread.nudged = wait, False
        found = self._waited(thread)
        if found is None:
            if thread.wait is not None:
                thread.begin_wait(blocking.files_of(thread))
                self.scheduler.block(thread)
                if self.machine.recorder is not None:
                    self.machine.recorder.waits()
            return None
        thread.wait = None
        return found

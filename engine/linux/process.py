"""The guest's processes: what all threads of one have in common."""

from typing import TYPE_CHECKING, Final

from engine.linux import signals as sig
from engine.linux.clock import BLOCK_NS
from engine.linux.ending import Crash, Exit
from engine.linux.fs.table import FileTable
from engine.linux.fs.terminal import Terminal
from engine.linux.fs.vfs import Directory
from engine.linux.machine import Machine
from engine.linux.signals import PendingSignal, SignalHand
from engine.linux.space import AddressSpace
from engine.linux.sysv import SemaphoreSet
from engine.linux.timers import Timers

if TYPE_CHECKING:
    from engine.linux.thread import Thread
    from engine.linux.tracee import Tracee

INFINITY: Final = (1 << 64) - 1
"""RLIM_INFINITY."""

KNOBS: Final[dict[str, int]] = {
    "pdeathsig": 0,
    "dumpable": 1,
    "slack": 50_000,
    "subreaper": 0,
    "no_new_privs": 0,
    "keepcaps": 0,
    "thp_disable": 0,
    "mce_kill": 2,
}
"""Numbers that prctl sets and gets without any other effect, as they are at the start."""

_STACK_LIMIT: Final = 8 << 20
LIMITS: Final = {
    **dict.fromkeys(("cpu", "fsize", "data", "rss", "as", "locks"), (INFINITY, INFINITY)),
    "stack": (_STACK_LIMIT, INFINITY),
    "core": (0, INFINITY),
    "nproc": (4096, 4096),
    "nofile": (1024, 524_288),  # what systemd gives everybody
    "memlock": (8 << 20, 8 << 20),
    "sigpending": (4096, 4096),
    "msgqueue": (819200, 819200),
    "nice": (0, 0),
    "rtprio": (0, 0),
    "rttime": (INFINITY, INFINITY),
}
"""Resource limits by name at the start: (soft, hard)."""


class WorkingPlace:
    """The start of relative paths and the mode mask of new files (an fs_struct).

    Attributes:
        directory: the working directory.
        umask: the mask.
    """

    def __init__(self, directory: Directory, umask: int = 0o022) -> None:
        self.directory = directory
        self.umask = umask


class Process:
    """One guest process: what its threads have in common (a thread group).

    Attributes:
        machine: the computer it runs on.
        pid: its process id.
        parent: the process that waits for it, None where that is outside the guest.
        children: its own, by process id, until it has waited for them.
        exit_signal: what its parent is sent at its end, 0 for nothing.
        group: id of its process group.
        session: id of its session.
        borrows: it runs in its parent's memory, which waits for that to end (vfork).
        executed: it has begun another program (setpgid of a parent is too late then).
        space: the address space it runs in.
        files: open files of its first thread; given by whoever makes it.
        hand: what signals do, and those to the process.
        threads: those that have not ended, by thread id.
        last: the thread that was made last; or that ended last, of a process that has.
        began: nanoseconds since the machine's start at which it began.
        uid: its user.
        gid: its group.
        place: working directory and file mode mask of its first thread.
        timers: its interval timers and POSIX timers.
        limits: resource limits by name: (soft, hard).
        knobs: see `KNOBS`.
        exit: how it ended, None while it runs.
        stopped: the signal that has stopped it, 0 while it runs.
        stop_code: the last signal that stopped it, or is about to.
        tracees: threads that those of this one trace, by thread id, until they have been waited
            for.
        tracee: its first thread, which was traced at its end.
        maker: the thread that made it; None where that was outside the guest.
        change: (CLD_* code, status) of a stop or continuation that nobody has waited for.
        terminal: its controlling terminal.
        semaphores: sets of which its end takes something back.
        hung_up: the group that was in the foreground of the one that its session has lost.
        spent: nanoseconds that those of its threads had the processor that have ended.
        ran: ticks that they ran.
        children_time: processor time of the children that it has waited for, and of theirs.
        peak: bytes that were resident at most in address spaces that it has left.
        children_peak: the most of any of those children, and of theirs.
    """

    files: FileTable
    last: "Thread"

    def __init__(
        self, machine: Machine, pid: int, space: AddressSpace, identity: tuple[int, int]
    ) -> None:
        """Set up a process without files and threads.

        Args:
            machine: the computer.
            pid: its process id.
            space: the address space.
            identity: its user and group.
        """
        self.machine = machine
        self.pid = pid
        self.parent: Process | None = None
        self.children: dict[int, Process] = {}
        self.exit_signal = sig.SIGCHLD
        self.group = self.session = pid
        self.borrows = self.executed = False
        self.uid, self.gid = identity
        self.hand = SignalHand()
        self.hand.pending.count_against(machine.memory_limit)
        self.threads: dict[int, Thread] = {}
        self.place = WorkingPlace(machine.fs.root)
        self.timers = Timers(machine.clock, self.own_time, self.cpu_time, self.running)
        self.timers.changed = lambda: machine.timers_of(self)
        self.limits = dict(LIMITS)
        self.knobs = dict(KNOBS)
        self.exit: Exit | None = None
        self.stopped = self.stop_code = 0
        self.tracees: dict[int, Tracee] = {}
        self.tracee: Tracee | None = None
        self.maker: Thread | None = None
        self.change: tuple[int, int] | None = None
        self.terminal: Terminal | None = None
        self.semaphores: dict[SemaphoreSet, None] = {}
        self.hung_up = 0
        self.spent = self.children_time = self.ran = 0
        self.peak = self.children_peak = 0
        self.began = machine.clock.monotonic()
        self.enter(space)
        machine.enter_process(self)

    def enter(self, space: AddressSpace) -> None:
        """Run in an address space from now on."""
        self.space = space
        space.users += 1
        space.memory.bytes.on_exhausted = lambda at: self.machine.out_of_memory(space, at)
        for thread in self.threads.values():
            thread.enter(space)

    @property
    def ppid(self) -> int:
        """The parent's process id; that of the first process is outside the guest."""
        return 1 if self.parent is None else self.parent.pid

    @property
    def leader(self) -> "Thread":
        """The first of its threads that has not ended, or the last that has."""
        return next(iter(self.threads.values()), self.last)

    def limit(self, name: str) -> int:
        """Soft resource limit."""
        return self.limits[name][0]

    def cpu_time(self) -> int:
        """Nanoseconds of processor time."""
        return self.spent + sum(thread.cpu_time() for thread in self.threads.values())

    def peak_memory(self) -> int:
        """Bytes that were resident at most (ru_maxrss)."""
        if self.threads:
            memory = self.space.memory
            memory.resident()
            self.peak = max(self.peak, memory.peak)
        return self.peak

    def own_time(self) -> int:
        """Nanoseconds that it has run its own code: system calls are left out."""
        return (self.ran + sum(thread.ticks() for thread in self.threads.values())) * BLOCK_NS

    def running(self) -> bool:
        """True if one of its threads has the processor and goes on."""
        current = self.machine.current
        return current.process is self and current.wait is None and not current.ended

    # -- signals ---------------------------------------------------------------------------

    def post(self, item: PendingSignal) -> bool:
        """Make a signal to the process pending; False if the queue is full."""
        if not self.threads:
            return True
        number, pending = item.number, self.hand.pending
        self.prepare(number)
        if self.machine.moments.unheard:
            self.leader.tell_unheard(item)
        queued = self.leader.signals.queue(item, pending)
        bit = 1 << number - 1
        if pending.mask & bit:
            for thread in self.threads.values():
                if thread.wait is not None or not thread.signals.blocked & bit:
                    self.machine.wake(thread)
        return queued

    def prepare(self, number: int) -> None:
        """A signal is sent: those that stop and those that continue undo each other.

        This is at once, whatever the process does with the signal itself (prepare_signal).
        """
        if number == sig.SIGCONT or number in sig.STOPPING:
            opposed = sig.STOPPING if number == sig.SIGCONT else (sig.SIGCONT,)
            for each in opposed:
                for thread in self.threads.values():
                    thread.signals.forget(each)
        if number == sig.SIGKILL:
            self.stopped = 0
            self.change = None
            self._rise()
        elif number == sig.SIGCONT:
            before = sig.CLD_CONTINUED if self.stopped else 0
            if not before and self.stopping():
                before = sig.CLD_STOPPED
            self.stopped = 0
            self.change = None if before else self.change
            self._continue()
            if before:
                self._changed(before, number if before == sig.CLD_CONTINUED else self.stop_code)

    def _rise(self) -> None:
        """Nothing keeps its threads from running, as they are killed."""
        for thread in list(self.threads.values()):
            if thread.tracee is not None:
                thread.tracee.stop_pending = False
                thread.tracee.killed()
            elif thread.stopped:
                thread.stopped = False
                self.machine.released(thread)

    def _continue(self) -> None:
        """Let all threads go on, but for those that are stopped for a tracer."""
        for thread in list(self.threads.values()):
            tracee = thread.tracee
            if tracee is None:
                if thread.stopped:
                    thread.stopped = False
                    self.machine.released(thread)
                continue
            tracee.stop_pending = False
            if tracee.seized:
                tracee.notify = True
                tracee.rouse()

    def stop(self, number: int) -> None:
        """No thread runs from now on, until the process is continued.

        Those that are traced stop where they would run their program again, for their tracers.
        """
        if self.exit is not None:
            return
        if not self.stopped:
            self.stop_code = number
        for thread in list(self.threads.values()):
            tracee = thread.tracee
            if tracee is None:
                if not thread.stopped:
                    thread.stopped = True
                    self.machine.held(thread)
                continue
            tracee.stop_signal, tracee.stop_pending = number, True
            if tracee.seized:
                tracee.notify = True
                tracee.rouse()
            else:
                thread.wake()
        if self.joined():
            self.tell_stop()

    def stopping(self) -> bool:
        """True if some of its threads have yet to stop."""
        tracees = (thread.tracee for thread in self.threads.values())
        return any(tracee is not None and tracee.stop_pending for tracee in tracees)

    def joined(self) -> bool:
        """True if all of its threads have stopped, the last one just now."""
        if self.stopped or self.stopping():
            return False
        self.stopped = self.stop_code
        return True

    def tell_stop(self) -> None:
        """Tell the parent that it has stopped."""
        self._changed(sig.CLD_STOPPED, self.stop_code)

    def _changed(self, code: int, status: int) -> None:
        """Tell the parent of a stop or of its end (do_notify_parent_cldstop)."""
        self.change = (code, status)
        if self.parent is not None:
            self.parent.hear_child(code, self.pid, self.uid, status)

    def hear_child(self, code: int, pid: int, uid: int, status: int) -> None:
        """A child, or a thread that is traced, has stopped or gone on, or a traced one ended."""
        if self.exit is not None:
            return
        action = self.hand.action(sig.SIGCHLD)
        stops = code not in (sig.CLD_EXITED, sig.CLD_KILLED)
        if action.handler != sig.SIG_IGN and not (stops and action.flags & sig.SA_NOCLDSTOP):
            info = sig.info_child(code, pid, uid, status)
            self.post(PendingSignal(sig.SIGCHLD, info))
        for thread in self.threads.values():
            self.machine.wake(thread)

    def next_expiry(self) -> int | None:
        """When the next of its timers runs out."""
        return self.timers.next()

    def post_expired(self) -> None:
        """Post the signals of timers that have run out, and of the limit of processor time."""
        over = self.timers.over_limit()
        if over == sig.SIGXCPU:
            self.limits["cpu"] = self.timers.limit
        for number in (*self.timers.expired(), *((over,) if over else ())):
            self.post(PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))
        for timer, times in self.timers.expired_posix():
            thread = self.threads.get(timer.thread) if timer.thread else None
            if timer.thread and thread is None:
                continue  # the one that it is for has ended
            pending = self.hand.pending if thread is None else thread.signals.pending
            old = pending.of_timer(timer.number)
            timer.overrun = times - 1 if old is None else timer.overrun + times
            info = sig.info_timer(timer.signal, timer.number, timer.overrun, timer.value)
            item = PendingSignal(timer.signal, info, timer.number)
            if old is not None:
                pending.replace(old, item)
            elif thread is not None:
                thread.post(item)
            else:
                self.post(item)

    def drop_timer_signal(self, number: int) -> None:
        """A POSIX timer has been deleted or armed anew: what it has sent is gone."""
        self.hand.pending.drop_timer(number)
        for thread in self.threads.values():
            thread.signals.pending.drop_timer(number)

    # -- the end ---------------------------------------------------------------------------

    def finish(self, code: int) -> None:
        """End the process by exit."""
        if self.exit is None:
            self.exit = Exit(code=code)

    def die(self, number: int, crash: Crash | None) -> None:
        """End the process by a signal."""
        if self.exit is None:
            self.exit = Exit(signal=number, crash=crash)

    def close(self) -> None:
        """Give back what belongs to the host."""
        self.space.memory.shared.flush_all()
        for files in (self.files, *(thread.files for thread in self.threads.values())):
            files.close_all()

"""The end of processes, and parents that wait for it (kernel/exit.c)."""

import errno
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.linux import futex, jobs, limits, pidfiles, sem, shm
from engine.linux import signals as sig
from engine.linux.context import SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.init import Init
from engine.linux.process import Process
from engine.linux.signals import PendingSignal
from engine.linux.thread import Thread
from engine.linux.wait import Wait

if TYPE_CHECKING:
    from engine.linux.machine import Machine
    from engine.linux.space import AddressSpace
    from engine.linux.tracee import Tracee

_NOHANG, _UNTRACED, _EXITED, _CONTINUED, _NOWAIT = 1, 2, 4, 8, 0x01000000
_WNOTHREAD, _WALL, _WCLONE = 0x20000000, 0x40000000, 0x80000000
_THREADS: Final = _WNOTHREAD | _WALL | _WCLONE
_P_PIDFD: Final = 3


def ended(process: Process, *, last: bool) -> None:
    """A process has ended: its threads are gone; its parent hears of it.

    Args:
        process: which; `exit` says how.
        last: no other one runs: what it leaves behind can be looked at.
    """
    machine = process.machine
    if not last:
        futex.threads_end(process.threads.values())
    threads = list(process.threads.values())
    process.peak_memory()
    for thread in threads:
        machine.left(thread, _status(process))
    process.timers.drop()
    sem.process_ends(process)
    give_back(process)
    for child in list(process.children.values()):
        _orphaned(process, child)
        jobs.group_left(child, process)
    process.children.clear()
    jobs.leader_ends(process)
    jobs.group_left(process, process.parent)
    if not last:
        for thread in threads:
            thread.files.leave()
        leave_space(process)
    _tell_parent(process)


def leave_space(process: Process) -> None:
    """A process does not run in its address space any more; the last one takes it along."""
    space = process.space
    if space.users == 1:
        shm.memory_left(process)
    space.users -= 1
    if not space.users:
        space_left(process.machine, space)


def space_left(machine: "Machine", space: "AddressSpace") -> None:
    """Give an address space back in which no thread runs any more.

    That of the first process stays, whoever has left it last: the report looks at it.
    """
    if space is machine.first.space:
        space.memory.retire()
        return
    if machine.recorder is not None:
        machine.recorder.ended(space)
    machine.spaces.ended(space)
    space.memory.close()


def give_back(process: Process) -> None:
    """Memory that was borrowed from a parent (vfork) is not used any more."""
    if process.borrows:
        process.borrows = False
        if process.parent is not None:
            for thread in process.parent.threads.values():
                process.machine.wake(thread)


def _orphaned(process: Process, child: Process) -> None:
    """A child's parent has ended: the nearest one that wants to be is its parent now."""
    heir = process.parent
    while heir is not None and (heir.exit is not None or not heir.knobs["subreaper"]):
        heir = heir.parent
    child.parent, child.exit_signal = heir, sig.SIGCHLD
    if child.exit is not None and heir is None:
        process.machine.forget_process(child)
    elif heir is not None:
        heir.children[child.pid] = child
        if child.exit is not None:
            _tell_parent(child)
    number = child.knobs["pdeathsig"]
    if number and child.exit is None:
        child.post(
            PendingSignal(number, sig.info_kill(number, sig.SI_USER, process.pid, child.uid))
        )


def _tell_parent(process: Process) -> None:
    parent, machine, tracee = process.parent, process.machine, process.tracee
    if tracee is not None and tracee.reparented:  # its tracer first, see `buried`
        tracee.tracer.process.hear_child(*_about(process))
        return
    if parent is None or parent.exit is not None:
        if process is not machine.first:
            machine.forget_process(process)
        return
    number = process.exit_signal if process.exit_signal <= sig.LAST else 0  # clone takes any
    action = parent.hand.action(sig.SIGCHLD)
    forgotten = (
        number == sig.SIGCHLD
        and tracee is None
        and (action.handler == sig.SIG_IGN or action.flags & sig.SA_NOCLDWAIT)
    )
    if number and not (number == sig.SIGCHLD and action.handler == sig.SIG_IGN):
        parent.post(PendingSignal(number, struct.pack("<i", number) + _info(process)[4:]))
    if forgotten:
        parent.children.pop(process.pid, None)
        machine.forget_process(process)
    for thread in parent.threads.values():
        machine.wake(thread)


def buried(process: Process) -> None:
    """A process that has ended is traced no longer: its parent hears of it."""
    _tell_parent(process)


def _about(process: Process) -> tuple[int, int, int, int]:
    """(CLD_* code, process id, user, status) of a process that has ended."""
    code, status = _code(process)
    return code, process.pid, process.uid, status


def _code(process: Process) -> tuple[int, int]:
    """(CLD_* code, status) of a process that has ended, been stopped or continued."""
    end = process.exit
    if end is None:
        return process.change or (0, 0)
    return (sig.CLD_KILLED, end.signal) if end.signal else (sig.CLD_EXITED, end.code or 0)


def _status(process: Process) -> int:
    """The same as wait4 tells it."""
    code, status = _code(process)
    if code == sig.CLD_STOPPED:
        return status << 8 | 0x7F
    if code == sig.CLD_CONTINUED:
        return 0xFFFF
    return status if code == sig.CLD_KILLED else (status & 0xFF) << 8


def _info(process: Process) -> bytes:
    code, status = _code(process)
    return sig.info_child(code, process.pid, process.uid, status)


def _time(child: Process) -> int:
    """Processor time of a child, and of those that it has waited for."""
    return child.cpu_time() + child.children_time


def _peak(child: Process) -> int:
    """Memory that a child had at most, or one of those that it has waited for."""
    return max(child.peak_memory(), child.children_peak)


class Waited(NamedTuple):
    """A piece of news for somebody who waits.

    Attributes:
        pid: of the process, or of a thread that is traced.
        code: CLD_*.
        status: the exit code, or the signal with the event of a traced thread's stop above it.
        time: processor time, for getrusage.
        peak: memory that was resident at most.
        forget: called to have it not told again.
    """

    pid: int
    code: int
    status: int
    time: int
    peak: int
    forget: Callable[[], None]

    def as_wait4(self) -> int:
        """The status as wait4 tells it."""
        if self.code in (sig.CLD_STOPPED, sig.CLD_TRAPPED):
            return self.status << 8 | 0x7F
        if self.code == sig.CLD_CONTINUED:
            return 0xFFFF
        return self.status if self.code == sig.CLD_KILLED else (self.status & 0xFF) << 8


class WaitRequest(NamedTuple):
    """The children and the news that somebody waits for.

    Attributes:
        wanted: says whether it is a process, or a thread of one, by (id, process).
        options: W*.
    """

    wanted: Callable[[int, Process], bool]
    options: int


def _waiting(k: Thread, request: WaitRequest, take: Callable[[Waited], int]) -> int | Wait:
    def poll() -> int | None:
        found, some = _look(k, request)
        if found is not None:
            result = take(found)
            if not request.options & _NOWAIT:
                found.forget()
            return result
        if not some:
            raise LinuxError(errno.ECHILD)
        return 0 if request.options & _NOHANG else None

    found = poll()
    return found if found is not None else Wait(poll, woken_by_calls=True)


def _look(k: Thread, request: WaitRequest) -> tuple[Waited | None, bool]:
    """The next piece of news, and whether there is anybody to wait for (do_wait)."""
    wanted, options = request
    some = False
    for child in k.process.children.values():
        if not wanted(child.pid, child):
            continue
        tracee = _tracee_of(child)
        mine = tracee is not None and tracee.tracer.process is k.process
        if (
            not mine
            and not options & _WALL
            and bool(options & _WCLONE) != (child.exit_signal != sig.SIGCHLD)
        ):
            continue
        found, here = _of_child(k, child, tracee if mine else None, tracee is not None, options)
        some = some or here
        if found is not None:
            return found, True
    for tid, tracee in list(k.process.tracees.items()):
        process = tracee.thread.process
        own = process.parent is k.process and tid == process.pid
        if own or not wanted(tid, process) or (options & _WNOTHREAD and tracee.tracer is not k):
            continue
        found, here = _of_tracee(k, tracee, options)
        some = some or here
        if found is not None:
            return found, True
    return None, some


def _tracee_of(process: Process) -> "Tracee | None":
    """A process's first thread as its tracer has it."""
    if process.tracee is not None:
        return process.tracee
    first = process.threads.get(process.pid)
    return None if first is None else first.tracee


def _of_child(
    k: Thread, child: Process, tracee: "Tracee | None", traced: bool, options: int
) -> tuple[Waited | None, bool]:
    """The news of a child, and whether it is to be waited for.

    Args:
        k: who waits.
        child: the child.
        tracee: its first thread, if the caller's process traces that.
        traced: somebody does.
        options: W*.
    """
    if child.exit is not None and not child.threads:
        if traced and tracee is None:
            return None, True  # its tracer comes first
        return (_ended(k, child), True) if options & _EXITED else (None, False)
    if tracee is not None:
        stopped = _trapped(tracee)
        if stopped is not None:
            return stopped, True
    change = child.change
    if change is None or (tracee is not None and change[0] == sig.CLD_STOPPED):
        return None, True
    if not options & (_UNTRACED if change[0] == sig.CLD_STOPPED else _CONTINUED):
        return None, True

    def forget() -> None:
        child.change = None

    return Waited(child.pid, *change, _time(child), _peak(child), forget), True


def _ended(k: Thread, child: Process) -> Waited:
    def forget() -> None:
        if child.tracee is not None:
            child.tracee.unlink()
        k.process.children.pop(child.pid, None)
        k.process.children_time += _time(child)
        k.process.children_peak = max(k.process.children_peak, _peak(child))
        k.machine.forget_process(child)

    return Waited(child.pid, *_code(child), _time(child), _peak(child), forget)


def _trapped(tracee: "Tracee") -> Waited | None:
    """A traced thread's stop, if its tracer does not know of it."""
    if not tracee.stopped or tracee.listening or not tracee.code:
        return None

    def forget() -> None:
        tracee.code = 0

    return Waited(tracee.thread.tid, sig.CLD_TRAPPED, tracee.code, 0, 0, forget)


def _of_tracee(k: Thread, tracee: "Tracee", options: int) -> tuple[Waited | None, bool]:
    """The same of a traced thread that is no child's first one."""
    process = tracee.thread.process
    if tracee.status is None:
        return _trapped(tracee), True
    first = tracee.thread.tid == process.pid
    if first and process.threads:
        return None, bool(options & (_EXITED | _CONTINUED))
    if not options & _EXITED:
        return None, False
    code = tracee.status
    number = code & 0x7F
    told = (sig.CLD_KILLED, number) if number else (sig.CLD_EXITED, code >> 8)
    if first:
        told = _code(process)
    return Waited(tracee.thread.tid, *told, 0, 0, tracee.detach), True


def wait4(k: Thread, pid: int, status: int, options: int, usage: int) -> int | Wait:
    """Wait for a child to end, and forget it then."""
    pid, options = s32(pid), u32(options)
    if options & ~(_THREADS | _NOHANG | _UNTRACED | _CONTINUED):
        raise LinuxError(errno.EINVAL)
    if pid == -0x80000000:
        raise LinuxError(errno.ESRCH)

    def take(found: Waited) -> int:
        if status:
            k.memory.write(status, struct.pack("<i", found.as_wait4()))
        if usage:
            k.memory.write(usage, limits.usage(found.time, found.peak))
        return found.pid

    return _waiting(k, WaitRequest(_by_pid(k, pid), options | _EXITED), take)


def _by_pid(k: Thread, pid: int) -> Callable[[int, Process], bool]:
    if pid == -1:
        return lambda tid, process: True
    if pid > 0:
        return lambda tid, process: tid == pid
    group = -pid or k.process.group
    return lambda tid, process: process.group == group


def _only(process: Process | Init) -> Callable[[int, Process], bool]:
    return lambda tid, child: child is process and tid == child.pid


def waitid(k: Thread, which: int, pid: int, info: int, options: int, usage: int) -> int | Wait:
    """The same, with what it was as a siginfo, which is written whatever comes of the call."""
    try:
        return _waitid(k, which, pid, info, options, usage)
    except LinuxError:
        if info:
            k.memory.write(info, bytes(12))
            k.memory.write(info + 16, bytes(12))
        raise


def _waitid(k: Thread, which: int, pid: int, info: int, options: int, usage: int) -> int | Wait:
    """The call itself; the child may stay."""
    which, pid, options = s32(which), s32(pid), u32(options)
    known = _THREADS | _NOHANG | _UNTRACED | _EXITED | _CONTINUED | _NOWAIT
    if options & ~known or not options & (_UNTRACED | _EXITED | _CONTINUED):
        raise LinuxError(errno.EINVAL)
    impatient = False
    if which == 0:
        wanted = _by_pid(k, -1)
    elif which == 1 and pid > 0:
        wanted = _by_pid(k, pid)
    elif which == 2 and pid >= 0:
        wanted = _by_pid(k, -pid)
    elif which == _P_PIDFD and pid >= 0:
        file = pidfiles.at(k, pid)
        wanted = _only(file.process)
        impatient = file.nonblocking and not options & _NOHANG
    else:
        raise LinuxError(errno.EINVAL)

    def take(found: Waited) -> int:
        if info:
            siginfo = sig.info_child(found.code, found.pid, k.uid, found.status)
            k.memory.write(info, siginfo.ljust(128, b"\0"))
        if usage:
            k.memory.write(usage, limits.usage(found.time, found.peak))
        return 0

    if info and options & _NOHANG:
        k.memory.write(info, bytes(32))
    found = _waiting(k, WaitRequest(wanted, options), take)
    if impatient and isinstance(found, Wait):
        raise LinuxError(errno.EAGAIN)
    return found


SYSCALLS: SyscallTable = {"wait4": wait4, "waitid": waitid}

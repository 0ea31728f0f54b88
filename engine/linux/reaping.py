"""The end of processes, and parents that wait for it (kernel/exit.c)."""

import errno
import struct
from collections.abc import Callable
from typing import Final

from engine.linux import futex, jobs, limits, pidfiles, sem, shm
from engine.linux import signals as sig
from engine.linux.context import SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.init import Init
from engine.linux.process import Process
from engine.linux.signals import PendingSignal
from engine.linux.thread import Thread
from engine.linux.wait import Wait

_NOHANG, _UNTRACED, _EXITED, _CONTINUED, _NOWAIT = 1, 2, 4, 8, 0x01000000
_THREADS: Final = 0xE0000000
"""__WNOTHREAD, __WALL and __WCLONE: all children are seen by all threads."""
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
        machine.left(thread)
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
        leave_space(process, keep=process is machine.first)  # the report looks at that
    _tell_parent(process)


def leave_space(process: Process, *, keep: bool = False) -> None:
    """A process does not run in its address space any more; the last one takes it along.

    Args:
        process: which.
        keep: it may still be looked at.
    """
    space = process.space
    if space.users == 1:
        shm.memory_left(process)
    space.users -= 1
    if not space.users:
        if keep:
            space.memory.retire()
        else:
            recorder = process.machine.recorder
            if recorder is not None:
                recorder.ended(space)
            process.machine.spaces.ended(space)
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
        process.machine.processes.pop(child.pid, None)
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
    parent, machine = process.parent, process.machine
    if parent is None or parent.exit is not None:
        if process is not machine.first:
            machine.processes.pop(process.pid, None)
        return
    number = process.exit_signal
    action = parent.hand.action(sig.SIGCHLD)
    forgotten = number == sig.SIGCHLD and (
        action.handler == sig.SIG_IGN or action.flags & sig.SA_NOCLDWAIT
    )
    if number and not (number == sig.SIGCHLD and action.handler == sig.SIG_IGN):
        parent.post(PendingSignal(number, struct.pack("<i", number) + _info(process)[4:]))
    if forgotten:
        parent.children.pop(process.pid, None)
        machine.processes.pop(process.pid, None)
    for thread in parent.threads.values():
        machine.wake(thread)


def _code(process: Process) -> tuple[int, int]:
    """(CLD_* code, status) of a process that has ended, been stopped or continued."""
    end = process.exit
    if end is None:
        assert process.change is not None
        return process.change
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


def _told(child: Process, options: int) -> bool:
    """True if a child has been stopped or continued, and that is waited for."""
    if child.exit is not None or child.change is None:
        return False
    return bool(options & (_UNTRACED if child.change[0] == sig.CLD_STOPPED else _CONTINUED))


def _waiting(
    k: Thread, wanted: Callable[[Process], bool], options: int, take: Callable[[Process], int]
) -> int | Wait:
    def poll() -> int | None:
        children = [child for child in k.process.children.values() if wanted(child)]
        if not children:
            raise LinuxError(errno.ECHILD)
        for child in children:
            if child.exit is not None and options & _EXITED:
                found = take(child)
                if not options & _NOWAIT:
                    del k.process.children[child.pid]
                    k.process.children_time += _time(child)
                    k.process.children_peak = max(k.process.children_peak, _peak(child))
                    k.machine.processes.pop(child.pid, None)
                return found
            if _told(child, options):
                found = take(child)
                if not options & _NOWAIT:
                    child.change = None
                return found
        return 0 if options & _NOHANG else None

    found = poll()
    return found if found is not None else Wait(poll, woken_by_calls=True)


def wait4(k: Thread, pid: int, status: int, options: int, usage: int) -> int | Wait:
    """Wait for a child to end, and forget it then."""
    pid, options = s32(pid), u32(options)
    if options & ~(_THREADS | _NOHANG | _UNTRACED | _CONTINUED):
        raise LinuxError(errno.EINVAL)
    if pid == -0x80000000:
        raise LinuxError(errno.ESRCH)

    def take(child: Process) -> int:
        if status:
            k.memory.write(status, struct.pack("<i", _status(child)))
        if usage:
            k.memory.write(usage, limits.usage(_time(child), _peak(child)))
        return child.pid

    return _waiting(k, _by_pid(k, pid), options | _EXITED, take)


def _by_pid(k: Thread, pid: int) -> Callable[[Process], bool]:
    if pid == -1:
        return lambda child: True
    if pid > 0:
        return lambda child: child.pid == pid
    group = -pid or k.process.group
    return lambda child: child.group == group


def _only(process: Process | Init) -> Callable[[Process], bool]:
    return lambda child: child is process


def waitid(k: Thread, which: int, pid: int, info: int, options: int, usage: int) -> int | Wait:
    """The same, with what it was as a siginfo; the child may stay."""
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

    def take(child: Process) -> int:
        if info:
            k.memory.write(info, _info(child).ljust(128, b"\0"))
        if usage:
            k.memory.write(usage, limits.usage(_time(child), _peak(child)))
        return 0

    if info and options & _NOHANG:
        k.memory.write(info, bytes(32))
    found = _waiting(k, wanted, options, take)
    if impatient and isinstance(found, Wait):
        raise LinuxError(errno.EAGAIN)
    return found


SYSCALLS: SyscallTable = {"wait4": wait4, "waitid": waitid}

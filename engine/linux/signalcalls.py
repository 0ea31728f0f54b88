"""System calls about signals: actions, masks, waiting for them, sending them."""

import struct

from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.init import INIT
from engine.linux.process import Process
from engine.linux.signals import (
    SA_RESTORER,
    SI_TKILL,
    SI_USER,
    SIGKILL,
    SIGSTOP,
    SS_AUTODISARM,
    SS_DISABLE,
    SS_ONSTACK,
    UNBLOCKABLE,
    Action,
    PendingSignal,
    info_kill,
)
from engine.linux.thread import Thread
from engine.linux.wait import Wait

EPERM, ESRCH, EAGAIN, ENOMEM, EINVAL = 1, 3, 11, 12, 22


def _check(number: int, *, zero: bool = False) -> int:
    if not (0 if zero else 1) <= number <= 64:
        raise LinuxError(EINVAL)
    return number


def rt_sigaction(k: Thread, number: int, new: int, old: int, size: int) -> int:
    """Examine and change what a signal does."""
    number = _check(s32(number))
    if size != 8:
        raise LinuxError(EINVAL)
    state = k.signals
    before = state.action(number)
    has_restorer = k.arch.linux.restorer
    if new:
        if number in (SIGKILL, SIGSTOP):
            raise LinuxError(EINVAL)
        if has_restorer:
            handler, flags, restorer, mask = struct.unpack("<4Q", k.memory.read(new, 32))
        else:
            handler, flags, mask = struct.unpack("<3Q", k.memory.read(new, 24))
            flags &= ~SA_RESTORER
        if not flags & SA_RESTORER:
            restorer = 0
        after = Action(handler, flags, restorer, mask & ~UNBLOCKABLE)
    if old:
        restorers = (before.restorer,) if has_restorer else ()
        words = (before.handler, before.flags, *restorers, before.mask)
        k.memory.write(old, struct.pack(f"<{len(words)}Q", *words))
    if new:
        state.hand.actions[number] = after
        if state.ignored(number):
            for thread in k.process.threads.values():
                thread.signals.forget(number)
    return 0


def rt_sigprocmask(k: Thread, how: int, new: int, old: int, size: int) -> int:
    """Examine and change blocked signals."""
    if size != 8:
        raise LinuxError(EINVAL)
    before = k.signals.blocked
    if new:
        (mask,) = struct.unpack("<Q", k.memory.read(new, 8))
        mask &= ~UNBLOCKABLE
        how = s32(how)
        if how == 0:
            after = before | mask
        elif how == 1:
            after = before & ~mask
        elif how == 2:
            after = mask
        else:
            raise LinuxError(EINVAL)
        k.signals.blocked = after
    if old:
        k.memory.write(old, struct.pack("<Q", before))
    return 0


def rt_sigpending(k: Thread, address: int, size: int) -> int:
    """Signals that wait because they are blocked."""
    if size > 8:
        raise LinuxError(EINVAL)
    mask = k.signals.waiting() & k.signals.blocked
    k.memory.write(address, struct.pack("<Q", mask)[:size])
    return 0


def _for_a_signal() -> Wait:
    return Wait(lambda: None, restart=False, outside=True, woken_by_calls=True)


def rt_sigsuspend(k: Thread, address: int, size: int) -> int | Wait:
    """Wait for a signal under another mask."""
    if size != 8:
        raise LinuxError(EINVAL)
    (mask,) = struct.unpack("<Q", k.memory.read(address, 8))
    return k.with_signal_mask(
        mask, lambda: Wait(lambda: None, restart=False, outside=True, woken_by_calls=True)
    )


def pause(k: Thread) -> Wait:
    """Wait for a signal."""
    return _for_a_signal()


def rt_sigtimedwait(k: Thread, mask_at: int, info: int, timeout: int, size: int) -> int | Wait:
    """Take a pending signal, blocked or not, or wait for one."""
    if size != 8:
        raise LinuxError(EINVAL)
    (mask,) = struct.unpack("<Q", k.memory.read(mask_at, 8))
    mask &= ~UNBLOCKABLE
    deadline = None
    if timeout:
        seconds, nanoseconds = struct.unpack("<qq", k.memory.read(timeout, 16))
        if seconds < 0 or not 0 <= nanoseconds < 10**9:
            raise LinuxError(EINVAL)
        deadline = k.clock.monotonic() + seconds * 10**9 + nanoseconds

    def poll() -> int | None:
        item = k.signals.take(mask)
        if item is None:
            return None
        if info:
            k.memory.write(info, item.info.ljust(128, b"\0"))
        return item.number

    result = poll()
    if result is not None:
        return result
    return Wait(
        poll,
        deadline,
        -EAGAIN,
        restart=False,
        signals=mask,
        outside=True,
        woken_by_calls=True,
        stop_ends=True,
    )


def sigaltstack(k: Thread, new: int, old: int) -> int:
    """Examine and change the alternate signal stack."""
    state = k.signals
    sp, flags, size = state.altstack
    active = state.on_altstack(k.cpu.read_register(k.arch.roles.sp))
    before = struct.pack("<QiiQ", sp, _signed(flags | (SS_ONSTACK if active else 0)), 0, size)
    if new:
        sp, flags, _, size = struct.unpack("<QiiQ", k.memory.read(new, 24))
        flags &= 0xFFFFFFFF
        if active:
            raise LinuxError(EPERM)
        if flags & ~(SS_AUTODISARM) not in (0, SS_ONSTACK, SS_DISABLE):
            raise LinuxError(EINVAL)
        if flags & SS_DISABLE:
            state.altstack = (0, SS_DISABLE, 0)
        else:
            if size < k.arch.linux.signals.minimum_stack:
                raise LinuxError(ENOMEM)
            state.altstack = (sp, flags & ~SS_ONSTACK, size)
    if old:
        k.memory.write(old, before)
    return 0


def _signed(value: int) -> int:
    return s32(value)


def _meant(k: Thread, pid: int) -> list[Process]:
    """The processes that a number means, as for kill; ESRCH if there are none.

    Process 1 is none of them: it is root's, and found where a number means it alone.
    """
    processes = k.machine.processes
    if pid > 0:
        thread = k.machine.threads.get(pid)
        found = processes.get(pid) if thread is None else thread.process
        wanted = [] if found is None else [found]
    elif pid == -1:  # all but oneself
        wanted = [each for each in processes.values() if each is not k.process]
    else:
        group = -pid or k.process.group
        wanted = [each for each in processes.values() if each.group == group]
    if not wanted and pid != INIT:
        raise LinuxError(ESRCH)
    return wanted


def _refused(pid: int) -> None:
    """EPERM for process 1, once the signal's number is known to be right."""
    if pid == INIT:
        raise LinuxError(EPERM)


def kill(k: Thread, pid: int, number: int) -> int:
    """Send a signal to processes."""
    pid, number = s32(pid), s32(number)
    processes = _meant(k, pid)
    _check(number, zero=True)
    _refused(pid)
    for process in processes:
        if number and process.exit is None:
            process.post(PendingSignal(number, info_kill(number, SI_USER, k.pid, k.uid)))
    return 0


def tkill(k: Thread, tid: int, number: int) -> int:
    """Send a signal to a thread."""
    return _to_thread(k, 0, s32(tid), number)


def tgkill(k: Thread, pid: int, tid: int, number: int) -> int:
    """Send a signal to a thread of a process."""
    if s32(pid) <= 0:
        raise LinuxError(EINVAL)
    return _to_thread(k, s32(pid), s32(tid), number)


def _thread(k: Thread, pid: int, tid: int, number: int) -> Thread:
    """The thread that a signal is for, of a process if `pid` is not 0."""
    if tid <= 0:
        raise LinuxError(EINVAL)
    if tid == INIT and pid in (0, INIT):
        _check(number, zero=True)
        raise LinuxError(EPERM)
    thread = k.machine.threads.get(tid)
    if thread is None or pid not in (0, thread.pid):
        raise LinuxError(ESRCH)
    return thread


def _to_thread(k: Thread, pid: int, tid: int, number: int) -> int:
    thread = _thread(k, pid, tid, s32(number))
    number = _check(s32(number), zero=True)
    if number:
        thread.post(PendingSignal(number, info_kill(number, SI_TKILL, k.pid, k.uid)))
    return 0


def _given(k: Thread, number: int, info: int, own: bool) -> PendingSignal:
    """A signal with the siginfo that the sender gives."""
    data = k.memory.read(info, 128)
    (code,) = struct.unpack_from("<i", data, 8)
    if (code >= 0 or code == SI_TKILL) and not own:
        raise LinuxError(EPERM)
    return PendingSignal(number, struct.pack("<i", number) + data[4:48])


def rt_sigqueueinfo(k: Thread, pid: int, number: int, info: int) -> int:
    """Send a signal with a value."""
    pid = s32(pid)
    item = _given(k, s32(number), info, pid == k.pid)
    if pid <= 0:
        raise LinuxError(ESRCH)
    processes = _meant(k, pid)
    number = _check(s32(number), zero=True)
    _refused(pid)
    for process in processes:
        if number and process.exit is None and not process.post(item):
            raise LinuxError(EAGAIN)
    return 0


def rt_tgsigqueueinfo(k: Thread, pid: int, tid: int, number: int, info: int) -> int:
    """Send a signal with a value to a thread."""
    pid, tid = s32(pid), s32(tid)
    if pid <= 0 or tid <= 0:
        raise LinuxError(EINVAL)
    item = _given(k, s32(number), info, pid == k.pid)
    thread = _thread(k, pid, tid, s32(number))
    number = _check(s32(number), zero=True)
    if number and not thread.post(item):
        raise LinuxError(EAGAIN)
    return 0


SYSCALLS: SyscallTable = {
    "rt_sigaction": rt_sigaction,
    "rt_sigprocmask": rt_sigprocmask,
    "rt_sigpending": rt_sigpending,
    "rt_sigsuspend": rt_sigsuspend,
    "rt_sigtimedwait": rt_sigtimedwait,
    "rt_sigqueueinfo": rt_sigqueueinfo,
    "rt_tgsigqueueinfo": rt_tgsigqueueinfo,
    "sigaltstack": sigaltstack,
    "pause": pause,
    "kill": kill,
    "tkill": tkill,
    "tgkill": tgkill,
}

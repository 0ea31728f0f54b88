"""Signals: state, generation, delivery, and their system calls.

Numbers, defaults and siginfo layouts are Linux's generic ones (asm-generic/signal.h,
siginfo.h), which x86-64 and AArch64 share; frames are the architecture's.
"""

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.wait import Wait

if TYPE_CHECKING:
    from engine.linux.kernel import Kernel

EPERM, ESRCH, EINTR, EAGAIN, ENOMEM, EFAULT, EINVAL = 1, 3, 4, 11, 12, 14, 22
SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE = 1, 2, 3, 4, 5, 6, 7, 8
SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM = 9, 10, 11, 12, 13, 14, 15
SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG = 17, 18, 19, 20, 21, 22, 23
SIGVTALRM, SIGPROF, SIGWINCH, SIGSYS = 26, 27, 28, 31
SIGRTMIN: Final = 32

SA_SIGINFO, SA_RESTORER, SA_ONSTACK, SA_RESTART = 4, 0x04000000, 0x08000000, 0x10000000
SA_NODEFER, SA_RESETHAND = 0x40000000, 0x80000000
SS_ONSTACK, SS_DISABLE, SS_AUTODISARM = 1, 2, 1 << 31
SIG_DFL, SIG_IGN = 0, 1
SI_USER, SI_KERNEL, SI_QUEUE, SI_TIMER, SI_TKILL = 0, 0x80, -1, -2, -6

NAMES: Final = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT",
    7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2",
    13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT",
    19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU", 23: "SIGURG", 24: "SIGXCPU",
    25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO", 30: "SIGPWR",
    31: "SIGSYS",
}  # fmt: skip

_IGNORED = frozenset({SIGCHLD, SIGCONT, SIGURG, SIGWINCH})
_STOPPING = frozenset({SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU})
_SYNCHRONOUS = (SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS)
_UNBLOCKABLE = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1)
_MAX_QUEUED = 1024


def name(number: int) -> str:
    """The signal's name, as strsignal's users know it."""
    return NAMES.get(number, f"SIGRTMIN+{number - SIGRTMIN}" if number >= SIGRTMIN else "SIG?")


def bit(number: int) -> int:
    """The signal's bit in a mask."""
    return 1 << (number - 1)


@dataclass(frozen=True, slots=True)
class Action:
    """struct kernel_sigaction."""

    handler: int = SIG_DFL
    flags: int = 0
    restorer: int = 0
    mask: int = 0


@dataclass(frozen=True, slots=True)
class PendingSignal:
    """A signal that waits for delivery: its siginfo, and the POSIX timer it comes from."""

    number: int
    info: bytes
    timer: int = -1


@dataclass(slots=True)
class SignalState:
    """Signals of the process and of its thread.

    Attributes:
        actions: what each signal does.
        blocked: the thread's mask.
        saved: the mask to return to, while a call like ppoll runs under another.
        pending: signals not delivered yet, in order of arrival.
        altstack: (sp, flags, size).
        last_fault: (address, trap number, error code) that every frame shows.
    """

    actions: dict[int, Action] = field(default_factory=dict)
    blocked: int = 0
    saved: int | None = None
    pending: list[PendingSignal] = field(default_factory=list)
    altstack: tuple[int, int, int] = (0, SS_DISABLE, 0)
    last_fault: tuple[int, int, int] = (0, 0, 0)

    def action(self, number: int) -> Action:
        """What a signal does."""
        return self.actions.get(number, Action())

    def ignored(self, number: int) -> bool:
        """Whether a signal has no effect."""
        handler = self.action(number).handler
        return handler == SIG_IGN or (handler == SIG_DFL and number in _IGNORED)

    def pending_mask(self) -> int:
        """All pending signals."""
        mask = 0
        for item in self.pending:
            mask |= bit(item.number)
        return mask

    def queue(self, item: PendingSignal) -> bool:
        """Make a signal pending; False if the queue of real-time signals is full."""
        if self.ignored(item.number) and not self.blocked & bit(item.number):
            return True
        if item.number < SIGRTMIN and self.pending_mask() & bit(item.number):
            return True
        if len(self.pending) >= _MAX_QUEUED:
            return False
        if item.number == SIGCONT:
            self.pending = [old for old in self.pending if old.number not in _STOPPING]
        self.pending.append(item)
        return True

    def take(self, mask: int) -> PendingSignal | None:
        """Remove and return the next pending signal among those in a mask."""
        found: PendingSignal | None = None
        for item in self.pending:
            if not mask & bit(item.number):
                continue
            if found is None or _rank(item.number) < _rank(found.number):
                found = item
        if found is not None:
            self.pending.remove(found)
        return found

    def deliverable(self) -> bool:
        """Whether a pending signal is not blocked."""
        return bool(self.pending) and bool(self.pending_mask() & ~self.blocked)

    def on_altstack(self, sp: int) -> bool:
        """Whether a stack pointer lies on the alternate stack."""
        base, flags, size = self.altstack
        return not flags & (SS_DISABLE | SS_AUTODISARM) and 0 < sp - base <= size


def _rank(number: int) -> tuple[int, int]:
    return (0 if number in _SYNCHRONOUS else 1, number)


def info_kill(number: int, code: int, pid: int, uid: int, value: int = 0) -> bytes:
    """Siginfo of kill, tgkill and sigqueue."""
    return struct.pack("<iiiiiIQ", number, 0, code, 0, pid, uid, value)


def info_timer(number: int, timer: int, overrun: int, value: int) -> bytes:
    """Siginfo of a POSIX timer."""
    return struct.pack("<iiiiiiQ", number, 0, SI_TIMER, 0, timer, overrun & 0x7FFFFFFF, value)


def info_fault(number: int, code: int, address: int) -> bytes:
    """Siginfo of a fault."""
    return struct.pack("<iiiiQ", number, 0, code, 0, address)


def default_is_fatal(number: int) -> bool:
    """Whether a signal without a handler ends the process."""
    return number not in _IGNORED and number not in _STOPPING


def stops(number: int) -> bool:
    """Whether a signal without a handler stops the process."""
    return number in _STOPPING


# -- system calls -------------------------------------------------------------------------


def _check(number: int, *, zero: bool = False) -> int:
    if not (0 if zero else 1) <= number <= 64:
        raise LinuxError(EINVAL)
    return number


def rt_sigaction(k: "Kernel", number: int, new: int, old: int, size: int) -> int:
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
        after = Action(handler, flags, restorer, mask & ~_UNBLOCKABLE)
    if old:
        restorers = (before.restorer,) if has_restorer else ()
        words = (before.handler, before.flags, *restorers, before.mask)
        k.memory.write(old, struct.pack(f"<{len(words)}Q", *words))
    if new:
        state.actions[number] = after
        if state.ignored(number):
            state.pending = [item for item in state.pending if item.number != number]
    return 0


def rt_sigprocmask(k: "Kernel", how: int, new: int, old: int, size: int) -> int:
    """Examine and change blocked signals."""
    if size != 8:
        raise LinuxError(EINVAL)
    before = k.signals.blocked
    if new:
        (mask,) = struct.unpack("<Q", k.memory.read(new, 8))
        mask &= ~_UNBLOCKABLE
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


def rt_sigpending(k: "Kernel", address: int, size: int) -> int:
    """Signals that wait because they are blocked."""
    if size > 8:
        raise LinuxError(EINVAL)
    mask = k.signals.pending_mask() & k.signals.blocked
    k.memory.write(address, struct.pack("<Q", mask)[:size])
    return 0


def rt_sigsuspend(k: "Kernel", address: int, size: int) -> int | Wait:
    """Wait for a signal under another mask."""
    if size != 8:
        raise LinuxError(EINVAL)
    (mask,) = struct.unpack("<Q", k.memory.read(address, 8))
    return k.with_signal_mask(mask, lambda: Wait(lambda: None, restart=False))


def pause(k: "Kernel") -> Wait:
    """Wait for a signal."""
    return Wait(lambda: None, restart=False)


def rt_sigtimedwait(k: "Kernel", mask_at: int, info: int, timeout: int, size: int) -> int | Wait:
    """Take a pending signal, blocked or not, or wait for one."""
    if size != 8:
        raise LinuxError(EINVAL)
    (mask,) = struct.unpack("<Q", k.memory.read(mask_at, 8))
    mask &= ~_UNBLOCKABLE
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
    return Wait(poll, deadline, -EAGAIN, restart=False, signals=mask)


def sigaltstack(k: "Kernel", new: int, old: int) -> int:
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


def _to_self(k: "Kernel", pid: int) -> None:
    """ESRCH unless a process id means the guest itself; there are no others."""
    if pid not in (k.pid, 0, -1, -k.pid):
        raise LinuxError(ESRCH)


def kill(k: "Kernel", pid: int, number: int) -> int:
    """Send a signal to the process itself."""
    pid, number = s32(pid), _check(s32(number), zero=True)
    _to_self(k, pid)
    if pid == -1:
        raise LinuxError(ESRCH)  # never to oneself
    if number:
        k.post(PendingSignal(number, info_kill(number, SI_USER, k.pid, k.uid)))
    return 0


def tkill(k: "Kernel", tid: int, number: int) -> int:
    """Send a signal to a thread."""
    return tgkill(k, k.pid, tid, number)


def tgkill(k: "Kernel", pid: int, tid: int, number: int) -> int:
    """Send a signal to a thread of a process."""
    pid, tid, number = s32(pid), s32(tid), _check(s32(number), zero=True)
    if pid <= 0 or tid <= 0:
        raise LinuxError(EINVAL)
    if (pid, tid) != (k.pid, k.pid):
        raise LinuxError(ESRCH)
    if number:
        k.post(PendingSignal(number, info_kill(number, SI_TKILL, k.pid, k.uid)))
    return 0


def rt_sigqueueinfo(k: "Kernel", pid: int, number: int, info: int) -> int:
    """Send a signal with a value."""
    pid, number = s32(pid), _check(s32(number), zero=True)
    data = k.memory.read(info, 128)
    _to_self(k, pid)
    (code,) = struct.unpack_from("<i", data, 8)
    if (code >= 0 or code == SI_TKILL) and pid != k.pid:
        raise LinuxError(EPERM)
    if number and not k.post(PendingSignal(number, struct.pack("<i", number) + data[4:48])):
        raise LinuxError(EAGAIN)
    return 0


def rt_tgsigqueueinfo(k: "Kernel", pid: int, tid: int, number: int, info: int) -> int:
    """Send a signal with a value to a thread."""
    if s32(tid) != k.pid:
        raise LinuxError(ESRCH)
    return rt_sigqueueinfo(k, pid, number, info)


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

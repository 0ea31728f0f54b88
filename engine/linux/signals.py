"""Signals: their numbers, the state of processes and threads, and what siginfo says.

Numbers, defaults and siginfo layouts are Linux's generic ones (asm-generic/signal.h,
siginfo.h), which x86-64 and AArch64 share; frames are the architecture's.
"""

import struct
from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from engine.linux.errno import LinuxError
from engine.linux.memorylimit import HeldMemory, MemoryLimit

SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE = 1, 2, 3, 4, 5, 6, 7, 8
SIGXCPU = 24
SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM = 9, 10, 11, 12, 13, 14, 15
SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG = 17, 18, 19, 20, 21, 22, 23
SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGSYS = 26, 27, 28, 29, 31
SIGRTMIN: Final = 32
HIGHEST: Final = 64
"""The highest number."""

SA_SIGINFO, SA_RESTORER, SA_ONSTACK, SA_RESTART = 4, 0x04000000, 0x08000000, 0x10000000
SA_NODEFER, SA_RESETHAND = 0x40000000, 0x80000000
SA_NOCLDSTOP, SA_NOCLDWAIT = 1, 2
CLD_EXITED, CLD_KILLED, CLD_TRAPPED, CLD_STOPPED, CLD_CONTINUED = 1, 2, 4, 5, 6
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

LAST: Final = 64
"""_NSIG: there is none with a higher number."""
_IGNORED = frozenset({SIGCHLD, SIGCONT, SIGURG, SIGWINCH})
STOPPING: Final = frozenset({SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU})
_SYNCHRONOUS = (SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS)
UNBLOCKABLE = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1)
_MAX_QUEUED = 1024
_FREE_SIGNALS: Final = 32
"""Signals of each thread that take no memory of the guest's;"""
_SIGNAL: Final = 384
"""each of the others takes so many bytes."""


def name(number: int) -> str:
    """The signal's name, as strsignal's users know it."""
    return NAMES.get(number, f"SIGRTMIN+{number - SIGRTMIN}" if number >= SIGRTMIN else "SIG?")


def bit(number: int) -> int:
    """The signal's bit in a mask."""
    return 1 << (number - 1)


class Action(Struct, frozen=True):
    """struct kernel_sigaction."""

    handler: int = SIG_DFL
    flags: int = 0
    restorer: int = 0
    mask: int = 0


class PendingSignal(Struct, frozen=True):
    """A signal that waits for delivery: its siginfo, and the POSIX timer it comes from."""

    number: int
    info: bytes
    timer: int = -1


class PendingSignals:
    """Signals that are not delivered yet: those of one number in order of arrival.

    Attributes:
        mask: their numbers.
    """

    __slots__ = ("_by_number", "_count", "_held", "_of_timers", "mask")

    def __init__(self) -> None:
        self.mask = 0
        self._count = 0
        self._held: HeldMemory | None = None
        self._by_number: dict[int, deque[PendingSignal]] = {}
        self._of_timers: dict[int, PendingSignal] = {}

    def __len__(self) -> int:
        return self._count

    def count_against(self, memory: MemoryLimit) -> None:
        """Let signals that wait take memory of the guest's from now on."""
        self._held = HeldMemory(memory)

    def has_room(self) -> bool:
        """True if one more may wait: there are not too many, and memory for it is left."""
        if self._count >= _MAX_QUEUED:
            return False
        beyond = max(0, self._count + 1 - _FREE_SIGNALS) * _SIGNAL
        if self._held is not None and beyond != self._held.size:
            try:
                self._held.resize(beyond)
            except LinuxError:
                return False
        return True

    def append(self, item: PendingSignal) -> None:
        """Add one."""
        self._by_number.setdefault(item.number, deque()).append(item)
        self.mask |= bit(item.number)
        self._count += 1
        if item.timer >= 0:
            self._of_timers[item.timer] = item

    def numbers(self, mask: int) -> list[int]:
        """Numbers of those in a mask."""
        mask &= self.mask
        return [number for number in self._by_number if mask & bit(number)]

    def pop(self, number: int) -> PendingSignal:
        """Remove and return the first of a number."""
        queue = self._by_number[number]
        item = queue.popleft()
        self._count -= 1
        if not queue:
            del self._by_number[number]
            self.mask &= ~bit(number)
        if item.timer >= 0:
            self._of_timers.pop(item.timer, None)
        return item

    def listed(self) -> list[PendingSignal]:
        """All of them, those of one number in order."""
        return [item for queue in self._by_number.values() for item in queue]

    def drop(self, number: int) -> None:
        """Remove all of a number."""
        while self.mask & bit(number):
            self.pop(number)

    def of_timer(self, timer: int) -> PendingSignal | None:
        """The one that a POSIX timer has sent."""
        return self._of_timers.get(timer)

    def replace(self, old: PendingSignal, new: PendingSignal) -> None:
        """Put a timer's signal in the place of the one that it sent before."""
        queue = self._by_number[old.number]
        queue[queue.index(old)] = new
        self._of_timers[new.timer] = new

    def drop_timer(self, timer: int) -> None:
        """Remove the one that a POSIX timer has sent."""
        item = self._of_timers.pop(timer, None)
        if item is None:
            return
        queue = self._by_number[item.number]
        queue.remove(item)
        self._count -= 1
        if not queue:
            del self._by_number[item.number]
            self.mask &= ~bit(item.number)


class SignalHand:
    """Signals as all threads of a process share them (sighand_struct, shared_pending).

    Attributes:
        actions: what each signal does.
        pending: signals to the process that no thread has taken yet.
    """

    __slots__ = ("actions", "pending")

    def __init__(self, actions: Mapping[int, Action] | None = None) -> None:
        self.actions = dict(actions or {})
        self.pending = PendingSignals()

    def action(self, number: int) -> Action:
        """The action of a signal."""
        return self.actions.get(number, _DEFAULT)

    def ignored(self, number: int) -> bool:
        """True if a signal has no effect."""
        handler = self.actions.get(number, _DEFAULT).handler
        return handler == SIG_IGN or (handler == SIG_DFL and number in _IGNORED)

    def handled(self) -> dict[int, Action]:
        """The actions after an exec: those with handlers are gone."""
        return {
            number: Action(handler=SIG_IGN)
            for number, action in self.actions.items()
            if action.handler == SIG_IGN
        }


class SignalState(Struct):
    """Signals of a thread.

    Attributes:
        hand: what it shares with its process.
        blocked: its mask.
        saved: the mask to return to, while a call like ppoll runs under another.
        pending: signals to this thread that are not delivered yet.
        altstack: (sp, flags, size).
        last_fault: (address, trap number, error code) that every frame shows.
        traced: somebody else sees signals first, those without effect, too.
    """

    hand: SignalHand = field(default_factory=SignalHand)
    blocked: int = 0
    saved: int | None = None
    pending: PendingSignals = field(default_factory=PendingSignals)
    altstack: tuple[int, int, int] = (0, SS_DISABLE, 0)
    last_fault: tuple[int, int, int] = (0, 0, 0)
    traced: bool = False

    def action(self, number: int) -> Action:
        """The action of a signal."""
        return self.hand.action(number)

    def ignored(self, number: int) -> bool:
        """True if a signal has no effect."""
        return self.hand.ignored(number)

    def queue(self, item: PendingSignal, pending: PendingSignals | None = None) -> bool:
        """Make a signal pending; False if the queue of real-time signals is full.

        Args:
            item: the signal.
            pending: where: for this thread alone if not given, or for its process.
        """
        pending = self.pending if pending is None else pending
        number = item.number
        mask = 1 << number - 1
        if self.has_no_effect(number):
            return True
        if number < SIGRTMIN and pending.mask & mask:
            return True
        if not pending.has_room():
            return False
        pending.append(item)
        return True

    def has_no_effect(self, number: int) -> bool:
        """True if a signal that is sent now is dropped, as nothing would come of it."""
        seen = self.blocked & bit(number) or (self.traced and number != SIGKILL)
        return not seen and self.hand.ignored(number)

    def force(self, item: PendingSignal) -> None:
        """Make a signal pending that the thread cannot escape (force_sig_info)."""
        self.expose(item.number)
        if not self.pending.mask & bit(item.number):
            self.pending.append(item)

    def expose(self, number: int) -> None:
        """A signal that is blocked or ignored is neither any more."""
        if self.blocked & bit(number) or self.action(number).handler == SIG_IGN:
            self.hand.actions[number] = Action()
            self.blocked &= ~bit(number)

    def forget(self, number: int) -> None:
        """Nothing of a signal is pending any more, for this thread and its process."""
        self.pending.drop(number)
        self.hand.pending.drop(number)

    def waiting(self) -> int:
        """The mask of what is pending, for this thread or its process."""
        return self.pending.mask | self.hand.pending.mask

    def take(self, mask: int) -> PendingSignal | None:
        """Remove and return the next pending signal among those in a mask; its own come first."""
        for pending in (self.pending, self.hand.pending):
            if not pending.mask:
                continue
            ready = pending.mask & mask
            if ready and not ready & (ready - 1):  # just one
                return pending.pop(ready.bit_length())
            if ready:
                return pending.pop(min(pending.numbers(mask), key=_rank))
        return None

    def deliverable(self) -> bool:
        """True if a pending signal is not blocked."""
        return bool((self.pending.mask | self.hand.pending.mask) & ~self.blocked)

    def on_altstack(self, sp: int) -> bool:
        """True if a stack pointer lies on the alternate stack."""
        base, flags, size = self.altstack
        return not flags & (SS_DISABLE | SS_AUTODISARM) and 0 < sp - base <= size


_DEFAULT: Final = Action()


def _rank(number: int) -> tuple[int, int]:
    return (0 if number in _SYNCHRONOUS else 1, number)


_INFO_KILL: Final = struct.Struct("<iiiiiIQ")


def info_kill(number: int, code: int, pid: int, uid: int, value: int = 0) -> bytes:
    """Siginfo of kill, tgkill and sigqueue."""
    return _INFO_KILL.pack(number, 0, code, 0, pid, uid, value)


def info_child(code: int, pid: int, uid: int, status: int) -> bytes:
    """Siginfo of a change in a child, for the parent and for waitid."""
    return struct.pack("<iiiiiIiiqq", SIGCHLD, 0, code, 0, pid, uid, status, 0, 0, 0)


def info_timer(number: int, timer: int, overrun: int, value: int) -> bytes:
    """Siginfo of a POSIX timer."""
    return struct.pack("<iiiiiiQ", number, 0, SI_TIMER, 0, timer, overrun & 0x7FFFFFFF, value)


def info_fault(number: int, code: int, address: int) -> bytes:
    """Siginfo of a fault."""
    return struct.pack("<iiiiQ", number, 0, code, 0, address)


def stops(number: int) -> bool:
    """True if a signal without a handler stops the process."""
    return number in STOPPING

"""System calls of traced threads that a signal has interrupted, and that are made again.

A tracer sees the kernel's own results for such a call before it is known what becomes of it
(arch/x86/kernel/signal.c, arch/arm64/kernel/signal.c). Nobody sees them where nobody traces:
there `Kernel` decides at once.
"""

import errno
from typing import TYPE_CHECKING, Final

from engine.linux import signals as sig
from engine.linux.context import SyscallTable
from engine.linux.errno import LinuxError
from engine.linux.signals import Action
from engine.linux.wait import Wait

if TYPE_CHECKING:
    from engine.linux.thread import Thread

ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, RESTARTBLOCK = 512, 513, 514, 516
_CODES: Final = (ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, RESTARTBLOCK)
_BLOCKS: Final = frozenset({"nanosleep", "clock_nanosleep", "poll", "restart_syscall"})
"""Calls that go on waiting by restart_syscall."""
_NO_HANDLER: Final = frozenset({"pause", "rt_sigsuspend", "select", "pselect6", "ppoll"})
"""Calls that are made again only where no handler runs."""
_WORD: Final = (1 << 64) - 1


def code_of(k: "Thread", wait: Wait | None) -> int:
    """The kernel's own errno for a call that waited and was interrupted."""
    name = k.call.name
    if wait is not None and wait.again:
        return ERESTARTNOINTR
    if wait is None or wait.restart:
        return ERESTARTSYS
    if name in _BLOCKS:
        k.restart = wait
        return RESTARTBLOCK
    return ERESTARTNOHAND if name in _NO_HANDLER else errno.EINTR


def begin(k: "Thread") -> None:
    """Get a call ready to be made again before a tracer hears of a signal, where that is so."""
    linux, pc = k.arch.linux, k.arch.roles.pc
    if linux.ptrace is None or not linux.ptrace().restarts_first or k.original < 0:
        return
    result = k.cpu.read_register(linux.result)
    k.original = -1
    code = _restarts(result)
    if code:
        here = k.cpu.read_register(pc)
        k.restarting = here - linux.syscall_size, here, code
        k.cpu.write_register(linux.result, k.first)
        k.cpu.write_register(pc, here - linux.syscall_size)


def _restarts(result: int) -> int:
    """The code of a call that may be made again, from its result; else 0."""
    code = -result & _WORD
    return code if code in _CODES else 0


def settle(k: "Thread", action: Action | None) -> None:
    """Make a call again, or end it with EINTR: nobody traces it any more, or a signal has come.

    Args:
        k: the thread.
        action: of the signal that has a handler; None where there is none.
    """
    cpu, linux, pc = k.cpu, k.arch.linux, k.arch.roles.pc
    if k.restarting is not None:
        again, behind, code = k.restarting
        k.restarting = None
        if cpu.read_register(pc) != again:
            return  # a debugger has sent it elsewhere
        if _ends(code, action):
            cpu.write_register(linux.result, -errno.EINTR & _WORD)
            cpu.write_register(pc, behind)
        elif code == RESTARTBLOCK:
            cpu.write_register(linux.number, _restart_number(k))
        return
    if k.original < 0:
        return
    code = _restarts(cpu.read_register(linux.result))
    number, k.original = k.original, -1
    if not code:
        return
    if _ends(code, action):
        cpu.write_register(linux.result, -errno.EINTR & _WORD)
        return
    again = cpu.read_register(pc) - linux.syscall_size
    if code == RESTARTBLOCK:
        number = _restart_number(k)
    cpu.write_register(linux.number, number)
    cpu.write_register(pc, again)


def _ends(code: int, action: Action | None) -> bool:
    """True if a handler's call is not made again."""
    if action is None or code == ERESTARTNOINTR:
        return False
    return code != ERESTARTSYS or not action.flags & sig.SA_RESTART


def _restart_number(k: "Thread") -> int:
    syscalls = k.arch.linux.syscalls
    return next(number for number, name in syscalls.items() if name == "restart_syscall")


def restart_syscall(k: "Thread") -> int | Wait:
    """Go on waiting, after signals without a handler."""
    wait, k.restart = k.restart, None
    if wait is None:
        raise LinuxError(errno.EINTR)
    found = wait.poll()
    return wait if found is None else found


SYSCALLS: SyscallTable = {"restart_syscall": restart_syscall}

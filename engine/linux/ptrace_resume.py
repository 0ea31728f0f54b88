"""Threads that go on behind a stop for their tracers, whoever lets them.

Sources: kernel/entry/common.c, include/linux/ptrace.h, kernel/signal.c.
"""

from engine.linux import delivery, futex
from engine.linux import signals as sig
from engine.linux.process import Process
from engine.linux.signals import PendingSignal
from engine.linux.thread import Thread
from engine.linux.tracee import After, Suspended


def called(
    k: Thread, then: Suspended, registers: tuple[int, ...]
) -> tuple[int, tuple[int, ...]] | None:
    """A thread goes on behind a stop at the beginning of a call: what it calls, if anything.

    Args:
        k: the thread.
        then: what it stopped with.
        registers: of a call, as they are now.

    Returns:
        Number and arguments; None where the call is not carried out: it is behind it then.
    """
    _unmark(k)
    _send(k, then.number)
    arguments = registers[1:-1]
    number = k.original & 0xFFFF_FFFF
    k.first = arguments[0]
    if then.emulated or number == 0xFFFF_FFFF or k.doomed():
        if k.tracee is not None:
            k.tracee.returns()
        return None
    return number, arguments


def go_on(k: Thread, then: Suspended) -> None:
    """A thread goes on behind a stop at the end of a call, or in front of a signal."""
    if then.after is After.RETURN:
        _unmark(k)
        _send(k, then.number)
    elif then.after is After.SIGNAL:
        delivery.go_on(k, then)


def _send(k: Thread, number: int) -> None:
    """The signal that a thread is let on with where it has not stopped for one."""
    if 0 < number <= sig.HIGHEST:
        k.post(PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))


def _unmark(k: Thread) -> None:
    """A register that showed where a call begins has its own value again."""
    name, value = k.marked
    if name:
        k.cpu.write_register(name, value)


def lingers(process: Process) -> bool:
    """True if threads of a process that ends are stopped for their tracers first."""
    end = process.exit
    assert end is not None
    code = end.signal or (end.code or 0) << 8
    threads = list(process.threads.values())
    waiting = [each for each in threads if each.tracee is not None and each.tracee.ends(code)]
    if not waiting:
        return False
    for thread in threads:
        if thread not in waiting:
            futex.thread_ends(thread)
            process.machine.left(thread, code)
            thread.files.leave()
    return True

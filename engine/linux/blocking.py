"""Calls that block: when a thread's wait is over, and how time passes while all wait."""

from collections.abc import Iterable
from typing import Final

from engine.linux import jobs
from engine.linux import signals as sig
from engine.linux.clock import FOREVER
from engine.linux.context import s32
from engine.linux.fs.vfs import OpenFile
from engine.linux.machine import Machine
from engine.linux.thread import Thread

INTERRUPTED: Final = -(1 << 62)
"""A wait that a signal with a handler has ended."""
RESTART: Final = INTERRUPTED + 1
"""The same, of a call that the handler's SA_RESTART may start again."""
AGAIN: Final = INTERRUPTED + 2
"""The same, of a call that starts again whatever the handler is."""

_LONGEST: Final = (1 << 31) - 1
"""Milliseconds that the host's poll takes; nobody waits for what comes later."""


_DESCRIPTORS: Final = {
    **dict.fromkeys(("read", "readv", "preadv2", "write", "writev", "pwritev2", "vmsplice"), (0,)),
    **dict.fromkeys(("recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg"), (0,)),
    **dict.fromkeys(("accept", "accept4", "connect", "flock", "fcntl"), (0,)),
    **dict.fromkeys(("epoll_wait", "epoll_pwait", "epoll_pwait2"), (0,)),
    "io_uring_enter": (0,),
    **dict.fromkeys(("sendfile", "tee"), (0, 1)),
    "splice": (0, 2),
}
"""Calls that wait for files to the arguments with their descriptors."""


def files_of(k: Thread) -> tuple[OpenFile, ...]:
    """The open files that a thread's call waits for."""
    places = _DESCRIPTORS.get(k.call.name, ())
    files = (k.files.peek(s32(k.call.arguments[place])) for place in places)
    return tuple(file for file in files if file is not None)


def handler_restarts(k: Thread) -> bool:
    """True if the signal that will be delivered next asks for SA_RESTART."""
    state = k.signals
    ready = state.waiting() & ~state.blocked
    if not ready:
        return True
    action = state.action((ready & -ready).bit_length())
    return action.handler == sig.SIG_DFL or bool(action.flags & sig.SA_RESTART)


def deadline(k: Thread) -> int | None:
    """The moment at which a thread's wait ends by itself."""
    assert k.wait is not None
    return None if k.wait.deadline is None else min(k.wait.deadline, FOREVER)


def moment(k: Thread) -> int | None:
    """The next moment at which a thread's wait may be over by time alone."""
    assert k.wait is not None
    end, due = deadline(k), k.wait.due() if k.wait.due is not None else None
    if due is None or due <= k.clock.peek():  # what is past has been looked at
        return end
    return min(due, FOREVER) if end is None else min(due, end)


def result(k: Thread) -> int | None:
    """The result of a thread's wait, if it is over: by itself, by a signal, or as time is up.

    It may raise what a handler of system calls may.
    """
    wait = k.wait
    assert wait is not None
    if not wait.woken_by_calls or k.nudged:
        found = wait.poll()
        if found is not None:
            return found
    if _interrupted(k):
        done = 0 if wait.partial is None else wait.partial()
        if done:
            return done
        if wait.on_interrupt is not None:
            wait.on_interrupt()
        if wait.leave is not None:
            wait.leave()
        if k.tracee is not None:
            return k.tracee.interrupted(wait)
        return AGAIN if wait.again else RESTART if wait.restart else INTERRUPTED
    if k.wait is None:
        return None  # a stop has ended it
    end = deadline(k)
    if end is not None and k.clock.peek() >= end:
        if wait.leave is not None:
            wait.leave()
        return (0 if wait.partial is None else wait.partial()) or wait.timeout_result
    return None


def _interrupted(k: Thread) -> bool:
    """True if a signal ends a wait; those without effect are taken away."""
    state = k.signals
    assert k.wait is not None
    found = state.waiting() & ~(state.blocked | k.wait.signals)
    tracee = k.tracee
    if k.wait.uninterruptible:
        found &= sig.bit(sig.SIGKILL)
    elif tracee is not None:
        return bool(found) or tracee.trap or tracee.notify or tracee.stop_pending
    while found:
        number = (found & -found).bit_length()
        found &= found - 1
        if sig.stops(number) and state.action(number).handler == sig.SIG_DFL:
            state.forget(number)
            jobs.stop(k.process, number)
            if k.stopped:
                return False  # it goes on waiting once it is continued, or has ended
        elif not state.ignored(number):
            return True
        state.forget(number)
    return False


def sleep(machine: Machine, blocked: Iterable[Thread]) -> None:
    """Let time pass until something may have changed for one of these threads."""
    clock = machine.clock
    moments = [machine.next_expiry(), *map(moment, blocked)]
    first = min((each for each in moments if each is not None), default=None)
    host_fds = [item for k in blocked if k.wait is not None for item in k.wait.host_fds]
    if not host_fds and first is not None and not clock.host:
        clock.jump(first)
    else:
        asked: dict[int, int] = {}
        for descriptor, events in host_fds:
            asked[descriptor] = asked.get(descriptor, 0) | events
        timeout = None
        if first is not None:
            timeout = max((first - clock.peek()) / 1e6, 0)
            if timeout > _LONGEST:
                timeout = first = None
        if not machine.host.wait(asked, timeout) and first is not None:
            clock.jump(first)
    machine.post_expired()

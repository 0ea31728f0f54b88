"""The sleep of a call that blocks: until its end, a signal, a timer, or the host."""

import select
from typing import Final

from engine.linux import signals as sig
from engine.linux.clock import FOREVER
from engine.linux.process import Process
from engine.linux.wait import Wait

INTERRUPTED: Final = -(1 << 62)
"""A wait that a signal with a handler has ended."""
RESTART: Final = INTERRUPTED + 1
"""The same, of a call that the handler's SA_RESTART may start again."""

_LONGEST: Final = (1 << 31) - 1
"""Milliseconds that the host's poll takes; nobody waits for what comes later."""


def handler_restarts(k: Process) -> bool:
    """True if the signal that will be delivered next asks for SA_RESTART."""
    state = k.signals
    ready = state.pending.numbers(~state.blocked)
    if not ready:
        return True
    return bool(state.action(min(ready)).flags & sig.SA_RESTART)


def wait_for(k: Process, wait: Wait) -> int:
    """Block the only thread: until the call is done, a signal comes, or time is up."""
    deadline = None if wait.deadline is None else min(wait.deadline, FOREVER)
    while True:
        result = wait.poll()
        if result is not None:
            return result
        if k.host.waiting():
            k.hear_host()
            if k.exit is not None:
                return INTERRUPTED
        if _interrupted(k, wait):
            if wait.on_interrupt is not None:
                wait.on_interrupt()
            return RESTART if wait.restart else INTERRUPTED
        if deadline is not None and k.clock.peek() >= deadline:
            return wait.timeout_result
        _sleep(k, wait, deadline)


def _interrupted(k: Process, wait: Wait) -> bool:
    """True if a signal ends a wait; those without effect are taken away."""
    state = k.signals
    for number in state.pending.numbers(~(state.blocked | wait.signals)):
        if not state.ignored(number):
            return True
        state.pending.drop(number)
    return False


def _sleep(k: Process, wait: Wait, deadline: int | None) -> None:
    """Let time pass until something may have changed."""
    moments = [m for m in (deadline, k.timers.next()) if m is not None]
    moment = min(moments) if moments else None
    if not wait.host_fds and moment is not None and not k.clock.host:
        k.clock.jump(moment)
    else:
        poller = select.poll()
        poller.register(k.host.wake_in, select.POLLIN)
        for descriptor, events in wait.host_fds:
            poller.register(descriptor, events)
        timeout = None
        if moment is not None:
            timeout = max((moment - k.clock.peek()) / 1e6, 0)
            if timeout > _LONGEST:
                timeout = moment = None
        if not poller.poll(timeout) and moment is not None:
            k.clock.jump(moment)
    k.post_expired()

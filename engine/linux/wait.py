"""System calls that block: they return a `Wait` and the kernel does the rest.

No handler ever sleeps by itself, so that guest threads, timers, signals and the host's
Ctrl-C can all end a wait, and so that time can jump when nothing else can happen.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wait:
    """A system call that cannot finish yet.

    Attributes:
        poll: tried again whenever something may have changed; a result ends the wait,
            None keeps waiting. It may raise LinuxError.
        deadline: guest time in nanoseconds (CLOCK_MONOTONIC) at which the wait ends.
        timeout_result: what the call returns at the deadline (0 or -errno).
        host_fds: (host file descriptor, select.POLL* mask) whose readiness may end the wait.
        restart: whether SA_RESTART restarts it after a signal handler (else EINTR).
        on_interrupt: called before EINTR is returned (nanosleep writes the rest there).
        signals: signals that end the wait although they are blocked (sigtimedwait), as a mask.
    """

    poll: Callable[[], int | None]
    deadline: int | None = None
    timeout_result: int = 0
    host_fds: tuple[tuple[int, int], ...] = ()
    restart: bool = True
    on_interrupt: Callable[[], None] | None = None
    signals: int = 0

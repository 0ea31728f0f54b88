"""System calls that block: they return a `Wait` and the kernel does the rest.

A wait is a thread's state and never a frame of the host's stack, so that other threads, timers,
signals and the host's Ctrl-C can all end it, and time can jump when nothing else can happen.
"""

from collections.abc import Callable

from msgspec import Struct


class Wait(Struct, frozen=True):
    """A system call that cannot finish yet.

    Attributes:
        poll: tried again whenever something may have changed; a result ends the wait,
            None keeps waiting. It may raise LinuxError.
        deadline: guest time in nanoseconds (CLOCK_MONOTONIC) at which the wait ends.
        timeout_result: what the call returns at the deadline (0 or -errno).
        host_fds: (host file descriptor, select.POLL* mask) whose readiness may end the wait.
        restart: whether SA_RESTART restarts it after a signal handler (else EINTR).
        again: it is restarted after any signal handler (ERESTARTNOINTR).
        on_interrupt: called before EINTR is returned (nanosleep writes the rest there).
        signals: signals that end the wait although they are blocked (sigtimedwait), as a mask.
        leave: called where it ends by a signal, at the deadline or with the thread: takes the
            thread out of what it waits in.
        partial: gives what has been done so far; if that is not 0, a signal or the deadline
            ends the call with it.
        woken_by_calls: the calls that can end the wait say so (`Machine.wake`): it is not tried
            before (futex).
        stop_ends: it ends with EINTR where the process is stopped and continued (signal(7)).
        uninterruptible: no signal ends it but SIGKILL (vfork).
        due: says at which moment `poll` may have a result by time alone; that may change while
            it waits (a timer that another thread arms).
        outside: only a signal can end it, which the host's user may send (pause).
    """

    poll: Callable[[], int | None]
    deadline: int | None = None
    timeout_result: int = 0
    host_fds: tuple[tuple[int, int], ...] = ()
    restart: bool = True
    again: bool = False
    on_interrupt: Callable[[], None] | None = None
    signals: int = 0
    leave: Callable[[], None] | None = None
    partial: Callable[[], int] | None = None
    woken_by_calls: bool = False
    stop_ends: bool = False
    uninterruptible: bool = False
    outside: bool = False
    due: Callable[[], int | None] | None = None

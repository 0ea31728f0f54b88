"""Moments in the lives of threads: what layers above listen to (include/trace/events/sched.h).

Listeners look only: nothing that they do may change whose turn it is.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.linux.schedule import Why

if TYPE_CHECKING:
    from engine.linux.signals import PendingSignal
    from engine.linux.thread import Thread

Switching = Callable[["Thread | None", "Thread | None", Why], None]


class Moments:
    """The listeners of one machine, by what they are told of.

    Attributes:
        switching: another thread is about to get the processor, whose registers are still those
            of the one before: (before, next, why); None is the idle processor.
        woken: a thread that has waited, or was stopped, can run again.
        started: a new thread can run: (its maker, it).
        executed: a thread has begun another program: (it, its id before, the program's path).
        leaving: a thread ends: (it, whether its process ends with it).
        task_over: a task of the inner kernel has ended: (its id, the bounds of its stack).
        delivered: a signal is about to have its effect on a thread: (it, the signal).
        unheard: a signal without effect was sent: (the thread that would have got it, the signal).
        restored: a thread has come back from a signal's handler (rt_sigreturn).
    """

    def __init__(self) -> None:
        """No listener is there."""
        self.switching: list[Switching] = []
        self.woken: list[Callable[[Thread], None]] = []
        self.started: list[Callable[[Thread, Thread], None]] = []
        self.executed: list[Callable[[Thread, int, bytes], None]] = []
        self.leaving: list[Callable[[Thread, bool], None]] = []
        self.task_over: list[Callable[[int, int, int], None]] = []
        self.delivered: list[Callable[[Thread, PendingSignal], None]] = []
        self.unheard: list[Callable[[Thread, PendingSignal], None]] = []
        self.restored: list[Callable[[Thread], None]] = []

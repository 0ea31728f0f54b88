"""System calls tampered with in a session's guest: results, signals, delays."""

from collections import Counter
from collections.abc import Sequence

from engine.linux.signals import SI_KERNEL, PendingSignal, info_kill
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.trace.strace.injection import Injection


class CallInjection:
    """Carries out what -e inject= says, in threads that are followed."""

    def __init__(self, session: Session, injections: Sequence[Injection]) -> None:
        """Nothing has been called yet.

        Args:
            session: the guest.
            injections: of those about a call the last one counts.
        """
        self._machine = session.machine
        self._injections = tuple(reversed(injections))
        self._counts: Counter[tuple[int, int, str]] = Counter()
        self._notes: dict[int, str] = {}
        self._delays: dict[int, int] = {}

    def entered(self, thread: Thread, name: str) -> int | None:
        """A thread has made a call; the result that it gets for it, None to carry it out."""
        self._notes.pop(thread.tid, None)
        self._delays.pop(thread.tid, None)
        for index, one in enumerate(self._injections):
            if not one.chosen(name):
                continue
            key = thread.tid, index, name  # each call of a set is counted by itself
            self._counts[key] += 1
            return self._meet(thread, one) if one.meant(self._counts[key]) else None
        return None

    def _meet(self, thread: Thread, one: Injection) -> int | None:
        if one.signal:
            thread.post(PendingSignal(one.signal, info_kill(one.signal, SI_KERNEL, 0, 0)))
        self._sleep(one.enter)
        self._delays[thread.tid] = one.leave
        note = " (INJECTED)" if one.result is not None else ""
        self._notes[thread.tid] = note + (" (DELAYED)" if one.enter or one.leave else "")
        return one.result

    def left(self, thread: Thread) -> str:
        """The call returns; what is said of it behind its result."""
        self._sleep(self._delays.pop(thread.tid, 0))
        return self._notes.pop(thread.tid, "")

    def _sleep(self, length: int) -> None:
        """Time passes for the whole guest."""
        if length:
            clock = self._machine.clock
            clock.jump(clock.peek() + length)

"""A guest in which every thread waits for another one: who waits where, and in what call."""

from collections.abc import Iterator
from typing import Final

from engine.linux import signals
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import Backtraces
from engine.session.protocol.report import Report

_THREADS: Final = 10
_FRAMES: Final = 8


def standstill(session: Session) -> Report:
    """The threads of a guest that will not go on, with their calls and backtraces."""
    threads = list(session.machine.threads.values())
    lines = [line for thread in threads[:_THREADS] for line in _lines(session, thread)]
    more = len(threads) - _THREADS
    if more > 0:
        lines.append(f"and {more} more threads")
    head = "stopped: deadlock: every thread waits for another one, and nothing can wake any"
    if session.machine.first.exit is not None:
        head = "left behind by the first process: threads that wait, and nothing can wake any"
    return Report((head, *lines))


def _lines(session: Session, thread: Thread) -> Iterator[str]:
    session.kernel.look_at(thread)
    call = thread.call
    arguments = ", ".join(f"{each:#x}" for each in call.arguments)
    comm = thread.comm.decode(errors="replace")
    number = thread.process.stopped
    state = f"stopped by {signals.name(number)}, last in " if number else ""
    yield f"thread {thread.tid} ({comm}) of process {thread.pid}: {state}{call.name}({arguments})"
    for number, frame in enumerate(Backtraces(session).take(syscall=call.name).frames):
        if number >= _FRAMES:
            yield "  ..."
            break
        yield f"  {frame.text(number)}"

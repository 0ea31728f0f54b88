"""A guest that does not go on: who waits where, and in what call.

In a guest that is a kernel that goes for its own tasks.
"""

from collections.abc import Iterator
from typing import Final

from engine.linux import signals
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import Backtraces
from engine.session.inspect.threads import ThreadViews
from engine.session.protocol.report import Report

_THREADS: Final = 10
_FRAMES: Final = 8
_TASKS: Final = 64
_WHOLE: Final = 16
"""Frames of a task that has a program."""
_SWITCHING: Final = frozenset(("switch_threads", "__switch_to", "__schedule", "schedule"))
"""Functions by which each task of a kernel waits."""


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
    with session.kernel.visit(thread):
        yield from _visited(session, thread)


def _visited(session: Session, thread: Thread) -> Iterator[str]:
    """The lines of a thread whose registers the processor holds."""
    call = thread.call
    arguments = ", ".join(f"{each:#x}" for each in call.arguments)
    comm = thread.comm.decode(errors="replace")
    number = thread.process.stopped
    state = f"stopped by {signals.name(number)}, last in " if number else ""
    yield f"thread {thread.tid} ({comm}) of process {thread.pid}: {state}{call.name}({arguments})"
    waits, holder = ThreadViews(session).waits(thread) if thread.wait is not None else ("", 0)
    if waits:
        held = f", held by {holder}" if holder else ""
        yield f"  waits for {waits}{held}"
    for number, frame in enumerate(Backtraces(session).take(syscall=call.name).frames):
        if number >= _FRAMES:
            yield "  ..."
            break
        yield f"  {frame.text(number)}"


def waiting_tasks(session: Session) -> Report | None:
    """The tasks of a guest that is a kernel, and where each is; None of another guest.

    Those that run a program are told with all their frames, the kernel's own in a line.
    """
    stacks = session.kernel_stacks
    if stacks is None or session.process.leader.ended:
        return None
    session.kernel.look_at(session.process.leader)
    backtraces = Backtraces(session)
    now = backtraces.registers()
    running = stacks.task_at(now[session.arch.roles.sp] & -stacks.layout.size)
    programs: list[str] = []
    others: list[str] = []
    tasks = list(stacks.waiting())
    for task in tasks[:_TASKS]:
        runs = task.address == running
        frames = backtraces.take(now if runs else task.registers, limit=_WHOLE).frames
        first = next((n for n, one in enumerate(frames) if one.function not in _SWITCHING), 0)
        state = "runs" if runs else "waits"
        head = f"task {task.pid} ({task.comm}) {state}"
        if any(frame.thread for frame in frames):
            shown = frames if runs else frames[first:]
            programs += [f"{head}:", *(f"  {one.text(n)}" for n, one in enumerate(shown))]
        else:
            others.append(f"{head} in {frames[0 if runs else first].function or '??'}")
    if not tasks:
        return None
    more = [f"and {len(tasks) - _TASKS} more tasks"] if len(tasks) > _TASKS else []
    return Report(("the kernel's tasks:", *programs, *others, *more))

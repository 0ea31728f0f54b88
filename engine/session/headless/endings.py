"""The end of a headless run, told as far as it can be."""

from typing import Final

from engine.session.guest.session import Session
from engine.session.protocol.report import Report

_FRAMES: Final = 16


def explain(session: Session) -> None:
    """Have a session's report say who waits for whom, should all threads stand still.

    Likewise how a call of a kernel's function has come to where it cannot go on, and where each
    task is of a kernel that runs as a program, if it was cut off by a limit of blocks: that takes
    more seconds than a run has that a limit of time or a signal ends. What is needed is loaded
    only then.
    """

    def standstill() -> Report:
        from engine.session.inspect.standstill import standstill as described

        return described(session)

    def trace() -> list[str]:
        from engine.session.inspect.backtrace import Backtraces

        frames = Backtraces(session).take().frames
        more = ["..."] if len(frames) > _FRAMES else []
        return [*(frame.text(n) for n, frame in enumerate(frames[:_FRAMES])), *more]

    def tasks() -> Report | None:
        if session.kernel_stacks is None:
            return None
        from engine.session.inspect.standstill import waiting_tasks

        return waiting_tasks(session)

    session.standstill, session.trace, session.tasks = standstill, trace, tasks

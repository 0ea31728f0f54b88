"""The end of a process in which code of a handlers file was executed.

Python waits for threads before it ends, and calls what was registered with atexit: either may
take for ever. They have a moment for it, as threads that write their last lines need.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Final

from engine.session.tracing.handlers import blame as blame
from engine.session.tracing.shared_process import SharedProcess, shared_process

_GRACE: Final = 1.0
"""Seconds that threads, and exit handlers, have when all else is done."""


def take_back() -> None:
    """The guest has ended: code of the file has no say any more."""
    process = shared_process()
    if process is not None:
        process.disarm()
        process.heal()


def end_soon(code: int, tell: Callable[[str], object]) -> None:
    """Have this process end in a moment, even if the file's code does not.

    Args:
        code: exit code of the process.
        tell: takes what the user should know.
    """
    process = shared_process()
    if process is not None:
        take_back()
        threading.Thread(target=_watch, args=(process, code, tell), daemon=True).start()


def _watch(process: SharedProcess, code: int, tell: Callable[[str], object]) -> None:
    time.sleep(_GRACE)
    left = ", ".join(process.going_on()) or "an exit handler (atexit)"
    tell(f"--handlers {process.path}: not over when the guest was: {left}; it is ended")
    process.end_children()
    os._exit(code)

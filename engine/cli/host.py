"""The host's side of a run: signals of the terminal and time limits reach the guest.

While the emulator runs, Python's own signal handlers would not: the main thread is inside
C code. So the interpreter's wake-up descriptor feeds a thread that tells the session.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from engine.session import Session

_FORWARDED: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH),
    *(signal.SIGUSR1, signal.SIGUSR2),
)
_AGAIN = 0.01


@contextmanager
def attached(
    session: Session,
    timeout: float | None,
    special: Mapping[int, Callable[[], None]] | None = None,
) -> Iterator[None]:
    """Forward signals to the guest and stop it after `timeout` seconds.

    Args:
        session: the guest.
        timeout: None for none.
        special: what to do at signals that the guest does not get; from another thread.
    """
    ours = special or {}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    ended = threading.Event()

    def insist() -> None:
        while session.waiting() and not ended.wait(_AGAIN):
            session.nudge()

    def watch() -> None:
        while True:
            data = os.read(reading, 64)
            if not data or ended.is_set():
                return
            for number in data:
                if number in ours:
                    ours[number]()
                else:
                    session.interrupt(number)
            insist()

    def time_up() -> None:
        if not ended.wait(timeout):
            session.stop("timeout")
            insist()

    threads = [threading.Thread(target=watch, daemon=True)]
    if timeout is not None:
        threads.append(threading.Thread(target=time_up, daemon=True))
    before = {number: signal.signal(number, lambda *_: None) for number in _FORWARDED}
    old = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writing)
        for thread in threads:
            thread.join()
        os.close(reading)

"""Signals that end a recording: they are noted, so that what the kernel has of ours goes first."""

import os
import select
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_TWICE: Final = 2.0
"""Seconds in which a second Ctrl-C means this program."""


class EndingSignals:
    """The signals that have come.

    Attributes:
        last: number of the one that ends the recording, 0 for none yet.
    """

    def __init__(self, reading: int) -> None:
        """Read them from a descriptor."""
        self.last = 0
        self._reading = reading
        self._interrupted = -_TWICE

    def wait(self, seconds: float, others: Collection[int], *, patient: bool) -> None:
        """Wait for a signal, or until a descriptor can be read.

        Args:
            seconds: at the most.
            others: the descriptors.
            patient: the first Ctrl-C is somebody else's, a program's in the same terminal.
        """
        ready, _, _ = select.select([self._reading, *others], [], [], seconds)
        if self._reading not in ready:
            return
        for number in os.read(self._reading, 1 << 10):
            if number not in ENDING:
                continue
            if number == signal.SIGINT and patient:
                now = time.monotonic()
                before, self._interrupted = self._interrupted, now
                if now - before > _TWICE:
                    continue
            self.last = self.last or number


@contextmanager
def noted() -> Iterator[EndingSignals]:
    """While this lasts, the signals that end a recording are noted only."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = {
        number: signal.signal(number, _nothing)
        for number in ENDING
        # nohup has its meaning.
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    }
    old = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield EndingSignals(reading)
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        with suppress(OSError):
            os.close(writing)
            os.close(reading)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Nothing is to be done here: `EndingSignals` waits elsewhere."""

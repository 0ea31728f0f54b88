"""The host's side of a run: signals and the limit of time reach the guest, or end the run.

While the emulator runs, Python's own signal handlers would not: the main thread is inside C code.
So the interpreter's wake-up descriptor feeds a thread that tells the session.

The first Ctrl-C is the guest's. A second one within two seconds, SIGTERM, SIGHUP and SIGQUIT end
the run, whatever the guest does with them; it gets a moment to end by itself first. What the
engine's thread does not hear of, as it executes somebody's handler or waits for a reader, is cut
off by an exception in it, and in the last resort the process ends from here: what a trace has
recorded stays in the file beside its output.
"""

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from engine.errors import CutOff
from engine.session import Session

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_FORWARDED: Final = (signal.SIGINT, *_ENDING, signal.SIGWINCH, signal.SIGUSR1, signal.SIGUSR2)
_GUESTS: Final = (signal.SIGUSR1, signal.SIGUSR2)
"""Would kill this process once the guest is gone, with its remarks unsaid."""
_LONGEST: Final = 1 << 30
"""Milliseconds that poll takes."""
_AGAIN: Final = 0.01
"""Seconds between two nudges: a stop that reaches the emulator between two runs is lost."""
_TWICE: Final = 2.0
"""Seconds in which a second Ctrl-C means the tool."""
_GRACE: Final = 1.0
"""Seconds that a guest has to end by itself at a signal that ends the run."""
_STILL: Final = 1.5
"""Seconds without any progress until the engine's thread is cut off."""
_OFTEN: Final = 0.2
"""Seconds between two attempts at that."""
_READER: Final = 10.0
"""Seconds that the reader of a pipe has for what is left."""
_LAST: Final = 5.0
"""Seconds without any progress until the process ends at once."""


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

    Raises:
        CutOff: the run was to end, and what is done in here did not.
    """
    host = _Host(session, timeout, special or {})
    host.begin()
    try:
        yield
    finally:
        host.end()


def both(first: Callable[[], None], second: Callable[[], None] | None) -> Callable[[], None]:
    """One deed at a signal that does two things; the second one may be None."""
    if second is None:
        return first

    def run() -> None:
        first()
        second()

    return run


class _Host:
    """Listens to the host while a guest runs; all but `begin` and `end` in a thread of its own."""

    def __init__(
        self, session: Session, timeout: float | None, special: Mapping[int, Callable[[], None]]
    ) -> None:
        self._session = session
        self._special = special
        self._limit = None if timeout is None else time.monotonic() + timeout
        self._main = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._over = self._cutting = False
        self._deaf = False
        """The signals' pipe is not there any more: the end of the run is looked for."""
        self._interrupted = -_TWICE
        self._last_word: tuple[float, int] | None = None
        """When a signal that the guest has got ends the run, and which."""
        self._code = 0
        self._asked = self._since = self._cut_at = 0.0
        self._progress = (0, 0)

    def begin(self) -> None:
        """From here on."""
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._before = {
            number: signal.signal(number, self._in_main)
            for number in _FORWARDED
            # nohup has its meaning.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        }
        self._old = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._thread.start()

    def end(self) -> None:
        """Up to here; a process that was to end has some seconds for its last words."""
        self._over = True
        cut, self._cutting = self._cutting, False
        ending = bool(self._asked) and self._code > 128
        if cut or ending:
            rest = threading.Timer(1 if cut else _LAST, self._session.abandon, (self._code,))
            rest.daemon = True
            rest.start()
        signal.set_wakeup_fd(self._old)
        for number, handler in self._before.items():
            late = number in _GUESTS and handler is signal.SIG_DFL
            signal.signal(number, signal.SIG_IGN if late or ending else handler)
        with contextlib.suppress(OSError):  # full: there is enough to wake it; or it is closed
            os.write(self._writing, b"\0")
        self._thread.join()
        for descriptor in (self._writing, self._reading):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _in_main(self, number: int, frame: FrameType | None) -> None:
        """A signal has come, and the main thread is not inside C code."""
        if self._cutting and not self._over:
            raise CutOff(self._code)

    # -- the thread -----------------------------------------------------------------------

    def _watch(self) -> None:
        poller = select.poll()
        poller.register(self._reading, select.POLLIN)
        while not self._over:
            if poller.poll(self._patience()):
                try:
                    data = os.read(self._reading, 1 << 16)
                except OSError:  # somebody's handler has closed it: the limit of time is left
                    poller.unregister(self._reading)
                    self._deaf = True
                    continue
                for number in dict.fromkeys(data):
                    times = 1 if number in self._special else data.count(number)
                    for _ in range(min(times, 3)):
                        self._heard(number)
            if not self._over:
                self._look()

    def _patience(self) -> float | None:
        """Milliseconds until there is something to do, None if nothing is planned."""
        now, waits = time.monotonic(), []
        if self._session.waiting():
            waits.append(_AGAIN)
        if self._deaf:
            waits.append(_OFTEN)
        if self._asked:
            waits.append(_OFTEN)
        elif self._limit is not None:
            waits.append(self._limit - now)
        if self._last_word is not None and not self._asked:
            waits.append(self._last_word[0] - now)
        return min(max(min(waits) * 1000, 1), _LONGEST) if waits else None

    def _heard(self, number: int) -> None:
        """A signal, or the end (0)."""
        if number in self._special:
            self._special[number]()
            return
        if number not in self._before:
            return
        ending = number in _ENDING
        if number == signal.SIGINT:
            now = time.monotonic()
            ending = now - self._interrupted < _TWICE
            self._interrupted = now
        if not ending:
            self._session.interrupt(number)
        elif self._asked:
            self._cut()
        elif number == signal.SIGINT or self._last_word is not None:
            self._ask(number)
        else:
            self._last_word = time.monotonic() + _GRACE, number
            self._session.interrupt(number)

    def _ask(self, number: int) -> None:
        """Have the run end: at a signal, or with 0 at the limit of time."""
        self._asked = self._since = time.monotonic()
        self._progress = self._session.progress()
        self._code = 128 + number if number else 124
        if number:
            self._session.end_by(number)
        else:
            self._session.stop("timeout")

    def _look(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        if not self._asked:
            if self._limit is not None and now >= self._limit:
                self._ask(0)
            elif self._last_word is not None and now >= self._last_word[0]:
                self._ask(self._last_word[1])
        if self._session.waiting():
            self._session.nudge()
        if not self._asked:
            return
        files, streams = self._session.progress()
        if now - self._asked > _READER:
            streams = self._progress[1]
        if (files, streams) != self._progress:
            self._progress = files, streams
            self._since = now
        if now - self._since > _LAST:
            self._session.abandon(self._code)
        elif now - self._since > _STILL and now - self._cut_at > _OFTEN:
            self._cut()

    def _cut(self) -> None:
        """Raise an exception in the main thread, also if it waits in a system call."""
        self._cut_at = time.monotonic()
        self._cutting = True
        signal.pthread_kill(self._main, signal.SIGWINCH)

"""Signals that end the interface: the terminal comes back as it was, whatever happens.

SIGTERM, SIGHUP (a closed terminal) and SIGQUIT end it as quitting does, without a question. If
that takes too long, or at a second signal, the process ends at once, from a thread of its own.
Where a browser shows the interface, its closed pipe is the closed terminal.
"""

import contextlib
import os
import select
import signal
import termios
import threading
import time
from types import FrameType
from typing import Any, Final

from textual.app import App

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PATIENCE: Final = 3.0
"""Seconds that the interface has to end by itself."""
_MODES: Final = (1000, 1002, 1003, 1004, 1006, 1015, 2004, 2048, 1049)
"""Modes that Textual sets: mouse, focus, pasting, sizes, the other screen."""
_AS_BEFORE: Final = b"".join(b"\x1b[?%dl" % mode for mode in _MODES) + b"\x1b[<u\x1b[?25h"
"""Terminal modes off, keys as they were, the cursor visible."""


class EndingSignals:
    """Listens from the time it is made, which is before the terminal is changed.

    Attributes:
        app: is ended; None while there is none.
    """

    def __init__(self) -> None:
        """Remember the terminal as it is."""
        self.app: App[Any] | None = None
        self._settings: list[Any] | None = None
        with contextlib.suppress(termios.error):
            self._settings = termios.tcgetattr(0)
        self._asked = False
        for number in _ENDING:
            # nohup has its meaning.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._heard)

    def hear_closing(self) -> None:
        """Take the end of standard input for a signal, too: who shows the interface is gone."""
        threading.Thread(target=self._await_closing, name="closing", daemon=True).start()

    def _await_closing(self) -> None:
        pipe = select.poll()
        pipe.register(0, 0)  # errors and the end are heard all the same
        pipe.poll()
        self._heard(signal.SIGTERM, None)  # Textual has taken the signal itself

    def _heard(self, number: int, _: FrameType | None) -> None:
        if self._asked:
            self._at_once(128 + number)
        self._asked = True
        for work in (self._end, self._watch):
            threading.Thread(target=work, args=(128 + number,), daemon=True).start()

    def _end(self, code: int) -> None:
        app = self.app
        try:
            if app is not None:
                app.call_from_thread(app.exit, code, code)
                return
        except RuntimeError:  # it does not run yet, or no longer
            pass
        self._at_once(code)

    def _watch(self, code: int) -> None:
        time.sleep(_PATIENCE)
        self._at_once(code)

    def _at_once(self, code: int) -> None:
        if self._settings is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(0, termios.TCSANOW, self._settings)
        with contextlib.suppress(OSError):
            if os.isatty(1) and select.select([], [1], [], 0)[1]:
                os.write(1, _AS_BEFORE)
        os._exit(code)

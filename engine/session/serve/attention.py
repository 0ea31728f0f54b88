"""Has a guest that runs hear of what has come in."""

import threading
from collections.abc import Callable
from typing import Final

_AGAIN: Final = 0.02
"""Seconds after which a guest that has not heard is asked again."""


class AttentionTimer:
    """Calls until somebody has heard: a halt that comes between two runs of a guest is lost."""

    def __init__(self, unheard: Callable[[], bool], call: Callable[[], object]) -> None:
        """Begin.

        Args:
            unheard: True as long as something has come that a guest that runs has not heard of.
            call: has it listen.
        """
        self._unheard, self._call = unheard, call
        self._wanted, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="attention", daemon=True)
        self._thread.start()

    def wanted(self) -> None:
        """Something has come, or a guest begins to run; from any thread."""
        self._wanted.set()

    def close(self) -> None:
        """Call no more."""
        self._over.set()
        self._wanted.set()
        self._thread.join()

    def _work(self) -> None:
        while self._wanted.wait() and not self._over.is_set():
            self._wanted.clear()
            while self._unheard() and not self._over.is_set():
                self._call()
                self._over.wait(_AGAIN)

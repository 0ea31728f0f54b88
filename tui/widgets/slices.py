"""Long work of a widget, done in slices: keys are heard between them."""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Final

from textual.timer import Timer
from textual.widget import Widget

_SLICE: Final = 0.008
"""Seconds of work between two looks at the keyboard."""
_PAUSE: Final = 0.001
"""Seconds between two slices."""


class Slices:
    """Carries one search at a time out; what is found is a number.

    The work is an iterator that yields None after each bit, then what it has found; it ends
    without that where there is nothing.
    """

    def __init__(
        self,
        widget: Widget,
        over: Callable[[int | None], object],
        going: Callable[[], object] = lambda: None,
    ) -> None:
        """Nothing is to be done yet.

        Args:
            widget: whose timers are used.
            over: takes what was found, None for nothing.
            going: called after each slice that has not found anything yet.
        """
        self._widget = widget
        self._over = over
        self._going = going
        self._work: Iterator[int | None] | None = None
        self._timer: Timer | None = None

    def __bool__(self) -> bool:
        """True if there is still something to do."""
        return self._work is not None

    def start(self, work: Iterator[int | None]) -> None:
        """Begin, in place of what is being done."""
        self.stop()
        self._work = work
        self._timer = self._widget.set_interval(_PAUSE, self._on)
        self._on()

    def stop(self) -> None:
        """Give up what is being done."""
        self._work = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _on(self) -> None:
        """One slice."""
        if self._work is None:
            return
        end = perf_counter() + _SLICE
        while perf_counter() < end:
            try:
                found = next(self._work)
            except StopIteration:
                self.stop()
                self._over(None)
                return
            if found is not None:
                self.stop()
                self._over(found)
                return
        self._going()

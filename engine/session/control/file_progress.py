"""Progress of the engine in the files that it reads for the user."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from engine.image.longwork import listening

Reached: TypeAlias = tuple[float, str]
"""The part of the work that is done, from 0 to 1, and the name of the file that is read; "" where
it is no file, but a way to another moment."""


class FileProgress:
    """Notes progress in the file that is read.

    Attributes:
        reached: the place in the file that is read; None while none is. From any thread.
    """

    def __init__(self) -> None:
        """Begin while no file is read."""
        self.reached: Reached | None = None

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Note how far work is, and let a function end it.

        Args:
            listener: called often; an exception of its own ends the work.
        """
        try:
            with listening(listener, self._note):
                yield
        finally:
            self.reached = None

    def _note(self, file: str, part: float) -> None:
        self.reached = part, file

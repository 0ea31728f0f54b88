"""Long work on a file: whoever waits for it may have it ended between two units.

A reader of many units calls `look_up` before each, and says how far it is. Whoever has asked for
the work listens with `listening`, and ends the work by raising an exception; nothing that is kept
is half made then. Work that nobody listens to is not ended.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Reached = Callable[[str, float], None]
"""Takes the name of the file that is read, and the part of it that is done, from 0 to 1."""

_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)
_reached: ContextVar[Reached | None] = ContextVar("reached", default=None)


@contextmanager
def listening(listener: Callable[[], None], reached: Reached | None = None) -> Iterator[None]:
    """Have a function called between units, in this thread.

    Args:
        listener: called often; an exception of its own ends the work.
        reached: told how far the work is, where that is known.
    """
    token, reached_token = _listener.set(listener), _reached.set(reached)
    try:
        yield
    finally:
        _listener.reset(token)
        _reached.reset(reached_token)


def look_up(file: str = "", done: int = 0, of: int = 0) -> None:
    """Let whoever listens end the work here.

    Args:
        file: the name of the file that is read.
        done: what of it has been read.
        of: all of it, in the same measure; 0 where nobody knows.
    """
    reached = _reached.get()
    if reached is not None and of:
        reached(file, done / of)
    listener = _listener.get()
    if listener is not None:
        listener()

"""Long work on a file: whoever waits for it may have it ended between two units.

A reader of many units calls `look_up` before each. Whoever has asked for the work listens with
`listening`, and ends the work by raising an exception; nothing that is kept is half made then.
Work that nobody listens to is not ended.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[], None]) -> Iterator[None]:
    """Have a function called between units, in this thread.

    Args:
        listener: called often; an exception of its own ends the work.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def look_up() -> None:
    """Let whoever listens end the work here."""
    listener = _listener.get()
    if listener is not None:
        listener()

"""Keys are dealt with one after the other, however fast they come."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from textual.app import App
from textual.events import Callback, Key
from textual.message_pump import MessagePump
from textual.widgets import Input

_ROUNDS: Final = 3
"""Ways from the focus to the app that a key's consequences take: the key itself, what its action
posts (Enter in a line), and what answers to that (the line gives the focus back)."""
NEWLINE: Final = "ctrl+j"
"""Enter that was typed before the terminal was ours: its line discipline makes a newline of it."""
AHEAD: Final = 8
"""Repeats of one key that wait at the most."""
_LOOK: Final = 0.05
"""Seconds between two looks at whether a widget on the way of a key has gone."""
_PATIENCE: Final = 1.0
"""Seconds after which a key is taken to be dealt with in any case."""


class KeyQueue:
    """Sends a key only when the one before has done all it does.

    A key takes a while: it goes to the focused widget, up to the app, and only there to an action,
    which may open a dialog or move the focus. What is typed meanwhile belongs to what comes, not
    to the pane that happens to have the focus still.
    """

    def __init__(self, app: App[int], send: Callable[[Key], Awaitable[None]]) -> None:
        """Nothing is typed yet.

        Args:
            app: whose keys they are; its `on_event` gives them to `take`.
            send: sends a key on its way.
        """
        self._app = app
        self._send = send
        self._typed: deque[Key] = deque()
        self._at_hand = ""
        self._follower: _Follower | None = None

    @property
    def typing(self) -> bool:
        """True if there are keys that are not dealt with yet."""
        return self._follower is not None or bool(self._typed)

    async def take(self, key: Key) -> None:
        """A key was pressed: send it on its way and a callback after it, or let it wait."""
        if self._follower is not None:
            if not self._held(key):
                self._typed.append(key)
            return
        self._at_hand = key.key
        follower = self._follower = _Follower(self._app, self._next)
        await self._send(key)
        await follower.go_on()

    def _held(self, key: Key) -> bool:
        """True if a key is held down and comes faster than it can be dealt with.

        What would go on long after it was let go is left out; text that is typed never is.
        """
        same = all(waiting.key == key.key for waiting in self._typed)
        repeats = key.key == self._at_hand and same and len(self._typed) >= AHEAD
        return repeats and not isinstance(self._app.focused, Input)

    async def _next(self) -> None:
        """A key is dealt with: the next one may come."""
        if self._follower is not None:
            self._follower.dismiss()
            self._follower = None
        if self._typed:
            await self.take(self._typed.popleft())


def _rests(pump: MessagePump) -> bool:
    """True if a widget has no message and waits for one; False where that cannot be told.

    An empty queue alone does not tell: the last message may be at work still.
    """
    queue = getattr(pump, "_message_queue", None)
    waiting = getattr(getattr(queue, "ready_event", None), "_waiters", None)
    return bool(waiting) and not pump.message_queue_size


class _Follower:
    """Goes the way that a key goes, behind it; at its end the next key may come."""

    def __init__(self, app: App[int], over: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._over = over
        self._rounds = _ROUNDS
        self._way = self._find_way()
        self._at: MessagePump = app
        self._dismissed = False
        self._looks = 0
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_LOOK, self._look)

    def _find_way(self) -> deque[MessagePump]:
        """All that a key passes: each has a queue, in which a callback stays behind the key."""
        return deque((self._app.focused or self._app.screen).ancestors_with_self)

    def dismiss(self) -> None:
        """Stop following the key."""
        self._dismissed = True
        self._timer.cancel()

    async def go_on(self) -> None:
        """To the next that a key passes."""
        while not self._dismissed:
            while self._way:
                self._at = self._way.popleft()
                if self._rounds < _ROUNDS and self._at is not self._app and _rests(self._at):
                    continue  # nothing of the key has come there
                # As `call_later` does, which looks each new callback's signature up.
                if self._at.post_message(Callback(self.go_on)):
                    return
            self._rounds -= 1
            if not self._rounds:
                await self._over()
                return
            self._way = self._find_way()

    def _look(self) -> None:
        """See whether it is stuck: what a widget still had to do when it went is never done."""
        self._looks += 1
        gone = self._at is not self._app and not self._at.is_attached
        if gone or self._looks * _LOOK >= _PATIENCE:
            self._app.post_message(Callback(self._over))
        else:
            self._timer = self._loop.call_later(_LOOK, self._look)

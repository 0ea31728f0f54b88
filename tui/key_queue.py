"""Keys are dealt with one after the other, however fast they come."""

import asyncio
from collections import deque
from typing import Final

from textual.app import App
from textual.events import Callback, Event, Key
from textual.message_pump import MessagePump

_ROUNDS: Final = 3
"""Ways from the focus to the app that a key's consequences take: the key itself, what its action
posts (Enter in a line), and what answers to that (the line gives the focus back)."""
_LOOK: Final = 0.05
"""Seconds between two looks at whether a widget on the way of a key has gone."""
_PATIENCE: Final = 1.0
"""Seconds after which a key is taken to be dealt with in any case."""


class KeyQueue(App[int]):
    """An app that sends a key only when the one before has done all it does.

    A key takes a while: it goes to the focused widget, up to the app, and only there to an action,
    which may open a dialog or move the focus. What is typed meanwhile belongs to what comes, not
    to the pane that happens to have the focus still.
    """

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[Key] = deque()
        self._follower: _Follower | None = None

    @property
    def typing(self) -> bool:
        """Whether there are keys that are not dealt with yet."""
        return self._follower is not None or bool(self._typed)

    async def on_event(self, event: Event) -> None:
        """Keep keys in line; all else is as ever."""
        if not isinstance(event, Key) or event.is_forwarded:
            await super().on_event(event)
            return
        self._typed.append(event)
        if self._follower is None:
            await self.next_key()

    async def next_key(self) -> None:
        """Send the next key on its way, and a callback after it."""
        if self._follower is not None:
            self._follower.dismiss()
            self._follower = None
        if not self._typed:
            return
        follower = self._follower = _Follower(self)
        await super().on_event(self._typed.popleft())
        await follower.go_on()


class _Follower:
    """Goes the way that a key goes, behind it; at its end the next key may come."""

    def __init__(self, app: KeyQueue) -> None:
        self._app = app
        self._rounds = _ROUNDS
        self._way = self._find_way()
        self._at: MessagePump = app
        self._dismissed = False
        self._looks = 0
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_LOOK, self._look)

    def _find_way(self) -> deque[MessagePump]:
        """What a key passes: each has a queue, in which a callback stays behind the key."""
        return deque((self._app.focused or self._app.screen).ancestors_with_self)

    def dismiss(self) -> None:
        """Nobody waits for it any more."""
        self._dismissed = True
        self._timer.cancel()

    async def go_on(self) -> None:
        """To the next that a key passes."""
        while not self._dismissed:
            while self._way:
                self._at = self._way.popleft()
                # As `call_later` does, which looks each new callback's signature up.
                if self._at.post_message(Callback(self.go_on)):
                    return
            self._rounds -= 1
            if not self._rounds:
                await self._app.next_key()
                return
            self._way = self._find_way()

    def _look(self) -> None:
        """See whether it is stuck: what a widget still had to do when it went is never done."""
        self._looks += 1
        gone = self._at is not self._app and not self._at.is_attached
        if gone or self._looks * _LOOK >= _PATIENCE:
            self._app.post_message(Callback(self._app.next_key))
        else:
            self._timer = self._loop.call_later(_LOOK, self._look)

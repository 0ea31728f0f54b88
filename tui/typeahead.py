"""Keys are dealt with one after the other, however fast they come."""

from collections import deque
from time import monotonic
from typing import Final

from textual.app import App
from textual.events import Event, Key
from textual.message_pump import MessagePump

_ROUNDS: Final = 3
"""Ways from the focus to the app that a key's consequences take: the key itself, what its action
posts (Enter in a line), and what answers to that (the line gives the focus back)."""
_PATIENCE: Final = 1.0
"""Seconds after which a key is taken to be dealt with: a widget on its way may have gone."""


class TypeAhead(App[int]):
    """An app that sends a key only when the one before has done all it does.

    A key takes a while: it goes to the focused widget, up to the app, and only there to an action,
    which may open a dialog or move the focus. What is typed meanwhile belongs to what comes, not
    to the pane that happens to have the focus still.
    """

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[Key] = deque()
        self._turn = 0
        self._begun: float | None = None

    @property
    def typing(self) -> bool:
        """Whether there are keys that are not dealt with yet."""
        return self._begun is not None or bool(self._typed)

    async def on_event(self, event: Event) -> None:
        """Keep keys in line; all else is as ever."""
        if not isinstance(event, Key) or event.is_forwarded:
            await super().on_event(event)
            return
        self._typed.append(event)
        if self._begun is None or monotonic() - self._begun > _PATIENCE:
            await self._feed()

    async def _feed(self) -> None:
        """Send the next key on its way, and a callback after it."""
        self._begun = None
        self._turn += 1
        if not self._typed:
            return
        self._begun = monotonic()
        way = self._way()
        await super().on_event(self._typed.popleft())
        await self._follow(self._turn, way, _ROUNDS)

    def _way(self) -> deque[MessagePump]:
        """What a key passes: each has a queue, in which a callback stays behind the key."""
        return deque((self.focused or self.screen).ancestors_with_self)

    async def _follow(self, turn: int, way: deque[MessagePump], rounds: int) -> None:
        """Go the way that the key went; at its end the next key may come."""
        if turn != self._turn:
            return
        while way:
            if way.popleft().call_later(self._follow, turn, way, rounds):
                return
        if rounds > 1:
            await self._follow(turn, self._way(), rounds - 1)
        else:
            await self._feed()

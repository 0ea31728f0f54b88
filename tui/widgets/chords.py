"""Keys that wait for a second one, as vim's `g`: Textual's bindings know no chords."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field
from textual import events
from textual.widget import Widget

_PATIENCE: Final = 0.6
"""Seconds that the second key of a chord may take where the first one means something alone."""

Choices: TypeAlias = Mapping[str, str]
"""Second key to the action it stands for."""


class PrefixKeys(Struct):
    """A state machine that eats the keys of a chord.

    Attributes:
        chords: first key to what may follow it.
        pending: the first key while the second one is awaited, "" else.
        alone: first key to an action of its own, for which a text may be begun: it is done
            if nothing follows, or with what follows if that means nothing else.
    """

    chords: Mapping[str, Choices]
    pending: str = ""
    alone: Mapping[str, str] = field(default_factory=dict)

    @property
    def choices(self) -> Choices:
        """Keys that may come next; none while no chord has begun."""
        return self.chords.get(self.pending, {})

    def feed(self, key: str) -> str | None:
        """Take a key.

        Returns:
            None: it is no part of a chord. "": it is eaten, with nothing to do: it begins a
            chord, or ends one that means nothing. Otherwise the action the chord stands for.
        """
        if self.pending:
            first, action = self.pending, self.choices.get(key, "")
            self.pending = ""
            if not action and first in self.alone and key != "escape":
                action = (
                    f"{self.alone[first]}({key if key.isprintable() and len(key) == 1 else ''!r})"
                )
            return action
        if key in self.chords:
            self.pending = key
            return ""
        return None

    def expire(self) -> str:
        """Nothing has followed: the action that the first key stands for alone, "" for none."""
        first, self.pending = self.pending, ""
        return f"{self.alone[first]}('')" if first in self.alone else ""


class Chords:
    """The chords of one widget, which gives it each key it hears before its bindings do.

    Attributes:
        keys: the chords, and how far one has been typed.
    """

    def __init__(self, widget: Widget, keys: PrefixKeys) -> None:
        """`widget` carries out what a chord stands for."""
        self._widget = widget
        self.keys = keys

    def take(self, event: events.Key) -> None:
        """A key was pressed: it goes no further if it belongs to a chord."""
        keys = self.keys
        key = (event.character if event.is_printable else event.key) or ""
        if not keys.pending and key not in keys.chords:
            return
        action = keys.feed(key)
        event.stop()
        event.prevent_default()
        if action:
            self._widget.call_later(self._widget.run_action, action)
        if keys.pending:
            self._widget.set_timer(_PATIENCE, self._expire)

    def drop(self) -> None:
        """A chord does not outlive the focus."""
        self.keys.pending = ""

    def _expire(self) -> None:
        if action := self.keys.expire():
            self._widget.call_later(self._widget.run_action, action)

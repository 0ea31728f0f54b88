"""Keys that wait for a second one, as vim's `g`: Textual's bindings know no chords."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Choices: TypeAlias = Mapping[str, str]
"""Second key to the action it stands for."""


@dataclass(slots=True)
class PrefixKeys:
    """A state machine that eats the keys of a chord.

    Attributes:
        chords: first key to what may follow it.
        pending: the first key while the second one is awaited, "" else.
    """

    chords: Mapping[str, Choices]
    pending: str = ""

    @property
    def choices(self) -> Choices:
        """What may come next; nothing while no chord has begun."""
        return self.chords.get(self.pending, {})

    def feed(self, key: str) -> str | None:
        """Take a key.

        Returns:
            None: it is no part of a chord. "": it is eaten, with nothing to do: it begins a
            chord, or ends one that means nothing. Otherwise the action the chord stands for.
        """
        if self.pending:
            action = self.choices.get(key, "")
            self.pending = ""
            return action
        if key in self.chords:
            self.pending = key
            return ""
        return None

"""Damage in a program's files: what cannot be read is left out, and told."""

from typing import Final

_MOST: Final = 1000
"""Different pieces of damage that are kept; a hostile file has any number."""
_LONGEST: Final = 300


class Damage:
    """The damage found so far in the files of one program, each piece once, in order.

    All files of a program and the separate debug files that belong to them share one, so that
    whoever runs or shows the program can tell it. Others may find more in another thread.
    """

    def __init__(self) -> None:
        """Nothing is known to be damaged."""
        self._found: list[str] = []
        self._known: set[str] = set()
        self._told = 0

    def note(self, text: str) -> None:
        """Something cannot be read: where it is, and why."""
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        if text not in self._known and len(self._known) < _MOST:
            self._known.add(text)
            self._found.append(text)

    def found(self) -> tuple[str, ...]:
        """All of it."""
        return tuple(self._found)

    def untold(self) -> tuple[str, ...]:
        """The pieces that have come since this was asked last."""
        found = tuple(self._found[self._told :])
        self._told += len(found)
        return found

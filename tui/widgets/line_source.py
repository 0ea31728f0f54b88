"""The lines that a list shows: data and how it is written, without a widget."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import ClassVar

from rich.text import Text
from textual.geometry import Size
from textual.strip import Strip

from tui.widgets.looks import Looks

_ANY_WIDTH = 10_000
"""Cells of a line that is copied or searched."""


class LineSource(ABC):
    """Any number of lines, made one by one as they are asked for.

    A list (`VirtualLines`) asks for the lines in sight and keeps what it has painted for as long
    as `key` stays the same. Who changes what lines there are calls the list's `refresh_size`, who
    changes how they look its `changed`.
    """

    empty: ClassVar[str] = ""
    """Text in place of the lines where there are none."""
    follows: ClassVar[bool] = False
    """True if a list follows the end from the beginning, and again after a motion to the end."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of lines."""

    @abstractmethod
    def line(self, index: int, width: int, looks: Looks) -> Strip | Text:
        """A line for so many cells; it may be longer, what does not fit is scrolled to."""

    @property
    def origin(self) -> int:
        """Number of lines that were ever dropped in front of the first one."""
        return 0

    def key(self, index: int) -> Hashable:
        """A value that is another one whenever the line would look different."""
        return self.origin + index

    def content(self, index: int) -> object:
        """A value that is equal to the one before where the line shows the same; None for none.

        To make it costs less than the line. It holds all that the line does, but for the styles.
        """
        return None

    def arrange(self, size: Size) -> bool:
        """Take note of the list's size; True if there are other lines now."""
        return False

    def whole(self, index: int) -> int:
        """The number of the text a line is of, where longer ones are folded into some lines."""
        return index

    def piece(self, whole: int) -> int:
        """The first line of a text."""
        return whole

    def restyled(self) -> bool:
        """Take note that styles have changed; True if lines made before are made anew."""
        return False

    def plain(self, index: int, looks: Looks) -> str:
        """A line as text, for copies."""
        line = self.line(index, _ANY_WIDTH, looks)
        return (line.text if isinstance(line, Strip) else line.plain).rstrip()

    def searchable(self, index: int, looks: Looks) -> str:
        """The text that a search looks at in a line."""
        return self.plain(index, looks)

    def find(
        self, pattern: str, start: int, stop: int, backwards: bool, looks: Looks
    ) -> Iterator[int | None]:
        """Look through the lines from `start` to before `stop`, a few at a time.

        Yields:
            None after each bit of work, then the line that matches; nothing more without one.
        """
        first, last = start + self.origin, stop + self.origin
        folded = pattern.islower()
        for done, number in enumerate(range(first, last, -1 if backwards else 1)):
            index = number - self.origin
            if 0 <= index < self.count:
                text = self.searchable(index, looks)
                if pattern in (text.lower() if folded else text):
                    yield index
                    return
            if done % 32 == 31:
                yield None

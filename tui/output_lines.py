"""Lines of a guest's output as they are kept: thousands of them, of which few are looked at."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final, NamedTuple, overload

from msgspec import Struct, field
from rich.style import Style

from tui.messages import Moment

CELLS_MAX: Final = 4096
"""Characters of a line that are kept."""
_NULL: Final = Style.null()


class Run(NamedTuple):
    """Characters of one look."""

    text: str
    style: Style


class Line(Struct):
    """A line of output.

    Attributes:
        runs: what stands in it.
        length: characters.
        cut: characters that were dropped because it was too long.
        changes: grows with every change.
        note: whether it is a remark and not the guest's.
        moment: (tick, pc) of what wrote its first characters; None where that is not known.
    """

    runs: list[Run] = field(default_factory=list)
    length: int = 0
    cut: int = 0
    changes: int = 0
    note: bool = False
    moment: Moment | None = None

    @property
    def text(self) -> str:
        """The text without looks."""
        return "".join(run.text for run in self.runs)

    def put(self, column: int, text: str, style: Style) -> None:
        """Write over what stands at a column; what is left of it is filled with spaces."""
        room = CELLS_MAX - column
        if len(text) > room:
            self.cut += len(text) - max(room, 0)
            text = text[: max(room, 0)]
        self.changes += 1
        if not text:
            return
        if column >= self.length:
            if column > self.length:
                self._append(Run(" " * (column - self.length), _NULL))
            self._append(Run(text, style))
        else:
            after = self._slice(column + len(text), self.length)
            self.runs = [*self._slice(0, column), Run(text, style), *after]
        self.length = max(self.length, column + len(text))

    def erase(self, start: int, end: int) -> None:
        """Blank some columns, the rest of the line being cut off where nothing follows."""
        self.changes += 1
        if end >= self.length:
            self.runs = self._slice(0, start)
            self.length = min(self.length, start)
        elif end > start:
            self.put(start, " " * (end - start), _NULL)

    def _append(self, run: Run) -> None:
        if self.runs and self.runs[-1].style is run.style and len(self.runs[-1].text) < 256:
            self.runs[-1] = Run(self.runs[-1].text + run.text, run.style)
        else:
            self.runs.append(run)

    def _slice(self, start: int, end: int) -> list[Run]:
        out: list[Run] = []
        at = 0
        for text, style in self.runs:
            piece = text[max(start - at, 0) : max(end - at, 0)]
            if piece:
                out.append(Run(piece, style))
            at += len(text)
        return out


_Plain = tuple[str, Style, Moment]
"""A line of one look that nobody has looked at: text, style, moment."""


class KeptLines(Sequence[Line]):
    """The lines that are kept, in order.

    A line that was written at once becomes a `Line` when somebody looks: a guest that writes
    thousands a second has most of them dropped before.
    """

    def __init__(self) -> None:
        """One empty line is being written."""
        self._kept: deque[Line | _Plain] = deque([Line()])

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> Line: ...

    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...

    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        line = self._kept[index]
        if isinstance(line, Line):
            return line
        text, style, moment = line
        made = Line(changes=1)
        if text:
            made = Line([Run(text, style)], len(text), changes=1, moment=moment)
        self._kept[index] = made
        return made

    def __iter__(self) -> Iterator[Line]:
        return map(self.__getitem__, range(len(self)))

    def __reversed__(self) -> Iterator[Line]:
        return map(self.__getitem__, range(len(self) - 1, -1, -1))

    def append(self, line: Line) -> None:
        """Add a line."""
        self._kept.append(line)

    def extend(self, texts: Sequence[str], style: Style, moments: Sequence[Moment]) -> None:
        """Add lines of one look, each with its moment."""
        self._kept.extend(zip(texts, repeat(style), moments, strict=False))

    def pop(self) -> None:
        """Take the last line away."""
        self._kept.pop()

    def drop(self, count: int) -> int:
        """Drop the first lines; the number of their characters."""
        characters, popleft = 0, self._kept.popleft
        for _ in range(count):
            line = popleft()
            characters += line.length if isinstance(line, Line) else len(line[0])
        return characters

    def clear(self) -> None:
        """Drop all lines."""
        self._kept.clear()

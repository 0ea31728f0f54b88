"""The search through the lines of a list, in slices and around its end."""

from collections.abc import Callable, Iterator

from textual.widget import Widget

from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.slices import Slices


class LineSearch:
    """One search at a time.

    Attributes:
        wrapped: True if it has gone around the end.
    """

    def __init__(
        self,
        widget: Widget,
        source: LineSource,
        looks: Looks,
        found: Callable[[int | None], object],
        going: Callable[[], object],
    ) -> None:
        """Nothing is looked for yet.

        Args:
            widget: whose timers are used.
            source: of the lines.
            looks: of the widget.
            found: takes the line, None for none.
            going: called after each slice that has not found anything yet.
        """
        self._source = source
        self._looks = looks
        self._slices = Slices(widget, found, going)
        self.wrapped = False

    def __bool__(self) -> bool:
        """True while it goes on."""
        return bool(self._slices)

    def start(self, pattern: str, cursor: int, backwards: bool, here: bool) -> None:
        """Look for a text.

        Args:
            pattern: without capitals in it, capitals do not matter.
            cursor: the line to begin at.
            backwards: towards the first line.
            here: whether the cursor's own line counts as well.
        """
        self.wrapped = False
        self._slices.start(self._around(pattern, cursor, backwards, here))

    def stop(self) -> None:
        """Give up."""
        self._slices.stop()

    def _around(
        self, pattern: str, cursor: int, backwards: bool, here: bool
    ) -> Iterator[int | None]:
        source, looks = self._source, self._looks
        number = cursor + source.origin
        start = cursor if here else cursor + (-1 if backwards else 1)
        stop = -1 if backwards else source.count
        yield from source.find(pattern, start, stop, backwards, looks)
        self.wrapped = True
        at = number - source.origin
        if backwards:
            yield from source.find(pattern, source.count - 1, max(at - 1, -1), True, looks)
        else:
            yield from source.find(pattern, 0, at + 1, False, looks)

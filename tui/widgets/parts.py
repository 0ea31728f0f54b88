"""Rules of a widget's component classes, which are worked out when somebody draws with them."""

from typing import Final

from textual.css.styles import RenderStyles
from textual.dom import DOMNode
from textual.widget import Widget

NONE: Final[frozenset[str]] = frozenset()


class _Part(DOMNode):
    """Stands for a part of a widget, as rules of its component class see it."""

    def __init__(self, widget: Widget, name: str) -> None:
        """Find its rules.

        Args:
            widget: that it is a part of.
            name: the component class.
        """
        super().__init__(classes=name)
        self._attach(widget)
        widget.app.stylesheet.apply(self, animate=False)


class Parts:
    """The parts of a widget that were drawn so far.

    A list has eleven component classes. Textual works the rules of all out whenever those of the
    list are set: that was four fifths of all rules that were set until the first screen was
    painted, most of them in panes out of sight.
    """

    def __init__(self, widget: Widget) -> None:
        """Nothing is drawn yet."""
        self._widget = widget
        self._drawn: dict[str, RenderStyles] = {}

    def styles(self, name: str) -> RenderStyles:
        """The styles of a part.

        Raises:
            KeyError: the widget has no such part.
        """
        known = self._drawn.get(name)
        if known is None:
            if name not in type(self._widget).COMPONENT_CLASSES:
                raise KeyError(name)
            known = self._drawn[name] = _Part(self._widget, name).styles
        return known

    def renew(self) -> None:
        """The rules of the widget were set anew: it is painted if those of a part are others."""
        before, self._drawn = self._drawn, {}
        if any(self.styles(name) != styles for name, styles in before.items()):
            self._widget.refresh()

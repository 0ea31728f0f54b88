"""The styles that a widget draws with, by name."""

from collections.abc import Callable

from rich.style import Style
from textual.widget import Widget

from tui.render import is_ascii


class Looks:
    """Styles by name, as the theme has them now; each is worked out once."""

    def __init__(self, widget: Widget, style_of: Callable[[str], Style]) -> None:
        """Nothing is worked out yet.

        Args:
            widget: whose app says whether only ASCII may be drawn.
            style_of: works a style out.
        """
        self._widget = widget
        self._style_of = style_of
        self._styles: dict[str, Style] = {}

    def __call__(self, name: str) -> Style:
        """The style of a name."""
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = self._style_of(name)
        return style

    @property
    def ascii_only(self) -> bool:
        """True if only ASCII may be drawn."""
        return is_ascii(self._widget.app)

    def forget(self) -> None:
        """The theme has changed: work all out anew."""
        self._styles.clear()

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
        self._doubted = True
        self._rules: list[object] = []

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

    def doubt(self) -> None:
        """The widget's rules were set anew, perhaps to what they were."""
        self._doubted = True

    def outdated(self) -> bool:
        """True if the rules differ from those at the last question: all is worked out anew then.

        Textual sets the rules of a pane and of what is in it whenever the focus moves. What is
        painted would have to be painted again each time, though no colour is another one.
        """
        if not self._doubted:
            return False
        self._doubted = False
        widget = self._widget
        names = sorted(type(widget).COMPONENT_CLASSES)
        rules: list[object] = [widget.get_component_styles(name).get_rules() for name in names]
        rules += [widget.rich_style, widget.styles.text_opacity, widget.app.native_ansi_color]
        if rules == self._rules:
            return False
        self._rules = rules
        self._styles.clear()
        return True

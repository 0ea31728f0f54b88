"""The styles that a widget draws with, by name."""

from collections.abc import Callable

from rich.style import Style
from textual.widget import Widget

from tui.render import is_ascii

StyleOf = Callable[[Widget, str], Style]
"""Works the style of a component class out."""


class Looks:
    """Styles by name, as the theme has them now; each is worked out once."""

    def __init__(self, widget: Widget, kind: str, style_of: StyleOf) -> None:
        """Nothing is worked out yet.

        Args:
            widget: whose component classes they are of.
            kind: what those begin with: that of a name is KIND--NAME.
            style_of: makes each of them.
        """
        self._widget = widget
        self._kind = kind
        self._style_of = style_of
        self._styles: dict[str, Style] = {}
        self._rules: dict[str, object] = {}
        self._doubted = True
        self._base: list[object] = []

    def __call__(self, name: str) -> Style:
        """The style of a name."""
        style = self._styles.get(name)
        if style is None:
            component = f"{self._kind}--{name}"
            style = self._styles[name] = self._style_of(self._widget, component)
            self._rules[component] = self._rules_of(component)
        return style

    def _rules_of(self, component: str) -> object:
        return self._widget.get_component_styles(component).get_rules()

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
        base = [widget.rich_style, widget.styles.text_opacity, widget.app.native_ansi_color]
        # Only those that were drawn with: to work out the rules of the others is dear.
        used = self._rules.items()
        if base == self._base and all(self._rules_of(name) == rules for name, rules in used):
            return False
        self._base = base
        self._rules.clear()
        self._styles.clear()
        return True

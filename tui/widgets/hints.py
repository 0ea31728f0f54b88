"""The last line: keys that can be pressed here, and what they do.

Textual's own footer is a widget for each key, made anew whenever the focus moves: a third of what
such a key costs. This one is a line of text.
"""

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input


class Hints(Widget):
    """Shows the bindings of the focused widget, and those above it, that ask to be shown."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"hints--key", "hints--description"}
    DEFAULT_CSS = """
    Hints {
        dock: bottom;
        height: 1;
        color: $footer-foreground;
        background: $footer-background;
        & > .hints--key {
            color: $footer-key-foreground;
            background: $footer-key-background;
            text-style: bold;
        }
        & > .hints--description {
            color: $footer-description-foreground;
            background: $footer-description-background;
        }
    }
    """

    def __init__(
        self, fits: Callable[[Binding], bool] = lambda binding: True, *, id: str | None = None
    ) -> None:
        """Nothing is shown yet.

        Args:
            fits: whether a key makes sense at this moment.
            id: of the widget.
        """
        super().__init__(id=id)
        self._fits = fits
        self._keys: list[tuple[str, str, str, bool]] = []
        self._spans: list[tuple[int, int, str]] = []

    def on_mount(self) -> None:
        """Learn of each change of what can be pressed."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def on_unmount(self) -> None:
        """No more of that."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if not self.app.app_focus or not self.is_attached or screen is not self.screen:
            return
        self.renew()

    def renew(self) -> None:
        """Show the keys that can be pressed now."""
        if not self.is_attached:
            return
        screen = self.screen
        shown: dict[str, tuple[str, str, str, bool]] = {}
        typing = isinstance(screen.focused, Input)
        for node, binding, enabled, _ in screen.active_bindings.values():
            # Where text is typed a letter is a letter, whatever it means elsewhere.
            taken = typing and node in (self.app, screen) and not binding.priority
            if binding.show and not taken and self._fits(binding):
                display = self.app.get_key_display(binding)
                item = binding.key, display, binding.description, enabled
                shown.setdefault(binding.action, item)
        keys = list(shown.values())
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The line; what does not fit is left out, but for the last key, which is help."""
        blank = Style(bgcolor=self.rich_style.bgcolor)
        key_style = self.get_component_rich_style("hints--key")
        text_style = self.get_component_rich_style("hints--description")
        segments: list[Segment] = []
        self._spans, at = [], 0
        for key, display, description, enabled in self._fitting():
            dim = Style(dim=not enabled)
            text = f" {description}" if description else ""
            segments += [
                Segment(display, key_style + dim),
                Segment(text, text_style + dim),
                Segment(" ", blank),
            ]
            width = len(display) + len(text)
            self._spans.append((at, at + width, key))
            at += width + 1
        return Strip(segments).adjust_cell_length(self.size.width, blank)

    def _fitting(self) -> list[tuple[str, str, str, bool]]:
        """The keys that there is room for."""
        keys = list(self._keys)

        def width() -> int:
            return sum(len(display) + len(text) + 2 for _, display, text, _ in keys) - 1

        while len(keys) > 2 and width() > self.size.width:
            del keys[-2]
        return keys

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A click presses the key."""
        for start, end, key in self._spans:
            if start <= event.x < end:
                self.app.simulate_key(key)

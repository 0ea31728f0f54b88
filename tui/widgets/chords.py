"""Keys of two strokes for a widget, as vim's `gg`."""

from textual import events
from textual.widget import Widget

from tui.widgets.prefix import PATIENCE, PrefixKeys


class Chords(Widget):
    """A widget whose chords come before its bindings.

    Attributes:
        prefix: its chords.
    """

    prefix: PrefixKeys

    def on_key(self, event: events.Key) -> None:
        """Chords come before bindings."""
        key = event.character if event.is_printable else event.key
        action = self.prefix.feed(key or "")
        if action is None:
            return
        event.stop()
        event.prevent_default()
        if action:
            self.call_later(self.run_action, action)
        if self.prefix.pending:
            self.set_timer(PATIENCE, self._expire)

    def _expire(self) -> None:
        if action := self.prefix.expire():
            self.call_later(self.run_action, action)

    def on_blur(self) -> None:
        """A chord does not outlive the focus."""
        self.prefix.pending = ""

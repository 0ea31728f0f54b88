"""The screen that the panes are on."""

from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget


class MainScreen(Screen[None]):
    """The panes' screen; only what has changed is painted where the focus moves.

    Textual's own paints all of a screen when the focus is given to another widget, though it shows
    nothing of it itself: those two do, and they ask to be painted.

    Attributes:
        focused: the widget that gets the keys; None if none does.
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

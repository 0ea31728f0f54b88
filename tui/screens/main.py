"""The screen that the panes are on."""

from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget


class MainScreen(Screen[None]):
    """The panes' screen, without two things that Textual's own does for nothing.

    That paints all of itself when the focus is given to another widget, though it shows nothing of
    it: those two do, and they ask to be painted. And it sets the rules of everything on it when it
    is first shown, right behind those of each widget that came.

    Attributes:
        focused: the widget that gets the keys; None if none does.
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(self) -> None:
        super().__init__(id="_default")
        self._styled = False

    def update_node_styles(self, animate: bool = True) -> None:
        """Set the rules of all that is on the screen, unless it is shown for the first time."""
        if self._styled:
            super().update_node_styles(animate)
        self._styled = True

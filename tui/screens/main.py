"""The screen that the panes are on."""

from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from tui.widgets.pane import Pane


class MainScreen(Screen[None]):
    """The panes' screen, without three things that Textual's own does for nothing.

    When the focus is given to another widget, that paints all of itself, though it shows nothing
    of it: those two do, and they ask to be painted. It also sets the rules of everything in the
    two panes, and only those of the panes ask for the focus within them. And it sets the rules of
    everything on it when it is first shown, right behind those of each widget that came.

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

    def _update_focus_styles(
        self, focused: Widget | None = None, blurred: Widget | None = None
    ) -> None:
        """Set the rules of the panes whose focus comes or goes."""
        moved = (widget for widget in (focused, blurred) if widget is not None)
        nodes = {node for widget in moved for node in widget.ancestors if isinstance(node, Pane)}
        self.app.stylesheet.update_nodes(nodes, animate=True)

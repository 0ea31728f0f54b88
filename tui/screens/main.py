"""The screen that the panes are on."""

from typing import Final

from textual.binding import BindingsMap
from textual.dom import DOMNode
from textual.geometry import Size
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from tui.widgets.pane import Pane

_PATIENCE: Final = 0.25
"""Seconds that the first paint waits for the guest: most are there by then."""


class MainScreen(Screen[None]):
    """The panes' screen, without six things that Textual's own does for nothing.

    When the focus is given to another widget, that paints all of itself, though it shows nothing
    of it: those two do, and they ask to be painted. It also sets the rules of everything in the
    two panes, and only those of the panes ask for the focus within them. And it sets the rules of
    everything on it when it is first shown, right behind those of each widget that came. And it
    paints panes with nothing in them, just before the guest is there that they show. And it lays
    all out again each time that a terminal tells its size, which is three times at a start. And
    it works out anew for each key which ones mean something.

    Attributes:
        focused: the widget that gets the keys; None if none does.
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(self) -> None:
        super().__init__(id="_default")
        self._styled = False
        self._waits = True
        self._keys_of: object = None
        self._keys: list[tuple[DOMNode, BindingsMap]] = []

    @property
    def _binding_chain(self) -> list[tuple[DOMNode, BindingsMap]]:
        """The keys of the focused widget and of all that it is in, as the user has set them.

        Textual makes copies of all keys' tables twice for each key that is pressed.
        """
        focused = self.focused
        nodes = None if focused is None else focused.ancestors_with_self
        of = nodes, focused is not None and focused.loading
        if of != self._keys_of:
            self._keys_of, self._keys = of, super()._binding_chain
        return self._keys

    def renew_keys(self) -> None:
        """Take note that the user's choice of keys is another one."""
        self._keys_of = None

    def on_mount(self) -> None:
        """Paint without the guest if that takes long to come."""
        self.set_timer(_PATIENCE, self.paint)

    def paint(self) -> None:
        """Paint from now on: there is something to see."""
        if self._waits:
            self._waits = False
            self.refresh()

    def _compositor_refresh(self) -> None:
        """Paint what has changed, once there is something to see."""
        if not self._waits:
            super()._compositor_refresh()

    def _screen_resized(self, size: Size) -> None:
        """Lay all out for another size."""
        if not self._waits or size != self.size:
            super()._screen_resized(size)

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

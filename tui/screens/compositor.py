"""The map of the screen, which tells widgets of every layout whoever looked at it before."""

from typing import Final

import textual.screen
from textual._compositor import Compositor, CompositorMap, ReflowResult
from textual.geometry import Size
from textual.widget import Widget


class LayoutCompositor(Compositor):
    """A compositor whose layouts are compared with the layout before, not with the last look.

    A layout says which widgets are seen that were not, and which have another size or place: those
    are sent `Resize` and painted. Textual finds them by comparing the new map with the one it has.
    But after a scroll, or when a widget out of sight was to be painted, it makes its map anew at
    the next question for a widget's place; even painting asks that. If the question comes between
    a change of what is seen and the layout for it, the layout finds its own result there, and
    nothing is resized or painted: a row that should have come stays blank, titles are missing or
    stand twice, until the terminal has another size (Textual issue 5024 has the same symptom).
    Here the map of the last layout is kept for the comparison.
    """

    def __init__(self) -> None:
        super().__init__()
        self._laid_out: CompositorMap | None = None

    @property
    def full_map(self) -> CompositorMap:
        """The places of all widgets, as they are now."""
        if self._full_map_invalidated and self._laid_out is None:
            self._laid_out = self._full_map
        return super().full_map

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay a widget and all in it out; what has changed since the last time."""
        if self._laid_out is not None:
            self._full_map = self._laid_out
        # All of the map is made here: questions meanwhile need no map of their own.
        self._full_map_invalidated = False
        result = super().reflow(parent, size)
        self._laid_out = None
        return result

    def clear(self) -> None:
        """The screen has gone: forget all widgets."""
        super().clear()
        self._laid_out = None


_CLASS: Final = "Compositor"


def keep_layouts() -> None:
    """Give every screen that is made from now on, Textual's own ones too, such a compositor."""
    setattr(textual.screen, _CLASS, LayoutCompositor)

"""The map of the screen, which tells widgets of every layout whoever looked at it before."""

from collections.abc import Iterable, Sequence
from typing import Final

import textual.screen
from textual._compositor import ChopsUpdate, Compositor, CompositorMap, ReflowResult
from textual.geometry import Region, Size
from textual.strip import Strip
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
    Here the map of the last layout is kept for the comparison, and what follows from a map is made
    anew with it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._laid_out: CompositorMap | None = None
        self._changed: tuple[Region, ...] | None = None

    @property
    def full_map(self) -> CompositorMap:
        """The places of all widgets, as they are now."""
        if self._full_map_invalidated:
            if self._laid_out is None:
                self._laid_out = self._full_map
            # A row that is cut where widgets stood before is painted beside its place, and over
            # the edge of the screen into the next row.
            self._cuts = self._layers = self._layers_visible = None
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

    def update_widgets(self, widgets: set[Widget]) -> None:
        """Note what is to be painted of some widgets.

        Textual makes the map of the screen anew for each that is not on it, in case it has just
        come. Hidden ones are in sight no sooner than a layout, which makes the map.
        """
        super().update_widgets({widget for widget in widgets if is_displayed(widget)})

    def render_partial_update(self) -> ChopsUpdate | None:
        """Paint what has changed.

        Textual asks all widgets that are within a rectangle around that for all of their rows, and
        puts those together that it needs. Here only the rows are asked for that are needed.
        """
        self._changed = tuple(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._changed = None

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterable[tuple[Region, Region, list[Strip]]]:
        """Give the strips of the widgets in sight, with their place and how far it is seen."""
        if self._changed is None:
            yield from super()._get_renders(crop)
            return
        left: Sequence[Region] = self._changed
        for widget, (region, clip) in self.visible_widgets.items():  # those in front first
            seen = region.intersection(clip)
            here = [one for one in left if one.overlaps(seen)]
            if here:
                top = max(min(one.y for one in here), seen.y)
                end = min(max(one.bottom for one in here), seen.bottom)
                part = Region(seen.x, top, seen.width, end - top)
                yield region, part, widget.render_lines(part.translate(-region.offset))
                # What a widget covers hides all that is behind.
                left = [one for one in left if not seen.contains_region(one)]

    def clear(self) -> None:
        """The screen has gone: forget all widgets."""
        super().clear()
        self._laid_out = None


def is_displayed(widget: Widget) -> bool:
    """True if neither a widget nor any that it is in is hidden."""
    nodes = widget.ancestors_with_self
    return all(node.display for node in nodes if isinstance(node, Widget))


_CLASS: Final = "Compositor"


def keep_layouts() -> None:
    """Give every screen that is made from now on, Textual's own ones too, such a compositor."""
    setattr(textual.screen, _CLASS, LayoutCompositor)

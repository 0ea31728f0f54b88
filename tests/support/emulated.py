"""What a terminal shows of an interface: all that it paints is fed to an emulator (pyte).

An interface paints only what it takes for changed. `Emulator.wrong` holds what stands in the
terminal against a whole new picture of the same moment, which is made of nothing that was kept:
places from a new layout, lines of all widgets drawn again. `Emulator.changed_by_layout` tells
every widget that it is on a screen that has just come, as another size of the terminal does, and
holds what is shown then against what was shown before.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import pyte
from pyte.screens import Char
from rich.color import ColorSystem
from rich.console import RenderableType
from textual._compositor import Compositor, CompositorUpdate
from textual._context import visible_screen_stack
from textual.app import App
from textual.messages import Layout, UpdateScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from tui.widgets.virtual_lines import VirtualLines

_STILL = 0.03
"""Seconds without a paint after which a screen is taken to be at rest."""
_LONG = 0.2
"""The same where it seemed to be wrong: something may have been under way still."""
_LOOKS = 4
"""So often it may seem to be wrong: slow motion goes on between a change and its paint."""
_PATIENCE = 120.0


class Emulator:
    """A terminal of the size of an app.

    Attributes:
        terminal: what is shown.
        paints: how often something was painted.
        written: characters that the app has written.
    """

    def __init__(self, app: App[Any]) -> None:
        """Show all of an app that runs already."""
        self._app = app
        self.paints = self.written = 0
        app.console._color_system = ColorSystem.TRUECOLOR
        self._size = app.size
        self.terminal = pyte.Screen(*self._size)
        self._stream = pyte.Stream(self.terminal)
        self._display = app._display
        setattr(app, "_display", self._painted)  # noqa: B010 - a method of this one app
        app.screen.refresh()

    def _painted(self, screen: Screen[Any], shown: RenderableType | None) -> None:
        if isinstance(shown, CompositorUpdate) and not self._app._batch_count:
            if self._app.size != self._size:  # what a terminal does, though it keeps no text
                self._size = self._app.size
                self.terminal.resize(self._size.height, self._size.width)
            self.paints += 1
            text = shown.render_segments(self._app.console)
            self.written += len(text)
            self._stream.feed(_as_driver(text))
        self._display(screen, shown)

    async def rest(self, until: Callable[[], object], still: float = _STILL) -> None:
        """Wait until something is true and nothing is painted for some seconds.

        Raises:
            AssertionError: that does not come.
        """
        app, end = self._app, monotonic() + _PATIENCE
        seen, since = -1, monotonic()
        while monotonic() < end:
            await asyncio.sleep(0.005)
            if app._exit:
                return
            for line in app.screen.query(Input):
                line.cursor_blink = False
            drawn = app.screen._compositor.size == app.size and app.screen.is_running
            if self.paints != seen or not drawn or not until():
                seen, since = self.paints, monotonic()
            elif monotonic() - since >= still:
                return
        raise AssertionError(f"the screen does not come to rest:\n{self.text}")

    @property
    def text(self) -> str:
        """What stands there."""
        return "\n".join(self.terminal.display)

    async def wrong(self, until: Callable[[], object] = lambda: True) -> str:
        """What is shown otherwise than in a whole new picture, "" for nothing."""
        await self.rest(until)
        found = differences(self._cells(), self._anew())
        for _ in range(_LOOKS):
            if not found:
                break
            await self.rest(until, _LONG)
            found = differences(self._cells(), self._anew())
        return found

    async def changed_by_layout(self, until: Callable[[], object] = lambda: True) -> str:
        """What is shown otherwise once all widgets were told of their sizes, "" for nothing."""
        await self.rest(until, _LONG)
        before = self._cells()
        screen = self._app.screen
        compositor = screen._compositor
        compositor._full_map_invalidated = False
        setattr(compositor, "_laid_out", {})  # noqa: B010 - of `LayoutCompositor`, or of no use
        compositor._full_map = {}
        screen._refresh_layout()
        await self.rest(until, _LONG)
        return differences(before, self._cells())

    def _cells(self) -> list[list[Char]]:
        return cells(self.terminal)

    def _anew(self) -> list[list[Char]]:
        """A whole picture that nothing is taken from what was painted before for."""
        app = self._app
        screens = app.screen_stack
        kept = [screen._compositor for screen in screens]
        for screen in screens:
            for widget in screen.walk_children(Widget, with_self=True):
                widget._styles_cache.clear()
                widget._dirty_regions.add(widget.outer_size.region)
                widget._clear_arrangement_cache()
            screen._layout_cache.clear()  # or one above keeps what it shows of those below
            screen._compositor = Compositor()
            screen._compositor.reflow(screen, app.size)
        try:
            visible_screen_stack.set(app._background_screens)
            shown = app.screen._compositor.render_full_update()
            text = shown.render_segments(app.console)
        finally:
            for screen, compositor in zip(screens, kept, strict=True):
                screen._compositor = compositor
        terminal = pyte.Screen(*app.size)
        pyte.Stream(terminal).feed(_as_driver(text))
        return cells(terminal)


def _as_driver(text: str) -> str:
    """Text as it comes to a terminal: the line discipline puts a return before each newline."""
    return text.replace("\n", "\r\n")


def cells(terminal: pyte.Screen) -> list[list[Char]]:
    """What a terminal shows, row by row."""
    columns, lines = range(terminal.columns), range(terminal.lines)
    return [[terminal.buffer[y][x] for x in columns] for y in lines]


def differences(shown: list[list[Char]], wanted: list[list[Char]]) -> str:
    """Rows that differ, the first dozen of them, and how their first cells do."""
    out: list[str] = []
    for y, (have, want) in enumerate(zip(shown, wanted, strict=True)):
        where = [x for x, cell in enumerate(have) if cell != want[x]]
        if where:
            at = where[0]
            out += [
                f"row {y}, columns {at} to {where[-1]}: {have[at]} should be {want[at]}",
                "  shown  |" + "".join(cell.data for cell in have).rstrip(),
                "  wanted |" + "".join(cell.data for cell in want).rstrip(),
            ]
    return "\n".join(out[:36])


@contextmanager
def painted_at_the_worst_moment() -> Iterator[None]:
    """Let screens paint, and answer where their widgets are, right before they hear of a layout.

    A screen paints when its timer says so, which may be at any moment, and it is told that there
    is to be another layout only when the widget that wants it has nothing else to do.
    """
    usual = Screen.post_message

    def post_message(screen: Screen[Any], message: Any) -> bool:
        if isinstance(message, Layout | UpdateScroll) and screen.is_running and screen.is_attached:
            screen._dirty_widgets.update(screen.query(VirtualLines))
            screen._on_timer_update()
            for widget in screen.walk_children(Widget):
                _ = widget.region
        return usual(screen, message)

    setattr(Screen, "post_message", post_message)  # noqa: B010 - until the test is over
    try:
        yield
    finally:
        setattr(Screen, "post_message", usual)  # noqa: B010

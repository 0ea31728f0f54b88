"""Rows that look as before are not painted again."""

import asyncio
from collections.abc import Awaitable, Callable

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.painted_rows import PaintedRows


class Words(Widget):
    """A word a row; notes what is asked to be painted."""

    def __init__(self) -> None:
        self.rows = PaintedRows(self, self._row, lambda: None, self._set_dirty)
        self.words = [f"word {number}" for number in range(10)]
        self.asked: list[tuple[Region, ...]] = []
        super().__init__()

    def _row(self, y: int) -> Strip:
        return Strip([Segment(self.words[y] if y < len(self.words) else "")])

    def render_line(self, y: int) -> Strip:
        return self.rows.paint(y)

    def _set_dirty(self, *regions: Region) -> None:
        self.asked.append(regions)
        super()._set_dirty(*regions)


class Page(App[None]):
    CSS = "Words { height: 10; width: 20; }"

    def compose(self) -> ComposeResult:
        self.words = Words()
        with Vertical() as self.box:
            yield self.words


def shown(steps: Callable[[Page, Words], Awaitable[None]]) -> None:
    async def go() -> None:
        app = Page()
        async with app.run_test(size=(40, 12)) as pilot:
            await pilot.pause()
            app.words.asked.clear()
            await steps(app, app.words)

    asyncio.run(go())


async def changed(app: Page, words: Words) -> list[tuple[Region, ...]]:
    """Say that rows may look different; what is to be painted then."""
    words.rows.changed()
    words.rows.changed()  # once more while they change: they are looked at once
    await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    asked, words.asked = words.asked, []
    return asked


def test_only_the_rows_that_differ_are_painted() -> None:
    async def steps(app: Page, words: Words) -> None:
        assert await changed(app, words) == []
        words.words[2] = words.words[3] = words.words[7] = "other"
        assert await changed(app, words) == [(Region(0, 2, 20, 2), Region(0, 7, 20, 1))]

    shown(steps)


def test_all_is_painted_where_most_rows_differ() -> None:
    async def steps(app: Page, words: Words) -> None:
        words.words[:7] = ["other"] * 7
        assert await changed(app, words) == [()]

    shown(steps)


def test_a_hidden_widget_makes_no_row() -> None:
    async def steps(app: Page, words: Words) -> None:
        app.box.display = False
        words.words.clear()
        made: list[int] = []
        words.rows._row = lambda y: made.append(y) or Strip.blank(1)  # type: ignore[func-returns-value]
        assert (await changed(app, words))[0] == ()
        assert not made
        await asyncio.sleep(0.1)
        updates = app.screen._dirty_widgets
        words.rows.changed()
        assert not words._repaint_required, "there is no picture that it is on"
        assert words not in updates

    shown(steps)


def test_who_paints_before_that_paints_what_is_there_now() -> None:
    async def steps(app: Page, words: Words) -> None:
        words.words[2] = "other"
        words.rows.changed()
        words.rows.settle()
        assert words.asked == [(Region(0, 2, 20, 1),)]
        words.asked.clear()
        assert await changed(app, words) == [(Region(0, 2, 20, 1),)]  # it is not painted yet
        words.rows.paint(2)
        assert await changed(app, words) == []

    shown(steps)

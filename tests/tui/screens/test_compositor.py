"""Layouts of a screen whose widgets are asked for their places at any moment."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.app import App, ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Static

from tui.screens.compositor import LayoutCompositor, keep_layouts


class Heard(Static):
    """Notes the sizes it is told."""

    def __init__(self, name: str) -> None:
        super().__init__(name, id=name)
        self.sizes: list[Size] = []

    def on_resize(self) -> None:
        self.sizes.append(self.size)


class Rows(App[None]):
    """A row that comes and goes above a list and a part that has what is left."""

    CSS = "#row { height: 1; } VerticalScroll { height: 5; } #rest { height: 1fr; }"

    def compose(self) -> ComposeResult:
        self.row, self.rest = Heard("row"), Heard("rest")
        self.row.display = False
        yield self.row
        with VerticalScroll():
            yield Static("\n".join(map(str, range(100))))
        yield self.rest


def laid_out(steps: Callable[[Rows], Awaitable[None]], kind: type[Rows] = Rows) -> None:
    keep_layouts()

    async def go() -> None:
        app = kind()
        async with app.run_test(size=(40, 20)) as pilot:
            await pilot.pause()
            await steps(app)

    asyncio.run(go())


async def layout(app: Rows) -> set[Region]:
    """Lay the screen out; what is to be painted then."""
    found: set[Region] = set()
    compositor = app.screen._compositor
    refresh = app.screen._compositor_refresh

    def noted() -> None:
        found.update(compositor._dirty_regions)
        refresh()

    setattr(app.screen, "_compositor_refresh", noted)  # noqa: B010 - of this one screen
    app.screen._refresh_layout()
    await asyncio.sleep(0.05)
    return found


@pytest.mark.parametrize("asked", [False, True])
def test_a_row_that_comes_is_told_its_size_and_painted(asked: bool) -> None:
    async def steps(app: Rows) -> None:
        assert app.row.sizes == []
        app.row.display = True
        app.screen._clear_arrangement_cache()
        if asked:
            app.screen._compositor._full_map_invalidated = True  # as it is after each scroll
            assert app.row.region == Region(0, 0, 40, 1)
        painted = await layout(app)
        assert app.row.sizes == [Size(40, 1)]
        assert app.rest.sizes == [Size(40, 15), Size(40, 14)]
        assert {Region(0, 0, 40, 1), Region(0, 5, 40, 15), Region(0, 6, 40, 14)} <= painted

    laid_out(steps)


def test_a_layout_that_changes_nothing_paints_nothing() -> None:
    async def steps(app: Rows) -> None:
        app.screen._compositor._full_map_invalidated = True
        assert app.rest.region == Region(0, 5, 40, 15)
        assert await layout(app) == set()
        assert app.rest.sizes == [Size(40, 15)]

    laid_out(steps)


def test_a_row_that_comes_and_goes_between_two_layouts_is_no_news() -> None:
    async def steps(app: Rows) -> None:
        for shown in (True, False):
            app.row.display = shown
            app.screen._clear_arrangement_cache()
            app.screen._compositor._full_map_invalidated = True
            assert app.rest.region.y == 5 + shown
        assert await layout(app) == set()
        assert app.row.sizes == []

    laid_out(steps)


def test_rows_are_cut_where_widgets_stand() -> None:
    """Also where a place is asked for before the layout: what is painted then has its place."""

    class Columns(Rows):
        CSS = "Horizontal, Static { height: 1; } #left { width: 39; } #right { width: 20; }"

        def compose(self) -> ComposeResult:
            self.left, self.right = Static("l" * 60, id="left"), Static("r" * 60, id="right")
            with Horizontal():
                yield self.left
                yield self.right

    async def steps(app: Rows) -> None:
        assert isinstance(app, Columns)
        compositor = app.screen._compositor
        assert compositor.cuts[0] == [0, 39, 40]
        app.left.styles.width = 10
        app.query_one(Horizontal)._clear_arrangement_cache()
        compositor._full_map_invalidated = True
        assert app.right.region == Region(10, 0, 20, 1)
        assert compositor.cuts[0] == [0, 10, 30, 40]
        (row,) = compositor.render_strips(Size(40, 1))
        assert row.text == "l" * 10 + "r" * 20 + " " * 10

    laid_out(steps, Columns)


def test_all_screens_keep_their_layouts() -> None:
    keep_layouts()
    assert isinstance(Screen()._compositor, LayoutCompositor)


class Asked(Static):
    """Notes which of its rows it is asked for."""

    def __init__(self, name: str) -> None:
        super().__init__("\n".join("abcdefghij"), id=name)
        self.crops: list[Region] = []

    def render_lines(self, crop: Region) -> list[Strip]:
        self.crops.append(crop)
        return super().render_lines(crop)


class Two(App[None]):
    """Two widgets above each other, a third beside them."""

    CSS = "Asked { height: 10; width: 20; }"

    def compose(self) -> ComposeResult:
        self.parts = [Asked(name) for name in ("one", "two", "three")]
        with Horizontal():
            yield from self.parts


def test_rows_are_asked_for_that_have_changed_and_no_others() -> None:
    keep_layouts()

    async def go() -> None:
        app = Two()
        async with app.run_test(size=(80, 20)) as pilot:
            await pilot.pause()
            one, two, three = app.parts
            for part in app.parts:
                part.crops.clear()
            one.refresh(Region(0, 2, 20, 1))
            three.refresh(Region(0, 4, 20, 1), Region(0, 6, 20, 1))
            await pilot.pause()
            assert one.crops == [Region(0, 2, 20, 1)]
            assert two.crops == []  # between them, and as it was
            assert three.crops == [Region(0, 4, 20, 3)]

    asyncio.run(go())

"""Component styles of lists: made when they are drawn with, and as Textual makes them."""

import asyncio
from typing import ClassVar

import pytest
from rich.text import Text
from textual.app import App, ComposeResult
from textual.widget import Widget

from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines


class One(LineSource):
    """A line in one look."""

    @property
    def count(self) -> int:
        return 1

    def line(self, index: int, width: int, looks: Looks) -> Text:
        return Text("good", looks("good"))


class Plain(Widget):
    """A widget of Textual's own making with the same rules as a list."""

    COMPONENT_CLASSES: ClassVar[set[str]] = VirtualLines.COMPONENT_CLASSES
    DEFAULT_CSS = VirtualLines.DEFAULT_CSS.replace("VirtualLines", "Plain")


class Page(App[None]):
    def compose(self) -> ComposeResult:
        self.lines, self.plain = VirtualLines(One()), Plain()
        yield self.lines
        yield self.plain


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark", "nord"])
def test_they_are_what_textual_makes(theme: str) -> None:
    async def go() -> None:
        app = Page()
        async with app.run_test(size=(30, 10)) as pilot:
            await pilot.pause()
            assert set(app.lines._parts._drawn) < VirtualLines.COMPONENT_CLASSES
            app.theme = theme
            await pilot.pause()
            for name in VirtualLines.COMPONENT_CLASSES:
                ours, theirs = (w.get_component_rich_style(name) for w in (app.lines, app.plain))
                assert ours == theirs, name
                ours, theirs = (
                    w.get_component_rich_style(name, partial=True) for w in (app.lines, app.plain)
                )
                assert ours == theirs, name

    asyncio.run(go())


def test_another_look_is_painted() -> None:
    async def go() -> None:
        app = Page()
        async with app.run_test(size=(30, 10)) as pilot:
            await pilot.pause()
            before = app.lines.looks("good")
            app.theme = "textual-light"
            await pilot.pause()
            assert app.lines.looks("good") != before
            row = app.screen._compositor.render_strips()[0]
            assert any(s.style and s.style.color == app.lines.looks("good").color for s in row)

    asyncio.run(go())


def test_a_part_that_is_none_is_refused() -> None:
    async def go() -> None:
        app = Page()
        async with app.run_test(size=(30, 10)):
            with pytest.raises(KeyError):
                app.lines.get_component_styles("lines--other")

    asyncio.run(go())

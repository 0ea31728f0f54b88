"""Styles of a widget: worked out again where they differ, and only there."""

import asyncio

from rich.text import Text
from textual.app import App, ComposeResult

from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines


class Painted(LineSource):
    """Ten lines; it notes which it is asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    @property
    def count(self) -> int:
        return 10

    def line(self, index: int, width: int, looks: Looks) -> Text:
        self.asked.append(index)
        return Text(f"line {index}", looks("accent"))


class TwoLists(App[None]):
    CSS = "Screen { layout: horizontal; } Screen:focus-within > * { width: 1fr; }"

    def compose(self) -> ComposeResult:
        yield VirtualLines(Painted(), id="left")
        yield VirtualLines(Painted(), id="right")


def test_only_lines_that_look_different_are_painted_again() -> None:
    async def steps() -> None:
        app = TwoLists()
        async with app.run_test(size=(60, 10)) as pilot:
            left, right = app.query(VirtualLines[Painted])
            for lines in (left, right):
                lines.refresh_size()
            left.focus()
            await pilot.pause()
            assert {*left.source.asked} == {*right.source.asked} == {*range(10)}
            colour = left.looks("accent").color
            for lines in (left, right):
                lines.source.asked.clear()
            right.focus()
            await pilot.pause()
            # The cursor's line has another mark in both.
            assert left.source.asked == right.source.asked == [0]
            app.theme = "textual-light"
            await pilot.pause()
            assert {*left.source.asked} == {*right.source.asked} == {*range(10)}
            assert left.looks("accent").color != colour

    asyncio.run(steps())

"""The screen of the panes by itself."""

import asyncio

import pytest
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import Input

from tui.screens.main import MainScreen


class TwoInputs(App[None]):
    def __init__(self, screen: type[Screen[None]]) -> None:
        super().__init__()
        self._kind = screen

    def get_default_screen(self) -> Screen[None]:
        return self._kind(id="_default")

    def compose(self) -> ComposeResult:
        yield Input()
        yield Input()


@pytest.mark.parametrize(("kind", "whole"), [(Screen, 1), (MainScreen, 0)])
def test_a_focus_that_moves_does_not_paint_the_whole_screen(
    kind: type[Screen[None]], whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps() -> None:
        app = TwoInputs(kind)
        async with app.run_test(size=(40, 10)) as pilot:
            first, second = app.query(Input)
            first.focus()
            await pilot.pause()
            asked: list[object] = []
            monkeypatch.setattr(app.screen, "refresh", lambda *_, **named: asked.append(named))
            app.screen.set_focus(second)
            assert app.screen.focused is second
            assert len(asked) == whole
            await pilot.pause()
            assert second.has_focus
            assert not first.has_focus
            monkeypatch.undo()

    asyncio.run(steps())

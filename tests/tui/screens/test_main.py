"""The screen of the panes by itself."""

import asyncio
from collections.abc import Callable, Iterable

import pytest
from textual.app import App, ComposeResult
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Input

from tui.screens.main import MainScreen
from tui.widgets.pane import Pane


class TwoInputs(App[None]):
    CSS = "Input { color: red; }"

    def __init__(self, screen: Screen[None]) -> None:
        super().__init__()
        self._first = screen

    def get_default_screen(self) -> Screen[None]:
        return self._first

    def compose(self) -> ComposeResult:
        yield Input()
        yield Input()


@pytest.mark.parametrize(("made", "whole"), [(Screen, 1), (MainScreen, 0)])
def test_a_focus_that_moves_does_not_paint_the_whole_screen(
    made: Callable[[], Screen[None]], whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps() -> None:
        app = TwoInputs(made())
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


def test_rules_hold_from_the_first_frame_on_and_after_a_dialog() -> None:
    async def steps() -> None:
        app = TwoInputs(MainScreen())
        async with app.run_test(size=(40, 10)) as pilot:
            first = app.query(Input).first()
            assert first.styles.color.hex == "#FF0000"
            surface = first.styles.background
            await app.push_screen(Screen())
            app.theme = "textual-light"
            app.pop_screen()
            await pilot.pause()
            assert first.styles.color.hex == "#FF0000"
            assert first.styles.background != surface

    asyncio.run(steps())


class Plain(Pane):
    """A pane of one line to type in."""

    def __init__(self) -> None:
        super().__init__(Input())


class TwoPanes(App[None]):
    def get_default_screen(self) -> MainScreen:
        return MainScreen()

    def compose(self) -> ComposeResult:
        yield Plain()
        yield Plain()


def test_a_focus_that_moves_sets_the_rules_of_panes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        app = TwoPanes()
        async with app.run_test(size=(40, 10)) as pilot:
            first, second = app.query(Plain)
            first.focus_inside()
            await pilot.pause()
            looks = [pane.styles.border_title_color for pane in (first, second)]
            assert looks[0] != looks[1]
            styled: list[DOMNode] = []
            update = app.stylesheet.update_nodes

            def noted(nodes: Iterable[DOMNode], animate: bool = False) -> None:
                styled.extend(nodes := list(nodes))
                update(nodes, animate)

            monkeypatch.setattr(app.stylesheet, "update_nodes", noted)
            second.focus_inside()
            assert set(styled) == {first, second}
            await pilot.pause()
            assert [pane.styles.border_title_color for pane in (second, first)] == looks

    asyncio.run(steps())

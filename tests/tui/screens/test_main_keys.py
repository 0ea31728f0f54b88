"""The keys that mean something on the panes' screen."""

import asyncio
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, Static

from tui.screens.main import MainScreen


class _Pane(Static, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "act", "Act", id="act")]


class _Panes(App[None]):
    def get_default_screen(self) -> Screen[None]:
        return MainScreen()

    def compose(self) -> ComposeResult:
        yield _Pane("a")
        yield Input()


def test_keys_follow_the_focus_and_the_users_choice() -> None:
    async def go() -> None:
        app = _Panes()
        async with app.run_test() as pilot:
            screen = app.screen
            assert isinstance(screen, MainScreen)

            def keys() -> set[str]:
                return {key for _, table in screen._binding_chain for key in table.key_to_bindings}

            app.query_one(_Pane).focus()
            await pilot.pause()
            assert "a" in keys()
            assert screen._binding_chain is screen._binding_chain, "worked out once"
            app.set_keymap({"act": "b"})
            screen.renew_keys()
            assert "a" not in keys()
            assert "b" in keys()
            app.query_one(Input).focus()
            await pilot.pause()
            assert "b" not in keys()
            assert "left" in keys(), "of the line"
            screen.set_focus(None)
            assert "left" not in keys()

    asyncio.run(go())

"""The line of keys at the bottom."""

import asyncio
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from tui.widgets.hints import Hints


def test_a_click_on_a_hint_presses_its_key() -> None:
    class Hinted(App[None]):
        BINDINGS: ClassVar[list[BindingType]] = [
            Binding("a", "count(1)", "one"),
            Binding("b,c", "count(10)", "ten"),
            Binding("d", "count(100)", "hidden", show=False),
        ]
        counted = 0

        def compose(self) -> ComposeResult:
            yield Hints()

        def action_count(self, by: int) -> None:
            self.counted += by

    async def run() -> None:
        app = Hinted()
        async with app.run_test(size=(20, 3)) as pilot:
            await pilot.pause()
            strips = app.screen._compositor.render_strips(app.size)
            assert strips[2].text == "a one b ten".ljust(20)
            for column in (0, 5, 8, 15):  # the gap and the rest are no keys
                await pilot.click(Hints, offset=(column, 0))
            await pilot.pause()
            assert app.counted == 11

    asyncio.run(run())

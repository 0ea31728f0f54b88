"""Keys that are typed faster than they are dealt with."""

import asyncio
from typing import ClassVar

from keys import press
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui.key_queue import KeyQueue


class Box(Widget, can_focus=True):
    """Goes away at `x`; is slow at `s`."""

    async def on_key(self, event: events.Key) -> None:
        if event.key == "s":
            await asyncio.sleep(0.05)
        if event.key == "x":
            await self.remove()


class Typing(App[int]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "box", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.key_queue = KeyQueue(self, super().on_event)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            await self.key_queue.take(event)
        else:
            await super().on_event(event)

    def compose(self) -> ComposeResult:
        yield Box(id="first")
        yield Box(id="second")

    async def action_box(self) -> None:
        await self.mount(box := Box())
        box.focus()


def test_keys_come_one_after_the_other_whoever_goes_meanwhile() -> None:
    async def run() -> None:
        app = Typing()
        async with app.run_test() as pilot:
            app.query_one("#first", Box).focus()
            await pilot.pause()
            await press(app, ["s", "t", "x", "s", "x", "b", "x", "t"])
            assert not app.query(Box)
            assert not app.key_queue.typing

    asyncio.run(run())

"""Keys that are typed faster than they are dealt with."""

import asyncio
from typing import ClassVar

from keys import press
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from tui.key_queue import AHEAD, KeyQueue


class Box(Widget, can_focus=True):
    """Goes away at `x`; is slow at `s`; at `m` what it is on moves the focus, slowly."""

    class Follows(Message):
        """A key has a consequence."""

    heard = 0

    async def on_key(self, event: events.Key) -> None:
        self.heard += 1
        if event.key == "m":
            self.post_message(self.Follows())
        if event.key == "s":
            await asyncio.sleep(0.05)
        if event.key == "x":
            await self.remove()


class Shelf(Vertical):
    async def on_box_follows(self) -> None:
        await asyncio.sleep(0.05)
        self.app.query_one("#second", Box).focus()


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
        with Shelf():
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


def test_a_key_waits_for_what_follows_the_one_before() -> None:
    async def run() -> None:
        app = Typing()
        async with app.run_test() as pilot:
            first, second = (app.query_one(name, Box) for name in ("#first", "#second"))
            first.focus()
            await pilot.pause()
            await press(app, ["m", "t", "t"])
            assert (first.heard, second.heard) == (1, 2)

    asyncio.run(run())


def test_a_key_that_is_held_is_left_out_where_it_cannot_be_kept_up_with() -> None:
    async def run() -> None:
        app = Typing()
        async with app.run_test() as pilot:
            first = app.query_one("#first", Box)
            first.focus()
            await pilot.pause()
            await press(app, ["s"] * 30)
            assert first.heard <= AHEAD + 2
            first.heard = 0
            await press(app, ["s", *"adeadeadeadeadeade"])
            assert first.heard == 19

    asyncio.run(run())

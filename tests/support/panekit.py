"""One pane alone on a screen, driven as a user drives it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from eventkit import INFOS, NAMES
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

from engine.session.protocol import commands
from tui.messages import Ask, Copied, Located, Say
from tui.panes.events import EventLogPane
from tui.panes.output import GuestLine
from tui.panes.probes import ProbesPane
from tui.store import EventStore
from tui.widgets.hints import Hints
from tui.widgets.list_pane import ListPane

SIZES = [(80, 24), pytest.param((120, 40), marks=pytest.mark.slow), (20, 5)]


class Bench(App[None]):
    """A screen with one pane, noting what it says."""

    def __init__(self, pane: Widget, ascii_only: bool = False) -> None:
        super().__init__()
        self.pane = pane
        self.ascii = ascii_only
        self.heard: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.pane
        yield Hints()

    def on_mount(self) -> None:
        assert isinstance(self.pane, ListPane)
        self.pane.focus_inside()

    def on_ask(self, message: Ask) -> None:
        self.heard.append(message)

    def on_located(self, message: Located) -> None:
        self.heard.append(message)

    def on_copied(self, message: Copied) -> None:
        self.heard.append(message)

    def on_say(self, message: Say) -> None:
        self.heard.append(message)

    def on_guest_line_used(self, message: GuestLine.Used) -> None:
        self.heard.append(message)

    def on_probes_pane_edit(self, message: ProbesPane.Edit) -> None:
        self.heard.append(message)

    def rows(self) -> list[str]:
        return [strip.text for strip in self.screen._compositor.render_strips(self.size)]

    def asked(self) -> list[commands.Command]:
        return [message.command for message in self.heard if isinstance(message, Ask)]


def drive(
    pane: Widget,
    size: tuple[int, int],
    steps: Callable[[Pilot[None], Any], Awaitable[None]],
    ascii_only: bool = False,
) -> None:
    async def run() -> None:
        app = Bench(pane, ascii_only)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot, app)

    asyncio.run(run())


def event_pane(data: bytes, capacity: int = 1_000_000) -> EventLogPane:
    store = EventStore(NAMES, capacity)
    store.declare(INFOS)
    store.append(data)
    return EventLogPane(store)


async def until(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    for _ in range(400):
        await pilot.pause(0.005)
        if true():
            return
    raise AssertionError("it never came true")

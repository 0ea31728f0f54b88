"""The whole interface driven by keys, over a guest that really runs."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from archkit import FIRST_COMPILED
from controlkit import sample
from keys import Rest, press
from screens import Paints
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from engine.session import GuestConfig
from engine.session.protocol.probes import ProbeView
from engine.session.protocol.views import GuestView, RunState
from tui.app import KprobeApp
from tui.lessons import Lesson
from tui.lessons.checks import holds
from tui.lessons.opening import lesson_config
from tui.panes.code_view import CodeView
from tui.panes.registry import Panes
from tui.screens.palette import PaletteScreen
from tui.settings import Settings
from tui.widgets.bars import MessageLine
from tui.widgets.virtual_lines import VirtualLines

PATIENCE = 240.0
SMALL, LARGE = (80, 24), (120, 40)
SIZES = [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)]
sizes = pytest.mark.parametrize("size", SIZES)
both = pytest.mark.parametrize("arch", FIRST_COMPILED)


class User:
    """Types, looks, and waits until what should come has come.

    Attributes:
        app: the interface.
        pilot: Textual's own driver.
        keys: pressed so far.
        clipboard: what was copied last.
    """

    def __init__(self, app: KprobeApp, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot
        self.keys = 0
        self._paints = Paints(app)
        self._painted = -1, ""

    async def press(self, *keys: str) -> None:
        """Press keys."""
        self.keys += len(keys)
        await press(self.app, keys)
        self.app.screen._on_timer_update()  # what was moved is laid out

    async def typing(self) -> None:
        """Wait until something can be typed."""
        await self.until(lambda: isinstance(self.app.focused, Input), "a line to type in")

    async def type(self, text: str) -> None:
        """Put text where it is being typed."""
        await self.typing()
        line = self.app.focused
        assert isinstance(line, Input), line
        line.value = text
        line.cursor_position = len(text)

    async def command(self, text: str) -> None:
        """A line of the command line."""
        await self.press("colon")
        await self.type(text)
        await self.press("enter")

    async def rest(self) -> None:
        """Wait until the engine has carried out and told everything, and it was looked at."""
        worker = self.app.bridge._worker
        await self.until(lambda: not self.app.works and Rest.told(worker), "the engine rests")
        await asyncio.sleep(0.3)

    def holds(self, condition: str) -> bool:
        """True if a condition of a lesson's step holds."""
        return holds(condition, self.app.seen())

    async def until(self, condition: Callable[..., object], what: str = "") -> None:
        """Wait for something; it is asked without arguments."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{what}: {self.said} {self.view.state}\n{self.screen}"
            await asyncio.sleep(0.02)

    async def state(self, *states: RunState) -> None:
        """Wait for a state of the guest."""
        await self.until(lambda: self.view.state in states, f"{states}")

    async def ready(self) -> None:
        """Wait for the first view."""
        await self.until(lambda: self.view.registers, "the first view")

    async def says(self, text: str) -> None:
        """Wait for a message."""
        await self.until(lambda: text in self.said, text)

    async def shows(self, text: str) -> None:
        """Wait for text on the screen."""
        await self.until(lambda: text in self.screen, text)

    @property
    def view(self) -> GuestView:
        """The guest as the interface knows it."""
        return self.app.view

    @property
    def probes(self) -> tuple[ProbeView, ...]:
        """What is placed."""
        return self.view.probes

    @property
    def said(self) -> str:
        """The message at the bottom."""
        line = self.app.screen_stack[0].query_one(MessageLine)
        return str(line.query_one(".said").render())

    @property
    def screen(self) -> str:
        """What is on the screen, changes of this moment included."""
        self.app.screen._on_timer_update()  # a view may be newer than the last repaint
        if self._paints.count != self._painted[0]:
            strips = self.app.screen._compositor.render_strips(self.app.size)
            self._painted = self._paints.count, "\n".join(strip.text for strip in strips)
        return self._painted[1]

    @property
    def clipboard(self) -> str:
        """What was copied last."""
        return self.app.clipboard

    @property
    def panes(self) -> Panes:
        """The panes of the main screen."""
        return self.app.panes

    @property
    def code(self) -> CodeView:
        """The view of the code."""
        return self.panes.code.code

    @property
    def focus(self) -> str:
        """The pane that has the keys."""
        focused = self.app.focused
        assert focused is not None
        return next(str(w.id) for w in (focused, *focused.ancestors) if w.id)

    def address(self, place: str) -> int:
        """Guest address of a place."""
        return self.app.browser.address_of(place)

    @property
    def offered(self) -> list[str]:
        """What a dialog or the palette offers."""
        dialog = self.app.screen
        if isinstance(dialog, PaletteScreen):
            rows = dialog.query_one(VirtualLines)
            return [rows.plain(index) for index in range(rows.line_count)]
        return [str(option.prompt) for option in dialog.query_one(OptionList).options]

    async def choices(self, text: str) -> None:
        """Wait until a dialog offers something."""
        await self.until(lambda: any(text in offer for offer in self.offered), text)


Flow = Callable[[User], Awaitable[None]]


async def place(user: User, line: str) -> None:
    """Place a definition by typing it."""
    count = len(user.probes)
    await user.command(line)
    await user.until(lambda: len(user.probes) == count + 1, line)


def flow(
    steps: Flow,
    *,
    guest: str = "",
    args: tuple[str, ...] = (),
    size: tuple[int, int] = LARGE,
    settings: Settings | None = None,
    fresh: bool = True,
    definitions: tuple[str, ...] = (),
    config: GuestConfig | None = None,
) -> KprobeApp:
    """Open the interface over a guest, carry the steps out, close it."""
    config = config or GuestConfig(guest or sample("x86_64", "recursion"), args)
    app = KprobeApp(config, settings=settings, fresh=fresh, definitions=definitions)
    return _used(app, steps, size)


def _used(app: KprobeApp, steps: Flow, size: tuple[int, int]) -> KprobeApp:
    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            user = User(app, pilot)
            await user.ready()
            await steps(user)

    coroutine: Coroutine[Any, Any, None] = run()
    asyncio.run(coroutine)
    return app


def lesson_flow(
    steps: Flow, lesson: Lesson, *, size: tuple[int, int] = LARGE, kernel: str = ""
) -> KprobeApp:
    """Open a lesson as `kprobe-tui learn` does, carry the steps out, close it."""
    app = KprobeApp(
        lesson_config(lesson, kernel), kernel_rules=lesson.guest.kernel_rules, lesson=lesson
    )
    return _used(app, steps, size)

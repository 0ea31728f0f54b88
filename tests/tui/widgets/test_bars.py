"""The status bar names the thread that runs, where there are several."""

import asyncio

from textual.app import App, ComposeResult

from engine.session.protocol.views import GuestView
from tui.widgets.bars import StatusBar


class _Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield StatusBar()


def _text(view: GuestView, width: int) -> str:
    async def shown() -> str:
        app = _Shown()
        async with app.run_test(size=(width, 3)) as pilot:
            bar = app.query_one(StatusBar)
            bar.show(view)
            await pilot.pause()
            return str(bar.render())

    return asyncio.run(shown())


def test_the_thread_that_runs_is_named_among_others() -> None:
    view = GuestView(program="server", thread=1002, threads=4, comms={1002: "worker\x1b[m"})
    assert "-1002 of 4 threads" in _text(view, 160)
    assert "worker" in _text(view, 160)
    assert "\x1b" not in _text(view, 160)
    assert "threads" not in _text(GuestView(program="tool", thread=1000), 160)
    assert "threads" not in _text(view, 40)

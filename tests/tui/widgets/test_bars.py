"""The status bar and the line of messages."""

import asyncio

from textual.app import App, ComposeResult
from textual.widgets import Static

from engine.session.protocol.views import GuestView
from tui.widgets.bars import MessageLine, StatusBar


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


class _Said(App[None]):
    def compose(self) -> ComposeResult:
        yield MessageLine(lambda: None)


def test_a_message_that_is_shown_already_is_not_shown_again() -> None:
    async def told() -> list[str]:
        app, updates = _Said(), list[str]()
        async with app.run_test(size=(40, 6)):
            line = app.query_one(MessageLine)
            said = line.query_one(".said", Static)
            update = said.update

            def noted(content: str, *, layout: bool) -> None:
                updates.append(content)
                update(content, layout=layout)

            setattr(said, "update", noted)  # noqa: B010 - of this one widget
            for text, severity in (
                ("stepped", "information"),
                ("stepped", "information"),
                ("failed", "error"),
                ("failed", "information"),
            ):
                line.say(text, severity)
            line.say("failed", "error")
            line.pass_by()
            line.say("failed", "error")
            line.pass_by()
            line.pass_by()
        return updates

    shown = asyncio.run(told())
    assert shown == ["stepped", "failed", "failed", "failed", "", "failed", ""]

"""The output pane driven as a user drives it, at several sizes."""

import pytest
from panekit import SIZES, Bench, drive, until
from textual.pilot import Pilot

from engine.session.protocol import commands
from tui.panes.output import GuestLine, OutputPane


@pytest.mark.parametrize("size", SIZES)
def test_output_and_input(size: tuple[int, int]) -> None:
    pane = OutputPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.feed(b"".join(b"line %d\r\n" % number for number in range(100)))
        pane.feed(b"name? ")
        pane.drained()
        await pilot.pause()
        assert any("name?" in row for row in app.rows())
        await pilot.press("enter", *"bob", "enter")
        await pilot.press("ctrl+d", "a", "left", "ctrl+d", "escape")
        await pilot.pause()
        used = [each.how for each in app.heard if isinstance(each, GuestLine.Used)]
        assert (used[0], used[-1]) == ("entered", "left")  # the owner takes the keys back
        sent = [each for each in app.asked() if isinstance(each, commands.Input)]
        assert sent == [commands.Input(b"bob\n"), commands.Input(b"\x04")]
        assert any(isinstance(each, commands.Resize) for each in app.asked())
        pane.say("exited with 0")
        await pilot.pause()
        assert any("exited with 0" in row for row in app.rows())
        pane.restarted()
        await pilot.pause()
        assert pane.lines.line_count == 0

    drive(pane, size, steps)


def test_output_is_bounded_and_searched() -> None:
    pane = OutputPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.feed(b"".join(b"%d\n" % number for number in range(30_000)))
        pane.drained()
        await pilot.pause()
        assert "older lines dropped" in pane.remarks[2]
        assert pane.lines.line_count < 20_001
        await pilot.press("slash", *"15000", "enter")
        await until(pilot, lambda: pane.lines.plain(pane.lines.cursor) == "15000")

    drive(pane, (80, 24), steps)

"""The event log driven as a user drives it, at the sizes of design and one that is too small."""

import struct
from functools import partial

import pytest
from eventkit import INFOS, NAMES, fact, facts, opened, ret
from panekit import SIZES, Bench, drive, event_pane, until
from textual.events import MouseScrollUp
from textual.pilot import Pilot

from tui.lineindex import Fold
from tui.messages import Copied, Located, Say
from tui.panes.events import EventLogPane
from tui.store import EventStore


@pytest.mark.parametrize("size", SIZES)
def test_the_log_follows_until_somebody_goes_up(size: tuple[int, int]) -> None:
    pane = event_pane(facts(1000))
    lines = pane.lines

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        assert (lines.cursor, lines.follow) == (999, True)
        assert any("n=999" in row for row in app.rows())
        pane.store.append(facts(500, 1000))
        pane.drained()
        await pilot.pause()
        assert lines.cursor == 1499
        assert any("n=1499" in row for row in app.rows())
        await pilot.press("k")
        assert (lines.cursor, lines.follow) == (1498, False)
        pane.store.append(facts(500, 1500))
        pane.drained()
        await pilot.pause()
        assert lines.cursor == 1498
        assert any("n=1498" in row for row in app.rows())
        assert "follow" not in pane.remarks
        await pilot.press("G")
        await pilot.pause()
        assert (lines.cursor, lines.follow) == (1999, True)
        assert "follow" in pane.remarks
        await pilot.press("g", "g")
        await pilot.pause()
        assert (lines.cursor, lines.follow) == (0, False)
        await pilot.press("end")
        assert lines.follow

    drive(pane, size, steps)


def test_the_wheel_lets_go_and_vim_motions_move() -> None:
    pane = event_pane(facts(1000))
    lines = pane.lines

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        top = lines.scroll_offset.y
        await pilot._post_mouse_events([MouseScrollUp], lines)
        await pilot.pause()
        assert not lines.follow
        assert lines.scroll_offset.y < top
        await pilot.press("home")
        height = lines.size.height
        await pilot.press("j", "j", "down", "k")
        assert lines.cursor == 2
        await pilot.press("ctrl+d")
        assert lines.cursor == 2 + (height - 1) // 2
        await pilot.press("ctrl+u")
        assert lines.cursor == 2
        await pilot.press("pagedown")
        assert lines.cursor == height + 1
        await pilot.press("pageup", "pageup")
        assert lines.cursor == 0
        await pilot.click(lines, offset=(5, 4))
        assert lines.cursor == 4
        assert isinstance(app.heard[-1], Located)
        assert app.heard[-1].address == 0x401130
        assert not app.heard[-1].focus
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.heard[-1], Located)
        assert app.heard[-1].focus
        await pilot.press("l")
        await pilot.pause()

    drive(pane, (80, 24), steps)


@pytest.mark.parametrize("size", SIZES)
def test_lines_stay_in_place_while_old_ones_go(size: tuple[int, int]) -> None:
    pane = event_pane(facts(1000), capacity=1000)
    lines = pane.lines

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.goto(601)
        await pilot.pause()
        assert lines.cursor == 600
        seen = [row[:-2] for row in app.rows()[1:-2]]
        pane.store.append(facts(300, 1000))
        pane.drained()
        await pilot.pause()
        assert lines.cursor == 300
        assert [row[:-2] for row in app.rows()[1:-2]] == seen
        pane.store.append(facts(2000, 1300))
        pane.drained()
        await pilot.pause()
        assert lines.cursor == 0
        assert "n=2300" in "".join(app.rows())

    drive(pane, size, steps)


def test_search_goes_around_and_says_so() -> None:
    data = facts(3000) + opened(3000, b"/etc/passwd", 3) + facts(3000, 3001)
    pane = event_pane(data)
    lines = pane.lines

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        await pilot.press("slash", *"passwd", "enter")
        await until(pilot, lambda: lines.cursor == 3000)
        assert lines.has_focus
        assert "around" in pane.remarks[-1]
        await pilot.press("n")
        await until(pilot, lambda: "around" in pane.remarks[-1])
        assert lines.cursor == 3000
        await pilot.press("slash")
        pane.prompt.input.value = "N=41"
        await pilot.press("enter")
        await until(pilot, lambda: "not found" in pane.remarks[-1])
        await pilot.press("slash")
        pane.prompt.input.value = "n=41"
        await pilot.press("enter")
        await until(pilot, lambda: lines.cursor == 4100)
        await pilot.press("N")
        await until(pilot, lambda: lines.cursor == 419)
        await pilot.press("escape")
        await pilot.pause()
        assert (lines.pattern, pane.remarks[-1]) == ("", "")

    drive(pane, (80, 24), steps)


def test_filter_fold_and_goto() -> None:
    data = b"".join(fact(i, i % 10) for i in range(2000)) + b"".join(ret(i, 7) for i in range(50))
    pane = event_pane(data)
    lines = pane.lines

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        await pilot.press("ampersand", *"n<x", "enter")
        await pilot.pause()
        assert "  ^ expected a number" in "\n".join(app.rows())
        await pilot.press("backspace", "4", "enter")
        await until(pilot, lambda: not pane.store.pending)
        await pilot.pause()
        await until(pilot, lambda: pane.remarks[1:3] == ("800 of 2 050", "n<4"))
        assert (lines.line_count, lines.cursor) == (800, 799)
        await pilot.press("number_sign", *"1012", "enter")
        await until(pilot, lambda: pane.store.number(lines.cursor) == 1011)
        await pilot.press("ampersand", *["backspace"] * 3, "enter")
        await until(pilot, lambda: lines.line_count == 2050)
        assert pane.store.number(lines.cursor) == 1011
        await pilot.press("space", "space", "G")
        await until(pilot, lambda: lines.line_count == 2001)
        assert pane.store.fold is Fold.VALUES
        await pilot.pause()
        assert any("\u00d750 folded" in row for row in app.rows())
        await pilot.press("Y")
        await pilot.pause()
        assert isinstance(app.heard[-1], Copied)
        assert app.heard[-1].text.endswith("ret=0x7 (x50 folded)")

    drive(pane, (80, 24), steps)


def test_a_guest_string_cannot_reach_the_terminal() -> None:
    pane = event_pane(opened(1, b"\x1b]0;owned\x07\x1b[31m\xff\n", 3))

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        text = "".join(app.rows())
        assert r"\33]0;owned\7\33[31m\xff\n" in text
        assert "".join(app.rows()[:-1]).isascii()

    drive(pane, (120, 40), steps, ascii_only=True)


def test_copy_of_what_was_selected() -> None:
    pane = event_pane(facts(100))

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        await pilot.press("home", "j", "J", "J", "Y")
        await pilot.pause()
        copied = app.heard[-1]
        assert isinstance(copied, Copied)
        assert [line.rsplit(" ", 1)[1] for line in copied.text.split("\n")] == [
            "n=1",
            "n=2",
            "n=3",
        ]

    drive(pane, (80, 24), steps)


def test_ten_million_lines_and_a_screen_of_work() -> None:
    class Endless(EventStore):
        @property
        def line_count(self) -> int:
            return 10_000_000

        def number(self, line: int) -> int:
            return line

        def row(self, number: int) -> bytes:
            return fact(number, number)

    store = Endless(NAMES)
    store.declare(INFOS)
    pane = EventLogPane(store)

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        assert any("n=9999999" in row for row in app.rows())
        await pilot.press("g", "g")
        await pilot.pause()
        assert any("n=0)" in row for row in app.rows())
        pane.goto(5_000_001)
        await pilot.pause()
        assert any("n=5000000" in row for row in app.rows())

    drive(pane, (80, 24), steps)


def test_a_new_run_empties_the_log() -> None:
    pane = event_pane(facts(100))

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        await pilot.press("home")
        pane.restarted()
        await pilot.pause()
        assert pane.lines.line_count == 0
        assert pane.lines.follow
        await pilot.press("j", "k", "G", "Y", "enter", "n", "escape")
        pane.store.declare(INFOS)
        pane.store.append(facts(10))
        pane.drained()
        await pilot.pause()
        assert "n=9" in "".join(app.rows())

    drive(pane, (80, 24), steps)


def test_the_key_goes_from_one_to_the_other() -> None:
    nested = facts(2) + ret(10, 1) + ret(11, 2) + fact(12, 5)
    pane = event_pane(nested)
    lines = pane.lines

    def at(line: int) -> bool:
        return lines.cursor == line

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        for number, other in ((1, 2), (2, 1), (0, 3), (3, 0)):
            pane.goto(number + 1)
            await pilot.press("percent_sign")
            await until(pilot, partial(at, other))
        pane.goto(4)
        await pilot.press("enter")
        located = [m for m in app.heard if isinstance(m, Located) and m.focus]
        assert [m.address for m in located] == [0x401155]
        pane.goto(5)
        await pilot.press("percent_sign")
        await until(pilot, lambda: any(isinstance(m, Say) for m in app.heard))
        assert lines.cursor == 4

    drive(pane, (80, 24), steps)


def test_a_row_that_the_filter_hides_is_named() -> None:
    pane = event_pane(facts(1) + ret(10, 1))

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.set_filter("name==fact_ret")
        await until(pilot, lambda: pane.store.line_count == 1)
        pane.goto(2)
        await pilot.press("percent_sign")
        await until(pilot, lambda: any(isinstance(m, Say) for m in app.heard))
        said = next(m.text for m in app.heard if isinstance(m, Say))
        assert said.startswith("event 1 ")
        assert pane.lines.cursor == 0

    drive(pane, (80, 24), steps)


def test_row_layout_is_what_the_kit_says() -> None:
    assert struct.unpack_from("<HHI", facts(1)) == (1, 4, 77)

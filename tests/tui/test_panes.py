"""Panes driven as a user drives them, at the sizes of design and at a size that is too small."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from eventkit import INFOS, NAMES, fact, facts, opened, ret
from textual.app import App, ComposeResult
from textual.events import MouseScrollUp
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Footer

from engine.session import commands
from engine.session.views import ProbeView
from tui.lineindex import Fold
from tui.messages import Ask, Copied, Located, Say
from tui.panes.events import EventLogPane
from tui.panes.output import OutputPane
from tui.panes.probes import ProbesPane
from tui.store import EventStore
from tui.widgets.list_pane import ListPane

SIZES = [(80, 24), (120, 40), (20, 5)]


class Bench(App[None]):
    """A screen with one pane, noting what it says."""

    def __init__(self, pane: Widget, ascii_only: bool = False) -> None:
        super().__init__()
        self.pane = pane
        self.ascii = ascii_only
        self.heard: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.pane
        yield Footer()

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


# -- the event log ---------------------------------------------------------------------------


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
        assert "follow" not in str(pane.border_title)
        await pilot.press("G")
        await pilot.pause()
        assert (lines.cursor, lines.follow) == (1999, True)
        assert "follow" in str(pane.border_title)
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
        assert "around" in str(pane.border_subtitle)
        await pilot.press("n")
        await until(pilot, lambda: "around" in str(pane.border_subtitle))
        assert lines.cursor == 3000
        await pilot.press("slash")
        pane.prompt.input.value = "N=41"
        await pilot.press("enter")
        await until(pilot, lambda: "not found" in str(pane.border_subtitle))
        await pilot.press("slash")
        pane.prompt.input.value = "n=41"
        await pilot.press("enter")
        await until(pilot, lambda: lines.cursor == 4100)
        await pilot.press("N")
        await until(pilot, lambda: lines.cursor == 419)
        await pilot.press("escape")
        await pilot.pause()
        assert (lines.pattern, pane.border_subtitle) == ("", "")

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
        await until(pilot, lambda: "n<4 \u2500 800 of 2 050" in str(pane.border_title))
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
        assert r"\x1b]0;owned\x07\x1b[31m\xff\n" in text
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


# -- guest output ----------------------------------------------------------------------------


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
        assert pane.lines.has_focus
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
        assert "older lines dropped" in str(pane.border_title)
        assert pane.lines.line_count < 20_001
        await pilot.press("slash", *"15000", "enter")
        await until(pilot, lambda: pane.lines.plain(pane.lines.cursor) == "15000")

    drive(pane, (80, 24), steps)


# -- probes ----------------------------------------------------------------------------------


def probe(number: int, **changes: Any) -> ProbeView:
    view = ProbeView(
        number,
        "p",
        f"p:e{number} f{number}+0",
        f"kprobes/e{number}",
        f"f{number}+0",
        (0x1000 + number,),
        how="xol",
        hits=number,
    )
    return replace(view, **changes)


@pytest.mark.parametrize("size", SIZES)
def test_probes_and_their_keys(size: tuple[int, int]) -> None:
    pane = ProbesPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        probes = [
            probe(1),
            probe(2, enabled=False, technique="jump"),
            probe(3, pending=True, addresses=(), how="", kind="r"),
            probe(4, stops=True, kind="b", misses=3),
        ]
        pane.show(probes)
        await pilot.pause()
        await pilot.press("e", "x", "b", "E", "enter")
        await pilot.press("j", "e")
        await pilot.press("J", "J", "b")
        await pilot.pause()
        assert app.asked() == [
            commands.Enable((1,), False),
            commands.Delete((1,)),
            commands.StopOnHit((1,), True),
            commands.Enable((2,), True),
            commands.StopOnHit((2, 3, 4), True),
        ]
        edits = [each for each in app.heard if isinstance(each, ProbesPane.Edit)]
        assert [edit.probe.id for edit in edits] == [1]
        located = [(m.address, m.focus) for m in app.heard if isinstance(m, Located)]
        assert located == [(0x1001, True), (0x1002, False), (0x1004, False)]
        pane.show(probes[1:])
        await pilot.pause()
        assert pane.lines.probes[pane.lines.cursor].id == 4

    drive(pane, size, steps)


def test_probe_signs_need_no_colour() -> None:
    pane = ProbesPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show(
            [
                probe(1),
                probe(2, kind="r", technique="jump"),
                probe(3, enabled=False, how="boosted"),
                probe(4, pending=True, addresses=(), how=""),
                probe(5, gone=True, how="emulated"),
                probe(6, stops=True, kind="b", place="/bin/x:0x40"),
            ]
        )
        await pilot.pause()
        starts = [row[1:].strip("|> ").split("f")[0].split("/")[0] for row in app.rows()[1:7]]
        assert starts == ["*  p S ", "o  r J ", "-  p B ", "?  p   ", "x  p E ", "*# b X "]

    drive(pane, (80, 24), steps, ascii_only=True)


def test_tens_of_thousands_of_probes() -> None:
    pane = ProbesPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show([probe(number) for number in range(40_000)])
        await pilot.press("G")
        await pilot.pause()
        assert "f39999+0" in "".join(app.rows())
        await pilot.press("slash", *"f20000+", "enter")
        await until(pilot, lambda: pane.lines.cursor == 20_000)

    drive(pane, (80, 24), steps)


def test_help_is_there_for_each_pane() -> None:
    for pane in (EventLogPane(), OutputPane(), ProbesPane()):
        assert pane.lines.HELP.startswith("# ")
        for binding in pane.lines.BINDINGS:
            assert binding.id  # type: ignore[union-attr]


def test_row_layout_is_what_the_kit_says() -> None:
    assert struct.unpack_from("<HHI", facts(1)) == (1, 4, 77)

"""The virtual list by itself."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection
from textual.strip import Strip

from tui.render import MARKS, grouped, harmless, sparkline
from tui.widgets.chords import PrefixKeys
from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.strips import highlight
from tui.widgets.virtual_lines import VirtualLines


class Numbers(LineSource):
    """Numbers from 0, each on a long line; it notes what it is asked for."""

    def __init__(self, count: int) -> None:
        self.number = count
        self.made: list[int] = []

    @property
    def count(self) -> int:
        return self.number

    def line(self, index: int, width: int, looks: Looks) -> Text:
        self.made.append(index)
        return Text(f"{index:08} " + "abcdefghij" * 12)


class Shell(App[None]):
    def __init__(self, lines: VirtualLines[Numbers]) -> None:
        super().__init__()
        self.lines = lines

    def compose(self) -> ComposeResult:
        yield self.lines

    def on_mount(self) -> None:
        self.lines.focus()
        self.lines.refresh_size()

    def rows(self) -> list[str]:
        return [strip.text for strip in self.screen._compositor.render_strips(self.size)]


def drive(
    lines: VirtualLines[Numbers],
    size: tuple[int, int],
    steps: Callable[[Pilot[None], Shell], Awaitable[None]],
) -> None:
    async def run() -> None:
        app = Shell(lines)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot, app)

    asyncio.run(run())


@pytest.mark.parametrize("size", [(80, 24), (20, 5), (3, 1)])
def test_only_what_is_seen_is_made(size: tuple[int, int]) -> None:
    source = Numbers(10_000_000)
    lines = VirtualLines(source)

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        await pilot.press("G")
        await pilot.pause()
        assert (lines.cursor, lines.scroll_offset.y) == (9_999_999, 10_000_000 - size[1])
        assert lines.virtual_size.height == 10_000_000
        assert len(set(source.made)) <= 3 * size[1]
        source.made.clear()
        lines.refresh()
        await pilot.pause()
        assert not source.made
        lines.move_to(5_000_000)
        await pilot.pause()
        assert lines.scroll_offset.y == 5_000_000
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert any("05000000" in row for row in app.rows())
        source.number = 3
        lines.refresh_size()
        await pilot.pause()
        assert (lines.cursor, lines.scroll_offset.y) == (2, 0)
        source.number = 0
        lines.refresh_size()
        await pilot.press("j", "k", "G", "Y", "enter", "l")
        assert lines.cursor == 0

    drive(lines, size, steps)


def test_lines_come_into_a_list_that_is_hidden() -> None:
    source = Numbers(3)
    lines: VirtualLines[Numbers] = VirtualLines(source)
    lines.display = False

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        for count in (40, 41, 1000, 2):
            source.number = count
            lines.refresh_size()
            await pilot.pause()
        lines.display = True
        await pilot.pause()
        assert ["00000000" in row for row in app.rows()] == [True, *[False] * 9]

    drive(lines, (30, 10), steps)


def test_the_scroll_bar_is_as_a_fresh_one_would_be() -> None:
    """It is left alone where a line more or less does not show."""
    source = Numbers(9)
    lines: VirtualLines[Numbers] = VirtualLines(source)

    def drawn(app: Shell) -> list[list[tuple[str, Style | None]]]:
        strips = app.screen._compositor.render_strips(app.size)
        cells = [strip.crop(app.size.width - 1) for strip in strips]
        return [[(text, style) for text, style, _ in strip if text] for strip in cells]

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        sizes = [*range(9, 24), 1000, 1001, 1500, 100_000, 100_001, 99_999, 30, 10, 9]
        for key in ("home", "end", "pageup"):
            for count in sizes:
                source.number = count
                lines.refresh_size()
                await pilot.press(key)
                await pilot.pause()
                seen = drawn(app)
                lines.vertical_scrollbar.refresh()
                await pilot.pause()
                assert drawn(app) == seen, (key, count)
        source.number = 100_000
        lines.refresh_size()
        await pilot.pause()
        painted: list[int] = []
        bar = lines.vertical_scrollbar
        render = bar.render

        def noted() -> object:
            painted.append(source.number)
            return render()

        setattr(bar, "render", noted)  # noqa: B010 - of this one bar
        for count in (100_001, 100_000, 50_000, 15):
            source.number = count
            lines.refresh_size()
            await pilot.pause()
        assert painted == [15], "the thumb is one cell long at the top of the others"

    drive(lines, (30, 10), steps)


class Known(Numbers):
    """Lines that say what they show."""

    words = "abc"

    def content(self, index: int) -> object:
        return self.words if index == 1 else index

    def line(self, index: int, width: int, looks: Looks) -> Text:
        super().line(index, width, looks)
        return Text(f"{index} {self.words if index == 1 else ''}")


def test_a_line_that_shows_the_same_is_not_made_again() -> None:
    source = Known(8)
    lines: VirtualLines[Numbers] = VirtualLines(source)

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        async def made() -> list[int]:
            source.made.clear()
            lines.changed()
            await pilot.pause()
            return source.made

        assert not await made()
        source.words = "def"
        assert await made() == [1]
        assert "1 def" in app.rows()[1]
        source.words = "abc"
        assert await made() == [1]
        assert "1 abc" in app.rows()[1]
        assert not await made(), "the last one is known, not the first one"
        lines.start_search("bc")
        await pilot.pause()
        assert await made() == [], "painted anew when the pattern came"

    drive(lines, (30, 10), steps)


def test_another_size_shows_what_the_wheel_went_to_or_else_the_cursor() -> None:
    lines = VirtualLines(Numbers(100))

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        lines.scroll_to(y=50, animate=False)
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        assert (lines.cursor, lines.scroll_offset.y) == (0, 50)
        await pilot.press("j")
        lines.move_to(57)
        await pilot.resize_terminal(30, 5)
        await pilot.pause()
        assert lines.scroll_offset.y <= 57 < lines.scroll_offset.y + 5

    drive(lines, (40, 10), steps)


def test_sideways() -> None:
    lines = VirtualLines(Numbers(100))

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        await pilot.press("l")
        await pilot.pause()
        assert app.rows()[1].startswith("   abcdefghij")
        lines.action_sideways(20)
        await pilot.pause()
        assert app.rows()[1].rstrip().endswith("hij")
        assert lines.scroll_offset.x == lines.virtual_size.width - lines.view_width
        lines.action_sideways(-30)
        assert lines.scroll_offset.x == 0

    drive(lines, (40, 10), steps)


def test_chords() -> None:
    lines = VirtualLines(Numbers(100))

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        await pilot.press("G", "g")
        await pilot.pause()
        assert (lines.cursor, lines.chords.keys.pending) == (99, "g")
        await pilot.press("g")
        await pilot.pause()
        assert (lines.cursor, lines.chords.keys.pending) == (0, "")
        await pilot.press("g", "j")
        await pilot.pause()
        assert lines.cursor == 0
        await pilot.press("j")
        assert lines.cursor == 1

    drive(lines, (40, 10), steps)


def test_the_mouse_selects_what_is_seen() -> None:
    lines = VirtualLines(Numbers(1000))

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        lines.move_to(500)
        await pilot.pause()
        top = lines.scroll_offset.y
        picked = Selection(Offset(2, top), Offset(10, top + 1))
        text, end = lines.get_selection(picked) or ("", "")
        assert (text.split("\n")[1], end) == (f"  {top + 1:08}", "\n")
        assert text.startswith(f"{top:08} abc")
        everything, _ = lines.get_selection(Selection(None, None)) or ("", "")
        assert everything.count("\n") == 999

    drive(lines, (40, 10), steps)


def test_a_flood_is_painted_now_and_then_but_its_end_always() -> None:
    class Tail(Numbers):
        follows = True

    source = Tail(10)
    lines: VirtualLines[Numbers] = VirtualLines(source)

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        for _ in range(50):
            source.number += 1000
            lines.refresh_size()
            await asyncio.sleep(0.001)
        assert len(set(source.made)) < 50 * 10
        await pilot.pause(0.25)
        assert lines.cursor == source.number - 1
        assert f"{source.number - 1:08}" in app.rows()[-1]

    drive(lines, (40, 10), steps)


@pytest.mark.parametrize(
    ("log", "cursor", "top"), [(True, 35, 33), (True, 31, 31), (False, 35, 30)]
)
def test_the_end_of_a_log_stays_in_sight_beside_the_cursor(
    log: bool, cursor: int, top: int
) -> None:
    class Lines(Numbers):
        follows = log

    lines: VirtualLines[Numbers] = VirtualLines(Lines(40))

    async def steps(pilot: Pilot[None], app: Shell) -> None:
        lines.move_to(39)
        lines.move_to(cursor)
        await pilot.pause()
        assert lines.scroll_offset.y == 30
        await pilot.resize_terminal(40, 7)
        await pilot.pause()
        assert (lines.scroll_offset.y, lines.cursor) == (top, cursor)

    drive(lines, (40, 10), steps)


def test_prefix_keys() -> None:
    keys = PrefixKeys({"g": {"g": "top", "e": "end"}, "z": {"z": "middle"}})
    assert keys.feed("j") is None
    assert (keys.feed("g"), keys.pending) == ("", "g")
    assert (keys.feed("e"), keys.pending) == ("end", "")
    assert [keys.feed(key) for key in "gxz"] == ["", "", ""]
    assert (keys.choices, keys.feed("z")) == ({"z": "middle"}, "middle")


def test_matches_are_marked_wherever_segments_end() -> None:
    strip = Strip([Segment("mal"), Segment("loc MAL", Style(bold=True)), Segment("loc \u4e2d m")])
    style = Style(reverse=True)
    marked = highlight(strip, "malloc", style)
    assert marked.text == strip.text
    assert marked.cell_length == strip.cell_length
    hot = "".join(part.text for part in marked if part.style and part.style.reverse)
    assert hot == "mallocMALloc"
    hot = "".join(p.text for p in highlight(strip, "MAL", style) if p.style and p.style.reverse)
    assert hot == "MAL"
    assert highlight(strip, "nothing", style) is strip


def test_what_is_drawn_without_unicode() -> None:
    assert all(mark.plain.isascii() for mark in MARKS.values())
    assert harmless("\u00e9\x1b[m\u202e", ascii_only=True) == r"\xe9\33[m\xe2\x80\xae"
    assert harmless(b"\xffok\n") == r"\xffok\n"
    assert grouped(1234567) == "1 234 567"
    assert sparkline([0, 1, 2], ascii_only=True) == "_=#"
    assert sparkline([]) == ""

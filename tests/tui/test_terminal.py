"""What a guest writes, against hostile and merely odd bytes."""

from functools import partial

from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.style import Style
from workcount import calls

from tui.output_lines import CELLS_MAX
from tui.terminal import LineTerminal

pieces = st.one_of(
    st.binary(max_size=12),
    st.text(max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [
            b"\x1b[",
            b"\x1b]0;title",
            b"\x07",
            b"\x1b\\",
            b"\x1bP",
            b"\x1b^",
            b"m",
            b"31",
            b";",
            b"\x1b[1;31m",
            b"\x1b[0m",
            b"\x1b[38;5;200m",
            b"\x1b[48:2:1:2:3m",
            b"\x1b[2J",
            b"\x1b[?1049h",
            b"\x1b]52;c;AAAA\x07",
            b"\x1b(0",
            b"\r",
            b"\n",
            b"\r\n",
            b"\b",
            b"\t",
            b"\x1b[K",
            b"\xc2\x9b31m",
            b"\xc2\x9d",
            b"\xe2\x80\xae",
            b"\x18",
            b"hello",
            b"\xe2\x82",
        ]
    ),
)


def cells(roll: LineTerminal) -> list[list[tuple[str, Style]]]:
    return [[(char, style) for text, style in line.runs for char in text] for line in roll.lines]


def fed(data: bytes, lines: int = 50) -> LineTerminal:
    roll = LineTerminal(lines)
    roll.feed(data)
    return roll


@settings(max_examples=400, deadline=None)
@given(st.lists(pieces, max_size=40).map(b"".join))
@example(b"\x1b]0;never ends" + b"x" * 9000 + b"but this is seen\n")
def test_nothing_but_text_and_colour_comes_out(data: bytes) -> None:
    for line in fed(data).lines:
        assert line.text.isprintable()
        assert sum(len(text) for text, _ in line.runs) == line.length <= CELLS_MAX
        for _, style in line.runs:
            assert not any((style.blink, style.conceal, style.link, style.meta))


@settings(max_examples=400, deadline=None)
@given(
    st.lists(pieces, max_size=30).map(b"".join),
    st.lists(st.integers(0, 200), max_size=12),
    st.integers(1, 6),
)
def test_it_does_not_matter_how_output_is_cut(data: bytes, cuts: list[int], lines: int) -> None:
    whole = fed(data, lines)
    parts = LineTerminal(lines)
    start = 0
    for cut in sorted(cuts):
        parts.feed(data[start:cut])
        start = max(start, cut)
    parts.feed(data[start:])
    assert cells(parts) == cells(whole)
    assert parts.dropped == whole.dropped
    assert [line.cut for line in parts.lines] == [line.cut for line in whole.lines]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(categories=("L", "N", "P")), max_size=9), max_size=60))
def test_plain_lines_are_kept_as_they_are(texts: list[str]) -> None:
    roll = fed("".join(text + "\r\n" for text in texts).encode(), 20)
    kept = [line.text for line in roll.lines]
    assert kept == [*texts, ""][-20:]
    assert roll.dropped == max(len(texts) + 1 - 20, 0)


def test_what_a_line_editor_does() -> None:
    def text(data: bytes) -> list[str]:
        return [line.text for line in fed(data).lines]

    assert text(b"10%\r20%\r\x1b[Kdone\n") == ["done", ""]
    assert text(b"abc\b\bX\n") == ["aXc", ""]
    assert text(b"a\tb\n") == ["a       b", ""]
    assert text(b"abcdef\r\x1b[2Kxy") == ["xy"]
    assert text(b"a\x1b[5;5Hb\x1b[2Jc\x1b]0;title\x07d\x1bPq#0\x1b\\e") == ["abcde"]
    assert text(b"\xff\xfeok\xc3") == ["\ufffd\ufffdok"]
    assert text(b"\x1b[31\nmred") == ["", "red"]
    assert text("a\u00a0b\u202ec\u2066d".encode()) == ["a bcd"]


def test_colours_are_kept() -> None:
    roll = fed(b"\x1b[1;32mgo\x1b[22;39m\x1b[91;44mx\x1b[m.\x1b[38;5;99mi\x1b[38;2;1;2;3mt")
    styles = dict(cells(roll)[0])
    assert styles["g"] == Style(color="color(2)", bold=True)
    assert styles["x"] == Style(color="color(9)", bgcolor="color(4)")
    assert styles["."] == Style()
    assert styles["i"] == Style(color="color(99)")
    assert styles["t"] == Style(color="#010203")
    assert cells(fed(b"\x1b[8;5mx"))[0][0][1] == Style()


def test_a_long_line_is_cut_and_counted() -> None:
    roll = fed(b"x" * (CELLS_MAX + 10) + b"yz\nnext\n")
    assert (roll.lines[0].length, roll.lines[0].cut) == (CELLS_MAX, 12)
    assert roll.lines[1].text == "next"


def test_characters_are_bounded_too() -> None:
    roll = LineTerminal(10_000, characters_max=5_000)
    for _ in range(300):
        roll.feed(b"z" * 99 + b"\n")
    assert sum(line.length for line in roll.lines) <= 5_000
    assert len(roll.lines) + roll.dropped == 301


def test_a_remark_stands_on_its_own_line() -> None:
    roll = fed(b"half\x1b]0;open")
    roll.note("exited with 0")
    roll.feed(b"again")
    assert [(line.text, line.note) for line in roll.lines] == [
        ("half", False),
        ("exited with 0", True),
        ("again", False),
    ]


def test_a_flood_costs_the_same_for_each_line() -> None:
    def flood(lines: int) -> None:
        assert fed(b"y\r\n" * lines, 2_000).dropped == lines + 1 - 2_000

    most = 12 * 30_000
    assert calls(partial(flood, 60_000), most * 2) < 2.1 * calls(partial(flood, 30_000), most)


def test_lines_in_one_piece_are_those_one_by_one() -> None:
    texts = ["plain", "", "\x1b[31mred", "still red", "tab\there", "caf\u00e9", "x" * 5000, "end"]
    data = [text.encode() + b"\r\n" for text in texts]
    moments = [(tick, 0x400000 + tick) for tick in range(1, len(data) + 1)]
    for first in range(len(data)):
        one_by_one, at_once = LineTerminal(5), LineTerminal(5)
        for piece, moment in zip(data[first:], moments[first:], strict=True):
            one_by_one.feed(piece, moment)
        at_once.feed_lines(b"".join(data[first:]), moments[first:])
        at_once.feed_lines(b"more\r\nand more\r\n", [(90, 1), (91, 2)])
        one_by_one.feed(b"more\r\n", (90, 1))
        one_by_one.feed(b"and more\r\n", (91, 2))
        assert at_once.dropped == one_by_one.dropped
        assert [(line.runs, line.cut, line.moment) for line in at_once.lines] == [
            (line.runs, line.cut, line.moment) for line in one_by_one.lines
        ]


def test_a_flood_of_lines_leaves_the_last_ones() -> None:
    roll = LineTerminal(100)
    numbers = range(10_000)
    data = b"".join(b"%d\r\n" % number for number in numbers)
    roll.feed(b"before\r\n", (1, 2))
    roll.feed_lines(data, [(number, 7) for number in numbers])
    assert (len(roll.lines), roll.dropped) == (100, 9_902)
    assert [line.text for line in roll.lines[:2]] == ["9901", "9902"]
    assert roll.lines[-2].moment == (9_999, 7)
    assert not roll.lines[-1].length

"""Each lesson from its first step to its last, by keys, over the guest that it opens."""

import pytest
from flowkit import SMALL, User, flow, lesson_flow, place
from kernelimages import AMD64_61, image_path
from textual.widgets import Input

from tui.lessons import LESSONS, load_lesson
from tui.lessons.panel import MOST_ROWS

Keys = tuple[str, ...]

# What a learner does at each step: keys, ":LINE" for a line of the command line, "~TEXT" typed
# into a dialog, and "@CONDITION" to wait until something is so.
KEYS: dict[str, tuple[Keys, ...]] = {
    "slow-motion": (
        ("p", "~fibonacci", "enter"),
        ("8", "b"),
        ("1", "c"),
        (".", "."),
        (".",),
        (".", "4"),
        (".", ".", "."),
        (",", "@phase post-handlers", ",", "@phase fix-up", ","),
    ),
    "not-optimised": (
        ("p", "~fibonacci", "enter"),
        ("p", "~ackermann", "enter"),
        (":go ackermann", "y"),
        ("enter",),
        ("p", "enter"),
        (":p:demo/second fibonacci+2",),
        (":-:demo/second",),
    ),
    "return-probe": (
        (":r:demo/fact factorial ret=$retval",),
        ("8", "b", "1", "c"),
        ("5", ".", ".", "."),
        ("3",),
        ("1", "f"),
        (".", ".", ".", "."),
        (".", ".", "6"),
    ),
    "maxactive": (
        (":r1:demo/one fibonacci ret=$retval:u32",),
        ("c",),
        ("8",),
        (":r14:demo/some fibonacci ret=$retval:u32",),
        (":r15:demo/all fibonacci ret=$retval:u32",),
        (":r:demo/grows fibonacci",),
    ),
    "backtraces": (
        (":r:demo/ack ackermann",),
        (":break recursion.c:21", "c"),
        ("3",),
        *(("w",),) * 5,
    ),
    "djprobe": (
        ("p", "~mix", "enter"),
        ("8", "b", "c"),
        ("y",),
        ("escape", "c", "c", "c", "c"),
        (".", ".", ".", ".", ".", "."),
        ("8", "x"),
        ("c",),
    ),
    "red-zone": (
        ("c", "7"),
        (":p:demo/red ./redzone:0x6ca",),
        ("r", "c"),
        (":go keep_nop", "y", "j"),
        ("escape", "8", "x", "r", "c"),
    ),
    "race": (
        (":explore 100",),
        ("1", "c", "7"),
        (":goto 33",),
        ("T",),
        (":goto 636", ":watch counter"),
        ("1", "c"),
        (":p counter",),
    ),
    "crash": (
        ("c",),
        ("3",),
        ("I",),
        (":origin entry",),
        ("j", "enter"),
        ("F", "1"),
        (":goto end", "I", "H", "enter", ":set $rdi = (long)&first"),
        ("c", "7"),
    ),
    "bundle": (
        ("i", "i", "i"),
        ("p", "~fibonacci", "enter", "8", "b", "1", "c"),
        (".", ".", ".", ".", "4"),
        (".", ".", ".", "2"),
        (":r:demo/ack ackermann", ":break ackermann"),
        ("8", "b", "c", "c", "c", "c", "3"),
        ("w",),
    ),
    "kernel": (
        ("p", "~mktime64", "enter"),
        (":call mktime64(1970, 1, 2, 0, 0, 0)",),
        (":r:demo/date mktime64 ret=$retval:u64", ":call mktime64(2000, 1, 1, 0, 0, 0)"),
        (":go ksys_read", "y"),
        ("escape", ":go get_kprobe", "y"),
    ),
    "your-machine": (
        (":p:demo/fib fibonacci n=%di:u32",),
        (":r:demo/back fibonacci ret=$retval:u32",),
        (":filter demo/fib n > 12",),
        ("c", "6"),
        (":copyas tracefs",),
        (":copyas bpftrace",),
        ("8",),
    ),
}


async def do(user: User, keys: Keys) -> None:
    """Do what a step asks, at the pace of somebody who looks."""
    for key in keys:
        await user.rest()
        if key.startswith("@"):
            await user.until(lambda key=key: user.holds(key[1:]), key)
        elif key.startswith(":"):
            await user.command(key[1:])
        elif key.startswith("~"):
            await user.type(key[1:])
            await user.rest()
        else:
            await user.press(key)


def lead(name: str, size: tuple[int, int], kernel: str = "") -> None:
    async def steps(user: User) -> None:
        guide = user.app.lessons.guide
        assert guide is not None
        walk = guide.walk
        for number, keys in enumerate(KEYS[name]):
            assert walk.at == number
            await do(user, keys)
            await user.until(lambda number=number: walk.at == number + 1, f"step {number + 1}")
            assert walk.right == walk.lesson.steps[number].right
        assert walk.step is None
        if user.app.seen().dialog:  # it hides the strip
            await user.press("escape")
        await user.shows(f"That was lesson {walk.lesson.number}")

    lesson_flow(steps, load_lesson(name), size=size, kernel=kernel)


def test_every_lesson_is_walked_through() -> None:
    assert tuple(KEYS) == LESSONS
    for name in LESSONS:
        assert len(KEYS[name]) == len(load_lesson(name).steps), name


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LESSONS if name != "kernel"])
def test_a_lesson_is_done_by_keys(name: str) -> None:
    lead(name, SMALL)


@pytest.mark.slow
def test_the_lesson_about_a_kernel() -> None:
    lead("kernel", SMALL, str(image_path(AMD64_61)))


def test_the_strip_and_its_keys() -> None:
    """Hint, next, back, fold, close: each by one key behind `;`, and the panes keep theirs."""

    async def steps(user: User) -> None:
        guide = user.app.lessons.guide
        assert guide is not None
        panel, walk = guide.panel, guide.walk
        await user.shows("▶ Press p, type fibonacci, press Enter.")
        assert user.focus == "code"
        rows = panel.size.height
        assert rows <= MOST_ROWS
        below = user.panes.code.region.y
        await user.press(";", "h")
        assert panel.hint
        assert user.focus == "code"
        await user.shows("opens a dialog that completes names")
        await user.press(";", "n")
        await user.until(lambda: walk.at == 1)
        await user.shows("2/8")
        assert not panel.hint
        await user.press(";", "b")
        await user.until(lambda: walk.at == 0)
        assert (panel.size.height, user.panes.code.region.y) == (rows, below)
        await user.press(";", "f")
        await user.until(lambda: panel.size.height == 1)
        await user.until(lambda: user.panes.code.region.y == below - rows + 1)
        await user.press(";", "f", ";", "q")
        await user.until(lambda: not panel.display)
        await user.press("i")
        await user.until(lambda: user.view.location == "_start+0x2")
        await user.press(";")
        await user.until(lambda: panel.display and user.app.focused is panel)
        await user.press("escape")
        assert user.focus == "code"
        await user.command("learn next")
        await user.until(lambda: walk.at == 1)
        await user.command("learn again")
        await user.until(lambda: walk.at == 0)
        await user.command("learn hnt")
        await user.says("hnt: no such lesson")
        await user.command("learn")
        await user.shows("12 From here to your own machine")
        await user.press("j", "k", "j")
        await user.shows("When a jump stands in place")
        await user.press("escape")
        await user.press("colon")
        await user.type("learn bac")
        await user.press("tab")
        line = user.app.screen.query_one("MessageLine Input", Input)
        await user.until(lambda: line.value in ("learn back", "learn backtraces"))
        await user.press("escape")

    lesson_flow(steps, load_lesson("slow-motion"), size=SMALL)


def test_what_is_done_already_waits() -> None:
    async def steps(user: User) -> None:
        guide = user.app.lessons.guide
        assert guide is not None
        await user.press(";", "n")
        await place(user, "p:demo/fib fibonacci")
        await user.press(";", "b")
        await user.shows("That is so already")
        assert guide.walk.at == 0
        await user.press(";", "n")
        await user.shows("The probe is placed")

    lesson_flow(steps, load_lesson("slow-motion"), size=SMALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "rows"), [((120, 40), 5), ((200, 50), 5), ((40, 16), 1), ((20, 5), 1)]
)
def test_the_strip_at_other_sizes(size: tuple[int, int], rows: int) -> None:
    async def steps(user: User) -> None:
        guide = user.app.lessons.guide
        assert guide is not None
        await user.until(lambda: guide.panel.size.height > 0)
        assert guide.panel.size.height <= max(rows + 1, 1)
        await user.press("i")
        await user.until(lambda: user.view.location == "_start+0x2")

    lesson_flow(steps, load_lesson("slow-motion"), size=size)


@pytest.mark.slow
def test_another_lesson_ends_this_one() -> None:
    async def steps(user: User) -> None:
        for _ in range(8):
            await user.press(";", "n")
        await user.shows("opens lesson 2")
        await user.press(";", "n")
        await user.until(lambda: user.app.lessons.wanted is not None)

    app = lesson_flow(steps, load_lesson("slow-motion"), size=SMALL)
    assert app.lessons.wanted is not None
    assert app.lessons.wanted.name == "not-optimised"


def test_without_a_lesson() -> None:
    async def steps(user: User) -> None:
        await user.press(";")
        await user.says("no lesson is open")
        await user.command("learn hint")
        await user.says("hint: no such lesson")
        await user.command("explore none")
        await user.says("explore takes a number")
        await user.command("learn 3")
        await user.until(lambda: user.app.lessons.wanted is not None)

    assert flow(steps).lessons.wanted is not None

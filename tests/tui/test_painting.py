"""What is painted in pieces is what one whole picture would be, cell by cell.

The steps of a tour are keys and `~TEXT` (put where text is typed, `_` for a blank), and
`=COLUMNSxROWS` (another size of the terminal), `^WHAT,X,Y` (the mouse, at parts of the screen).
`KPROBE_TUI_KEYS=N` takes N random steps at each size and guest instead of 25, `KPROBE_TUI_SEED`
has others taken.
"""

import asyncio
import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import pyte
import pytest
from controlkit import sample
from emulated import Emulator, cells, differences, painted_at_the_worst_moment
from guestrun import run
from kernelimages import UML_61, image_path
from keys import Rest, press
from randomkeys import random_steps
from sysroot import CHECKOUT
from textual._xterm_parser import XTermParser
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import Resize
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input
from warmed import SAME_CODE

from engine.session import GuestConfig
from engine.session.protocol.views import RunState
from tui.app import KprobeApp
from tui.screens.palette import PaletteScreen
from tui.widgets.chords import Chords

SIZES = ((80, 24), (100, 30), (120, 40), (200, 50))
README = "p ~fib enter c 6 enter 8 b r c . . . . P P 1 y escape i o s f I O < F R"
DIALOGS = (
    "p escape c",
    "p ~fib enter c",
    "y escape c s n",
    "y enter c",
    "question_mark escape c",
    "question_mark slash ~step enter j escape escape",
    "ctrl+p escape c",
    "y ctrl+p escape escape",
    "ctrl+p ~no_such_thing escape s",
    "ctrl+p ~pane_alone down enter s z",
    "colon escape n",
    "colon ~b_ackermann enter c s n",
    "g ~fibonacci enter b c c",
    "p ~p_fibonacci+1 escape escape i",
    "t ~* enter c 9 a z z",
    "slash ~call enter n N escape",
)
"""Each dialog and prompt, left in each way, and what steps of the guest do behind it."""
SELECTING = "2 J J J j J J K K K K pagedown J J home end J J slash ~r enter 5 J J j"
_CLICK = "^35;{at}M^0;{at}M^0;{at}m"
_MOUSE = {
    "click": _CLICK,
    "double": _CLICK + _CLICK,
    "wheel": "^65;{at}M" * 3,
    "back": "^64;{at}M" * 3,
    "drag": "^0;{at}M^32;{there}M^32;{at}M^32;{there}M^0;{there}m",
}
"""Sequences of SGR mouse mode: button, column, row; M pressed or moved, m released."""
_NAMES = {".": "full_stop", "<": "less_than_sign", "{": "left_curly_bracket"}
PANES = (
    "2 j 3 k j 4 j 5 j 6 G k 7 k 8 j 9 j 0 T j C k V j 1 j G k z z "
    "right_square_bracket left_square_bracket ctrl+right ctrl+up"
)


@pytest.fixture
def single() -> GuestConfig:
    """One thread, recorded as it goes, as the command does."""
    return GuestConfig(sample("x86_64", "recursion"), history=True)


@pytest.fixture
def other() -> GuestConfig:
    """Objects of another architecture."""
    return GuestConfig(sample("aarch64", "structs"), history=True)


@pytest.fixture
def threads() -> GuestConfig:
    """Several threads."""
    return GuestConfig(sample("x86_64", "race"), history=True)


@pytest.fixture
def kernel() -> GuestConfig:
    """A kernel image, whose functions are called."""
    return GuestConfig(str(image_path(UML_61)), called=True)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> GuestConfig:
    """A core file and its program."""
    folder = tmp_path_factory.mktemp("core")
    program = sample("x86_64", "crash")
    run("--batch", "-ex", "run", "-ex", "gcore core", program, cwd=folder)
    return GuestConfig(program, core=str(folder / "core"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> GuestConfig:
    """A recorded run from a file."""
    folder = tmp_path_factory.mktemp("recording")
    run("record", "-o", "run.rec", sample("x86_64", "words"), cwd=folder)
    path = str(folder / "run.rec")
    return GuestConfig(path, recording=path, history=True)


class Tour:
    """Goes through an interface, and looks at each step at what is painted."""

    def __init__(self, app: KprobeApp, rest: Rest) -> None:
        self.emulator = Emulator(app)
        self.steps: list[str] = []
        self._app = app
        self._rest = rest

    def _quiet(self) -> bool:
        """True if nothing is under way: keys, commands, views, and a guest that runs."""
        app = self._app
        waits = app.view.state is RunState.WAITING
        return (
            bool(app.view.registers or app.view.state is RunState.ENDED)
            and not app.key_queue.typing
            and not app._message_queue.qsize()
            and not any(_awaits_key(widget) for widget in app.screen.query("*"))
            and app.view.state is not RunState.RUNNING
            and (self._rest.told if waits else self._rest.at_rest)(app.bridge._worker)
            and all(work.is_finished for work in app.workers)
        )

    async def take(self, step: str) -> None:
        """One step, and what it paints."""
        self.steps.append(step)
        app = self._app
        if step.startswith("~"):
            if isinstance(app.screen, PaletteScreen):
                await press(app, ["space" if each == "_" else each for each in step[1:]])
            elif isinstance(app.focused, Input):
                app.focused.value = step[1:].replace("_", " ")
        elif step.startswith("="):
            columns, _, rows = step[1:].partition("x")
            self._resize(Size(int(columns), int(rows)))
        elif step.startswith("^") and step != "^":
            self._point(*step[1:].split(","))
        else:
            await press(app, [_NAMES.get(step, step)])
        await self.look()

    def _point(self, what: str, x: str, y: str) -> None:
        """Do something with the mouse, as a terminal tells it."""
        driver, size = self._app._driver, self._app.size
        assert driver is not None
        at = f"{int(float(x) * size.width) + 1};{int(float(y) * size.height) + 1}"
        told = _MOUSE[what].format(at=at, there=f"{size.width // 2};{size.height // 2}")
        for message in XTermParser().feed(told.replace("^", "\x1b[<")):
            driver.process_message(message)

    def _resize(self, size: Size) -> None:
        """The terminal is another size now."""
        driver = self._app._driver
        assert isinstance(driver, HeadlessDriver)
        driver._size = size
        self._app.post_message(Resize(size, size))

    async def look(self) -> None:
        """Hold what is shown against a whole picture."""
        wrong = await self.emulator.wrong(self._quiet)
        assert not wrong, f"after {' '.join(self.steps)}:\n{wrong}"

    async def lay_out(self) -> None:
        """Hold what is shown against what is shown once all widgets know their sizes."""
        self._app.controls.slow_motion.stop()
        wrong = await self.emulator.changed_by_layout(self._quiet)
        assert not wrong, f"widgets did not know after {' '.join(self.steps)}:\n{wrong}"


def _awaits_key(widget: Widget) -> bool:
    """True while a key may begin a chord, and does something alone if none follows."""
    chords = getattr(widget, "chords", None)
    return isinstance(chords, Chords) and chords.keys.pending in chords.keys.alone


def tour(
    monkeypatch: pytest.MonkeyPatch,
    config: GuestConfig,
    size: tuple[int, int],
    parts: Iterable[Sequence[str]],
    *,
    worst: bool = False,
) -> int:
    """Open an interface and go through it; how many steps were looked at.

    Args:
        monkeypatch: undone at the end of the test.
        config: the guest.
        size: of the terminal at first.
        parts: steps, between which all widgets are told of their sizes.
        worst: paint at the worst moments, too.
    """
    app = KprobeApp(config)
    rest = Rest(monkeypatch)

    async def go() -> int:
        async with app.run_test(size=size):
            going = Tour(app, rest)
            await going.look()
            with painted_at_the_worst_moment() if worst else nullcontext():
                for steps in parts:
                    for step in steps:
                        await going.take(step)
                        if app._exit:
                            return len(going.steps)
                    await going.lay_out()
        return len(going.steps)

    return asyncio.run(go())


def at_sizes(fast: int = 0) -> list[Any]:
    """Parameters for all sizes, of which so many are fast ones."""
    order = sorted(SIZES, key=lambda size: size != (120, 40))
    return [
        pytest.param(*size, id=f"{size[0]}x{size[1]}", marks=[] if n < fast else pytest.mark.slow)
        for n, size in enumerate(order)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), at_sizes(fast=1))
def test_a_dialog_and_the_first_layout_with_a_history(
    monkeypatch: pytest.MonkeyPatch, single: GuestConfig, columns: int, rows: int
) -> None:
    parts = [
        ["p", "escape", "c"],
        "I s n = i".replace("=", f"={columns + 7}x{rows}").split(),
    ]
    assert tour(monkeypatch, single, (columns, rows), parts, worst=True) == 8


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), at_sizes())
def test_the_first_five_minutes(
    monkeypatch: pytest.MonkeyPatch, single: GuestConfig, columns: int, rows: int
) -> None:
    tour(monkeypatch, single, (columns, rows), [README.split()], worst=rows < 40)


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), at_sizes())
def test_dialogs(
    monkeypatch: pytest.MonkeyPatch, single: GuestConfig, columns: int, rows: int
) -> None:
    parts = [["r", *steps.split()] for steps in DIALOGS]
    tour(monkeypatch, single, (columns, rows), parts, worst=True)


GUESTS = ("threads", "core", "recording", "kernel")


@pytest.mark.slow
@pytest.mark.parametrize("guest", GUESTS)
def test_panes(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, guest: str
) -> None:
    config = request.getfixturevalue(guest)
    back = "I R {" if guest == "recording" else "y escape"
    parts = [PANES.split(), ["=200x50", *PANES.split()], ["=80x24", *PANES.split(), *back.split()]]
    tour(monkeypatch, config, (120, 40), parts, worst=True)


@pytest.mark.slow
def test_selected_rows_are_painted_as_they_come_and_go(
    monkeypatch: pytest.MonkeyPatch, single: GuestConfig
) -> None:
    steps = [
        "2",
        "J",
        "J",
        "J",
        "j",
        "J",
        "J",
        "K",
        "K",
        "K",
        "K",
        "pagedown",
        "J",
        "J",
        "home",
        "end",
        "J",
        "J",
        "slash",
        "~r",
        "enter",
        "5",
        "J",
        "J",
        "j",
    ]
    tour(monkeypatch, single, (120, 40), [steps])


@pytest.mark.slow
def test_a_row_that_is_painted_before_its_layout_stays_in_its_place(
    monkeypatch: pytest.MonkeyPatch, other: GuestConfig
) -> None:
    """Random keys have found it: the line of input went on in the row of messages."""
    steps = "=200x50 z 7 =100x30 5 f7 z"
    tour(monkeypatch, other, (80, 24), [steps.split()], worst=True)


@pytest.mark.slow
@pytest.mark.parametrize("guest", ["single", "other", *GUESTS])
@pytest.mark.parametrize(("columns", "rows"), at_sizes())
def test_random_keys(
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    columns: int,
    rows: int,
    guest: str,
) -> None:
    numbers = random.Random(f"{os.environ.get('KPROBE_TUI_SEED', '0')} {columns} {guest}")
    config = request.getfixturevalue(guest)
    left = int(os.environ.get("KPROBE_TUI_KEYS", "25"))
    steps = random_steps(numbers)
    while left:  # again where the palette was told to leave
        pressed = [list(islice(steps, min(25, left - n))) for n in range(0, left, 25)]
        left -= tour(monkeypatch, config, (columns, rows), pressed, worst=True)


class Line:
    """The command in a pseudo-terminal, and what that shows."""

    def __init__(self, folder: Path, columns: int, rows: int) -> None:
        self.terminal = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.terminal)
        here = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
        own = {"KPROBE_TUI_CONFIG": f"{folder}/config", "KPROBE_TUI_STATE": f"{folder}/state"}
        looks = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._line, end = os.openpty()
        self._winsize(columns, rows)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tui", sample("x86_64", "recursion")],
            cwd=CHECKOUT,
            env={**here, **own, **looks, **SAME_CODE},
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(end, termios.TIOCSCTTY, 0),
        )
        os.close(end)

    def _winsize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._line, termios.TIOCSWINSZ, struct.pack("=4H", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """Make it another size."""
        self.terminal.resize(rows, columns)
        self._winsize(columns, rows)
        self.rest()

    def rest(self, wanted: str = "", seconds: float = 120) -> None:
        """Show what is painted until a text is there and nothing has come for a while.

        Raises:
            AssertionError: it does not come.
        """
        end = monotonic() + seconds
        while select.select([self._line], [], [], 0.3)[0] or wanted not in self.text:
            assert monotonic() < end, f"no {wanted!r} in:\n{self.text}"
            if select.select([self._line], [], [], 0)[0]:
                self._stream.feed(os.read(self._line, 1 << 16))

    def type(self, text: str, wanted: str = "") -> None:
        """Type something and look."""
        os.write(self._line, text.encode())
        self.rest(wanted)

    @property
    def text(self) -> str:
        """What stands there."""
        return "\n".join(self.terminal.display)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        os.close(self._line)


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), at_sizes(fast=1))
def test_a_terminal_shows_after_keys_what_it_shows_after_a_resize(
    tmp_path: Path, columns: int, rows: int
) -> None:
    line = Line(tmp_path, columns, rows)
    try:
        line.rest("ready: loaded")
        line.type("p", "Enter probe")
        line.type("\x1b")
        line.type("c", "exited with 0")
        if rows > 24:
            assert "now 100%" in line.text
        line.type("p", "Enter probe")
        line.type("fib", "fibonacci   50 bytes")
        line.type("\r", "placed p")
        line.type("r", "started afresh")
        line.type("c", "p_fibonacci_0(n=")
        shown = cells(line.terminal)
        line.resize(columns - 1, rows)
        line.resize(columns, rows)
        wrong = differences(shown, cells(line.terminal))
        assert not wrong, wrong
    finally:
        line.close()

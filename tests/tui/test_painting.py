"""What is painted in pieces is what one whole picture would be, cell by cell.

The steps of a tour are keys and `~TEXT` (put where text is typed, `_` for a blank), and
`=COLUMNSxROWS` (another size of the terminal). `KPROBE_TUI_KEYS=N` presses N random keys at each
size instead of 50, `KPROBE_TUI_SEED` has others pressed.
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
from collections.abc import Iterable, Iterator, Sequence
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
from sysroot import CHECKOUT
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import Resize
from textual.geometry import Size
from textual.widgets import Input
from warmed import SAME_CODE

from engine.session import GuestConfig
from engine.session.protocol.views import RunState
from tui.app import KprobeApp
from tui.keymap import ACTIONS
from tui.screens.palette import PaletteScreen

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
_LEAVING = ("q", "ctrl+z", "ctrl+c", "ctrl+q")
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
        else:
            await press(app, [_NAMES.get(step, step)])
        await self.look()

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
        wrong = await self.emulator.changed_by_layout(self._quiet)
        assert not wrong, f"widgets did not know after {' '.join(self.steps)}:\n{wrong}"


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


def random_steps(numbers: random.Random) -> Iterator[str]:
    """Keys of all kinds, text where it is typed, other sizes; never the keys that leave."""
    keys = [key for action in ACTIONS for key in action.keys.split(",") if key not in _LEAVING]
    lists = [
        "j",
        "k",
        "G",
        "home",
        "end",
        "pagedown",
        "pageup",
        "space",
        "enter",
        "escape",
        "h",
        "l",
        "J",
        "K",
        "Y",
        "slash",
        "&",
        "a",
        "v",
        "tab",
    ]
    texts = [
        "~fib",
        "~ackermann",
        "~p:g/e_main",
        "~print+1",
        "~10%",
        "~n==3",
        "~0x4001c0",
        "~rax",
        "~no_such_thing",
    ]
    while True:
        kind = numbers.random()
        if kind < 0.03:
            yield "={}x{}".format(*numbers.choice((*SIZES, (60, 18), (181, 36))))
        elif kind < 0.15:
            yield numbers.choice("1234567890TCV")
        elif kind < 0.45:
            yield numbers.choice(lists)
        elif kind < 0.55:
            yield numbers.choice(texts)
        elif kind < 0.65:
            yield numbers.choice(("escape", "enter"))
        else:
            yield numbers.choice(keys)


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
@pytest.mark.parametrize(("columns", "rows"), at_sizes())
def test_random_keys(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, columns: int, rows: int
) -> None:
    numbers = random.Random(f"{os.environ.get('KPROBE_TUI_SEED', '0')} {columns}")
    config = request.getfixturevalue(numbers.choice(("single", "threads")))
    steps = random_steps(numbers)
    parts = int(os.environ.get("KPROBE_TUI_KEYS", "50")) // 25
    pressed = [list(islice(steps, 25)) for _ in range(parts)]
    assert tour(monkeypatch, config, (columns, rows), pressed, worst=True)


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
        line.type("p", "Enter place")
        line.type("\x1b")
        line.type("c", "exited with 0")
        if rows > 24:
            assert "now 100%" in line.text
        line.type("p", "Enter place")
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

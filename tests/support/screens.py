"""Pictures of the interface as text: what stands in each cell, and how it looks.

A picture is compared with a file of `tests/data/snapshots`. `KPROBE_TUI_SNAPSHOTS=write` writes
the files instead; look at the difference before it is committed.
"""

import asyncio
import difflib
import os
from collections.abc import Callable, Iterator
from itertools import groupby
from time import monotonic
from typing import Any

import pytest
from rich.console import RenderableType
from rich.style import Style
from sysroot import CHECKOUT
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

FOLDER = CHECKOUT / "tests" / "data" / "snapshots"
_WRITE = os.environ.get("KPROBE_TUI_SNAPSHOTS") == "write"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def picture(app: App[Any]) -> str:
    """The screen: its text, then the runs of looks row by row, then what each look is."""
    width, height = app.size
    rows = list(_rows(app))
    looks: dict[str, str] = {}
    for row in rows:
        for _, look in row:
            if look not in looks:
                number = len(looks)
                prefix = _LETTERS[number // len(_LETTERS) - 1] if number >= len(_LETTERS) else ""
                looks[look] = prefix + _LETTERS[number % len(_LETTERS)]
    out = [f"{width}x{height}"]
    out += ["|" + "".join(character for character, _ in row).rstrip() for row in rows]
    for number, row in enumerate(rows):
        runs = (
            (looks[look], sum(1 for _ in cells)) for look, cells in groupby(row, lambda c: c[1])
        )
        out.append(f"{number:>2} " + " ".join(f"{letter}{count}" for letter, count in runs))
    out += [f"{letter} = {look}" for look, letter in looks.items()]
    return "\n".join(out) + "\n"


def _rows(app: App[Any]) -> Iterator[list[tuple[str, str]]]:
    """The cells of the screen."""
    for strip in app.screen._compositor.render_strips(app.size):
        yield [
            (character, _look(style)) for text, style, _ in strip._segments for character in text
        ]


def _look(style: Style | None) -> str:
    if style is None:
        return "none"
    flags = ("bold", "dim", "italic", "underline", "reverse", "strike")
    words = [flag for flag in flags if getattr(style, flag)]
    ink = style.color.name if style.color else "default"
    paper = style.bgcolor.name if style.bgcolor else "default"
    return " ".join([*words, ink, "on", paper])


class Paints:
    """Counts how often an app has painted."""

    def __init__(self, app: App[Any]) -> None:
        self.count = 0
        self._display = app._display
        setattr(app, "_display", self._counted)  # noqa: B010 - a method of this one app

    def _counted(self, screen: Screen[Any], shown: RenderableType | None) -> None:
        self.count += 1
        self._display(screen, shown)


async def settle(
    pilot: Pilot[Any],
    paints: Paints,
    until: Callable[[], bool] = lambda: True,
    still: float = 0.07,
    patience: float = 120,
) -> None:
    """Wait until something is true and nothing has been painted for some seconds."""
    app, end = pilot.app, monotonic() + patience
    for line in app.screen.query(Input):
        line.cursor_blink = False
    last, since = -1, monotonic()
    while monotonic() < end:
        await asyncio.sleep(0.01)
        app.screen._on_timer_update()
        drawn = app.screen._compositor.size == app.size  # a screen that opens is not, at first
        if paints.count != last or not drawn or not until():
            last, since = paints.count, monotonic()
        elif monotonic() - since >= still:
            await pilot._wait_for_screen()  # a slow machine is not a screen at rest
            app.screen._on_timer_update()
            if paints.count == last and until():
                return
    raise AssertionError(f"the screen does not come to rest:\n{picture(app)}")


def compare(name: str, got: str) -> None:
    """Hold a picture against its file.

    Raises:
        AssertionError: they differ.
    """
    file = FOLDER / f"{name}.txt"
    if _WRITE:
        FOLDER.mkdir(parents=True, exist_ok=True)
        file.write_text(got, encoding="utf-8")
        return
    want = file.read_text(encoding="utf-8") if file.exists() else ""
    if got != want:
        lines = difflib.unified_diff(want.split("\n"), got.split("\n"), name, "now", lineterm="")
        pytest.fail("\n".join(lines), pytrace=False)

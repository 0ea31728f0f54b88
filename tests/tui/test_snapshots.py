"""Each screen at the sizes it is designed for, cell by cell, from runs of the shipped samples.

The steps of a scene are keys and
`~TEXT` (typed, `_` for a blank), `@STATE` (wait for it), `=NAME` (a picture).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from keys import Rest, press
from screens import Paints, compare, picture, settle
from sysroot import CHECKOUT
from textual.app import App
from textual.scrollbar import ScrollBar, ScrollBarRender

from engine.session import GuestConfig
from engine.session.protocol.views import RunState
from tui.app import KprobeApp
from tui.samples import Picker
from tui.settings import Settings
from tui.widgets.bars import StatusBar

SMALL, MIDDLE, LARGE, TINY = (80, 24), (120, 40), (200, 60), (20, 5)


@dataclass(frozen=True)
class Scene:
    """Keys, and when to look."""

    name: str
    steps: str
    sizes: tuple[tuple[int, int], ...] = (SMALL, MIDDLE)
    guest: str = "x86_64/recursion"
    args: tuple[str, ...] = ()
    settings: Settings | None = None
    environment: str = ""


SCENES = (
    Scene(
        "probe",
        "=ready p =place-empty ~f =place-names escape p ~p_fibonacci+1 =place-wrong escape "
        "p ~p:demo/fib_fibonacci_n=%di:u32 =place-good enter =placed 8 =probes "
        "1 c @ended =ended 7 =output 6 =events",
    ),
    Scene(
        "probe-arm",
        "=ready p ~fibonacci enter c @ended =ended",
        guest="aarch64/recursion",
        sizes=(LARGE,),
    ),
    Scene(
        "hit",
        "p ~fibonacci enter 8 b c @stopped 1 =stopped full_stop =trap full_stop full_stop "
        "=slot 4 =machinery full_stop full_stop full_stop full_stop =done "
        "3 =backtrace 5 =memory m =bytes m =words m =strings m =map 2 =registers z =zoomed",
    ),
    Scene(
        "hit-arm",
        "p ~fibonacci enter 8 b c @stopped 1 =stopped full_stop full_stop full_stop 4 =slot",
        (SMALL,),
        guest="aarch64/recursion",
    ),
    Scene(
        "panels",
        "y =why escape question_mark =handbook question_mark =help escape "
        "ctrl+p =palette escape colon ~br =command",
    ),
    Scene(
        "threads",
        "colon ~break_think enter c @stopped c @stopped T =running j enter =chosen L i =alone",
        guest="x86_64/race",
    ),
    Scene("killed", "c @ended =ended 3 =backtrace", guest="x86_64/crash"),
    Scene("waiting", "c @waiting ~hello =typed escape =commands", guest="x86_64/lines"),
    Scene(
        "light", "b y =why escape c @ended =ended", (MIDDLE,), settings=Settings("textual-light")
    ),
    Scene("ansi", "b c @ended =ended", (MIDDLE,), settings=Settings("ansi-light")),
    Scene("ascii", "b y =why escape c @ended =ended", (SMALL,), settings=Settings(ascii=True)),
    Scene("no-color", "b c @ended =ended", (SMALL,), environment="NO_COLOR"),
    Scene(
        "graph",
        "t ~* enter c @ended 9 =graph a =sums a z =zoomed",
        guest="x86_64/recursion",
    ),
    Scene(
        "histogram",
        "colon ~p:demo/fib_fibonacci_n=%di:u32 enter colon ~hist_fib_n.log2 enter c @ended "
        "0 =histogram 8 =probes",
    ),
    Scene(
        "running", "c @running =running 2 z =registers", guest="x86_64/loop", args=("2000000000",)
    ),
    Scene(
        "variables",
        "colon ~b_ackermann enter c @stopped 3 =arguments v =variables z =zoomed",
    ),
    Scene(
        "object",
        "colon ~b_transfer enter c @stopped colon ~examine_payment enter =unzoomed z =parts",
        guest="x86_64/structs",
    ),
    Scene("tiny", "=ready i =stepped 2 =registers", (TINY,)),
    Scene("large", "p ~fibonacci enter c @ended =ended", (LARGE,)),
)


def _is(app: KprobeApp, state: str, quiet: Callable[[], bool]) -> bool:
    return app.view.state.value == state and quiet()


async def act(
    app: App[Any], scene: Scene, size: tuple[int, int], quiet: Callable[[], bool]
) -> dict[str, str]:
    """The scene's pictures by name."""
    pictures: dict[str, str] = {}
    paints = Paints(app)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for step in scene.steps.split():
            what, rest = step[0], step[1:]
            if what == "=" and rest:
                await settle(pilot, paints, quiet)
                pictures[rest] = picture(app)
            elif what == "@":
                assert isinstance(app, KprobeApp)
                await settle(pilot, paints, partial(_is, app, rest, quiet))
            else:
                await press(app, rest.replace("_", " ") if what == "~" else [step])
                await settle(pilot, paints, quiet, still=0.03)
    return pictures


@pytest.fixture(autouse=True)
def usual_scroll_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScrollBar, "renderer", ScrollBarRender)  # an app changes it for all


@pytest.mark.parametrize(
    ("scene", "size"),
    [
        pytest.param(
            scene,
            size,
            id=f"{scene.name}-{size[0]}x{size[1]}",
            marks=[] if size == scene.sizes[0] else pytest.mark.slow,
        )
        for scene in SCENES
        for size in scene.sizes
    ],
)
def test_screens(scene: Scene, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)  # the guest's stack holds its path as typed
    monkeypatch.delenv("NO_COLOR", raising=False)
    if scene.environment:
        monkeypatch.setenv(scene.environment, "1")
    # How many events a second there were is a matter of the host's clock.
    monkeypatch.setattr("tui.panes.events.sparkline", lambda *_: "")
    # So is how far a guest that runs on and on has come.
    parts = StatusBar._parts

    def steady(bar: StatusBar) -> list[tuple[int, str, str]]:
        running = bar._view.state is RunState.RUNNING
        return [part for part in parts(bar) if not running or not part[1].startswith("t=")]

    monkeypatch.setattr(StatusBar, "_parts", steady)
    # Below a root of its own: the paths shown are the same wherever the checkout is.
    config = GuestConfig(f"samples/bin/{scene.guest}", scene.args, root=str(CHECKOUT))
    rest = Rest(monkeypatch)
    app = KprobeApp(config, settings=scene.settings)

    def quiet() -> bool:
        # The engine waits inside a call, or runs on and on.
        busy = app.view.state in (RunState.WAITING, RunState.RUNNING) and rest.told(
            app.bridge._worker
        )
        at_rest = busy or rest.at_rest(app.bridge._worker)
        return at_rest and all(work.is_finished for work in app.workers)

    pictures = asyncio.run(act(app, scene, size, quiet))
    for name, got in pictures.items():
        compare(f"{scene.name}-{name}-{size[0]}x{size[1]}", got)


@pytest.mark.parametrize("size", [SMALL, MIDDLE, TINY])
def test_the_picker(size: tuple[int, int]) -> None:
    pictures = asyncio.run(act(Picker(), Scene("picker", "j =samples"), size, lambda: True))
    compare(f"picker-{size[0]}x{size[1]}", pictures["samples"])

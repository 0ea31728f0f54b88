"""Panes, sizes, help and dialogs by keys."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
from controlkit import sample
from flowkit import LARGE, SMALL, User, flow, place
from textual.events import MouseMove

from engine.session.protocol.views import RunState
from tui.layout import BARS
from tui.panes.registry import PANES
from tui.screens.help import HelpScreen


def _is_seen(user: User, pane: str) -> bool:
    return user.panes[pane].region.area > 0


@pytest.mark.parametrize("size", [SMALL, LARGE, (20, 5)])
def test_panes_by_number_tab_brackets_and_zoom(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        assert len({spec.key for spec in PANES}) == len(PANES)
        for spec in PANES:
            await user.press(spec.key)
            assert user.focus == spec.id
            await user.until(partial(_is_seen, user, spec.id))
        await user.press("right_square_bracket")
        assert user.focus == "events"
        await user.press("left_square_bracket")
        assert user.focus == PANES[-1].id
        await user.press("z")

        def shown() -> list[str]:
            return [spec.id for spec in PANES if user.panes[spec.id].region.area]

        await user.until(lambda: shown() == [PANES[-1].id], "one pane alone")
        await user.press("z", "1")
        await user.press("tab")
        await user.press("shift+tab")
        assert user.focus == "code"

    flow(steps, size=size)


async def drag(user: User, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Press the mouse's button, move it, let go."""
    pilot = user.pilot
    await pilot.mouse_down(offset=start)
    for at in (start, end):
        await pilot._post_mouse_events([MouseMove], offset=at, button=1)
    await pilot.mouse_up(offset=end)


def test_bars_are_dragged_by_mouse_and_stay_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPROBE_TUI_STATE", str(tmp_path))
    file = tmp_path / "layout.json"

    def edges(user: User) -> tuple[int, int]:
        return user.panes.code.region.width, user.panes.events.region.y

    async def first(user: User) -> None:
        width, height = edges(user)
        await drag(user, (width, 8), (width - 13, 8))
        await user.until(lambda: edges(user) == (width - 13, height), "a bar to the left")
        assert user.panes.registers.region.x == width - 13
        await drag(user, (30, height), (30, height - 5))
        await user.until(lambda: edges(user) == (width - 13, height - 5), "a bar upwards")
        await drag(user, (10, 5), (40, 5))  # within a pane nothing is moved
        await drag(user, (width - 13, 8), (0, 8))
        await user.until(lambda: edges(user)[0] < width - 13, "to the end")
        assert edges(user)[0] >= 5
        await drag(user, (edges(user)[0], 8), (width - 13, 8))
        await user.until(lambda: edges(user)[0] == width - 13, "and back")
        seen.append(edges(user))

    async def second(user: User) -> None:
        assert edges(user) == seen[0]
        assert not user.said

    async def damaged(user: User) -> None:
        await user.says("layout.json: it is damaged; panes are as at first")
        assert edges(user)[0] > seen[0][0]
        await user.press("j")
        assert not user.said

    seen: list[tuple[int, int]] = []
    flow(first, fresh=False)
    assert file.is_file()
    flow(second, fresh=False)
    file.write_text('{"columns": ')
    flow(damaged, fresh=False)
    assert file.read_text() == "{}"


@pytest.mark.slow
def test_a_terminal_that_becomes_tiny_and_large_again() -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/fib fibonacci")
        for size in ((20, 5), (1, 1), (120, 40), (20, 5), (80, 24)):
            await user.pilot.resize_terminal(*size)
            plan = user.app.body.choice.plan(size[0], max(size[1] - BARS, 1))
            await user.until(
                lambda wanted=set(plan.shown): (
                    {s.id for s in PANES if user.panes[s.id].display} == wanted
                ),
                f"the panes of {size}",
            )
            await user.press("p", "escape", "question_mark", "escape", "colon", "escape")
            await user.press("y", "escape", "slash", "escape", "6", "1")
        await user.press("c")
        await user.state(RunState.ENDED)
        assert user.view.events > 20

    flow(steps)


def test_help_is_of_the_focused_pane() -> None:
    async def steps(user: User) -> None:
        for pane, words in (("1", "follow the branch"), ("8", "Sign, kind"), ("2", "set the reg")):
            await user.press(pane, "question_mark", "question_mark")
            assert isinstance(user.app.screen, HelpScreen)
            await user.shows(words)
            await user.press("escape")
            assert len(user.app.screen_stack) == 1

    flow(steps)


def test_a_stripped_program(tmp_path: Path) -> None:
    strip = shutil.which("strip")
    if strip is None:
        pytest.skip("no strip")
    program = tmp_path / "stripped"
    shutil.copy(sample("x86_64", "recursion"), program)
    subprocess.run([strip, "-s", str(program)], check=True)

    async def steps(user: User) -> None:
        await user.press("p")
        await user.choices("0x")
        await user.press("enter")
        await user.until(lambda: user.probes)
        await user.press("j", "b", "y", "escape", "c")
        await user.until(lambda: user.view.reason.startswith("breakpoint"))
        await user.press("c")
        await user.state(RunState.ENDED)
        assert user.view.events == 1
        await user.press("7")
        await user.shows("fibonacci(15) = 610")

    flow(steps, guest=str(program))


def test_a_dialog_that_is_left_while_names_are_looked_up() -> None:
    async def steps(user: User) -> None:
        for _ in range(5):
            await user.press("p", "f", "escape")
            await user.press("p", *"p main x=", "escape", "j")
        await user.until(lambda: all(work.is_finished for work in user.app.workers))
        assert len(user.app.screen_stack) == 1

    flow(steps)


def test_keys_wait_for_the_dialog_that_a_key_opens() -> None:
    async def steps(user: User) -> None:
        here = user.code.cursor
        await user.press(
            *"pjjj", "escape", *"pmain", "enter", "colon", *"b fibonacci", "enter", "j"
        )
        await user.until(lambda: len(user.probes) == 2)
        assert [probe.kind for probe in user.probes] == ["p", "b"]
        assert user.code.cursor != here  # the last key came back to the code

    flow(steps)


def test_n_steps_in_every_list_until_something_is_searched_for() -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.press("3", "n")
        await user.until(lambda: user.view.location not in ("", "fibonacci+0x0"), "a line on")
        assert "n next" in user.screen
        here = user.view.location
        await user.press("slash")
        await user.type("main")
        await user.press("enter")
        await user.shows("/main n next, N previous")
        await user.press("n")
        await user.pilot.pause(0.1)
        assert user.view.location == here

    flow(steps)

"""The palette: what a letter costs, counted, and that nothing outruns what is typed."""

from collections import Counter
from collections.abc import Callable
from typing import ParamSpec, TypeVar
from unittest.mock import patch

from flowkit import User, flow

from engine.session.browse.browser import Browser
from engine.session.protocol import commands as cmd
from tui.fuzzy import match
from tui.palette import ROWS
from tui.screens.palette import PaletteScreen

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def test_a_letter_asks_for_nothing_and_makes_no_definition() -> None:
    counted: Counter[str] = Counter()

    async def steps(user: User) -> None:
        post = user.app.post

        def posted(command: cmd.Command) -> None:
            counted["questions"] += 1
            post(command)

        user.app.post = posted
        await user.press("ctrl+p")
        await user.until(lambda: isinstance(user.app.screen, PaletteScreen))
        await user.until(lambda: all(work.is_finished for work in user.app.workers))
        entries, widgets = len(user.offered), len(user.app.screen.query("*"))
        counted.clear()
        for letter in "fibonac":
            await user.press(letter)
        await user.until(lambda: user.offered[:1] == ["go to fibonacci"])
        assert counted["searches"] == 7
        assert counted["matches"] <= 7 * 4 * entries
        assert counted["definitions"] == counted["questions"] == 0
        assert len(user.app.screen.query("*")) == widgets
        await user.press(*["backspace"] * 6)
        assert user.app.focused is not None
        assert len(user.offered) == ROWS
        await user.type("probe fibonacci")
        await user.press("enter")
        await user.until(lambda: user.probes)
        assert counted["definitions"] == 1

    with (
        patch("tui.palette.match", _counting(match, counted, "matches")),
        patch.object(Browser, "complete", _counting(Browser.complete, counted, "searches")),
        patch.object(
            Browser,
            "default_definition",
            _counting(Browser.default_definition, counted, "definitions"),
        ),
    ):
        flow(steps)


def test_enter_waits_for_the_names_and_says_why_a_place_is_none() -> None:
    async def steps(user: User) -> None:
        await user.press("ctrl+p")
        await user.until(lambda: isinstance(user.app.screen, PaletteScreen))
        with patch.object(PaletteScreen, "_names_are_read", new=False, create=True):
            await user.type("go to fibonacci")
            await user.press("enter")
        await user.until(lambda: user.code.cursor == user.address("fibonacci"))
        await user.press("ctrl+p")
        await user.type("no such thing at all")
        await user.shows("nothing is called that")
        await user.press("enter", "escape")
        await user.until(lambda: len(user.app.screen_stack) == 1)

    flow(steps)


def _counting(
    function: Callable[Given, Answer], counted: Counter[str], name: str
) -> Callable[Given, Answer]:
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        counted[name] += 1
        return function(*args, **kwargs)

    return call

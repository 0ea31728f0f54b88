"""What is painted can be read, in every theme: WCAG's level AA, by the cells of the screen."""

import re
from itertools import product

import pytest
from controlkit import sample
from flowkit import LARGE, User, flow
from rich.color_triplet import ColorTriplet
from textual.theme import BUILTIN_THEMES

from engine.session.protocol.views import RunState
from tui.contrast import LEAST, contrast, readable


def test_ratios_are_those_of_wcag() -> None:
    white, black = ColorTriplet(255, 255, 255), ColorTriplet(0, 0, 0)
    assert contrast(white, black) == 21
    assert round(contrast(ColorTriplet(0x77, 0x77, 0x77), white), 2) == 4.48
    assert readable(white, black) == white
    shades = [ColorTriplet(*rgb) for rgb in product((0, 110, 255), repeat=3)]
    for text, behind in product(shades, shades):
        assert contrast(readable(text, behind), behind) >= LEAST


@pytest.mark.parametrize(
    "themes",
    [
        ("textual-light",),
        pytest.param(tuple(BUILTIN_THEMES), marks=pytest.mark.slow),
    ],
    ids=("usual", "all"),
)
def test_all_words_on_the_screen_can_be_read(themes: tuple[str, ...]) -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.press("c")
        await user.state(RunState.STOPPED)
        for theme, screen in product(themes, ("panes", "help", "palette")):
            if screen != "panes":
                await user.press("question_mark" if screen == "help" else "ctrl+p")
            user.app.use_theme(theme)
            await user.pilot.pause(0.05)
            seen = 0
            for strip in user.app.screen._compositor.render_strips(user.app.size):
                for text, style, _ in strip:
                    if style is None or not re.search(r"\w", text) or style.reverse:
                        continue
                    color, behind = style.color, style.bgcolor
                    if color is None or behind is None:
                        continue
                    if color.triplet is None or behind.triplet is None:
                        continue  # the terminal's own colors
                    seen += 1
                    ratio = contrast(color.triplet, behind.triplet)
                    assert ratio >= LEAST, (theme, screen, text, color.name, behind.name)
            assert seen > 10 or theme.startswith("ansi"), (theme, screen)
            if screen != "panes":
                await user.press("escape")

    flow(steps, size=LARGE, guest=sample("x86_64", "recursion"))

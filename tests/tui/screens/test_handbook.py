"""The handbook in the interface: the focused pane's chapter, its keys, links and searches."""

import pytest
from flowkit import User, flow

from engine.chapters import NAMES, load_chapter
from tui.panes.registry import PANES
from tui.screens.handbook import HandbookLines, HandbookScreen
from tui.screens.help import HelpScreen


def test_every_pane_has_a_chapter() -> None:
    assert {spec.chapter for spec in PANES} <= set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (20, 5)])
def test_the_chapter_of_the_focused_pane_then_the_keys(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        for key, topic in (("8", "probes"), ("9", "functions"), ("T", "threads")):
            await user.press(key, "question_mark")
            assert isinstance(user.app.screen, HandbookScreen)
            if size[0] > 20:
                await user.shows(load_chapter(topic).title)
                assert f"Help: {topic}" in user.screen
            await user.press("question_mark")
            assert isinstance(user.app.screen, HelpScreen)
            await user.press("question_mark")
            assert len(user.app.screen_stack) == 1

    flow(steps, size=size)


@pytest.mark.slow
def test_keys_of_less_and_vim_and_a_search() -> None:
    async def steps(user: User) -> None:
        await user.press("8", "question_mark")
        title = load_chapter("probes").title
        for down, up in (("space", "b"), ("G", "g"), ("d", "u"), ("ctrl+d", "ctrl+u"), ("f", "b")):
            await user.press(down)
            await user.until(lambda: title not in user.screen, down)
            await user.press(up)
            await user.until(lambda: title in user.screen, up)
        await user.press("slash", *"DEBUG INFORMATION", "enter")
        await user.shows("not found")  # a text with capitals is looked for as it is
        await user.press("slash", *"debug information", "enter")
        await user.shows("n next, N previous")
        await user.press("n", "N", "escape")
        assert isinstance(user.app.screen, HandbookScreen)
        await user.press("escape")
        assert len(user.app.screen_stack) == 1
        assert user.focus == "probes"

    flow(steps)


@pytest.mark.slow
def test_topics_links_and_chapters_one_after_the_other() -> None:
    async def steps(user: User) -> None:
        await user.press("9", "question_mark", "right_square_bracket")
        await user.shows("Help: handlers")
        await user.press("left_square_bracket", "left_square_bracket")
        await user.shows("Help: watching")
        await user.press("t")
        await user.shows("Help: topics")
        await user.press("j", "enter")
        await user.shows("Help: functions")
        await user.press("t", "q")
        assert len(user.app.screen_stack) == 1
        await user.press("8", "question_mark", "slash", *"[help races]", "enter")
        await user.shows("n next")
        await user.press("enter")
        await user.shows("Help: races")

    flow(steps)


def test_a_line_names_its_links() -> None:
    lines = HandbookLines("")
    found = [name for at in range(lines.count) for name in lines.topics_at(at)]
    assert list(dict.fromkeys(found)) == list(NAMES)
    assert lines.topics_at(lines.count) == []

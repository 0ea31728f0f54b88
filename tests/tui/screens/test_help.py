"""The help: keys by what they are for, side by side where there is room, and a search in it."""

import pytest
from flowkit import User, flow

from tui.keymap import ACTIONS, Situation
from tui.screens.help import HelpScreen, help_parts


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (160, 60), (20, 5)])
def test_a_page_by_tasks_that_can_be_searched(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.press("2", "question_mark", "question_mark")
        page = user.app.screen
        assert isinstance(page, HelpScreen)
        here, everywhere = (
            str(page.query_one(name).render()) for name in ("#here", "#everywhere")
        )
        assert "set the register" in " ".join(here.split())
        words = " ".join(everywhere.split())
        now = Situation(user.view)
        for action in ACTIONS:
            assert (action.help in words) == (not action.lacks(now)), action.id
        tasks = [action.task for action in ACTIONS if not action.lacks(now)]
        assert list(dict.fromkeys(tasks)) == [
            line for line in everywhere.splitlines() if line in tasks
        ]
        assert "I O < F R L while the program has run" not in words
        assert "Not now" in everywhere
        assert "U when something can be undone" in words
        if size[0] == 160:
            row = next(row for row in user.screen.splitlines() if "Run and step" in row)
            assert "Registers" in row
        await user.press("slash", *"slow MOTION")
        everywhere = str(page.query_one("#everywhere").render())
        assert everywhere.splitlines()[0] == "Run and step"
        assert "Not now, but when the program has run" in everywhere
        assert "Redo" not in everywhere
        assert " ".join(everywhere.split()).count("Slow motion") == 3
        await user.press("enter", "j", "k", "space", "escape")  # all of it again
        assert "ctrl+r" in str(page.query_one("#everywhere").render())
        await user.press("escape")
        assert len(user.app.screen_stack) == 1
        assert user.focus == "registers"

    flow(steps, size=size)


def test_tables_of_all_panes_are_drawn_as_such() -> None:
    async def steps(user: User) -> None:
        texts = [pane.HELP or "" for pane in user.panes]
        assert sum(map(bool, texts)) > 8
        for text in texts:
            shown = "".join(piece for piece, _ in help_parts(text))
            assert " | " not in shown, shown

    flow(steps)

"""Blocks of words that go on and on, and their end by the user."""

from pathlib import Path

import pytest
from flowkit import User, flow
from textual.widgets import Input

from engine.session.protocol.views import RunState
from tui.widgets.bars import StatusBar

LOOPS = {
    "words": "set $n = 0\nwhile 1\nset $n = $n + 1\nend\n",
    "nothing": "while 1\nend\n",
    "prints": "while 1\necho again\\n\nend\n",
    "steps": "while 1\nstepi\nend\n",
    "nested": "while 1\nwhile 1\nset $n = 1\nend\nend\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_without_end_is_ended_by_ctrl_c(loop: str, tmp_path: Path) -> None:
    file = tmp_path / "loop.gdb"
    file.write_text(LOOPS[loop])

    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.state(RunState.STOPPED)
        await user.command(f"source {file}")
        await user.pilot.pause(0.15)
        await user.press("ctrl+c")
        await user.says("Quit")
        assert user.view.state is RunState.STOPPED
        await user.command("print 6 * 7")
        await user.says("= 42")
        user.app.type(LOOPS[loop].rstrip())  # typed as a block, not from a file
        await user.pilot.pause(0.05)
        await user.press("ctrl+c")
        await user.says("Quit")

    flow(steps)


def test_a_line_that_takes_long_says_how_it_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "loop.gdb"
    file.write_text(LOOPS["nothing"])

    async def steps(user: User) -> None:
        status = user.app.query_one(StatusBar)
        await user.command(f"source {file}")
        await user.until(lambda: "Ctrl-C ends it" in str(status.content))
        assert "ends it: source /" in str(status.content)
        user.app.type("print 6 * 7")
        await user.until(lambda: "1 more typed" in str(status.content))
        await user.press("ctrl+c")
        await user.says("= 42")
        assert "Ctrl-C" not in str(status.content)
        assert "ready" in str(status.content)

    flow(steps)


def test_one_may_leave_while_words_go_on(tmp_path: Path) -> None:
    file = tmp_path / "loop.gdb"
    file.write_text(LOOPS["words"])

    async def steps(user: User) -> None:
        await user.command(f"source {file}")
        await user.pilot.pause(0.1)

    assert flow(steps).return_code in (None, 0)


def test_a_long_answer_leaves_the_focus_to_the_line_that_is_typed() -> None:
    answer = "\n".join(f"line {number} of the answer" for number in range(9))

    async def steps(user: User) -> None:
        await user.press("colon")
        await user.type("info reg")
        user.app._answer(answer)
        await user.shows("[C Console]")
        assert isinstance(user.app.focused, Input)
        assert user.app.focused.value == "info reg"
        await user.press("escape")
        user.app._answer(answer)
        await user.until(lambda: user.app.body.choice.focused == "console")

    flow(steps)

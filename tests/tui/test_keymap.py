"""The keys that footer and help list: those that work as the guest is now."""

from flowkit import User, flow
from textual.widgets import Input

from engine.session.protocol.views import RunState
from tui.keymap import ACTIONS, Need, Situation, When


def test_what_is_left_out_says_why_it_does_nothing() -> None:
    async def steps(user: User) -> None:
        left_out = [action for action in ACTIONS if action.lacks(Situation(user.view))]
        assert {"next_line", "finish", "step_back", "interrupt", "undo", "mark"} <= {
            action.id for action in left_out
        }
        for action in left_out:
            if action.id in ("up_frame", "down_frame"):  # at the end of a list nothing is said
                continue
            user.app.say("-")
            await user.press(action.keys.partition(",")[0])
            await user.until(
                lambda: user.said != "-" or isinstance(user.app.focused, Input), action.id
            )
            if isinstance(user.app.focused, Input):  # a name is asked for first
                await user.press("enter" if action.id == "mark" else "escape")
            assert user.view.state is RunState.READY, action.id
            assert not user.probes, action.id

    flow(steps)


def test_the_footer_goes_with_the_guest() -> None:
    def foot(user: User) -> str:
        return user.screen.splitlines()[-1]

    async def steps(user: User) -> None:
        assert "c continue" in foot(user)
        assert "n next" not in foot(user), "no line information at _start"
        assert "f finish" not in foot(user), "nothing has called _start"
        await user.command("b fibonacci")
        await user.press("c")
        await user.until(lambda: "n next" in foot(user) and "f finish" in foot(user))
        await user.press("b", "c")
        await user.state(RunState.ENDED)
        await user.until(lambda: "r restart" in foot(user) and "c continue" not in foot(user))

    flow(steps)


def test_all_reasons_have_words() -> None:
    assert all(mood.text for mood in When)
    ready = Situation()
    assert not ready.has(Need.HISTORY)
    assert ready.has(Need.CODE)
    assert not Situation(nowhere=True).has(Need.CODE)

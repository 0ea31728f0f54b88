"""Who has the keys while the program reads its terminal."""

import pytest
from controlkit import moods, sample
from flowkit import User, flow

from engine.session.protocol.views import GuestView, RunState, ThreadView
from tui import guest_input
from tui.guest_input import reads_terminal


def test_who_types_for_the_program_commands_nothing() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.WAITING)
        await user.typing()
        await user.press(*"Bob")
        assert user.app.panes.output.guest_line.value == "Bob"
        assert "continue" not in user.screen.splitlines()[-1]
        assert "Enter" in user.screen.splitlines()[-1]
        await user.press("escape")  # the way back
        assert user.focus == "code"
        assert "continue" not in user.screen.splitlines()[-1], "the program is not standing"
        await user.press("y", "escape")
        assert user.focus == "code"
        await user.press("7", "enter")  # and in again
        await user.press("backspace", "backspace", "backspace", *"needle", "enter")
        await user.shows("needle")
        assert user.app.panes.output.guest_line.has_focus
        await user.press("ctrl+d")
        await user.state(RunState.ENDED)
        assert not user.probes

    flow(steps, guest=sample("x86_64", "lines"), args=("needle",), size=(80, 24))


def test_keys_come_back_when_nobody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_input, "QUIET", 0.01)

    async def steps(user: User) -> None:
        await user.press("3")
        await user.until(lambda: user.focus == "backtrace")
        await user.press("c")
        await user.state(RunState.WAITING)
        await user.typing()
        await user.press(*"ab", "ctrl+c")
        await user.state(RunState.STOPPED)
        await user.press("c")  # a letter of the line: somebody is typing still
        assert user.app.panes.output.guest_line.value == "abc"
        await user.press("backspace", "backspace", "backspace")
        await user.until(lambda: user.focus == "backtrace", "the keys are commands")

    flow(steps, guest=moods("x86_64"), args=("r",))


def test_keys_come_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy interface hears several ticks of the timer in a row."""
    monkeypatch.setattr(guest_input, "QUIET", 9)

    async def steps(user: User) -> None:
        await user.press("3")
        await user.until(lambda: user.focus == "backtrace")
        await user.press("c")
        await user.state(RunState.WAITING)
        await user.typing()
        await user.press("ctrl+c")
        await user.state(RunState.STOPPED)
        monkeypatch.setattr(guest_input, "QUIET", 0)
        for _ in range(2):
            user.app._guest_input._look()
        await user.press("a")
        assert user.focus == "backtrace"

    flow(steps, guest=moods("x86_64"), args=("r",))


@pytest.mark.parametrize(
    ("state", "call", "waits", "reads"),
    [
        (RunState.WAITING, "read", "fd 0 /dev/pts/0", True),
        (RunState.WAITING, "pselect6", "fd 5 socket:[3], fd 0 /dev/pts/0", True),
        (RunState.WAITING, "read", "fd 3 pipe:[1]", False),
        (RunState.WAITING, "write", "fd 1 /dev/pts/0", False),
        (RunState.STOPPED, "read", "fd 0 /dev/pts/0", False),
    ],
)
def test_what_is_reading(state: RunState, call: str, waits: str, reads: bool) -> None:
    thread = ThreadView(1, 1, 0, 0, "tool", "S", call=call, waits=waits)
    assert reads_terminal(GuestView(state=state, listed=(thread,))) is reads

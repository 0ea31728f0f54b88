"""A guest that is stopped at everything and let on does what it does undisturbed."""

from pathlib import Path

import pytest
from archkit import COMPILED
from cguest import compiled

from engine.guest.hooks import SignalAnswer
from engine.session.control.control import Control
from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.views import RunState, StopCause

GUESTS = ("signals", "stops", "processes", "timers")


def _run(control: Control) -> tuple[int | None, int, int, dict[StopCause, int]]:
    """Run to the end: the exit code, its time, its calls, and how often it stopped for what."""
    stops: dict[StopCause, int] = {}
    while True:
        control.loop.carry_out(cmd.Continue())
        view = control.view()
        if view.state is RunState.ENDED:
            return view.exit_code, view.time, view.system_calls, stops
        stops[view.cause] = stops.get(view.cause, 0) + 1


@pytest.mark.slow
@pytest.mark.parametrize("arch", COMPILED[:2])
@pytest.mark.parametrize("name", GUESTS)
def test_stops_at_signals_calls_forks_and_execs_change_nothing(
    name: str,
    arch: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = GuestConfig(str(compiled(name, arch)), ("a", "b c"), count_blocks=True)
    monkeypatch.chdir(tmp_path)

    def run(*, ask: bool) -> tuple[object, dict[StopCause, int], str]:
        control = Control(config, lambda event: None)
        if ask:
            questions = control.questions
            questions.signal = lambda number: SignalAnswer(stops=True, passes=True)
            questions.call = questions.returned = lambda number, called: called or "?"
            questions.forked = lambda pid, call: call
            questions.executed = lambda path: path
        try:
            *result, stops = _run(control)
        finally:
            control.close()
        return result, stops, capfd.readouterr().out

    plain, _, text = run(ask=False)
    asked, stops, same = run(ask=True)
    assert (asked, same) == (plain, text)
    assert stops[StopCause.EVENT] > 10
    assert stops[StopCause.SIGNAL] > 0

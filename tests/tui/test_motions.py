"""Keys that are held down, and the slow motion of hits."""

from unittest.mock import create_autospec

from controlkit import held, sample
from flowkit import User, flow, place

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState
from tui.desk import Desk
from tui.motions import AHEAD, Motions, SlowMotion
from tui.navigator import Navigator
from tui.panes.registry import Panes


def test_steps_of_a_key_that_is_held_do_not_pile_up() -> None:
    desk = create_autospec(Desk, instance=True)
    panes, navigator = create_autospec(Panes, instance=True), create_autospec(Navigator)
    motions = Motions(desk, panes, navigator, SlowMotion(desk, panes))
    for _ in range(100):
        motions.run(cmd.StepOver())
    assert desk.post.call_count == AHEAD
    motions.run(cmd.Halt())  # never left out
    assert desk.post.call_count == AHEAD + 1
    motions.stands()
    motions.run(cmd.StepOver())
    assert desk.post.call_count == AHEAD + 2


def test_the_next_hit_of_any_probe_stops_the_program_once() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        failed = guest.fail(cmd.ContinueToHit())
        assert failed is not None
        assert "no probe" in failed.text
        guest.do(cmd.Define("p:demo/fib fibonacci"), cmd.Define("p:demo/ack ackermann"))
        view = guest.do(cmd.ContinueToHit())
        assert view.state is RunState.STOPPED
        assert view.pc == guest.address("fibonacci")
        assert not any(probe.row.stops for probe in view.probes)
        first = view.time
        view = guest.do(cmd.ContinueToHit())
        assert (view.pc, view.events) == (guest.address("fibonacci"), 1)
        assert view.time > first
        view = guest.do(cmd.Continue())  # nothing of it is left
        assert view.state is RunState.ENDED


def test_a_hit_is_played_and_the_next_one_after_it() -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/fib fibonacci")
        await user.press("plus", "plus", "plus", "plus", "P")
        await user.until(lambda: user.view.hit is not None, "a hit")
        assert user.view.hit is not None
        assert user.view.hit.address == user.address("fibonacci")
        assert "machinery" in user.app.body.choice.plan(120, 37).shown
        await user.until(lambda: user.view.events > 1, "the next hit")
        await user.press("P")
        assert not user.app.controls.slow_motion.playing
        await user.press("P", "M")  # from hits to everything
        assert user.app.controls.slow_motion.playing
        await user.press("i")  # any other motion ends it
        assert not user.app.controls.slow_motion.playing

    flow(steps)

"""The seeds of a search, how a run repeats, and what is left of a schedule."""

import itertools

import pytest
from archkit import FIRST_COMPILED
from msgspec.structs import replace
from sysroot import CHECKOUT

from engine.errors import CommandError
from engine.linux.schedule import Why
from engine.linux.turns import Chosen, Lengths, Priorities
from engine.session.headless.explore import explored, turns_for
from engine.session.headless.trials import Attempt, Ran, TrialError, made
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import PLAIN, GuestConfig
from engine.session.protocol.requests import ExploreRequest

# The test process may have threads of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

SAMPLES = CHECKOUT / "samples" / "bin"


def config(arch: str, name: str) -> GuestConfig:
    return GuestConfig(guest=str(SAMPLES / arch / name))


def ran(guest: GuestConfig, trial: Attempt, times: int = 1) -> list[Ran]:
    opened = OpenedProgram.open(guest)
    return [made(trial, guest, opened, b"") for _ in range(times)]


def test_seeds_have_turns_of_all_lengths_and_priorities() -> None:
    kinds = [turns_for(at, 40, PLAIN, 50_000) for at in range(40)]
    assert kinds[0] == PLAIN
    lengths = [kind for kind in kinds[1:20] if isinstance(kind, Lengths)]
    assert len(lengths) == 19
    assert {kind.longest for kind in lengths} == {3, 10, 30, 100, 300, 1000, 3000, 10_000}
    assert all(kind.shortest == 1 for kind in lengths)
    priorities = [kind for kind in kinds[20:] if isinstance(kind, Priorities)]
    assert len(priorities) == 20
    assert {(kind.depth, kind.span) for kind in priorities} == {(d, 50_000) for d in (2, 3, 4)}


def test_long_runs_have_no_shortest_turns() -> None:
    found = {str(turns_for(at, 40, PLAIN, 20_000_000)) for at in range(1, 20)}
    assert found == {"1-300", "1-1000", "1-3000", "1-10000"}
    assert str(turns_for(1, 9, PLAIN, 1 << 50)) == "1-10000"


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_lost_update_repeats_ten_times_of_ten(arch: str) -> None:
    guest = config(arch, "race")
    found = explored(ExploreRequest(guest, 20))
    assert found.trial is not None
    assert found.ran is not None
    assert found.cause is not None
    assert found.ran.outcome.exit == 1
    again = ran(guest, found.trial, 10)
    assert {each.outcome for each in again} == {found.ran.outcome}
    assert {each.switches for each in again} == {found.ran.switches}
    assert found.cause.smallest
    assert [each.left.place.split("+")[0] for each in found.cause.seen] in (["think"], ["add_one"])
    chosen = Chosen(tuple(each.choice for each in found.cause.seen))
    alone = ran(guest, Attempt(0, chosen), 10)
    assert {each.outcome for each in alone} == {found.cause.alone.outcome}
    assert found.cause.alone.outcome.exit == 1


@pytest.mark.slow
def test_priorities_find_a_deadlock() -> None:
    """A bug of depth 2: at worst one seed of n k, k being a few hundred ticks."""
    guest = config("x86_64", "deadlock")
    opened = OpenedProgram.open(guest)
    limits = [
        made(Attempt(seed, Priorities(2, 600), 100_000), guest, opened, b"").outcome.limit
        for seed in range(40)
    ]
    assert "deadlock" in limits
    assert set(limits) == {"", "deadlock"}


def test_where_the_first_run_is_the_odd_one_its_switches_are_shown() -> None:
    """The first seed ends in a deadlock, as no run does in which threads run until they wait."""
    guest = replace(config("x86_64", "deadlock"), seed=1, turns=Lengths(1, 3))
    found = explored(ExploreRequest(guest, 40))
    assert found.first.outcome.limit == "deadlock"
    assert found.ran is not None
    assert found.ran.outcome.exit == 0
    assert found.cause is not None
    assert found.cause.trial.seed == 1
    assert found.cause.alone.outcome == found.first.outcome
    assert [each.choice.why for each in found.cause.seen] == [Why.PREEMPTED]


def test_what_was_left_out_in_time_stays_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = itertools.count()
    # The crew's own: how often other code asks, a wait above all, the host's load decides.
    # A look at it takes a minute, so that there is time for each run that is waited for.
    monkeypatch.setattr("engine.session.headless.trials.monotonic", lambda: 60.0 * next(moments))
    found = explored(ExploreRequest(config("x86_64", "race"), 20, seconds=12 * 60.0))
    assert found.cause is not None
    assert not found.cause.smallest
    assert 1 < len(found.cause.seen) < found.cause.total
    assert found.cause.alone.outcome.exit == 1


def test_the_output_of_a_run_is_kept() -> None:
    (one,) = ran(config("x86_64", "forkserver"), Attempt(0, PLAIN, keep=True))
    assert one.text.endswith(b"7 of 8 served\n")
    assert one.outcome.exit == 1
    assert len(one.choices) >= one.switches
    (stopped,) = ran(config("x86_64", "race"), Attempt(0, PLAIN, max_blocks=50))
    assert stopped.outcome.limit == "max-blocks"


def test_what_would_differ_anyway_is_refused() -> None:
    guest = config("x86_64", "race")
    with pytest.raises(CommandError, match="--clock host"):
        explored(ExploreRequest(replace(guest, clock="host"), 2))
    with pytest.raises(TrialError, match='No symbol "pid" in current context'):
        explored(ExploreRequest(guest, 2, stop_if="pid == 3"))

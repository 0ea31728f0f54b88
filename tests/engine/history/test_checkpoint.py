"""Checkpoints hold what has changed, and no more."""

import random

import pytest
from historykit import State, past, recorded, state_of
from sessionkit import SAMPLES

from engine.cpu.ram import PAGE
from engine.history.checkpoint import Checkpoints
from engine.history.timeline import Timeline


def test_each_has_what_changed_since_the_one_before() -> None:
    with recorded(SAMPLES / "x86_64" / "words") as ran, past(ran) as session:
        kernel = session.kernel
        checkpoints = Checkpoints(kernel, session.ram)
        states = []
        for clock in (100, 700, 701, 1000):
            kernel.limit = clock
            while session.cpu.blocks() < clock:
                kernel.resume()
            states.append(state_of(session))
            checkpoints.take()
        first, *others = (len(taken.pages) for taken in checkpoints.taken)
        assert first >= 3  # all of the program
        assert others[1] <= 2  # a tick
        assert checkpoints.size < sum(len(taken.pages) for taken in checkpoints.taken) * (
            PAGE + 200
        )
        for index in (2, 0, 3, 1, 1, 3):
            checkpoints.restore(index)
            assert state_of(session) == states[index]


def test_a_budget_thins_them() -> None:
    """Those that are left lead to the same states."""
    with recorded(SAMPLES / "x86_64" / "words") as ran, past(ran) as session:
        kernel = session.kernel
        checkpoints = Checkpoints(kernel, session.ram, budget=1)
        states = {}
        for clock in range(20, 1020, 20):
            kernel.limit = clock
            while session.cpu.blocks() < clock:
                kernel.resume()
            states[clock] = state_of(session)
            checkpoints.take()
            assert len(checkpoints.taken) <= 9
        clocks = [taken.clock for taken in checkpoints.taken]
        assert (clocks[0], clocks[-1]) == (20, 1000)
        for index in (3, 0, len(clocks) - 1, 2, 5):
            checkpoints.restore(index)
            assert state_of(session) == states[clocks[index]]


def test_the_nearest_one() -> None:
    with recorded(SAMPLES / "x86_64" / "words") as ran, past(ran) as session:
        kernel = session.kernel
        checkpoints = Checkpoints(kernel, session.ram)
        checkpoints.take()
        for clock in (500, 800):
            kernel.limit = clock
            while session.cpu.blocks() < clock:
                kernel.resume()
            checkpoints.take()
        at = kernel.at
        found = [checkpoints.before(clock, at) for clock in (0, 499, 500, 501, 801, 9999)]
        assert found == [0, 0, 0, 1, 2, 2]
        assert checkpoints.before(9999, 0) == 0


def test_between_two_and_in_any_order() -> None:
    """What one holds does not depend on when it was made, nor on others that come and go."""
    choose = random.Random(1)
    with recorded(SAMPLES / "x86_64" / "words") as ran, past(ran) as session:
        kernel = session.kernel
        checkpoints = Checkpoints(kernel, session.ram, budget=50_000)
        states: dict[int, State] = {}

        def on(clock: int) -> None:
            kernel.limit = clock
            while session.cpu.blocks() < clock:
                kernel.resume()
            now = state_of(session)
            assert states.setdefault(clock, now) == now

        checkpoints.take()
        first = checkpoints.taken[0].clock
        for _ in range(40):
            clock = choose.randrange(first + 1, 1020)
            index = choose.randrange(checkpoints.before(clock + 1, kernel.at + 1000) + 1)
            checkpoints.restore(index)
            on(clock)
            mark = checkpoints.take(brief=choose.random() < 0.4)
            assert checkpoints.marks == sorted(set(checkpoints.marks))
            if choose.random() < 0.3:
                checkpoints.drop(choose.choice(checkpoints.marks))
            if choose.random() < 0.3:
                assert not checkpoints.drop(mark)  # the guest has come from there
        assert checkpoints.size <= checkpoints.budget
        for index in choose.sample(range(len(checkpoints.taken)), len(checkpoints.taken)):
            checkpoints.restore(index)
            clock = checkpoints.taken[index].clock
            assert clock == first or state_of(session) == states[clock]


@pytest.mark.parametrize(
    "name",
    [
        *("x86_64/words", "aarch64/words", "riscv64/words", "ia64/recursion"),
        *("x86_64/forkserver", "aarch64/race", "ia64/pipeline"),
    ],
)
def test_another_guest_begins_there(name: str) -> None:
    """It goes on as the first one has."""
    with recorded(SAMPLES / name) as ran, past(ran) as session:
        timeline = Timeline(session.kernel, session.ram)
        end = ran.session.cpu.blocks()
        for clock in (end // 3, end // 2):
            timeline.seek_clock(clock)
            timeline.checkpoints.take()
        timeline.seek_clock(end * 2 // 3)
        later = timeline.now(), state_of(session)
        for index in (1, 2):
            timeline.checkpoints.restore(index)
            known = timeline.now(), state_of(session)
            with past(ran) as other:
                assert timeline.checkpoints.can_lend(index)
                timeline.checkpoints.lend(index, other.kernel, other.ram)
                assert state_of(other) == known[1]
                after = Timeline(other.kernel, other.ram)
                assert after.now() == known[0]
                after.seek(later[0])
                assert state_of(other) == later[1]
                after.end()
                assert other.kernel.at == len(ran.journal)

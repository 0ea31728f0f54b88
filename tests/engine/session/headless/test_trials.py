"""Runs in processes of the host's: their order, and what becomes of those that fail."""

import os

import pytest
from msgspec.structs import replace
from sysroot import CHECKOUT

from engine.errors import EngineError, ImageError
from engine.linux.turns import Lengths
from engine.session.headless import trials
from engine.session.headless.trials import Attempt, Crew, OutOfTimeError, Ran, TrialError
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import PLAIN, GuestConfig

# The test process may have threads of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

RACE = GuestConfig(guest=str(CHECKOUT / "samples/bin/x86_64/race"))


def test_runs_come_in_their_order() -> None:
    crew = Crew(RACE, 2, None)
    try:
        wanted = [Attempt(seed, Lengths(1, 30)) for seed in range(5)]
        found = list(crew.several(wanted))
        assert crew.runs == 5
        assert [crew.one(each) for each in wanted] == found
        # Nobody asks for the rest; those after it are answered all the same.
        assert next(crew.several(wanted)) == found[0]
        assert crew.one(wanted[3]) == found[3]
    finally:
        crew.close()


def test_a_guest_that_cannot_be_run() -> None:
    with pytest.raises(ImageError):
        Crew(replace(RACE, guest="/nonexistent"), 1, None)
    crew = Crew(replace(RACE, cwd="/nonexistent"), 1, None)
    try:
        with pytest.raises(TrialError, match="--cwd /nonexistent"):
            crew.one(Attempt(0, PLAIN))
    finally:
        crew.close()


def test_a_process_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(
        trial: Attempt, config: GuestConfig, opened: OpenedProgram | None, stdin: bytes | None
    ) -> Ran:
        os._exit(1)

    monkeypatch.setattr(trials, "made", die)
    crew = Crew(RACE, 1, None)
    try:
        with pytest.raises(EngineError, match="seed 7 and turns 10000-30000"):
            crew.one(Attempt(7, PLAIN))
    finally:
        crew.close()


def test_time_that_is_over() -> None:
    crew = Crew(RACE, 1, 0.0)
    try:
        with pytest.raises(OutOfTimeError):
            list(crew.several([Attempt(0, PLAIN)] * 3))
    finally:
        crew.close()

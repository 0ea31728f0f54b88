"""What may stand at a probed address, and what may come next."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from engine.probes.placement_rules import Check
from engine.probes.point_state import DISARMED, Candidacy, Look, PointState, Stage

WHY = Check("toy", False, "it is not possible")


@dataclass(frozen=True)
class Toy:
    """A replacement that is nothing."""

    kind: str = "toy"
    bypass: int = 0
    window: int = 0
    trap: int | None = None
    code: bytes = b""


TOY = Toy()
BREAKPOINT = DISARMED.arm()
STATES = {
    "disarmed": DISARMED,
    "breakpoint": BREAKPOINT,
    "replaced": BREAKPOINT.replaced(TOY),
    "stop": BREAKPOINT.replaced(TOY, Stage.STOP),
    "check": BREAKPOINT.replaced(TOY, Stage.CHECK),
}
MOVES: dict[str, Callable[[PointState], PointState]] = {
    "arm": lambda state: state.arm(),
    "disarm": lambda state: state.disarm(),
    "replace": lambda state: state.replaced(TOY),
    "replace behind a stop": lambda state: state.replaced(TOY, Stage.STOP),
    "replace behind a check": lambda state: state.replaced(TOY, Stage.CHECK),
    "checked": lambda state: state.checked(stop=False),
    "checked, with a stop": lambda state: state.checked(stop=True),
    "fall back": lambda state: state.fall_back(),
}
LEGAL = {
    ("disarmed", "arm"): "breakpoint",
    ("breakpoint", "disarm"): "disarmed",
    ("breakpoint", "replace"): "replaced",
    ("breakpoint", "replace behind a stop"): "stop",
    ("breakpoint", "replace behind a check"): "check",
    ("check", "checked"): "replaced",
    ("check", "checked, with a stop"): "stop",
    ("replaced", "fall back"): "breakpoint",
    ("stop", "fall back"): "breakpoint",
    ("check", "fall back"): "breakpoint",
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("state", STATES)
def test_only_these_transitions_are_legal(state: str, move: str) -> None:
    wanted = LEGAL.get((state, move))
    if wanted is None:
        with pytest.raises(AssertionError):
            MOVES[move](STATES[state])
    else:
        assert MOVES[move](STATES[state]) == STATES[wanted]


def test_a_plain_breakpoint_replaces_nothing() -> None:
    for stage in (Stage.DISARMED, Stage.BREAKPOINT):
        with pytest.raises(AssertionError):
            BREAKPOINT.replaced(TOY, stage)


def test_what_people_see() -> None:
    shown = {name: (state.technique, state.held) for name, state in STATES.items()}
    assert shown == {
        "disarmed": ("breakpoint", ""),
        "breakpoint": ("breakpoint", ""),
        "replaced": ("toy", ""),
        "stop": ("toy", "stop"),
        "check": ("breakpoint", "check"),
    }


# -- candidacy ----------------------------------------------------------------------------


def candidacies() -> Iterator[Candidacy]:
    """One of each look."""
    fresh = Candidacy()
    yield fresh
    yield fresh.counted()
    yield fresh.refused(WHY)


def test_a_breakpoint_is_counted_looked_at_and_refused() -> None:
    due = Candidacy().counted()
    assert due.due
    refused = due.refused(WHY)
    assert (refused.looked, refused.why, refused.hot) == (True, WHY, False)
    assert refused.renewed() == Candidacy()


def test_one_that_was_replaced_stays_hot() -> None:
    done = Candidacy().counted().replaced(WHY)
    assert (done.look, done.why, done.hot) == (Look.LOOKED, WHY, True)
    assert done.cleared().why is None
    assert done.renewed().hot
    assert not done.renewed().looked


def test_a_large_function_is_waited_for_once() -> None:
    patient = Candidacy().counted().patient(700)
    assert (patient.look, patient.patience) == (Look.NOT_YET, 700)
    with pytest.raises(AssertionError):
        patient.counted().patient(700)
    assert patient.counted().renewed().patience == 700


def test_one_that_is_due_stays_so_until_it_is_looked_at() -> None:
    assert Candidacy().counted().renewed().due
    assert not Candidacy().counted().put_off(WHY).due
    assert Candidacy().counted().put_off(WHY).why == WHY


def test_hits_of_one_that_is_known_change_nothing() -> None:
    refused = Candidacy().refused(WHY)
    assert refused.counted() is refused


@pytest.mark.parametrize("candidacy", list(candidacies()), ids=lambda one: one.look.name)
def test_illegal_looks(candidacy: Candidacy) -> None:
    if candidacy.looked:
        for move in (candidacy.replaced, candidacy.put_off):
            with pytest.raises(AssertionError):
                move()
    else:
        with pytest.raises(AssertionError):
            candidacy.cleared()
    if not candidacy.due:
        with pytest.raises(AssertionError):
            candidacy.patient(1)

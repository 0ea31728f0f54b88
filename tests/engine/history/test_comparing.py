"""Journals side by side."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.history.comparing import explained, parting, same_entry, what_differs
from engine.history.journal import EntryCause, Journal, Op

CALL = EntryCause.SYSCALL


def journal(*entries: tuple[int, Sequence[Any]]) -> Journal:
    made = Journal()
    for clock, ops in entries:
        made.add((clock, 0x400 + clock, 1000, CALL, ops))
    return made


def test_host_descriptors_are_not_the_guests() -> None:
    ours, theirs = journal((1, [(Op.OUTPUT, 3, b"a")])), journal((1, [(Op.OUTPUT, 7, b"a")]))
    assert same_entry(ours, theirs, 0)
    assert not same_entry(ours, journal((1, [(Op.OUTPUT, 7, b"b")])), 0)


def test_both_sides_are_told() -> None:
    ours = journal((1, [(Op.WRITE, 0x1000, b"the same, then this"), (Op.RETURN, 19, False)]))
    theirs = journal((1, [(Op.WRITE, 0x1000, b"the same, then that"), (Op.RETURN, 19, False)]))
    text = what_differs(ours, theirs, 0)
    assert text == (
        "at a system call at tick 1, pc 0x401, thread 1000: recorded was 'is' from byte 17 of 19 "
        "on written to 0x1011; now it is 'at' from byte 17 of 19 on written to 0x1011"
    )
    assert "recorded was nothing more" in what_differs(journal(), theirs, 0)
    assert explained(theirs[0]).endswith("(a call that returns 19)")


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        ([1, 2, 3], [1, 2, 3], None),
        ([1, 2, 3], [1, 2, 4], (2, 2)),
        ([1, 2], [1, 2, 3], (2, 2)),
        ([1, -2, 3], [1, 3], None),
        ([1, -2, 3], [1, -2, 3], None),
        ([1, -2, 3], [1, -5, -6, 3, 4], (3, 4)),
        ([1, -2], [1], None),
    ],
)
def test_changes_by_the_user_are_passed_over(
    ours: list[int], theirs: list[int], wanted: tuple[int, int] | None
) -> None:
    """Negative numbers stand for them; what comes of them is not passed over."""
    sides = [
        (
            journal(*((abs(one), [(Op.RETURN, one, False)]) for one in side)),
            {at for at, one in enumerate(side) if one < 0},
        )
        for side in (ours, theirs)
    ]
    (left, changes), (right, others) = sides
    assert parting(left, right, changes, others) == wanted

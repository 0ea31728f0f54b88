"""The filter of calls by their time and by whom they lead to."""

import random

import pytest
from graphrows import TABLE, back, call

import engine.trace.callfilter
from engine.trace.callfilter import CallFilter


def filtered(rows: list[bytes], shortest: int = 0, *functions: int, step: int = 1) -> list[bytes]:
    """The rows that are left, given some at a time."""
    found = CallFilter(TABLE, shortest, leads_on=bool(functions))
    found.functions.update(functions)
    pieces = [b"".join(rows[at : at + step]) for at in range(0, len(rows), step)]
    out = b"".join([*map(found.passed, pieces), found.rest()])
    known = {row: row for row in rows}
    left = []
    while out:
        size = len(rows[0]) if out[: len(rows[0])] in known else len(back(0, 0, 0))
        left.append(out[:size])
        out = out[size:]
    return left


@pytest.mark.parametrize("step", [1, 2, 100])
def test_short_calls_go_and_rows_keep_their_order(step: int) -> None:
    rows = [
        *(call(10, 1, 0), call(11, 2, 1), back(14, 2, 1, began=11), call(15, 3, 1)),
        *(call(15, 9, 0, thread=8), back(25, 3, 1, began=15), back(26, 1, 0, began=10)),
        back(40, 9, 0, thread=8, began=15),
    ]
    assert filtered(rows, 5, step=step) == [rows[0], *rows[3:]]
    assert filtered(rows, 17, step=step) == [rows[4], rows[7]]
    assert filtered(rows, 16, step=step) == [rows[0], rows[4], rows[6], rows[7]]


def test_only_calls_that_lead_to_a_function() -> None:
    rows = [
        *(call(1, 1, 0), call(2, 2, 1), back(3, 2, 1), call(4, 3, 1), call(5, 2, 2)),
        *(call(6, 5, 3), back(7, 5, 3), back(8, 2, 2), call(9, 6, 2), back(10, 6, 2)),
        *(back(11, 3, 1), back(12, 1, 0)),
    ]
    assert filtered(rows, 0, 5) == [rows[0], *rows[3:8], *rows[10:]]
    assert filtered(rows, 0, 7) == []


def test_calls_that_stay_open_are_as_long_as_they_are() -> None:
    rows = [call(1, 1, 0), call(5, 2, 1), call(9, 3, 2)]
    assert filtered(rows, 4) == rows[:2]


def test_too_many_waiting_rows_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.trace.callfilter, "WAITING_MOST", 10)
    found = CallFilter(TABLE, 0, leads_on=True)
    found.functions.add(5)
    out = found.passed(call(1, 1, 0))
    for at in range(20):
        out += found.passed(call(at, 5, 0, thread=8) + back(at, 5, 0, thread=8))
    assert out.startswith(call(1, 1, 0))
    assert found.assumed == 1
    assert len(list(found.remarks())) == 1


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_a_filter_that_knows_all(seed: int) -> None:
    """Random calls of three threads, against the same looked at from behind."""
    chance, now = random.Random(seed), 0
    stacks: dict[int, list[tuple[int, int, int]]] = {7: [], 8: [], 9: []}
    rows: list[bytes] = []
    pairs: list[tuple[int, int, int]] = []
    for _ in range(600):
        now += chance.randrange(4)
        thread = chance.choice((7, 8, 9))
        stack = stacks[thread]
        if stack and chance.random() < 0.5:
            function, began, at = stack.pop()
            pairs.append((at, len(rows), now - began))
            rows.append(back(now, function, len(stack), thread, began))
        else:
            function = chance.randrange(1, 5)
            stack.append((function, now, len(rows)))
            rows.append(call(now, function, len(stack) - 1, thread))
    for stack in stacks.values():
        pairs += [(at, -1, now - began) for _, began, at in stack]
    for shortest in (1, 7, 30):
        kept = {at for pair in pairs if pair[2] >= shortest for at in pair[:2]}
        assert filtered(rows, shortest) == [rows[at] for at in sorted(kept - {-1})]

"""Calls of a graph as they end: total and self time, recursion, what has no return or no entry."""

from graphrows import TABLE, back, call

from engine.trace.finishedcalls import EndedCall, FinishedCalls, ThreadCalls


def ended(*rows: bytes) -> list[tuple[str, int, int, bool]]:
    """(name, total, self, nested) of each call in the order of their ends."""
    found = []

    def over(thread: int, one: EndedCall, around: ThreadCalls) -> None:
        found.append((one.call.name, one.total, one.own, one.nested))

    calls = FinishedCalls(TABLE, lambda at: f"f{at:x}", over)
    for row in rows:
        number = int.from_bytes(row[:2], "little")
        thread = int.from_bytes(row[4:8], "little")
        assert calls.take(number, thread, row, 0)
    calls.finish()
    return found


def test_the_time_of_callees_is_not_their_caller_s_own() -> None:
    rows = call(10, 1, 0), call(13, 2, 1), back(18, 2, 1), call(20, 2, 1), back(21, 2, 1)
    assert ended(*rows, back(25, 1, 0)) == [
        *(("f2", 5, 5, False), ("f2", 1, 1, False), ("f1", 15, 9, False)),
    ]


def test_a_call_in_a_call_of_the_same_function_is_nested() -> None:
    rows = call(1, 1, 0), call(2, 2, 1), call(3, 1, 2), back(6, 1, 2), back(8, 2, 1)
    assert ended(*rows, back(9, 1, 0)) == [
        *(("f1", 3, 3, True), ("f2", 6, 3, False), ("f1", 8, 2, False)),
    ]


def test_open_calls_last_until_the_last_row_of_their_thread() -> None:
    rows = call(1, 1, 0), call(4, 2, 1), call(90, 3, 0, 8), back(6, 2, 1)
    assert ended(*rows) == [("f2", 2, 2, False), ("f1", 5, 3, False), ("f3", 0, 0, False)]


def test_a_return_of_a_call_before_the_first_row_says_when_it_began() -> None:
    rows = back(12, 3, 2, began=10), call(13, 4, 2), back(15, 4, 2), back(20, 2, 1, began=5)
    assert ended(*rows) == [("f3", 2, 2, False), ("f4", 2, 2, False), ("f2", 15, 11, False)]


def test_lost_returns_end_with_the_next_call() -> None:
    rows = call(1, 1, 0), call(2, 2, 1), call(9, 3, 0), back(11, 3, 0)
    assert ended(*rows) == [("f2", 7, 7, False), ("f1", 8, 1, False), ("f3", 2, 2, False)]

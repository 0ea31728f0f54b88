"""Which program a row is from."""

import struct

import pytest

from engine.trace.program_times import ProgramTimes


def row(thread: int, time: int, words: int = 3) -> bytes:
    return struct.pack(f"<HHI{words - 1}Q", 1, words, thread, time, *range(words - 2))


def test_rows_are_parted_where_programs_change() -> None:
    times = ProgramTimes()
    times.began(1, 5, 0)  # says nothing
    rows = [row(1, 1), row(2, 2, 4), row(1, 10), row(1, 20, 5), row(2, 21), row(3, 22), row(1, 30)]
    assert list(times.runs(b"".join(rows))) == [(0, b"".join(rows))]
    assert list(times.runs(b"")) == []
    times.began(1, 10, 1)
    times.began(2, 15, 2)
    times.began(2, 16, 2)
    times.began(1, 25, 3)
    times.began(1, 29, 0)
    for each in (times, ProgramTimes.restored(times.state())):
        assert list(each.runs(b"".join(rows))) == [
            (0, rows[0] + rows[1]),
            (1, rows[2] + rows[3]),
            (2, rows[4]),
            (0, rows[5] + rows[6]),
        ]
        assert each.state() == {"1": [(10, 1), (25, 3), (29, 0)], "2": [(15, 2)]}
        assert list(each.runs(b"")) == []


@pytest.mark.parametrize("state", [{"x": [(1, 2)]}, {"1": [(1,)]}, {"1": 7}, {"1": [("a", 1)]}])
def test_a_damaged_state_is_refused(state: dict[str, list[tuple[int, int]]]) -> None:
    with pytest.raises((ValueError, TypeError)):
        ProgramTimes.restored(state)


def test_a_program_that_is_over_is_forgotten() -> None:
    times = ProgramTimes()
    times.began(1, 10, 1)
    times.began(2, 10, 1)
    times.began(2, 20, 2)
    times.forget(1)
    assert times.state() == {"2": [(10, 1), (20, 2)]}
    times.forget(2)
    assert list(times.runs(row(2, 30))) == [(0, row(2, 30))]

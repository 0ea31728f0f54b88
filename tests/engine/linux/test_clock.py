"""The guest's time: when it starts, and how the times of the host's files fit in."""

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from engine.linux.clock import BLOCK_NS, CALL_NS, EPOCH, STOP_NS, GuestClock, past

SECOND = 10**9
YEAR = 365 * 86_400 * SECOND
TIMES = st.integers(0, EPOCH + 200 * YEAR)


@given(TIMES, TIMES)
def test_file_times_keep_their_order_and_never_lie_ahead(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert past(low, EPOCH) <= past(high, EPOCH) < EPOCH
    if high <= EPOCH - SECOND:
        assert (past(low, EPOCH), past(high, EPOCH)) == (low, high)
    else:
        assert past(high, EPOCH) >= EPOCH - SECOND


@given(st.integers(0, 10 * YEAR))
def test_files_of_one_build_keep_different_times(age: int) -> None:
    apart = SECOND * 15 // 100 if age <= YEAR else SECOND * 23 // 10
    assert past(EPOCH + age, EPOCH) < past(EPOCH + age + apart, EPOCH)


def test_the_start_can_be_chosen() -> None:
    assert GuestClock().realtime() // SECOND == EPOCH // SECOND
    late = GuestClock(start=EPOCH + YEAR)
    assert late.realtime() // SECOND == (EPOCH + YEAR) // SECOND
    assert late.file_time(EPOCH) == EPOCH
    assert late.file_time(EPOCH + 2 * YEAR) < EPOCH + YEAR


def test_calls_and_stops_take_time_once_a_timer_has_been_armed() -> None:
    clock = GuestClock()
    acts: list[Callable[[], None]]
    acts = [partial(clock.add_blocks, 1), clock.called, clock.stopped]
    for passing, times in ((False, [0, 0, 0]), (True, [BLOCK_NS, CALL_NS, STOP_NS])):
        clock.passing = passing
        taken: list[int] = []
        for act in acts:
            before = clock.peek()
            act()
            taken.append(clock.peek() - before)
        assert taken == times


def test_the_hosts_clock_leaves_the_times_of_files_alone() -> None:
    assert GuestClock(host=True).file_time(EPOCH + 50 * YEAR) == EPOCH + 50 * YEAR

"""POSIX timers: in the order in which they run out, however many there are."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from workcount import calls

from engine.linux.clock import GuestClock
from engine.linux.timers import PosixTimer, Timers


def _timers(count: int) -> tuple[GuestClock, Timers]:
    clock = GuestClock()
    timers = Timers(clock)
    for number in range(count):
        timers.posix[number] = PosixTimer(number, 1, 34, number)
    return clock, timers


_SETTING = st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(0, 15))


@given(st.lists(st.one_of(_SETTING, st.integers(1, 60)), max_size=40))
def test_any_sequence(steps: list[tuple[int, int, int] | int]) -> None:
    clock, timers = _timers(6)
    for step in steps:
        if isinstance(step, tuple):
            number, value, interval = step
            timers.arm_posix(timers.posix[number], value, interval)
        else:
            clock.jump(clock.peek() + step)
            now = clock.peek()
            wanted = []
            for timer in timers.posix.values():
                if timer.expiry and timer.expiry <= now:
                    more = (now - timer.expiry) // timer.interval if timer.interval else 0
                    wanted.append((timer, 1 + more))
            assert timers.expired_posix() == wanted
        armed = [timer.expiry for timer in timers.posix.values() if timer.expiry]
        assert timers.next() == min(armed, default=None)


def _use(count: int) -> None:
    clock, timers = _timers(count)
    for number, timer in timers.posix.items():
        timers.arm_posix(timer, 1_000_000 + number, 0)
        assert timers.next() is not None
        assert not timers.expired_posix()
    clock.jump(clock.peek() + 2_000_000)
    assert len(timers.expired_posix()) == count


def test_four_times_the_timers_are_four_times_the_work() -> None:
    few, many = (calls(partial(_use, count), 1 << 20) for count in (200, 800))
    assert many < 4.5 * few


def test_a_timer_set_again_and_again_leaves_nothing_behind() -> None:
    _, timers = _timers(1)
    for round in range(1000):
        timers.arm_posix(timers.posix[0], 1_000_000 + round, 0)
    assert len(timers._due) < 100

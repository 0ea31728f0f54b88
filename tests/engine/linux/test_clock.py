"""The guest's time: when it starts, and how the times of the host's files fit in."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from compiled import build
from guestrun import run
from hypothesis import given
from hypothesis import strategies as st

from engine.linux.clock import BLOCK_NS, CALL_NS, EPOCH, STOP_NS, GuestClock, past

_SPINS = r"""
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static void tick(int signal) {}
static void noted(union sigval value) {}

/* Work that has an end: it comes to it only if something is done between two signals. */
static void work(const char *what)
{
	volatile unsigned long done = 0;
	while (done < 50000) {
		done++;
		if (!(done % 1000))
			syscall(SYS_getppid);
	}
	printf("%s\n", what);
}

static void *naps(void *unused)
{
	for (;;)
		usleep(1);
}

static long long now(int clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void)
{
	static const long every[] = {1, 10, 100, 1000};
	char what[64];
	signal(SIGALRM, tick);
	signal(SIGPROF, tick);
	signal(SIGRTMIN, tick);
	for (int n = 0; n < (int)(sizeof every / sizeof *every); n++) {
		struct itimerval timer = {{0, every[n]}, {0, every[n]}}, off = {0};
		for (int which = 0; which < 3; which += 2) {
			setitimer(which, &timer, 0);
			sprintf(what, "timer %d of %ld us", which, every[n]);
			work(what);
			setitimer(which, &off, 0);
		}
		struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
		struct itimerspec spec = {{0, every[n] * 1000}, {0, every[n] * 1000}};
		timer_t id;
		timer_create(CLOCK_MONOTONIC, &event, &id);
		timer_settime(id, 0, &spec, 0);
		sprintf(what, "POSIX timer of %ld us", every[n]);
		work(what);
		timer_delete(id);
	}
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = noted};
	struct itimerspec spec = {{0, 200000}, {0, 200000}};
	timer_t id;
	timer_create(CLOCK_MONOTONIC, &event, &id);
	timer_settime(id, 0, &spec, 0);
	work("SIGEV_THREAD");
	timer_delete(id);
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	spec.it_interval.tv_nsec = spec.it_value.tv_nsec = 1000;
	timerfd_settime(fd, 0, &spec, 0);
	for (int n = 0; n < 1000; n++) {
		uint64_t times;
		read(fd, &times, 8);
	}
	work("timerfd");
	close(fd);
	pthread_t thread;
	pthread_create(&thread, 0, naps, 0);
	work("naps of 1 us");
	/* Processor time is never more than the time that has passed. */
	alarm(100);
	long long wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
	for (int n = 0; n < 5000; n++)
		syscall(SYS_getppid);
	cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("%s\n", now(CLOCK_MONOTONIC) - wall >= cpu ? "time passes" : "WRONG");
	return 0;
}
"""
"""Works beside timers and naps that are over at once, and compares its clocks."""

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


def test_programs_come_to_their_end_beside_timers(tmp_path: Path) -> None:
    """Those of 100 us and more do natively, too; no processor has more time than has passed."""
    build(tmp_path, "spins", _SPINS, "-O1", "-pthread")
    done = run("run", "./spins", cwd=tmp_path)
    timers = [
        f"{kind} of {every} us"
        for every in (1, 10, 100, 1000)
        for kind in ("timer 0", "timer 2", "POSIX timer")
    ]
    others = ["SIGEV_THREAD", "timerfd", "naps of 1 us", "time passes"]
    assert (done.out.splitlines(), done.code) == ([*timers, *others], 0), done.err


def test_the_hosts_clock_leaves_the_times_of_files_alone() -> None:
    assert GuestClock(host=True).file_time(EPOCH + 50 * YEAR) == EPOCH + 50 * YEAR

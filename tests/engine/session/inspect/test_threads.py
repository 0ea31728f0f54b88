"""The list of threads: the tree, states, what each waits for, who holds it."""

import re
from pathlib import Path

import pytest
from compiled import build
from controlkit import Held, held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import ThreadView

LOCKS = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER, robust;
static int pipes[2];
static void *one(void *unused)
{
    pthread_mutex_lock(&robust);
    pthread_mutex_lock(&first);
    usleep(1000);
    pthread_mutex_lock(&second);
    return unused;
}
static void *two(void *unused)
{
    pthread_mutex_lock(&second);
    usleep(1000);
    pthread_mutex_lock(&first);
    return unused;
}
static void *three(void *unused) { usleep(500); pthread_mutex_lock(&robust); return unused; }
int main(void)
{
    pthread_t threads[3];
    char byte;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    pipe(pipes);
    if (!fork()) read(pipes[0], &byte, 1);
    if (!fork()) _exit(9);
    if (!fork()) { if (!vfork()) read(pipes[0], &byte, 1), _exit(0); }
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, two, 0);
    pthread_create(&threads[2], 0, three, 0);
    pthread_join(threads[0], 0);
    return 0;
}
"""


def by_id(guest: Held) -> dict[int, ThreadView]:
    return {thread.tid: thread for thread in guest.view.listed}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> dict[int, ThreadView]:
    program = build(tmp_path_factory.mktemp("locks"), "locks", LOCKS, "-static", "-pthread")
    with held(str(program)) as guest:
        view = guest.do(cmd.Continue())
        assert view.reason == "stopped in a deadlock"
        return by_id(guest)


def test_who_waits_for_what_and_who_holds_it(stuck: dict[int, ThreadView]) -> None:
    first, one, two, three = (stuck[tid] for tid in (1000, 1004, 1005, 1006))
    assert (first.state, first.call, first.waits, first.holder) == (
        "S",
        "futex",
        "the end of 1004",
        0,
    )
    assert (one.waits, one.holder) == ("second", 1005)
    assert (two.waits, two.holder) == ("first", 1004)
    assert (three.waits, three.holder) == ("robust", 1004)
    assert "lock_wait" in one.location
    assert all(thread.ticks > 0 for thread in (first, one, two, three))


def test_processes_are_a_tree(stuck: dict[int, ThreadView]) -> None:
    shape = {tid: (one.pid, one.ppid, one.depth) for tid, one in stuck.items()}
    assert shape == {
        1000: (1000, 1, 0), 1004: (1000, 1, 1), 1005: (1000, 1, 1), 1006: (1000, 1, 1),
        1001: (1001, 1000, 1), 1002: (1002, 1000, 1), 1003: (1003, 1000, 1), 1007: (1007, 1003, 2),
    }  # fmt: skip
    assert list(stuck)[:4] == [1000, 1004, 1005, 1006]
    reader, ended, parent = stuck[1001], stuck[1002], stuck[1003]
    assert (reader.state, reader.call) == ("S", "read")
    assert re.fullmatch(r"fd 3 pipe:\[\d+\]", reader.waits)
    assert (ended.state, ended.waits, ended.location) == ("Z", "exited with 9", "")
    assert (parent.state, parent.waits) == ("D", "its child to end or to begin a program")


def test_what_runs_and_what_is_shown() -> None:
    with held(sample("x86_64", "race"), "2") as guest:
        guest.do(cmd.ToggleBreak("think"), cmd.Continue())
        threads = by_id(guest)
        assert [tid for tid, one in threads.items() if one.runs] == [1001]
        assert [tid for tid, one in threads.items() if one.shown] == [1001]
        assert (threads[1001].location, threads[1001].state) == ("think+0x0", "R")
        assert sum(one.ticks for one in threads.values()) == guest.view.time
        guest.do(cmd.ChooseThread(1002))
        assert [tid for tid, one in by_id(guest).items() if one.runs] == [1001]
        assert [tid for tid, one in by_id(guest).items() if one.shown] == [1002]


def test_a_stopped_process_and_one_that_was_killed(tmp_path: Path) -> None:
    source = r"""
    #include <signal.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void here(void) { __asm__ volatile(""); }
    int main(void)
    {
        int one = fork();
        if (!one) raise(SIGSTOP);
        int two = fork();
        if (!two) raise(SIGTERM);
        waitid(P_PID, one, 0, WSTOPPED | WNOWAIT);
        waitid(P_PID, two, 0, WEXITED | WNOWAIT);
        here();
        return 0;
    }
    """
    program = build(tmp_path, "stops", source, "-static", "-O1")
    with held(str(program)) as guest:
        guest.do(cmd.ToggleBreak("here"), cmd.Continue())
        threads = by_id(guest)
        assert threads[1001].state == "T"
        assert (threads[1002].state, threads[1002].waits) == ("Z", "killed by SIGTERM")


def test_poll_and_select_name_what_they_wait_for(tmp_path: Path) -> None:
    source = r"""
    #include <poll.h>
    #include <sys/select.h>
    #include <unistd.h>
    __attribute__((noinline)) void here(void) { __asm__ volatile(""); }
    int main(void)
    {
        int pipes[2];
        pipe(pipes);
        if (!fork()) {
            struct pollfd items[3] = {{pipes[1], POLLOUT}, {0, POLLIN}, {pipes[0], POLLIN}};
            poll(items + 1, 2, -1);
            _exit(0);
        }
        if (!fork()) {
            fd_set set;
            FD_ZERO(&set);
            FD_SET(0, &set);
            select(1, &set, 0, 0, 0);
            _exit(0);
        }
        usleep(1000);
        here();
        return 0;
    }
    """
    program = build(tmp_path, "ready", source, "-static", "-O1")
    with held(str(program)) as guest:
        guest.do(cmd.ToggleBreak("here"), cmd.Continue())
        threads = by_id(guest)
        assert re.fullmatch(r"fd 0 /dev/pts/0, fd 3 pipe:\[\d+\]", threads[1001].waits)
        assert threads[1002].waits == "fd 0 /dev/pts/0"

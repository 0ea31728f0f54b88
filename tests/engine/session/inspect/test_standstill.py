"""Threads that wait for each other are told, with the calls they make and where."""

from pathlib import Path

from compiled import build
from guestrun import run

DEADLOCK = r"""
#include <pthread.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *other(void *unused)
{
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&first);
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&thread, 0, other, 0);
    pthread_mutex_lock(&first);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&second);
    return 0;
}
"""
PIPE = r"""
#include <unistd.h>
int main(void)
{
    int ends[2];
    char byte;
    pipe(ends);
    return read(ends[0], &byte, 1);
}
"""
SIGNALLED = r"""
#include <signal.h>
#include <unistd.h>
static void bye(int number) { _exit(6); }
int main(void) { signal(SIGALRM, bye); alarm(5); pause(); return 0; }
"""


def test_each_thread_is_shown_with_its_call_and_backtrace(tmp_path: Path) -> None:
    program = build(tmp_path, "dead", DEADLOCK, "-static", "-pthread", "-g")
    done = run("run", str(program), cwd=tmp_path)
    assert done.code == 124
    assert "deadlock: every thread waits for another one" in done.err
    threads = done.err.split("thread 100")[1:]
    assert len(threads) == 2
    for text, function in zip(threads, ("main", "other"), strict=True):
        assert "of process 1000: futex(" in text
        assert f" in {function}+" in text


def test_a_wait_for_oneself_is_one_too(tmp_path: Path) -> None:
    program = build(tmp_path, "pipe", PIPE, "-static")
    done = run("trace", "-e", "p main", "-o", "/dev/null", str(program), cwd=tmp_path)
    assert done.code == 124
    assert "thread 1000 (pipe) of process 1000: read(0x3, " in done.err


def test_who_waits_for_a_timer_or_a_signal_does_not_stand_still(tmp_path: Path) -> None:
    program = build(tmp_path, "signalled", SIGNALLED, "-static")
    assert run("run", str(program), cwd=tmp_path).code == 6


def test_who_is_left_behind_does_not_change_the_exit_code(tmp_path: Path) -> None:
    """As a daemon is that a program starts: the program has done what it was to do."""
    source = r"""
    #include <signal.h>
    #include <unistd.h>
    int main(int count, char **words) {
        int ends[2];
        char byte;
        pipe(ends);
        if (!fork()) return read(ends[0], &byte, 1);
        if (count > 1) raise(SIGTERM);
        return 5;
    }
    """
    program = build(tmp_path, "leaves", source, "-static", "-w")
    for words, code in (((), 5), (("dies",), 128 + 15)):
        done = run("run", str(program), *words, cwd=tmp_path)
        assert done.code == code
        assert "deadlock" not in done.err
        assert "left behind by the first process" in done.err
        assert "thread 1001 (leaves) of process 1001: read(" in done.err

"""What a process leaves behind when it ends."""

from pathlib import Path

from compiled import build
from guestrun import run

TIMERS = r"""
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    if (!fork()) {
        struct itimerval often = {{0, 1000}, {0, 1000}};
        struct itimerspec too = {{0, 1000000}, {0, 1000000}};
        struct sigevent none = {.sigev_notify = SIGEV_NONE};
        timer_t timer;
        signal(SIGALRM, SIG_IGN);
        setitimer(ITIMER_REAL, &often, 0);
        timer_create(CLOCK_MONOTONIC, &none, &timer);
        timer_settime(timer, 0, &too, 0);
        _exit(0);
    }
    int ends[2];
    pipe(ends);
    return read(ends[0], ends, 1); /* nobody else can end this: the child is a zombie */
}
"""


def test_timers_of_a_process_that_has_ended_are_none(tmp_path: Path) -> None:
    """The others' deadlock is found."""
    program = build(tmp_path, "timers", TIMERS, "-static")
    done = run("run", "--max-blocks", "2000000", str(program), cwd=tmp_path)
    assert "deadlock" in done.err


MEMORY = r"""
#include <stdio.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
    if (argc > 1) return 0;
    char *words[] = {argv[0], "child", 0};
    pid_t pid;
    posix_spawn(&pid, argv[0], 0, 0, words, environ);
    waitpid(pid, 0, 0);
    char *much = mmap(0, 200 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int zero = open("/dev/zero", O_RDONLY);
    for (long at = 0, got = 1; at < 200 << 20 && got > 0; at += got)
        got = read(zero, much + at, (200 << 20) - at);
    printf("still here\n");
    return 0;
}
"""


def test_memory_used_up_after_a_vfork_ends_the_one_that_uses_it(tmp_path: Path) -> None:
    program = build(tmp_path, "memory", MEMORY, "-static")
    done = run("run", "--memory", "64M", str(program), cwd=tmp_path)
    assert (done.code, done.out) == (137, "")
    assert "used up its 64 MiB" in done.err

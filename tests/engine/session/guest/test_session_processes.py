"""Programs with threads and processes under probes: who is hit, what is named, what is told."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

THREADS = r"""
#include <pthread.h>
#include <sys/prctl.h>
__attribute__((noinline)) int work(long n)
{
    volatile long left = n * 20000;
    while (left) left--;
    return 0;
}
static void *thread(void *name)
{
    prctl(PR_SET_NAME, name);
    for (long turn = 0; turn < 20; turn++) work(turn % 3);
    return 0;
}
int main(void)
{
    pthread_t one, two;
    pthread_create(&one, 0, thread, "first");
    pthread_create(&two, 0, thread, "second");
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
"""
CRASH = r"""
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void boom(void) { *(volatile int *)8 = 1; }
int main(int argc, char **argv)
{
    if (argc > 2) {
        if (!fork()) boom();
        wait(0);
        return 3;
    }
    if (argc > 1) execl(argv[0], argv[0], (char *)0);
    boom();
}
"""


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("threads"), "threads", THREADS, "-static", "-pthread")


@pytest.mark.parametrize("technique", ["breakpoint", "jump"])
def test_events_name_their_threads(threads: Path, technique: str) -> None:
    words = ("--technique", technique, "-e", "p work n=%di", "-e", "r work", "-o", "out")
    done = run("trace", *words, str(threads), cwd=threads.parent)
    assert done.code == 0
    rows = (threads.parent / "out").read_text("utf-8")
    found = Counter(re.findall(r"^ *(\S+-\d+) .*: (p|r)_work", rows, re.M))
    assert found == {
        (who, kind): 20 for who in ("first-1001", "second-1002") for kind in ("p", "r")
    }


def test_a_graph_keeps_threads_apart(threads: Path) -> None:
    done = run(
        "graph", "-f", "work", "-f", "thread", "-o", "graph", str(threads), cwd=threads.parent
    )
    assert done.code == 0
    text = (threads.parent / "graph").read_text("utf-8")
    assert text.count("|  thread() {") == 2
    assert text.count("|    work();") + text.count("|    work() {") == 40
    assert re.search(r"0\) +first-1001 +=> +second-1002", text)


def test_probes_that_the_engine_serves_change_nothing(threads: Path) -> None:
    done = run("diff", "--served", "-e", "p work", "-r", "work", str(threads), cwd=threads.parent)
    assert done.code == 0, done.err


def test_backtraces_of_all_threads(threads: Path) -> None:
    where = ("--at", "work", "--hit", "30")
    done = run("bt", "--all-threads", "--json", *where, str(threads), cwd=threads.parent)
    found = json.loads(done.out)
    here = [frame["function"] for frame in found["frames"]]
    assert here[:2] == ["work", "thread"]
    (main, other) = found["threads"]
    assert (main["thread"], main["process"]) == (1000, 1000)
    assert main["waits_in"] == "futex"
    assert "main" in [frame["function"] for frame in main["frames"]]
    assert {other["comm"]} < {"first", "second"}
    text = run("bt", "--all-threads", *where, str(threads), cwd=threads.parent).out
    assert "\nthread 1000 (threads) of process 1000 waits in futex\n#0 " in text


def test_the_crash_of_another_program_is_named_by_its_own_files(tmp_path: Path) -> None:
    program = build(tmp_path, "crash", CRASH, "-O1")
    done = run("trace", "-e", "p main", "-o", "out", str(program), "again", cwd=tmp_path)
    assert done.code == 139
    assert " boom+0x0 (crash): mov" in done.err.replace(f"{tmp_path}/", "")
    assert (tmp_path / "out").read_text("utf-8").count("p_main_0: (main+0x0/") == 2
    alone = ("trace", "--follow", "no", "-e", "p main", "-o", "out", str(program), "again")
    done = run(*alone, cwd=tmp_path)
    assert "began another program; its probes stayed with the first (--follow no)" in done.err
    assert (tmp_path / "out").read_text("utf-8").count("p_main_0: (main+0x0/") == 1


def test_the_crash_of_a_child_is_told(tmp_path: Path) -> None:
    program = build(tmp_path, "crash", CRASH, "-O1")
    done = run("trace", "-e", "p boom", "-o", "out", str(program), "a", "child", cwd=tmp_path)
    assert done.code == 3
    assert "process 1001 (crash) killed by SIGSEGV: write at 0x8" in done.err
    assert (tmp_path / "out").read_text("utf-8").count("crash-1001 ") == 1


MANY = r"""
#include <pthread.h>
#include <stdlib.h>
static long count;
__attribute__((noinline)) int work(long n) { __asm__ volatile("" : : "r"(n)); return n; }
static void *thread(void *n)
{
    for (long turn = 0; turn < count; turn++) work((long)n);
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t threads[8];
    count = atol(argv[argc - 1]);
    for (long n = 0; n < 8; n++) pthread_create(&threads[n], 0, thread, (void *)n);
    for (int n = 0; n < 8; n++) pthread_join(threads[n], 0);
    return 0;
}
"""
HELD = r"""
#include <pthread.h>
#include <unistd.h>
long raw(long number, long a, long b, long c);
__asm__(".globl raw\nraw: mov %rdi,%rax\n mov %rsi,%rdi\n mov %rdx,%rsi\n mov %rcx,%rdx\n"
        ".globl the_call\nthe_call: syscall\n.globl behind\nbehind: ret\n");
static int pipes[8][2];
static void *thread(void *n)
{
    int me = (long)n, next = (me + 1) % 8;
    char byte;
    for (int turn = 0; turn < 1000; turn++) {
        if (raw(0, pipes[me][0], (long)&byte, 1) != 1) return "read";
        if (raw(1, pipes[next][1], (long)&byte, 1) != 1) return "write";
    }
    return 0;
}
int main(void)
{
    pthread_t threads[8];
    void *why;
    for (int n = 0; n < 8; n++)
        if (pipe(pipes[n])) return 1;
    for (long n = 0; n < 8; n++) pthread_create(&threads[n], 0, thread, (void *)n);
    for (int n = 0; n < 3; n++)
        if (write(pipes[n][1], "x", 1) != 1) return 2;
    for (int n = 0; n < 8; n++) {
        pthread_join(threads[n], &why);
        if (why) return 3;
    }
    return 0;
}
"""


@pytest.mark.parametrize("count", [1000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("technique", ["breakpoint", "jump"])
def test_eight_threads_on_one_point_lose_nothing(
    tmp_path: Path, technique: str, count: int
) -> None:
    program = build(tmp_path, "many", MANY, "-O1", "-pthread", "-fno-inline")
    words = ("--technique", technique, "-e", "p:g/in work", "-e", "r:g/out work", "-o", "out")
    done = run("trace", *words, str(program), str(count), cwd=tmp_path)
    assert done.code == 0, done.err
    assert "missed" not in done.err
    found = Counter(re.findall(r"-(\d+) .*: (in|out): ", (tmp_path / "out").read_text("utf-8")))
    assert found == {
        (str(thread), name): count for thread in range(1001, 1009) for name in ("in", "out")
    }


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["strict", "kernel"])
def test_a_probed_system_call_that_blocks(tmp_path: Path, mode: str) -> None:
    """Its step is over before the thread waits: slots do not run out."""
    program = build(tmp_path, "held", HELD, "-O1", "-pthread")
    words = ("--mode", mode, "-e", "p:g/at the_call", "-e", "p:g/behind behind", "-o", "out")
    done = run("trace", *words, str(program), cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    text = (tmp_path / "out").read_text("utf-8")
    found = Counter(re.findall(r"-(\d+) .*: (at|behind): ", text))
    assert found == {
        (str(thread), name): 2000 for thread in range(1001, 1009) for name in ("at", "behind")
    }


def test_a_pipeline_under_a_probe_of_the_library(tmp_path: Path) -> None:
    """A uprobe on libc's `write` sees what each applet writes by it, and nothing else's."""
    script = "printf 'b\\na\\nc\\n' | cat | sort | tr a-c x-z | sed s/x/one/ | tail -n 2"
    words = ("-e", "p:g/write libc.so.6:write n=%dx:u64", "-e", "syscalls/sys_enter_write")
    done = run("trace", *words, "-o", "out", "/bin/bash", "-c", script, cwd=tmp_path)
    assert (done.code, done.out) == (0, "y\nz\n")
    text = (tmp_path / "out").read_text("utf-8")
    probe = Counter(re.findall(r"^ *(\S+-\d+) .*: write: ", text, re.M))
    calls = Counter(re.findall(r"^ *(\S+-\d+) .*: sys_write\(", text, re.M))
    assert probe == calls
    assert {who.partition("-")[0] for who in probe} >= {"cat", "sort", "tr", "sed", "tail"}
    assert len({who.partition("-")[2] for who in probe}) >= 5

"""Motions are one thread's, or one goroutine's: others that pass their places do not end them."""

import subprocess
from pathlib import Path

import pytest
from compiled import tool
from gdbwords import said

from engine.session.protocol.config import GuestConfig, turns_of

COMPILERS = {
    "x86_64": "gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
}
THREADS = """\
#include <pthread.h>
#include <sched.h>
volatile int total;
__attribute__((noinline)) int part(int n)
{
    for (volatile int i = 0; i < 300; i++)
        total += n;
    sched_yield();
    return n;
}
__attribute__((noinline)) int around(int who)
{
    int k = 0;
    for (int i = 0; i < 20; i++) {
        k += part(who);
        k++;
    }
    return k;
}
static void *work(void *p) { return (void *)(long)around((int)(long)p); }
int main(void)
{
    pthread_t t[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&t[i], 0, work, (void *)(i + 1));
    around(7);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return 0;
}
"""
YIELDS = """\
#include <pthread.h>
volatile int total;
static inline __attribute__((always_inline)) void yield(void)
{
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "0"(24) : "rcx", "r11", "memory");
}
__attribute__((noinline)) int around(int who)
{
    int k = 0;
    for (int i = 0; i < 20; i++) {
        yield();
        k += who;
        total++;
    }
    return k;
}
static void *work(void *p)
{
    int v = around((int)(long)p);
    return (void *)(long)v;
}
int main(void)
{
    pthread_t t[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&t[i], 0, work, (void *)(i + 1));
    around(7);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return total & 1;
}
"""
LIBRARY = """\
#include <pthread.h>
#include <sched.h>
int shared(int n);
static int (*volatile other)(int) = shared;
static volatile int stop;
static void *work(void *p) { int s = 0; while (!stop) s += other(1000); return (void *)(long)s; }
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 4; i++)
        sched_yield();
    int k = shared(1);
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return k & 1;
}
"""
GO = """\
package main

import (
\t"fmt"
\t"runtime"
\t"sync"
)

//go:noinline
func deep(n int) int {
\tvar pad [64]int
\tif n == 0 {
\t\treturn pad[0]
\t}
\treturn deep(n-1) + 1 + pad[n%64]
}

//go:noinline
func part(who int) int {
\tfor i := 0; i < 3; i++ {
\t\truntime.Gosched()
\t}
\treturn deep(who * 40)
}

//go:noinline
func around(who int) int {
\tk := 0
\tfor i := 0; i < 20; i++ {
\t\tk += part(who)
\t\tk++
\t}
\treturn k
}

func main() {
\tvar g sync.WaitGroup
\tfor i := 1; i <= 4; i++ {
\t\tg.Add(1)
\t\tgo func(i int) { fmt.Println(around(i)); g.Done() }(i)
\t}
\tg.Wait()
}
"""


def values(text: str) -> list[str]:
    """What `print` has printed."""
    return [line.partition(" = ")[2] for line in text.splitlines() if line.startswith("$")]


@pytest.mark.parametrize("arch", COMPILERS)
def test_steps_stay_in_their_thread(tmp_path: Path, arch: str) -> None:
    (tmp_path / "p.c").write_text(THREADS)
    command = [tool(COMPILERS[arch]), "-g", "-O0", "-static", "-pthread", "-o", "p", "p.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    config = GuestConfig(str(tmp_path / "p"))
    stop = ("break 15 if who == 1 && i == 3", "run", "delete")
    for words, line in (
        (("next",), 16),
        (("next",) * 3, 15),
        (("step", "finish", "next"), 16),
        (("step", "up", "until 16"), 16),
        (("advance 16", "next", "advance 15"), 15),
        (("step", "advance 9", "next", "next"), 16),
    ):
        where, source, number = said(
            config, *stop, *words, "frame function around", "p $_thread"
        ).splitlines()[-3:]
        assert "around (who=1) at " in where
        assert where.endswith(f"p.c:{line}")
        assert source.startswith(f"{line}\t")
        assert number.endswith(" = 2")


def test_a_step_waits_for_its_thread_and_tells_of_its_end(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(YIELDS)
    command = [tool("gcc"), "-g", "-O0", "-static", "-pthread", "-o", "p", "p.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    config = GuestConfig(str(tmp_path / "p"))
    stop = ("break 12 if who == 1 && i == 3", "run", "delete")
    assert values(said(config, *stop, *("next", "p $_thread") * 9)) == ["2"] * 9
    last = ("break 21 if v == 20", "run", "delete", *("next",) * 4)
    assert "thread 1001 has ended\n" in said(config, *last)


@pytest.mark.slow
def test_a_step_into_a_library_is_the_threads(tmp_path: Path) -> None:
    gcc = tool("gcc")
    (tmp_path / "p.c").write_text(LIBRARY)
    (tmp_path / "shared.c").write_text("int shared(int n)\n{\n    return n + 1;\n}\n")
    rules = ["-Wl,-z,lazy", "-Wl,-rpath,$ORIGIN"]
    for line in (
        ["-shared", "-fPIC", "-g", "-o", "libshared.so", "shared.c"],
        ["-g", "-O0", "-o", "p", "p.c", "-L.", "-lshared", "-pthread", *rules],
    ):
        subprocess.run([gcc, *line], cwd=tmp_path, check=True)
    turns = turns_of("5-50")
    assert turns is not None
    for seed in range(4):
        config = GuestConfig(
            str(tmp_path / "p"),
            shares=((str(tmp_path), False),),
            turns=turns,
            seed=seed,
        )
        assert values(said(config, "break 14", "run", "step", "p n")) == ["1"]


def test_steps_follow_a_goroutine_to_another_thread_and_stack(tmp_path: Path) -> None:
    (tmp_path / "p.go").write_text(GO)
    command = [tool("go"), "build", "-gcflags=-N -l", "-o", "p", "p.go"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"go cannot build it: {done.stderr[-200:]}")
    over = ("next", "next", "next", "p who", "p $_thread") * 14
    stop = ("break p.go:30 if who == 2 && i == 3", "run", "delete")
    out = values(said(GuestConfig(str(tmp_path / "p"), cpus=4), *stop, *over))
    assert out[::2] == ["2"] * 14
    assert len(set(out[1::2])) > 1  # else nothing has moved

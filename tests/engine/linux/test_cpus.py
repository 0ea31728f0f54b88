"""Processors that a guest is told of."""

import os
import re
from pathlib import Path

import pytest
from compiled import build
from guestrun import run
from hypothesis import given
from hypothesis import strategies as st

from engine.linux import cpus

TOLD = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void show(const char *who)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    long size = syscall(SYS_sched_getaffinity, 0, sizeof set, &set);
    printf("%s %ld %d first %d ", who, size, CPU_COUNT(&set), CPU_ISSET(0, &set));
    printf("on %d\n", sched_getcpu());
    fflush(stdout);
}
static void *thread(void *unused) { show("thread"); return unused; }
int main(int argc, char **argv)
{
    cpu_set_t set;
    pthread_t other;
    char small[4];
    if (argc > 1) { show("exec"); return 0; }
    show("all");
    CPU_ZERO(&set);
    CPU_SET(2, &set);
    CPU_SET(3, &set);
    CPU_SET(999, &set);
    printf("set %d\n", sched_setaffinity(0, sizeof set, &set));
    show("two");
    pthread_create(&other, 0, thread, 0);
    pthread_join(other, 0);
    if (!fork()) { show("child"); execl(argv[0], argv[0], "again", (char *)0); }
    wait(0);
    CPU_ZERO(&set);
    CPU_SET(999, &set);
    int none = sched_setaffinity(0, sizeof set, &set);
    printf("none %d %d\n", none, errno);
    errno = 0;
    none = syscall(SYS_sched_getaffinity, 0, sizeof small, small);
    printf("small %d %d\n", none, errno);
    printf("%ld %ld\n", sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF));
    return 0;
}
"""


def test_what_it_is_told(tmp_path: Path) -> None:
    program = build(tmp_path, "told", TOLD, "-pthread")
    done = run("run", "--cpus", "4", str(program), cwd=tmp_path)
    assert done.out.splitlines() == [
        "all 8 4 first 1 on 0",
        "set 0",
        "two 8 2 first 0 on 2",
        "thread 8 2 first 0 on 2",
        "child 8 2 first 0 on 2",
        "exec 8 2 first 0 on 2",
        "none -1 22",
        "small -1 22",
        "4 4",
    ]
    one = run("run", str(program), cwd=tmp_path).out.splitlines()
    assert one[:2] == ["all 8 1 first 1 on 0", "set -1"]
    assert run("run", "--cpus", "70", str(program), cwd=tmp_path).out.startswith("all 16 70 ")


def test_files_about_them(tmp_path: Path) -> None:
    paths = ("/sys/devices/system/cpu/online", "/sys/devices/system/cpu/cpu5/topology/core_cpus")
    words = ("/proc/cpuinfo", "/proc/stat", "/proc/self/status", *paths)
    done = run("run", "--cpus", "6", "/bin/cat", *words, cwd=tmp_path)
    assert done.code == 0
    assert re.findall(r"^processor\s*: (\d+)$", done.out, re.M) == list("012345")
    assert re.findall(r"^cpu(\d*) +\d", done.out, re.M) == ["", *"012345"]
    assert "Cpus_allowed:\t3f\nCpus_allowed_list:\t0-5\n" in done.out
    assert done.out.endswith("0-5\n20\n")


@pytest.mark.parametrize("count", ["0", "257", "many"])
def test_numbers_that_cannot_be(tmp_path: Path, count: str) -> None:
    done = run("run", "--cpus", count, "/bin/true", cwd=tmp_path)
    assert done.code == 2
    assert "--cpus" in done.err


@given(st.integers(1, 256).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, (1 << n) - 1))))
def test_texts_of_sets(given: tuple[int, int]) -> None:
    """Read back they are the same, and have the kernel's widths."""
    count, mask = given
    text = cpus.mask_text(mask, count)
    assert int(text.replace(",", ""), 16) == mask
    assert [len(part) for part in text.split(",")][1:] == [8] * ((count - 1) // 32)
    members: set[int] = set()
    for part in cpus.list_text(mask).split(","):
        low, _, high = part.partition("-")
        members |= set(range(int(low), int(high or low) + 1))
    assert members == {number for number in range(count) if mask >> number & 1}
    assert cpus.first(mask) == min(members)


def test_they_are_as_the_host_prints_them() -> None:
    status = Path("/proc/self/status").read_text("ascii")
    mask = sum(1 << number for number in os.sched_getaffinity(0))
    listed = re.search(r"^Cpus_allowed_list:\t(\S+)$", status, re.M)
    assert listed is not None
    assert cpus.list_text(mask) == listed[1]

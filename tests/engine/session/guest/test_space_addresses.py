"""Every executable mapping of a file in one process is probed, as Linux's uprobes are.

Linux counts the same calls: 8 of the program with namespaces, 7 of that with mappings by hand.
"""

import re
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

PLUG = "int calls;\n__attribute__((noinline)) int work(int n) { calls++; return n * 3; }\n"

NAMESPACES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
static int call(void *h, int n) { return ((int (*)(int))dlsym(h, "work"))(n); }
int main(int argc, char **argv) {
    void *first = dlopen(argv[1], RTLD_NOW);
    for (int i = 0; i < 3; i++) call(first, i);
    void *second = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
    void *third = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
    call(second, 20); call(third, 30);
    dlclose(second);
    call(third, 31); call(first, 3);
    if (argc > 2) { if (!fork()) { call(third, 40); call(first, 41); _exit(0); } wait(0); }
    call(third, 32);
    return 0;
}
"""

BY_HAND = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDONLY);
    void *h = dlopen(argv[1], RTLD_NOW);
    int (*work)(int) = dlsym(h, "work");
    Dl_info info;
    dladdr((void *)work, &info);
    char *base = info.dli_fbase;
    work(1);
    for (int i = 0; i < 2; i++) {
        char *p = mmap(0, 0x5000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mmap(p + 0x1000, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0x1000);
        memcpy(p + 0x3000, base + 0x3000, 0x1000);
        int (*copy)(int) = (void *)(p + ((char *)work - base));
        copy(10); work(2); copy(11);
        if (i == 0) munmap(p + 0x1000, 0x1000);
    }
    return 0;
}
"""


def hits(program: Path, plug: Path, *options: str) -> tuple[list[str], str]:
    """Arguments of the calls that were recorded, and all that was told."""
    words = ("-o", "/dev/stderr", "-e", "p:w plug.so:work n=%di", *options)
    folder = program.parent
    done = run(
        "trace", *words, "--env", f"LD_LIBRARY_PATH={folder}", str(program), str(plug), cwd=folder
    )
    assert done.code == 0, done.err
    return re.findall(r" w: .* n=0x([0-9a-f]+)", done.err), done.err


@pytest.mark.parametrize("technique", ["auto", "breakpoint", "jump"])
def test_all_namespaces_are_probed(tmp_path: Path, technique: str) -> None:
    plug = build(tmp_path, "plug.so", PLUG, "-shared", "-fPIC", "-O1")
    program = build(tmp_path, "spaces", NAMESPACES, "-O1")
    found, told = hits(program, plug, "--technique", technique)
    assert found == ["0", "1", "2", "14", "1e", "1f", "3", "20"]
    assert "dropped" not in told


def test_a_mapping_by_hand_is_probed(tmp_path: Path) -> None:
    plug = build(tmp_path, "plug.so", PLUG, "-shared", "-fPIC", "-O1")
    program = build(tmp_path, "hand", BY_HAND, "-O1")
    found, told = hits(program, plug)
    assert found == ["1", "a", "2", "b", "a", "2", "b"]
    assert "dropped" not in told


def test_a_new_process_has_them_too(tmp_path: Path) -> None:
    plug = build(tmp_path, "plug.so", PLUG, "-shared", "-fPIC", "-O1")
    program = build(tmp_path, "spaces", NAMESPACES, "-O1")
    environment = "--env", f"LD_LIBRARY_PATH={tmp_path}"
    events = "-e", "p:w plug.so:work n=%di", "-e", "r:x plug.so:work v=%ax"
    words = (*events, *environment, "-o", "/dev/stderr")
    done = run("trace", *words, str(program), str(plug), "fork", cwd=tmp_path)
    assert len(re.findall(" w: ", done.err)) == len(re.findall(" x: ", done.err)) == 10

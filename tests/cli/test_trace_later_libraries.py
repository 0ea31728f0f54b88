"""Probes in libraries that the program opens later, by name and by path."""

from pathlib import Path

import pytest
from compiled import build
from guestrun import run

PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    void *plug = dlopen("./plug.so", RTLD_NOW);
    int (*work)(int) = (int (*)(int))dlsym(plug, "work");
    return printf("%d\n", work(5)) != 3;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path, "plug.so", "int work(int n) { return n * 3; }", "-O1", "-shared", "-fPIC")
    build(tmp_path, "program", PROGRAM, "-O1")
    return tmp_path


@pytest.mark.parametrize("place", ["plug.so:work", "plug:work"])
def test_a_name_waits_for_the_file_that_it_was_taken_for(place: str, folder: Path) -> None:
    done = run("trace", "-e", f"p:m/w {place} n=%di:s32", "./program", cwd=folder)
    assert (done.out, done.code) == ("15\n", 0)
    assert [line.partition("w: ")[2] for line in done.err.splitlines() if " w: " in line] == [
        "(work+0x0/0x4) n=5"
    ]
    told = f"opens later are taken to be these:\nkprobe-tui:   {place[:-5]}: {folder}/plug.so\n"
    assert done.err.count(told) == 1


def test_what_is_never_opened_is_told(folder: Path) -> None:
    build(folder, "idle", "int main(void) { return 0; }", "-O1")
    done = run("trace", "-e", "p:m/w plug.so:work", "./idle", cwd=folder)
    assert "never placed, as their file was not mapped:\nkprobe-tui:   plug.so:work" in done.err
    assert done.code == 0


def test_a_name_of_nothing_is_refused_with_the_way_out(folder: Path) -> None:
    done = run("trace", "-e", "p:m/w nothere.so:work", "./program", cwd=folder)
    assert done.code == 2
    assert "no library 'nothere.so' among the guest's" in done.err
    assert "PATH:SYMBOL names one that it opens by its path" in done.err


@pytest.mark.parametrize("path", ["./plug.so", "{folder}/plug.so"])
def test_a_symbol_by_the_path_of_its_file(path: str, folder: Path) -> None:
    place = f"{path.format(folder=folder)}:work"
    done = run("trace", "-e", f"p:m/w {place}", "-e", f"r:m/v {place}", "./program", cwd=folder)
    assert "w: (work+0x0/0x4)" in done.err
    assert "<- work)" in done.err
    assert "taken to be" not in done.err
    kernel = run("trace", "--mode", "kernel", "-e", f"p:m/w {place}", "./program", cwd=folder)
    assert kernel.code == 2
    assert "PATH:SYMBOL is not the kernel's (EINVAL)" in kernel.err
    matched = run("trace", "-f", f"{path.format(folder=folder)}:w*", "./program", cwd=folder)
    assert "p_work_0: (work+0x0/0x4)" in matched.err


def test_a_histogram_of_pointers_names_the_field_of_the_strings(folder: Path) -> None:
    event = "syscalls/sys_enter_openat"
    words = ("trace", "-e", event, "--trigger")
    done = run(*words, f"{event}:hist:keys=filename", "./program", cwd=folder)
    told = "hist:keys=filename counts pointers, not the strings there: hist:keys=__filename_val"
    assert done.err.count(told) == 1
    right = run(*words, f"{event}:hist:keys=__filename_val", "./program", cwd=folder)
    assert "__filename_val: ./plug.so" in right.err
    assert "counts pointers" not in right.err

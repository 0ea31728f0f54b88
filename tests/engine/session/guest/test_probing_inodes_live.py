"""Uprobes on files of many names, counted by the running kernel and in a guest: the same.

`KPROBE_TUI_LIVE_KERNEL=1`, as root, on x86-64 with tracefs mounted: mounts are made, and events in
a group of our own.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from compiled import build
from guestrun import run
from livekernel import LIVE_KERNEL, TRACING, live_uprobes

from engine.image import ElfImage, SymbolTable

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE_KERNEL) or platform.machine() != "x86_64" or os.geteuid() != 0,
    reason=f"changes the running kernel: wants {LIVE_KERNEL}, x86-64 and root",
)

LIBRARY: Final = "int work(int x) { return x * 7 + 1; }"
STEPS: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static int copy(const char *from, int out) {
    char data[65536];
    int in = open(from, O_RDONLY);
    for (int size; (size = read(in, data, sizeof data)) > 0;)
        if (write(out, data, size) != size) perror("write");
    close(in);
    return out;
}
int main(int argc, char **argv) {
    void *library = 0;
    int (*work)(int) = 0;
    for (int n = 1; n < argc; n++) {
        const char *step = argv[n];
        if (!strcmp(step, "call")) {
            if (work(n) != n * 7 + 1) return 3;
        } else if (!strcmp(step, "close")) {
            dlclose(library);
        } else if (!strcmp(step, "fork")) {
            int child = fork(), status = 0;
            if (child) return waitpid(child, &status, 0), WEXITSTATUS(status);
        } else if (!strcmp(step, "exec")) {
            argv[n] = argv[0];
            execv(argv[0], argv + n);
            return 4;
        } else if (!strcmp(step, "unlink")) {
            unlink(argv[++n]);
        } else if (!strcmp(step, "link")) {
            link(argv[n + 1], argv[n + 2]), n += 2;
        } else if (!strcmp(step, "rename")) {
            rename(argv[n + 1], argv[n + 2]), n += 2;
        } else if (!strcmp(step, "copy")) {
            int out = open(argv[n + 2], O_WRONLY | O_CREAT | O_TRUNC, 0755);
            close(copy(argv[n + 1], out)), n += 2;
        } else {
            char name[64];
            if (!strcmp(step, "memfd"))
                snprintf(name, sizeof name, "/proc/self/fd/%d",
                         copy(argv[++n], memfd_create("code", 0))), step = name;
            library = dlopen(step, RTLD_NOW);
            if (!library) return puts(dlerror()), 5;
            work = dlsym(library, "work");
        }
    }
    return 0;
}
"""
CASES: Final = {
    # What is probed, and the steps of the program; paths are those of `place`.
    "bound file": ("lib.so", "bound.so call close lib.so call"),
    "probed by the bound name": ("bound.so", "lib.so call close bound.so call"),
    "bound directory": ("lib.so", "there/lib.so call close there/hard.so call"),
    "probed in the bound directory": ("there/lib.so", "lib.so call"),
    "hard link": ("hard.so", "lib.so call close sym.so call"),
    "symlink": ("sym.so", "hard.so call"),
    "lower path of an overlay": ("lower/lib.so", "merged/lib.so call close lower/lib.so call"),
    "overlay": ("merged/lib.so", "lower/lib.so call close merged/lib.so call"),
    "upper path of an overlay": ("upper/up.so", "merged/up.so call"),
    "memfd": ("lib.so", "memfd lib.so call close lib.so call"),
    "fork": ("lib.so", "hard.so call fork call call"),
    "exec between": ("lib.so", "hard.so call exec sym.so call exec lib.so call"),
    "fork, exec and a bind mount": ("lib.so", "lib.so fork call exec bound.so call"),
    "deleted while mapped": ("lib.so", "own.so call unlink own.so call fork call"),
    "deleted, its hard link left": ("own.so", "link own.so o2.so unlink own.so o2.so call"),
    "replaced": ("own.so", "own.so call close copy lib.so n.so rename n.so own.so own.so call"),
    "replaced while mapped": ("own.so", "own.so copy lib.so n.so rename n.so own.so call"),
    "renamed": ("own.so", "rename own.so moved.so moved.so call"),
    "written anew": ("own.so", "unlink own.so copy lib.so own.so own.so call"),
}
"""`own.so` is a copy of its own, so that it is no hard link of what is probed."""


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps")
    build(folder, "lib.so", LIBRARY, "-shared", "-fPIC", "-O1")
    return build(folder, "steps", STEPS, "-O1", "-w")


@pytest.fixture
def place(program: Path, tmp_path: Path) -> Iterator[Path]:
    """A directory with a library under many names, mounted by the host."""
    shutil.copy(program.parent / "lib.so", tmp_path / "lib.so")
    shutil.copy(tmp_path / "lib.so", tmp_path / "own.so")
    os.link(tmp_path / "lib.so", tmp_path / "hard.so")
    (tmp_path / "sym.so").symlink_to("lib.so")
    (tmp_path / "bound.so").touch()
    for name in ("there", "lower", "upper", "scratch", "merged"):
        (tmp_path / name).mkdir()
    shutil.copy(tmp_path / "lib.so", tmp_path / "lower" / "lib.so")
    shutil.copy(tmp_path / "lib.so", tmp_path / "upper" / "up.so")
    mounted = []
    try:
        _mount("--bind", tmp_path / "lib.so", tmp_path / "bound.so")
        mounted.append("bound.so")
        _mount("--bind", tmp_path, tmp_path / "there")
        mounted.append("there")
        layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/scratch"
        _mount("-t", "overlay", "overlay", "-o", layers, tmp_path / "merged")
        mounted.append("merged")
        yield tmp_path
    finally:
        for name in reversed(mounted):
            subprocess.run(["umount", tmp_path / name], check=True)


@contextmanager
def _instance() -> Iterator[Path]:
    path = TRACING / "instances" / f"kprobe_tui_test_{os.getpid()}"
    path.mkdir()
    try:
        yield path
    finally:
        (path / "events" / "enable").write_text("0")
        path.rmdir()


def _natively(probed: Path, offset: int, program: Path, steps: list[str], cwd: Path) -> int:
    group = f"kprobe_tui_test_{os.getpid()}"
    with live_uprobes(probed) as kernel, _instance() as instance:
        assert kernel.ask(f"p:{group}/work {probed}:{offset:#x}").errno == ""
        (instance / "events" / group / "work" / "enable").write_text("1")
        done = subprocess.run([program, *steps], cwd=cwd, capture_output=True, text=True)
        (instance / "events" / group / "work" / "enable").write_text("0")
        assert done.returncode == 0, done.stdout
        return (instance / "trace").read_text(errors="replace").count(" work: (")


@pytest.mark.parametrize("case", CASES)
def test_a_guest_counts_what_the_running_kernel_counts(
    case: str, program: Path, place: Path
) -> None:
    probed, steps = place / CASES[case][0], CASES[case][1].split()
    image = ElfImage.open(str(place / "lib.so"))
    offset = image.file_offset(SymbolTable(image).find_all("work")[0].address) or 0
    steps = [str(place / step) if "." in step else step for step in steps]
    # The guest first: what it changes stays in its memory.
    done = run(
        *("trace", "--share", str(program), "-e", f"p:a/work {probed}:{offset:#x}"),
        *(str(program), *steps),
        cwd=place,
    )
    assert done.code == 0, done.out + done.err
    hits = (done.out + done.err).count(" work: (")
    assert hits == _natively(probed, offset, program, steps, place)

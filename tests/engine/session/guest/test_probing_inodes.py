"""Uprobes follow files, not names: links, files that are replaced, the program by another name."""

import os
import shutil
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

from engine.image import ElfImage
from engine.image.symbols import SymbolTable

LIBRARY = "int work(int x) { return x * 7 + 1; }"
CALLS = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static void copy(const char *from, const char *to) {
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    char data[65536];
    for (int size; (size = read(in, data, sizeof data)) > 0;)
        if (write(out, data, size) != size) perror("write");
    close(in);
    close(out);
}
static void call(const char *path, const char *what) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) { puts(dlerror()); return; }
    int (*work)(int) = dlsym(library, "work");
    printf("%s %d\n", what, work(1));
    fflush(stdout);
    dlclose(library);
}
int main(int argc, char **argv) {
    const char *path = argv[1];
    char hard[300], other[300];
    snprintf(hard, sizeof hard, "%s.hard", path);
    snprintf(other, sizeof other, "%s.new", path);
    unlink(hard);
    if (link(path, hard)) perror("link");
    call(path, "first");
    call(hard, "hard link");
    unlink(path);
    copy(argv[2], path);
    call(path, "made anew");
    call(hard, "hard link");
    copy(argv[2], other);
    rename(other, path);
    call(path, "renamed over");
    rename(hard, other);
    call(other, "moved");
    unlink(other);
    call(path, "last");
    return 0;
}
"""
HIT = ["first", "hard link", "hard link", "moved"]
"""The calls that Linux 6.18 records of a uprobe on the first file."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("inodes")
    build(made, "own.so", LIBRARY, "-shared", "-fPIC", "-O1")
    build(made, "calls", CALLS, "-O1", "-w")
    return made


def offset_of(program: Path, name: str) -> str:
    image = ElfImage.open(str(program))
    found = next(one for one in SymbolTable(image).functions() if one.name == name)
    return f"{image.file_offset(found.address):#x}"


@pytest.mark.parametrize("share", [(), ("rw",)], ids=["private", "share"])
def test_links_and_files_that_are_replaced(
    share: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    path, offset = tmp_path / "lib.so", offset_of(folder / "own.so", "work")
    for name in ("lib.so", "own.so"):
        shutil.copy(folder / "own.so", tmp_path / name)
    options = [word for mode in share for word in ("--share", f"{tmp_path}:{mode}")]
    done = run(
        *("trace", "--root", "/", *options, "-e", f"p:a/work {path}:{offset} call=%di"),
        *(str(folder / "calls"), str(path), str(tmp_path / "own.so")),
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    assert (done.out + done.err).count(" work: (") == len(HIT), done.err
    assert "last 8" in done.out + done.err


@pytest.mark.parametrize(("probed", "run_as"), [("one", "two"), ("two", "one"), ("link", "two")])
def test_a_program_by_another_name(probed: str, run_as: str, folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "calls", tmp_path / "one")
    os.link(tmp_path / "one", tmp_path / "two")
    os.symlink("one", tmp_path / "link")
    library = folder / "own.so"
    where = offset_of(tmp_path / "one", "main")
    done = run(
        *("trace", "--root", "/", "-e", f"p:a/main {tmp_path / probed}:{where}"),
        *(str(tmp_path / run_as), str(library), str(library)),
        cwd=tmp_path,
    )
    assert (done.out + done.err).count(" main: (") == 1, done.err

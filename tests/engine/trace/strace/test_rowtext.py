"""System calls of rows in strace's words: against strace itself, and what rows do not have."""

import re
import shutil
import subprocess
from pathlib import Path

import archkit
import pytest
from compiled import build
from guestrun import run
from sysroot import CHECKOUT

from engine import arch as architectures
from engine.trace.rows import pack_row
from engine.trace.strace.rowtext import enter_text, exit_text
from engine.trace.syscalls import arguments, enter_info, exit_info

CALLS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    char *name = "f\tile"; int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0640);
    write(fd, "bytes\0\377 and more of them", 24);
    lseek(fd, -4, SEEK_END); fchmod(fd, 0600); ftruncate(fd, 7);
    syscall(SYS_openat, 12345, "sub", O_PATH | O_NOFOLLOW, 0);
    open("/nowhere/at/all", O_WRONLY | O_EXCL); syscall(SYS_openat, AT_FDCWD, 8, 0, 0);
    void *at = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(at, 4096, PROT_NONE); madvise(at, 4096, MADV_DONTNEED); munmap(at, 8192);
    access(name, R_OK | X_OK); faccessat(AT_FDCWD, name, F_OK, 0);
    renameat(AT_FDCWD, name, fd, "new");
    socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); shutdown(99, SHUT_WR);
    flock(fd, 6);
    fcntl(fd, F_SETFD, FD_CLOEXEC); dup3(fd, 20, O_CLOEXEC); close(20); close(20); umask(022);
    kill(getpid(), 0); syscall(SYS_unlinkat, AT_FDCWD, "dir", AT_REMOVEDIR); unlink(name);
    sync(); alarm(0); syscall(SYS_getrandom, 16, 4, 1);
    return 0;
}
"""
MASKED = re.compile(r"0x[0-9a-f]+|\b\d{4,}\b")


def plain(line: str) -> str:
    """A line of ours without the names of arguments."""
    return MASKED.sub("*", re.sub(r"(?<=[(,])( ?)\w+: ", r"\1", line))


@pytest.mark.slow
def test_texts_are_those_of_strace(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    guest = str(build(tmp_path, "calls", CALLS, "-O1", "-static"))
    command = [strace, "-s", "63", "-o", "theirs", guest]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    theirs = {MASKED.sub("*", line) for line in (tmp_path / "theirs").read_text().splitlines()}
    done = run("trace", "-e", "syscalls/*", "-o", "ours", guest, cwd=tmp_path)
    assert done.code == 0
    found = re.findall(r"\d: sys_(\w+)(\(.*\)| -> .*)", (tmp_path / "ours").read_text())
    pairs = zip(found[::2], found[1::2], strict=False)
    ours = [
        plain(f"{name}{made}{result.replace(' ->', ' =')}") for (name, made), (_, result) in pairs
    ]
    known = {re.sub(r"\) += ", ") = ", line) for line in theirs}
    same = [line for line in ours if line in known]
    # What a call stores, and what structures hold, rows do not have.
    other = {line.partition("(")[0] for line in ours if line not in known}
    assert other <= {
        "newfstatat",
        "prlimit64",
        "readlinkat",
        "readlink",
        "exit_group",
        "getrandom",
        "rseq",
    }, (
        other,
        known,
    )
    assert len(same) >= 38


def test_what_a_row_does_not_have_is_an_address() -> None:
    linux = architectures.by_name("x86_64").linux
    fields = arguments("newfstatat", linux.clone_backwards)
    assert fields is not None
    info = enter_info(7, "newfstatat", fields)
    values = [262, (1 << 64) - 100, 0x1000, 0x7FF0, 0x100]
    for text, shown in ((b"a\x1b[2Jb\0", '"a\\33[2Jb"'), (b"", "0x1000")):
        row = pack_row(info, 1000, 5, 0x400000, [*values, text])
        made = enter_text(info, "x86_64")
        assert made is not None
        assert (
            made(row, 0)
            == (
                f"sys_newfstatat(dfd: AT_FDCWD, filename: {shown}, statbuf: 0x7ff0, "
                "flag: AT_SYMLINK_NOFOLLOW)"
            ).encode()
        )


@pytest.mark.parametrize(
    ("call", "result", "text"),
    [
        ("openat", 3, "sys_openat -> 3"),
        ("openat", -2, "sys_openat -> -1 ENOENT (No such file or directory)"),
        ("mmap", 0x7F0000000000, "sys_mmap -> 0x7f0000000000"),
        ("umask", 0o22, "sys_umask -> 022"),
        ("fcntl", 1, "sys_fcntl -> 1"),
        ("read", -4095, "sys_read -> -1 ERRNO_4095 (Unknown error 4095)"),
    ],
)
def test_results(call: str, result: int, text: str) -> None:
    info = exit_info(7, call)
    row = pack_row(info, 1000, 5, 0x400000, [0, result])
    assert exit_text(info, "x86_64")(row, 0) == text.encode()


@pytest.mark.parametrize("arch", archkit.COMPILED)
def test_all_calls_of_an_architecture_have_a_text(arch: str) -> None:
    linux = architectures.by_name(arch).linux
    decoded = 0
    for call in sorted(set(linux.syscalls.values())):
        fields = arguments(call, linux.clone_backwards)
        if fields is None:
            continue
        enter, leave = enter_info(7, call, fields), exit_info(8, call)
        strings = sum(column.type.is_string for column in enter.columns)
        for number in (0, 1, 0x1000, (1 << 64) - 1):
            row = pack_row(enter, 1, 5, 0, [1, *[number] * len(fields), *[b"x\0"] * strings])
            made = enter_text(enter, arch)
            if made is not None:
                decoded += made(row, 0).startswith(b"sys_")
            row = pack_row(leave, 1, 5, 0, [1, number])
            assert b" -> " in exit_text(leave, arch)(row, 0)
    assert decoded > 4 * 250


def test_the_guest_of_another_architecture(tmp_path: Path) -> None:
    for arch in archkit.COMPILED:
        guest = str(CHECKOUT / "samples" / "bin" / arch / "recursion")
        done = run("trace", "-e", "syscalls/write", guest, cwd=tmp_path)
        assert 'sys_write(fd: 1, buf: "ackermann(2, 3) = 9\\n", count: 20)' in done.err

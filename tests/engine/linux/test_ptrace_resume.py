"""A guest that debugs a guest: gdb, strace and ltrace print there what they print natively."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
struct pair { int a, b; char name[8]; };
static volatile int caught;
static void on(int number) { caught = number; }
__attribute__((noinline)) int add(struct pair *p) { return p->a + p->b; }
int main(int argc, char **argv)
{
    struct pair pair = {argc, 41, "seven"};
    int status;
    signal(SIGUSR1, on);
    printf("%d\n", add(&pair));
    raise(SIGUSR1);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        pair.a = 2;
        _exit(add(&pair));
    }
    wait(&status);
    printf("%d %d\n", WEXITSTATUS(status), caught);
    return 3;
}
"""
SCRIPT = """
set pagination off
set startup-with-shell off
set debuginfod enabled off
break add
run
backtrace
info args
print *p
watch p->a
tbreak _exit
finish
handle SIGUSR1 stop print pass
continue
backtrace 1
info signals SIGUSR1
continue
info breakpoints
x/3i $pc
"""
_OWN = re.compile(r'0x[0-9a-f]+|\b\d{3,}\b|"\\x[^"]*"|_uid=\d+|st_size=\d+')
"""Addresses, processes, random bytes, users, sizes of this file."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traced"), "traced", PROGRAM, "-g", "-O0")


def _both(program: Path, *words: str) -> tuple[str, str]:
    """What a debugger says, as a guest and natively; `said*`, where it writes, included."""
    found = shutil.which(words[0])
    if found is None:
        pytest.skip(f"{words[0]} is not installed")
    line, folder = (found, *words[1:], f"./{program.name}"), program.parent
    outcome = run("run", "--root", "/", "--share", f"{folder}:rw", *line, cwd=folder, deadline=900)
    ours = outcome.out + outcome.err + _written(folder)
    done = subprocess.run(
        line,
        cwd=folder,
        env={"HOME": os.environ.get("HOME", "/"), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip(f"nobody may trace here: {done.stderr[-200:]}")
    assert outcome.code == done.returncode, outcome.err
    return ours, done.stdout + done.stderr + _written(folder)


def _written(folder: Path) -> str:
    """Files that were written, in the order of their processes; they go."""
    text = ""
    for file in sorted(folder.glob("said*"), key=lambda file: (len(file.name), file.name)):
        text += file.read_text()
        file.unlink()
    return text


def _settled(text: str) -> list[str]:
    return [re.sub("  +", " ", _OWN.sub("~", line)) for line in text.splitlines()]


@pytest.mark.slow
def test_gdb_as_a_guest(program: Path) -> None:
    script = program.with_name("script")
    script.write_text(SCRIPT)
    # What the program and its child do comes when it comes.
    racing = {"42", "43 10", "[Detaching after fork from child process ~]"}
    ours, theirs = (
        [line for line in _settled(text) if line not in racing]
        for text in _both(program, "gdb", "-nx", "-q", "--batch", "-x", str(script))
    )
    assert ours == theirs
    assert "Program received signal SIGUSR1, User defined signal 1." in ours
    assert "Value returned is $2 = 42" in ours


@pytest.mark.slow
def test_strace_as_a_guest(program: Path) -> None:
    """System calls and signals of both processes.

    How the C library starts is another matter, and whether the signal or the child comes first.
    """
    ours, theirs = (
        sorted(_settled(text[text.index("rt_sigaction(SIGUSR1") :]))
        for text in _both(program, "strace", "-ff", "-o", "said")
    )
    behind = "set_robust_list"  # the child begins with it
    assert [line for line in ours if behind in line] == ["set_robust_list(~, 24) = 0"]
    assert ours == theirs
    assert any(line.startswith("--- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_TKILL") for line in ours)


@pytest.mark.slow
def test_ltrace_as_a_guest(program: Path) -> None:
    """Calls of libraries in both processes; which of them is told first is the host's affair."""
    both = [
        [line.removeprefix("~ ") for line in _settled(text)]
        for text in _both(program, "ltrace", "-f", "-o", "said")
    ]
    # A call that another one is told in the middle of has two lines, in one run or the other.
    cut = {line.partition("(")[0] for lines in both for line in lines if "unfinished" in line}
    ours, theirs = (
        sorted(
            line for line in lines if line.partition("(")[0] not in cut and "resumed" not in line
        )
        for lines in both
    )
    assert sorted(line for line in both[0] if line.startswith("printf")) == [
        *('printf("%d %d\\n", 43, 10) = 6', 'printf("%d\\n", 42) = 3')
    ]
    assert ours == theirs

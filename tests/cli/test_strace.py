"""`kprobe-tui strace`: lines, tables, files, choices, and bad input."""

import re
from pathlib import Path

import pytest
from guestrun import run
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples" / "bin"
SORT = str(SAMPLES / "x86_64" / "sort")


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_children_are_followed(tmp_path: Path, arch: str) -> None:
    done = run("strace", "-f", str(SAMPLES / arch / "forkserver"), cwd=tmp_path)
    lines = done.err.splitlines()
    start = r'execve\(".*forkserver", \["[^"]*"\S*\], 0x\w+ /\* \d+ vars \*/\) = 0'
    assert re.fullmatch(start, lines[0])
    assert lines[1] == "pipe2([3, 4], 0)                        = 0"
    assert lines[2:5] == [
        "clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
        "strace: Process 1001 attached",
        "[pid  1000] <... clone resumed>)        = 1001",
    ]
    assert "[pid  1001] +++ exited with 0 +++" in lines
    assert any(line.startswith("--- SIGCHLD {si_signo=SIGCHLD, ") for line in lines)
    shown = [line for line in lines if not line.startswith("kprobe-tui:")]
    assert shown[-1] == f"+++ exited with {done.code} +++"


def test_without_f_there_is_one_thread(tmp_path: Path) -> None:
    done = run("strace", str(SAMPLES / "x86_64" / "forkserver"), cwd=tmp_path)
    assert "pid " not in done.err
    assert "attached" not in done.err


def test_a_crash_is_told(tmp_path: Path) -> None:
    done = run("strace", "-e", "none", str(SAMPLES / "x86_64" / "crash"), cwd=tmp_path)
    assert re.search(
        r"^--- SIGSEGV \{si_signo=SIGSEGV, si_code=SEGV_MAPERR, .*\} ---$", done.err, re.M
    )
    assert "+++ killed by SIGSEGV +++" in done.err
    assert done.code == 139


def test_the_guest_is_as_without(tmp_path: Path) -> None:
    plain = run("run", SORT, cwd=tmp_path)
    done = run("strace", "-f", "-o", "out", SORT, cwd=tmp_path)
    assert (done.code, done.out, done.err) == (plain.code, plain.out, plain.err)
    text = (tmp_path / "out").read_text("ascii")
    assert text.startswith("1000  execve(")
    assert text.endswith(f"1000  +++ exited with {plain.code} +++\n")


def test_a_file_for_each_process(tmp_path: Path) -> None:
    run("strace", "-ff", "-o", "out", str(SAMPLES / "x86_64" / "forkserver"), cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir())[:2] == ["out.1000", "out.1001"]
    child = (tmp_path / "out.1001").read_text("ascii").splitlines()
    assert child[0].startswith("close(3)")
    assert child[-1] == "+++ exited with 0 +++"


def test_choices(tmp_path: Path) -> None:
    done = run("strace", "-qq", "-e", "trace=write", "-s", "4", "-y", SORT, cwd=tmp_path)
    lines = [line for line in done.err.splitlines() if line.startswith("write(")]
    assert lines
    assert all(re.match(r'write\(1<.*>, "', line) for line in lines)
    assert "exited" not in done.err
    failed = run("strace", "-Z", "/bin/true", cwd=tmp_path)
    assert all(" = -1 E" in line or line[:3] == "+++" for line in failed.err.splitlines())
    path = run("strace", "-P", "/etc/ld.so.cache", "/bin/true", cwd=tmp_path)
    names = [re.split(r"\W", line)[0] for line in path.err.splitlines()[:-1]]
    assert names == ["openat", "newfstatat", "mmap", "close"]


def test_a_table(tmp_path: Path) -> None:
    done = run("strace", "-c", "-S", "calls", SORT, cwd=tmp_path)
    lines = done.err.splitlines()
    assert lines[0].split()[-3:] == ["calls", "errors", "syscall"]
    assert lines[-1].endswith("total")
    counts = [int(line.split()[3]) for line in lines[2:-2]]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == int(lines[-1].split()[3])


def test_times_are_the_guests(tmp_path: Path) -> None:
    first, second = (run("strace", "-T", "-r", "-ttt", SORT, cwd=tmp_path).err for _ in range(2))
    assert first == second
    assert re.search(r"^ +\d+ \d+\.\d{6} \w+\(.* <\d+>$", first, re.M)


def test_call_stacks(tmp_path: Path) -> None:
    done = run("strace", "-k", "-e", "write", SORT, cwd=tmp_path)
    assert re.search(rf"^ > {re.escape(SORT)}\(main\+0x\w+\) \[0x\w+\]$", done.err, re.M)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-e", "bogus"), "bogus"),
        (("-e", "trace=%bogus"), "%bogus"),
        (("-e", "inject=open"), "inject"),
        (("-e", "signal=SIGFOO"), "SIGFOO"),
        (("-e", "status=odd"), "odd"),
        (("-S", "bogus", "-c"), "bogus"),
        (("-o", "|cat"), "|cat"),
        (("-o", "/nonexistent/file"), "/nonexistent/file"),
        (("-c", "-C"), "-C"),
        (("-z", "-Z"), "-Z"),
        (("-s", "-1"), "-1"),
    ],
)
def test_bad_words_are_named(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = run("strace", *words, SORT, cwd=tmp_path)
    assert done.code == 2
    assert told in done.err
    assert "Traceback" not in done.err


def test_numbers_of_calls_and_addresses_in_front(tmp_path: Path) -> None:
    done = run("strace", "-n", "-i", "--trace=write,exit_group", "--write=1", SORT, cwd=tmp_path)
    lines = done.err.splitlines()
    head = r"\[   1\] \[[0-9a-f]{16}\] write\(1, "
    writes = [at for at, line in enumerate(lines) if re.match(head, line)]
    assert writes
    assert all(lines[at + 1].startswith(" | 00000  ") for at in writes)
    assert any(line.startswith("[ 231] [????????????????] +++ exited with") for line in lines)


def test_columns_of_the_table(tmp_path: Path) -> None:
    done = run("strace", "-c", "-U", "name,calls", "-S", "name", SORT, cwd=tmp_path)
    names = [line.split()[0] for line in done.err.splitlines() if line]
    assert names[0] == "syscall"
    calls = names[2 : names.index("total") - 1]
    assert calls == sorted(calls)
    assert run("strace", "-U", "name", SORT, cwd=tmp_path).code == 2
    assert run("strace", "-c", "-U", "nosuch", SORT, cwd=tmp_path).code == 2

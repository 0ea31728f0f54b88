"""A run that a deadlock or a limit has ended stands as it did; recordings need no `run` first."""

import re
from pathlib import Path

import pytest
from cguest import CHECKOUT
from compiled import build
from dapkit import front_end
from gdbwords import said
from guestrun import run

from engine.arch.plan import Mode
from engine.session.protocol.config import GuestConfig, recording_config
from engine.session.serve.gdbserver import GdbServer

RECURSION = str(CHECKOUT / "samples" / "bin" / "x86_64" / "recursion")
PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void lock_two(pthread_mutex_t *one, pthread_mutex_t *other)
{
    pthread_mutex_lock(one);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(other);
}
static void *worker(void *unused)
{
    int mine = 22;
    lock_two(&second, &first);
    return (char *) unused + mine;
}
static void deadlock(void)
{
    pthread_t thread;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&thread, 0, worker, 0);
    lock_two(&first, &second);
}
int main(int count, char **words)
{
    volatile int turns = 0;
    int pipes[2];
    char byte;
    if (!strcmp(words[1], "locks")) deadlock();
    if (!strcmp(words[1], "child") && fork()) return wait(0);
    if (!strcmp(words[1], "child")) deadlock();
    if (!strcmp(words[1], "orphan") && fork()) return 3;
    if (!strcmp(words[1], "orphan")) deadlock();
    if (!strcmp(words[1], "pipe")) { pipe(pipes); read(pipes[0], &byte, 1); }
    while (!strcmp(words[1], "spins")) turns++;
    return 7;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("standing")
    return str(build(folder, "stands", PROGRAM, "-static", "-pthread", "-g", "-w"))


def threads(text: str) -> list[str]:
    return re.findall(r"^[* ] \d+ +(\S+ \S+) ", text, re.MULTILINE)


def test_threads_of_a_deadlock_are_looked_at(program: str) -> None:
    text = said(
        GuestConfig(program, args=("locks",)),
        "run", "info threads", "thread apply all bt", "thread 2", "print first.__data.__owner",
        "print second.__data.__owner", "thread 1", "continue", "signal SIGINT", "reverse-stepi",
        "info proc",
    )  # fmt: skip
    assert "[Inferior 1 (process 1000) stopped: deadlock]" in text
    assert threads(text) == ["process 1000", "Thread 1000.1001"]
    backtraces = text.split("\nThread ")[1:]
    assert len(backtraces) == 2
    assert " in worker " in backtraces[0]
    assert " main " in backtraces[1]
    assert "[Switching to thread 2 (Thread 1000.1001)]" in text
    assert "$1 = 1000\n" in text
    assert "$2 = 1001\n" in text
    assert text.count("! The program cannot go on: stopped in a deadlock.") == 2
    assert "! the run is not recorded" in text
    assert "process 1000\nexe =" in text


def test_the_words_about_a_frame_of_a_deadlock(program: str) -> None:
    words = ["run", "thread 2", *["up"] * 9, "frame function worker", "kill", "info threads"]
    text = said(GuestConfig(program, args=("locks",)), *words[:-3], "info locals", *words[-2:])
    assert "worker (unused=0x0)" in text
    assert "[Inferior 1 (process 1000) killed]\nNo threads.\n" in text


@pytest.mark.parametrize(
    ("how", "limit", "expected"),
    [
        ("child", "deadlock", ["process 1000", "process 1001", "Thread 1001.1002"]),
        ("orphan", "deadlock", ["process 1001", "Thread 1001.1002"]),
        ("pipe", "deadlock", ["process 1000"]),
        ("spins", "max-blocks", ["process 1000"]),
    ],
)
def test_other_runs_that_end_so(program: str, how: str, limit: str, expected: list[str]) -> None:
    blocks = 300_000 if how == "spins" else None
    config = GuestConfig(program, args=(how,), max_blocks=blocks)
    text = said(config, "run", "info threads", "bt")
    assert f"stopped: {limit}]" in text
    assert threads(text) == expected
    assert "No stack." not in text


def test_a_program_that_has_exited_has_no_threads(program: str) -> None:
    text = said(GuestConfig(program, args=("exits",)), "run", "info threads", "bt", "thread")
    assert "exited with code 07]\nNo threads.\n! No stack.\n! No thread selected\n" in text


def test_gdb_is_told_of_a_stop(program: str) -> None:
    told: list[str] = []
    server = GdbServer(GuestConfig(program, args=("locks",)), Mode.KERNEL, told.append)
    try:
        server.put = lambda data: None
        stop = server.answer(b"c")
        assert re.fullmatch(rb"T02thread:3e[89];core:0;", stop)
        assert server.answer(b"qfThreadInfo") == b"m3e8,3e9"
        assert server.answer(b"Hg3e9") == b"OK"
        assert len(server.answer(b"g")) > 300
        assert server.answer(b"s") == stop
        assert server.answer(b"vCont;c") == stop
        assert any("deadlock" in line for line in told)
    finally:
        server.close()


def test_an_editor_is_told_of_a_stop(program: str) -> None:
    with front_end() as editor:
        editor.launch(Path(program), args=["locks"])
        stop = editor.go()
        assert stop["reason"] == "pause"
        assert stop["description"] == "The program cannot go on: stopped in a deadlock"
        listed = editor.ask("threads")["threads"]
        assert {one["id"] for one in listed} == {1000, 1001}
        names = [frame["name"] for frame in editor.frames(1001)]
        assert "worker" in names


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> GuestConfig:
    path = tmp_path_factory.mktemp("recorded") / "run.rec"
    assert run("record", "-o", str(path), RECURSION, cwd=path.parent).code == 0
    return recording_config(GuestConfig(str(path)))


def test_a_recording_stands_at_its_first_instruction(recorded: GuestConfig) -> None:
    text = said(recorded, "info threads", "break ackermann", "continue", "print m", "goto 50%")
    assert text.startswith("#0  0x00000000004001c0 in _start ()\n  Id ")
    assert "Breakpoint 1, ackermann (m=m@entry=2, n=n@entry=3)" in text
    assert "$1 = 2\n" in text
    assert "fibonacci (n=" in text.rpartition("$1 = 2")[2]


@pytest.mark.parametrize("moment", ["end", "2900"])
def test_a_moment_of_a_recording_that_was_not_come_to_yet(
    recorded: GuestConfig, moment: str
) -> None:
    """Breakpoints on the way stop nothing, and are not counted."""
    text = said(recorded, "break ackermann", f"goto {moment}", "info breakpoints", "info record")
    assert "Breakpoint 1, " not in text
    assert "already hit" not in text
    assert "Highest recorded tick is 2980." in text
    assert ("exited normally" in text) == (moment == "end")


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("signal SIGINT", "A recording gets the signals that were recorded."),
        ("set args 1", "A recording is lived through as it was recorded"),
        ("run 1 2", "A recording is lived through as it was recorded"),
        ("set var $rax = 1", "a recording cannot be changed"),
        ("jump main", "a recording cannot be changed"),
        ("call fibonacci(5)", "Functions are not called in what was recorded"),
    ],
)
def test_what_a_recording_cannot_do_is_said(recorded: GuestConfig, word: str, why: str) -> None:
    assert f"! {why}" in said(recorded, "break ackermann", "continue", word)


def test_a_recording_of_a_deadlock_ends_in_it(program: str, tmp_path: Path) -> None:
    path = tmp_path / "locks.rec"
    assert run("record", "-o", str(path), program, "locks", cwd=tmp_path).code == 124
    config = recording_config(GuestConfig(str(path)))
    text = said(config, "goto end", "info threads", "reverse-stepi", "goto end", "info threads")
    assert threads(text) == ["process 1000", "Thread 1000.1001"] * 2

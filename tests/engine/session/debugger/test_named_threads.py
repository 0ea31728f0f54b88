"""Words that are for one thread, and the siginfo of each kind of stop, as in gdb."""

import subprocess

import pytest
from compiled import tool
from gdbwords import said

from engine.session import GuestConfig

PROGRAM = """\
#include <pthread.h>
#include <unistd.h>
long total;
static void add(long n)
{
    total += n;
    write(1, "", 0);
}
static void *work(void *n)
{
    add((long)n);
    return 0;
}
int main(void)
{
    add(1);
    for (long i = 2; i < 4; i++) {
        pthread_t t;
        pthread_create(&t, 0, work, (void *)i);
        pthread_join(t, 0);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> GuestConfig:
    folder = tmp_path_factory.mktemp("one")
    (folder / "one.c").write_text(PROGRAM)
    command = [tool("gcc"), "-g", "-O0", "-static", "-pthread", "-o", "one", "one.c"]
    subprocess.run(command, cwd=folder, check=True)
    return GuestConfig(str(folder / "one"))


def test_a_watchpoint_of_one_thread_ends_with_it(program: GuestConfig) -> None:
    out = said(
        program,
        *("set print thread-events off", "break add if n == 2", "run"),
        *("watch total thread 1 if total > 0", "watch total thread 9"),
        *("watch total if total > 0 thread 2", "info watchpoints", "continue", "continue"),
    )
    assert "! Junk at end of command.\n! Unknown thread 9.\nHardware watchpoint 2: total\n" in out
    assert "total thread 2\n\tstop only if total > 0\n\tstop only in thread 2\n" in out
    assert "Old value = 1\nNew value = 3\n" in out
    gone = "Thread-specific breakpoint 2 deleted - thread 2 no longer in the thread list.\n"
    assert out.endswith(f"{gone}[Inferior 1 (process 1000) exited normally]\n")


def test_threads_are_listed_and_found_by_numbers_and_names(program: GuestConfig) -> None:
    out = said(
        program,
        *("set print thread-events off", "break add if n == 2", "run", "echo @\\n"),
        *("info threads 7", "info threads 2-1", "info threads x", "thread 0"),
        *("thread find one", "thread name two", "thread find ^two$", "thread 1.1"),
    )
    shown = out.partition("@\n")[2].splitlines()[:9]
    assert shown == [
        "No threads match '7'.",
        "! inverted range",
        "! Invalid thread ID: x",
        "! Invalid thread ID: 0",
        "Thread 1 has target name 'one'",
        "Thread 2 has target name 'one'",
        "Thread 2 has name 'two'",
        "[Switching to thread 1 (process 1000)]",
        shown[-1],
    ]


def test_siginfo_tells_how_the_program_stands(program: GuestConfig) -> None:
    code = "p $_siginfo.si_code"
    address = "p $_siginfo._sifields._sigfault.si_addr == $pc"
    out = said(
        program,
        *("p $_siginfo", "break main", "run", code, "next", code, "stepi", code, address),
        *("watch total", "continue", code, address, "delete", "finish", code),
        *("catch syscall write", "continue"),
    )
    assert [line for line in out.splitlines() if line[:1] == "$"] == [
        *("$1 = void", "$2 = 128", "$3 = 128", "$4 = 2", "$5 = 1"),
        *("$6 = 4", "$7 = 1", "$8 = 128"),
    ]


def test_a_program_that_is_let_go_of_ends_by_itself(program: GuestConfig) -> None:
    out = said(program, "break add", "run", "detach", "info threads", "p total", "run", "bt 1")
    assert "[Inferior 1 (process 1000) detached]\nNo threads.\n$1 = 0\n" in out
    assert out.count("Breakpoint 1, add (n=1) at one.c:6") == 2


def test_a_frame_is_described_without_being_chosen(program: GuestConfig) -> None:
    out = said(
        program,
        *("break add", "run", "info frame 1", "info frame function main", "info frame level 9"),
        *("info frame function work", "info frame address 5", "info frame", "frame"),
    )
    titles = [line.partition(" at ")[0] for line in out.splitlines() if line[:5] == "Stack"]
    assert titles == ["Stack frame", "Stack frame", "Stack level 0, frame"]
    assert out.count(" in main (one.c:16)") == 2
    assert "! No frame at level 9.\n" in out
    assert '! No frame for function "work".\n! No frame at address 5.\n' in out
    assert "#0  add (n=1) at one.c:6" in out

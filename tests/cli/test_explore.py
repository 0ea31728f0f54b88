"""The contract of `kprobe-tui explore`: what it finds, shows, and how that is run again."""

import re
import shlex
from pathlib import Path

import pytest
from archkit import FIRST_COMPILED
from compiled import build
from guestrun import run
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples" / "bin"
RACE = str(SAMPLES / "x86_64" / "race")


def commands(report: str) -> list[list[str]]:
    """The command lines that a report gives, without the command's name."""
    found = re.findall(r"^  kprobe-tui (.*)$", report, re.M)
    return [shlex.split(each) for each in found]


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_lost_update_is_found_and_repeats(arch: str, tmp_path: Path) -> None:
    guest = str(SAMPLES / arch / "race")
    done = run(
        *("explore", "--seeds", "40", "--jobs", "2", "--record-schedule", "s", guest),
        cwd=tmp_path,
    )
    assert done.code == 1, done.err
    head = re.match(
        r"seed 0: exited with 0, \d+ switches: 2 threads counted 200 of 200\n"
        r"seed \d+: exited with 1, \d+ switches: (2 threads counted \d+ of 200)\n",
        done.out,
    )
    assert head is not None, done.out
    # One switch suffices: a thread is left between reading the counter and writing it.
    shown = re.search(
        r"^1 of \d+ switches makes the difference:\n"
        r"  tick \d+: thread \d+ \(race\) is preempted in (think|add_one)\+\w+ "
        r"\(samples/race.c:\d+\)\n    and thread \d+ \(race\) goes on in .*\n"
        r"then: exited with 1, \d+ switches: (.*)$",
        done.out,
        re.M,
    )
    assert shown is not None, done.out
    traces = done.out.split(" at the last of them:\n")
    assert len(traces) == 3
    assert "add_one+" in traces[1]
    by_seed, by_schedule = commands(done.out)
    for words, line in ((by_seed, head[1]), (by_schedule, shown[2])):
        again = run(*words, cwd=tmp_path)
        assert (again.code, again.out) == (1, f"{line}\n")
    choices = [line for line in (tmp_path / "s").read_text().splitlines() if line[0] != "#"]
    assert sum(line.endswith("preempted") for line in choices) == 1


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_deadlock_is_found_and_both_threads_are_named(arch: str, tmp_path: Path) -> None:
    guest = str(SAMPLES / arch / "deadlock")
    done = run("explore", "--seeds", "40", "--record-schedule", "s", guest, cwd=tmp_path)
    assert done.code == 1, done.err
    assert "stopped in a deadlock" in done.out.splitlines()[1]
    report = done.out.partition("stopped: deadlock: every thread waits")[2]
    for thread in ("1001", "1002"):
        assert re.search(rf"^thread {thread} \(deadlock\).*: futex\(", report, re.M)
    assert report.count(" in lock+") == 2
    again = run(*commands(done.out)[-1], cwd=tmp_path)
    assert again.code == 124
    assert "deadlock: every thread waits" in again.err


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    found = {
        run("explore", "--seeds", "12", "--jobs", jobs, RACE, cwd=tmp_path).out
        for jobs in ("1", "3")
    }
    assert len(found) == 1


def test_nothing_differs(tmp_path: Path) -> None:
    for sample, text in (
        ("pipeline", "6 seeds, and nothing differed: exited with 0, "),
        ("recursion", "there was never more than one thread that could run: exited with 0"),
    ):
        done = run("explore", "--seeds", "6", str(SAMPLES / "x86_64" / sample), cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(text)
        assert len(done.out.splitlines()) == 1


@pytest.mark.slow
def test_an_expression_stops_the_search(tmp_path: Path) -> None:
    guest = str(SAMPLES / "x86_64" / "pipeline")
    expression = "switches > 5 && exit == 0"
    done = run("explore", "--seeds", "9", "--stop-if", expression, guest, cwd=tmp_path)
    assert done.code == 1
    switches = re.findall(r"^seed \d+: exited with 0, (\d+) switches", done.out, re.M)
    assert int(switches[0]) <= 5 < int(switches[1])
    assert re.search(r"^[12] of \d+ switches make", done.out, re.M)

    done = run("explore", "--seeds", "9", "--stop-if", "clock > 10", RACE, cwd=tmp_path)
    assert done.code == 1
    assert done.out.startswith("seed 0: exited with 0, ")


@pytest.mark.slow
def test_an_expression_of_the_program_s_variables(tmp_path: Path) -> None:
    done = run("explore", "--seeds", "9", "--stop-if", "counter * 2 < 300", RACE, cwd=tmp_path)
    assert done.code == 1
    counted = re.findall(r"2 threads counted (\d+) of 200", done.out)
    assert int(counted[0]) == 200
    assert int(counted[1]) < 150
    done = run("explore", "--seeds", "9", "--stop-if", "*(int *)8 == 1", RACE, cwd=tmp_path)
    assert done.code == 1
    assert "\n  --stop-if *(int *)8 == 1: cannot access memory at 0x8\n" in done.out
    for wrong, text in (
        ("foo == 1", 'No symbol "foo" in current context.'),
        ("counter ==", "A syntax error in expression, near `'."),
        ("counter = 1", "an expression changes nothing here"),
        ("think(1)", "not called"),
    ):
        done = run("explore", "--stop-if", wrong, RACE, cwd=tmp_path)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"kprobe-tui: --stop-if {wrong}: ")
        assert text in done.err
        assert len(done.err.splitlines()) == 1


def test_standard_input_is_the_same_for_all(tmp_path: Path) -> None:
    guest = str(SAMPLES / "x86_64" / "lines")
    words = ("explore", "--stop-if", "exit == 0", guest, "foo")
    done = run(*words, cwd=tmp_path, stdin=b"a foo\nb\n")
    assert done.code == 1
    assert done.out.startswith("seed 0: exited with 0, 0 switches: 1 of 2 lines, longest 5\n")
    assert "it takes no switch" in done.out  # of a second run, with the same input


def test_usage(tmp_path: Path) -> None:
    for words, text in (
        (("--seeds", "0", RACE), "--seeds"),
        (("--clock", "host", RACE), "--clock host makes two runs differ"),
        (("--share", f"{tmp_path}:rw", RACE), "each run would see what those before"),
        (("nosuch",), "nosuch"),
        ((), "GUEST"),
    ):
        done = run("explore", *words, cwd=tmp_path)
        assert done.code == 2, words
        assert text in done.err


ENDLESS = r"""
#include <pthread.h>
#include <stdio.h>
static volatile int gone;
static void *work(void *unused) { for (int i = 0; i < 50; i++) gone = gone + 1; return unused; }
int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); for (;;); }
"""


@pytest.mark.slow
def test_the_time_limit_ends_the_search(tmp_path: Path) -> None:
    program = build(tmp_path, "endless", ENDLESS, "-static", "-pthread")
    done = run("explore", "--timeout", "1", str(program), cwd=tmp_path)
    assert done.code == 124
    assert "the time limit (--timeout) ran out" in done.err

"""The scheduler's events of guests: what they say fits together, and changes nothing."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from compiled import build
from controlkit import held, sample
from guestrun import run
from protowire import fields, packets
from sysroot import CHECKOUT

from engine.session.protocol import commands as cmd

SAMPLES = CHECKOUT / "samples" / "bin" / "x86_64"
LIVES = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void *thread(void *unused) { return unused; }
int main(int argc, char **argv)
{
    if (argc > 1) return 0;
    pthread_t one;
    pthread_create(&one, 0, thread, 0);
    pthread_join(one, 0);
    int child = fork();
    if (!child) { raise(SIGSTOP); execl(argv[0], argv[0], "x", (char *)0); }
    waitpid(child, 0, WUNTRACED);
    kill(child, SIGCONT);
    waitpid(child, 0, 0);
    if (!vfork()) _exit(0);
    wait(0);
    signal(SIGCHLD, SIG_IGN);
    if (!fork()) _exit(0);
    struct timespec while_ = {0, 1000000};
    nanosleep(&while_, 0);
    return 0;
}
"""
SLEEPER = r"""
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *unused) { prctl(PR_SET_NAME, "second"); usleep(9); return unused; }
int main(void)
{
    pthread_t one;
    pthread_create(&one, 0, thread, 0);
    pthread_join(one, 0);
    if (!fork()) { prctl(PR_SET_NAME, "child"); usleep(9); _exit(0); }
    wait(0);
    return 0;
}
"""


def events(home: Path, *words: str) -> list[dict[str, Any]]:
    done = run("trace", "--format", "jsonl", "-o", "out", *words, cwd=home)
    assert done.code == 0, done.err
    return [json.loads(line) for line in (home / "out").read_text("ascii").splitlines()]


def named(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one["args"] for one in found if one["event"] == f"sched/sched_{name}"]


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    home = tmp_path_factory.mktemp("lives")
    program = build(home, "lives", LIVES, "-static", "-pthread")
    return events(home, "-e", "sched:*", str(program))


def test_each_switch_goes_on_where_the_one_before_led(lives: list[dict[str, Any]]) -> None:
    switches = named(lives, "switch")
    for before, after in pairwise(switches):
        assert (before["next_pid"], before["next_comm"]) == (after["prev_pid"], after["prev_comm"])
    rows = [one for one in lives if one["event"] == "sched/sched_switch"]
    assert [one["tid"] for one in rows] == [args["prev_pid"] for args in switches]
    assert {one["comm"] for one in rows if not one["tid"]} == {"<idle>"}
    assert {args["next_comm"] for args in switches if not args["next_pid"]} == {"swapper/0"}


def test_the_states_in_which_the_processor_is_given_up(lives: list[dict[str, Any]]) -> None:
    last: dict[int, int] = {}
    seen: set[tuple[int, int]] = set()
    for args in named(lives, "switch"):
        last[args["prev_pid"]] = args["prev_state"]
        seen.add((args["prev_pid"], args["prev_state"]))
    assert (1000, 1) in seen  # the first thread waits
    assert (1000, 2) in seen  # and for its vfork, without being interrupted
    assert (1002, 4) in seen  # the child stops itself
    assert [last[1001], last[1002], last[1003], last[1004]] == [0x10, 0x20, 0x20, 0x10]


def test_lives_of_threads_and_processes(lives: list[dict[str, Any]]) -> None:
    assert [(a["parent_pid"], a["child_pid"]) for a in named(lives, "process_fork")] == [
        (1000, child) for child in (1001, 1002, 1003, 1004)
    ]
    assert [a["pid"] for a in named(lives, "wakeup_new")] == [1001, 1002, 1003, 1004]
    (begun,) = named(lives, "process_exec")
    assert (begun["pid"], begun["old_pid"]) == (1002, 1002)
    assert begun["filename"].endswith("/lives")
    ends = [(args["pid"], args["group_dead"]) for args in named(lives, "process_exit")]
    assert ends == [(1001, 0), (1002, 1), (1003, 1), (1004, 1), (1000, 1)]
    assert named(lives, "waking") == named(lives, "wakeup")


def test_who_wakes_whom(lives: list[dict[str, Any]]) -> None:
    """A call wakes as the thread that makes it, a timer as the idle one that it finds."""
    rows = [one for one in lives if one["event"] == "sched/sched_waking"]
    woken = [(one["tid"], one["args"]["pid"]) for one in rows]
    assert (1001, 1000) in woken  # pthread_join
    assert (1002, 1000) in woken  # waitpid
    assert (1000, 1002) in woken  # SIGCONT
    assert woken[-1] == (0, 1000)  # nanosleep
    assert {one["comm"] for one in rows if not one["tid"]} == {"<idle>"}


@pytest.mark.parametrize(
    "guest", [pytest.param(("race", "3"), marks=pytest.mark.slow), ("pipeline",)]
)
def test_recording_does_not_change_the_schedule(tmp_path: Path, guest: tuple[str, ...]) -> None:
    program = str(SAMPLES / guest[0])
    seed = ("--seed", "3", "--turns", "20-90", "--record-schedule")
    plain = run("run", *seed, "plain", program, *guest[1:], cwd=tmp_path)
    traced = run("trace", "-e", "sched:*", "-o", "out", *seed, "traced", program, *guest[1:],
                 cwd=tmp_path)  # fmt: skip
    assert (plain.code, plain.out) == (traced.code, traced.out)
    schedule = (tmp_path / "plain").read_text("utf-8")
    assert schedule == (tmp_path / "traced").read_text("utf-8")
    switches = re.findall(r"(\d+): sched_switch: .*next_pid=(\d+)", (tmp_path / "out").read_text())
    changes = re.findall(r"^(\d+) (\d+) ", schedule, re.M)
    others = [(tick, thread) for tick, thread in switches if (tick, thread) in changes]
    assert len(others) > 5


@pytest.mark.slow
def test_filters_and_choices(tmp_path: Path) -> None:
    words = ("-e", "sched:sched_switch", str(SAMPLES / "race"), "3")
    every = events(tmp_path, *words)
    some = events(tmp_path, "--filter", "sched/sched_switch:prev_state == 16", *words)
    assert some == [one for one in every if one["args"]["prev_state"] == 16]
    mine = events(tmp_path, "--pid", "1002", *words)
    pids = [(one["args"]["prev_pid"], one["args"]["next_pid"]) for one in mine]
    assert pids == [(1001, 1002), (1002, 1003)]


def test_tracks_of_several_processes(tmp_path: Path) -> None:
    """Perfetto's tracks of threads lie under those of their processes, the idle one's too."""
    sleeper = build(tmp_path, "sleeper", SLEEPER, "-static", "-pthread")
    words = ("--format", "perfetto", "-o", "out", "-e", "sched:sched_switch", str(sleeper))
    assert run("trace", *words, cwd=tmp_path).code == 0
    names: dict[int, tuple[int, bytes]] = {}
    threads: dict[int, tuple[int, int, bytes]] = {}
    used: set[int] = set()
    for packet in packets((tmp_path / "out").read_bytes()):
        if 11 in packet:
            used.add(dict(fields(packet[11]))[11])
        if 60 not in packet:
            continue
        track = dict(fields(packet[60]))
        if 3 in track:
            process = dict(fields(track[3]))
            names[track[1]] = process[1], process[6]
        else:
            task = dict(fields(track[4]))
            assert names[track[5]][0] == task[1]
            threads[track[1]] = task[1], task[2], task[5]
    assert used == set(threads)
    assert 0 not in used  # the track of what has none
    assert set(threads.values()) == {
        (0, 0, b"<idle>"), (1000, 1000, b"sleeper"), (1000, 1001, b"second"),
        (1002, 1002, b"child"),
    }  # fmt: skip
    assert {(1000, b"sleeper"), (1002, b"child")} <= set(names.values())


def test_what_there_is_not(tmp_path: Path) -> None:
    done = run("trace", "-e", "sched:nosuch", str(SAMPLES / "race"), cwd=tmp_path)
    assert done.code == 2
    assert "sched/nosuch: no event matches; there are sched_switch, sched_waking" in done.err


def test_events_come_and_go_in_a_held_guest() -> None:
    with held(sample("x86_64", "race")) as guest:
        guest.do(cmd.TraceKernel(("sched_s*",), group="sched"), cmd.Continue())
        first = [event.name for event in guest.events]
        assert set(first) == {"sched_switch"}
        guest.do(cmd.Restart(), cmd.TraceKernel(("*_exit",), group="sched"), cmd.Continue())
        assert {event.name for event in guest.events} == {"sched_switch", "sched_process_exit"}
        guest.do(cmd.Restart(), cmd.TraceKernel(on=False, group="sched"), cmd.Continue())
        assert guest.events == []

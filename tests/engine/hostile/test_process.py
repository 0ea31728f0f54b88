"""Guests that multiply, attack other processes, or never end; signals of the host's user."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from guestrun import Outcome, finish, guest, start

Attack = Callable[..., Outcome]


def test_a_fork_bomb_has_the_children_that_there_is_memory_for(attack: Attack) -> None:
    done = attack("process", "bomb")

    assert done.code == 0
    assert done.facts["children"] == 500


def test_other_processes_are_out_of_reach(attack: Attack) -> None:
    victim = subprocess.Popen(["sleep", "600"])
    try:
        done = attack("process", "attack", victim.pid)
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()

    assert done.code == 0
    facts = done.facts
    assert {facts[f"kill {who}"] for who in ("all", "host", "host group")} == {-3}
    assert facts["kill 1"] == -1  # the guest's own process 1, root's
    assert facts["tgkill host"] == facts["tkill host"] == facts["prlimit of host"] == -3
    assert facts["process_vm_readv"] == facts["process_vm_writev"] in (-1, -3)
    assert facts["ptrace attach"] in (-1, -3)
    assert {facts[name] for name in ("setuid", "reboot", "init_module", "bpf")} == {-1}
    assert facts["no such call"] == -38


@pytest.mark.parametrize("mode", ["spin", "calls", "wait"])
def test_the_time_limit_stops_everything(attack: Attack, mode: str) -> None:
    done = attack("process", mode, options=("--timeout", "1"))

    assert done.code == 124
    assert "the time limit (--timeout) ran out\n" in done.err
    assert "at 0x" in done.err


@pytest.mark.parametrize("mode", ["spin", "calls"])
def test_the_block_limit_stops_loops(attack: Attack, mode: str) -> None:
    done = attack("process", mode, options=("--max-blocks", "20000"))

    assert done.code == 124
    assert "the block limit (--max-blocks) ran out\n" in done.err
    assert f"{mode}+" in done.err or "sys" in done.err


def _signalled(arch: str, home: Path, words: list[str], *numbers: int) -> Outcome:
    process = start("run", "--timeout", "300", guest(arch, "process"), *words, cwd=home)
    assert process.stdout is not None
    process.stdout.readline()
    for number in numbers:
        os.kill(process.pid, number)
        time.sleep(0.1)
    return finish(process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("mode", ["spin", "calls", "wait"])
def test_a_signal_of_the_user_ends_the_guest(
    arch: str, home: Path, mode: str, number: int
) -> None:
    done = _signalled(arch, home, [mode], number)

    assert done.code == 128 + number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", [[], ["waiting"]], ids=["running", "waiting"])
def test_the_guests_handler_runs(arch: str, home: Path, where: list[str], number: int) -> None:
    done = _signalled(arch, home, ["handle", *where], number)

    assert (done.code, done.out) == (40 + number, f"signal: {number}\n"), done.err


@pytest.mark.parametrize("where", [[], ["waiting"]], ids=["running", "waiting"])
def test_who_ignores_all_signals_is_still_stopped(arch: str, home: Path, where: list[str]) -> None:
    process = start("run", guest(arch, "process"), "ignore", *where, cwd=home)
    assert process.stdout is not None
    process.stdout.readline()
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGTERM):
        os.kill(process.pid, number)

    assert finish(process).code == 128 + signal.SIGTERM


def test_many_arguments(attack: Attack) -> None:
    assert attack("process", "arguments", *["word"] * 5000).facts["bytes"] == 20000


def test_too_many_arguments(attack: Attack) -> None:
    done = attack("process", "arguments", *["x" * 60000] * 30)

    assert done.code in (0, 2)
    if done.code == 2:
        assert "too long" in done.err

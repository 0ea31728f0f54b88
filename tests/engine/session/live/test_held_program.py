"""Programs that wait before their first instruction."""

import os
import signal
from pathlib import Path

import pytest

from engine.errors import CommandError
from engine.session.live.held_program import CommandStart, LiveCommand


def start(*argv: str, cwd: str | None = None, env: tuple[str, ...] = ()) -> LiveCommand:
    return LiveCommand(CommandStart(argv[0], argv, env, cwd))


def ended(command: LiveCommand) -> int:
    os.waitid(os.P_PIDFD, command.pidfd, os.WEXITED | os.WNOWAIT)
    assert command.poll()
    command.close()
    return command.exit_code


def test_it_runs_once_it_is_told_to(tmp_path: Path) -> None:
    script = 'echo "$0 $K $PWD" > out; exit 7'
    command = start("/bin/sh", "-c", script, "name", cwd=str(tmp_path), env=("K=v=w",))
    assert not command.poll()
    assert not (tmp_path / "out").exists()
    command.execute()
    assert os.path.samefile(f"/proc/{command.pid}/exe", "/bin/sh")
    assert not command.poll()
    assert not (tmp_path / "out").exists()
    command.go()
    assert ended(command) == 7
    assert (tmp_path / "out").read_text() == f"name v=w {tmp_path}\n"


def test_signals_mean_to_it_what_they_mean_to_a_program(tmp_path: Path) -> None:
    command = start("/bin/sh", "-c", "kill -PIPE $$; exit 1")
    command.execute()
    command.go()
    assert ended(command) == 128 + signal.SIGPIPE


def test_its_addresses_are_the_same_each_time(tmp_path: Path) -> None:
    maps = []
    for _ in range(2):
        command = start("/bin/sh", "-c", "exec cat /proc/self/maps > maps", cwd=str(tmp_path))
        command.execute()
        command.go()
        assert ended(command) == 0
        maps.append([line.split()[0] for line in (tmp_path / "maps").read_text().splitlines()])
    assert maps[0] == maps[1]


def test_one_that_cannot_run() -> None:
    command = start("/nowhere/at/all")
    with pytest.raises(CommandError, match="/nowhere/at/all: No such file"):
        command.execute()
    command.close()


def test_one_that_was_never_let_go_ends() -> None:
    command = start("/bin/sh", "-c", "exit 1")
    command.close()
    assert command.status is not None
    command.close()
    command.send(signal.SIGTERM)  # to nobody


def test_one_that_was_stopped_at_its_start_ends() -> None:
    command = start("/bin/sh", "-c", "exit 1")
    command.execute()
    command.close()
    assert command.exit_code == 128 + signal.SIGKILL


def test_a_signal_on_the_way_to_its_start_is_its_own() -> None:
    command = start("/bin/sh", "-c", "exit 1")
    command.send(signal.SIGTERM)
    with pytest.raises(CommandError, match=f"it ended with {128 + signal.SIGTERM}"):
        command.execute()
    command.close()


def test_nobody_traces_it_when_it_runs(tmp_path: Path) -> None:
    command = start("/bin/sh", "-c", "grep TracerPid /proc/self/status > out", cwd=str(tmp_path))
    command.execute()
    command.go()
    assert ended(command) == 0
    assert (tmp_path / "out").read_text() == "TracerPid:\t0\n"

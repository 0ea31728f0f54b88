"""Low limits of the host: one error that names the limit, and exit code 2."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import warmed

from engine.cli.main import COMMANDS
from engine.hostlimits import because_of, ensure_room, limit_reached

GUEST = "/bin/echo"
_LIMITS = {"files": resource.RLIMIT_NOFILE, "addresses": resource.RLIMIT_AS,
           "stack": resource.RLIMIT_STACK, "size": resource.RLIMIT_FSIZE}  # fmt: skip


def limited(kind: str, value: int, *words: str, cwd: Path) -> tuple[int, str, str]:
    """Exit code, output and errors of the command under a limit."""

    def lower() -> None:
        resource.setrlimit(_LIMITS[kind], (value, value))

    done = subprocess.run(
        [sys.executable, "-m", "tui", *words],
        cwd=cwd,
        env={**os.environ, **warmed.SAME_CODE},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lower,
        check=False,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("value", [8, 20])
@pytest.mark.parametrize("command", ["run", "trace", "check", "replay"])
def test_few_files(command: str, value: int, tmp_path: Path) -> None:
    code, _, said = limited("files", value, command, GUEST, cwd=tmp_path)
    assert code == 2
    assert said.splitlines() == [
        f"kprobe-tui: no more than {value} files may be open at once (ulimit -n); "
        "kprobe-tui needs 64"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.parametrize("value", [5, 10, 63])
def test_few_files_for_all(command: str, value: int, tmp_path: Path) -> None:
    code, _, said = limited("files", value, command, GUEST, cwd=tmp_path)
    assert code == 2
    assert "ulimit -n" in said
    assert "report" not in said


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [("addresses", 100 << 20, "ulimit -v"), ("stack", 128 << 10, "ulimit -s")],
)
def test_little_memory(kind: str, value: int, name: str, tmp_path: Path) -> None:
    code, _, said = limited(kind, value, "run", GUEST, "hi", cwd=tmp_path)
    assert code == 2
    assert name in said
    assert "report" not in said


def test_a_limit_that_anybody_may_raise_is_raised(tmp_path: Path) -> None:
    code = "import resource as r; r.setrlimit(7, (20, 80)); from engine.hostlimits import *; "
    code += "ensure_room(); print(r.getrlimit(7))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(64, 80)\n"


def test_small_files_of_a_recording(tmp_path: Path) -> None:
    """What the guest writes passes; that the recording is not whole is the exit code."""
    words = "record", "-o", str(tmp_path / "r"), GUEST, "hi"
    code, out, said = limited("size", 10_000, *words, cwd=tmp_path)
    assert (code, out) == (2, "hi\n")
    assert "ulimit -f" in said
    assert "not whole" in said


def test_a_full_disk_of_a_recording(tmp_path: Path) -> None:
    code, out, said = limited(
        "size", 1 << 30, "record", "-o", "/dev/full", GUEST, "a", cwd=tmp_path
    )
    assert (code, out) == (2, "a\n")
    assert said.count("not whole") == 1


def test_words() -> None:
    """The limit is found behind other errors, too; no other error is taken for one."""
    full = OSError(errno.EMFILE, "Too many open files")
    assert "ulimit -n" in limit_reached(full)
    assert "ulimit -n" in because_of(full)
    behind = ImportError("no such library")
    behind.__cause__ = full
    assert "ulimit -n" in limit_reached(behind)
    assert limit_reached(MemoryError())
    assert "thread" in limit_reached(RuntimeError("can't start new thread"))
    assert not limit_reached(RuntimeError("else"))
    assert not limit_reached(OSError(errno.ENOENT, "none"))
    assert (
        because_of(OSError(errno.ENOSPC, "No space left on device")) == "No space left on device"
    )
    ensure_room()

"""Guests in C, compiled by the tests for every architecture that has a compiler."""

import hashlib
import os
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

import archkit
import pytest
from guestrun import run
from runfolder import run_folder
from sysroot import locked

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = CHECKOUT / "tests" / "data" / "syscalls"
_NOBODY = 65534


def compiled(name: str, arch: str) -> Path:
    """A static program of `tests/data/syscalls`; skips the test without a compiler."""
    return compiled_from(SOURCES / f"{name}.c", arch)


@cache
def compiled_from(source: Path, arch: str) -> Path:
    """A static program of a source file; skips the test without a compiler.

    It is compiled once a run of the tests: all workers share it.
    """
    compiler = archkit.compiler(arch)
    key = hashlib.sha256(os.fsencode(source) + source.read_bytes()).hexdigest()[:16]
    program = run_folder(f"guest-{key}") / f"{source.stem}.{arch}"
    words: list[str | Path] = ["-static", "-O1", "-g", "-w", "-o", program, source, "-lm"]
    with locked(program):
        if program.exists():
            return program
        done = subprocess.run([compiler, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        if "cannot find -lc" in done.stderr or "guest.h" not in done.stderr:
            why = done.stderr.splitlines()[-1]
            pytest.skip(f"{compiler} cannot compile {source.name}: {why}")
        pytest.fail(done.stderr)
    return program


_TRIES = 3
"""Of a native run: a program that plays with signals and ptrace once hung on a busy host."""


def _run(command: list[str], cwd: Path, user: int | None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=200,
        check=False,
        user=user,
        group=user,
        extra_groups=[] if user else None,
        env={"PATH": "/usr/bin:/bin", "LANG": "C"},
    )
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return done.stdout.decode(errors="replace") + f"exit code {code}\n"


def natively(program: Path, cwd: Path, *args: str, under: str | None = None) -> str:
    """Standard output and exit code on the host's own kernel, without privileges."""
    cwd.chmod(0o777)
    for parent in cwd.parents:
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    user = _NOBODY if os.getuid() == 0 else None
    command = [*([under] if under else []), str(program), *args]
    for _ in range(_TRIES - 1):
        with suppress(subprocess.TimeoutExpired):
            return _run(command, cwd, user)
    return _run(command, cwd, user)


def emulated(program: Path, cwd: Path, *args: str, options: tuple[str, ...] = ()) -> str:
    """Standard output and exit code in the emulator."""
    done = run(
        *("run", *options, "--timeout", "400", "--clean-env", "--env", "PATH=/usr/bin:/bin"),
        *("--env", "LANG=C", str(program), *args),
        cwd=cwd,
    )
    return f"{done.out}exit code {done.code}\n"

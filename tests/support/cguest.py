"""Guests in C, compiled by the tests for every architecture that has a compiler."""

import os
import subprocess
import tempfile
from functools import cache, lru_cache
from pathlib import Path

import archkit
import pytest
from guestrun import run

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = CHECKOUT / "tests" / "data" / "syscalls"
_NOBODY = 65534


@lru_cache(maxsize=1)
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kprobe-tui-cguest-"))
    folder.chmod(0o755)
    return folder


def compiled(name: str, arch: str) -> Path:
    """A static program of `tests/data/syscalls`; skips the test without a compiler."""
    return compiled_from(SOURCES / f"{name}.c", arch)


@cache
def compiled_from(source: Path, arch: str) -> Path:
    """A static program of a source file; skips the test without a compiler."""
    compiler = archkit.compiler(arch)
    name = source.stem
    program = _folder() / f"{name}.{arch}"
    command: list[str | Path] = [
        compiler,
        "-static",
        "-O1",
        "-g",
        "-w",
        "-o",
        program,
        source,
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if "cannot find -lc" in done.stderr or "guest.h" not in done.stderr:
            pytest.skip(f"{compiler} cannot compile {name}.c: {done.stderr.splitlines()[-1]}")
        pytest.fail(done.stderr)
    return program


def _run(command: list[str], cwd: Path, user: int | None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
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
    return _run([*([under] if under else []), str(program), *args], cwd, user)


def emulated(program: Path, cwd: Path, *args: str, options: tuple[str, ...] = ()) -> str:
    """Standard output and exit code in the emulator."""
    done = run(
        *("run", *options, "--timeout", "40", "--clean-env", "--env", "PATH=/usr/bin:/bin"),
        *("--env", "LANG=C", str(program), *args),
        cwd=cwd,
    )
    return f"{done.out}exit code {done.code}\n"

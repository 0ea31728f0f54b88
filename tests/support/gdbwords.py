"""Scripts of gdb's words, carried out in this process, and by gdb itself."""

import shutil
import subprocess
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import pytest

from engine.arch.plan import Mode
from engine.session.debugger.interpreter import batch
from engine.session.protocol.config import GuestConfig


def said(config: GuestConfig, *lines: str) -> str:
    """What gdb's words print; a complaint stands in its place behind "! "."""
    out: list[str] = []
    batch(
        config,
        [("command", line) for line in lines],
        out.append,
        lambda text: out.append(f"! {text}\n"),
        Mode.KERNEL,
        lambda session, halt: nullcontext(),
    )
    return "".join(out)


def of_gdb(program: Path, *lines: str) -> str:
    """What gdb says, its complaints in their places; skips where it is not there."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("gdb is not installed")
    script = [word for line in lines for word in ("-ex", line)]
    done = subprocess.run(
        [gdb, "-q", "--batch", "-nx", "-iex", "set width 0", *script, program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "LANG": "C", "HOME": "/nonexistent"},
    )
    if "ptrace" in done.stdout:
        pytest.skip("gdb cannot run programs here")
    return done.stdout


def echoed(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines, each behind one that tells which it is, ">>> LINE"."""
    return tuple(part for line in lines for part in (f"echo >>> {line}\\n", line))

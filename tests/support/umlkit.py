"""User-mode Linux as a guest of the tests: made, run, its events read."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from guestrun import Outcome, run
from kernelimages import UML_61, image_path

QUICK = ("pty.legacy_count=0", "initcall_blacklist=raid6_select_algo,calibrate_xor_blocks")
"""Words that make a boot short: without 512 devices and without measuring the processor."""

SCRIPT = Path(__file__).parents[2] / "samples" / "uml.sh"
BUSYBOX = "/usr/bin/busybox"
WORDS = ("mem=64M", "initrd=initrd.gz", "con=null", "con0=fd:0,fd:1")

SHOWN = ("--root", "/", "--env", "TMPDIR=/dev/shm")


def made(folder: Path, **more: str) -> None:
    """A kernel and an initramfs in a folder."""
    dynamic = subprocess.run(["ldd", BUSYBOX], capture_output=True, check=False).returncode == 0
    if not os.path.exists(BUSYBOX) or dynamic or shutil.which("gzip") is None:
        pytest.skip("needs busybox-static and gzip")
    kernel = more.get("KERNEL") or str(image_path(UML_61))
    done = subprocess.run(
        ["sh", SCRIPT, folder],
        env={**os.environ, **more, "KERNEL": kernel, "BUSYBOX": BUSYBOX},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def ran(folder: Path, command: str, *words: str) -> Outcome:
    """A command of ours on the kernel of a folder."""
    guest = (*SHOWN, "./linux.uml", *WORDS, *QUICK)
    return run(command, *words, *guest, cwd=folder, env={"HOME": str(folder)}, deadline=900)


BOTTOMS = {"new_thread_handler", "fork_handler", "uml_finishsetup", "_start"}
"""The functions that a stack of the kernel's begins with; the last is that of the host's process,
to which it comes back when it has halted."""

EVENT = re.compile(r" *(\S+)-(\d+) +\[000\] \S+ +\d+: (\w+): \(\S+(?: <- \S+)?\) ?(.*)")


def events(text: str, name: str) -> dict[str, list[str]]:
    """The values of an event's rows by the name of the task."""
    found: dict[str, list[str]] = {}
    for match in EVENT.finditer(text):
        if match[3] == name:
            found.setdefault(match[1], []).append(match[4])
    return found
